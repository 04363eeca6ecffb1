//! What the programs hold in memory, whatever the number and size of files: the bars of the project.
// clippy.toml lets tests unwrap, but not the helpers that they share.
#![allow(clippy::unwrap_used)]

use std::fs::{self, File};
use std::io::{BufWriter, Read, Write};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

use distributor::bundle::{Digest, FileEntry, Manifest, content_digest};
use distributor::path::RelPath;
use distributor::timestamp::Timestamp;

const MIB: u64 = 1 << 20;
const RUN: &str = env!("CARGO_BIN_EXE_distributor-run");
const VALIDATE: &str = env!("CARGO_BIN_EXE_distributor-validate");
const BUNDLE: &str = env!("CARGO_BIN_EXE_distributor-bundle");

/// The most memory that a program held until shortly before its end, in bytes: the kernel keeps the greatest value, and
/// only what is added after the last look is missed.
fn peak(dir: &Path, program: &str, arguments: &[&str]) -> u64 {
    let (most, ended, said) = watch(dir, program, arguments);
    assert!(ended.success(), "{program} {arguments:?}: {said}");
    most
}

/// The same of a program that may fail, with how it ended and its standard error.
fn watch(dir: &Path, program: &str, arguments: &[&str]) -> (u64, ExitStatus, String) {
    let mut command = Command::new(program);
    command.current_dir(dir).args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let status = format!("/proc/{}/status", child.id());
    let mut most = 0;
    let ended = loop {
        if let Ok(Some(ended)) = child.try_wait() {
            break ended;
        }
        let text = fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB"));
        most = most.max(line.map_or(0, |kib| kib.trim().parse::<u64>().unwrap() * 1024));
        std::thread::sleep(Duration::from_millis(1));
    };
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert!(most > 0, "{program} was never seen");
    (most, ended, said)
}

/// A directory in memory where there is room for it: this is no test of the disk.
fn directory() -> tempfile::TempDir {
    let room = rustix::fs::statvfs("/dev/shm").is_ok_and(|fs| fs.f_bavail * fs.f_frsize > 2 << 30);
    let memory = room.then(|| tempfile::tempdir_in("/dev/shm").ok()).flatten();
    memory.unwrap_or_else(|| tempfile::tempdir().unwrap())
}

fn scene() -> tempfile::TempDir {
    let dir = directory();
    let text = "pipelines:\n  - id: reports\n    source: {backend: local, path: in}\n    destinations:\n      \
                - {id: archive, backend: local, path: out}\n";
    fs::write(dir.path().join("site.yml"), text).unwrap();
    fs::create_dir(dir.path().join("in")).unwrap();
    dir
}

fn manifest(dir: &Path, files: Vec<FileEntry>, created: &str) {
    let created = Timestamp::parse(created).unwrap();
    let manifest = Manifest { schema_version: 1, id: "x-1".to_owned(), digest: content_digest(&files), created, files };
    // Without white space, so that it is no larger than a manifest may be.
    fs::write(dir.join("in/manifest.json"), serde_json::to_vec(&manifest).unwrap()).unwrap();
}

#[track_caller]
fn at_most(limit: u64, measured: &[(&str, u64)]) {
    for (what, peak) in measured {
        assert!(*peak <= limit, "{what} held {} MiB, more than {} MiB", peak / MIB, limit / MIB);
    }
}

#[test]
fn a_hundred_thousand_files_take_192_mib_at_most() {
    let scene = scene();
    let dir = scene.path();
    let mut files = Vec::new();
    for n in 0..100_000 {
        // All of them are one file to the disk: what they hold does not matter here.
        let path = format!("d{:03}/file-{n:05}.txt", n / 500);
        if n % 500 == 0 {
            fs::create_dir(dir.join("in").join(&path[..4])).unwrap();
        }
        let first = dir.join("in").join(format!("{}/file-{:05}.txt", &path[..4], n - n % 500));
        if n % 500 == 0 {
            fs::write(&first, "x").unwrap();
        } else {
            fs::hard_link(&first, dir.join("in").join(&path)).unwrap();
        }
        files.push(FileEntry { path: RelPath::parse(&path).unwrap(), sha256: Digest::of(b"x"), size: 1 });
    }
    manifest(dir, files.clone(), "2026-06-04T11:55:00Z");
    let mut measured = vec![
        ("validate", peak(dir, VALIDATE, &["in"])),
        ("run", peak(dir, RUN, &["-c", "site.yml", "--format", "json"])),
        ("run that skips", peak(dir, RUN, &["-c", "site.yml"])),
    ];
    manifest(dir, files, "2026-06-04T11:56:00Z");
    measured.push(("run that replaces", peak(dir, RUN, &["-c", "site.yml"])));
    at_most(192 * MIB, &measured);
}

