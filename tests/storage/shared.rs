//! Shared roots: owners who publish at the same place, at the same time or after one of them died.

use std::collections::BTreeMap;

use distributor::bundle::Digest;
use distributor::state::State;
use distributor::storage::Storage;

use crate::memory::Memory;
use crate::mortal::{End, Fate, Mortal};
use crate::scene::{FIRST, OWNERS, SECOND, Scene, copy, tree};

type Tree = BTreeMap<String, Vec<u8>>;

pub(crate) const ROUNDS: usize = 100;
const STATE: &str = ".distributor.json";

pub(crate) fn objects(memory: &Memory) -> Tree {
    memory.objects().into_iter().map(|(key, object)| (key, object.bytes)).collect()
}

/// The state, which tells the truth: every file is recorded with its digest, and every record has its file.
pub(crate) fn truth(tree: &Tree, what: &str) -> State {
    let state = State::parse(&tree[STATE]).unwrap_or_else(|fault| panic!("{what}: {fault}"));
    for record in &state.outputs {
        let bytes = tree.get(record.path.as_str()).unwrap_or_else(|| panic!("{what}: {} is not there", record.path));
        assert_eq!(record.sha256, Digest::of(bytes), "{what}: {}", record.path);
    }
    let files = tree.keys().filter(|name| *name != STATE).count();
    assert_eq!(state.outputs.len(), files, "{what}: {:?}", tree.keys());
    state
}

/// Every one of `owners` publishes its first bundle and then its second, all at once, again and again.
pub(crate) fn at_once(
    scene: &Scene,
    (owners, rounds): (usize, usize),
    clear: impl Fn() -> Box<dyn Storage>,
    look: impl Fn() -> Tree,
) {
    for round in 0..rounds {
        let target = clear();
        std::thread::scope(|scope| {
            for at in 0..owners {
                let target = target.as_ref();
                scope.spawn(move || {
                    for bundle in [FIRST[at], SECOND[at]] {
                        let published = scene.publish(bundle, OWNERS[at], target);
                        published.unwrap_or_else(|error| panic!("round {round}, {bundle}: {error}"));
                    }
                });
            }
        });
        let tree = look();
        let state = truth(&tree, &format!("round {round}"));
        assert_eq!((state.owners.len(), state.outputs.len()), (owners, 3 * owners), "round {round}");
        for at in 0..owners {
            assert_eq!(tree[&format!("common/{}", OWNERS[at])], SECOND[at].as_bytes(), "round {round}");
        }
    }
}

fn at_once_on_disk(owners: usize) {
    let scene = Scene::new();
    let out = scene.dir.path().join("out");
    let clear = || {
        let _ = std::fs::remove_dir_all(&out);
        Box::new(scene.local()) as Box<dyn Storage>
    };
    at_once(&scene, (owners, ROUNDS), clear, || tree(&out));
}

#[test]
fn two_owners_at_once_on_disk_are_both_recorded() {
    at_once_on_disk(2);
}

#[test]
fn eight_owners_at_once_on_disk_are_all_recorded() {
    at_once_on_disk(8);
}

#[test]
fn eight_owners_at_once_in_memory_are_all_recorded() {
    let (scene, memory) = (Scene::new(), Memory::default());
    let clear = || {
        memory.restore(&BTreeMap::new());
        Box::new(memory.clone()) as Box<dyn Storage>
    };
    at_once(&scene, (8, ROUNDS), clear, || objects(&memory));
}

/// One owner dies at every call in turn of replacing its outputs, another publishes, and the first comes back.
fn dies_beside_another(scene: &Scene, restore: impl Fn() -> Box<dyn Storage>, look: impl Fn() -> Tree, heals: bool) {
    for at in 1.. {
        for end in [End::KilledBefore, End::KilledAfter, End::Fails] {
            let target = restore();
            let fate = Fate::new(at, end);
            let mortal = Mortal { inner: restore(), fate: std::sync::Arc::clone(&fate) };
            let result = scene.publish(SECOND[0], "s0", &mortal);
            drop(mortal);
            if !fate.struck() {
                assert!(result.is_ok() && at > 20, "{at} calls, {:?}", result.err());
                return;
            }
            let what = format!("{end:?} at call {at}, {}", fate.chosen.lock().unwrap());
            scene.publish(FIRST[1], "s1", target.as_ref()).unwrap_or_else(|error| panic!("{what}: s1: {error}"));
            if heals {
                let state = truth(&look(), &format!("{what}, then s1"));
                assert_eq!(state.owners.len(), 2, "{what}");
            }
            scene.publish(SECOND[0], "s0", target.as_ref()).unwrap_or_else(|error| panic!("{what}: s0: {error}"));
            let tree = look();
            let state = truth(&tree, &what);
            assert_eq!((state.owners.len(), state.outputs.len()), (2, 7), "{what}");
            assert_eq!(tree["s0/a"], SECOND[0].as_bytes(), "{what}");
            assert_eq!(tree["s1-old"], FIRST[1].as_bytes(), "{what}");
        }
    }
}

#[test]
fn another_owner_publishes_after_a_death_on_disk() {
    let scene = Scene::new();
    scene.publish(FIRST[0], "s0", &scene.local()).unwrap();
    let (out, saved) = (scene.dir.path().join("out"), scene.dir.path().join("saved"));
    copy(&out, &saved);
    let restore = || {
        let _ = std::fs::remove_dir_all(&out);
        copy(&saved, &out);
        Box::new(scene.local()) as Box<dyn Storage>
    };
    dies_beside_another(&scene, restore, || tree(&out), true);
}

#[test]
fn another_owner_publishes_after_a_death_in_memory() {
    let (scene, memory) = (Scene::new(), Memory::default());
    scene.publish(FIRST[0], "s0", &memory).unwrap();
    let saved = memory.objects();
    let restore = || {
        memory.restore(&saved);
        Box::new(memory.clone()) as Box<dyn Storage>
    };
    dies_beside_another(&scene, restore, || objects(&memory), false);
}
