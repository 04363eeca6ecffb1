//! `docs/report.schema.json` against what the programs print.

use std::fs;
use std::path::Path;
use std::process::Command;

use distributor::error::Code;
use serde_json::Value;
use tempfile::TempDir;

const RUN: &str = env!("CARGO_BIN_EXE_distributor-run");
const VALIDATE: &str = env!("CARGO_BIN_EXE_distributor-validate");
const INSPECT: &str = env!("CARGO_BIN_EXE_distributor-inspect");
const RECONCILE_STATE: &str = env!("CARGO_BIN_EXE_distributor-reconcile-state");
const PRUNE: &str = env!("CARGO_BIN_EXE_distributor-prune");
const BUNDLE: &str = env!("CARGO_BIN_EXE_distributor-bundle");

/// One bundle to two destinations: one with links, one that has taken nothing but `fixed`.
const CONFIGURATION: &str = "\
pipelines:
  - id: reports
    source:
      backend: local
      path: source
    destinations:
      - id: www
        backend: local
        path: www
        links:
          base_url: https://www.example.org/
      - id: latest
        backend: local
        path: latest
        path_mapping: fixed
        takeover:
          mode: source
";

fn schema() -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/report.schema.json");
    serde_json::from_str(&fs::read_to_string(path).expect("the schema is there")).expect("the schema is JSON")
}

/// A directory with a configuration and a bundle, and what is run in it.
struct Scene {
    dir: TempDir,
    schema: jsonschema::Validator,
}

impl Scene {
    fn new() -> Scene {
        let schema = jsonschema::draft202012::options().should_validate_formats(true).build(&schema());
        let scene = Scene { dir: TempDir::new().expect("a directory"), schema: schema.expect("a schema") };
        scene.write("site.yml", CONFIGURATION);
        scene.write("source/report/index.html", "<h1>June</h1>\n");
        scene.write("source/report/data/old.csv", "a,b\n");
        scene
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.dir.path().join(path);
        fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
        fs::write(path, text).expect("a file");
    }

    fn remove(&self, path: &str) {
        let path = self.dir.path().join(path);
        if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) }.expect("it goes");
    }

    /// Runs a program, whose document has to keep to the schema and whose codes have to be ours.
    #[track_caller]
    fn run(&self, program: &str, args: &str, status: i32) -> Value {
        let mut command = Command::new(program);
        command.args(args.split_whitespace()).args(["--format", "json"]).current_dir(self.dir.path());
        let output = command.env_remove("DISTRIBUTOR_CONFIG").output().expect("it runs");
        let shown = String::from_utf8(output.stdout).expect("text");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(status), "{args}: {said}{shown}");
        assert!(shown.ends_with("}\n") && shown.lines().count() == 1, "{args}: {shown}");
        let document: Value = serde_json::from_str(&shown).expect("JSON");
        let faults: Vec<String> =
            self.schema.iter_errors(&document).map(|e| format!("{}: {e}", e.instance_path)).collect();
        assert!(faults.is_empty(), "{args}: {}\n{shown}", faults.join("\n"));
        codes(&document, &mut |code| {
            assert!(Code::ALL.iter().any(|known| known.as_str() == code), "{args}: {code}");
        });
        document
    }

    #[track_caller]
    fn bundle(&self, path: &str, more: &str) {
        self.run(BUNDLE, &format!("source/{path} --id reports.monthly {more}"), 0);
    }

    /// Runs distributor-run; gives the actions, the first error's code or an empty text, and all of it.
    #[track_caller]
    fn publish(&self, more: &str, status: i32) -> (Vec<String>, String, Value) {
        let document = self.run(RUN, &format!("-c site.yml {more}"), status);
        let records: Vec<Value> = document["pipelines"][0]["destinations"].as_array().expect("records").clone();
        let action = |record: &Value| record["action"].as_str().expect("an action").to_owned();
        let code = records.iter().find_map(|record| record["error"]["code"].as_str()).unwrap_or_default().to_owned();
        (records.iter().map(action).collect(), code, document)
    }
}

/// Every `code` of a document.
fn codes(value: &Value, see: &mut dyn FnMut(&str)) {
    match value {
        Value::Array(values) => values.iter().for_each(|value| codes(value, see)),
        Value::Object(fields) => {
            fields.get("code").and_then(Value::as_str).into_iter().for_each(&mut *see);
            fields.values().for_each(|value| codes(value, see));
        }
        _ => {}
    }
}

