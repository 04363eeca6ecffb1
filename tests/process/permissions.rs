//! Modes, and what may not be read or written.

use std::fs::{self, Permissions};
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::process::Command;

use serde_json::Value;

use crate::scene::{PRUNE, RUN, Scene, VALIDATE, json, stderr};

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
    fs::copy(PRUNE, scene.path("distributor-prune")).unwrap();
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

#[test]
fn what_may_not_be_deleted_stays_recorded() {
    let scene = Scene::new();
    let config = "pipelines:\n  - id: p\n    source: {backend: local, path: in}\n    destinations:\n      \
                  - {id: d, backend: local, path: out, retention: {prune: {enabled: true, keep_latest: 0}}}\n";
    scene.write("site.yml", config).write("in/a", "x").write("in/sub/b", "x").write("in/sub/c", "x").bundle("in");
    let Some(lead) = as_nobody(&scene) else { return };
    let chmod = |name: &str, mode| fs::set_permissions(scene.path(name), Permissions::from_mode(mode)).unwrap();
    fs::create_dir(scene.path("out")).unwrap();
    chmod("out", 0o777);
    let run = |line: &str| {
        let line: Vec<&str> = lead.iter().map(String::as_str).chain(line.split(' ')).collect();
        scene.output(line[0], &line[1..])
    };
    assert!(run("./distributor-run -c site.yml").status.success());
    chmod("out/sub", 0o555);
    let prune = "./distributor-prune -c site.yml --pipeline p --destination d --apply";
    let output = run(&format!("{prune} --format json"));
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let said = stderr(&output);
    let place = scene.path("out").display().to_string();
    let lines = [
        format!("p/d: {place}/sub/b: permission denied"),
        format!("p/d: {place}/sub/c: permission denied"),
        "p/d: 2 of 3 outputs could not be deleted, first sub/b: their records stay".to_owned(),
    ];
    assert!(said.lines().zip(&lines).all(|(line, begins)| line.contains(begins.as_str())), "{said}");
    assert_eq!(said.lines().count(), 3, "{said}");
    let report = json(&output);
    let schema = serde_json::from_str(include_str!("../../docs/report.schema.json")).unwrap();
    let faults: Vec<_> =
        jsonschema::validator_for(&schema).unwrap().iter_errors(&report).map(|e| e.to_string()).collect();
    assert!(faults.is_empty(), "{faults:?}: {report}");
    assert_eq!((&report["status"], &report["error"]["code"]), (&"failure".into(), &"delete_failed".into()));
    assert_eq!((&report["deleted"], &report["kept"]), (&serde_json::json!(["a"]), &0.into()));
    assert_eq!(report["planned"].as_array().map(Vec::len), Some(3));
    assert_eq!((&report["failed"][0]["path"], &report["failed"][1]["path"]), (&"sub/b".into(), &"sub/c".into()));
    assert_eq!((&report["failed"][0]["code"], &report["changed"]), (&"permission_denied".into(), &true.into()));
    let recorded = || {
        let state: Value = serde_json::from_slice(&fs::read(scene.path("out/.distributor.json")).unwrap()).unwrap();
        state["outputs"].as_array().unwrap().iter().map(|r| r["path"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(recorded(), ["sub/b", "sub/c"]);
    // None at all: the state is not written again.
    let before = fs::metadata(scene.path("out/.distributor.json")).unwrap().ino();
    let output = run(prune);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(String::from_utf8_lossy(&output.stdout).ends_with("0 deleted, 2 failed\n"));
    assert_eq!(fs::metadata(scene.path("out/.distributor.json")).unwrap().ino(), before);
    chmod("out/sub", 0o755);
    assert!(run(prune).status.success());
    assert_eq!(recorded(), [""; 0]);
    assert!(!scene.path("out/sub").exists());
    assert_eq!(fs::read_dir(scene.path("out")).unwrap().count(), 1, "only the state is left");
}
