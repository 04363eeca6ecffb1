//! Prune and reconcile-state: processes that die at any call of them, and commands that run at the same time.

use std::collections::{BTreeMap, BTreeSet};

use distributor::error::{Code, Result};
use distributor::maintain::Pruning;
use distributor::state::{OutputRecord, State};
use distributor::storage::Storage;

use crate::memory::Memory;
use crate::mortal::End;
use crate::scene::{FIRST, SECOND, Scene, tree};
use crate::shared::{objects, truth};
use crate::sweep::{InMemory, OnDisk, Place, Tree, same, settled, strike};

const STATE: &str = ".distributor.json";
const ROUNDS: usize = 50;

/// A command at a destination.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Act {
    Publish(&'static str, &'static str),
    Prune(&'static str),
    /// Of one owner.
    Repair(&'static str),
    RepairAll(&'static str),
}

/// Does it, and for upkeep says what it found.
fn act(scene: &Scene, act: Act, target: &dyn Storage) -> Result<String> {
    run(scene, act, target, false)
}

fn run(scene: &Scene, act: Act, target: &dyn Storage, dry_run: bool) -> Result<String> {
    let repair = |id, all| {
        let repair = scene.upkeep((id, all), target, |upkeep, warnings| upkeep.repair(dry_run, warnings))?;
        Ok(format!("{repair:?}"))
    };
    match act {
        Act::Publish(bundle, id) => scene.publish(bundle, id, target).map(|_| String::new()),
        Act::Prune(id) => prune(scene, id, target, dry_run).map(|found| format!("{:?} {}", found.planned, found.kept)),
        Act::Repair(id) => repair(id, false),
        Act::RepairAll(id) => repair(id, true),
    }
}

fn prune(scene: &Scene, id: &str, target: &dyn Storage, dry_run: bool) -> Result<Pruning> {
    scene.upkeep((id, false), target, |upkeep, warnings| upkeep.prune(dry_run, warnings))
}

fn state(tree: &Tree) -> State {
    State::parse(&tree[STATE]).unwrap_or_else(|fault| panic!("{fault}"))
}

fn records(tree: &Tree) -> BTreeMap<String, OutputRecord> {
    state(tree).outputs.into_iter().map(|record| (record.path.to_string(), record)).collect()
}

/// What was managed before is gone or still recorded, as it was; what was not managed is as it was.
fn forgets_nothing(before: &Tree, now: &Tree, what: &str) {
    let (recorded, still) = (records(before), records(now));
    for (path, bytes) in before.iter().filter(|(path, _)| !path.starts_with(".distributor")) {
        match recorded.get(path) {
            Some(record) if now.contains_key(path) => assert_eq!(still.get(path), Some(record), "{what}: {path}"),
            Some(_) => {}
            None => assert_eq!(now.get(path), Some(bytes), "{what}: {path}"),
        }
    }
}

/// Lets `command` die at each of its calls, and then does `next`: what is left is what both leave one after the other, or
/// `next` alone where `command` had not come to its commit point. A dry run of `next` says beforehand what it will find.
pub(crate) fn finishes(scene: &Scene, place: &dyn Place, command: Act, next: Act) {
    let restore = place.save();
    let before = place.tree();
    act(scene, next, place.storage().as_ref()).unwrap();
    let next_alone = settled(place.tree());
    restore();
    act(scene, command, place.storage().as_ref()).unwrap();
    forgets_nothing(&before, &place.tree(), "undisturbed");
    act(scene, next, place.storage().as_ref()).unwrap();
    let both = settled(place.tree());
    assert_eq!(both.keys().filter(|name| name.starts_with(".distributor")).count(), 1, "{:?}", both.keys());
    restore();
    let (mut done, mut not) = (0, 0);
    let killed = [End::KilledBefore, End::KilledAfter];
    let command = |target: &dyn Storage| act(scene, command, target).map(drop);
    strike(place, &killed, command, |what| {
        let what = format!("{what}, then {next:?}");
        let crashed = place.tree();
        forgets_nothing(&before, &crashed, &what);
        let committed = crashed.keys().any(|name| name.contains("journal")) || crashed[STATE] != before[STATE];
        *(if committed { &mut done } else { &mut not }) += 1;
        let expected = if committed { &both } else { &next_alone };
        let seen = (!matches!(next, Act::Publish(..))).then(|| {
            run(scene, next, place.storage().as_ref(), true).unwrap_or_else(|error| panic!("{what}: {error}"))
        });
        let found =
            act(scene, next, place.storage().as_ref()).unwrap_or_else(|error| panic!("{what}: it failed: {error}"));
        same(&settled(place.tree()), expected, &what);
        assert!(seen.is_none_or(|seen| seen == found), "{what}: the dry run said otherwise");
    });
    assert!(done > 3 && not > 6, "{done} after, {not} before the commit point");
    // A call that fails, once: whatever was done, the state tells of what is there, and doing it again does the rest.
    strike(place, &[End::Fails], command, |what| {
        forgets_nothing(&before, &place.tree(), what);
        command(place.storage().as_ref()).unwrap_or_else(|error| panic!("{what}: again: {error}"));
        forgets_nothing(&before, &place.tree(), what);
        act(scene, next, place.storage().as_ref()).unwrap_or_else(|error| panic!("{what}, then {next:?}: {error}"));
        // A directory that could not be removed once it was empty may stay.
        let mut left = settled(place.tree());
        left.retain(|path, _| !path.ends_with('/'));
        same(&left, &both, &format!("{what}, then {next:?}"));
    });
}

/// Commands of the only owner after a death.
fn single(scene: &Scene, place: &dyn Place) {
    scene.publish("old", "d", place.storage().as_ref()).unwrap();
    for next in [Act::Publish("old", "d"), Act::Publish("new", "d"), Act::Prune("d"), Act::Repair("d")] {
        finishes(scene, place, Act::Prune("d"), next);
    }
}

#[test]
fn a_killed_pruning_is_finished_on_disk() {
    let scene = Scene::new();
    single(&scene, &OnDisk(&scene));
}

#[test]
fn a_killed_pruning_is_finished_in_memory() {
    single(&Scene::new(), &InMemory(Memory::default()));
}

/// Commands of all kinds and owners after a death at a shared root, where outputs of both owners were lost.
fn shared(scene: &Scene, place: &dyn Place, spoil: impl Fn(), commands: &[Act]) {
    for (bundle, owner) in [(FIRST[0], "s0"), (FIRST[1], "s1")] {
        scene.publish(bundle, owner, place.storage().as_ref()).unwrap();
    }
    spoil();
    for &command in commands {
        for next in [
            Act::Publish(SECOND[0], "s0"),
            Act::Publish(SECOND[1], "s1"),
            Act::Publish(FIRST[2], "s2"),
            Act::Prune("s0"),
            Act::Prune("s1"),
            Act::Repair("s0"),
            Act::Repair("s1"),
            Act::RepairAll("s0"),
        ] {
            finishes(scene, place, command, next);
        }
    }
}

fn spoil_disk(scene: &Scene) {
    let out = scene.dir.path().join("out");
    for name in ["s0-old", "s1.html"] {
        std::fs::remove_file(out.join(name)).unwrap();
    }
    std::fs::create_dir(out.join("theirs")).unwrap();
    for name in ["theirs/file", "s0/theirs"] {
        std::fs::write(out.join(name), "mine").unwrap();
    }
    std::os::unix::fs::symlink("theirs", out.join("link")).unwrap();
}

fn spoil_memory(memory: &Memory) {
    let mut objects = memory.objects();
    objects.retain(|key, _| !["s0-old", "s1.html"].contains(&key.as_str()));
    memory.restore(&objects);
    for key in ["theirs/file", "s0/theirs", "odd//key"] {
        memory.put(key, b"mine");
    }
}

#[test]
fn a_killed_pruning_of_a_shared_root_is_finished_on_disk() {
    let scene = Scene::new();
    shared(&scene, &OnDisk(&scene), || spoil_disk(&scene), &[Act::Prune("s0")]);
}

#[test]
fn a_killed_pruning_of_a_shared_root_is_finished_in_memory() {
    let memory = Memory::default();
    shared(&Scene::new(), &InMemory(memory.clone()), || spoil_memory(&memory), &[Act::Prune("s0")]);
}

#[test]
fn a_killed_repair_of_a_shared_root_is_finished_on_disk() {
    let scene = Scene::new();
    shared(&scene, &OnDisk(&scene), || spoil_disk(&scene), &[Act::Repair("s0"), Act::RepairAll("s1")]);
}

#[test]
fn a_killed_repair_of_a_shared_root_is_finished_in_memory() {
    let memory = Memory::default();
    let commands = [Act::Repair("s0"), Act::RepairAll("s1")];
    shared(&Scene::new(), &InMemory(memory.clone()), || spoil_memory(&memory), &commands);
}

/// Whoever finishes what was cut short dies as well.
fn killed_twice(scene: &Scene, place: &dyn Place) {
    for (bundle, owner) in [(FIRST[0], "s0"), (FIRST[1], "s1")] {
        scene.publish(bundle, owner, place.storage().as_ref()).unwrap();
    }
    let restore = place.save();
    let before = place.tree();
    act(scene, Act::Prune("s0"), place.storage().as_ref()).unwrap();
    let expected = settled(place.tree());
    restore();
    // Killed before a call is killed after the one before it.
    let command = |act_: Act| move |target: &dyn Storage| act(scene, act_, target).map(drop);
    strike(place, &[End::KilledBefore], command(Act::Prune("s0")), |what| {
        strike(place, &[End::KilledBefore], command(Act::Repair("s1")), |again| {
            forgets_nothing(&before, &place.tree(), &format!("{what}, then {again}"));
            act(scene, Act::Prune("s0"), place.storage().as_ref())
                .unwrap_or_else(|e| panic!("{what}, then {again}: {e}"));
            same(&settled(place.tree()), &expected, &format!("{what}, then {again}"));
        });
    });
}

#[test]
fn a_killed_recovery_of_a_pruning_is_finished_on_disk() {
    let scene = Scene::new();
    killed_twice(&scene, &OnDisk(&scene));
}

#[test]
fn a_killed_recovery_of_a_pruning_is_finished_in_memory() {
    killed_twice(&Scene::new(), &InMemory(Memory::default()));
}

/// A publication of s1 dies at each of its calls, upkeep comes next, and then s1 again. Says how often upkeep was refused.
fn after_a_killed_publication(scene: &Scene, place: &dyn Place) -> usize {
    for (bundle, owner) in [(FIRST[0], "s0"), (FIRST[1], "s1")] {
        scene.publish(bundle, owner, place.storage().as_ref()).unwrap();
    }
    let mut refused = 0;
    let publish = |target: &dyn Storage| scene.publish(SECOND[1], "s1", target).map(drop);
    for next in [Act::Prune("s0"), Act::Repair("s0"), Act::RepairAll("s0"), Act::Prune("s1"), Act::Repair("s1")] {
        strike(place, &[End::KilledBefore, End::KilledAfter, End::Fails], publish, |what| {
            let what = format!("{what}, then {next:?}");
            let seen = run(scene, next, place.storage().as_ref(), true);
            let found = act(scene, next, place.storage().as_ref());
            let code = |result: &Result<String>| result.as_ref().map_or_else(|error| Some(error.code), |_| None);
            assert_eq!(code(&seen), code(&found), "{what}: the dry run said otherwise");
            match found {
                Ok(found) => assert_eq!(seen.unwrap(), found, "{what}: the dry run said otherwise"),
                Err(error) => {
                    assert_eq!(error.code, Code::CommitIncomplete, "{what}: {error}");
                    assert!(matches!(next, Act::Prune("s1") | Act::Repair("s1")), "{what}: {error}");
                    refused += 1;
                }
            }
            publish(place.storage().as_ref()).unwrap_or_else(|error| panic!("{what}, then s1: {error}"));
            let state = truth(&place.tree(), &what);
            let of = |owner: usize| state.outputs.iter().filter(|record| record.owner == owner).count();
            let kept = if matches!(next, Act::Prune("s0")) { 1 } else { 4 };
            assert_eq!((state.owners.len(), of(0)), (2, kept), "{what}");
            // Pruned after the publication was finished, they are not there; they come back with nothing but --republish.
            assert!(of(1) == 3 || of(1) == 1 && matches!(next, Act::Prune("s1")), "{what}: {}", of(1));
        });
    }
    refused
}

#[test]
fn upkeep_after_a_killed_publication_on_disk() {
    let scene = Scene::new();
    assert_eq!(after_a_killed_publication(&scene, &OnDisk(&scene)), 0);
}

#[test]
fn upkeep_after_a_killed_publication_in_memory() {
    let refused = after_a_killed_publication(&Scene::new(), &InMemory(Memory::default()));
    assert!(refused > 20, "{refused} refused to the owner whose publication only its source can finish");
}

#[test]
fn what_could_not_be_deleted_stays_recorded_until_it_is() {
    let scene = Scene::new();
    scene.publish("old", "d", &scene.local()).unwrap();
    let place = OnDisk(&scene);
    let mut failed = 0;
    let command = |target: &dyn Storage| {
        let Ok(pruning) = prune(&scene, "d", target, false) else { return Ok(()) };
        let still = records(&place.tree());
        for (path, _) in &pruning.failed {
            assert!(still.contains_key(path.as_str()) && place.tree().contains_key(path.as_str()), "{path}");
        }
        assert!(pruning.deleted.iter().all(|path| !still.contains_key(path.as_str())));
        assert_eq!(pruning.deleted.len() + pruning.failed.len(), 3);
        Ok(())
    };
    strike(&place, &[End::Fails], command, |what| {
        if what.ends_with("remove drop/x.txt") {
            failed += 1;
            let again = prune(&scene, "d", &scene.local(), false).unwrap();
            assert_eq!((again.planned.len(), again.deleted.len(), again.kept), (1, 1, 2), "{what}");
            assert!(!place.tree().contains_key("drop/"));
        }
    });
    assert_eq!(failed, 1);
}

/// Publishes, prunes and repairs at once, again and again; afterwards every file is recorded and every record has its file.
fn at_once(scene: &Scene, clear: impl Fn() -> Box<dyn Storage>, look: impl Fn() -> Tree) {
    let first: BTreeSet<Code> = [Code::NoState, Code::OwnerNotFound].into();
    for round in 0..ROUNDS {
        let target = clear();
        scene.publish(FIRST[0], "s0", target.as_ref()).unwrap();
        std::thread::scope(|scope| {
            for what in [
                Act::Prune("s0"),
                Act::Publish(SECOND[0], "s0"),
                Act::RepairAll("s0"),
                Act::Publish(FIRST[1], "s1"),
                Act::Prune("s1"),
                Act::Repair("s1"),
            ] {
                let (target, first) = (target.as_ref(), &first);
                scope.spawn(move || match act(scene, what, target) {
                    // Who came before the owner's first publication finds nothing of it.
                    Err(error) if first.contains(&error.code) => {
                        assert!(
                            matches!(what, Act::Prune("s1") | Act::Repair("s1")),
                            "round {round}: {what:?}: {error}"
                        );
                    }
                    result => drop(result.unwrap_or_else(|error| panic!("round {round}: {what:?}: {error}"))),
                });
            }
        });
        let tree = look();
        let state = truth(&tree, &format!("round {round}"));
        assert_eq!(state.owners.len(), 2, "round {round}");
        assert_eq!(tree["common/s0"], SECOND[0].as_bytes(), "round {round}");
        // Whichever came first: the newest bundle's three outputs, or the one of them that is kept.
        let of = |owner: usize| state.outputs.iter().filter(|record| record.owner == owner).count();
        let counts = [of(0), of(1)].map(|count| [1, 3, 4].contains(&count));
        assert_eq!(counts, [true, true], "round {round}: {:?}", tree.keys());
    }
}

#[test]
fn all_commands_at_once_on_disk_leave_a_state_that_tells_the_truth() {
    let scene = Scene::new();
    let out = scene.dir.path().join("out");
    let clear = || {
        let _ = std::fs::remove_dir_all(&out);
        Box::new(scene.local()) as Box<dyn Storage>
    };
    at_once(&scene, clear, || tree(&out));
}

#[test]
fn all_commands_at_once_in_memory_leave_a_state_that_tells_the_truth() {
    let memory = Memory::default();
    let clear = || {
        memory.restore(&BTreeMap::new());
        Box::new(memory.clone()) as Box<dyn Storage>
    };
    at_once(&Scene::new(), clear, || objects(&memory));
}

#[test]
fn what_another_file_system_hides_is_not_missing_and_not_deleted() {
    let (scene, memory) = (Scene::new(), Memory::default());
    scene.publish("old", "d", &memory).unwrap();
    let mut there = memory.objects();
    there.remove("drop/x.txt");
    memory.restore(&there);
    for (dir, missing) in [("b", vec!["drop/x.txt"]), ("drop", vec![])] {
        let closing = memory.closing(dir);
        let repair = scene.upkeep(("d", false), &closing, |upkeep, warnings| upkeep.repair(true, warnings)).unwrap();
        assert_eq!(repair.missing.iter().map(ToString::to_string).collect::<Vec<_>>(), missing, "{dir}");
    }
    // What stands there now may be anything: its record stays.
    memory.put("drop/x.txt", b"another's");
    let pruning = prune(&scene, "d", &memory.closing("drop"), false).unwrap();
    assert_eq!((pruning.deleted.len(), pruning.failed.len()), (2, 1));
    assert_eq!(pruning.failed[0].0.as_str(), "drop/x.txt");
    assert!(memory.objects().contains_key("drop/x.txt"));
    assert!(
        State::parse(&objects(&memory)[".distributor.json"])
            .unwrap()
            .outputs
            .iter()
            .any(|r| r.path == pruning.failed[0].0)
    );
}
