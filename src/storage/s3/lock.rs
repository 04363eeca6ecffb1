//! The lock, which needs no more of the server than that a listing shows what was written before it.
//!
//! Who wants it writes an object of its own and lists: the lock is held if no other live one is there. A second object of
//! a fixed name tells those that take no lock that somebody is at work here, or was cut short.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use time::OffsetDateTime;
use ureq::http::Method;

use super::S3;
use super::client::Ask;
use super::lease::{Lease, Moment};
use super::list::Object;
use super::own::Names;
use crate::error::{Code, Error, Result};
use crate::host::{self, Holder};
use crate::http::{pause, varied};
use crate::names::LOCK;
use crate::storage::{Expected, Guard};

/// How old a lock is, by the server's clock, when its holder counts as gone.
const STALE: Duration = Duration::from_mins(1);
/// How often all is looked at where a lock goes while it is looked at.
const LOOKS: usize = 5;
/// The first pause of who waits, and the longest.
const PAUSES: [Duration; 2] = [Duration::from_millis(100), Duration::from_secs(2)];

/// What a listing of our names shows.
struct Seen {
    all: Vec<Object>,
    /// Whether somebody else holds a lock.
    live: bool,
    /// Whether that one is listed and not there.
    went: bool,
    /// The locks of who is gone; all of them where nobody holds one.
    dead: Vec<String>,
}

impl S3 {
    /// [`crate::storage::Storage::lock`].
    pub(super) fn acquire(&self, holder: &[u8], waiting: &dyn Fn(Duration) -> Result<()>) -> Result<Box<dyn Guard>> {
        let begun = Instant::now();
        let name = format!("{LOCK}-{}", host::random_token());
        loop {
            let written = Moment::now();
            match self.write_small(&name, holder, Expected::Any).and_then(|()| self.see(&name)) {
                Ok(seen) if !seen.live => {
                    return self.keep(&name, holder, seen, written).inspect_err(|_| drop(self.withdraw(&name)));
                }
                Ok(_) => self.withdraw(&name)?,
                Err(error) => {
                    // Whatever the server answered, it may be there.
                    let _ = self.withdraw(&name);
                    return Err(error);
                }
            }
            self.await_others(begun, waiting)?;
        }
    }

    /// Waits while somebody else is here, looked at without a lock of one's own. Who does not seem to go is looked at with
    /// one again after a while: its time tells more.
    fn await_others(&self, begun: Instant, waiting: &dyn Fn(Duration) -> Result<()>) -> Result<()> {
        let (since, mut longest) = (Instant::now(), PAUSES[0]);
        loop {
            waiting(begun.elapsed())?;
            pause(&self.client.cancel, varied(longest))?;
            longest = (longest * 2).min(PAUSES[1]);
            if since.elapsed() >= STALE || !self.see("")?.live {
                return Ok(());
            }
        }
    }

    /// Removes a lock of one's own, whether it is held or lost, and whatever signal has come.
    fn withdraw(&self, name: &str) -> Result<()> {
        let key = self.key(name);
        let ask = Ask::new(Method::DELETE, &key).or(&[404]).unbound();
        self.client.send_until(&self.client.cancel.deaf(), &ask).map(drop)
    }

    fn keep(&self, name: &str, holder: &[u8], seen: Seen, written: Moment) -> Result<Box<dyn Guard>> {
        let lease = Arc::new(Lease::since(written, self.client.place(self.prefix.trim_end_matches('/'))));
        self.client.bond.tie(&lease);
        let mut held = Held { place: self.clone(), name: name.to_owned(), lease, thread: None };
        for dead in &seen.dead {
            self.delete_small(dead)?;
        }
        self.write_small(LOCK, holder, Expected::Any)?;
        let there = seen.all.into_iter().filter(|object| !seen.dead.contains(&object.name));
        let names = Names::of(there.map(|object| (object.name, object.version)).chain([(LOCK.to_owned(), None)]));
        let (lease, place, name, holder) = (Arc::clone(&held.lease), self.clone(), name.to_owned(), holder.to_vec());
        let renewing =
            std::thread::Builder::new().spawn(move || lease.renew(|| place.write_small(&name, &holder, Expected::Any)));
        let renewing =
            renewing.map_err(|error| Error::new(Code::StorageError, format!("no thread to keep a lock: {error}")))?;
        held.thread = Some(renewing);
        self.own_is(names);
        Ok(Box::new(held))
    }

    /// Looks at our names; `mine` is not counted. Where a lock went meanwhile all is looked at anew, for its holder may have
    /// changed what was listed before. One that goes again and again, and yet is listed, counts as held.
    fn see(&self, mine: &str) -> Result<Seen> {
        for _ in 1..LOOKS {
            let seen = self.look(mine)?;
            if !seen.went {
                return Ok(seen);
            }
            pause(&self.client.cancel, varied(PAUSES[0]))?;
        }
        self.look(mine)
    }

    fn look(&self, mine: &str) -> Result<Seen> {
        let (all, date) = self.own_objects()?;
        // Times of one clock are compared: the own lock was written just now.
        let now = all.iter().find(|object| object.name == mine).and_then(|object| object.modified).or(date);
        let mut seen = Seen { all, live: false, went: false, dead: Vec::new() };
        let is_lock = |object: &&Object| object.name.starts_with(LOCK) && object.name != LOCK && object.name != mine;
        for object in seen.all.iter().filter(is_lock) {
            match self.is_dead(object, now)? {
                Some(true) => seen.dead.push(object.name.clone()),
                alive => {
                    (seen.live, seen.went) = (true, alive.is_none());
                    break;
                }
            }
        }
        Ok(seen)
    }

    /// Whether the holder of a lock is gone: it has not renewed it by the server's clock, or was a process of this host.
    /// Nothing where the lock itself is gone.
    fn is_dead(&self, lock: &Object, now: Option<OffsetDateTime>) -> Result<Option<bool>> {
        if let (Some(now), Some(modified)) = (now, lock.modified)
            && now - modified >= STALE
        {
            return Ok(Some(true));
        }
        let small = self.read_now(&lock.name, 64 * 1024)?;
        let me = &self.settings.holder;
        Ok(small.map(|small| serde_json::from_slice::<Holder>(&small.bytes).is_ok_and(|holder| me.knows_gone(&holder))))
    }

    /// [`crate::storage::Storage::is_locked`].
    pub(super) fn has_live_lock(&self) -> Result<bool> {
        Ok(self.see("")?.live)
    }
}

struct Held {
    place: S3,
    name: String,
    lease: Arc<Lease>,
    /// Keeps it fresh.
    thread: Option<JoinHandle<()>>,
}

impl Held {
    /// Says what still has to be removed; once, for then the names may be known to the next holder.
    fn stop(&mut self) -> BTreeSet<String> {
        let Some(thread) = self.thread.take() else { return BTreeSet::new() };
        self.lease.end();
        let _ = thread.join();
        self.place.own_is_unknown()
    }
}

impl Guard for Held {
    fn check(&self) -> Result<()> {
        self.lease.check()
    }

    fn release(mut self: Box<Self>, mark: bool) -> Result<()> {
        let mut goes = self.stop();
        if !mark {
            goes.insert(LOCK.to_owned());
        }
        // Where it was lost all that is somebody else's.
        let gone = if self.lease.is_fresh() { self.place.delete_smalls(&goes) } else { Ok(()) };
        // Last of all: as long as it is there nobody else is at work here.
        self.place.withdraw(&self.name).and(gone)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.stop();
        self.place.client.bond.untie(&self.lease);
    }
}
