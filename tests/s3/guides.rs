//! The example and what the guides show of S3, really run.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::scene::{PRUNE, RECONCILE_STATE, RUN, Scene, checked, outcomes};
use crate::servers::proxy::{Kind, Proxy, Seen};
use crate::servers::{self, ACCESS_KEY, BUCKET, SECRET_KEY};

fn project(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &to);
        } else {
            fs::copy(entry.path(), to).unwrap();
        }
    }
}

/// The section of operations.md that is about S3.
fn section() -> String {
    let guide = fs::read_to_string(project("docs/operations.md")).unwrap();
    let (_, section) = guide.split_once("\n## S3\n").expect("the section");
    section.split("\n## ").next().unwrap().to_owned()
}

/// The blocks of a language in it.
fn blocks(language: &str) -> Vec<String> {
    let (section, mark) = (section(), format!("```{language}\n"));
    section.split(&mark).skip(1).map(|rest| rest.split("```").next().unwrap().to_owned()).collect()
}

/// A configuration of ours with the test's server and bucket, and its prefixes below the test's.
fn here(scene: &Scene, text: &str) -> String {
    let (server, prefix) = (scene.place.server, &scene.place.prefix);
    let line = |line: &str| {
        let key = line.trim_start().split(':').next().unwrap().to_owned();
        let indent = &line[..line.len() - line.trim_start().len()];
        let value = line.split_once(": ").map_or("", |(_, value)| value.split('#').next().unwrap().trim());
        let set = |value: &str| format!("{indent}{key}: {value}\n");
        match key.as_str() {
            "endpoint" => set(&format!("http://{}", server.address)),
            "bucket" => set(BUCKET),
            "region" => set(server.region),
            "prefix" => set(&format!("'{prefix}{value}'")),
            _ => format!("{line}\n"),
        }
    };
    text.lines().map(line).collect()
}

#[test]
fn the_example_publishes_then_skips() {
    for server in servers::all() {
        let scene = Scene::on(server);
        let text = fs::read_to_string(project("examples/s3-destination.yml")).unwrap();
        // What its comments say for a server of your own.
        let own = text.replace("# endpoint: ", "endpoint: ").replace("# path_style: ", "path_style: ");
        // Garage has one class alone, and passes over the name of others.
        scene.write("site.yml", &here(&scene, &own));
        copy(&project("examples/bundles"), &scene.path("bundles"));
        let output = scene.output(RUN, "-c site.yml");
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(2) && said.contains("[missing_secret]"), "{said}");
        let run = |args: &str| {
            let mut command = scene.command(RUN, &format!("-c site.yml --format json {args}"));
            command.env("EXAMPLE_S3_KEY_ID", ACCESS_KEY).env("EXAMPLE_S3_SECRET_KEY", SECRET_KEY);
            outcomes(&scene.document(&checked(&mut command), 0))
        };
        let bundles = fs::read_dir(scene.path("bundles")).unwrap().count();
        let all = |action: &str| vec![action.to_owned(); 2 * bundles];
        assert_eq!(run("--dry-run"), all("publish_new"));
        assert_eq!(scene.place.keys(), Vec::<String>::new());
        assert_eq!((run(""), run("")), (all("publish_new"), all("skip_same")));
        let (site, archive) = (scene.there("site/"), scene.there("archive/"));
        let ends = |end: &str, keys: &BTreeMap<String, String>| keys.keys().any(|key| key.ends_with(end));
        assert!(ends(".html", &site) && !ends(".md", &site) && ends(".md", &archive));
    }
}

