//! Signals: what they end, and what they leave.

use std::fs;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::scene::{BUNDLE, RUN, Scene, VALIDATE, json, snapshot, stderr, stdout};
use crate::slow::{slow_bundle, wait_for_open};

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
