//! What a run opens, as strace sees it.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::scene::{RUN, Scene, can, files, stderr};

/// How often each last segment of a path was opened with success, directories left out.
fn opened(scene: &Scene) -> BTreeMap<String, usize> {
    let log = scene.path("calls");
    let line = ["strace", "-f", "-e", "trace=openat,openat2,open", "-o", log.to_str().unwrap(), RUN];
    let output = scene.program(&line).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let mut opened = BTreeMap::new();
    for call in fs::read_to_string(&log).unwrap().lines() {
        // Cut in two by another thread's call, a call ends on a line of its own, which names nothing.
        let failed = call.rsplit(" = ").next().is_some_and(|result| result.starts_with('-'));
        let Some(path) = call.split('"').nth(1).filter(|_| !failed && !call.contains("O_DIRECTORY")) else { continue };
        let name = Path::new(path).file_name().unwrap_or_default().to_string_lossy().into_owned();
        *opened.entry(name).or_default() += 1;
    }
    opened
}

#[test]
fn a_first_run_reads_each_file_once_and_a_repeated_one_none() {
    if !can("strace", &["strace", "-o", "/dev/null", "true"]) {
        return;
    }
    let scene = Scene::new();
    let names: Vec<String> = (0..40).map(|at| format!("file-{at}.bin")).collect();
    let mut bundle = files(&[("index.html", "<p>x"), ("sub/page.html", "<p>y")]);
    for (at, name) in names.iter().enumerate() {
        bundle.insert(format!("sub/{}/{name}", at % 3), vec![b'x'; at * 10_000]);
    }
    scene.bundle("in", &bundle, "2026-06-01T00:00:00Z");
    let files = || bundle.keys().map(|path| path.rsplit('/').next().unwrap());
    let first = opened(&scene);
    for name in files() {
        assert_eq!(first.get(name), Some(&1), "{name}: one read of each file of the source: {first:?}");
    }
    scene.published("", &bundle, "a first run");
    let again = opened(&scene);
    for name in files() {
        assert_eq!(again.get(name), None, "{name}: nothing new: {again:?}");
    }
    assert_eq!((again.get("manifest.json"), again.get(".distributor.json")), (Some(&1), Some(&1)), "{again:?}");
    assert!(!again.keys().any(|name| name.starts_with(".distributor.") && name != ".distributor.json"), "{again:?}");
}