#[test]
fn the_schema_is_one() {
    let schema = schema();
    assert!(jsonschema::draft202012::meta::is_valid(&schema));
    // Objects are closed, so that a field that is not described is found.
    open_objects(&schema, "", &mut |place| panic!("{place}: an object that is not closed"));
}

/// Objects with properties of their own that say nothing of others. Conditions only narrow what is closed above them.
fn open_objects(value: &Value, place: &str, see: &mut dyn FnMut(&str)) {
    match value {
        Value::Array(values) => values.iter().for_each(|value| open_objects(value, place, see)),
        Value::Object(fields) => {
            if fields.get("type") == Some(&"object".into()) && fields.contains_key("properties") {
                let closed = fields.get("additionalProperties") == Some(&false.into());
                if !closed {
                    see(place);
                }
            }
            for (key, value) in fields {
                open_objects(value, &format!("{place}/{key}"), see);
            }
        }
        _ => {}
    }
}

#[test]
fn runs_that_go_well() {
    let scene = Scene::new();
    scene.bundle("report", "--created 2026-06-04T11:55:00Z");
    let (actions, _, mut document) = scene.publish("--dry-run", 0);
    assert_eq!(actions, ["publish_new", "publish_new"]);
    document["pipelines"][0]["destinations"][0]["more"] = true.into();
    assert!(!scene.schema.is_valid(&document), "a field that is not described is found");
    let (actions, _, document) = scene.publish("", 0);
    assert_eq!(actions, ["publish_new", "publish_new"]);
    let records = &document["pipelines"][0]["destinations"];
    assert_eq!(records[0]["primary_url"], "https://www.example.org/report/index.html");
    assert_eq!(records[1]["primary_url"], Value::Null);
    assert_eq!(scene.publish("", 0).0, ["skip_same", "skip_same"]);
    // A newer one with a file less and a file more.
    scene.remove("source/report/data");
    scene.write("source/report/new.txt", "new\n");
    scene.bundle("report", "--force --created 2026-06-05T11:55:00Z");
    let (actions, _, document) = scene.publish("", 0);
    assert_eq!(actions, ["replace_older", "replace_older"]);
    assert_eq!(document["pipelines"][0]["destinations"][0]["deleted"][0], "data/old.csv");
    scene.bundle("report", "--force --created 2026-06-03T11:55:00Z");
    assert_eq!(scene.publish("", 0).0, ["skip_destination_newer", "skip_destination_newer"]);
    // Of another id, at the fixed destination.
    scene.run(BUNDLE, "source/report --id reports.yearly --force --created 2026-06-06T11:55:00Z", 0);
    assert_eq!(scene.publish("--destination latest", 0).0, ["replace_takeover"]);
    scene.remove("source/report");
    let (actions, _, document) = scene.publish("", 0);
    assert_eq!((actions.len(), &document["warnings"][0]["code"]), (0, &"no_bundles".into()));
}

#[test]
fn runs_that_fail() {
    let scene = Scene::new();
    scene.bundle("report", "--created 2026-06-04T11:55:00Z");
    scene.write("www/report/notes.txt", "mine\n");
    let (actions, code, document) = scene.publish("", 1);
    assert_eq!(
        (actions.as_slice(), code.as_str()),
        (["error", "publish_new"].map(str::to_owned).as_slice(), "unmanaged_content")
    );
    assert_eq!(document["status"], "partial_failure");
    // Files that changed after the manifest was made, and a manifest that is none.
    scene.remove("www");
    scene.write("source/report/index.html", "<h1>July</h1>\n");
    scene.remove("source/report/data/old.csv");
    let (_, code, document) = scene.publish("--destination www", 1);
    assert_eq!((code.as_str(), &document["status"]), ("invalid_bundle", &"failure".into()));
    assert_eq!(document["pipelines"][0]["destinations"][0]["error"]["detail"].as_array().map(Vec::len), Some(2));
    assert_eq!(scene.publish("--destination www --dry-run", 1).1, "invalid_bundle");
    scene.write("source/report/manifest.json", "{}");
    let (_, code, document) = scene.publish("", 1);
    assert_eq!(
        (code.as_str(), &document["pipelines"][0]["destinations"][0]["source_id"]),
        ("invalid_bundle", &Value::Null)
    );
    // A source that is not there.
    scene.remove("source");
    let (actions, _, document) = scene.publish("", 1);
    assert_eq!((actions.len(), &document["pipelines"][0]["error"]["code"]), (0, &"not_found".into()));
    assert_eq!((&document["status"], &document["summary"]["failed"]), (&"failure".into(), &1.into()));
}

/// The first destination's record of a document.
fn first(document: &Value) -> &Value {
    &document["pipelines"][0]["destinations"][0]
}

