//! The programs as processes: signals, streams, statuses, permissions.
// clippy.toml lets tests unwrap, but not the helpers that they share.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use distributor::bundle::{Digest, FileEntry, Manifest, content_digest};
use distributor::path::RelPath;
use distributor::timestamp::Timestamp;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

const RUN: &str = env!("CARGO_BIN_EXE_distributor-run");
const VALIDATE: &str = env!("CARGO_BIN_EXE_distributor-validate");
const INSPECT: &str = env!("CARGO_BIN_EXE_distributor-inspect");
const BUNDLE: &str = env!("CARGO_BIN_EXE_distributor-bundle");
const DISTRIBUTOR: &str = env!("CARGO_BIN_EXE_distributor");

/// A directory with a source `in`, a destination `out` and a configuration.
struct Scene {
    dir: tempfile::TempDir,
}

impl Scene {
    fn new() -> Scene {
        let dir = tempfile::tempdir().unwrap();
        let text = "pipelines:\n  - id: reports\n    source: {backend: local, path: in}\n    destinations:\n      \
                    - {id: archive, backend: local, path: out, file_mode: \"0664\", directory_mode: \"0775\"}\n";
        fs::write(dir.path().join("site.yml"), text).unwrap();
        fs::create_dir(dir.path().join("in")).unwrap();
        Scene { dir }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn write(&self, name: &str, text: &str) -> &Scene {
        fs::create_dir_all(self.path(name).parent().unwrap()).unwrap();
        fs::write(self.path(name), text).unwrap();
        self
    }

    fn command(&self, program: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.current_dir(self.dir.path()).args(arguments).stdin(Stdio::null()).env_remove("DISTRIBUTOR_CONFIG");
        command
    }

    fn output(&self, program: &str, arguments: &[&str]) -> Output {
        self.command(program, arguments).output().unwrap()
    }

    fn bundle(&self, dir: &str) -> &Scene {
        let output = self.output(BUNDLE, &[dir, "--id", "x-1", "--force"]);
        assert!(output.status.success(), "{}", stderr(&output));
        self
    }

    fn run(&self) -> Output {
        self.output(RUN, &["-c", "site.yml"])
    }
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", stderr(output)))
}

/// Every path below `dir` with its mode, inode, size and modification time.
fn snapshot(dir: &Path) -> BTreeMap<PathBuf, (u32, u64, u64, i64, i64)> {
    let mut seen = BTreeMap::new();
    let mut pending = vec![dir.to_owned()];
    while let Some(path) = pending.pop() {
        let meta = fs::symlink_metadata(&path).unwrap();
        if meta.is_dir() {
            pending.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        }
        // The directory's own time tells that a stage came and went, which nobody minds.
        let time = if meta.is_dir() { (0, 0) } else { (meta.mtime(), meta.mtime_nsec()) };
        let size = if meta.is_dir() { 0 } else { meta.size() };
        seen.insert(path, (meta.mode(), meta.ino(), size, time.0, time.1));
    }
    seen
}

/// A bundle that takes a minute to read, of zeroes that lie nowhere. Its digest is wrong, which nobody gets to see.
fn slow_bundle(scene: &Scene) {
    const SIZE: u64 = 64 << 30;
    File::create(scene.path("in/big")).unwrap().set_len(SIZE).unwrap();
    let file = FileEntry { path: RelPath::parse("big").unwrap(), sha256: Digest::of(b""), size: SIZE };
    let (digest, created) = (content_digest(std::slice::from_ref(&file)), "9999-01-01T00:00:00Z");
    let created = Timestamp::parse(created).unwrap();
    let manifest = Manifest { schema_version: 1, id: "x-1".to_owned(), digest, created, files: vec![file] };
    fs::write(scene.path("in/manifest.json"), manifest.to_json()).unwrap();
}

/// Waits until the process has a file open whose path holds `text`.
fn wait_for_open(child: &mut Child, text: &str) {
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(20) {
        let open = fs::read_dir(format!("/proc/{}/fd", child.id())).into_iter().flatten().flatten();
        if open.flat_map(|entry| fs::read_link(entry.path())).any(|target| target.to_string_lossy().contains(text)) {
            return;
        }
        assert!(child.try_wait().unwrap().is_none(), "it ended before the signal came");
        std::thread::sleep(Duration::from_millis(1));
    }
    panic!("it never opened {text}");
}

/// Runs a program, sends it `signal` while it has a file open whose path holds `open`, and waits for its end.
/// Who started the tests may have told them to ignore signals, as a shell does with what it puts in the background; the
/// program is to have them all the same.
fn interrupted(command: &Command, open: &str, signal: Signal) -> Output {
    with_signals("--default-signal=INT,TERM", command, open, signal)
}

fn with_signals(how: &str, command: &Command, open: &str, signal: Signal) -> Output {
    let mut started = Command::new("env");
    started.arg(how).arg(command.get_program()).args(command.get_args()).stdin(Stdio::null());
    started.current_dir(command.get_current_dir().unwrap()).env_remove("DISTRIBUTOR_CONFIG");
    let mut child = started.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait_for_open(&mut child, open);
    kill_process(Pid::from_child(&child), signal).unwrap();
    let begun = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if begun.elapsed() > Duration::from_secs(10) {
            child.kill().unwrap();
            panic!("it goes on after the signal: {:?}", child.wait_with_output());
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    child.wait_with_output().unwrap()
}

#[test]
fn a_signal_that_is_ignored_from_the_start_stays_ignored() {
    let scene = Scene::new();
    scene.write("in/report.md", "old");
    fs::File::create(scene.path("in/big")).unwrap().set_len(200 << 20).unwrap();
    let bundle = scene.command(BUNDLE, &["in", "--id", "x-1"]);
    let output = with_signals("--ignore-signal=INT", &bundle, "/in/big", Signal::INT);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(scene.path("in/manifest.json").exists());
}

#[test]
fn a_signal_during_a_run_leaves_everything_as_it_was() {
    let scene = Scene::new();
    scene.write("in/report.md", "old").bundle("in");
    assert!(scene.run().status.success());
    slow_bundle(&scene);
    let before = snapshot(scene.dir.path());
    for (signal, status) in [(Signal::TERM, 143), (Signal::INT, 130)] {
        let output =
            interrupted(&scene.command(RUN, &["-c", "site.yml", "--format", "json"]), ".distributor.stage-", signal);
        assert_eq!(output.status.code(), Some(status), "{}", stderr(&output));
        assert_eq!(json(&output)["status"], "failure");
        assert_eq!(json(&output)["pipelines"][0]["destinations"][0]["error"]["code"], "interrupted");
        assert!(stderr(&output).contains("[interrupted]"), "{}", stderr(&output));
        assert_eq!(snapshot(scene.dir.path()), before);
    }
    // What comes after it finds nothing in its way.
    fs::remove_file(scene.path("in/big")).unwrap();
    let output = scene.write("in/report.md", "new").bundle("in").run();
    assert!(output.status.success() && stdout(&output).starts_with("replace_older"), "{}", stderr(&output));
}

#[test]
fn a_signal_during_a_check_a_dry_run_or_a_bundling_ends_it() {
    let scene = Scene::new();
    slow_bundle(&scene);
    let before = snapshot(scene.dir.path());
    for (program, arguments) in
        [(VALIDATE, &["in"][..]), (RUN, &["-c", "site.yml", "--dry-run"]), (BUNDLE, &["in", "--id", "x-2", "--force"])]
    {
        let output = interrupted(&scene.command(program, arguments), "/in/big", Signal::TERM);
        assert_eq!(output.status.code(), Some(143), "{program}: {}", stderr(&output));
        let output = interrupted(&scene.command(program, arguments), "/in/big", Signal::INT);
        assert_eq!(output.status.code(), Some(130), "{program}: {}", stderr(&output));
        assert_eq!(snapshot(scene.dir.path()), before, "{program}");
    }
}

/// A bundle whose description is larger than a pipe.
fn wordy_bundle(scene: &Scene) {
    for n in 0..2000 {
        scene.write(&format!("in/{n:0200}"), "");
    }
    scene.bundle("in");
}

#[test]
fn a_closed_pipe_ends_it_quietly() {
    let scene = Scene::new();
    wordy_bundle(&scene);
    for format in ["text", "json"] {
        let mut command = scene.command(INSPECT, &["in", "--format", format]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut head = BufReader::with_capacity(16, child.stdout.take().unwrap());
        let mut start = Vec::new();
        head.read_until(b' ', &mut start).unwrap_or_default();
        drop(head);
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", output.status);
        assert_eq!(stderr(&output), "");
    }
}

#[test]
fn a_full_standard_output_is_a_failure_that_is_told() {
    let scene = Scene::new();
    scene.write("in/report.md", "x").bundle("in");
    for (program, arguments) in [
        (RUN, &["-c", "site.yml"][..]),
        (RUN, &["-c", "site.yml", "--format", "json"]),
        (RUN, &["--help"]),
        (VALIDATE, &["in"]),
        (VALIDATE, &["-c", "site.yml", "--format", "json"]),
        (INSPECT, &["in"]),
        (BUNDLE, &["in", "--id", "x-1", "--force"]),
        (DISTRIBUTOR, &[]),
        (DISTRIBUTOR, &["--version"]),
    ] {
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let output = scene.command(program, arguments).stdout(full).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{program} {arguments:?}");
        let said = stderr(&output);
        assert!(said.contains("standard output: no space left on device"), "{program} {arguments:?}: {said}");
        assert_eq!(said.lines().count(), 1, "{said}");
    }
}

#[test]
fn closed_streams_never_let_a_report_slip_into_a_file() {
    for closed in [">&-", "2>&-", "<&-", "<&- >&- 2>&-"] {
        let scene = Scene::new();
        scene.write("in/report.md", "hello").write("in/unlisted", "").bundle("in").write("in/more", "unlisted");
        let line = format!("exec '{RUN}' -c site.yml {closed}");
        let output = scene.output("sh", &["-c", &line]);
        assert!(output.status.success(), "{closed}: {} {}", output.status, stderr(&output));
        assert_eq!(fs::read_to_string(scene.path("out/report.md")).unwrap(), "hello", "{closed}");
        let state = fs::read(scene.path("out/.distributor.json")).unwrap();
        assert!(serde_json::from_slice::<Value>(&state).is_ok(), "{closed}");
        assert!(scene.run().status.success(), "{closed}");
    }
}

#[test]
fn distributor_becomes_the_program_beside_it() {
    let scene = Scene::new();
    scene.write("in/report.md", "x").bundle("in");
    let output = scene.output(DISTRIBUTOR, &["run", "--version"]);
    assert_eq!(stdout(&output), format!("distributor-run {}\n", env!("CARGO_PKG_VERSION")));
    let output = scene.output(DISTRIBUTOR, &["run", "-c", "site.yml"]);
    assert!(output.status.success() && stdout(&output).starts_with("publish_new"), "{}", stderr(&output));
    // Its status and its messages are the program's.
    let output = scene.output(DISTRIBUTOR, &["validate", "nowhere"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).starts_with("distributor-validate: "), "{}", stderr(&output));
    assert_eq!(scene.output(DISTRIBUTOR, &["inspect", "--bogus"]).status.code(), Some(2));
    // A link to it elsewhere finds them too.
    symlink(DISTRIBUTOR, scene.path("distributor")).unwrap();
    let output = scene.output(scene.path("distributor").to_str().unwrap(), &["bundle", "--help"]);
    assert!(output.status.success() && stdout(&output).starts_with("distributor-bundle - "), "{}", stderr(&output));
}

#[test]
fn distributor_lists_the_programs_and_suggests_what_was_meant() {
    let scene = Scene::new();
    let output = scene.output(DISTRIBUTOR, &[]);
    let listed: Vec<String> =
        stdout(&output).lines().map(|line| line.split_whitespace().next().unwrap().to_owned()).collect();
    assert!(output.status.success());
    for program in ["distributor-run", "distributor-validate", "distributor-inspect", "distributor-bundle"] {
        assert!(listed.iter().any(|name| name == program), "{listed:?}");
    }
    let output = scene.output(DISTRIBUTOR, &["rnu", "-c", "site.yml"]);
    assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(2), ""));
    assert_eq!(stderr(&output), "distributor: there is no command \"rnu\": did you mean run? [usage]\n");
    let output = scene.output(DISTRIBUTOR, &["frobnicate"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("see distributor --help"), "{}", stderr(&output));
}

#[test]
fn every_program_says_its_version() {
    let scene = Scene::new();
    for program in [RUN, VALIDATE, INSPECT, BUNDLE, DISTRIBUTOR] {
        let name = Path::new(program).file_name().unwrap().to_str().unwrap();
        for flag in ["--version", "-V"] {
            let output = scene.output(program, &[flag]);
            assert!(output.status.success());
            assert_eq!(stdout(&output), format!("{name} {}\n", env!("CARGO_PKG_VERSION")));
            assert_eq!(stderr(&output), "");
        }
    }
}

#[test]
fn statuses_are_those_of_the_table() {
    let scene = Scene::new();
    scene.write("in/report.md", "x").bundle("in");
    let status = |program, arguments: &[&str]| scene.output(program, arguments).status.code().unwrap();
    assert_eq!(status(RUN, &["-c", "site.yml"]), 0, "published");
    assert_eq!(status(RUN, &["-c", "site.yml"]), 0, "skipped");
    assert_eq!(status(RUN, &["-c", "site.yml", "--dry-run"]), 0);
    scene.write("in/report.md", "y");
    assert_eq!(status(VALIDATE, &["in"]), 1);
    scene.output(BUNDLE, &["in", "--id", "other", "--force"]);
    assert_eq!(status(RUN, &["-c", "site.yml"]), 1, "another source id");
    assert_eq!(status(RUN, &["-c", "site.yml", "--dry-run"]), 1);
    for (program, arguments) in [
        (RUN, &["-c", "nowhere.yml"][..]),
        (RUN, &["--bogus"]),
        (VALIDATE, &[]),
        (INSPECT, &[]),
        (BUNDLE, &["in"]),
        (DISTRIBUTOR, &["--bogus"]),
    ] {
        let output = scene.output(program, arguments);
        assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(2), ""), "{program} {arguments:?}");
        assert_eq!(stderr(&output).lines().count(), 1, "{}", stderr(&output));
    }
}

