//! Locks on S3 that their holders could not keep.

use std::time::Duration;

use distributor::error::{Code, Result};
use distributor::names::STATE;
use distributor::storage::{Expected, Stage, Storage};

use crate::servers::fault::{self, Fault};
use crate::servers::proxy::{Kind, Seen};
use crate::servers::{self, Server};
use crate::verbs::{Line, PART, bytes, rel};

/// Longer than a lock is held that is not written again.
const TOO_LONG: Duration = Duration::from_secs(47);

fn on_each(test: impl Fn(&'static Server) + Sync) {
    std::thread::scope(|scope| servers::all().into_iter().for_each(|server| drop(scope.spawn(|| test(server)))));
}

fn lost<T>(result: Result<T>) {
    assert_eq!(result.err().map(|error| error.code), Some(Code::LockLost));
}

fn changes(seen: &Seen) -> bool {
    !matches!(seen.kind, Kind::GetObject | Kind::HeadObject | Kind::List)
}

/// A lock whose holder could not write it again, and who waited in vain for the answer to a PUT meanwhile.
#[test]
fn nothing_is_changed_once_the_lock_is_lost() {
    on_each(|server| {
        let line = Line::with(server.place("lost"), |settings| {
            settings.concurrency = 1;
            settings.timeout = TOO_LONG;
        });
        let guard = line.storage.lock(b"me", &|_| Ok(())).unwrap();
        let (large, outputs) = (bytes(PART + 1), [("a", &b"1"[..]), ("b", b"2"), ("c", b"3")]);
        line.stage("2", &[("large", &large)]).unwrap();
        line.stage("1", &outputs).unwrap();
        let is_lock = |seen: &Seen| seen.kind == Kind::PutObject && seen.key.contains("/.distributor.lock-");
        line.proxy.fault(usize::MAX, Fault::Instead(fault::error(403, "AccessDenied")), is_lock);
        let is_b = |seen: &Seen| seen.kind == Kind::PutObject && seen.key.ends_with("/b");
        line.proxy.fault(1, Fault::Silence, is_b);
        lost(line.commit("1", &outputs, false));
        assert_eq!(line.proxy.seen().iter().filter(|seen| is_b(seen)).count(), 1, "{}", server.name);

        line.proxy.forget();
        lost(guard.check());
        lost(line.commit("1", &outputs[2..], false));
        lost(line.commit("1", &[("c", &bytes(2 << 20))], true));
        lost(line.commit("2", &[("large", &large)], false));
        lost(line.storage.remove_created(&Stage("1".to_owned()), &[&rel("a")]));
        lost(line.remove(&["a"]).pop().unwrap());
        lost(line.remove(&["a", "b"]).pop().unwrap());
        lost(line.storage.put_small(STATE, b"{}", Expected::Version(None)));
        lost(line.storage.remove_small(STATE));
        lost(line.stage("3", &[("more", &large)]));
        assert!(!line.proxy.seen().iter().any(changes), "{}: {:?}", server.name, line.proxy.counts());
        // Its own uploads are nobody else's, nor is its lock.
        lost(line.storage.close_stage(&Stage("2".to_owned())));
        assert!(line.place.uploads().is_empty(), "{}", server.name);
        guard.release(false).unwrap();
        assert_eq!(line.place.keys(), [".distributor.lock", ".distributor.stage-2", "a"], "{}", server.name);
        // Who takes it now holds it.
        let guard = line.storage.lock(b"me", &|_| Ok(())).unwrap();
        line.put(&[("b", b"2")], false).unwrap();
        guard.release(false).unwrap();
    });
}

/// The times of a listing are those of the store, which the clock of what stands before it need not have.
#[test]
fn the_age_of_a_lock_is_told_by_the_clock_of_the_store() {
    const OTHER: &str = ".distributor.lock-other";
    on_each(|server| {
        let line = Line::to(server.place("clock"));
        let date = |date: &str| {
            line.proxy.forget();
            let field = Fault::Field("Date", date.to_owned());
            line.proxy.fault(usize::MAX, field, |seen: &Seen| seen.kind == Kind::List);
        };
        line.place.put(OTHER, b"somebody on another host");
        date("Fri, 01 Jan 2100 00:00:00 GMT");
        let refuse = |_| Err(distributor::error::Error::new(Code::Locked, "no"));
        let refused = line.storage.lock(b"me", &refuse).map(drop).map_err(|error| error.code);
        assert_eq!(refused, Err(Code::Locked), "{}", server.name);
        assert_eq!(line.place.keys(), [OTHER], "{}", server.name);
        // By a clock that is late it would be young for ever.
        date("Mon, 01 Jan 2001 00:00:00 GMT");
        let patient = |waited: Duration| if waited.as_secs() > 150 { refuse(waited) } else { Ok(()) };
        let guard = line.storage.lock(b"me", &patient).unwrap_or_else(|error| panic!("{}: {error}", server.name));
        assert!(line.place.get(OTHER).is_none(), "{}", server.name);
        guard.release(false).unwrap();
        assert_eq!(line.place.keys(), Vec::<String>::new(), "{}", server.name);
    });
}

/// A listing may show for ever what is not there any more.
#[test]
fn a_lock_that_is_listed_and_can_t_be_read_counts_as_held() {
    on_each(|server| {
        let line = Line::to(server.place("hidden"));
        line.place.put(".distributor.lock-other", b"somebody");
        let is_look = |seen: &Seen| seen.kind == Kind::GetObject && seen.key.ends_with("/.distributor.lock-other");
        line.proxy.fault(usize::MAX, Fault::Instead(fault::error(404, "NoSuchKey")), is_look);
        let (done, cancel) = (std::sync::atomic::AtomicBool::new(false), line.cancel.clone());
        std::thread::scope(|scope| {
            // Who looks for ever is stopped.
            scope.spawn(|| {
                let begun = std::time::Instant::now();
                while !done.load(std::sync::atomic::Ordering::SeqCst) && begun.elapsed() < Duration::from_secs(20) {
                    std::thread::sleep(Duration::from_millis(20));
                }
                cancel.raise(15);
            });
            let locked = line.storage.is_locked().map_err(|error| error.code);
            let refuse = |_| Err(distributor::error::Error::new(Code::Locked, "no"));
            let refused = line.storage.lock(b"me", &refuse).map(drop).map_err(|error| error.code);
            done.store(true, std::sync::atomic::Ordering::SeqCst);
            assert_eq!((locked, refused), (Ok(true), Err(Code::Locked)), "{}", server.name);
        });
        let looks = line.proxy.seen().iter().filter(|seen| is_look(seen)).count();
        assert!((4..=20).contains(&looks), "{}: {looks} looks", server.name);
    });
}
