//! Bundles that lie in a bucket.

use crate::scene::{INSPECT, RUN, Scene, VALIDATE, files, outcomes, texts};
use crate::servers;

const JUNE: &[(&str, &str)] = &[("data/june.csv", "a,b\n"), ("index.html", "<h1>June</h1>\n")];
const JULY: &[(&str, &str)] = &[("index.html", "<h1>July</h1>\n")];

#[test]
fn a_bucket_is_published_to_a_directory_and_to_another_prefix() {
    for server in servers::all() {
        let scene = Scene::on(server);
        let destinations = ["id: disk, backend: local, path: out", &format!("id: www, {}", scene.s3("site"))];
        scene.configure(&scene.s3("in"), &destinations);
        let text = std::fs::read_to_string(scene.path("site.yml")).unwrap();
        scene.write("site.yml", &format!("staging_directory: staging\n{text}"));
        scene.bundle_there("in/2026/06/", 1, JUNE).bundle_there("in/2026/07/", 2, JULY);
        // Under work: it has no manifest yet.
        scene.place.put("in/2026/08/index.html", b"<h1>August</h1>\n");
        let before = scene.place.tree();
        assert_eq!(scene.publish("--dry-run", 0), ["publish_new"; 4]);
        assert!(!scene.path("out").exists() && scene.place.tree() == before);
        let document = scene.run(RUN, "-c site.yml", 0);
        let records = &document["pipelines"][0]["destinations"];
        assert_eq!(texts(records, "bundle_path"), ["2026/06", "2026/06", "2026/07", "2026/07"]);
        assert_eq!(outcomes(&document), ["publish_new"; 4]);
        assert_eq!((scene.there("site/2026/06/"), scene.there("site/2026/07/")), (files(JUNE), files(JULY)));
        assert_eq!(std::fs::read_to_string(scene.path("out/2026/06/data/june.csv")).unwrap(), "a,b\n");
        assert_eq!(scene.publish("", 0), ["skip_same"; 4]);
        let fetched = std::fs::read_dir(scene.path("staging")).unwrap().count();
        assert_eq!(fetched, 0, "what was fetched is gone");
        assert!(scene.place.at("in").tree().into_iter().all(|(key, bytes)| before[&format!("in/{key}")] == bytes));
    }
}

#[test]
fn a_bucket_may_be_one_bundle() {
    for server in servers::all() {
        let scene = Scene::on(server);
        scene.configure(&scene.s3("in/"), &["id: disk, backend: local, path: out"]);
        scene.bundle_there("in/", 1, JUNE);
        assert_eq!(scene.publish("", 0), ["publish_new"]);
        assert_eq!(std::fs::read_to_string(scene.path("out/index.html")).unwrap(), "<h1>June</h1>\n");
    }
}

#[test]
fn a_source_is_checked_and_shown() {
    for server in servers::all() {
        let scene = Scene::on(server);
        scene.configure(&scene.s3("in"), &["id: disk, backend: local, path: out"]);
        scene.bundle_there("in/june/", 1, JUNE).bundle_there("in/july/", 2, JULY);
        let document = scene.run(INSPECT, "-c site.yml --pipeline reports", 0);
        assert_eq!(texts(&document["bundles"], "bundle_path"), ["july", "june"]);
        assert_eq!(texts(&document["bundles"][1]["files"], "path"), ["data/june.csv", "index.html"]);
        assert_eq!(scene.run(VALIDATE, "-c site.yml --pipeline reports", 0)["bundles"][0]["valid"], true);
        scene.place.put("in/june/index.html", b"<h1>JUNE</h1>\n");
        scene.place.delete("in/june/data/june.csv");
        scene.place.put("in/june/unlisted.txt", b"more");
        let document = scene.run(VALIDATE, "-c site.yml --pipeline reports", 1);
        let june = &document["bundles"][1];
        assert_eq!((&june["valid"], texts(&june["warnings"], "code")), (&false.into(), vec!["unlisted_file"]));
        let mut codes = texts(&june["errors"], "code");
        codes.sort_unstable();
        assert_eq!(codes, ["digest_mismatch", "missing_file"]);
        // The other one is published, and of this one nothing.
        for args in ["--dry-run", ""] {
            assert_eq!(scene.publish(args, 1), ["publish_new", "invalid_bundle"], "{args}");
        }
        assert!(scene.path("out/july/index.html").exists() && !scene.path("out/june/index.html").exists());
    }
}

#[test]
fn a_source_without_bundles_is_a_warning_and_one_that_is_not_there_an_error() {
    for server in servers::all() {
        let scene = Scene::on(server);
        let source = scene.s3("in");
        scene.configure(&source, &["id: disk, backend: local, path: out"]);
        let document = scene.run(RUN, "-c site.yml", 0);
        assert_eq!(texts(&document["warnings"], "code"), ["no_bundles"]);
        scene.configure(&source.replace("bucket: bucket", "bucket: nowhere"), &["id: disk, backend: local, path: out"]);
        let document = scene.run(RUN, "-c site.yml", 1);
        let error = &document["pipelines"][0]["error"];
        assert!(error["message"].as_str().unwrap().contains("s3://nowhere/"), "{error}");
        let code = error["code"].as_str().unwrap();
        assert!(["not_found", "permission_denied"].contains(&code), "{error}");
        for program in [VALIDATE, INSPECT] {
            assert_eq!(scene.run(program, "-c site.yml --pipeline reports", 1)["error"]["code"], code);
        }
    }
}
