//! Publishing to buckets.

use serde_json::Value;

use crate::scene::{RUN, Scene, files, outcomes, texts};
use crate::servers;

const JUNE: &[(&str, &str)] = &[("data/june.csv", "a,b\n"), ("index.html", "<h1>June</h1>\n")];
const JULY: &[(&str, &str)] = &[("data/july.csv", "c,d\n"), ("index.html", "<h1>July</h1>\n")];

#[test]
fn a_bundle_is_looked_at_published_skipped_and_replaced() {
    for server in servers::all() {
        let scene = Scene::on(server);
        let site = format!("id: www, {}, links: {{base_url: 'https://www.example.org/'}}", scene.s3("site"));
        scene.configure("backend: local, path: in", &[&site]).bundle("in/report", 1, JUNE);
        assert_eq!(scene.publish("--dry-run --detailed-exitcode", 4), ["publish_new"]);
        assert_eq!(scene.place.keys(), Vec::<String>::new(), "a dry run writes nothing");
        let document = scene.run(RUN, "-c site.yml", 0);
        let record = &document["pipelines"][0]["destinations"][0];
        assert_eq!((&record["action"], &record["backend"]), (&"publish_new".into(), &"s3".into()));
        assert_eq!(record["primary_url"], "https://www.example.org/report/index.html");
        assert_eq!(record["bytes_written"], 18);
        assert_eq!(scene.there("site/report/"), files(JUNE));
        assert_eq!(scene.state("site/report/")["source"]["manifest"]["created"], "2026-06-01T12:00:00Z");
        let before = scene.place.tree();
        assert_eq!(scene.publish("", 0), ["skip_same"]);
        assert_eq!(scene.publish("--dry-run --detailed-exitcode", 0), ["skip_same"]);
        assert_eq!(scene.place.tree(), before, "a run that skips writes nothing, and leaves no lock");
        scene.bundle("in/report", 2, JULY);
        let document = scene.run(RUN, "-c site.yml --dry-run", 0);
        assert_eq!(texts(&document["pipelines"][0]["destinations"][0]["deleted"], ""), ["data/june.csv"]);
        assert_eq!(scene.place.tree(), before);
        assert_eq!(scene.publish("", 0), ["replace_older"]);
        assert_eq!(scene.there("site/report/"), files(JULY));
        // Nothing of ours stays but the state.
        assert_eq!(scene.place.keys().len(), JULY.len() + 1);
        scene.bundle("in/report", 1, JUNE);
        assert_eq!(scene.publish("", 0), ["skip_destination_newer"]);
    }
}

#[test]
fn a_run_in_text_names_the_place() {
    for server in servers::all() {
        let scene = Scene::on(server);
        // A name that a server's error has is a name as any other.
        scene.configure("backend: local, path: in", &[&format!("id: www, {}", scene.s3("NoSuchBucket"))]);
        scene.bundle("in/report", 1, JUNE);
        scene.place.put("NoSuchBucket/report/notes.txt", b"mine");
        let output = scene.output(RUN, "-c site.yml");
        assert_eq!(output.status.code(), Some(1));
        let said = String::from_utf8(output.stderr).unwrap();
        let place = format!("s3://bucket/{}NoSuchBucket/report", scene.place.prefix);
        assert!(said.contains(&place) && said.contains("[unmanaged_content]"), "{said}");
        assert!(said.contains("first notes.txt"), "{said}");
    }
}