#[test]
fn a_large_file_takes_64_mib_at_most() {
    const SIZE: u64 = 256 * MIB;
    let scene = scene();
    let dir = scene.path();
    let path = dir.join("in/big");
    File::create(&path).unwrap().set_len(SIZE).unwrap();
    let measured = [
        ("bundle", peak(dir, BUNDLE, &["in", "--id", "x-1"])),
        ("validate", peak(dir, VALIDATE, &["in"])),
        ("dry run", peak(dir, RUN, &["-c", "site.yml", "--dry-run"])),
        ("run", peak(dir, RUN, &["-c", "site.yml"])),
    ];
    at_most(64 * MIB, &measured);
    assert_eq!(fs::metadata(dir.join("out/big")).unwrap().len(), SIZE);
}

/// Writes a shared state in which another owner has so many outputs; how large it is.
fn shared_state(dir: &Path, outputs: usize) -> u64 {
    let files = vec![FileEntry { path: RelPath::parse("x").unwrap(), sha256: Digest::of(b"x"), size: 1 }];
    let (sha256, digest, time) = (Digest::of(b"x"), content_digest(&files), "2026-06-04T11:55:00Z");
    fs::create_dir_all(dir.join("out")).unwrap();
    let mut file = BufWriter::new(File::create(dir.join("out/.distributor.json")).unwrap());
    let manifest = format!(
        r#"{{"schema_version":1,"id":"y-1","digest":"{digest}","created":"{time}","files":[{{"path":"x","sha256":"{sha256}","size":1}}]}}"#
    );
    write!(
        file,
        r#"{{"schema_version":3,"created_at":"{time}","updated_at":"{time}","state":{{"mode":"shared_root"}},"owners":[{{"pipeline_id":"other","destination_id":"www","reconciliation":{{"mode":"merge"}},"source":{{"manifest":{manifest}}}}}],"outputs":["#
    )
    .unwrap();
    let rest = format!(
        r#"","kind":"source","source_path":"x","sha256":"{sha256}","size":1,"pipeline_id":"other","destination_id":"www","source_id":"y-1","source_digest":"{digest}","source_created":"{time}","created_at":"{time}","updated_at":"{time}"}}"#
    );
    for n in 0..outputs {
        let comma = if n == 0 { "" } else { "," };
        write!(file, r#"{comma}{{"path":"{n:07}{rest}"#).unwrap();
    }
    write!(file, "]}}").unwrap();
    file.flush().unwrap();
    fs::metadata(dir.join("out/.distributor.json")).unwrap().len()
}

#[test]
fn a_state_that_is_too_large_is_neither_read_nor_written() {
    let scene = scene();
    let dir = scene.path();
    let site = fs::read_to_string(dir.join("site.yml")).unwrap();
    fs::write(dir.join("site.yml"), site.replace("path: out", "path: out, state: {mode: shared_root}")).unwrap();
    fs::write(dir.join("in/x"), "x").unwrap();
    let file = FileEntry { path: RelPath::parse("x").unwrap(), sha256: Digest::of(b"x"), size: 1 };
    manifest(dir, vec![file], "2026-06-04T11:55:00Z");

    assert!(shared_state(dir, 1_000_000) > 128 * MIB);
    for arguments in [&["-c", "site.yml", "--dry-run"][..], &["-c", "site.yml"][..]] {
        let (peak, ended, said) = watch(dir, RUN, arguments);
        assert_eq!(ended.code(), Some(1), "{said}");
        assert!(said.contains("larger than 134217728 bytes") && said.contains("[invalid_state]"), "{said}");
        at_most(160 * MIB, &[("run", peak)]);
    }

    // The largest one that can be read: with one output more it could not be read any more.
    let least = shared_state(dir, 1);
    let each = shared_state(dir, 2) - least;
    let outputs = usize::try_from((128 * MIB - least) / each).unwrap() + 1;
    let bytes = shared_state(dir, outputs);
    assert!(bytes <= 128 * MIB);
    for arguments in [&["-c", "site.yml", "--dry-run"][..], &["-c", "site.yml"][..]] {
        let (peak, ended, said) = watch(dir, RUN, arguments);
        assert_eq!(ended.code(), Some(1), "{said}");
        assert!(said.contains("than 134217728 bytes: 2 owners") && said.contains("[unsupported]"), "{said}");
        at_most(448 * MIB, &[("run", peak)]);
    }
    assert_eq!(fs::metadata(dir.join("out/.distributor.json")).unwrap().len(), bytes);
    assert!(!dir.join("out/x").exists());
}
