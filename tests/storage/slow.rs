//! Servers that never fall silent, and never come to an end.

use std::time::{Duration, Instant};

use distributor::error::Code;

use crate::servers::fault::Fault;
use crate::servers::moto;
use crate::servers::proxy::Kind;
use crate::verbs::{Line, VERBS, Verb, bytes};

/// How long nothing may move.
const SILENCE: Duration = Duration::from_millis(300);
/// How long a byte takes.
const PAUSE: Duration = Duration::from_millis(100);

/// A place of who waits for a moment only, with what the verb needs.
fn line(verb: &Verb) -> Option<Line> {
    let line = Line::with(moto::server()?.place("slow"), |settings| settings.timeout = SILENCE);
    verb.before.iter().for_each(|(key, bytes)| line.place.put(key, bytes));
    Some(line)
}

#[test]
fn an_answer_that_comes_byte_by_byte_is_not_waited_for_without_end() {
    let drips = |verb: &Verb| {
        let kind = verb.kind;
        let Some(line) = line(verb) else { return };
        line.proxy.fault(usize::MAX, Fault::Drip(PAUSE), move |seen| seen.kind == kind);
        let begun = Instant::now();
        let error = (verb.act)(&line).expect_err(verb.name);
        assert_eq!(error.code, Code::Timeout, "{}: {error:?}", verb.name);
        // Ten times the silence, twice; the uploads of the verbs of large objects take their time before.
        assert!(begun.elapsed() < SILENCE * 20 + Duration::from_secs(9), "{}: {:?}", verb.name, begun.elapsed());
    };
    std::thread::scope(|scope| VERBS.iter().for_each(|verb| drop(scope.spawn(move || drips(verb)))));
}

#[test]
fn a_document_that_comes_byte_by_byte_is_not_waited_for_without_end() {
    for name in ["list", "get_small", "remove many"] {
        let verb = VERBS.iter().find(|verb| verb.name == name).unwrap();
        let Some(line) = line(verb) else { return };
        line.place.put(".distributor.json", &bytes(100));
        line.proxy.fault(usize::MAX, Fault::Trickle { bytes: 1, pause: PAUSE }, move |seen| seen.kind == verb.kind);
        let begun = Instant::now();
        let error = (verb.act)(&line).expect_err(name);
        assert_eq!(error.code, Code::Timeout, "{name}: {error:?}");
        assert!(begun.elapsed() < SILENCE * 20 + Duration::from_secs(4), "{name}: {:?}", begun.elapsed());
    }
}

#[test]
fn an_object_may_take_as_long_as_it_moves() {
    let Some(server) = moto::server() else { return };
    let line = Line::with(server.place("long"), |settings| settings.timeout = SILENCE);
    let want = bytes(5000);
    line.place.put("x", &want);
    line.proxy.fault(1, Fault::Trickle { bytes: 100, pause: PAUSE }, |seen| seen.kind == Kind::GetObject);
    assert!(line.read("x").unwrap() == want);
    assert_eq!(line.proxy.seen().len(), 1);
}

#[test]
fn a_source_that_gives_a_byte_a_connection_is_given_up() {
    let Some(server) = moto::server() else { return };
    let line = Line::to(server.place("bytes"));
    line.place.put("x", &bytes(100));
    line.proxy.fault(usize::MAX, Fault::Cut(1), |seen| seen.kind == Kind::GetObject);
    let error = line.read("x").unwrap_err();
    assert_eq!(error.code, Code::Unreachable, "{error:?}");
    assert!(line.proxy.seen().len() < 9, "{}", line.proxy.seen().len());
}
