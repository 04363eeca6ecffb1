//! A publication whose nth request goes wrong, for every n.

use distributor::error::Code;

use crate::scene::{NEW, OLD, Scene};
use crate::servers::fault::{self, Fault};
use crate::servers::{self, Place, moto};
use crate::sweep::is;
use crate::verbs::Line;

/// How many requests the newer bundle takes after the older one.
fn requests(scene: &Scene, place: Place) -> usize {
    scene.publish("old", "d", &crate::buckets::s3(&place)).unwrap();
    let line = Line::to(place);
    scene.publish("new", "d", &line.storage).unwrap();
    line.proxy.seen().len()
}

/// Publishes the newer bundle after the older one, with so many faults from the nth request on, and hands on the place.
fn publish(scene: &Scene, place: Place, (nth, times): (usize, usize), fault: &Fault) -> (Line, Option<Code>) {
    scene.publish("old", "d", &crate::buckets::s3(&place)).unwrap();
    let line = Line::to(place);
    line.proxy.fault_after(nth, times, fault.clone(), |_| true);
    let published = scene.publish("new", "d", &line.storage);
    line.proxy.forget();
    (line, published.err().map(|error| error.code))
}

/// Whether each key has as many versions as it was made, and no more.
fn made_once(place: &Place) -> bool {
    let fresh = NEW.iter().filter(|(path, _)| !OLD.iter().any(|(old, _)| old == path));
    fresh.into_iter().all(|(path, _)| place.versions(path).objects == 1)
}

#[test]
fn a_request_that_goes_wrong_once_fails_no_publication() {
    let scene = Scene::new();
    let faults = [Fault::ResetBefore, Fault::ResetAfter, Fault::After(fault::error(500, "InternalError"))];
    let Some(server) = moto::server() else { return };
    let all = requests(&scene, server.versioned("all"));
    assert!(all >= 18, "{all} requests");
    for fault in &faults {
        let one = |nth| {
            let (line, error) = publish(&scene, server.versioned("nth"), (nth, 1), fault);
            let (tree, what) = (line.place.tree(), format!("{fault:?} at {nth}"));
            assert_eq!(error, None, "{what}");
            assert!(is(&tree, NEW) && tree.len() == NEW.len() + 1, "{what}: {:?}", tree.keys());
            assert!(made_once(&line.place), "{what}");
        };
        std::thread::scope(|scope| (0..all).for_each(|nth| drop(scope.spawn(move || one(nth)))));
    }
}

#[test]
fn a_server_that_lets_nobody_in_any_more_is_told_and_the_rerun_finishes() {
    let scene = Scene::new();
    for server in servers::all() {
        let denied = Fault::Instead(fault::error(403, "AccessDenied"));
        let all = requests(&scene, server.place("all"));
        let one = |nth| {
            let (line, error) = publish(&scene, server.place("denied"), (nth, usize::MAX), &denied);
            let (tree, what) = (line.place.tree(), format!("{}: from {nth} on", server.name));
            // Once the state stands the publication counts, whatever can't be cleared away.
            let counts = String::from_utf8_lossy(&tree[".distributor.json"]).contains("new/n.txt");
            let want = if counts { None } else { Some(Code::PermissionDenied) };
            assert_eq!(error, want, "{what}");
            scene.publish("new", "d", &line.storage).unwrap_or_else(|error| panic!("{what}: {error:?}"));
            let mut tree = line.place.tree();
            // A lock whose holder is gone may lie there until the next command that locks.
            tree.retain(|name, _| !name.starts_with(".distributor.lock-"));
            assert!(is(&tree, NEW) && tree.len() == NEW.len() + 1, "{what}: {:?}", tree.keys());
        };
        std::thread::scope(|scope| (0..all).for_each(|nth| drop(scope.spawn(move || one(nth)))));
    }
}
