//! Memory and threads: what there is of them, and what is taken.

use std::fs::{self, File};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::scene::{BUNDLE, RUN, Scene, outcomes};
use crate::servers::{self, ACCESS_KEY, SECRET_KEY};

const MIB: u64 = 1 << 20;
/// No memory has room for the stack of a thread of this size.
const NO_THREAD: u64 = 1 << 46;

/// A bundle of files of these sizes, of zeroes that lie nowhere.
fn bundle(scene: &Scene, dir: &str, sizes: &[u64]) {
    for (at, size) in sizes.iter().enumerate() {
        scene.write(&format!("{dir}/{at:03}"), "");
        File::create(scene.path(&format!("{dir}/{at:03}"))).unwrap().set_len(*size).unwrap();
    }
    scene.run(BUNDLE, &format!("{dir} --id reports.monthly"), 0);
}

#[test]
fn without_threads_nothing_is_published_and_it_is_said_why() {
    for server in servers::all() {
        let scene = Scene::on(server);
        let site = scene.s3_at(&format!("http://localhost:{}", server.address.port()), "site");
        scene.configure("backend: local, path: in", &[&format!("id: www, {site}")]).bundle("in/x", 1, &[("a", "1")]);
        let run = |args: &str| {
            let mut command = scene.command(RUN, &format!("-c site.yml --format json --progress always {args}"));
            command.env("RUST_MIN_STACK", NO_THREAD.to_string()).output().unwrap()
        };
        assert_eq!(outcomes(&scene.document(&run("--dry-run"), 0)), ["publish_new"], "{}", server.name);
        let document = scene.document(&run(""), 1);
        assert_eq!(outcomes(&document), ["storage_error"], "{}", server.name);
        assert!(document.to_string().contains("no thread to keep a lock"), "{document}");
        let left = scene.place.keys();
        assert!(left.iter().all(|key| key == "site/x/.distributor.lock"), "{}: {left:?}", server.name);
    }
}

#[test]
fn parts_are_sent_by_as_many_threads_as_there_are() {
    let Some(server) = servers::all().pop() else { return };
    let scene = Scene::on(server);
    scene.configure("backend: local, path: in", &[&format!("id: www, {}", scene.s3("site"))]);
    bundle(&scene, "in/x", &[65 * MIB]);
    // Room for one thread, which keeps the lock; then for one more.
    for (room, status) in [(1700, 1), (2800, 0)] {
        let line = format!("ulimit -v {}; exec \"$0\" -c site.yml --format json", room * 1024);
        let mut command = scene.command("sh", "");
        let output = command.env("RUST_MIN_STACK", (1024 * MIB).to_string()).args(["-c", &line, RUN]).output().unwrap();
        let document = scene.document(&output, status);
        assert_eq!(outcomes(&document), [if status == 0 { "publish_new" } else { "storage_error" }]);
        assert_eq!(document.to_string().contains("no thread to send parts"), status == 1, "{document}");
        assert!(scene.place.uploads().is_empty());
    }
    assert_eq!(scene.place.head("site/x/000").unwrap().header("content-length"), Some("68157440"));
}

/// The most memory that a publication takes, in bytes.
fn peak(scene: &Scene) -> u64 {
    let mut command = Command::new(RUN);
    command.current_dir(scene.path("")).args(["-c", "site.yml", "--quiet"]).stdin(Stdio::null());
    let mut child = command.env("TEST_KEY_ID", ACCESS_KEY).env("TEST_SECRET_KEY", SECRET_KEY).spawn().unwrap();
    let status = format!("/proc/{}/status", child.id());
    let mut most = 0;
    let ended = loop {
        if let Some(ended) = child.try_wait().unwrap() {
            break ended;
        }
        let text = fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB"));
        most = most.max(line.map_or(0, |kib| kib.trim().parse::<u64>().unwrap() * 1024));
        std::thread::sleep(Duration::from_millis(1));
    };
    assert!(ended.success() && most > 0);
    most
}

#[test]
fn a_publication_takes_64_mib_at_most_however_many_files_and_destinations() {
    // moto keeps all in its memory.
    let Some(server) = servers::all().into_iter().find(|server| server.name == "garage") else { return };
    for (what, sizes, settings) in [
        ("two destinations", vec![66 * MIB; 2], &["", ""][..]),
        ("many requests", vec![MIB; 150], &[", concurrency: 64"]),
        ("many destinations", vec![MIB; 30], &["", "", "", ""]),
    ] {
        let scene = Scene::on(server);
        let destination = |(at, more): (usize, &&str)| format!("id: d{at}, {}{more}", scene.s3(&format!("d{at}")));
        let destinations: Vec<String> = settings.iter().enumerate().map(destination).collect();
        let destinations: Vec<&str> = destinations.iter().map(String::as_str).collect();
        scene.configure("backend: local, path: in", &destinations);
        bundle(&scene, "in/x", &sizes);
        let most = peak(&scene);
        assert!(most <= 64 * MIB, "{what}: {} MiB", most / MIB);
    }
}
