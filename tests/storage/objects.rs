//! What a bucket can hold that no directory can: versions, markers, and names that are no paths; and headers.

use distributor::entry::Kind;
use distributor::error::{Code, Result};
use distributor::names::STATE;
use distributor::path::RelPath;
use distributor::storage::{Scope, Stage, Storage};

use crate::buckets::s3;
use crate::scene::{Scene, Wish};
use crate::servers::proxy::Kind as Request;
use crate::servers::{self, Place, moto};
use crate::verbs::{Line, bytes, rel};

/// Names that break the rules of paths.
const ODD: [&str; 9] =
    ["/x", "a//b", "../y", "./z", "a/../../c", "control\u{1}\u{7f}", "line\nfeed", " blank ", "end//"];

fn listed(storage: &dyn Storage) -> Vec<(String, Kind, bool)> {
    let mut seen = Vec::new();
    let visit = &mut |entry: distributor::entry::Entry| {
        seen.push((String::from_utf8_lossy(entry.raw.as_bytes()).into_owned(), entry.kind, entry.path.is_some()));
        Ok(())
    };
    storage.list(Scope::Destination, visit).unwrap();
    seen
}

/// Puts a key as it is, even where a server would rather not have it.
fn try_put(place: &Place, key: &str) -> bool {
    place.call("PUT", Some(key), &[], &[], b"theirs").status() == 200 && place.keys().iter().any(|has| has == key)
}

fn publish(scene: &Scene, place: &Place, force: bool) -> Result<()> {
    scene.grant(Wish { bundle: "new", destination: "d", force, again: false }, &s3(place)).map(drop)
}

#[test]
fn names_that_are_no_paths_are_unmanaged_and_go_by_force_alone() {
    let scene = Scene::new();
    for server in servers::all() {
        let outer = server.place("odd");
        let place = outer.at("in");
        // What a careless client would delete instead.
        for key in ["y", "z", "c", "in/z", "in/y"] {
            outer.put(key, b"beside");
        }
        for key in ["in/z", "in/y"] {
            outer.delete(key);
        }
        let odd: Vec<&str> = ODD.into_iter().filter(|key| try_put(&place, key)).collect();
        assert!(odd.len() >= 5, "{}: {odd:?}", server.name);
        for (name, _, is_path) in listed(&s3(&place)) {
            assert!(is_path == (name == " blank ") && odd.contains(&name.as_str()), "{}: {name:?}", server.name);
        }
        let error = publish(&scene, &place, false).unwrap_err();
        assert_eq!(error.code, Code::UnmanagedContent, "{error:?}");
        assert!(error.message.chars().all(|c| !c.is_control()));
        publish(&scene, &place, true).unwrap_or_else(|error| panic!("{}: {odd:?}: {error:?}", server.name));
        assert_eq!(place.keys().len(), crate::scene::NEW.len() + 1, "{}: {:?}", server.name, place.keys());
        for key in ["y", "z", "c"] {
            assert_eq!(outer.bytes(key), b"beside", "{}", server.name);
        }
        // One by one, too.
        for key in odd {
            outer.put("y", b"beside");
            assert!(try_put(&place, key));
            Line::to(place.clone())
                .remove(&[key])
                .into_iter()
                .collect::<Result<()>>()
                .unwrap_or_else(|e| panic!("{key:?}: {e:?}"));
            assert!(!place.keys().iter().any(|has| has == key), "{}: {key:?}", server.name);
            assert_eq!(outer.bytes("y"), b"beside", "{}: {key:?}", server.name);
        }
    }
}

#[test]
fn a_marker_is_no_content_and_goes_by_force_alone() {
    let scene = Scene::new();
    for server in servers::all() {
        let place = server.place("markers");
        for marker in ["", "a/", "new/", "deep/er/"] {
            place.put(marker, b"");
        }
        publish(&scene, &place, false).unwrap();
        let markers = |place: &Place| {
            place.keys().into_iter().filter(|key| key.is_empty() || key.ends_with('/')).collect::<Vec<_>>()
        };
        assert_eq!(markers(&place), ["", "a/", "deep/er/", "new/"], "{}", server.name);
        scene.publish("more", "d", &s3(&place)).unwrap();
        assert_eq!(markers(&place), ["", "a/", "deep/er/", "new/"], "{}", server.name);
        place.put("strange", b"1");
        scene.grant(Wish { bundle: "more", destination: "d", force: true, again: true }, &s3(&place)).unwrap();
        // The place itself stays.
        assert_eq!(markers(&place), [""], "{}", server.name);
        // A name like a marker's that has bytes is content.
        place.put("full/", b"1");
        assert!(listed(&s3(&place)).contains(&("full/".to_owned(), Kind::File, false)));
        scene.bundle("late", &[("x", "late")], "2026-06-09T00:00:00Z");
        assert_eq!(scene.publish("late", "d", &s3(&place)).map(drop).unwrap_err().code, Code::UnmanagedContent);
    }
}

#[test]
fn what_is_managed_below_is_one_entry_whatever_sorts_before_its_state() {
    let scene = Scene::new();
    for server in servers::all() {
        let place = server.place("below");
        for key in ["d/ first", "d/!x", "d/-/x", "d/.a", "d/zz", "d-e", "d/sub/y"] {
            place.put(key, b"1");
        }
        place.put(&format!("d/{STATE}"), b"{}");
        let want = [("d-e".to_owned(), Kind::File, true), ("d".to_owned(), Kind::Managed, true)];
        assert_eq!(listed(&s3(&place)), want, "{}", server.name);
        let error = publish(&scene, &place, true).unwrap_err();
        assert_eq!(error.code, Code::ManagedBelow, "{error:?}");
        assert_eq!(place.keys().len(), 8);
    }
}

