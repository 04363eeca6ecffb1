//! The lock.

use std::cell::RefCell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use distributor::error::{Error, Result};
use distributor::storage::{Guard, Scope, Storage};

use super::{Code, code, each, files, stop};

const JOURNAL: &str = ".distributor.journal-1.json";

fn refuse(_: Duration) -> Result<()> {
    stop()
}

fn lock(storage: &dyn Storage) -> Box<dyn Guard> {
    storage.lock(b"me\n", &refuse).unwrap()
}

#[test]
fn a_lock_keeps_others_out_until_it_is_released() {
    each(|bench| {
        let (one, other) = (bench.again(), bench.again());
        assert!(!one.is_locked().unwrap());
        let guard = lock(one.as_ref());
        guard.check().unwrap();
        assert!(other.is_locked().unwrap() && other.disturbed(JOURNAL).unwrap());
        let waited = RefCell::new(Vec::new());
        let result = other.lock(b"it\n", &|time| {
            waited.borrow_mut().push(time);
            if waited.borrow().len() < 3 { Ok(()) } else { Err(Error::new(Code::Locked, "too long")) }
        });
        assert_eq!(code(result.map(|_| ())), Some(Code::Locked));
        let waited = waited.into_inner();
        assert!(waited.len() == 3 && waited.is_sorted() && waited[2] > Duration::ZERO, "{waited:?}");
        guard.check().unwrap();
        guard.release(false).unwrap();
        assert!(!other.is_locked().unwrap() && !other.disturbed(JOURNAL).unwrap());
        assert_eq!(files(one.as_ref(), Scope::Source), Vec::<String>::new(), "no trace");
        lock(other.as_ref()).release(false).unwrap();
    });
}

#[test]
fn who_waits_gets_the_lock_when_it_is_free() {
    each(|bench| {
        let (inside, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..5 {
                        let guard = bench.again().lock(b"me\n", &|_| Ok(())).unwrap();
                        most.fetch_max(inside.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                        std::thread::sleep(Duration::from_millis(1));
                        guard.check().unwrap();
                        inside.fetch_sub(1, Ordering::SeqCst);
                        guard.release(false).unwrap();
                    }
                });
            }
        });
        assert_eq!(most.load(Ordering::SeqCst), 1, "two held it at once");
    });
}

#[test]
fn a_lock_that_is_dropped_is_free_and_leaves_a_trace() {
    each(|bench| {
        // Where the system does not tell who holds it, the holder itself tells that it is gone.
        let holder = serde_json::to_vec(&crate::scene::gone()).unwrap();
        drop(bench.storage.lock(&holder, &refuse).unwrap());
        let other = bench.again();
        assert!(!other.is_locked().unwrap());
        assert!(other.disturbed(JOURNAL).unwrap(), "as after a crash");
        lock(other.as_ref()).release(false).unwrap();
        assert!(!other.disturbed(JOURNAL).unwrap());
    });
}

#[test]
fn a_lock_that_is_released_with_a_mark_is_free_and_disturbs() {
    each(|bench| {
        lock(bench.storage.as_ref()).release(true).unwrap();
        let other = bench.again();
        assert!(!other.is_locked().unwrap() && other.disturbed(JOURNAL).unwrap());
        lock(other.as_ref()).release(false).unwrap();
        assert!(!other.disturbed(JOURNAL).unwrap());
    });
}

#[test]
fn locks_of_places_beside_and_below_are_their_own() {
    each(|bench| {
        let guards = [lock(bench.storage.as_ref()), lock(bench.below("a").as_ref()), lock(bench.below("b").as_ref())];
        assert!(guards.iter().all(|guard| guard.check().is_ok()));
        assert!(bench.below("a").is_locked().unwrap() && !bench.below("c").is_locked().unwrap());
        for guard in guards {
            guard.release(false).unwrap();
        }
    });
}