/// The texts of a list, or those of a field of its objects.
fn texts<'a>(list: &'a Value, field: &str) -> Vec<&'a str> {
    let text = |item: &'a Value| if field.is_empty() { item.as_str() } else { item[field].as_str() };
    list.as_array().into_iter().flatten().filter_map(text).collect()
}

#[test]
fn runs_that_replace_by_force() {
    let scene = Scene::new();
    scene.bundle("report", "--created 2026-06-04T11:55:00Z");
    scene.publish("--destination www", 0);
    // Content that nobody recorded, deleted and overwritten.
    scene.write("www/report/notes.txt", "mine\n");
    scene.write("www/report/new.txt", "mine\n");
    scene.write("source/report/new.txt", "new\n");
    scene.bundle("report", "--force --created 2026-06-05T11:55:00Z");
    let (_, code, document) = scene.publish("--destination www --dry-run", 1);
    assert_eq!((code.as_str(), &first(&document)["force"]), ("unmanaged_content", &Value::Null));
    for (flags, status, bytes) in [("--dry-run", 0, 0), ("--dry-run --detailed-exitcode", 4, 0), ("", 0, 22)] {
        let (actions, _, document) = scene.publish(&format!("--destination www --force {flags}"), status);
        assert_eq!(actions, ["force_replace"], "{flags}");
        let record = first(&document);
        assert_eq!(texts(&record["deleted"], ""), ["notes.txt"]);
        assert_eq!(record["force"]["instead_of"], "unmanaged_content");
        assert_eq!(texts(&record["force"]["unmanaged"], ""), ["new.txt", "notes.txt"]);
        assert_eq!(
            (texts(&record["force"]["owners"], "destination_id"), &record["bytes_written"]),
            (vec!["www"], &bytes.into())
        );
        assert_eq!(texts(&record["outputs"], "change"), ["overwrite", "overwrite", "overwrite"]);
        assert_eq!(document["summary"]["force_replace"], 1);
    }
    // A newer one, skipped with a word, then replaced.
    let newer = CONFIGURATION.replacen(
        "        links:",
        "        transfer: {on_destination_newer: replace}\n        links:",
        1,
    );
    scene.write("site.yml", &newer);
    scene.bundle("report", "--force --created 2026-06-03T11:55:00Z");
    let (actions, _, document) = scene.publish("--destination www --dry-run --detailed-exitcode", 0);
    assert_eq!((actions, &document["summary"]["skipped"]), (vec!["skip_destination_newer".to_owned()], &1.into()));
    let (actions, _, document) = scene.publish("--destination www --force", 0);
    assert_eq!(actions, ["force_replace"]);
    assert_eq!(first(&document)["force"]["instead_of"], "destination_newer");
    // A state that is none has no owners.
    scene.write("site.yml", &newer.replacen("on_destination_newer", "on_conflict", 1));
    scene.write("www/report/.distributor.json", "{");
    assert_eq!(scene.publish("--destination www", 1).1, "invalid_state");
    let (_, _, document) = scene.publish("--destination www --force --dry-run", 0);
    let force = &first(&document)["force"];
    assert_eq!((&force["instead_of"], force["owners"].as_array().map(Vec::len)), (&"invalid_state".into(), Some(0)));
    scene.publish("--destination www --force", 0);
    // Never into what somebody else manages.
    scene.write("www/report/.distributor.json", "{");
    scene.write("www/report/sub/.distributor.json", "{}");
    assert_eq!(scene.publish("--destination www --force", 1).1, "managed_below");
}

