//! The fault sweep: the process dies before and after each storage call of a publication, and of the recovery after it,
//! and the rerun leaves what a run leaves that never died.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use distributor::error::{Code, Result};
use distributor::path::BundlePath;
use distributor::storage::Storage;

use crate::memory::Memory;
use crate::mortal::{End, Fate, Mortal};
use crate::scene::{Files, MERGED, NEW, OLD, Scene, Wish, copy, tree};

pub(crate) type Tree = BTreeMap<String, Vec<u8>>;

/// A place that can be put back to how it was, and looked at.
pub(crate) trait Place {
    fn storage(&self) -> Box<dyn Storage>;
    fn tree(&self) -> Tree;
    fn save(&self) -> Box<dyn Fn() + '_>;
}

pub(crate) struct OnDisk<'a>(pub(crate) &'a Scene);

impl OnDisk<'_> {
    pub(crate) fn out(&self) -> std::path::PathBuf {
        self.0.dir.path().join("out")
    }
}

impl Place for OnDisk<'_> {
    fn storage(&self) -> Box<dyn Storage> {
        Box::new(self.0.local())
    }
    fn tree(&self) -> Tree {
        tree(&self.out())
    }
    fn save(&self) -> Box<dyn Fn() + '_> {
        let saved = tempfile::tempdir_in(self.0.dir.path()).unwrap();
        let there = self.out().exists();
        if there {
            copy(&self.out(), saved.path());
        }
        Box::new(move || {
            let _ = std::fs::remove_dir_all(self.out());
            if there {
                copy(saved.path(), &self.out());
            }
        })
    }
}

pub(crate) struct InMemory(pub(crate) Memory);

impl Place for InMemory {
    fn storage(&self) -> Box<dyn Storage> {
        Box::new(self.0.clone())
    }
    fn tree(&self) -> Tree {
        self.0.objects().into_iter().map(|(key, object)| (key, object.bytes)).collect()
    }
    fn save(&self) -> Box<dyn Fn() + '_> {
        let saved = self.0.objects();
        Box::new(move || self.0.restore(&saved))
    }
}

/// The bytes of a state without what differs from run to run.
pub(crate) fn settled(mut tree: Tree) -> Tree {
    if let Some(state) = tree.get_mut(".distributor.json") {
        let mut json: serde_json::Value = serde_json::from_slice(state).unwrap();
        for key in ["published_at", "created_at", "updated_at"] {
            json[key] = serde_json::Value::Null;
        }
        *state = json.to_string().into_bytes();
    }
    tree
}

pub(crate) fn same(tree: &Tree, expected: &Tree, what: &str) {
    let text = |tree: &Tree| tree.iter().map(|(p, b)| format!("{p}: {}\n", b.escape_ascii())).collect::<String>();
    assert!(tree == expected, "{what}:\n{}instead of\n{}", text(tree), text(expected));
}

fn only_outputs(tree: &Tree) -> Vec<(&str, &[u8])> {
    tree.iter().filter(|(path, _)| *path != ".distributor.json").map(|(p, b)| (p.as_str(), b.as_slice())).collect()
}

pub(crate) fn is(tree: &Tree, files: &[(&str, &str)]) -> bool {
    let mut files: Vec<(&str, &[u8])> = files.iter().map(|(path, text)| (*path, text.as_bytes())).collect();
    files.sort_unstable();
    only_outputs(tree) == files
}

/// How a call may end.
pub(crate) const ENDS: [End; 3] = [End::KilledBefore, End::KilledAfter, End::Fails];

/// The newer bundle to the usual destination.
pub(crate) const NEWER: Wish = Wish { bundle: "new", destination: "d", force: false, again: false };

/// Lets the process die, or a call fail, at call after call of what is wished for, and calls `after` each time.
fn at_every_call(scene: &Scene, place: &dyn Place, wish: Wish, after: impl FnMut(&str)) -> usize {
    with_ends(scene, place, wish, &ENDS, after)
}

fn with_ends(scene: &Scene, place: &dyn Place, wish: Wish, ends: &[End], after: impl FnMut(&str)) -> usize {
    strike(place, ends, |target| scene.grant(wish, target).map(drop), after)
}

