//! A program that takes its time, so that something can happen to it meanwhile.

use std::fs::{self, File};
use std::path::Path;
use std::process::Child;
use std::time::{Duration, Instant};

use distributor::bundle::{Digest, FileEntry, Manifest, content_digest};
use distributor::path::RelPath;
use distributor::timestamp::Timestamp;

use crate::scene::Scene;

/// A bundle that takes a minute to read, of zeroes that lie nowhere. Its digest is wrong, which nobody gets to see.
pub(crate) fn slow_bundle(scene: &Scene) {
    const SIZE: u64 = 64 << 30;
    File::create(scene.path("in/big")).unwrap().set_len(SIZE).unwrap();
    let file = FileEntry { path: RelPath::parse("big").unwrap(), sha256: Digest::of(b""), size: SIZE };
    let (digest, created) = (content_digest(std::slice::from_ref(&file)), "9999-01-01T00:00:00Z");
    let created = Timestamp::parse(created).unwrap();
    let manifest = Manifest { schema_version: 1, id: "x-1".to_owned(), digest, created, files: vec![file] };
    fs::write(scene.path("in/manifest.json"), manifest.to_json()).unwrap();
}

/// Waits until the process has a file open whose path holds `text`.
pub(crate) fn wait_for_open(child: &mut Child, text: &str) {
    wait_for(child, text, |_| true);
}

/// Waits until the process has read some of such a file.
pub(crate) fn wait_for_reading(child: &mut Child, text: &str) {
    wait_for(child, text, |info| info.lines().next().is_some_and(|position| !position.ends_with("\t0")));
}

/// Waits for a descriptor of that kind of which the system says what `is_it` waits for.
fn wait_for(child: &mut Child, text: &str, is_it: impl Fn(&str) -> bool) {
    let begun = Instant::now();
    let process = Path::new("/proc").join(child.id().to_string());
    while begun.elapsed() < Duration::from_secs(20) {
        for entry in fs::read_dir(process.join("fd")).into_iter().flatten().flatten() {
            let info = fs::read_to_string(process.join("fdinfo").join(entry.file_name())).unwrap_or_default();
            let target = fs::read_link(entry.path()).unwrap_or_default();
            if target.to_string_lossy().contains(text) && is_it(&info) {
                return;
            }
        }
        assert!(child.try_wait().unwrap().is_none(), "it ended too early");
        std::thread::sleep(Duration::from_millis(1));
    }
    panic!("it never opened {text}");
}