#[test]
fn runs_that_merge_and_publish_again() {
    let scene = Scene::new();
    let merge = CONFIGURATION.replacen("        links:", "        reconciliation: {mode: merge}\n        links:", 1);
    scene.write("site.yml", &merge);
    scene.bundle("report", "--created 2026-06-04T11:55:00Z");
    scene.publish("--destination www", 0);
    scene.remove("source/report/data");
    scene.write("source/report/new.txt", "new\n");
    scene.write("www/report/notes.txt", "mine\n");
    scene.bundle("report", "--force --created 2026-06-05T11:55:00Z");
    for flags in ["--dry-run", ""] {
        let (actions, _, document) = scene.publish(&format!("--destination www {flags}"), 0);
        assert_eq!(actions, ["replace_older"]);
        let record = first(&document);
        assert_eq!((&record["reconciliation_mode"], &record["retained"]), (&"merge".into(), &1.into()));
        assert_eq!(texts(&record["outputs"], "path"), ["data/old.csv", "index.html", "new.txt"]);
        assert_eq!(texts(&record["outputs"], "change"), ["retain", "overwrite", "create"]);
    }
    // Other addresses.
    scene.write("site.yml", &merge.replacen("www.example.org", "reports.example.org", 1));
    let (actions, _, document) = scene.publish("--destination www --dry-run --detailed-exitcode", 0);
    assert_eq!((actions, texts(&document["warnings"], "code")), (vec!["skip_same".to_owned()], vec!["outputs_differ"]));
    for (flags, status) in [("--dry-run --detailed-exitcode", 4), ("", 0)] {
        let (actions, _, document) = scene.publish(&format!("--destination www --republish {flags}"), status);
        assert_eq!((actions, &document["summary"]["republish"]), (vec!["republish".to_owned()], &1.into()));
        let record = first(&document);
        assert_eq!(record["primary_url"], "https://reports.example.org/report/index.html");
        assert_eq!(record["outputs"][0]["url"], "https://www.example.org/report/data/old.csv", "as it was");
    }
    assert_eq!(texts(&scene.publish("--destination www", 0).2["warnings"], "code"), [""; 0]);
    // What is in the way of an output.
    scene.write("source/report/notes.txt", "ours\n");
    scene.bundle("report", "--force --created 2026-06-06T11:55:00Z");
    let (_, code, document) = scene.publish("--destination www", 1);
    assert_eq!(
        (code.as_str(), &first(&document)["error"]["detail"][0]["path"]),
        ("unmanaged_path", &"notes.txt".into())
    );
    let (actions, _, document) = scene.publish("--destination www --force --dry-run", 0);
    assert_eq!((actions, &first(&document)["retained"]), (vec!["force_replace".to_owned()], &0.into()));
    assert_eq!(texts(&first(&document)["deleted"], ""), ["data/old.csv"]);
}

#[test]
fn a_run_that_finds_the_destination_locked() {
    let scene = Scene::new();
    scene.bundle("report", "");
    scene.write("www/report/.distributor.lock", "");
    let lock = fs::File::open(scene.dir.path().join("www/report/.distributor.lock")).expect("the lock");
    lock.lock().expect("the lock is free");
    assert_eq!(scene.publish("--destination www --lock-timeout 0", 3).1, "locked");
}

/// The usual configuration, where only the first output is kept.
fn pruned() -> String {
    let retention = "        retention: {prune: {enabled: true, keep_latest: 1}}\n        links:";
    CONFIGURATION.replacen("        links:", retention, 1)
}

#[test]
fn prunings() {
    let scene = Scene::new();
    scene.write("site.yml", &pruned());
    let prune = |more: &str, status| {
        scene.run(PRUNE, &format!("-c site.yml --pipeline reports --destination www {more}"), status)
    };
    for flag in ["--dry-run", "--apply"] {
        let document = prune(flag, 1);
        assert_eq!((&document["error"]["code"], &document["kept"]), (&"no_state".into(), &0.into()));
    }
    scene.bundle("report", "--created 2026-06-04T11:55:00Z");
    scene.publish("--destination www", 0);
    assert!(prune("--apply", 1)["error"]["message"].as_str().expect("text").contains("--bundle-path: report"));
    for (flag, deleted) in [("--dry-run", vec![]), ("--apply", vec!["index.html"])] {
        let document = prune(&format!("--bundle-path report {flag}"), 0);
        assert_eq!(document["policy"], serde_json::json!({"older_than": null, "keep_latest": 1}));
        assert_eq!(
            (texts(&document["planned"], "path"), texts(&document["deleted"], "")),
            (vec!["index.html"], deleted)
        );
        assert_eq!((&document["kept"], &document["changed"]), (&1.into(), &true.into()));
    }
    let mut document = prune("--bundle-path report --apply", 0);
    assert_eq!((texts(&document["planned"], "path").len(), &document["changed"]), (0, &false.into()));
    let lock = fs::File::create(scene.dir.path().join("www/report/.distributor.lock")).expect("a lock");
    lock.lock().expect("the lock is free");
    assert_eq!(prune("--bundle-path report --apply --lock-timeout 0", 3)["error"]["code"], "locked");
    drop(lock);
    document["policy"]["more"] = true.into();
    assert!(!scene.schema.is_valid(&document), "a field that is not described is found");
    // By age alone, of a state that is none.
    scene.write("site.yml", &pruned().replacen("keep_latest: 1", "older_than: 30d", 1));
    scene.write("www/report/.distributor.json", "{");
    let document = prune("--bundle-path report --dry-run", 1);
    assert_eq!(
        (&document["error"]["code"], &document["policy"]["older_than"]),
        (&"invalid_state".into(), &"30d".into())
    );
    assert_eq!(texts(&document["warnings"], "code"), ["prune_may_empty"]);
    // Where this version can't work.
    scene.write(
        "site.yml",
        &pruned().replacen(
            "backend: local\n        path: www",
            "backend: ssh\n        host: example.com\n        path: www",
            1,
        ),
    );
    let document = prune("--apply", 1);
    assert_eq!((&document["error"]["code"], &document["root"]), (&"unsupported".into(), &Value::Null));
}

