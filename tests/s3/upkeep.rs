//! Repair and retention in buckets.

use crate::scene::{PRUNE, RECONCILE_STATE, Scene, files, texts};
use crate::servers;

const JUNE: &[(&str, &str)] = &[("data/june.csv", "a,b\n"), ("index.html", "<h1>June</h1>\n")];
const AT: &str = "-c site.yml --pipeline reports --destination www --bundle-path report";

fn published(server: &'static servers::Server, more: &str) -> Scene {
    let scene = Scene::on(server);
    scene.configure("backend: local, path: in", &[&format!("id: www, {}{more}", scene.s3("site"))]);
    scene.bundle("in/report", 1, JUNE);
    assert_eq!(scene.publish("", 0), ["publish_new"]);
    scene
}

#[test]
fn records_of_what_a_stranger_deleted_are_dropped() {
    for server in servers::all() {
        let scene = published(server, "");
        scene.place.delete("site/report/data/june.csv");
        scene.place.put("site/report/notes.txt", b"mine");
        let before = scene.place.tree();
        let document = scene.run(RECONCILE_STATE, &format!("{AT} --dry-run"), 0);
        assert_eq!(texts(&document["missing"], ""), ["data/june.csv"]);
        assert_eq!(texts(&document["unmanaged"], ""), ["notes.txt"]);
        assert_eq!((&document["checked"], &document["backend"]), (&2.into(), &"s3".into()));
        assert_eq!(document["root"], format!("s3://bucket/{}site", scene.place.prefix));
        assert_eq!(scene.place.tree(), before);
        assert_eq!(scene.run(RECONCILE_STATE, AT, 0)["changed"], true);
        assert_eq!(texts(&scene.state("site/report/")["outputs"], "path"), ["index.html"]);
        assert_eq!(scene.run(RECONCILE_STATE, AT, 0)["changed"], false);
        assert_eq!(
            scene.place.keys(),
            [".distributor.json", "index.html", "notes.txt"].map(|n| format!("site/report/{n}"))
        );
    }
}

#[test]
fn the_places_that_have_a_state_are_named_where_none_is_meant() {
    for server in servers::all() {
        let scene = published(server, "");
        let args = "-c site.yml --pipeline reports --destination www";
        let document = scene.run(RECONCILE_STATE, args, 1);
        assert_eq!(document["error"]["code"], "no_state");
        assert!(document["error"]["message"].as_str().unwrap().contains("report"), "{}", document["error"]);
    }
}

#[test]
fn outputs_that_have_served_their_time_are_deleted() {
    for server in servers::all() {
        let merge = ", reconciliation: {mode: merge}, retention: {prune: {enabled: true, keep_latest: 1}}";
        let scene = published(server, merge);
        scene.bundle("in/report", 2, &[("index.html", "<h1>July</h1>\n")]);
        // An output's age is told in whole seconds.
        std::thread::sleep(std::time::Duration::from_millis(1100));
        assert_eq!(scene.publish("", 0), ["replace_older"]);
        scene.place.put("site/report/notes.txt", b"mine");
        let before = scene.place.tree();
        let document = scene.run(PRUNE, &format!("{AT} --dry-run"), 0);
        assert_eq!(texts(&document["planned"], "path"), ["data/june.csv"]);
        assert_eq!(scene.place.tree(), before);
        let document = scene.run(PRUNE, &format!("{AT} --apply"), 0);
        assert_eq!((texts(&document["deleted"], ""), &document["kept"]), (vec!["data/june.csv"], &1.into()));
        assert_eq!(scene.there("site/report/"), files(&[("index.html", "<h1>July</h1>\n"), ("notes.txt", "mine")]));
        assert_eq!(texts(&scene.state("site/report/")["outputs"], "path"), ["index.html"]);
        assert_eq!(scene.run(PRUNE, &format!("{AT} --apply"), 0)["changed"], false);
        assert_eq!(scene.place.keys().len(), 3, "{:?}", scene.place.keys());
        assert_eq!(scene.publish("", 0), ["skip_same"]);
    }
}
