//! Servers of S3 that say odd things, and names that nobody should have put there.

use distributor::error::Code;
use distributor::names::STATE;
use distributor::storage::{Expected, Stage, Storage};

use crate::buckets::s3;
use crate::scene::{OLD, Scene};
use crate::servers::fault::{self, Fault};
use crate::servers::proxy::{Kind, Seen};
use crate::servers::{self, Server, moto};
use crate::sweep;
use crate::verbs::{Line, PART, bytes, rel};

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
fn an_answer_without_an_etag_is_no_answer_to_a_put() {
    for line in lines("no etag") {
        for answer in [Fault::After(fault::answer(200, "")), Fault::Instead(fault::answer(204, ""))] {
            for expected in [Expected::Any, Expected::Version(None)] {
                line.place.delete(STATE);
                line.proxy.forget();
                line.proxy.fault(1, answer.clone(), of(Kind::PutObject));
                let error = line.storage.put_small(STATE, b"1", expected).unwrap_err();
                assert!(error.code == Code::StorageError && error.message.contains("no ETag"), "{error:?}");
            }
            for large in [b"1".to_vec(), bytes(2 << 20)] {
                line.proxy.forget();
                line.proxy.fault(1, answer.clone(), of(Kind::PutObject));
                let error = line.put(&[("x", &large)], true).unwrap_err();
                assert!(error.code == Code::StorageError && error.message.contains("no ETag"), "{error:?}");
            }
        }
    }
}

#[test]
fn uploads_are_noted_a_few_at_a_time() {
    let large = bytes(PART + 1);
    let outputs: Vec<(String, &[u8])> = (0..5).map(|at| (format!("{at}"), large.as_slice())).collect();
    let outputs: Vec<(&str, &[u8])> = outputs.iter().map(|(path, bytes)| (path.as_str(), *bytes)).collect();
    for server in servers::all() {
        let line = Line::with(server.place("portions"), |settings| settings.concurrency = 2);
        line.stage("1", &outputs).unwrap();
        let (mut unnoted, mut notes) = (0, 0);
        for seen in line.proxy.seen() {
            match seen.kind {
                Kind::CreateUpload => unnoted += 1,
                Kind::PutObject => (unnoted, notes) = (0, notes + 1),
                Kind::UploadPart => assert_eq!(unnoted, 0, "{}", server.name),
                _ => {}
            }
            assert!(unnoted <= 2, "{}: {unnoted} uploads that nobody knows", server.name);
        }
        assert_eq!((notes, line.place.uploads().len()), (3, 5), "{}", server.name);
        // The note tells of all of them.
        drop(line.storage);
        s3(&line.place).sweep_stages(&[]).unwrap();
        assert_eq!((line.place.uploads(), line.place.keys()), (Vec::new(), Vec::new()), "{}", server.name);
    }
}

#[test]
fn many_uploads_are_noted_and_cleared_away_as_few_are() {
    let Some(server) = moto::server() else { return };
    let place = server.place("many");
    let open = place.open_upload("x");
    let note = |id: &str| format!("{{\"path\":\"x\",\"upload_id\":\"{id}\"}}");
    let gone = note(&"0".repeat(1000));
    place.put(".distributor.stage-1", format!("[{}{}]", format!("{gone},").repeat(1200), note(&open)).as_bytes());
    let line = Line::with(place, |settings| settings.concurrency = 16);
    line.proxy.fault(1200, Fault::Instead(fault::error(404, "NoSuchUpload")), |seen: &Seen| {
        seen.kind == Kind::AbortUpload && seen.query.contains("00000000")
    });
    line.storage.sweep_stages(&[]).unwrap();
    assert_eq!((line.place.uploads(), line.place.keys()), (Vec::new(), Vec::new()));
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

#[test]
fn a_note_of_paths_that_are_none_is_not_ours() {
    for line in lines("planted note") {
        let name = line.place.server.name;
        line.place.put("x", b"1");
        for note in [
            r#"[{"path":"../../y","upload_id":"1"}]"#,
            r#"[{"path":".","upload_id":"1"}]"#,
            r#"[{"path":"","upload_id":"1"}]"#,
            r#"[{"path":"x","upload_id":""}]"#,
        ] {
            line.proxy.forget();
            line.place.put(".distributor.stage-1", note.as_bytes());
            line.storage.sweep_stages(&[]).unwrap_or_else(|error| panic!("{name}: {note}: {error:?}"));
            assert_eq!((line.place.keys(), line.proxy.count(Kind::AbortUpload)), (vec!["x".to_owned()], 0), "{name}");
        }
    }
}

#[test]
fn a_key_that_is_too_long_is_refused_before_anything_is_sent() {
    for line in lines("long") {
        let name = line.place.server.name;
        let path = |length: usize| {
            let left = length - line.place.prefix.len();
            let path = format!("{}{}", "d/".repeat(left / 2 - 100), "f".repeat(200 + left % 2));
            assert_eq!(path.len(), left);
            path
        };
        let (fits, long) = (path(1024), path(1025));
        let error = line.stage("1", &[("a", b"1"), (&long, b"2"), ("large", &bytes(PART + 1))]).unwrap_err();
        assert!(error.code == Code::PathTooLong && error.hint.is_some(), "{name}: {error:?}");
        assert!(line.proxy.seen().is_empty(), "{name}: {:?}", line.proxy.counts());
        // Garage's own database has an end before that.
        if name == "moto" {
            line.put(&[(&fits, b"1")], false).unwrap();
            assert_eq!(line.place.keys(), [fits]);
        }
    }
}

#[test]
fn what_could_not_be_made_for_its_name_is_not_there_to_be_taken_back() {
    for line in lines("taken back") {
        line.put(&[("x", b"1")], false).unwrap();
        let long = |seen: &Seen| seen.key.ends_with("/long");
        line.proxy.fault(9, Fault::Instead(fault::error(400, "KeyTooLongError")), long);
        let paths = ["long", "x"].map(rel);
        line.storage.remove_created(&Stage("1".to_owned()), &paths.iter().collect::<Vec<_>>()).unwrap();
        assert_eq!(line.place.keys(), Vec::<String>::new(), "{}", line.place.server.name);
    }
}