#[test]
fn a_bucket_and_a_directory_get_the_same_bundle() {
    for server in servers::all() {
        let scene = Scene::on(server);
        let (site, archive) = (scene.s3("site"), scene.s3("archive"));
        let destinations = [
            &format!("id: www, {site}"),
            "id: disk, backend: local, path: out",
            &format!("id: archive, {archive}, path_mapping: fixed"),
        ];
        scene.configure("backend: local, path: in", &destinations);
        scene.bundle("in/a", 1, JUNE).bundle("in/b", 2, JULY);
        let document = scene.run(RUN, "-c site.yml", 0);
        assert_eq!(outcomes(&document), ["publish_new"; 5]);
        let backends = texts(&document["pipelines"][0]["destinations"], "backend");
        assert_eq!(backends, ["s3", "local", "s3", "local", "s3"], "the order of bundles, then of the configuration");
        assert_eq!((scene.there("site/a/"), scene.there("site/b/")), (files(JUNE), files(JULY)));
        assert_eq!(scene.there("archive/"), files(JULY), "the newest, at the root itself");
        assert_eq!(std::fs::read_to_string(scene.path("out/b/index.html")).unwrap(), "<h1>July</h1>\n");
        // One that is refused stops no other.
        scene.place.put("site/a/notes.txt", b"mine");
        scene.bundle("in/a", 3, JULY);
        assert_eq!(
            scene.publish("", 1),
            ["unmanaged_content", "replace_older", "replace_older", "skip_same", "skip_same"]
        );
        assert_eq!(scene.there("site/a/").len(), JUNE.len() + 1);
    }
}

#[test]
fn a_prefix_ends_where_it_ends() {
    for server in servers::all() {
        let scene = Scene::on(server);
        let neighbours = ["site.html", "site-2/index.html", "site", "sitf/x", "a/site/x"];
        for key in neighbours {
            scene.place.put(key, b"mine");
        }
        // With or without the slash.
        for (day, prefix) in [(1, "site"), (2, "site/")] {
            let site = format!("id: www, {}, path_mapping: fixed", scene.s3(prefix));
            scene.configure("backend: local, path: in", &[&site]).bundle("in/report", day, JUNE);
            assert_eq!(scene.publish("", 0), [["publish_new", "replace_older"][usize::from(day) - 1]]);
        }
        assert_eq!(scene.there("site/"), files(JUNE));
        scene.place.put("site/notes.txt", b"theirs");
        scene.bundle("in/report", 3, JULY);
        assert_eq!(scene.publish("", 1), ["unmanaged_content"]);
        assert_eq!(scene.publish("--force", 0), ["force_replace"]);
        assert_eq!(scene.there("site/"), files(JULY));
        assert!(neighbours.iter().all(|key| scene.place.bytes(key) == b"mine"));
    }
}

#[test]
fn a_bucket_without_a_prefix_is_a_place_as_well() {
    let Some(server) = servers::moto::server() else { return };
    let scene = Scene::at(servers::Place { prefix: String::new(), ..server.versioned("whole") });
    let site = format!("id: www, {}", scene.s3("").replace("prefix: '', ", ""));
    scene.configure("backend: local, path: in", &[&site]).bundle("in/report", 1, JUNE);
    assert_eq!(scene.publish("", 0), ["publish_new"]);
    assert_eq!(scene.there("report/"), files(JUNE));
    scene.bundle("in/report", 2, JULY);
    assert_eq!(scene.publish("", 0), ["replace_older"]);
    assert_eq!(scene.there("report/"), files(JULY));
    // What was replaced and what was deleted is kept by the bucket, not by us.
    let page = scene.place.versions("report/index.html");
    let gone = scene.place.versions("report/data/june.csv");
    assert_eq!(((page.objects, page.deletions), (gone.objects, gone.deletions)), ((2, 0), (1, 1)));
}

#[test]
fn force_lists_what_goes_and_takes_it() {
    for server in servers::all() {
        let scene = Scene::on(server);
        scene.configure("backend: local, path: in", &[&format!("id: www, {}", scene.s3("site"))]);
        scene.bundle("in/report", 1, JUNE);
        for (key, text) in [("draft/x.html", "mine"), ("index.html", "mine"), ("empty/", "")] {
            scene.place.put(&format!("site/report/{key}"), text.as_bytes());
        }
        let before = scene.place.tree();
        let document = scene.run(RUN, "-c site.yml --dry-run --force", 0);
        let force = &document["pipelines"][0]["destinations"][0]["force"];
        assert_eq!(texts(&force["unmanaged"], ""), ["draft/x.html", "empty/", "index.html"]);
        assert_eq!(scene.place.tree(), before);
        assert_eq!(scene.publish("--force", 0), ["force_replace"]);
        assert_eq!(scene.there("site/report/"), files(JUNE));
    }
}

