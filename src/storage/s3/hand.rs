//! What this process holds of large objects while their parts are on their way, to however many destinations.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// How many bytes are held at a time.
pub(super) const MOST: u64 = 40 * 1024 * 1024;

static HAND: Hand = Hand::new(MOST);

/// Waits until so many bytes more may be held. Who holds a share waits for no other: it is sent and dropped. What is
/// more than all has its turn when nothing else is held.
pub(super) fn take(bytes: u64) -> Share {
    HAND.take(bytes)
}

/// Bytes that may be held until it is dropped.
pub(super) struct Share {
    hand: &'static Hand,
    bytes: u64,
}

struct Hand {
    most: u64,
    held: Mutex<Held>,
    freed: Condvar,
}

/// One after the other is served, in the order in which they came.
struct Held {
    bytes: u64,
    /// Whose turn it is.
    turn: u64,
    /// The number of who comes next.
    next: u64,
}

impl Hand {
    const fn new(most: u64) -> Hand {
        Hand { most, held: Mutex::new(Held { bytes: 0, turn: 0, next: 0 }), freed: Condvar::new() }
    }

    fn take(&'static self, bytes: u64) -> Share {
        let mut held = self.held();
        let number = held.next;
        held.next += 1;
        let waits =
            |held: &mut Held| held.turn != number || held.bytes > 0 && held.bytes.saturating_add(bytes) > self.most;
        let mut held = self.freed.wait_while(held, waits).unwrap_or_else(PoisonError::into_inner);
        held.turn += 1;
        held.bytes += bytes;
        drop(held);
        self.freed.notify_all();
        Share { hand: self, bytes }
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.hand.held().bytes -= self.bytes;
        self.hand.freed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::thread;
    use std::time::Duration;

    use super::*;

    #[test]
    fn no_more_is_held_than_may_be_and_all_have_their_turn() {
        static SMALL: Hand = Hand::new(10);
        let (now, most, done) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
        thread::scope(|scope| {
            for bytes in [1, 3, 10, 4, 7, 2, 25, 6, 0, 5].repeat(5) {
                let (now, most, done) = (&now, &most, &done);
                scope.spawn(move || {
                    let _share = SMALL.take(bytes);
                    let held = now.fetch_add(bytes, Ordering::SeqCst) + bytes;
                    // What is more than all is alone.
                    assert!(held <= 10 || held == 25 && bytes == 25, "{held}");
                    most.fetch_max(held, Ordering::SeqCst);
                    thread::sleep(Duration::from_millis(1));
                    now.fetch_sub(bytes, Ordering::SeqCst);
                    done.fetch_add(1, Ordering::SeqCst);
                });
            }
        });
        assert_eq!((done.into_inner(), most.into_inner(), SMALL.held().bytes), (50, 25, 0));
    }
}
