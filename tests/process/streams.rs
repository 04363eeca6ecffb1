//! Standard streams that are full, or closed.

use std::fs::{self, OpenOptions};
use std::io::{BufRead, BufReader};
use std::process::Stdio;

use serde_json::Value;

use crate::scene::{BUNDLE, DISTRIBUTOR, INSPECT, RUN, Scene, VALIDATE, stderr};

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