#[test]
fn what_other_programs_make_for_directories_is_in_nobodys_way() {
    for server in servers::all() {
        let scene = Scene::on(server);
        scene.configure("backend: local, path: in", &[&format!("id: www, {}", scene.s3("site"))]);
        let markers = ["site/", "site/report/", "site/report/data/", "site/report/other/"];
        for key in markers {
            scene.place.put(key, b"");
        }
        scene.bundle("in/report", 1, JUNE);
        assert_eq!(scene.publish("", 0), ["publish_new"]);
        scene.bundle("in/report", 2, &[("index.html", "<h1>July</h1>\n")]);
        assert_eq!(scene.publish("", 0), ["replace_older"]);
        let keys = scene.place.keys();
        assert!(markers.iter().all(|marker| keys.iter().any(|key| key == marker)), "{keys:?}");
        assert_eq!(keys.len(), markers.len() + 2, "{keys:?}");
    }
}

#[test]
fn what_another_pipeline_published_is_taken_over_only_where_that_is_configured() {
    for server in servers::all() {
        let scene = Scene::on(server);
        let site = scene.s3("site");
        scene.configure("backend: local, path: in", &[&format!("id: old, {site}")]).bundle("in/report", 1, JUNE);
        assert_eq!(scene.publish("", 0), ["publish_new"]);
        scene.configure("backend: local, path: in", &[&format!("id: new, {site}")]).bundle("in/report", 2, JULY);
        assert_eq!(scene.publish("", 1), ["identity_mismatch"]);
        assert_eq!(scene.there("site/report/"), files(JUNE));
        scene.configure("backend: local, path: in", &[&format!("id: new, {site}, takeover: {{mode: managed}}")]);
        assert_eq!(scene.publish("--dry-run", 0), ["replace_takeover"]);
        assert_eq!(scene.publish("", 0), ["replace_takeover"]);
        assert_eq!(scene.there("site/report/"), files(JULY));
        assert_eq!(scene.state("site/report/")["destination_id"], "new");
    }
}

#[test]
fn what_was_lost_or_edited_is_published_again_when_asked_for() {
    for server in servers::all() {
        let scene = Scene::on(server);
        scene.configure("backend: local, path: in", &[&format!("id: www, {}", scene.s3("site"))]);
        scene.bundle("in/report", 1, JUNE);
        scene.publish("", 0);
        scene.place.delete("site/report/data/june.csv");
        scene.place.put("site/report/index.html", b"edited");
        assert_eq!(scene.publish("", 0), ["skip_same"]);
        assert_eq!(scene.publish("--republish --dry-run", 0), ["republish"]);
        assert_eq!(scene.publish("--republish", 0), ["republish"]);
        assert_eq!(scene.there("site/report/"), files(JUNE));
    }
}

#[test]
fn owners_share_a_place_and_a_merge_retains() {
    for server in servers::all() {
        let scene = Scene::on(server);
        let site = format!("{}, state: {{mode: shared_root}}", scene.s3("site"));
        let pipeline = |id: &str, more: &str| {
            let source = format!("source: {{backend: local, path: {id}}}");
            format!("  - {{id: {id}, {source}, destinations: [{{id: www, {site}{more}}}]}}\n")
        };
        let two = pipeline("home", "") + &pipeline("blog", ", reconciliation: {mode: merge}");
        scene.write("site.yml", &format!("pipelines:\n{two}"));
        scene.bundle("home", 1, JUNE).bundle("blog", 1, &[("blog/1.html", "one")]);
        assert_eq!(scene.publish("", 0), ["publish_new", "publish_new"]);
        scene.bundle("home", 2, &[("index.html", "home")]).bundle("blog", 2, &[("blog/2.html", "two")]);
        assert_eq!(scene.publish("", 0), ["replace_older", "replace_older"]);
        let both = [("blog/1.html", "one"), ("blog/2.html", "two"), ("index.html", "home")];
        assert_eq!(scene.there("site/"), files(&both));
        assert_eq!(texts(&scene.state("site/")["owners"], "pipeline_id"), ["home", "blog"]);
        scene.bundle("blog", 3, &[("index.html", "theirs")]);
        assert_eq!(scene.publish("", 1), ["skip_same", "path_owned_by_other"]);
        assert_eq!(scene.there("site/"), files(&both));
    }
}

