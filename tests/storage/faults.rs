//! What the network and servers of S3 do on bad days, to every request that the backend knows.

use std::time::{Duration, Instant};

use distributor::error::{Code, Error, Result};
use distributor::names::STATE;
use distributor::storage::{Expected, Storage};

use crate::buckets::s3_with;
use crate::servers::fault::{self, Fault};
use crate::servers::http::Message;
use crate::servers::proxy::{Kind, Proxy, Seen};
use crate::servers::{self, ACCESS_KEY, SECRET_KEY, Server, moto};
use crate::verbs::{Line, PATIENCE, VERBS, Verb, bytes};

/// The error must not tell what nobody may know.
fn discreet(error: &Error) {
    let text = format!("{error:?} {}", error.message);
    for secret in [ACCESS_KEY, SECRET_KEY, "AWS4-HMAC", "Signature=", "Credential="] {
        assert!(!text.contains(secret), "{text}");
    }
}

fn failed(what: &str, result: Result<()>) -> Error {
    let error = result.expect_err(what);
    discreet(&error);
    error
}

fn of(kind: Kind) -> impl Fn(&Seen) -> bool {
    move |seen| seen.kind == kind
}

/// Does each verb with the fault, so many times, and hands on how it ended.
fn each(
    times: usize,
    fault: impl Fn(&Verb) -> Option<Fault> + Sync,
    ended: impl Fn(&Verb, &Line, &str, Result<()>) + Sync,
) {
    let one = |server: &'static Server, verb: &Verb, fault: Fault| {
        let line = verb.line(server, matches!(fault, Fault::Silence));
        let what = format!("{}: {}: {}", server.name, verb.name, told(&fault));
        line.proxy.fault(times, fault, of(verb.kind));
        let result = (verb.act)(&line);
        assert!(times > 99 || line.proxy.faults_left() == 0, "{what}: it never happened: {result:?}");
        ended(verb, &line, &what, result);
    };
    let work = |(server, verb): (&'static Server, &Verb)| fault(verb).map_or((), |fault| one(server, verb, fault));
    std::thread::scope(|scope| {
        for pair in servers::all().into_iter().flat_map(|server| VERBS.iter().map(move |verb| (server, verb))) {
            let work = &work;
            scope.spawn(move || work(pair));
        }
    });
}

fn told(fault: &Fault) -> String {
    match fault {
        Fault::Instead(answer) | Fault::After(answer) => format!("{} {}", answer.start, answer.text()),
        other => format!("{other:?}"),
    }
}

#[test]
fn what_passes_is_tried_again_and_done_once() {
    let answers = [fault::slow_down(1), fault::error(500, "InternalError"), fault::error(429, "TooManyRequests")];
    let mut faults = vec![Fault::ResetBefore, Fault::ResetAfter, Fault::Close, Fault::Silence];
    faults.extend(answers.map(Fault::Instead));
    faults.push(Fault::After(fault::error(500, "InternalError")));
    for fault in faults {
        each(
            1,
            |_| Some(fault.clone()),
            |verb, line, what, result| {
                if let Err(error) = result {
                    panic!("{what}: {error:?}");
                }
                verb.check(line, what);
            },
        );
    }
}

#[test]
fn a_server_may_say_when_to_come_again() {
    let Some(server) = moto::server() else { return };
    let line = VERBS[3].line(server, false);
    line.proxy.fault(2, Fault::Instead(fault::slow_down(1)), of(Kind::PutObject));
    let begun = Instant::now();
    (VERBS[3].act)(&line).unwrap();
    assert!(begun.elapsed() >= Duration::from_secs(2), "{:?}", begun.elapsed());
}

#[test]
fn silence_ends_soon() {
    each(
        usize::MAX,
        |_| Some(Fault::Silence),
        |verb, line, what, result| {
            assert_eq!(failed(what, result).code, Code::Timeout, "{what}");
            let most = if verb.kind == Kind::UploadPart { 4 } else { 2 };
            assert!(verb.count(line) <= most, "{what}: {} tries", verb.count(line));
        },
    );
}

#[test]
fn a_server_that_is_not_there_is_unreachable() {
    let Some(server) = moto::server() else { return };
    let gone = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let storage = s3_with(&server.place("gone"), &format!("http://{gone}"), |_| ());
    let error = failed("gone", storage.disturbed("").map(|_| ()));
    assert_eq!(error.code, Code::Unreachable, "{error:?}");
    let storage = s3_with(&server.place("gone"), "http://no-such-host.invalid", |_| ());
    assert_eq!(failed("nobody", storage.disturbed("").map(|_| ())).code, Code::Unreachable);
}

