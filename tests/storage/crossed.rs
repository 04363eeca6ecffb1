//! A death, and what others did before the rerun.

use crate::scene::{NEW, Scene, Wish};
use crate::sweep::{ENDS, NEWER, OnDisk, Place, is, strike};

/// With a clock that stands still the new state has the bytes of the old one, and tells nothing.
#[test]
fn a_republication_in_the_second_of_the_last_one_is_not_taken_for_done() {
    let scene = Scene::new();
    scene.grant(NEWER, &scene.local()).unwrap();
    let place = OnDisk(&scene);
    std::fs::remove_file(place.out().join("new/n.txt")).unwrap();
    let again = Wish { again: true, ..NEWER };
    let mut finished = 0;
    strike(
        &place,
        &ENDS,
        |target| scene.grant(again, target).map(drop),
        |what| {
            let journal = place.tree().into_iter().find(|(name, _)| name.contains("journal"));
            let committing = journal.is_some_and(|(_, bytes)| String::from_utf8_lossy(&bytes).contains("committing"));
            scene.grant(NEWER, &scene.local()).unwrap_or_else(|error| panic!("{what}: {error}"));
            if committing {
                assert!(is(&place.tree(), NEW), "{what}: {:?}", place.tree().keys());
                finished += 1;
            }
            scene.grant(again, &scene.local()).unwrap_or_else(|error| panic!("{what}: {error}"));
            assert!(is(&place.tree(), NEW), "{what}");
        },
    );
    assert!(finished > 10, "{finished} past the commit point");
}

/// A directory that the newer bundle empties became a destination by itself before the rerun.
#[test]
fn recovery_leaves_alone_what_became_a_destination_of_its_own() {
    let scene = Scene::new();
    scene.publish("old", "d", &scene.local()).unwrap();
    let place = OnDisk(&scene);
    let theirs = place.out().join("drop");
    strike(
        &place,
        &ENDS,
        |target| scene.grant(NEWER, target).map(drop),
        |what| {
            let _ = std::fs::remove_dir_all(&theirs);
            scene.publish("other", "d", &scene.local_at("out/drop")).unwrap();
            scene.grant(NEWER, &scene.local()).unwrap_or_else(|error| panic!("{what}: {error}"));
            assert_eq!(std::fs::read(theirs.join("x.txt")).unwrap(), b"other", "{what}");
            assert!(theirs.join(".distributor.json").exists(), "{what}");
        },
    );
}
