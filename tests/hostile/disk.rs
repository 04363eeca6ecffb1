//! Disks that are full, read-only, or closed to this user.

use std::collections::BTreeSet;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

use distributor::error::Code;
use distributor::host::Cancel;
use distributor::source::{self, Checked, Staging};
use distributor::storage::{Local, Modes};

use crate::scene::{Files, RUN, Scene, can, error, report, same, stderr, tree};

/// A small file system in memory at a scene's `out`, for as long as this lives.
struct Mount(PathBuf);

impl Mount {
    fn new(scene: &Scene, options: &str) -> Mount {
        let at = scene.path("out");
        fs::create_dir_all(&at).unwrap();
        let mount = Mount(at);
        assert!(mount.call(options));
        mount
    }

    fn call(&self, options: &str) -> bool {
        let line = ["-t", "tmpfs", "-o", options, "tmpfs"];
        Command::new("mount").args(line).arg(&self.0).output().unwrap().status.success()
    }

    /// Changes its options; `false` where less was asked for than is in use.
    fn again(&self, options: &str) -> bool {
        self.call(&format!("remount,{options}"))
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

fn can_mount() -> bool {
    let scratch = tempfile::tempdir().unwrap();
    let at = scratch.path().to_str().unwrap();
    let script = "mount -t tmpfs -o size=1m tmpfs \"$0\" && umount \"$0\"";
    can("root, and to mount", &["sh", "-c", script, at])
}

/// Thirty files of one page each; the newer generation has directories of its own.
fn generation(name: &str) -> Files {
    let page = |at: usize| format!("{name} {at:3} ").repeat(1000).as_bytes()[..4096].to_vec();
    let mut files: Files = (0..24).map(|at| (format!("d{}/f{at}", at % 3), page(at))).collect();
    files.extend((0..6).map(|at| (format!("{name}-{at}/f"), page(at))));
    files
}

fn outputs(scene: &Scene) -> Files {
    tree(&scene.path("out/site")).into_iter().filter(|(path, _)| !path.starts_with(".distributor.")).collect()
}

/// What a run was at when the space was used up.
fn phase(message: &str) -> &'static str {
    match message {
        _ if message.contains(".distributor.lock") => "lock",
        _ if message.contains(".distributor.journal-") => "journal",
        _ if message.contains(".distributor.stage-") => "stage",
        _ if message.contains(".distributor.json") => "state",
        _ if message.contains("/f") || message.contains("site/state") => "output",
        _ => "directory",
    }
}

/// A run on a full disk, and the next one once there is space.
fn fill(options: &str, replacing: bool, phases: &mut BTreeSet<&'static str>) {
    let scene = Scene::new();
    let mount = Mount::new(&scene, "size=8m");
    let (old, new) = (generation("old"), generation("new"));
    let mut before = Files::new();
    if replacing {
        scene.bundle("in", &old, "2026-06-01T00:00:00Z");
        scene.run_well(options);
        before = old;
    }
    scene.bundle("in", &new, "2026-06-02T00:00:00Z");
    if !mount.again(options) {
        return;
    }
    for attempt in 0..2 {
        let what = format!("{options}, replacing: {replacing}, attempt {attempt}");
        let output = scene.run();
        if output.status.success() {
            scene.published("", &new, &what);
            return;
        }
        let (code, message) = error(&output);
        assert_eq!(code, "no_space", "{what}: {message}");
        phases.insert(phase(&message));
        let there = outputs(&scene);
        let committing = tree(&scene.path("out/site")).keys().any(|path| path.starts_with(".distributor.journal-"));
        if committing {
            for (path, bytes) in there.iter().filter(|(path, _)| !path.ends_with('/')) {
                assert!([before.get(path), new.get(path)].contains(&Some(bytes)), "{what}: {path}");
            }
        } else {
            same(&there, &before, &format!("{what}: before the commit point all stays as it was: {message}"));
        }
    }
    assert!(mount.again("size=8m,nr_inodes=10000"));
    scene.run_well(options);
    scene.published("", &new, options);
    assert_eq!(scene.run_well(options), "skip_same");
}

#[test]
fn a_disk_that_is_full_loses_nothing() {
    if !can_mount() {
        return;
    }
    let mut phases = BTreeSet::new();
    // In pages, from nothing to all that is needed: 30 outputs, and what is ours.
    for pages in 1..48 {
        fill(&format!("size={}k", pages * 4), false, &mut phases);
    }
    for pages in 30..80 {
        fill(&format!("size={}k", pages * 4), true, &mut phases);
    }
    assert_eq!(phases.into_iter().collect::<Vec<_>>(), ["journal", "lock", "output", "state"]);
}

#[test]
fn a_file_system_without_free_inodes_loses_nothing() {
    if !can_mount() {
        return;
    }
    let mut phases = BTreeSet::new();
    for inodes in 2..60 {
        fill(&format!("nr_inodes={inodes}"), false, &mut phases);
    }
    for inodes in 44..90 {
        fill(&format!("nr_inodes={inodes}"), true, &mut phases);
    }
    assert_eq!(phases.into_iter().collect::<Vec<_>>(), ["directory", "journal", "lock", "output", "stage", "state"]);
}

#[test]
fn a_staging_directory_that_is_full_is_told_as_such_and_left_empty() {
    if !can_mount() {
        return;
    }
    let scene = Scene::new();
    let mount = Mount::new(&scene, "size=8m");
    let files = generation("new");
    scene.bundle("in", &files, "2026-06-01T00:00:00Z");
    let storage = Local::new(scene.path("in"), Modes::default());
    let (manifest, cancel) = (distributor::bundle::load(&storage).unwrap(), Cancel::default());
    let mut full = 0;
    for (options, most) in [("size", 48), ("nr_inodes", 60)] {
        for at in 2..most {
            let unit = if options == "size" { 4096 } else { 1 };
            assert!(mount.again(&format!("{options}={}", at * unit)));
            let (staging, checked) = (Staging::new(Some(&scene.path("out"))), Checked::new(1));
            let fetched = source::Files::new(&storage, &manifest, &checked, Some(&staging), &cancel).ready();
            if let Err(error) = fetched {
                assert_eq!(error.code, Code::NoSpace, "{options} {at}: {error:?}");
                assert!(error.message.contains(scene.path("out").to_str().unwrap()), "{error}");
                assert!(error.hint.unwrap().contains("staging_directory"));
                full += 1;
            }
            drop(staging);
            assert!(tree(&scene.path("out")).is_empty(), "{options} {at}");
        }
        assert!(mount.again("size=8m,nr_inodes=10000"));
    }
    assert!(full > 40, "{full}");
}

#[test]
fn a_file_system_that_is_read_only_is_told_as_such() {
    if !can_mount() {
        return;
    }
    let scene = Scene::new();
    let mount = Mount::new(&scene, "size=8m,ro");
    let (old, new) = (generation("old"), generation("new"));
    scene.bundle("in", &old, "2026-06-01T00:00:00Z");
    assert_eq!(error(&scene.run()).0, "read_only");
    assert!(mount.again("rw"));
    scene.run_well("rw");
    assert!(mount.again("ro"));
    assert_eq!(scene.run_well("nothing new"), "skip_same");
    scene.bundle("in", &new, "2026-06-02T00:00:00Z");
    assert_eq!(error(&scene.run()).0, "read_only");
    scene.published("", &old, "as it was");
    assert!(mount.again("rw"));
    scene.run_well("rw again");
    scene.published("", &new, "rw again");
}

#[test]
fn a_destination_of_another_user_is_left_as_it_is() {
    if !rustix::process::geteuid().is_root() {
        can("root, to be another user", &["false"]);
        return;
    }
    let nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];
    if !can("setpriv", &[&nobody[..], &["true"]].concat()) {
        return;
    }
    let scene = Scene::new();
    let (old, new) = (generation("old"), generation("new"));
    scene.bundle("in", &old, "2026-06-01T00:00:00Z");
    scene.run_well("root");
    fs::set_permissions(scene.path(""), Permissions::from_mode(0o755)).unwrap();
    // Where the build directory is, others may not look.
    fs::copy(RUN, scene.path("distributor-run")).unwrap();
    let run = || scene.program(&[&nobody[..], &["./distributor-run"]].concat()).output().unwrap();
    let output = run();
    assert_eq!(report(&output)["pipelines"][0]["destinations"][0]["action"], "skip_same", "{}", stderr(&output));
    scene.bundle("in", &new, "2026-06-02T00:00:00Z");
    let (code, message) = error(&run());
    assert_eq!(code, "permission_denied", "{message}");
    scene.published("", &old, "as it was");
    // One directory that is not this user's is found before anything has changed.
    assert!(Command::new("chown").args(["-R", "65534:65534"]).arg(scene.path("out/site")).status().unwrap().success());
    assert!(Command::new("chown").arg("0:0").arg(scene.path("out/site/d1")).status().unwrap().success());
    let (code, message) = error(&run());
    assert!(code == "permission_denied" && message.contains("d1"), "{code}: {message}");
    scene.published("", &old, "still as it was");
    // A place of its own, made below what it may not write to.
    fs::remove_dir_all(scene.path("out/site")).unwrap();
    assert_eq!(error(&run()).0, "permission_denied");
    assert!(!scene.path("out/site").exists());
}

#[test]
fn what_is_mounted_below_is_neither_written_nor_taken_away() {
    if !can_mount() {
        return;
    }
    let scene = Scene::new();
    let new = generation("new");
    scene.bundle("in", &new, "2026-06-02T00:00:00Z");
    let precious = Files::from([("keep".to_owned(), b"precious".to_vec())]);
    fs::create_dir(scene.path("precious")).unwrap();
    fs::write(scene.path("precious/keep"), "precious").unwrap();
    let at = scene.path("out/site/d1");
    fs::create_dir_all(&at).unwrap();
    // The same file system, so that only the mount tells it from a directory of the destination.
    assert!(Command::new("mount").arg("--bind").arg(scene.path("precious")).arg(&at).status().unwrap().success());
    let mount = Mount(at);
    for force in [&[][..], &["--force"]] {
        let output = scene.command().args(force).output().unwrap();
        assert_eq!(error(&output).0, "unmanaged_content", "{force:?}: {}", stderr(&output));
        same(&tree(&scene.path("precious")), &precious, "what is mounted");
        assert_eq!(fs::read_dir(scene.path("out/site")).unwrap().count(), 1, "{force:?}");
    }
    drop(mount);
    scene.run_well("without it");
}