/// Lets `command` end at call after call like each of `ends`, at a place that is as it was, and calls `after` each time.
/// Says how often.
pub(crate) fn strike(
    place: &dyn Place,
    ends: &[End],
    command: impl Fn(&dyn Storage) -> Result<()>,
    mut after: impl FnMut(&str),
) -> usize {
    let restore = place.save();
    let mut struck = 0;
    for at in 1.. {
        for &end in ends {
            restore();
            let fate = Fate::new(at, end);
            let mortal = Mortal { inner: place.storage(), fate: Arc::clone(&fate) };
            let result = command(&mortal);
            drop(mortal);
            if !fate.struck() {
                assert!(result.is_ok(), "{:?}", result.err());
                restore();
                return struck;
            }
            struck += 1;
            after(&format!("{end:?} at call {at}, {}", fate.chosen.lock().unwrap()));
        }
    }
    struck
}

pub(crate) fn converges(scene: &Scene, place: &dyn Place, first: bool) {
    granted(scene, place, NEWER, NEW, first);
}

fn granted(scene: &Scene, place: &dyn Place, wish: Wish, files: Files, first: bool) {
    let restore = place.save();
    scene.grant(wish, place.storage().as_ref()).unwrap();
    let expected = settled(place.tree());
    assert!(is(&expected, files));
    assert_eq!(only_outputs(&expected).len(), files.len(), "only the state is left of our names");
    restore();
    let struck = at_every_call(scene, place, wish, |what| {
        let crashed = place.tree();
        if !crashed.keys().any(|name| name.contains("journal")) && !crashed.contains_key(".distributor.json") {
            assert!(first, "{what}: the state is gone");
        }
        // What a dry run says after the crash is what the run does.
        let looked = scene.look(wish, place.storage().as_ref()).unwrap_or_else(|e| panic!("{what}: look: {e}"));
        let published = scene.grant(wish, place.storage().as_ref());
        let published = published.unwrap_or_else(|error| panic!("{what}: the rerun failed: {error}"));
        assert_eq!(looked.decision.action, published.decision.action, "{what}");
        same(&settled(place.tree()), &expected, what);
    });
    assert!(struck > 50, "{struck} deaths");
}

#[test]
fn a_new_publication_converges_on_disk() {
    let scene = Scene::new();
    converges(&scene, &OnDisk(&scene), true);
}

#[test]
fn a_replacement_converges_on_disk() {
    let scene = Scene::new();
    scene.publish("old", "d", &scene.local()).unwrap();
    converges(&scene, &OnDisk(&scene), false);
}

#[test]
fn a_new_publication_converges_in_memory() {
    let scene = Scene::new();
    converges(&scene, &InMemory(Memory::default()), true);
}

#[test]
fn a_replacement_converges_in_memory() {
    let (scene, memory) = (Scene::new(), Memory::default());
    scene.publish("old", "d", &memory).unwrap();
    converges(&scene, &InMemory(memory), false);
}

/// The older bundle and then more of it at the merging destination.
fn merge_converges(scene: &Scene, place: &dyn Place) {
    scene.publish("old", "m", place.storage().as_ref()).unwrap();
    let wish = Wish { bundle: "more", destination: "m", force: false, again: false };
    granted(scene, place, wish, MERGED, false);
}

#[test]
fn a_merge_converges_on_disk() {
    let scene = Scene::new();
    merge_converges(&scene, &OnDisk(&scene));
}

#[test]
fn a_merge_converges_in_memory() {
    merge_converges(&Scene::new(), &InMemory(Memory::default()));
}

const FORCED: Wish = Wish { force: true, ..NEWER };

#[test]
fn a_forced_replacement_converges_on_disk() {
    let scene = Scene::new();
    let out = scene.dir.path().join("out");
    std::fs::create_dir_all(out.join("theirs/empty")).unwrap();
    for name in ["theirs/file", "new", "a.txt", "B"] {
        std::fs::write(out.join(name), "mine").unwrap();
    }
    std::os::unix::fs::symlink("../in", out.join("turn")).unwrap();
    granted(&scene, &OnDisk(&scene), FORCED, NEW, true);
    assert!(scene.dir.path().join("in/new/a.txt").exists(), "what a link led to is still there");
}

#[test]
fn a_forced_replacement_converges_in_memory() {
    let (scene, memory) = (Scene::new(), Memory::default());
    for key in ["theirs/file", "odd//key", "a.txt"] {
        memory.put(key, b"mine");
    }
    granted(&scene, &InMemory(memory), FORCED, NEW, true);
}

