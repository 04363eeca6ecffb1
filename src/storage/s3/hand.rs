//! What this process holds of large objects while their parts are on their way, to however many destinations.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// How many bytes are held at a time.
pub(super) const MOST: u64 = 40 * 1024 * 1024;

static HAND: Hand = Hand::new(MOST);

/// Memory of this size goes back to the system as soon as it is freed; of less glibc keeps what was used once
/// (mallopt(3), `M_MMAP_THRESHOLD`). What is never written to takes no memory.
const RETURNED: usize = 33 * 1024 * 1024;

/// Waits until so many bytes more may be held. Who holds a share waits for no other: it is sent and dropped. What is
/// more than all has its turn when nothing else is held.
pub(super) fn take(size: u64) -> Share {
    HAND.take(size)
}

/// Room for bytes that may be held until it is dropped.
pub(super) struct Share {
    hand: &'static Hand,
    size: u64,
    /// What is held; no more than was asked for.
    pub(super) bytes: Vec<u8>,
}

struct Hand {
    most: u64,
    held: Mutex<Held>,
    freed: Condvar,
}

/// One after the other is served, in the order in which they came.
struct Held {
    size: u64,
    /// Whose turn it is.
    turn: u64,
    /// The number of who comes next.
    next: u64,
    /// Rooms for the next ones of their size, as long as anything is held. With what is held they are no more than may be.
    spare: Vec<(u64, Vec<u8>)>,
}

impl Hand {
    const fn new(most: u64) -> Hand {
        Hand { most, held: Mutex::new(Held { size: 0, turn: 0, next: 0, spare: Vec::new() }), freed: Condvar::new() }
    }

    fn take(&'static self, size: u64) -> Share {
        let mut held = self.held();
        let number = held.next;
        held.next += 1;
        let waits =
            |held: &mut Held| held.turn != number || held.size > 0 && held.size.saturating_add(size) > self.most;
        let mut held = self.freed.wait_while(held, waits).unwrap_or_else(PoisonError::into_inner);
        held.turn += 1;
        held.size += size;
        let bytes = held.room(size);
        drop(held);
        self.freed.notify_all();
        Share { hand: self, size, bytes }
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Held {
    fn room(&mut self, size: u64) -> Vec<u8> {
        if let Some(at) = self.spare.iter().position(|(of, _)| *of == size) {
            return self.spare.swap_remove(at).1;
        }
        self.spare.clear();
        Vec::with_capacity(usize::try_from(size).unwrap_or_default().max(RETURNED))
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut bytes = std::mem::take(&mut self.bytes);
        bytes.clear();
        let mut held = self.hand.held();
        held.size -= self.size;
        held.spare.push((self.size, bytes));
        if held.size == 0 {
            held.spare.clear();
        }
        drop(held);
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
                    let share = SMALL.take(bytes);
                    assert!(share.bytes.is_empty() && share.bytes.capacity() as u64 >= bytes);
                    let all = SMALL.held();
                    assert!(all.size + all.spare.iter().map(|(size, _)| size).sum::<u64>() <= all.size.max(10));
                    drop(all);
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
        assert_eq!((done.into_inner(), most.into_inner(), SMALL.held().size), (50, 25, 0));
        assert!(SMALL.held().spare.is_empty(), "what nobody holds is given back");
    }
}
