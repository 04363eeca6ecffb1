//! How many requests and connections a publication needs.

use std::collections::BTreeMap;
use std::time::Duration;

use distributor::host::Holder;
use distributor::storage::{Expected, S3, Storage};

use crate::buckets::{s3, s3_through};
use crate::scene::{Scene, Wish};
use crate::servers::fault::Fault;
use crate::servers::proxy::{Kind, Proxy, Seen};
use crate::servers::{self, Place, Server};

/// Besides the outputs, and one for a thousand keys.
const MORE: usize = 12;

struct Counted {
    scene: Scene,
    place: Place,
    proxy: Proxy,
}

impl Counted {
    fn on(server: &'static Server) -> Counted {
        let mut scene = Scene::new();
        scene.holder = Holder::this_process();
        Counted { scene, place: server.place("counts"), proxy: Proxy::before(server.address) }
    }

    /// The place as a process of its own has it.
    fn storage(&self) -> S3 {
        s3_through(&self.place, &format!("http://{}", self.proxy.address))
    }

    /// The bundle `name` of these paths.
    fn bundle(&self, name: &'static str, paths: &[String], day: u8) {
        let files: Vec<(&str, &str)> = paths.iter().map(|path| (path.as_str(), name)).collect();
        self.scene.bundle(name, &files, &format!("2026-07-{day:02}T00:00:00Z"));
    }

    /// Publishes it, and says how many outputs were put and how many other requests there were, by their kind.
    fn publish(&self, bundle: &'static str, destination: &'static str) -> (usize, BTreeMap<Kind, usize>) {
        self.proxy.forget();
        self.scene.publish(bundle, destination, &self.storage()).unwrap();
        self.told()
    }

    fn told(&self) -> (usize, BTreeMap<Kind, usize>) {
        let (mut outputs, mut others) = (0, BTreeMap::new());
        for seen in self.proxy.seen() {
            if seen.kind == Kind::PutObject && !seen.key.contains("/.distributor") {
                outputs += 1;
            } else {
                *others.entry(seen.kind).or_default() += 1;
            }
        }
        (outputs, others)
    }
}

fn paths(from: usize, to: usize) -> Vec<String> {
    let name = |n| if n % 2 == 0 { format!("p/{n:04}.html") } else { format!("a/{n:04}.png") };
    (from..to).map(name).collect()
}

fn sum(others: &BTreeMap<Kind, usize>) -> usize {
    others.values().sum()
}

#[test]
fn an_output_is_one_request_and_the_rest_are_few() {
    for server in servers::all() {
        let (counted, name) = (Counted::on(server), server.name);
        counted.bundle("one", &paths(0, 200), 1);
        let (outputs, others) = counted.publish("one", "d");
        assert!(outputs == 200 && sum(&others) <= MORE + 1, "{name}: {outputs} and {others:?}");
        // Threads, and one that keeps the lock.
        assert!(counted.proxy.connections() <= 18, "{name}: {} connections", counted.proxy.connections());
        assert!(counted.proxy.busiest() <= 17, "{name}: {} at a time", counted.proxy.busiest());

        for destination in ["d", "m"] {
            let (outputs, others) = counted.publish("one", "d");
            assert_eq!(outputs, 0, "{name}: {destination}");
            assert_eq!(others, [(Kind::GetObject, 1), (Kind::HeadObject, 1)].into(), "{name}: {destination}");
        }
        // Half of it goes, pages and others, and as much is new.
        counted.bundle("two", &paths(100, 300), 2);
        let (outputs, others) = counted.publish("two", "d");
        assert!(outputs == 200 && sum(&others) <= MORE + 1, "{name}: {outputs} and {others:?}");
        // One goes.
        counted.bundle("three", &paths(100, 299), 3);
        let (outputs, others) = counted.publish("three", "d");
        assert!(outputs == 199 && sum(&others) <= MORE, "{name}: {outputs} and {others:?}");
    }
}

#[test]
fn a_merge_and_a_shared_root_need_no_more() {
    for server in servers::all() {
        let name = server.name;
        let counted = Counted::on(server);
        counted.bundle("one", &paths(0, 50), 1);
        counted.bundle("two", &paths(25, 75), 2);
        for (bundle, destination) in [("one", "m"), ("two", "m")] {
            let (outputs, others) = counted.publish(bundle, destination);
            assert!(outputs == 50 && sum(&others) <= MORE + 1, "{name}: {bundle}: {others:?}");
        }
        let counted = Counted::on(server);
        for (bundle, destination) in [("1/s0", "s0"), ("1/s1", "s1"), ("2/s0", "s0"), ("2/s1", "s1")] {
            let (_, others) = counted.publish(bundle, destination);
            assert!(sum(&others) <= MORE + 1, "{name}: {bundle}: {others:?}");
        }
        let (outputs, others) = counted.publish("2/s0", "s0");
        assert_eq!((outputs, others), (0, [(Kind::GetObject, 1), (Kind::HeadObject, 1)].into()), "{name}");
    }
}

