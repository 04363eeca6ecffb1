//! The lock, which needs no more of the server than that a listing shows what was written before it.
//!
//! Who wants it writes an object of its own and lists: the lock is held if no other live one is there. A second object of
//! a fixed name tells those that take no lock that somebody is at work here, or was cut short.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use time::OffsetDateTime;

use super::S3;
use super::list::{Next, Object};
use super::own::Names;
use crate::error::{Code, Error, Result};
use crate::host::{self, Holder};
use crate::http::{pause, varied};
use crate::names::{self, LOCK};
use crate::path::RESERVED;
use crate::storage::{Expected, Guard};

/// How often a lock is written again.
const RENEWED: Duration = Duration::from_secs(15);
/// How old a lock is, by the server's clock, when its holder counts as gone.
const STALE: Duration = Duration::from_mins(1);
/// How old it may be, by this host's clock, for its holder to go on.
const HELD: Duration = Duration::from_secs(45);
/// The first pause of who waits, and the longest.
const PAUSES: [Duration; 2] = [Duration::from_millis(100), Duration::from_secs(2)];

/// What a listing of our names shows.
struct Seen {
    all: Vec<Object>,
    /// The locks of others.
    live: usize,
    dead: Vec<String>,
}

impl S3 {
    /// [`crate::storage::Storage::lock`].
    pub(super) fn acquire(&self, holder: &[u8], waiting: &dyn Fn(Duration) -> Result<()>) -> Result<Box<dyn Guard>> {
        let (begun, mut longest) = (Instant::now(), PAUSES[0]);
        let name = format!("{LOCK}-{}", host::random_token());
        loop {
            let written = Instant::now();
            let seen =
                self.write_small(&name, holder, Expected::Any).and_then(|()| self.see(&name, &self.settings.holder));
            match seen {
                Ok(seen) if seen.live == 0 => {
                    return self.keep(&name, holder, seen, written).inspect_err(|_| drop(self.withdraw(&name)));
                }
                Ok(_) => self.withdraw(&name)?,
                Err(error) => {
                    // Whatever the server answered, it may be there.
                    let _ = self.withdraw(&name);
                    return Err(error);
                }
            }
            // Somebody else is here. Looked at without a lock of one's own, until it is gone.
            loop {
                waiting(begun.elapsed())?;
                pause(&self.client.cancel, varied(longest))?;
                longest = (longest * 2).min(PAUSES[1]);
                if self.see(&name, &self.settings.holder)?.live == 0 {
                    break;
                }
            }
            longest = PAUSES[0];
        }
    }

    /// Removes a lock that is not to be held, whatever signal has come.
    fn withdraw(&self, name: &str) -> Result<()> {
        self.client.locked.store(true, Ordering::Relaxed);
        let gone = self.delete_small(name);
        self.client.locked.store(false, Ordering::Relaxed);
        gone
    }

    fn keep(&self, name: &str, holder: &[u8], seen: Seen, written: Instant) -> Result<Box<dyn Guard>> {
        self.client.locked.store(true, Ordering::Relaxed);
        for dead in &seen.dead {
            self.delete_small(dead)?;
        }
        self.write_small(LOCK, holder, Expected::Any)?;
        let there = seen.all.into_iter().filter(|object| !seen.dead.contains(&object.name));
        self.own_is(Names::of(there.map(|object| (object.name, object.version)).chain([(LOCK.to_owned(), None)])));
        let (last, over) = (Mutex::new(Some(written)), Mutex::new(false));
        let renewal = Arc::new(Renewal { last, over, wake: Condvar::new() });
        let thread = {
            let (renewal, place, name, holder) = (Arc::clone(&renewal), self.clone(), name.to_owned(), holder.to_vec());
            std::thread::Builder::new().spawn(move || renewal.run(&place, &name, &holder))
        };
        let thread = thread.map_err(|error| {
            self.own_is_unknown();
            Error::new(Code::StorageError, format!("no thread to keep a lock: {error}"))
        })?;
        Ok(Box::new(Held { place: self.clone(), name: name.to_owned(), renewal, thread: Some(thread) }))
    }

    /// Looks at our names. `mine` is not counted.
    fn see(&self, mine: &str, me: &Holder) -> Result<Seen> {
        loop {
            self.client.cancel.check()?;
            if let Some(seen) = self.look(mine, me)? {
                return Ok(seen);
            }
        }
    }