#[test]
fn before_its_commit_point_a_killed_forced_replacement_took_nothing() {
    let scene = Scene::new();
    let (out, place) = (scene.dir.path().join("out"), OnDisk(&scene));
    std::fs::create_dir_all(&out).unwrap();
    std::fs::write(out.join("theirs"), "mine").unwrap();
    let (mut whole, mut done) = (0, 0);
    at_every_call(&scene, &place, FORCED, |what| {
        // Whoever comes next without force finishes it, or is refused with all still there.
        match scene.grant(NEWER, &scene.local()) {
            Ok(_) => {
                assert!(is(&place.tree(), NEW), "{what}");
                done += 1;
            }
            Err(error) => {
                assert_eq!(error.code, Code::UnmanagedContent, "{what}: {error}");
                assert_eq!(place.tree().get("theirs").map(Vec::as_slice), Some(b"mine".as_slice()), "{what}");
                whole += 1;
            }
        }
    });
    assert!(whole > 10 && done > 10, "{whole} before, {done} after");
}

fn returns_to_the_older(scene: &Scene, place: &dyn Place) {
    scene.publish("old", "d", place.storage().as_ref()).unwrap();
    at_every_call(scene, place, NEWER, |what| {
        let looked = scene.look(Wish { bundle: "old", ..NEWER }, place.storage().as_ref()).unwrap();
        let published = scene.publish("old", "d", place.storage().as_ref());
        let published = published.unwrap_or_else(|error| panic!("{what}: {error}"));
        assert_eq!(looked.decision.action, published.decision.action, "{what}");
        let tree = place.tree();
        // Past its commit point the newer one was finished, and is not replaced by an older one.
        assert!(is(&tree, OLD) || is(&tree, NEW), "{what}: {:?}", tree.keys());
        let state: serde_json::Value = serde_json::from_slice(&tree[".distributor.json"]).unwrap();
        let recorded = state["outputs"].as_array().unwrap().len();
        assert_eq!(recorded, only_outputs(&tree).len(), "{what}");
    });
}

#[test]
fn a_return_to_the_older_bundle_converges_on_disk() {
    let scene = Scene::new();
    returns_to_the_older(&scene, &OnDisk(&scene));
}

#[test]
fn a_return_to_the_older_bundle_converges_in_memory() {
    let scene = Scene::new();
    returns_to_the_older(&scene, &InMemory(Memory::default()));
}

fn killed_recovery_converges(scene: &Scene, place: &dyn Place) {
    let storage = || place.storage();
    scene.publish("old", "d", storage().as_ref()).unwrap();
    let restore = place.save();
    scene.publish("new", "d", storage().as_ref()).unwrap();
    let expected = settled(place.tree());
    restore();
    // Killed before a call is killed after the one before it.
    with_ends(scene, place, NEWER, &[End::KilledBefore], |what| {
        with_ends(scene, place, NEWER, &[End::KilledBefore], |again| {
            scene.publish("new", "d", storage().as_ref()).unwrap_or_else(|e| panic!("{what}, then {again}: {e}"));
            same(&settled(place.tree()), &expected, &format!("{what}, then {again}"));
        });
    });
}

#[test]
fn a_killed_recovery_converges_on_disk() {
    let scene = Scene::new();
    killed_recovery_converges(&scene, &OnDisk(&scene));
}

#[test]
fn a_killed_recovery_converges_in_memory() {
    killed_recovery_converges(&Scene::new(), &InMemory(Memory::default()));
}

#[test]
fn a_recovery_that_cannot_settle_is_not_followed_by_a_publication() {
    let scene = Scene::new();
    scene.publish("old", "d", &scene.local()).unwrap();
    let place = OnDisk(&scene);
    with_ends(&scene, &place, NEWER, &[End::KilledAfter], |what| {
        if !what.contains(", commit ") {
            return;
        }
        let restore = place.save();
        for at in 1.. {
            restore();
            // Another owner finishes it, and at some call of its run something fails.
            let fate = Fate::new(at, End::Fails);
            let mortal = Mortal { inner: place.storage(), fate: Arc::clone(&fate) };
            let _ = scene.publish("old", "e", &mortal);
            drop(mortal);
            if !fate.struck() {
                return;
            }
            let again = format!("{what}, then {}", fate.chosen.lock().unwrap());
            scene.publish("old", "e", &scene.local()).unwrap_or_else(|error| panic!("{again}: {error}"));
            assert!(is(&place.tree(), OLD), "{again}: {:?}", place.tree().keys());
        }
    });
}