#[test]
fn what_operations_shows_of_a_bucket_is_what_is_printed() {
    let Some(server) = servers::all().pop() else { return };
    let scene = Scene::on(server);
    let configuration = blocks("yaml").remove(0);
    assert!(configuration.starts_with("# work/bucket.yml\n"));
    scene.bundle("work/source/report", 1, &[("index.html", "<h1>June</h1>\n")]);
    scene.write("work/bucket.yml", &here(&scene, &configuration));
    let line = "$ distributor-run --config work/bucket.yml --dry-run\n";
    let section = section();
    let (_, shown) = section.split_once(line).expect("a sample");
    let shown: Vec<&str> = shown.lines().take_while(|line| line.trim() != "```").map(str::trim_end).collect();
    let mut command = scene.command(RUN, "--config work/bucket.yml --dry-run");
    let output = checked(command.env("S3_KEY_ID", ACCESS_KEY).env("S3_SECRET_KEY", SECRET_KEY));
    let printed = String::from_utf8(output.stdout).unwrap();
    let timeless = |line: &str| line.trim_start().rsplit_once(" in ").map_or(line, |(line, _)| line).trim().to_owned();
    let timeless = |lines: Vec<&str>| lines.into_iter().map(timeless).collect::<Vec<_>>();
    assert_eq!(timeless(shown), timeless(printed.lines().collect()), "{}", String::from_utf8_lossy(&output.stderr));
}

/// What of AWS's rights a request takes.
fn right(seen: &Seen) -> &'static str {
    match seen.kind {
        Kind::List => "s3:ListBucket",
        Kind::GetObject | Kind::HeadObject => "s3:GetObject",
        Kind::PutObject | Kind::CreateUpload | Kind::UploadPart | Kind::CompleteUpload => "s3:PutObject",
        Kind::DeleteObject if seen.parameter("versionId").is_some() => "s3:DeleteObjectVersion",
        Kind::DeleteObject | Kind::DeleteObjects => "s3:DeleteObject",
        Kind::AbortUpload => "s3:AbortMultipartUpload",
        other => panic!("{other:?}: {} {}?{}", seen.method, seen.path, seen.query),
    }
}

#[test]
fn the_rights_that_operations_lists_are_enough() {
    let json: Vec<Value> = blocks("json").iter().map(|block| serde_json::from_str(block).expect("JSON")).collect();
    let [policy, lifecycle] = json.as_slice() else { panic!("{} blocks of JSON", json.len()) };
    assert_eq!(lifecycle["Rules"][0]["AbortIncompleteMultipartUpload"]["DaysAfterInitiation"], 7);
    let [bucket, objects] = policy["Statement"].as_array().unwrap().as_slice() else { panic!("{policy}") };
    assert_eq!((&bucket["Effect"], &objects["Effect"]), (&"Allow".into(), &"Allow".into()));
    let below = objects["Resource"].as_str().unwrap();
    assert_eq!(below.strip_suffix("/site/*").map(str::to_owned), bucket["Resource"].as_str().map(str::to_owned));
    let allowed =
        |action: &str| bucket["Action"] == action || objects["Action"].as_array().unwrap().contains(&action.into());
    for server in servers::all() {
        let (scene, proxy) = (Scene::on(server), Proxy::before(server.address));
        let prune = "retention: {prune: {enabled: true, keep_latest: 1}}, reconciliation: {mode: merge}";
        let site = format!("id: www, {}, {prune}", scene.s3_through(proxy.address, "site"));
        scene.configure("backend: local, path: in", &[&site]);
        let at = "-c site.yml --pipeline reports --destination www --bundle-path report";
        let large = "0123456789abcdef".repeat(4 * 1024 * 1024 + 1);
        scene.bundle("in/report", 1, &[("a.txt", "a"), ("b.txt", "b"), ("c.txt", "c"), ("large.bin", &large)]);
        assert_eq!(scene.publish("", 0), ["publish_new"]);
        scene.bundle("in/report", 2, &[("a.txt", "A")]);
        assert_eq!(scene.publish("", 0), ["replace_older"]);
        scene.run(PRUNE, &format!("{at} --apply"), 0);
        scene.run(RECONCILE_STATE, at, 0);
        for seen in proxy.seen() {
            assert!(allowed(right(&seen)), "{seen:?}");
            let prefix = format!("{}site/", scene.place.prefix);
            let about = if seen.key.is_empty() { seen.parameter("prefix").unwrap_or(prefix.clone()) } else { seen.key };
            assert!(about.starts_with(&prefix), "{about}");
        }
    }
}