    /// The same; nothing where a lock went meanwhile: its holder may have changed what was listed before.
    fn look(&self, mine: &str, me: &Holder) -> Result<Option<Seen>> {
        let mut all: Vec<Object> = Vec::new();
        let now = self.pages(RESERVED, None, &mut |objects| {
            all.extend(objects.into_iter().filter(|object| names::is_own(object.name.as_bytes())));
            Ok(Next::On)
        })?;
        let (mut live, mut dead) = (0, Vec::new());
        let is_lock = |object: &&Object| object.name.starts_with(LOCK) && object.name != LOCK && object.name != mine;
        for object in all.iter().filter(is_lock) {
            match self.is_dead(object, now, me)? {
                None => return Ok(None),
                Some(true) => dead.push(object.name.clone()),
                Some(false) => live += 1,
            }
        }
        Ok(Some(Seen { all, live, dead }))
    }

    /// Whether the holder of a lock is gone: it has not renewed it by the server's clock, or was a process of this host.
    /// Nothing where the lock itself is gone.
    fn is_dead(&self, lock: &Object, now: Option<OffsetDateTime>, me: &Holder) -> Result<Option<bool>> {
        if let (Some(now), Some(modified)) = (now, lock.modified)
            && now - modified >= STALE
        {
            return Ok(Some(true));
        }
        let small = self.read_now(&lock.name, 64 * 1024)?;
        Ok(small.map(|small| serde_json::from_slice::<Holder>(&small.bytes).is_ok_and(|holder| me.knows_gone(&holder))))
    }

    /// [`crate::storage::Storage::is_locked`].
    pub(super) fn has_live_lock(&self) -> Result<bool> {
        Ok(self.see("", &self.settings.holder)?.live > 0)
    }
}

/// Keeps a lock fresh.
struct Renewal {
    /// When the last writing that succeeded began; nothing once the lock was lost.
    last: Mutex<Option<Instant>>,
    over: Mutex<bool>,
    wake: Condvar,
}

impl Renewal {
    fn run(&self, place: &S3, name: &str, holder: &[u8]) {
        let mut over = self.over.lock().unwrap_or_else(PoisonError::into_inner);
        while !*over {
            let (next, _) = self.wake.wait_timeout(over, RENEWED).unwrap_or_else(PoisonError::into_inner);
            over = next;
            // Held while it is written: what is released is not written again.
            if !*over && self.is_fresh() {
                let begun = Instant::now();
                if place.write_small(name, holder, Expected::Any).is_ok() && self.is_fresh() {
                    *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(begun);
                }
            }
        }
    }

    /// Whether it is held: a process that stood still for too long never holds it again.
    fn is_fresh(&self) -> bool {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        *last = last.filter(|last| last.elapsed() < HELD);
        last.is_some()
    }

    fn end(&self) {
        *self.over.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.wake.notify_all();
    }
}

struct Held {
    place: S3,
    name: String,
    renewal: Arc<Renewal>,
    thread: Option<JoinHandle<()>>,
}

impl Held {
    /// Says what still has to be removed; once, for then the names may be known to the next holder.
    fn stop(&mut self) -> BTreeSet<String> {
        let Some(thread) = self.thread.take() else { return BTreeSet::new() };
        self.renewal.end();
        let _ = thread.join();
        self.place.own_is_unknown()
    }
}

impl Guard for Held {
    fn check(&self) -> Result<()> {
        if self.renewal.is_fresh() {
            return Ok(());
        }
        let message = format!("{}: the lock was not renewed in time", self.place.client.place(&self.place.prefix));
        Err(Error::new(Code::LockLost, message).hint("run again"))
    }

    fn release(mut self: Box<Self>, mark: bool) -> Result<()> {
        let mut goes = self.stop();
        if !mark {
            goes.insert(LOCK.to_owned());
        }
        // Where it was lost all that is somebody else's.
        let gone = if self.renewal.is_fresh() { self.place.delete_smalls(&goes) } else { Ok(()) };
        // Last of all: as long as it is there nobody else is at work here.
        self.place.delete_small(&self.name).and(gone)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.stop();
        self.place.client.locked.store(false, Ordering::Relaxed);
    }
}
