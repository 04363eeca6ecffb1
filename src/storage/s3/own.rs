//! The names of ours at a place. While the lock is held nobody else changes them, so that they are listed once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::PoisonError;

use time::OffsetDateTime;

use super::S3;
use super::list::{Next, Object};
use crate::error::Result;
use crate::names::{self, JOURNAL_PREFIX, STATE};
use crate::path::RESERVED;
use crate::storage::{Small, Version};

/// What is read twice in a publication is kept in between up to this size.
const GLIMPSE: usize = 1024 * 1024;
/// How many names of ours are looked at: no command leaves as many.
const MOST: usize = 10_000;

/// The names of ours at the place.
#[derive(Default)]
pub(super) enum Own {
    /// Nobody keeps others from changing them.
    #[default]
    Unknown,
    /// The lock is held: they are these.
    Known(Names),
}

/// What lies there, as the holder of the lock knows it.
#[derive(Clone, Default)]
pub(super) struct Names {
    /// Each with its version, where that is known.
    there: BTreeMap<String, Option<Version>>,
    /// Removed, as far as the holder is concerned; they go with the lock's mark, in one request.
    leaving: BTreeSet<String>,
}

impl Names {
    pub(super) fn of(listed: impl IntoIterator<Item = (String, Option<Version>)>) -> Names {
        Names { there: listed.into_iter().collect(), leaving: BTreeSet::new() }
    }
}

impl S3 {
    fn with_own<T>(&self, work: impl FnOnce(&mut Own) -> T) -> T {
        work(&mut self.own.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// From here on the lock is held.
    pub(super) fn own_is(&self, names: Names) {
        self.with_own(|own| *own = Own::Known(names));
    }

    /// It is not held any more. What still has to be removed.
    pub(super) fn own_is_unknown(&self) -> BTreeSet<String> {
        match self.with_own(std::mem::take) {
            Own::Known(names) => names.leaving,
            Own::Unknown => BTreeSet::new(),
        }
    }

    /// Whether the names are known because the lock is held.
    pub(super) fn is_known(&self) -> bool {
        self.with_own(|own| matches!(own, Own::Known(_)))
    }

    /// Whether it is known that nothing has this name.
    pub(super) fn is_absent(&self, name: &str) -> bool {
        self.with_own(|own| matches!(own, Own::Known(names) if !names.there.contains_key(name)))
    }

    /// Notes that it may be there, in a version that is not known.
    pub(super) fn comes(&self, name: &str) {
        if name == STATE {
            self.glimpsed.lock().unwrap_or_else(PoisonError::into_inner).take();
        }
        self.with_own(|own| {
            if let Own::Known(names) = own {
                names.leaving.remove(name);
                names.there.insert(name.to_owned(), None);
            }
        });
    }

    /// Notes that it is not there.
    pub(super) fn is_gone(&self, name: &str) {
        self.with_own(|own| {
            if let Own::Known(names) = own {
                names.there.remove(name);
            }
        });
    }

    /// What was to go with the lock's mark, and has to go now: another state is to stand, and by the state it is told
    /// whether a journal asks for anything.
    pub(super) fn leaving(&self) -> BTreeSet<String> {
        self.with_own(|own| match own {
            Own::Known(names) => std::mem::take(&mut names.leaving),
            Own::Unknown => BTreeSet::new(),
        })
    }

    /// Whether it is enough that it goes with the lock's mark. A journal may: whoever finds it before has not seen the
    /// lock go, and after a crash it is what a journal of something that is done always is.
    pub(super) fn may_leave(&self, name: &str) -> bool {
        name.starts_with(JOURNAL_PREFIX)
            && self.with_own(|own| match own {
                Own::Known(names) => {
                    if names.there.remove(name).is_some() {
                        names.leaving.insert(name.to_owned());
                    }
                    true
                }
                Own::Unknown => false,
            })
    }

    /// Keeps the state that was read without the lock until the one who reads it takes that.
    pub(super) fn glimpse(&self, name: &str, small: &Small) {
        let kept = name == STATE && small.bytes.len() <= GLIMPSE && !small.version.0.is_empty() && !self.is_known();
        let kept = kept.then(|| small.clone());
        *self.glimpsed.lock().unwrap_or_else(PoisonError::into_inner) = kept;
    }

    /// The state that was read before the lock was taken, if the listing under the lock shows that same version.
    pub(super) fn still(&self, name: &str, limit: u64) -> Option<Small> {
        let listed = self.with_own(|own| match own {
            Own::Known(names) => names.there.get(name).cloned().flatten(),
            Own::Unknown => None,
        })?;
        let glimpsed = self.glimpsed.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        let same = name == STATE && glimpsed.version == listed && glimpsed.bytes.len() as u64 <= limit;
        same.then_some(glimpsed)
    }

    pub(super) fn list_own(&self, prefix: &str) -> Result<Vec<String>> {
        let known = self.with_own(|own| match own {
            Own::Known(names) => Some(names.there.keys().cloned().collect()),
            Own::Unknown => None,
        });
        let names: BTreeSet<String> = match known {
            Some(names) => names,
            None => self.own_objects()?.0.into_iter().map(|object| object.name).collect(),
        };
        Ok(names.into_iter().filter(|name| name.starts_with(prefix)).collect())
    }

    /// Asks for the objects at names of ours, and for the server's time.
    pub(super) fn own_objects(&self) -> Result<(Vec<Object>, Option<OffsetDateTime>)> {
        let mut found = Vec::new();
        let now = self.pages(RESERVED, None, &mut |objects| {
            found.extend(objects.into_iter().filter(|object| is_own(&object.name)));
            if found.len() > MOST {
                let error = self.odd(&format!("more than {MOST} names that begin with {RESERVED}"));
                return Err(error.hint("remove those that are no command's at work"));
            }
            Ok(Next::On)
        })?;
        Ok((found, now))
    }
}

/// Whether it is a name of ours; what lies below one is nobody's.
fn is_own(name: &str) -> bool {
    names::is_own(name.as_bytes()) && !name.contains('/')
}
