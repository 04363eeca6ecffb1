//! Runs that are killed in the midst of a publication, and runs that meet another one.

use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::scene::{RUN, Scene, files, texts};
use crate::servers::fault::Fault;
use crate::servers::proxy::{Kind, Proxy};
use crate::servers::{self, Server};

const JUNE: &[(&str, &str)] = &[("css/site.css", "june"), ("data.csv", "a,b\n"), ("index.html", "<h1>June</h1>\n")];
const JULY: &[(&str, &str)] = &[("css/site.css", "july"), ("index.html", "<h1>July</h1>\n"), ("new.csv", "c,d\n")];

/// A scene where a run was killed while it put the page to start with, after everything else.
fn killed(server: &'static Server, is_replaced: bool) -> Scene {
    let (scene, proxy) = (Scene::on(server), Proxy::before(server.address));
    let site = |inside: &str| format!("id: www, {inside}");
    if is_replaced {
        scene.configure("backend: local, path: in", &[&site(&scene.s3("site"))]).bundle("in", 1, JUNE);
        assert_eq!(scene.publish("", 0), ["publish_new"]);
    }
    scene.configure("backend: local, path: in", &[&site(&scene.s3_through(proxy.address, "site"))]);
    scene.bundle("in", 2, JULY);
    let is_page = |seen: &servers::proxy::Seen| seen.kind == Kind::PutObject && seen.key.ends_with("index.html");
    proxy.fault(1, Fault::Silence, is_page);
    let mut run = scene.command(RUN, "-c site.yml").stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let begun = Instant::now();
    while !proxy.seen().iter().any(is_page) {
        assert!(begun.elapsed() < Duration::from_secs(30) && run.try_wait().unwrap().is_none());
        std::thread::sleep(Duration::from_millis(10));
    }
    run.kill().unwrap();
    run.wait().unwrap();
    scene.configure("backend: local, path: in", &[&site(&scene.s3("site"))]);
    scene
}

/// The names of ours that lie there.
fn ours(scene: &Scene) -> Vec<String> {
    let name = |key: &String| {
        let name = key.strip_prefix("site/.distributor.")?;
        Some(name.split('-').next().unwrap().to_owned())
    };
    scene.place.keys().iter().filter_map(name).collect()
}

#[test]
fn what_a_killed_run_left_is_finished_by_the_next_one_of_its_owner() {
    for server in servers::all() {
        for is_replaced in [false, true] {
            let scene = killed(server, is_replaced);
            let state = if is_replaced { vec!["json"] } else { vec![] };
            assert_eq!(ours(&scene), [&["journal"][..], &state, &["lock", "lock"]].concat());
            let action = if is_replaced { "replace_older" } else { "publish_new" };
            let document = scene.run(RUN, "-c site.yml --dry-run", 0);
            assert_eq!(texts(&document["warnings"], "code"), ["recovery_pending"]);
            assert_eq!(texts(&document["pipelines"][0]["destinations"], "action"), [action]);
            assert_eq!(scene.publish("", 0), [action]);
            assert_eq!((scene.there("site/"), ours(&scene)), (files(JULY), vec!["json".to_owned()]));
        }
    }
}

#[test]
fn a_return_to_the_older_bundle_after_a_kill_is_no_skip() {
    for server in servers::all() {
        let scene = killed(server, true);
        assert_eq!(scene.there("site/")["css/site.css"], "july", "overwritten before the kill");
        scene.bundle("in", 1, JUNE);
        assert_eq!(scene.publish("", 0), ["republish"]);
        assert_eq!((scene.there("site/"), ours(&scene)), (files(JUNE), vec!["json".to_owned()]));
        assert_eq!(scene.publish("", 0), ["skip_same"]);
    }
}

#[test]
fn another_owner_leaves_the_mark_of_the_first_in_place() {
    for server in servers::all() {
        let scene = killed(server, true);
        let thief = format!("id: thief, {}", scene.s3("site"));
        scene.configure("backend: local, path: other", &[&thief]).bundle("other", 3, JUNE);
        assert_eq!(scene.publish("", 1), ["identity_mismatch"]);
        assert!(ours(&scene).contains(&"journal".to_owned()));
        assert!(!scene.there("site/").contains_key("new.csv"), "what was new is taken back");
        scene.configure("backend: local, path: in", &[&format!("id: www, {}", scene.s3("site"))]);
        assert_eq!(scene.publish("", 0), ["replace_older"]);
        assert_eq!((scene.there("site/"), ours(&scene)), (files(JULY), vec!["json".to_owned()]));
    }
}

#[test]
fn a_live_lock_of_another_host_is_respected() {
    for server in servers::all() {
        let scene = Scene::on(server);
        scene.configure("backend: local, path: in", &[&format!("id: www, {}", scene.s3("site"))]);
        scene.bundle("in", 1, JUNE);
        scene.place.put("site/.distributor.lock-0123456789abcdef", b"somebody on another host");
        assert_eq!(scene.publish("--lock-timeout 0", 3), ["locked"]);
        assert_eq!(scene.there("site/").len(), 1, "it stays, and nothing else came");
        // Without its object nobody holds anything: the mark alone is a reason to look, not to wait.
        scene.place.delete("site/.distributor.lock-0123456789abcdef");
        scene.place.put("site/.distributor.lock", b"");
        assert_eq!(scene.publish("--lock-timeout 0", 0), ["publish_new"]);
        assert_eq!((scene.there("site/"), ours(&scene)), (files(JUNE), vec!["json".to_owned()]));
    }
}
