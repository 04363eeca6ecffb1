//! Runs that are asked to stop: what is past its commit point comes to its end, and of the rest nothing is left.

use std::process::{Output, Stdio};
use std::time::{Duration, Instant};

use crate::scene::{RUN, Scene, files};
use crate::servers::fault::Fault;
use crate::servers::proxy::{Kind, Proxy, Seen};
use crate::servers::{self, Server};

const JUNE: &[(&str, &str)] = &[("data.csv", "a,b\n"), ("index.html", "<h1>June</h1>\n")];

/// Runs until a request comes that `is_it`, which is answered late, and asks the run to stop before that.
fn stopped(scene: &Scene, proxy: &Proxy, is_it: fn(&Seen) -> bool) -> Output {
    proxy.fault(1, Fault::Delay(Duration::from_secs(1)), is_it);
    let mut command = scene.command(RUN, "-c site.yml --format json");
    let run = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let begun = Instant::now();
    while !proxy.seen().iter().any(is_it) {
        assert!(begun.elapsed() < Duration::from_mins(1), "{:?}", proxy.counts());
        std::thread::sleep(Duration::from_millis(5));
    }
    let pid = rustix::process::Pid::from_child(&run);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    let begun = Instant::now();
    let output = run.wait_with_output().unwrap();
    assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
    output
}

fn scene(server: &'static Server) -> (Scene, Proxy) {
    let (scene, proxy) = (Scene::on(server), Proxy::before(server.address));
    let site = format!("id: www, {}", scene.s3_through(proxy.address, "site"));
    scene.configure("backend: local, path: in", &[&site]);
    (scene, proxy)
}

#[test]
fn a_publication_past_its_commit_point_comes_to_its_end() {
    for server in servers::all() {
        for is_it in
            [(|seen| seen.kind == Kind::PutObject && seen.key.ends_with("a/index.html")) as fn(&Seen) -> bool, |seen| {
                seen.kind == Kind::PutObject && seen.key.ends_with("a/.distributor.json")
            }]
        {
            let (scene, proxy) = scene(server);
            scene.bundle("in/a", 1, JUNE).bundle("in/b", 2, JUNE);
            let output = stopped(&scene, &proxy, is_it);
            let document = scene.document(&output, 143);
            let records = &document["pipelines"][0]["destinations"];
            assert_eq!((&records[0]["action"], &records[0]["error"]), (&"publish_new".into(), &().into()));
            assert_eq!(records[1]["error"]["code"], "interrupted");
            assert_eq!(
                scene.there("site/"),
                files(JUNE).into_iter().map(|(name, text)| (format!("a/{name}"), text)).collect()
            );
            assert_eq!(scene.place.keys().len(), JUNE.len() + 1, "{:?}", scene.place.keys());
        }
    }
}

#[test]
fn a_publication_before_its_commit_point_leaves_nothing() {
    let big = "x".repeat(70 << 20);
    for server in servers::all() {
        for is_it in [
            (|seen| seen.kind == Kind::PutObject && seen.key.contains(".distributor.lock-")) as fn(&Seen) -> bool,
            |seen| seen.kind == Kind::List && seen.parameter("prefix").unwrap().contains(".distributor"),
            |seen| seen.kind == Kind::CreateUpload,
            |seen| seen.kind == Kind::UploadPart,
        ] {
            let (scene, proxy) = scene(server);
            scene.bundle("in/a", 1, &[("big.txt", big.as_str()), ("index.html", "<h1>June</h1>\n")]);
            let document = scene.document(&stopped(&scene, &proxy, is_it), 143);
            assert_eq!(document["pipelines"][0]["destinations"][0]["error"]["code"], "interrupted");
            assert_eq!((scene.place.keys(), scene.place.uploads()), (Vec::new(), Vec::new()), "{:?}", proxy.counts());
        }
    }
}
