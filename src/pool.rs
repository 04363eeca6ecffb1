//! Bounded scoped threads with ordered results and cancellation.

use std::num::NonZero;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// How many threads suit work that mostly computes: the cores this process may use.
pub fn cores() -> usize {
    thread::available_parallelism().map_or(1, NonZero::get)
}

/// Runs `work` on every item with at most `threads` threads, the calling one among them; the results stand in the
/// order of the items. A panic in `work` is resumed here.
pub fn map<T: Sync, R: Send>(threads: usize, items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let threads = threads.clamp(1, items.len().max(1));
    if threads == 1 {
        return items.iter().map(work).collect();
    }
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::with_capacity(items.len()));
    let drain = || {
        let mut mine = Vec::new();
        while let Some((at, item)) = take(&next, items) {
            mine.push((at, work(item)));
        }
        done.lock().unwrap_or_else(std::sync::PoisonError::into_inner).append(&mut mine);
    };
    thread::scope(|scope| {
        for _ in 1..threads {
            // Where the system has no thread to give, the others do its share.
            if thread::Builder::new().spawn_scoped(scope, drain).is_err() {
                break;
            }
        }
        drain();
    });
    let mut done = done.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    done.sort_unstable_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, result)| result).collect()
}

fn take<'a, T>(next: &AtomicUsize, items: &'a [T]) -> Option<(usize, &'a T)> {
    let at = next.fetch_add(1, Ordering::Relaxed);
    items.get(at).map(|item| (at, item))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_keep_the_order_of_the_items() {
        let items: Vec<usize> = (0..10_000).collect();
        for threads in [0, 1, 2, 7] {
            assert_eq!(map(threads, &items, |n| n * 2), items.iter().map(|n| n * 2).collect::<Vec<_>>());
        }
        assert!(map(4, &[] as &[u8], |_| ()).is_empty());
    }

    #[test]
    fn never_more_threads_than_asked_for() {
        let (now, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        map(3, &[(); 50], |()| {
            most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            thread::sleep(std::time::Duration::from_millis(1));
            now.fetch_sub(1, Ordering::SeqCst);
        });
        assert!(most.into_inner() <= 3);
    }
}
