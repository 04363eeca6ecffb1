//! kill -9 at any moment, and two processes at once.

use std::fs;
use std::hash::{BuildHasher, RandomState};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::scene::{Files, Scene, report, same, stderr, tree};

const ROUNDS: u32 = 30;

/// Files in directories of which some only the one generation has.
fn generation(name: &str, many: usize) -> Files {
    let text = |at: usize| format!("{name} {at}\n").repeat(at % 40);
    let mut files: Files = (0..many).map(|at| (format!("d{}/f{at}.txt", at % 20), text(at).into_bytes())).collect();
    for at in 0..many / 20 {
        files.insert(format!("only-{name}-{}/f{at}.txt", at % 7), name.as_bytes().to_vec());
    }
    files.insert("index.html".to_owned(), name.as_bytes().to_vec());
    files
}

/// A destination with the old generation, kept in `saved`, and the new one as source.
fn prepare(scene: &Scene, many: usize) -> (Files, Files) {
    let (old, new) = (generation("old", many), generation("new", many));
    scene.bundle("in", &old, "2026-06-01T00:00:00Z");
    scene.run_well("the old one");
    fs::rename(scene.path("out"), scene.path("saved")).unwrap();
    scene.bundle("in", &new, "2026-06-02T00:00:00Z");
    (old, new)
}

/// The destination as it was before anything, or before a replacement.
fn reset(scene: &Scene, replacing: bool) {
    let _ = fs::remove_dir_all(scene.path("out"));
    if replacing {
        let status = Command::new("cp").arg("-a").args([scene.path("saved"), scene.path("out")]).status().unwrap();
        assert!(status.success());
    }
}

#[test]
fn after_kill_9_the_next_run_makes_all_well() {
    let scene = Scene::new();
    let (old, new) = prepare(&scene, 2000);
    let mut killed = 0;
    let mut finished = 0;
    for round in 0..ROUNDS {
        let replacing = round % 2 == 1;
        // How long a whole run takes here, to kill it anywhere on its way.
        reset(&scene, replacing);
        let begun = Instant::now();
        let mut child = scene.command().stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let after = Duration::from_micros(1000 + RandomState::new().hash_one(round) % longest(round));
        std::thread::sleep(after.saturating_sub(begun.elapsed()));
        child.kill().unwrap();
        killed += u32::from(child.wait().unwrap().code().is_none());
        let what = format!("round {round}, killed after {after:?}");
        let before = if replacing { &old } else { &Files::new() };
        let left: Files = tree(&scene.path("out/site")).into_iter().filter(|(path, _)| !is_own(path)).collect();
        for (path, bytes) in left.iter().filter(|(path, _)| !path.ends_with('/')) {
            let whole = [before.get(path), new.get(path)].contains(&Some(bytes));
            assert!(whole, "{what}: {path} is half a file, or nobody's");
        }
        if replacing && scene.path("out/site").join(".distributor.json").exists() && left.len() < new.len() / 2 {
            panic!("{what}: most of the old publication is gone");
        }
        finished += u32::from(same_files(&left, &new));
        scene.run_well(&what);
        let mut there = tree(&scene.path("out"));
        assert!(there.remove("site/.distributor.json").is_some(), "{what}");
        let there = there.into_iter().map(|(path, bytes)| (path["site/".len()..].to_owned(), bytes)).collect();
        same(&there, &new, &what);
        assert_eq!(scene.run_well(&what), "skip_same", "{what}");
    }
    assert!(killed > ROUNDS / 3, "{killed} of {ROUNDS} were killed on their way, {finished} had all outputs by then");
}

/// Microseconds: every third round over the whole of a run, the others early.
fn longest(round: u32) -> u64 {
    if round % 3 == 2 { 400_000 } else { 59_000 }
}

fn same_files(left: &Files, new: &Files) -> bool {
    left.len() == new.len() && left.keys().eq(new.keys())
}

fn is_own(path: &str) -> bool {
    path.starts_with(".distributor.")
}

#[test]
fn two_processes_at_once_both_end_well() {
    let scene = Scene::new();
    let (_, new) = prepare(&scene, 100);
    for round in 0..20 {
        reset(&scene, round % 2 == 1);
        let mut spawned = Vec::new();
        for _ in 0..2 {
            spawned.push(scene.command().stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap());
        }
        let mut actions = Vec::new();
        for child in spawned {
            let output = child.wait_with_output().unwrap();
            assert!(output.status.success(), "round {round}: {} {}", report(&output), stderr(&output));
            let report = report(&output);
            actions.push(report["pipelines"][0]["destinations"][0]["action"].as_str().unwrap().to_owned());
        }
        actions.sort();
        let published = if round % 2 == 1 { "replace_older" } else { "publish_new" };
        assert_eq!(actions, [published, "skip_same"], "round {round}: one publishes, the other finds it done");
        scene.published("", &new, &format!("round {round}"));
    }
}
