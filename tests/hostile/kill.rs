//! kill -9 at any moment, and two processes at once.

use std::fs;
use std::hash::{BuildHasher, RandomState};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use distributor::names::{JOURNAL_PREFIX, STATE};

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
    let mut midway = 0;
    let state_before = fs::read(scene.path("saved/site").join(STATE)).ok();
    for round in 0..ROUNDS {
        let replacing = round % 2 == 1;
        reset(&scene, replacing);
        let begun = Instant::now();
        let mut child = scene.command().stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        // Early, or shortly after the commit point.
        let late = round % 3 == 2;
        while late && !is_committing(&scene) && child.try_wait().unwrap().is_none() {
            std::thread::sleep(Duration::from_millis(1));
        }
        let random = Duration::from_micros(RandomState::new().hash_one(round) % if late { 20_000 } else { 59_000 });
        std::thread::sleep(random + Duration::from_millis(u64::from(!late)));
        let after = begun.elapsed();
        child.kill().unwrap();
        killed += u32::from(child.wait().unwrap().code().is_none());
        let what = format!("round {round}, killed after {after:?}");
        let before = if replacing { &old } else { &Files::new() };
        let (own, left): (Files, Files) =
            tree(&scene.path("out/site")).into_iter().partition(|(path, _)| path.starts_with(".distributor."));
        for (path, bytes) in left.iter().filter(|(path, _)| !path.ends_with('/')) {
            let whole = [before.get(path), new.get(path)].contains(&Some(bytes));
            assert!(whole, "{what}: {path} is half a file, or nobody's");
        }
        let committing = is_committing(&scene);
        let state = own.get(STATE);
        if !committing && state == state_before.as_ref().filter(|_| replacing) {
            same(&left, before, &format!("{what}: before the commit point all stays as it was"));
        } else if state.is_some() && state != state_before.as_ref() {
            same(&left, &new, &format!("{what}: the new state stands"));
        }
        midway += u32::from(committing);
        scene.run_well(&what);
        let mut there = tree(&scene.path("out"));
        assert!(there.remove("site/.distributor.json").is_some(), "{what}");
        let there = there.into_iter().map(|(path, bytes)| (path["site/".len()..].to_owned(), bytes)).collect();
        same(&there, &new, &what);
        assert_eq!(scene.run_well(&what), "skip_same", "{what}");
    }
    assert!(
        killed > ROUNDS / 3 && midway > 0,
        "{killed} of {ROUNDS} were killed on their way, {midway} after the commit point"
    );
}

/// Whether a publication is past its commit point and not yet settled.
fn is_committing(scene: &Scene) -> bool {
    let Ok(entries) = fs::read_dir(scene.path("out/site")) else { return false };
    let journals = entries.flatten().filter(|entry| entry.file_name().to_string_lossy().starts_with(JOURNAL_PREFIX));
    journals.into_iter().any(|entry| fs::read(entry.path()).is_ok_and(|bytes| has(&bytes, b"committing")))
}

fn has(bytes: &[u8], text: &[u8]) -> bool {
    bytes.windows(text.len()).any(|window| window == text)
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
