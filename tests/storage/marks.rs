//! What a publication that was cut short has overwritten, and nobody writes again: the state says what is there, and no
//! owner skips while an output is not that of its bundle.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::Arc;

use distributor::digest::Digest;
use distributor::error::Code;
use distributor::plan::Action;
use distributor::state::State;
use distributor::storage::Storage;

use crate::memory::Memory;
use crate::mortal::{End, Fate, Mortal};
use crate::scene::{FIRST, MORE, NEW, OLD, Scene, Wish};
use crate::shared::objects;
use crate::sweep::{ENDS, InMemory, NEWER, Tree, is, strike};

/// Lets `cut` end at each call after `before` was published, and hands on what is there then.
fn cut(scene: &Scene, before: &[(&'static str, &'static str)], cut: Wish, after: impl Fn(&Memory, &str)) {
    let memory = Memory::default();
    for (bundle, destination) in before {
        scene.publish(bundle, destination, &memory).unwrap();
    }
    let place = InMemory(memory.clone());
    let command = |target: &dyn Storage| scene.grant(cut, target).map(drop);
    let struck = strike(&place, &ENDS, command, |what| after(&memory, what));
    assert!(struck > 50, "{struck} deaths");
}

/// What is there, whose state tells the truth, without names of ours.
fn truth(memory: &Memory, what: &str) -> (State, Tree) {
    let mut tree: BTreeMap<_, _> = objects(memory);
    let state = State::parse(&tree[".distributor.json"]).unwrap();
    tree.retain(|name, _| !name.starts_with(".distributor."));
    for record in &state.outputs {
        let bytes = tree.get(record.path.as_str()).unwrap_or_else(|| panic!("{what}: {} is not there", record.path));
        assert_eq!((record.sha256, record.size), (Digest::of(bytes), bytes.len() as u64), "{what}: {}", record.path);
    }
    assert_eq!(state.outputs.len(), tree.len(), "{what}: {:?}", tree.keys());
    (state, tree)
}

#[test]
fn an_output_that_a_merge_retains_is_recorded_as_it_is() {
    let scene = Scene::new();
    let more = Wish { bundle: "more", destination: "m", ..NEWER };
    cut(&scene, &[("old", "m")], more, |memory, what| {
        for _ in 0..2 {
            let looked = scene.look(Wish { bundle: "less", ..more }, memory).unwrap();
            let published = scene.publish("less", "m", memory).unwrap_or_else(|error| panic!("{what}: {error}"));
            assert_eq!(looked.decision.action, published.decision.action, "{what}");
            let (_, tree) = truth(memory, what);
            assert_eq!(tree["index.html"], b"i4", "{what}");
        }
        assert_eq!(objects(memory).keys().filter(|name| name.starts_with(".distributor.")).count(), 1, "{what}");
    });
}

#[test]
fn an_owner_whose_output_was_overwritten_writes_it_again() {
    let scene = Scene::new();
    let taken = Wish { bundle: "taken", destination: "t", ..NEWER };
    for then in ["left", "mine"] {
        cut(&scene, &[(FIRST[0], "s0"), ("mine", "t")], taken, |memory, what| {
            // The one who was cut short goes on without that path, or back to where it was.
            let _ = scene.publish(then, "t", memory).unwrap_or_else(|error| panic!("{what}, {then}: {error}"));
            truth(memory, what);
            scene.publish(FIRST[0], "s0", memory).unwrap_or_else(|error| panic!("{what}, {then}: s0: {error}"));
            let (state, tree) = truth(memory, what);
            let whose = state.outputs.iter().find(|record| record.path.as_str() == "common/s0");
            if whose.is_some_and(|record| state.owners[record.owner].destination_id == "s0") {
                assert_eq!(tree["common/s0"], FIRST[0].as_bytes(), "{what}, {then}");
            }
            assert_eq!(scene.publish(FIRST[0], "s0", memory).unwrap().decision.action, Action::SkipSame, "{what}");
        });
    }
}