#[test]
fn pages_from_markdown_arrive_as_pages() {
    for server in servers::all() {
        let scene = Scene::on(server);
        let more = "outputs: {policy: generated_plus_assets}, transforms: [{type: markdown_to_html}], \
                    cache_control: [{match: ['*.html'], value: no-cache}, {match: ['img/**'], value: max-age=86400}]";
        scene.configure("backend: local, path: in", &[&format!("id: www, {}, {more}", scene.s3("site"))]);
        let text = "# Grüße\n\n[more](more.md) ![x](img/x.svg)\n";
        scene.bundle("in", 1, &[("index.md", text), ("more.md", "more"), ("img/x.svg", "<svg/>"), ("x.bin", "x")]);
        assert_eq!(scene.publish("", 0), ["publish_new"]);
        let header = |key: &str, name: &str| {
            scene.place.head(&format!("site/{key}")).unwrap().header(name).map(str::to_owned).unwrap_or_default()
        };
        assert_eq!(header("index.html", "content-type"), "text/html; charset=utf-8");
        assert_eq!(header("img/x.svg", "content-type"), "image/svg+xml; charset=utf-8");
        assert_eq!(header("x.bin", "content-type"), "application/octet-stream");
        let caching = ["index.html", "img/x.svg", "x.bin"].map(|key| header(key, "cache-control"));
        assert_eq!(caching, ["no-cache", "max-age=86400", ""]);
        assert_eq!(header(".distributor.json", "cache-control"), "no-store");
        let page = &scene.there("site/")["index.html"];
        assert!(page.contains("<title>Grüße</title>") && page.contains("href=\"more.html\""), "{page}");
        assert!(!scene.there("site/").contains_key("index.md"));
    }
}

#[test]
fn a_storage_class_is_passed_on() {
    let Some(server) = servers::moto::server() else { return };
    let scene = Scene::on(server);
    let site = format!("id: www, {}, storage_class: STANDARD_IA", scene.s3("site"));
    scene.configure("backend: local, path: in", &[&site]).bundle("in/report", 1, JUNE);
    assert_eq!(scene.publish("", 0), ["publish_new"]);
    let object = scene.place.head("site/report/index.html").unwrap();
    assert_eq!(object.header("x-amz-storage-class"), Some("STANDARD_IA"));
}

#[test]
fn a_large_file_goes_in_parts_and_leaves_no_upload_open() {
    for server in servers::all() {
        let scene = Scene::on(server);
        scene.configure("backend: local, path: in", &[&format!("id: www, {}", scene.s3("site"))]);
        let line = "0123456789abcdef".repeat(4096);
        scene.bundle("in/report", 1, &[("index.html", "<h1>June</h1>\n"), ("large.bin", &line.repeat(1025))]);
        let document = scene.run(RUN, "-c site.yml", 0);
        let written = &document["pipelines"][0]["destinations"][0]["bytes_written"];
        assert_eq!(written, &Value::from(64 * 1024 * 1024 + 64 * 1024 + 14));
        assert!(scene.place.bytes("site/report/large.bin") == line.repeat(1025).into_bytes());
        assert_eq!((scene.place.uploads(), scene.place.keys().len()), (vec![], 3));
    }
}
