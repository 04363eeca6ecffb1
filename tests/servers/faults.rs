//! The proxy's faults are what a client would see on a bad day.

use std::io::{BufReader, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use crate::servers::fault::{self, Fault};
use crate::servers::http::{Message, exchange};
use crate::servers::place::one;
use crate::servers::proxy::{Kind, Proxy, Seen};
use crate::servers::{Place, moto};

/// A place with an object `a`, and a proxy before it.
struct Scene {
    place: Place,
    proxy: Proxy,
}

const BYTES: &[u8] = b"0123456789";

impl Scene {
    fn new() -> Option<Scene> {
        let server = moto::server()?;
        let (place, proxy) = (server.place("faults"), Proxy::before(server.address));
        place.put("a", BYTES);
        Some(Scene { place, proxy })
    }

    fn get(&self) -> Message {
        self.place.signed((self.proxy.address, "GET"), Some("a"), &[], &[], b"")
    }

    fn put(&self, key: &str) -> Message {
        self.place.signed((self.proxy.address, "PUT"), Some(key), &[], &[], BYTES)
    }

    fn line(&self) -> BufReader<TcpStream> {
        BufReader::new(TcpStream::connect(self.proxy.address).unwrap())
    }
}

fn any(_: &Seen) -> bool {
    true
}

#[test]
fn a_lost_connection_is_lost_before_or_after_the_server_did_it() {
    let Some(scene) = Scene::new() else { return };
    for (fault, key, done) in [(Fault::ResetBefore, "before", false), (Fault::ResetAfter, "after", true)] {
        scene.proxy.fault(1, fault, |seen| seen.kind == Kind::PutObject);
        let error = exchange(&mut scene.line(), &scene.put(key)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionReset);
        assert_eq!(scene.place.get(key).is_some(), done, "{key}");
    }
    scene.proxy.fault(1, Fault::Close, any);
    let error = exchange(&mut scene.line(), &scene.put("closed")).unwrap_err();
    assert_eq!((error.kind(), scene.place.get("closed").is_some()), (ErrorKind::UnexpectedEof, false));
    assert!(scene.proxy.seen().iter().all(|seen| seen.faulty && seen.status.is_none()));
    assert_eq!((scene.proxy.faults_left(), scene.proxy.connections()), (0, 3));
}

#[test]
fn answers_are_replaced_before_or_after_the_server_did_it() {
    let Some(scene) = Scene::new() else { return };
    let mut line = scene.line();
    scene.proxy.fault(2, Fault::Instead(fault::slow_down(3)), |seen| seen.kind == Kind::PutObject);
    for _ in 0..2 {
        let answer = exchange(&mut line, &scene.put("b")).unwrap();
        assert_eq!((answer.status(), answer.field("retry-after")), (503, Some("3")));
        assert_eq!(one(&answer.text(), "Code"), "SlowDown");
        assert!(scene.place.get("b").is_none());
    }
    scene.proxy.fault(1, Fault::After(fault::error(500, "InternalError")), any);
    assert_eq!(exchange(&mut line, &scene.put("b")).unwrap().status(), 500);
    assert_eq!(scene.place.bytes("b"), BYTES);
    for (status, code) in
        [(301, "PermanentRedirect"), (307, "TemporaryRedirect"), (400, "AuthorizationHeaderMalformed")]
    {
        scene.proxy.fault(1, Fault::Instead(fault::elsewhere(status, code, "eu-test-1")), any);
        let answer = exchange(&mut line, &scene.get()).unwrap();
        assert_eq!((answer.status(), answer.field("x-amz-bucket-region")), (status, Some("eu-test-1")));
        let text = answer.text();
        assert_eq!((one(&text, "Code"), one(&text, "Region")), (code, "eu-test-1"));
    }
    for answer in [fault::error_in_200("InternalError"), fault::undeleted("a", "AccessDenied")] {
        scene.proxy.fault(1, Fault::Instead(answer), any);
        let answer = exchange(&mut line, &scene.get()).unwrap();
        assert_eq!((answer.status(), answer.text().contains("<Error>")), (200, true));
    }
    scene.proxy.fault(1, Fault::Instead(fault::garbage(200)), any);
    assert!(std::str::from_utf8(&exchange(&mut line, &scene.get()).unwrap().body).is_err());
    assert_eq!(exchange(&mut line, &scene.get()).unwrap().body, BYTES);
    assert_eq!(scene.proxy.connections(), 1);
}

#[test]
fn the_head_of_an_error_has_no_body() {
    let Some(scene) = Scene::new() else { return };
    scene.proxy.fault(1, Fault::Instead(fault::error(503, "SlowDown")), any);
    let mut line = scene.line();
    let head = || scene.place.signed((scene.proxy.address, "HEAD"), Some("a"), &[], &[], b"");
    assert_eq!(exchange(&mut line, &head()).unwrap().status(), 503);
    let answer = exchange(&mut line, &head()).unwrap();
    assert_eq!((answer.status(), answer.field("content-length")), (200, Some("10")));
}

#[test]
fn bodies_are_cut_slow_or_not_as_long_as_told() {
    let Some(scene) = Scene::new() else { return };
    scene.proxy.fault(1, Fault::Cut(4), any);
    let error = exchange(&mut scene.line(), &scene.get()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::UnexpectedEof);

    let (bytes, pause) = (3, Duration::from_millis(20));
    scene.proxy.fault(1, Fault::Trickle { bytes, pause }, any);
    let begun = Instant::now();
    assert_eq!(exchange(&mut scene.line(), &scene.get()).unwrap().body, BYTES);
    assert!(begun.elapsed() >= pause * 4);

    scene.proxy.fault(1, Fault::Length(-2), any);
    let mut line = scene.line();
    assert_eq!(exchange(&mut line, &scene.get()).unwrap().body, BYTES[..8]);
    assert!(exchange(&mut line, &scene.get()).unwrap().start.starts_with("89HTTP/1.1"));

    scene.proxy.fault(1, Fault::Length(2), any);
    let line = scene.line();
    line.get_ref().set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    let mut line = line;
    assert_eq!(exchange(&mut line, &scene.get()).unwrap_err().kind(), ErrorKind::WouldBlock);
}

#[test]
fn silence_is_silent_and_a_delay_ends() {
    let Some(scene) = Scene::new() else { return };
    scene.proxy.fault(1, Fault::Silence, any);
    let mut stream = TcpStream::connect(scene.proxy.address).unwrap();
    stream.write_all(&scene.get().head()).unwrap();
    stream.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    assert_eq!(stream.read(&mut [0]).unwrap_err().kind(), ErrorKind::WouldBlock);
    let delay = Duration::from_millis(50);
    scene.proxy.fault(1, Fault::Delay(delay), any);
    let begun = Instant::now();
    assert_eq!(exchange(&mut scene.line(), &scene.get()).unwrap().status(), 200);
    assert!(begun.elapsed() >= delay);
}

#[test]
fn a_fault_waits_for_its_request() {
    let Some(scene) = Scene::new() else { return };
    let no = || Fault::Instead(fault::error(500, "InternalError"));
    scene.proxy.fault_after(2, 1, no(), |seen| seen.kind == Kind::GetObject);
    let mut line = scene.line();
    let mut ask = |request: &Message| exchange(&mut line, request).unwrap().status();
    let told = [scene.get(), scene.put("b"), scene.get(), scene.put("c"), scene.get(), scene.get()];
    assert_eq!(told.map(|request| ask(&request)), [200, 200, 200, 200, 500, 200]);
}

#[test]
fn a_client_may_wait_until_its_body_is_wanted() {
    let Some(scene) = Scene::new() else { return };
    let request = scene.put("e").with("Expect", "100-continue").with("Content-Length", "10");
    let mut line = scene.line();
    line.get_mut().write_all(&request.head()).unwrap();
    let go_on = Message::read_head(&mut line).unwrap().unwrap();
    assert_eq!(go_on.status(), 100);
    line.get_mut().write_all(BYTES).unwrap();
    let mut answer = Message::read_head(&mut line).unwrap().unwrap();
    answer.read_answer("PUT", &mut line).unwrap();
    assert_eq!((answer.status(), scene.place.bytes("e")), (200, BYTES.to_vec()));
}
