//! Runs that stand still in the midst of a publication, as when a machine sleeps, while another one goes on.

use std::process::Stdio;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::scene::{RUN, Scene, outcomes};
use crate::servers::fault::Fault;
use crate::servers::proxy::{Kind, Proxy, Seen};
use crate::servers::{self, Server};

/// Twenty files and a page, whose bytes tell of which bundle they are, and a configuration to publish them.
fn bundle(scene: &Scene, day: u8, place: &str) {
    let (names, text): (Vec<String>, _) = ((10..30).map(|at| format!("{at}.txt")).collect(), format!("{day}\n"));
    let mut files: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), text.as_str())).collect();
    files.push(("index.html", &text));
    // Each in a directory of its own: who stands still has read half of it.
    let source = format!("backend: local, path: in-{day}");
    scene.configure(&source, &[place]).bundle(&format!("in-{day}"), day, &files);
}

fn stands_still(server: &'static Server, is_replaced: bool) {
    let (scene, proxy) = (Scene::on(server), Proxy::before(server.address));
    let site = |inside: &str| format!("id: www, concurrency: 1, {inside}");
    let straight = site(&scene.s3("site"));
    if is_replaced {
        bundle(&scene, 1, &straight);
        assert_eq!(scene.publish("", 0), ["publish_new"]);
    }
    bundle(&scene, 2, &site(&scene.s3_through(proxy.address, "site")));
    let is_it = |seen: &Seen| seen.kind == Kind::PutObject && seen.key.ends_with("/20.txt");
    proxy.fault(1, Fault::Delay(Duration::from_secs(1)), is_it);
    let mut command = scene.command(RUN, "-c site.yml --format json");
    let run = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let begun = Instant::now();
    while !proxy.seen().iter().any(is_it) {
        assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", proxy.counts());
        std::thread::sleep(Duration::from_millis(5));
    }
    kill_process(Pid::from_child(&run), Signal::STOP).unwrap();

    bundle(&scene, 3, &straight);
    let action = if is_replaced { "replace_older" } else { "publish_new" };
    assert_eq!(scene.publish("", 0), [action], "{}", server.name);
    let (there, keys) = (scene.there("site/"), scene.place.keys());
    assert!(there.len() == 21 && there.values().all(|text| text == "3\n"), "{}: {there:?}", server.name);

    let before = proxy.seen().len();
    kill_process(Pid::from_child(&run), Signal::CONT).unwrap();
    let document = scene.document(&run.wait_with_output().unwrap(), 1);
    assert_eq!(outcomes(&document), ["lock_lost"], "{}", server.name);
    assert_eq!((scene.there("site/"), scene.place.keys()), (there, keys), "{}", server.name);
    let after: Vec<String> =
        proxy.seen()[before..].iter().map(|seen| format!("{} {}", seen.method, seen.key)).collect();
    let changes = after.iter().filter(|request| !request.starts_with("GET ") && !request.starts_with("HEAD "));
    assert!(changes.into_iter().all(|request| request.contains("/.distributor.lock-")), "{}: {after:?}", server.name);
    assert_eq!(scene.publish("", 0), ["skip_same"], "{}", server.name);
}

#[test]
fn a_run_that_stood_still_changes_nothing_of_who_came_after() {
    std::thread::scope(|scope| {
        for server in servers::all() {
            for is_replaced in [false, true] {
                scope.spawn(move || stands_still(server, is_replaced));
            }
        }
    });
}