#[test]
fn repairs() {
    let scene = Scene::new();
    let repair = |more: &str, status| {
        scene.run(RECONCILE_STATE, &format!("-c site.yml --pipeline reports --destination www {more}"), status)
    };
    let document = repair("", 1);
    assert_eq!((&document["error"]["code"], &document["state_schema_version"]), (&"no_state".into(), &Value::Null));
    scene.bundle("report", "--created 2026-06-04T11:55:00Z");
    scene.publish("--destination www", 0);
    scene.write("www/report/theirs", "mine\n");
    let document = repair("--bundle-path report --all-owners", 0);
    assert_eq!((&document["scope"], &document["changed"]), (&"all_owners".into(), &false.into()));
    scene.remove("www/report/index.html");
    for flag in ["--dry-run", ""] {
        let document = repair(&format!("--bundle-path report {flag}"), 0);
        assert_eq!((&document["checked"], &document["changed"]), (&2.into(), &true.into()));
        assert_eq!(
            (texts(&document["missing"], ""), texts(&document["unmanaged"], "")),
            (vec!["index.html"], vec!["theirs"])
        );
    }
    let mut document = repair("--bundle-path report", 0);
    assert_eq!((&document["checked"], &document["changed"]), (&1.into(), &false.into()));
    document["more"] = true.into();
    assert!(!scene.schema.is_valid(&document), "a field that is not described is found");
}

#[test]
fn bundles_made_checked_and_shown() {
    let scene = Scene::new();
    let document = scene.run(BUNDLE, "source/report --id reports.monthly", 0);
    assert_eq!((&document["manifest"]["id"], &document["bytes"]), (&"reports.monthly".into(), &18.into()));
    assert_eq!(scene.run(BUNDLE, "source/report --id reports.monthly", 1)["error"]["code"], "already_exists");
    assert_eq!(scene.run(BUNDLE, "source/nowhere --id reports.monthly", 1)["manifest"], Value::Null);

    assert_eq!(scene.run(VALIDATE, "source/report", 0)["bundles"][0]["valid"], true);
    assert_eq!(scene.run(VALIDATE, "-c site.yml", 0)["bundles"].as_array().map(Vec::len), Some(0));
    assert_eq!(scene.run(VALIDATE, "-c site.yml --pipeline reports", 0)["status"], "success");
    assert_eq!(scene.run(INSPECT, "source/report", 0)["bundles"][0]["files"].as_array().map(Vec::len), Some(2));
    assert_eq!(scene.run(INSPECT, "-c site.yml --pipeline reports", 0)["bundles"][0]["bundle_path"], "report");

    scene.write("source/report/unlisted.txt", "more\n");
    assert_eq!(
        scene.run(VALIDATE, "source/report", 0)["bundles"][0]["warnings"][0]["code"],
        Code::UnlistedFile.as_str()
    );
    scene.write("source/report/index.html", "<h1>July</h1>\n");
    assert_eq!(
        scene.run(VALIDATE, "source/report --strict", 1)["bundles"][0]["errors"].as_array().map(Vec::len),
        Some(2)
    );
    scene.write("source/broken/manifest.json", "{\"schema_version\": 1}");
    assert_eq!(scene.run(VALIDATE, "source/broken", 1)["bundles"][0]["id"], Value::Null);
    let document = scene.run(INSPECT, "-c site.yml --pipeline reports", 1);
    assert_eq!(
        (&document["error"]["code"], &document["bundles"][0]["id"]),
        (&"invalid_manifest".into(), &"reports.monthly".into())
    );
    assert_eq!(scene.run(VALIDATE, "source/nowhere", 1)["error"]["code"], "not_found");
    assert_eq!(scene.run(INSPECT, "source/nowhere", 1)["error"]["code"], "not_found");
    scene.remove("source");
    assert_eq!(scene.run(VALIDATE, "-c site.yml --pipeline reports", 1)["error"]["code"], "not_found");
    assert_eq!(scene.run(INSPECT, "-c site.yml --pipeline reports", 1)["error"]["code"], "not_found");
}
