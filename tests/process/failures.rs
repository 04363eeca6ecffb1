//! What the system does not let a program do, and what others do meanwhile.

use std::collections::BTreeSet;
use std::fs::{self, OpenOptions};
use std::process::Stdio;

use serde_json::Value;

use crate::scene::{BUNDLE, INSPECT, RUN, Scene, VALIDATE, json, snapshot, stderr};
use crate::slow::{slow_bundle, wait_for_reading};

#[test]
fn a_file_that_is_cut_while_it_is_hashed_makes_no_manifest() {
    let scene = Scene::new();
    slow_bundle(&scene);
    fs::remove_file(scene.path("in/manifest.json")).unwrap();
    let mut command = scene.command(BUNDLE, &["in", "--id", "x-1", "--format", "json"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait_for_reading(&mut child, "/in/big");
    OpenOptions::new().write(true).open(scene.path("in/big")).unwrap().set_len(1).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert_eq!(json(&output)["error"]["code"], "source_changed");
    assert_eq!(json(&output)["manifest"], Value::Null);
    assert!(stderr(&output).contains("big: the file changed while it was read"), "{}", stderr(&output));
    assert!(!scene.path("in/manifest.json").exists());
}

#[test]
fn names_and_paths_that_are_too_long_are_told_as_such() {
    let scene = Scene::new();
    scene.write("in/report.md", "x").bundle("in");
    let (name, path) = ("x".repeat(256), "d/".repeat(2500));
    let source = |path: &str| format!("source: {{backend: local, path: {path}}}");
    let destination = |id: &str, path: &str| format!("{{id: {id}, backend: local, path: {path}}}");
    let (first, second) = (destination("a", &format!("{name}/a")), destination("b", &format!("new/{path}")));
    let (third, other) = (destination("c", "out/good"), destination("a", "out/deep"));
    let lines = [
        format!("pipelines:\n- {{id: deep, {}, destinations: [{other}]}}", source(&path)),
        format!("- {{id: good, {}, destinations: [{first}, {second}, {third}]}}", source("in")),
    ];
    scene.write("site.yml", &lines.join("\n"));
    let before = snapshot(scene.dir.path());
    for long in [name, path] {
        for (program, arguments) in
            [(VALIDATE, &[][..]), (INSPECT, &[]), (BUNDLE, &["--id", "x-1"]), (BUNDLE, &["--id", "x-1", "--force"])]
        {
            let arguments = [&[long.as_str(), "--format", "json"], arguments].concat();
            let output = scene.output(program, &arguments);
            assert_eq!(output.status.code(), Some(1), "{program}: {}", stderr(&output));
            assert_eq!(json(&output)["error"]["code"], "path_too_long", "{program}: {}", stderr(&output));
        }
    }
    assert_eq!(snapshot(scene.dir.path()), before);
    let output = scene.output(RUN, &["-c", "site.yml", "--format", "json"]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let pipelines = &json(&output)["pipelines"];
    assert_eq!(pipelines[0]["error"]["code"], "path_too_long");
    let records = &pipelines[1]["destinations"];
    let codes = [0, 1].map(|at: usize| &records[at]["error"]["code"]);
    assert_eq!(codes, ["path_too_long"; 2]);
    assert_eq!(records[2]["action"], "publish_new");
    assert!(!scene.path("new").exists());
}

#[test]
fn outputs_may_lie_deeper_than_a_path_may_be_long() {
    let scene = Scene::new();
    let room = 4050 - scene.dir.path().as_os_str().len();
    let segment = "s".repeat(199) + "/";
    let (root, output) = (segment.repeat(room / 200), segment.repeat(3) + "report.md");
    scene.write(&format!("in/{output}"), "x").bundle("in");
    let destination = format!("{{id: d, backend: local, path: {root}}}");
    let text = format!("pipelines: [{{id: p, source: {{backend: local, path: in}}, destinations: [{destination}]}}]");
    scene.write("site.yml", &text);
    for action in ["publish_new", "skip_same"] {
        let output = scene.output(RUN, &["-c", "site.yml", "--format", "json"]);
        assert_eq!(json(&output)["pipelines"][0]["destinations"][0]["action"], action, "{}", stderr(&output));
    }
    let there = scene.output("sh", &["-c", "cd \"$0\" && cat \"$1\"", &root, &output]);
    assert_eq!(there.stdout, b"x", "{}", stderr(&there));
}

/// The codes of what failed: of its single findings, where it has some.
fn codes(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => match (&fields.get("code"), fields.get("detail")) {
            (Some(Value::String(code)), None | Some(Value::Null)) => found.push(code.clone()),
            _ => fields.values().for_each(|value| codes(value, found)),
        },
        Value::Array(values) => values.iter().for_each(|value| codes(value, found)),
        _ => {}
    }
}

#[test]
fn what_a_limit_on_open_files_fails_is_told_as_that() {
    let destination = "{id: d, backend: local, path: out}";
    let mut told = BTreeSet::new();
    for path in ["in", "in/d"] {
        let scene = Scene::new();
        scene.write("in/d/sub/report.md", "x").bundle("in/d").write("new/sub/report.md", "y");
        let source = format!("{{backend: local, path: {path}}}");
        let text = format!("pipelines: [{{id: p, source: {source}, destinations: [{destination}]}}]");
        scene.write("site.yml", &text);
        for (program, arguments) in [
            (INSPECT, &["in/d"][..]),
            (INSPECT, &["-c", "site.yml", "--pipeline", "p"]),
            (VALIDATE, &["in/d"]),
            (VALIDATE, &["-c", "site.yml", "--pipeline", "p"]),
            (RUN, &["-c", "site.yml", "--dry-run"]),
            (RUN, &["-c", "site.yml"]),
            (BUNDLE, &["new", "--id", "x-1", "--force"]),
        ] {
            for limit in 3..20 {
                let line = format!("ulimit -n {limit}; exec \"$0\" \"$@\" --format json");
                let output = scene.output("sh", &[&["-c", &line, program], arguments].concat());
                assert!(!stderr(&output).contains("panicked"), "{program} {limit}: {}", stderr(&output));
                // Done, or not even started.
                if output.status.success() || output.stdout.is_empty() {
                    continue;
                }
                assert_eq!(output.status.code(), Some(1), "{program} {limit}: {}", stderr(&output));
                let mut found = Vec::new();
                codes(&json(&output), &mut found);
                assert!(!found.is_empty() && found.iter().all(|code| code == "storage_error"), "{}", json(&output));
                told.insert(program);
            }
        }
    }
    assert_eq!(told.len(), 4, "{told:?}");
}

#[test]
fn where_there_is_no_thread_to_be_had_all_is_done_by_one() {
    let scene = Scene::new();
    scene.write("in/d/a.md", "a").write("in/d/b.md", "b");
    for (program, arguments) in [
        (BUNDLE, &["in/d", "--id", "x-1", "--force"][..]),
        (VALIDATE, &["in/d"]),
        (INSPECT, &["in/d"]),
        (RUN, &["-c", "site.yml", "--dry-run"]),
        (RUN, &["-c", "site.yml"]),
    ] {
        for progress in ["always", "never"] {
            let arguments = [arguments, &["--progress", progress]].concat();
            // No memory has room for the stack of a thread of this size.
            let output = scene.command(program, &arguments).env("RUST_MIN_STACK", (1_u64 << 46).to_string()).output();
            let output = output.unwrap();
            assert!(output.status.success(), "{program} {arguments:?}: {}", stderr(&output));
        }
    }
    assert_eq!(fs::read_to_string(scene.path("out/d/a.md")).unwrap(), "a");
}
