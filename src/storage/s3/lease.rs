//! How long a lock is held: until its last writing is too old. Every request that changes something is bound to that.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use crate::error::{Code, Error, Result};

/// How often a lock is written again.
const RENEWED: Duration = Duration::from_secs(15);
/// How old its last writing may be, by this host's clocks, for its holder to go on.
const HELD: Duration = Duration::from_secs(45);

/// A moment, by the clock that never goes back and by the one that goes on while the machine sleeps.
#[derive(Clone, Copy)]
pub(super) struct Moment {
    steady: Instant,
    wall: SystemTime,
}

impl Moment {
    pub(super) fn now() -> Moment {
        Moment { steady: Instant::now(), wall: SystemTime::now() }
    }

    /// How long ago it was, by the clock that says more.
    fn age(self) -> Duration {
        self.steady.elapsed().max(self.wall.elapsed().unwrap_or_default())
    }
}

/// The time for which a lock is held. Once it has run out it never begins again.
pub(super) struct Lease {
    /// What is locked, for messages.
    place: String,
    /// When the last writing that succeeded began; nothing once the lock was lost.
    last: Mutex<Option<Moment>>,
    over: Mutex<bool>,
    wake: Condvar,
}

impl Lease {
    /// That of a lock whose writing began at `written`.
    pub(super) fn since(written: Moment, place: String) -> Lease {
        Lease { place, last: Mutex::new(Some(written)), over: Mutex::default(), wake: Condvar::new() }
    }

    /// Has the lock written again with `write` every now and then, until [`Lease::end`].
    pub(super) fn renew(&self, write: impl Fn() -> Result<()>) {
        let mut over = self.over.lock().unwrap_or_else(PoisonError::into_inner);
        while !*over {
            let (next, _) = self.wake.wait_timeout(over, RENEWED).unwrap_or_else(PoisonError::into_inner);
            over = next;
            // Held while it is written: what is released is not written again.
            if !*over && self.is_fresh() {
                let begun = Moment::now();
                if write().is_ok() && self.is_fresh() {
                    *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(begun);
                }
            }
        }
    }

    pub(super) fn end(&self) {
        *self.over.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.wake.notify_all();
    }

    /// Whether the lock is held: a process that stood still for too long never holds it again.
    pub(super) fn is_fresh(&self) -> bool {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        *last = last.filter(|last| last.age() < HELD);
        last.is_some()
    }

    /// [`crate::storage::Guard::check`].
    pub(super) fn check(&self) -> Result<()> {
        if self.is_fresh() {
            return Ok(());
        }
        let message = format!("{}: the lock was not renewed in time", self.place);
        Err(Error::new(Code::LockLost, message).hint("run again"))
    }
}

/// What binds requests to the lease of the lock that is held.
#[derive(Default)]
pub(super) struct Bond(Mutex<Option<Arc<Lease>>>);

impl Bond {
    /// From here on they are bound to this one.
    pub(super) fn tie(&self, lease: &Arc<Lease>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).replace(Arc::clone(lease));
    }

    /// From here on they are not bound to this one any more; perhaps they are to another.
    pub(super) fn untie(&self, lease: &Arc<Lease>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take_if(|tied| Arc::ptr_eq(tied, lease));
    }

    fn lease(&self) -> Option<Arc<Lease>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether a lock is held, or was and is lost.
    pub(super) fn is_tied(&self) -> bool {
        self.lease().is_some()
    }

    /// Whether something may be changed: `lock_lost` where a lock was held that is lost.
    pub(super) fn check(&self) -> Result<()> {
        self.lease().map_or(Ok(()), |lease| lease.check())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ago(steady: Duration, wall: Duration) -> Moment {
        let now = Moment::now();
        Moment { steady: now.steady.checked_sub(steady).unwrap(), wall: now.wall - wall }
    }

    #[test]
    fn a_lease_ends_by_either_clock_and_never_begins_again() {
        let none = Duration::ZERO;
        assert!(Lease::since(ago(none, none), String::new()).check().is_ok());
        for written in [ago(HELD, none), ago(none, HELD)] {
            let lease = Lease::since(written, String::new());
            assert_eq!(lease.check().unwrap_err().code, Code::LockLost);
            // Whoever stood still may believe that it was written just now.
            lease.end();
            lease.renew(|| panic!("a lock that is lost must not be written again"));
            assert!(!lease.is_fresh());
        }
        // A clock that was set back tells nothing.
        let ahead = Moment { wall: SystemTime::now() + HELD, ..Moment::now() };
        assert!(Lease::since(ahead, String::new()).is_fresh());
    }

    #[test]
    fn a_bond_is_untied_by_its_own_lease_only() {
        let [one, other] = [HELD, Duration::ZERO].map(|age| Arc::new(Lease::since(ago(age, age), String::new())));
        let bond = Bond::default();
        assert!(!bond.is_tied() && bond.check().is_ok());
        bond.tie(&one);
        assert!(bond.is_tied() && bond.check().is_err());
        bond.tie(&other);
        bond.untie(&one);
        assert!(bond.is_tied() && bond.check().is_ok());
        bond.untie(&other);
        assert!(!bond.is_tied());
    }
}
