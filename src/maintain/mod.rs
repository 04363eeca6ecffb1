//! What is done about a destination apart from publishing: repair of its record, and retention.

mod prune;
mod repair;

pub use prune::Pruning;
pub use repair::Repair;

use std::collections::BTreeSet;

use crate::config::{Destination, StateMode};
use crate::error::{Code, Error, Result, Warning};
use crate::journal;
use crate::names::{JOURNAL_PREFIX, STATE};
use crate::path::RelPath;
use crate::publish::{Foreseen, ReadState, Site};
use crate::state::{Mode, OutputRecord, Owner, State};
use crate::storage::{Guard, Version};

/// A destination that is looked after.
#[derive(Clone, Copy)]
pub struct Upkeep<'a> {
    /// Where it is.
    pub site: Site<'a>,
    /// The pipeline that is meant.
    pub pipeline_id: &'a str,
    /// The destination of it.
    pub destination: &'a Destination,
    /// Whether all owners of a shared root are meant, not this one alone.
    pub all_owners: bool,
}

/// A state that may be changed, and whose records are meant.
struct Held {
    state: State,
    version: Option<Version>,
    owner: Option<usize>,
    /// Paths of a command that is at work or was cut short, and those of them that will be written.
    ours: Vec<RelPath>,
    coming: BTreeSet<RelPath>,
}

impl Held {
    fn records(&self) -> impl Iterator<Item = &OutputRecord> {
        self.state.outputs.iter().filter(|record| self.owner.is_none_or(|owner| owner == record.owner))
    }
}

impl Upkeep<'_> {
    /// Looks, without a lock.
    fn look<T>(&self, warnings: &mut Vec<Warning>, work: impl FnOnce(&Held) -> Result<T>) -> Result<T> {
        let own = journal::name(self.pipeline_id, &self.destination.id);
        let Foreseen { read, unsettled, coming, mark } = self.site.foresee(&own, warnings)?;
        if mark.is_some() {
            return Err(self.unfinished());
        }
        work(&Held { ours: unsettled.ours, coming, ..self.hold(read)? })
    }

    /// Works under the lock, once what was cut short is finished. Where there is nothing to look after nothing is locked.
    fn work<T>(&self, warnings: &mut Vec<Warning>, work: impl FnOnce(&dyn Guard, Held) -> Result<T>) -> Result<T> {
        if self.site.target.own_names(JOURNAL_PREFIX)?.is_empty() {
            self.hold(self.site.read_state()?)?;
        }
        let own = journal::name(self.pipeline_id, &self.destination.id);
        self.site.locked(warnings, |guard, warnings| {
            if self.site.recover(guard, &own, warnings)?.is_some() {
                return Err(self.unfinished());
            }
            work(guard, self.hold(self.site.read_state()?)?)
        })
    }

    fn unfinished(&self) -> Error {
        let message = format!("{}: a publication was cut short here", self.site.target.describe());
        Error::new(Code::CommitIncomplete, message).hint("publish it with distributor-run first")
    }

    fn hold(&self, read: ReadState) -> Result<Held> {
        let place = self.site.target.describe();
        let state = match read.parsed {
            None => {
                let message = format!("{place}: nothing is managed here: there is no {STATE}");
                return Err(Error::new(Code::NoState, message).hint("publish here first, or name another place"));
            }
            Some(Err(fault)) => {
                let message = format!("{place}: invalid state file {STATE}: {fault}");
                return Err(Error::new(Code::InvalidState, message).hint("restore it from a backup"));
            }
            Some(Ok(state)) => state,
        };
        let owner = self.owner(&state, &place)?;
        Ok(Held { state, version: read.version, owner, ours: Vec::new(), coming: BTreeSet::new() })
    }

    /// Whose records are meant: `None` for all.
    fn owner(&self, state: &State, place: &str) -> Result<Option<usize>> {
        let named = format!("{}/{}", self.pipeline_id, self.destination.id);
        let own = state.owner(self.pipeline_id, &self.destination.id);
        match (self.destination.state_mode, state.mode) {
            (StateMode::SingleOwner, Mode::SharedRoot) => {
                let message = format!("{place}: it is a shared root, and {named} is configured as a single owner");
                Err(Error::new(Code::StateModeMismatch, message).hint("set state.mode: shared_root"))
            }
            (StateMode::SharedRoot, Mode::SingleOwner) => {
                let message = format!("{place}: it has a single owner, and {named} is configured as a shared root");
                Err(Error::new(Code::StateModeMismatch, message)
                    .hint("publish to it with --republish first, which converts it, or set state.mode: single_owner"))
            }
            (StateMode::SingleOwner, Mode::SingleOwner) if own.is_none() => {
                let owner = state.owners.first().map(Owner::label);
                let message = format!("{place}: it belongs to {}, not to {named}", owner.unwrap_or_default());
                Err(Error::new(Code::IdentityMismatch, message).hint("name the pipeline and destination that own it"))
            }
            (StateMode::SharedRoot, Mode::SharedRoot) if self.all_owners => Ok(None),
            (StateMode::SharedRoot, Mode::SharedRoot) if own.is_none() => {
                let owners: Vec<String> = state.owners.iter().map(Owner::label).collect();
                let message = format!("{place}: {named} has not published here");
                let hint = format!("there is {}", owners.join(", "));
                let error = Error::new(Code::OwnerNotFound, message);
                Err(if owners.is_empty() { error } else { error.hint(hint) })
            }
            _ => Ok(own),
        }
    }
}
