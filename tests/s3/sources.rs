//! Bundles that lie in a bucket.

use crate::scene::{INSPECT, RUN, Scene, VALIDATE, files, outcomes, texts};
use crate::servers;
use crate::servers::fault::Fault;
use crate::servers::proxy::{Kind, Proxy};

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

#[test]
fn an_object_is_read_once_for_all_destinations_and_not_at_all_where_nothing_changed() {
    for server in servers::all() {
        let scene = Scene::on(server);
        let proxy = Proxy::before(server.address);
        let targets: Vec<String> = (0..3).map(|n| format!("id: d{n}, backend: local, path: out{n}")).collect();
        let targets: Vec<&str> = targets.iter().map(String::as_str).collect();
        scene.configure(&scene.s3_through(proxy.address, "in"), &targets);
        scene.bundle_there("in/june/", 1, JUNE).bundle_there("in/july/", 2, JULY);
        let read = || {
            let seen = proxy.seen().into_iter().filter(|seen| seen.kind == Kind::GetObject);
            let mut keys: Vec<String> = seen.map(|seen| seen.key[scene.place.prefix.len()..].to_owned()).collect();
            proxy.forget();
            keys.sort_unstable();
            keys
        };
        let manifests = ["in/july/manifest.json", "in/june/manifest.json"];
        assert_eq!(scene.publish("", 0), ["publish_new"; 6]);
        assert_eq!(
            read(),
            ["in/july/index.html", manifests[0], "in/june/data/june.csv", "in/june/index.html", manifests[1]]
        );
        assert_eq!(scene.publish("", 0), ["skip_same"; 6]);
        assert_eq!(read(), manifests);
    }
}

/// A place whose server is waited for only shortly.
fn impatient(scene: &Scene, proxy: &Proxy) -> String {
    format!("{}, concurrency: 4, timeout: 1s", scene.s3_through(proxy.address, "in"))
}

#[test]
fn a_server_that_falls_silent_is_not_waited_for_with_every_file() {
    let Some(server) = servers::all().pop() else { return };
    let scene = Scene::on(server);
    let proxy = Proxy::before(server.address);
    scene.configure(&impatient(&scene, &proxy), &["id: disk, backend: local, path: out"]);
    let names: Vec<String> = (0..40).map(|n| format!("page{n:02}.html")).collect();
    let pages: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "<p>\n")).collect();
    scene.bundle_there("in/june/", 1, &pages);
    for program in [VALIDATE, RUN] {
        // The manifest is read, and some of the pages.
        proxy.fault_after(6, usize::MAX, Fault::Silence, |seen| seen.kind == Kind::GetObject);
        let args = if program == VALIDATE { "-c site.yml --pipeline reports" } else { "-c site.yml" };
        let document = scene.run(program, args, 1);
        let errors = match program {
            VALIDATE => &document["bundles"][0]["errors"],
            _ => &document["pipelines"][0]["destinations"][0]["error"]["detail"],
        };
        let codes = texts(errors, "code");
        assert!((1..=4).contains(&codes.len()) && codes.iter().all(|code| *code == "timeout"), "{document}");
        // Two tries for each of those that were being read.
        assert!(proxy.count(Kind::GetObject) <= 6 + 2 * 4, "{:?}", proxy.counts());
        proxy.forget();
    }
    assert!(!scene.path("out/june").exists());
}

#[test]
fn a_server_that_falls_silent_between_manifests_fails_the_source() {
    let Some(server) = servers::all().pop() else { return };
    let scene = Scene::on(server);
    let proxy = Proxy::before(server.address);
    scene.configure(&impatient(&scene, &proxy), &["id: disk, backend: local, path: out"]);
    (1..=20).for_each(|day| {
        scene.bundle_there(&format!("in/{day}/"), day, JULY);
    });
    proxy.fault_after(5, usize::MAX, Fault::Silence, |seen| seen.kind == Kind::GetObject);
    let document = scene.run(RUN, "-c site.yml", 1);
    assert_eq!(document["pipelines"][0]["error"]["code"], "timeout", "{document}");
    assert!(proxy.count(Kind::GetObject) <= 5 + 2 * 4, "{:?}", proxy.counts());
    assert!(!scene.path("out").exists());
}