#[test]
fn what_is_read_once_is_not_read_again_unless_it_changed() {
    for server in servers::all() {
        let counted = Counted::on(server);
        counted.bundle("one", &paths(0, 3), 1);
        counted.bundle("two", &paths(0, 4), 2);
        counted.publish("one", "d");
        let (_, others) = counted.publish("two", "d");
        assert_eq!(others[&Kind::GetObject], 1, "{}: {others:?}", server.name);
        let state = counted.place.bytes(".distributor.json");
        // Another process comes between the first look and the lock.
        let storage = counted.storage();
        let before = storage.get_small(".distributor.json", 1 << 20).unwrap().unwrap();
        assert_eq!(before.bytes, state);
        counted.place.put(".distributor.json", b"{}");
        let guard = storage.lock(b"me", &|_| Ok(())).unwrap();
        assert_eq!(storage.get_small(".distributor.json", 1 << 20).unwrap().unwrap().bytes, b"{}");
        assert_eq!(storage.get_small(".distributor.json", 1).unwrap().unwrap().bytes, b"{");
        counted.place.delete(".distributor.json");
        guard.release(false).unwrap();
        assert!(storage.get_small(".distributor.json", 1 << 20).unwrap().is_none());
        let guard = storage.lock(b"me", &|_| Ok(())).unwrap();
        assert!(storage.get_small(".distributor.json", 1 << 20).unwrap().is_none());
        guard.release(false).unwrap();
    }
}

#[test]
fn a_journal_that_goes_later_goes_before_another_state_stands() {
    for server in servers::all() {
        let counted = Counted::on(server);
        let (storage, journal) = (counted.storage(), ".distributor.journal-0123456789abcdef.json");
        let guard = storage.lock(b"me", &|_| Ok(())).unwrap();
        storage.put_small(journal, b"{}", Expected::Any).unwrap();
        storage.remove_small(journal).unwrap();
        assert!(storage.own_names(journal).unwrap().is_empty());
        // By the state it is told whether a journal asks for anything: after this one it would not be known any more.
        storage.put_small(".distributor.json", b"{}", Expected::Version(None)).unwrap();
        assert!(counted.place.get(journal).is_none(), "{}", server.name);
        guard.release(false).unwrap();
    }
}

/// Who lists while somebody is at work, and looks at the lock when that is gone, has an old listing in hand.
#[test]
fn a_lock_that_goes_while_it_is_looked_at_was_not_dead() {
    for server in servers::all() {
        let counted = Counted::on(server);
        let (one, other) = (s3(&counted.place), counted.storage());
        let guard = one.lock(b"me", &|_| Ok(())).unwrap();
        let is_look = |seen: &Seen| seen.kind == Kind::GetObject && seen.key.contains("/.distributor.lock-");
        counted.proxy.fault(1, Fault::Delay(Duration::from_secs(2)), is_look);
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| {
                let guard = other.lock(b"it", &|_| Ok(())).unwrap();
                let state = other.get_small(".distributor.json", 9).unwrap();
                guard.release(false).unwrap();
                state
            });
            while !counted.proxy.seen().iter().any(is_look) && !waiting.is_finished() {
                std::thread::yield_now();
            }
            one.put_small(".distributor.json", b"{}", Expected::Version(None)).unwrap();
            guard.release(false).unwrap();
            assert!(waiting.join().unwrap().is_some(), "{}", server.name);
        });
    }
}

#[test]
fn a_dry_run_writes_nothing() {
    for server in servers::all() {
        let counted = Counted::on(server);
        counted.bundle("one", &paths(0, 20), 1);
        let wish = Wish { bundle: "one", destination: "d", force: false, again: false };
        counted.scene.look(wish, &counted.storage()).unwrap();
        let (outputs, others) = counted.told();
        assert!(
            outputs == 0 && others.keys().all(|kind| matches!(kind, Kind::GetObject | Kind::HeadObject | Kind::List))
        );
        assert!(sum(&others) <= 4, "{}: {others:?}", server.name);
    }
}