#[test]
fn what_does_not_pass_has_its_code_and_cure() {
    let cases = [
        (403, "AccessDenied", Code::PermissionDenied),
        (403, "", Code::PermissionDenied),
        (403, "InvalidAccessKeyId", Code::AuthFailed),
        (403, "SignatureDoesNotMatch", Code::AuthFailed),
        (403, "RequestTimeTooSkewed", Code::AuthFailed),
        (404, "NoSuchBucket", Code::NotFound),
        (400, "KeyTooLongError", Code::PathTooLong),
    ];
    for (status, name, code) in cases {
        let answer = if name.is_empty() { fault::answer(status, "") } else { fault::error(status, name) };
        // Where there is no bucket there is nothing to remove; and a HEAD can't tell which of the two is not there.
        let is_fine = |kind| matches!(kind, Kind::DeleteObject | Kind::AbortUpload | Kind::HeadObject);
        let met = |verb: &Verb| (status != 404 || !is_fine(verb.kind)).then(|| Fault::Instead(answer.clone()));
        each(usize::MAX, met, |verb, line, what, result| {
            let error = failed(what, result);
            let silent = verb.kind == Kind::HeadObject && name != "AccessDenied";
            let want = if silent && status == 403 { Code::PermissionDenied } else { code };
            if !(silent && status == 400) {
                assert_eq!(error.code, want, "{what}: {error:?}");
                assert!(error.hint.is_some() || code == Code::PathTooLong, "{what}: {error:?}");
            }
            let most = if verb.kind == Kind::UploadPart { 2 } else { 1 };
            // A lock that could not be written may be there nevertheless.
            assert!(verb.count(line) <= most, "{what}: {} tries", verb.count(line));
        });
    }
}

#[test]
fn a_bucket_elsewhere_is_named_and_nothing_is_sent_there() {
    let Some(server) = moto::server() else { return };
    let elsewhere = Proxy::before(server.address);
    let codes = [
        (301, "PermanentRedirect"),
        (307, "TemporaryRedirect"),
        (400, "AuthorizationHeaderMalformed"),
        (400, "IllegalLocationConstraintException"),
    ];
    for (status, code) in codes {
        let answer = fault::elsewhere(status, code, "eu-test-1");
        let location = format!("http://{}/bucket/", elsewhere.address);
        let answer = answer.with("Location", &location);
        each(
            usize::MAX,
            |_| Some(Fault::Instead(answer.clone())),
            |_, _, what, result| {
                let error = failed(what, result);
                assert!(error.message.contains("eu-test-1"), "{what}: {error:?}");
                assert!(error.hint.unwrap().contains("region: eu-test-1"), "{what}");
            },
        );
    }
    assert_eq!(elsewhere.connections(), 0);
}

/// Answers of 200 that are none: no listing, nor what was done.
fn nonsense() -> Vec<Message> {
    let said = |body: &str| fault::answer(200, body);
    vec![
        fault::garbage(200),
        fault::error_in_200("InternalError"),
        said(""),
        said("<html><body>Welcome! Please log in.</body></html>"),
        said("<?xml version='1.0'?><Error><Code>SlowDown</Code></Error>"),
        said("\u{feff}<!-- \u{e4} -->\n<Error><Code>InternalError</Code></Error>"),
    ]
}

#[test]
fn an_answer_that_is_none_is_not_believed() {
    let with_xml = [Kind::List, Kind::DeleteObjects, Kind::CreateUpload, Kind::CompleteUpload];
    for answer in nonsense() {
        let met = |verb: &Verb| with_xml.contains(&verb.kind).then(|| Fault::Instead(answer.clone()));
        each(usize::MAX, met, |_, line, what, result| {
            failed(what, result);
            assert!(line.place.get("large").is_none(), "{what}");
        });
        each(1, met, |verb, line, what, result| match result {
            Ok(()) => verb.check(line, what),
            Err(error) => discreet(&error),
        });
    }
}