#[test]
fn a_journal_that_stayed_though_its_publication_counts_hides_no_mark() {
    let scene = Scene::new();
    let taken = Wish { bundle: "taken", destination: "t", ..NEWER };
    // The journal of a publication that came to its end, all but its own removal.
    let memory = Memory::default();
    let second = Wish { bundle: FIRST[0], destination: "s0", ..NEWER };
    let fates = (1..).map(|at| {
        memory.restore(&BTreeMap::new());
        let fate = Fate::new(at, End::KilledAfter);
        let _ = scene.grant(second, &Mortal { inner: Box::new(memory.clone()), fate: Arc::clone(&fate) });
        fate.chosen.lock().unwrap().clone()
    });
    let mut fates = fates.take(100);
    assert!(fates.any(|chosen| chosen.contains("put_small .distributor.json")), "the state was never written");
    let stayed = memory.objects();
    let (name, journal) = stayed.iter().find(|(name, _)| name.contains("journal-")).unwrap();
    scene.publish("mine", "t", &memory).unwrap();
    let standing = objects(&memory)[".distributor.json"].clone();
    let text = String::from_utf8(journal.bytes.clone()).unwrap();
    let old = Digest::of(&stayed[".distributor.json"].bytes).hex();
    let settled = text.replace(&old, &Digest::of(&standing).hex());
    assert_ne!(text, settled);
    let place = InMemory(memory.clone());
    strike(
        &place,
        &ENDS,
        |target| scene.grant(taken, target).map(drop),
        |what| {
            if objects(&memory)[".distributor.json"] == standing {
                memory.put(name, settled.as_bytes());
            }
            scene.publish("left", "t", &memory).unwrap_or_else(|error| panic!("{what}: {error}"));
            scene.publish(FIRST[0], "s0", &memory).unwrap_or_else(|error| panic!("{what}: s0: {error}"));
            let (state, tree) = truth(&memory, what);
            let whose = state.outputs.iter().find(|record| record.path.as_str() == "common/s0");
            if whose.is_some_and(|record| state.owners[record.owner].destination_id == "s0") {
                assert_eq!(tree["common/s0"], FIRST[0].as_bytes(), "{what}");
            }
        },
    );
}

#[test]
fn an_owner_whose_place_was_half_taken_over_makes_it_whole() {
    let scene = Scene::new();
    cut(&scene, &[("old", "d")], Wish { destination: "e", ..NEWER }, |memory, what| {
        match scene.publish("old", "d", memory) {
            Ok(_) => assert!(is(&truth(memory, what).1, OLD), "{what}: {:?}", objects(memory).keys()),
            // The other one has come to its end.
            Err(error) => {
                assert_eq!(error.code, Code::IdentityMismatch, "{what}");
                assert!(is(&truth(memory, what).1, NEW), "{what}");
            }
        }
    });
}

#[test]
fn a_half_published_place_is_not_skipped_for_an_older_bundle() {
    let scene = Scene::new();
    let refused = Cell::new(0);
    cut(&scene, &[("new", "d")], Wish { bundle: "more", ..NEWER }, |memory, what| {
        match scene.publish("old", "d", memory) {
            Ok(told) => {
                assert_eq!(told.decision.action, Action::SkipDestinationNewer, "{what}");
                let (_, tree) = truth(memory, what);
                assert!(is(&tree, NEW) || is(&tree, MORE), "{what}: {:?}", tree.keys());
            }
            Err(error) => {
                assert_eq!(error.code, Code::CommitIncomplete, "{what}: {error}");
                assert!(error.message.contains("half-published"), "{what}: {error}");
                refused.set(refused.get() + 1);
                scene.publish("more", "d", memory).unwrap();
                assert!(is(&truth(memory, what).1, MORE), "{what}");
            }
        }
    });
    assert!(refused.get() > 5, "{refused:?}");
}

#[test]
fn a_forced_replacement_that_was_cut_short_goes_on_without_force_and_no_further() {
    let scene = Scene::new();
    let forced = Wish { force: true, ..NEWER };
    let (whole, done) = (Cell::new(0), Cell::new(0));
    let memory = Memory::default();
    for key in ["theirs/file", "odd//key", "a.txt", "z"] {
        memory.put(key, b"mine");
    }
    let place = InMemory(memory.clone());
    let command = |target: &dyn Storage| scene.grant(forced, target).map(drop);
    strike(&place, &ENDS, command, |what| {
        let looked = scene.look(NEWER, &memory).map(|told| told.decision.action).map_err(|error| error.code);
        let crashed = memory.objects();
        memory.put("stranger", b"theirs");
        let refused = scene.publish("new", "d", &memory).map(|told| told.decision.action);
        // Where the state stands it has come to its end.
        let is_done = crashed.contains_key(".distributor.json");
        assert!(is_done || refused.is_err_and(|error| error.code == Code::UnmanagedContent), "{what}");
        assert_eq!(objects(&memory)["stranger"], b"theirs", "{what}");
        memory.restore(&crashed);
        let published = scene.publish("new", "d", &memory).map(|told| told.decision.action).map_err(|error| error.code);
        assert_eq!(looked, published, "{what}");
        match published {
            Ok(_) => {
                assert!(is(&truth(&memory, what).1, NEW), "{what}");
                done.set(done.get() + 1);
            }
            Err(code) => {
                assert_eq!(code, Code::UnmanagedContent, "{what}");
                assert!(objects(&memory).iter().filter(|(_, bytes)| *bytes == b"mine").count() == 4, "{what}");
                whole.set(whole.get() + 1);
            }
        }
    });
    assert!(whole.get() > 10 && done.get() > 10, "{whole:?} before, {done:?} after");
}