#[test]
fn another_owner_finishes_what_a_killed_one_began() {
    let scene = Scene::new();
    scene.publish("old", "d", &scene.local()).unwrap();
    let place = OnDisk(&scene);
    at_every_call(&scene, &place, NEWER, |what| {
        scene.publish("new", "e", &scene.local()).unwrap_or_else(|error| panic!("{what}: {error}"));
        assert!(is(&place.tree(), NEW), "{what}: {:?}", place.tree().keys());
    });
}

#[test]
fn a_strangers_file_is_never_touched() {
    let scene = Scene::new();
    scene.publish("old", "d", &scene.local()).unwrap();
    let place = OnDisk(&scene);
    let stranger = |path: &Path| std::fs::read_to_string(path).is_ok_and(|text| text == "mine");
    at_every_call(&scene, &place, NEWER, |what| {
        // After the crash somebody takes a name that the newer bundle wants, unless it was published there already.
        let taken = place.out().join("new/n.txt");
        if taken.exists() {
            return;
        }
        std::fs::create_dir_all(taken.parent().unwrap()).unwrap();
        std::fs::write(&taken, "mine").unwrap();
        let refused = scene.publish("new", "d", &scene.local()).err().unwrap_or_else(|| panic!("{what}: published"));
        assert!(matches!(refused.code, Code::UnmanagedContent | Code::CommitIncomplete), "{what}: {}", refused.code);
        assert!(stranger(&taken), "{what}");
        std::fs::remove_file(&taken).unwrap();
        scene.publish("new", "d", &scene.local()).unwrap_or_else(|error| panic!("{what}: {error}"));
        assert!(is(&place.tree(), NEW), "{what}");
    });
}

#[test]
fn a_name_taken_where_a_directory_should_be_stops_the_publication_until_it_is_free() {
    let scene = Scene::new();
    scene.publish("old", "d", &scene.local()).unwrap();
    let place = OnDisk(&scene);
    let taken = place.out().join("new");
    let (file, link) = (|| std::fs::write(&taken, "mine"), || std::os::unix::fs::symlink("/", &taken));
    let takers: [&dyn Fn() -> std::io::Result<()>; 2] = [&file, &link];
    for take in takers {
        at_every_call(&scene, &place, NEWER, |what| {
            if taken.exists() {
                return;
            }
            let committing = place.tree().iter().any(|(name, bytes)| {
                name.contains(".journal-") && String::from_utf8_lossy(bytes).contains("\"committing\"")
            });
            take().unwrap();
            let refused =
                scene.publish("new", "d", &scene.local()).err().unwrap_or_else(|| panic!("{what}: published"));
            let expected = if committing { Code::CommitIncomplete } else { Code::UnmanagedContent };
            assert_eq!(refused.code, expected, "{what}: {refused:?}");
            assert!(refused.message.contains("new"), "{what}: {refused:?}");
            std::fs::remove_file(&taken).unwrap();
            scene.publish("new", "d", &scene.local()).unwrap_or_else(|error| panic!("{what}: {error}"));
            assert!(is(&place.tree(), NEW), "{what}");
        });
    }
}

#[test]
fn a_directory_that_was_removed_after_a_crash_is_made_again() {
    let scene = Scene::new();
    scene.publish("old", "d", &scene.local()).unwrap();
    let place = OnDisk(&scene);
    for dir in ["b", "new"] {
        at_every_call(&scene, &place, NEWER, |what| {
            let _ = std::fs::remove_dir_all(place.out().join(dir));
            scene.publish("new", "d", &scene.local()).unwrap_or_else(|error| panic!("{what}, without {dir}: {error}"));
            // What had its name already went with the directory.
            let others = |files: Vec<(&str, &[u8])>| {
                let files = files.into_iter().filter(|(path, _)| !path.starts_with(dir));
                files.map(|(path, bytes)| (path.to_owned(), bytes.to_vec())).collect::<Vec<_>>()
            };
            let expected = NEW.iter().map(|(path, text)| (*path, text.as_bytes())).collect();
            assert_eq!(others(only_outputs(&place.tree())), others(expected), "{what}, without {dir}");
        });
    }
}

#[test]
fn the_views_of_a_memory_share_their_objects() {
    let memory = Memory::default();
    memory.put("x/y", b"1");
    let below = memory.at(&BundlePath::from(distributor::path::RelPath::parse("x").unwrap()));
    assert!(below.read(&distributor::path::RelPath::parse("y").unwrap()).is_ok());
}