#[test]
fn a_listing_that_is_cut_is_not_taken_for_whole() {
    let Some(server) = moto::server() else { return };
    let verb = VERBS.iter().find(|verb| verb.name == "list").unwrap();
    let line = verb.line(server, false);
    line.list().unwrap();
    let query = [("list-type", "2"), ("prefix", line.place.prefix.as_str())];
    let whole = line.place.call("GET", None, &query, &[], b"").body.len();
    for cut in (0..whole).step_by(37) {
        line.proxy.fault(1, Fault::Cut(cut), of(Kind::List));
        assert_eq!(line.list().unwrap(), ["a", "b/c"], "{cut}");
    }
    let short = |cut: usize| {
        let line = verb.line(server, false);
        // The length says that this is all.
        line.proxy.fault(usize::MAX, Fault::Length(-isize::try_from(cut).unwrap()), of(Kind::List));
        assert!(line.list().is_err(), "{cut}");
    };
    std::thread::scope(|scope| (1..whole).step_by(67).for_each(|cut| drop(scope.spawn(move || short(cut)))));
}

#[test]
fn a_body_that_breaks_is_taken_up_again_and_never_short() {
    for server in servers::all() {
        let line = Line::hasty(server.place("broken"));
        let want = bytes(300_000);
        line.place.put("x", &want);
        for (times, fault) in [
            (3, Fault::Cut(70_000)),
            (4, Fault::Cut(0)),
            (1, Fault::Length(1000)),
            (1, Fault::Trickle { bytes: 100_000, pause: PATIENCE * 2 }),
        ] {
            line.proxy.forget();
            line.proxy.fault(times, fault.clone(), of(Kind::GetObject));
            let what = format!("{}: {fault:?}", server.name);
            if matches!(fault, Fault::Length(_)) {
                // What was told is not there.
                assert!(line.read("x").is_err(), "{what}");
                continue;
            }
            assert!(line.read("x").unwrap_or_else(|error| panic!("{what}: {error:?}")) == want, "{what}");
            let seen = line.proxy.seen();
            assert_eq!(seen.len(), times + 1, "{what}");
            let ranges =
                seen[1..].iter().all(|seen| seen.header("range").is_some() && seen.header("if-match").is_some());
            assert!(ranges, "{what}");
        }
        line.place.put(STATE, &want);
        line.proxy.forget();
        line.proxy.fault(3, Fault::Cut(70_000), of(Kind::GetObject));
        assert!(line.storage.get_small(STATE, 1 << 20).unwrap().unwrap().bytes == want, "{}", server.name);
        line.proxy.forget();
        line.proxy.fault(usize::MAX, Fault::Cut(0), of(Kind::GetObject));
        assert_eq!(failed("never whole", line.read("x").map(|_| ())).code, Code::Unreachable);
        assert!(line.proxy.seen().len() < 9);
        failed("never whole", line.storage.get_small(STATE, 1 << 20).map(|_| ()));
        line.proxy.forget();
        line.proxy.fault(1, Fault::Cut(70_000), of(Kind::GetObject));
        line.proxy.fault(usize::MAX, Fault::Silence, of(Kind::GetObject));
        assert_eq!(failed("silent", line.read("x").map(|_| ())).code, Code::Timeout);
    }
}

#[test]
fn what_changes_while_it_is_read_is_never_mixed() {
    for server in servers::all() {
        let line = Line::to(server.place("mixed"));
        line.place.put("x", &vec![b'1'; 3_000_000]);
        line.proxy.fault(1, Fault::Cut(1_000_000), of(Kind::GetObject));
        let mut opened = line.storage.read(&crate::verbs::rel("x")).unwrap();
        line.place.put("x", &vec![b'2'; 3_000_000]);
        let error = opened.body.read_to_end(&mut Vec::new()).unwrap_err();
        assert_eq!(Error::io("x", &error).code, Code::SourceChanged, "{}: {error:?}", server.name);
    }
}