#[test]
fn a_listing_has_more_than_a_page() {
    let Some(server) = moto::server() else { return };
    let place = server.place("pages");
    let names: Vec<String> = (0..1200).map(|n| format!("d{}/{n:04}", n / 400)).collect();
    std::thread::scope(|scope| {
        for some in names.chunks(150) {
            let place = &place;
            scope.spawn(move || some.iter().for_each(|name| place.put(name, b"")));
        }
    });
    let line = Line::to(place.clone());
    assert_eq!(line.list().unwrap(), names);
    assert_eq!(line.proxy.count(Request::List), 2);
    let asked = ["d0/0000", "d0/0001x", "d1/0799", "d2/0999", "d2/1000", "d2/1001", "d2/1199", "d3/1200"].map(rel);
    let there = line.storage.exist_many(&asked.iter().collect::<Vec<&RelPath>>()).unwrap();
    assert_eq!(there, [true, false, true, true, true, true, true, false]);
    // What is managed below is passed over without its pages being asked for.
    place.put(&format!("d0/{STATE}"), b"{}");
    place.put(&format!("d1/{STATE}"), b"{}");
    line.proxy.forget();
    let left = line.list().unwrap();
    assert_eq!(left.len(), 402, "{:?}", &left[..3]);
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    assert!(line.remove(&names).into_iter().all(|removed| removed.is_ok()));
    assert_eq!(line.proxy.count(Request::DeleteObjects), 2);
    assert_eq!(place.keys().len(), 2);
}

#[test]
fn what_is_taken_back_is_the_version_that_was_made() {
    let Some(server) = moto::server() else { return };
    let line = Line::to(server.versioned("versions"));
    line.place.put("was", b"1");
    line.place.delete("was");
    let outputs: [(&str, &[u8]); 3] = [("fresh", b"n"), ("was", b"n"), ("then", b"n")];
    line.stage("1", &outputs).unwrap();
    line.proxy.fault(1, servers::fault::Fault::ResetAfter, |seen| seen.kind == Request::PutObject);
    line.commit("1", &outputs, false).unwrap();
    // Somebody else came after.
    line.place.put("then", b"theirs");
    let paths = ["fresh", "was", "then", "never"].map(rel);
    line.storage.remove_created(&Stage("1".to_owned()), &paths.iter().collect::<Vec<_>>()).unwrap();
    let kept = |key| {
        let versions = line.place.versions(key);
        (versions.objects, versions.deletions)
    };
    assert_eq!((kept("fresh"), kept("was"), kept("then")), ((0, 0), (1, 1), (2, 0)));
    assert_eq!(line.place.bytes("then"), b"theirs");
    // What another publication made is not this one's.
    line.storage.remove_created(&Stage("2".to_owned()), &[&rel("then")]).unwrap();
    assert_eq!(kept("then"), (2, 0));
    line.place.put("old", b"1");
    line.put(&[("old", b"2")], true).unwrap();
    assert_eq!((kept("old"), line.place.bytes("old")), ((2, 0), b"2".to_vec()));
    line.remove(&["old"]).pop().unwrap().unwrap();
    assert_eq!(kept("old"), (2, 1));
}

#[test]
fn only_what_nobody_changed_is_taken_back() {
    for server in servers::all() {
        let line = Line::to(server.place("taken back"));
        let outputs: [(&str, &[u8]); 2] = [("x", b"1"), ("y", b"2")];
        line.put(&outputs, false).unwrap();
        line.place.put("y", b"2");
        let paths = ["x", "y", "z"].map(rel);
        line.storage.remove_created(&Stage("1".to_owned()), &paths.iter().collect::<Vec<_>>()).unwrap();
        assert_eq!(line.place.keys(), ["y"], "{}", server.name);
    }
}

#[test]
fn headers_arrive() {
    for server in servers::all() {
        let line = Line::with(server.place("headers"), |settings| {
            settings.storage_class = Some("STANDARD".to_owned());
            settings.cache_control =
                Box::new(|path| path.as_str().strip_suffix(".css").map(|_| "max-age=31536000, immutable".to_owned()));
        });
        let large = bytes(2 * 1024 * 1024);
        let outputs: [(&str, &[u8]); 4] = [("a.css", b"1"), ("b/index.html", b"2"), ("c.png", &large), ("README", b"")];
        line.put(&outputs, false).unwrap();
        let of = |key: &str, name: &str| line.place.head(key).unwrap().header(name).map(str::to_owned);
        assert_eq!(of("a.css", "cache-control").as_deref(), Some("max-age=31536000, immutable"), "{}", server.name);
        assert_eq!(of("b/index.html", "cache-control"), None);
        let types = ["a.css", "b/index.html", "c.png", "README"].map(|key| of(key, "content-type").unwrap());
        let want = ["text/css; charset=utf-8", "text/html; charset=utf-8", "image/png", "application/octet-stream"];
        assert_eq!(types, want, "{}", server.name);
        for seen in line.proxy.seen().iter().filter(|seen| seen.kind == Request::PutObject) {
            assert_eq!(seen.header("x-amz-storage-class"), Some("STANDARD"), "{}", seen.key);
            assert_eq!(seen.header("x-amz-meta-distributor-token"), Some("1"), "{}", seen.key);
            assert!(seen.header("content-md5").is_some() && seen.header("x-amz-acl").is_none(), "{}", seen.key);
            assert!(seen.header("transfer-encoding").is_none(), "{}", seen.key);
        }
        assert!(line.place.bytes("c.png") == large);
        line.storage.put_small(STATE, b"{}", distributor::storage::Expected::Any).unwrap();
        assert_eq!(of(STATE, "cache-control").as_deref(), Some("no-store"));
        assert_eq!(of(STATE, "content-type").as_deref(), Some("application/json"));
    }
}
