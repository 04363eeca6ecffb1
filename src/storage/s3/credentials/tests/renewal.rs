//! How long a key is kept, and who asks for the next one.

use std::sync::Arc;
use std::time::Duration;

use super::Reply::Says;
use super::{Chain, Server, chain, document, get, in_minutes, parts, safe, says, serve};

/// A chain over a container's agent that is asked again at once, and that agent. Its keys are called 0, 1, …, and last
/// for as many minutes as `lasts` has for each; where it has none, the agent answers 404.
fn renewed(lasts: &'static [i64]) -> (Chain, Server) {
    let server = serve(move |before, _| match lasts.get(before) {
        Some(minutes) => Says(200, document(&before.to_string(), &in_minutes(*minutes))),
        None => Says(404, String::new()),
    });
    let mut chain = chain(&[("AWS_CONTAINER_CREDENTIALS_FULL_URI", &server.address)]);
    chain.pause = Duration::ZERO;
    (chain, server)
}

fn id(chain: &Chain) -> String {
    parts(&get(chain).unwrap()).0
}

#[test]
fn a_key_that_ends_soon_is_renewed() {
    let (chain, server) = renewed(&[4, 60]);
    assert_eq!([id(&chain), id(&chain), id(&chain)], ["0", "1", "1"]);
    assert_eq!(server.asked().len(), 2);
}

#[test]
fn a_renewal_that_fails_is_no_error_while_the_key_is_good() {
    let (chain, server) = renewed(&[4]);
    assert_eq!([id(&chain), id(&chain)], ["0", "0"]);
    assert_eq!(server.asked().len(), 2);
    assert!(chain.renew(&get(&chain).unwrap()));
    says(&safe(get(&chain).unwrap_err()), &["the server answers 404"]);
}

#[test]
fn a_source_is_not_asked_for_every_request() {
    let (mut chain, server) = renewed(&[4, 4]);
    chain.pause = Duration::from_mins(1);
    assert_eq!([id(&chain), id(&chain)], ["0", "0"]);
    assert_eq!(server.asked().len(), 1);
    let (mut chain, server) = renewed(&[]);
    chain.pause = Duration::from_mins(1);
    let errors = [get(&chain).unwrap_err().message, get(&chain).unwrap_err().message];
    assert_eq!(errors[0], errors[1]);
    assert_eq!(server.asked().len(), 1);
}

#[test]
fn a_key_that_was_refused_is_forgotten_once() {
    let (mut chain, server) = renewed(&[60, 60, 60]);
    chain.pause = Duration::from_mins(1);
    let first = get(&chain).unwrap();
    assert!(chain.renew(&first));
    assert_eq!(id(&chain), "1");
    assert!(chain.renew(&first), "another thread met the same refusal");
    assert_eq!(id(&chain), "1");
    assert_eq!(server.asked().len(), 2);
}

#[test]
fn the_environment_has_no_other_key() {
    let chain = chain(&[("AWS_ACCESS_KEY_ID", "A"), ("AWS_SECRET_ACCESS_KEY", "hush")]);
    let key = get(&chain).unwrap();
    assert!(!chain.renew(&key));
}

/// What eight threads get at once.
fn ids(chain: &Chain) -> Vec<String> {
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(|| id(chain))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

#[test]
fn many_threads_ask_once() {
    let server = serve(|before, _| {
        std::thread::sleep(Duration::from_millis(200));
        Says(200, document(&before.to_string(), &in_minutes(if before == 0 { 4 } else { 60 })))
    });
    let mut chain = chain(&[("AWS_CONTAINER_CREDENTIALS_FULL_URI", &server.address)]);
    let all = ids(&chain);
    assert!(all.iter().all(|id| id == "0"), "{all:?}");
    assert_eq!(server.asked().len(), 1);
    chain.pause = Duration::ZERO;
    let all = ids(&chain);
    assert!(all.iter().any(|id| id == "1"), "one asks, and the others may go on meanwhile: {all:?}");
    assert_eq!(server.asked().len(), 2);
}

#[test]
fn others_go_on_while_one_asks() {
    let server = serve(|before, _| {
        std::thread::sleep(Duration::from_millis(if before == 0 { 0 } else { 1500 }));
        Says(200, document(&before.to_string(), &in_minutes(4)))
    });
    let mut chain = chain(&[("AWS_CONTAINER_CREDENTIALS_FULL_URI", &server.address)]);
    chain.pause = Duration::ZERO;
    assert_eq!(id(&chain), "0");
    std::thread::scope(|scope| {
        let asking = scope.spawn(|| id(&chain));
        // Asked by that thread, and not answered yet.
        while server.asked().len() < 2 {
            std::thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(id(&chain), "0");
        assert_eq!(asking.join().unwrap(), "1");
    });
    assert_eq!(server.asked().len(), 2);
}

#[test]
fn a_signal_ends_asking() {
    let (chain, server) = renewed(&[60]);
    let cancel = crate::host::Cancel::default();
    cancel.raise(15);
    let error = chain.get(&super::http(), &cancel).unwrap_err();
    assert_eq!(error.code, crate::error::Code::Interrupted);
    assert!(server.asked().is_empty());
    let key = Arc::new(super::Key::of("A", "B", None, None).unwrap());
    assert!(chain.renew(&key));
}