#[test]
fn modes_are_exact_whatever_the_umask() {
    for umask in ["000", "077", "777"] {
        let scene = Scene::new();
        scene.write("in/d/report.md", "x").bundle("in");
        let output = scene.output("sh", &["-c", &format!("umask {umask}; exec '{RUN}' -c site.yml")]);
        assert!(output.status.success(), "umask {umask}: {}", stderr(&output));
        let mode = |name| fs::metadata(scene.path(name)).unwrap().mode() & 0o7777;
        let modes = ["out", "out/d", "out/d/report.md", "out/.distributor.json"].map(mode);
        assert_eq!(modes, [0o775, 0o775, 0o664, 0o644], "umask {umask}");
    }
}

/// How a program is run as a user whom permissions bind; `None`, said aloud, where that can't be had here.
fn as_nobody(scene: &Scene) -> Option<Vec<String>> {
    fs::set_permissions(scene.dir.path(), Permissions::from_mode(0o755)).unwrap();
    // Where the build directory is, others may not look.
    fs::copy(RUN, scene.path("distributor-run")).unwrap();
    fs::copy(VALIDATE, scene.path("distributor-validate")).unwrap();
    if !rustix::process::geteuid().is_root() {
        return Some(Vec::new());
    }
    let lead = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"].map(str::to_owned).to_vec();
    let works = Command::new(&lead[0]).args(&lead[1..]).arg("true").output();
    if works.is_ok_and(|output| output.status.success()) {
        return Some(lead);
    }
    let no_skip = std::env::var_os("DISTRIBUTOR_TEST_NO_SKIP").is_some();
    assert!(!no_skip, "as root, setpriv is needed to become nobody");
    // Past libtest's capture, so that it is seen.
    let _ = std::io::stdout().write_all(b"SKIPPED: as root, and without setpriv to become nobody\n");
    None
}