#[test]
fn each_key_that_stays_has_its_own_error() {
    for server in servers::all() {
        let line = Line::to(server.place("stays"));
        for key in ["x/1", "x/2", "x/3"] {
            line.place.put(key, b"1");
        }
        let stays = format!("{}x/2", line.place.prefix);
        line.proxy.fault(1, Fault::After(fault::undeleted(&stays, "AccessDenied")), of(Kind::DeleteObjects));
        let results = line.remove(&["x/1", "x/2", "x/3"]);
        assert!(results[0].is_ok() && results[2].is_ok(), "{results:?}");
        let error = results[1].as_ref().unwrap_err();
        assert!(error.code == Code::PermissionDenied && error.message.contains("x/2"), "{error:?}");
        // One that passes is tried again.
        line.place.put("x/2", b"1");
        line.proxy.fault(1, Fault::Instead(fault::undeleted(&stays, "InternalError")), of(Kind::DeleteObjects));
        assert!(line.remove(&["x/2", "x/4"]).into_iter().all(|result| result.is_ok()));
        assert!(line.place.get("x/2").is_none());
        // One that nobody asked for tells that something else was understood.
        line.place.put("x/2", b"1");
        line.proxy.fault(1, Fault::Instead(fault::undeleted("else", "AccessDenied")), of(Kind::DeleteObjects));
        let removed = line.remove(&["x/2", "x/4"]).into_iter().all(|result| result.is_ok());
        assert_eq!(removed, line.place.get("x/2").is_none());
    }
}

#[test]
fn a_server_that_does_not_know_a_request_is_asked_in_another_way() {
    for server in servers::all() {
        let conditional = |seen: &Seen| seen.header("if-none-match").is_some() || seen.header("if-match").is_some();
        for verb in VERBS.iter().filter(|verb| !matches!(verb.kind, Kind::GetObject | Kind::HeadObject)) {
            let line = verb.line(server, false);
            line.proxy.fault(usize::MAX, Fault::Instead(fault::error(501, "NotImplemented")), conditional);
            line.proxy.fault(usize::MAX, Fault::Instead(fault::error(501, "NotImplemented")), of(Kind::DeleteObjects));
            let what = format!("{}: {}", server.name, verb.name);
            (verb.act)(&line).unwrap_or_else(|error| panic!("{what}: {error:?}"));
            verb.check(&line, &what);
        }
        // Where it knows none of them it is an error, not an empty object nor one that is gone.
        each(
            usize::MAX,
            |_| Some(Fault::Instead(fault::error(501, "NotImplemented"))),
            |verb, _, what, result| {
                if verb.kind != Kind::DeleteObjects {
                    failed(what, result);
                }
            },
        );
        each(
            usize::MAX,
            |_| Some(Fault::Instead(fault::error(412, "PreconditionFailed"))),
            |verb, _, what, result| {
                failed(what, result);
                assert!(verb.kind != Kind::Other);
            },
        );
    }
}

#[test]
fn a_signal_ends_waiting() {
    let Some(server) = moto::server() else { return };
    for fault in [Fault::Silence, Fault::Instead(fault::slow_down(20)), Fault::ResetBefore] {
        let one = |verb: &Verb| {
            let line = verb.line(server, true);
            let what = format!("{}: {}", verb.name, told(&fault));
            line.proxy.fault(usize::MAX, fault.clone(), of(verb.kind));
            let cancel = line.cancel.clone();
            let met = || line.proxy.seen().iter().any(|seen| seen.faulty);
            std::thread::scope(|scope| {
                let acting = scope.spawn(|| (verb.act)(&line));
                while !met() && !acting.is_finished() {
                    std::thread::sleep(Duration::from_millis(10));
                }
                let begun = Instant::now();
                cancel.raise(15);
                assert_eq!(failed(&what, acting.join().unwrap()).code, Code::Interrupted, "{what}");
                assert!(begun.elapsed() < PATIENCE + Duration::from_secs(1), "{what}: {:?}", begun.elapsed());
            });
        };
        std::thread::scope(|scope| VERBS.iter().for_each(|verb| drop(scope.spawn(|| one(verb)))));
    }
}

#[test]
fn wrong_credentials_are_told_as_such() {
    for server in servers::all().into_iter().filter(|server| server.name != "moto") {
        let place = server.place("wrong");
        for (id, secret) in [(ACCESS_KEY, "wrong-secret-of-someone"), ("GK0123456789abcdef01234567", SECRET_KEY)] {
            let storage = s3_with(&place, &format!("http://{}", server.address), |settings| {
                settings.keys = crate::buckets::keys(id, secret);
            });
            let error = failed(id, storage.put_small(STATE, b"1", Expected::Any));
            assert_eq!(error.code, Code::AuthFailed, "{error:?}");
            assert!(error.hint.is_some() && !format!("{error:?}").contains(secret), "{error:?}");
            assert!(!format!("{error:?}").contains(id), "{error:?}");
        }
    }
}
