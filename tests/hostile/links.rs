//! Symbolic links planted wherever a publication goes.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use crate::scene::{Files, Scene, error, files, stderr, traces};

/// Every component of the destination of the bundle at `a/b`, and every name of ours there.
const SPOTS: &[&str] = &[
    "a",
    "a/b",
    "a/b/sub",
    "a/b/sub/deep",
    "a/b/sub/deep/f",
    "a/b/f",
    "a/b/.distributor.json",
    "a/b/.distributor.lock",
    "a/b/.distributor.stage-0000000000000001",
    "a/b/.distributor.stage-.distributor.json",
    "a/b/.distributor.journal-JOURNAL.json",
    "a/b/.distributor.stage-.distributor.journal-JOURNAL.json",
];

fn old() -> Files {
    files(&[("f", "old"), ("sub/deep/f", "old"), ("sub/gone", "old"), ("sub/deep/gone/f", "old")])
}

fn new() -> Files {
    files(&[("f", "new"), ("sub/deep/f", "new"), ("sub/deep/n", "new"), ("sub/come/f", "new")])
}

/// A directory that somebody wants a publication to write to: it has all names that one writes or deletes.
fn victim(scene: &Scene) {
    let dirs = ["", "b", "sub", "deep", "b/sub/deep", "sub/deep", "sub/deep/gone", "deep/gone", "gone", "0"];
    let dirs = dirs.map(|below| scene.path("victim").join(below));
    for dir in &dirs {
        fs::create_dir_all(dir).unwrap();
    }
    for dir in &dirs {
        for name in ["f", "gone", "n", "0", "1"] {
            if !dir.join(name).exists() {
                fs::write(dir.join(name), "theirs").unwrap();
            }
        }
    }
    fs::write(scene.path("victim/.distributor.json"), "theirs").unwrap();
    fs::write(scene.path("victim/file"), "theirs").unwrap();
}

/// The journal of pipeline `p` and destination `d`.
fn named(spot: &str) -> String {
    let owner = distributor::digest::Digest::of(b"p\0d").hex()[..16].to_owned();
    spot.replace("JOURNAL", &owner)
}

/// Plants a link to `target` at `spot` before a run, and looks at what that run, and the one after it was taken away, do.
fn plant(spot: &str, target: &str, replacing: bool) {
    let what = format!("{spot} -> {target}, {}", if replacing { "replacing" } else { "new" });
    let scene = Scene::new();
    victim(&scene);
    let link = scene.path("out/site").join(named(spot));
    let aside = scene.path("aside");
    if replacing {
        scene.bundle("in/a/b", &old(), "2026-06-01T00:00:00Z");
        scene.run_well(&what);
        let _ = fs::rename(&link, &aside);
    }
    scene.bundle("in/a/b", &new(), "2026-06-02T00:00:00Z");
    fs::create_dir_all(link.parent().unwrap()).unwrap();
    symlink(scene.path(target), &link).unwrap();
    let before = traces(&scene.path("victim"));
    let output = scene.run();
    assert!(traces(&scene.path("victim")) == before, "{what}: the run led outside; {}", stderr(&output));
    let well = output.status.success();
    if well {
        scene.published("a/b", &new(), &what);
    } else {
        let (code, message) = error(&output);
        let known =
            ["unmanaged_content", "invalid_state", "not_a_regular_file", "commit_incomplete", "not_a_directory"];
        assert!(known.contains(&code.as_str()), "{what}: {code}: {message}");
        assert!(link.is_symlink(), "{what}: it is somebody else's");
        fs::remove_file(&link).unwrap();
        let _ = fs::rename(&aside, &link);
        scene.run_well(&what);
        scene.published("a/b", &new(), &what);
    }
    assert!(traces(&scene.path("victim")) == before, "{what}: the rerun led outside");
    assert!(!Path::new(&scene.path("nowhere")).exists(), "{what}: made through a dangling link");
}

#[test]
fn no_link_in_a_destination_leads_a_first_run_outside() {
    for spot in SPOTS {
        for target in ["victim", "victim/file", "nowhere"] {
            plant(spot, target, false);
        }
    }
}

#[test]
fn no_link_in_a_destination_leads_a_replacement_outside() {
    for spot in SPOTS {
        for target in ["victim", "victim/file", "nowhere"] {
            plant(spot, target, true);
        }
    }
}
