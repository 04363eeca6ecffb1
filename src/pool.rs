//! Bounded scoped threads with ordered results and cancellation.

use std::io;
use std::num::NonZero;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, Scope};

/// How many threads suit work that mostly computes: the cores this process may use.
pub fn cores() -> usize {
    thread::available_parallelism().map_or(1, NonZero::get)
}

/// Runs `work` on every item with at most `threads` threads, the calling one among them; the results stand in the
/// order of the items. A panic in `work` is resumed here.
pub fn map<T: Sync, R: Send>(threads: usize, items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    map_while(threads, items, work, |_| true)
}

/// The same until `goes_on` says no of a result: no item is begun then that was not. The results are those of the first
/// items, without a gap.
pub fn map_while<T: Sync, R: Send>(
    threads: usize,
    items: &[T],
    work: impl Fn(&T) -> R + Sync,
    goes_on: impl Fn(&R) -> bool + Sync,
) -> Vec<R> {
    let threads = threads.clamp(1, items.len().max(1));
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::with_capacity(items.len()));
    let drain = || {
        let mut mine = Vec::new();
        while let Some((at, item)) = take(&next, items) {
            let result = work(item);
            if !goes_on(&result) {
                next.fetch_max(items.len(), Ordering::Relaxed);
            }
            mine.push((at, result));
        }
        done.lock().unwrap_or_else(std::sync::PoisonError::into_inner).append(&mut mine);
    };
    thread::scope(|scope| {
        // Where there is none, this one does it all.
        let _ = spawn(scope, threads - 1, &drain);
        drain();
    });
    let mut done = done.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    done.sort_unstable_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, result)| result).collect()
}

/// Lets threads do `work`, so many of them: where the system has no more to give, those that there are do it all. An
/// error where there is none.
pub fn spawn<'scope, W: Fn() + Sync>(
    scope: &'scope Scope<'scope, '_>,
    threads: usize,
    work: &'scope W,
) -> io::Result<()> {
    for nth in 0..threads {
        match thread::Builder::new().spawn_scoped(scope, work) {
            Err(error) if nth == 0 => return Err(error),
            Err(_) => break,
            Ok(_) => {}
        }
    }
    Ok(())
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
    fn nothing_is_begun_after_a_result_that_ends_it() {
        let items: Vec<usize> = (0..1000).collect();
        assert_eq!(map_while(1, &items, |n| *n, |n| *n < 10), (0..=10).collect::<Vec<_>>());
        let some = map_while(4, &items, |n| *n, |_| false);
        assert!((1..=4).contains(&some.len()), "{some:?}");
        assert_eq!(some, items[..some.len()]);
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