#[test]
fn what_may_not_be_read_or_written_fails_alone() {
    let scene = Scene::new();
    for name in ["closed", "good", "hidden"] {
        scene.write(&format!("in/{name}/report.md"), "x").bundle(&format!("in/{name}"));
    }
    let Some(lead) = as_nobody(&scene) else { return };
    let chmod = |name: &str, mode| fs::set_permissions(scene.path(name), Permissions::from_mode(mode)).unwrap();
    fs::create_dir(scene.path("out")).unwrap();
    chmod("out", 0o777);
    chmod("in/closed", 0o000);
    chmod("in/hidden/report.md", 0o000);
    let run = |program: &str, arguments: &[&str]| {
        let line: Vec<&str> =
            lead.iter().map(String::as_str).chain([program]).chain(arguments.iter().copied()).collect();
        scene.output(line[0], &line[1..])
    };
    let output = run("./distributor-run", &["-c", "site.yml", "--format", "json"]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let report = json(&output);
    assert_eq!(report["status"], "partial_failure");
    let records = &report["pipelines"][0]["destinations"];
    let of = |at: usize| (records[at]["bundle_path"].as_str().unwrap(), records[at]["action"].as_str().unwrap());
    assert_eq!([of(0), of(1), of(2)], [("closed", "error"), ("good", "publish_new"), ("hidden", "error")]);
    assert_eq!(records[0]["error"]["detail"][0]["code"], "permission_denied", "{}", records[0]["error"]);
    assert_eq!(records[2]["error"]["detail"][0]["code"], "permission_denied", "{}", records[2]["error"]);
    assert!(!scene.path("out/hidden").exists() && !scene.path("out/closed").exists());
    // A whole source, and a destination, that may not be entered.
    let output = run("./distributor-validate", &["in/closed", "--format", "json"]);
    assert_eq!((output.status.code(), &json(&output)["error"]["code"]), (Some(1), &Value::from("permission_denied")));
    chmod("out", 0o555);
    chmod("in/closed", 0o755);
    let output = run("./distributor-run", &["-c", "site.yml", "--format", "json"]);
    let records = &json(&output)["pipelines"][0]["destinations"];
    assert_eq!(records[0]["error"]["code"], "permission_denied", "{records}");
    assert_eq!(records[1]["action"], "skip_same");
    chmod("in", 0o000);
    let output = run("./distributor-run", &["-c", "site.yml", "--format", "json"]);
    assert_eq!(json(&output)["pipelines"][0]["error"]["code"], "permission_denied");
    assert_eq!(output.status.code(), Some(1));
    chmod("in", 0o755);
}
