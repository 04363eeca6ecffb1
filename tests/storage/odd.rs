//! Servers of S3 that say odd things, and names that nobody should have put there.

use distributor::error::Code;
use distributor::storage::Storage;

use crate::scene::{OLD, Scene};
use crate::servers::fault::{self, Fault};
use crate::servers::proxy::{Kind, Seen};
use crate::servers::{self, Server, moto};
use crate::sweep;
use crate::verbs::Line;

fn lines(name: &str) -> impl Iterator<Item = Line> {
    servers::all().into_iter().map(move |server: &'static Server| Line::to(server.place(name)))
}

fn of(kind: Kind) -> impl Fn(&Seen) -> bool {
    move |seen| seen.kind == kind
}

/// A page of a listing that goes on.
fn page(number: usize, keys: &[String]) -> Fault {
    let keys: String = keys.iter().map(|key| format!("<Contents><Key>{key}</Key></Contents>")).collect();
    let next = format!("<IsTruncated>true</IsTruncated><NextContinuationToken>{number}</NextContinuationToken>");
    Fault::Instead(fault::answer(200, &format!("<ListBucketResult>{next}{keys}</ListBucketResult>")))
}

#[test]
fn a_listing_without_keys_does_not_go_on_for_ever() {
    let Some(server) = moto::server() else { return };
    let line = Line::to(server.place("empty"));
    (0..300).for_each(|number| line.proxy.fault(1, page(number, &[]), of(Kind::List)));
    let error = line.list().unwrap_err();
    assert!(error.code == Code::StorageError && error.message.contains("without a key"), "{error:?}");
    assert!(line.proxy.count(Kind::List) <= 101, "{} pages", line.proxy.count(Kind::List));
    // Some of them are no reason to give up, as often as there are keys in between.
    line.proxy.forget();
    for number in 0..180 {
        let keys = if number % 60 == 59 { vec![format!("{}{number:03}", line.place.prefix)] } else { Vec::new() };
        line.proxy.fault(1, page(number, &keys), of(Kind::List));
    }
    let whole = "<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>";
    line.proxy.fault(1, Fault::Instead(fault::answer(200, whole)), of(Kind::List));
    assert_eq!(line.list().unwrap(), ["059", "119", "179"]);
}

#[test]
fn a_flood_of_names_of_ours_is_not_looked_through() {
    let Some(server) = moto::server() else { return };
    let line = Line::to(server.place("flood"));
    for look in [
        (|line| line.storage.own_names(".distributor").map(drop)) as fn(&Line) -> distributor::error::Result<()>,
        |line| line.storage.is_locked().map(drop),
        |line| line.storage.lock(b"me", &|_| Ok(())).map(drop),
    ] {
        line.proxy.forget();
        for number in 0..12 {
            let key = |at| format!("{}.distributor.stage-{number:02}-{at:04}", line.place.prefix);
            line.proxy.fault(1, page(number, &(0..1000).map(key).collect::<Vec<_>>()), of(Kind::List));
        }
        let error = look(&line).unwrap_err();
        assert!(error.code == Code::StorageError && error.message.contains("more than 10000"), "{error:?}");
        assert!(error.hint.is_some(), "{error:?}");
        assert_eq!(line.proxy.count(Kind::List), 11);
        assert_eq!(line.place.keys(), Vec::<String>::new());
    }
}

#[test]
fn names_that_no_command_gives_are_in_nobodys_way() {
    let scene = Scene::new();
    let planted = [".distributor.lock-../../x", ".distributor.journal-../../x.json", ".distributor.stage-1/../x"];
    for line in lines("planted") {
        let name = line.place.server.name;
        for key in planted {
            line.place.put(key, b"[]");
        }
        assert_eq!(line.place.keys().len(), 3, "{name}");
        assert_eq!(line.storage.own_names(".distributor").unwrap(), Vec::<String>::new(), "{name}");
        assert!(!line.storage.is_locked().unwrap(), "{name}");
        scene.publish("old", "d", &line.storage).unwrap_or_else(|error| panic!("{name}: {error:?}"));
        let mut tree = line.place.tree();
        tree.retain(|key, _| !planted.contains(&key.as_str()));
        assert!(sweep::is(&tree, OLD) && tree.len() == OLD.len() + 1, "{name}: {:?}", tree.keys());
    }
}
