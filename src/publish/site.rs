//! A place that a command works on: its lock, its state, and what others left there.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::error::{Code, Error, Result, Warning};
use crate::host::{Cancel, Holder};
use crate::journal::{self, Cure, Journal};
use crate::names::{JOURNAL_PREFIX, LOCK, STATE};
use crate::path::{RESERVED, RawPath, RelPath};
use crate::plan::{Sight, Survey};
use crate::state::{self, State};
use crate::storage::{Entry, Guard, Kind, Recovery, Scope, Stage, Storage, Version};
use crate::timestamp::Timestamp;

/// After how long it is said that a lock is waited for.
const PATIENCE: Duration = Duration::from_secs(5);

/// What a command needs of the world outside.
pub struct World<'a> {
    /// What can interrupt it.
    pub cancel: &'a Cancel,
    /// The time now.
    pub now: &'a (dyn Fn() -> Timestamp + Sync),
    /// A name for a stage that nobody else uses.
    pub token: &'a (dyn Fn() -> String + Sync),
    /// This process, for others to read.
    pub holder: &'a Holder,
    /// How long the lock is waited for.
    pub lock_timeout: Duration,
    /// Told once, with the place, when the lock is waited for longer than a moment.
    pub waiting: &'a (dyn Fn(&str) + Sync),
}

/// The place of a command's work.
#[derive(Clone, Copy)]
pub struct Site<'a> {
    /// The bundle path.
    pub target: &'a dyn Storage,
    /// The world around it.
    pub world: &'a World<'a>,
}

/// The state of a destination as it was read.
pub struct ReadState {
    /// Its version; none where there is none.
    pub version: Option<Version>,
    /// What it says, or what is wrong with it.
    pub parsed: Option<std::result::Result<State, String>>,
}

impl ReadState {
    /// The state, where there is a valid one.
    pub fn valid(&self) -> Option<&State> {
        self.parsed.as_ref()?.as_ref().ok()
    }
}

/// What a command that goes on, or was cut short, is still to change.
#[derive(Default)]
pub struct Unsettled {
    /// Paths that are ours, recorded or not.
    pub ours: Vec<RelPath>,
    /// What will be gone, with whether an output takes its place.
    gone: BTreeMap<RawPath, bool>,
}

impl Unsettled {
    /// It will be finished.
    fn finish(&mut self, journal: &Journal) {
        self.gone.extend(journal.removed().map(|path| (path.clone(), false)));
        for path in journal.written() {
            self.gone.entry(path.into()).and_modify(|comes| *comes = true);
            self.ours.push(path.clone());
        }
    }

    /// What it created will be taken back.
    fn take_back(&mut self, journal: &Journal) {
        self.gone.extend(journal.created().map(|path| (path.into(), false)));
    }

    /// Whether an entry will be gone. A file where an output comes is that output.
    fn goes(&self, entry: &Entry) -> bool {
        self.gone.get(&entry.raw).is_some_and(|comes| !comes || entry.kind != Kind::File)
    }
}

/// What a command that takes no lock sees.
pub struct Foreseen {
    /// The state as it will be.
    pub read: ReadState,
    /// What of it is not done yet.
    pub unsettled: Unsettled,
    /// The paths that will be written.
    pub coming: BTreeSet<RelPath>,
    /// The mark that only its owner's next publication takes away.
    pub mark: Option<Journal>,
}

impl Site<'_> {
    /// Does `work` under the lock.
    pub fn locked<T>(
        &self,
        warnings: &mut Vec<Warning>,
        work: impl FnOnce(&dyn Guard, &mut Vec<Warning>) -> Result<T>,
    ) -> Result<T> {
        let guard = self.lock()?;
        let done = work(guard.as_ref(), warnings);
        let left = |name: &String| name != STATE && !name.starts_with(LOCK);
        let mark = self.target.own_names(RESERVED).map_or(true, |names| names.iter().any(left));
        // Whatever was done counts: what can't be removed makes the next command look twice, and perhaps wait.
        if let Err(error) = guard.release(mark)
            && done.is_ok()
        {
            let message = format!("what this command left for its own use stays: {}", error.message);
            warnings.push(Warning::new(Code::CleanUpFailed, message));
        }
        done
    }

    /// Lists what lies there, but for what `unsettled` says will be gone.
    pub fn survey<'a>(&self, sight: Sight<'a>, unsettled: &Unsettled) -> Result<Survey<'a>> {
        let mut survey = Survey::new(self.target.describe(), sight);
        self.target.list(Scope::Destination, &mut |entry| {
            self.world.cancel.check()?;
            if !unsettled.goes(&entry) {
                survey.see(entry);
            }
            Ok(())
        })?;
        Ok(survey)
    }

    fn lock(&self) -> Result<Box<dyn Guard>> {
        let said = std::sync::atomic::AtomicBool::new(false);
        let mut holder = serde_json::to_vec(self.world.holder).unwrap_or_default();
        holder.push(b'\n');
        self.target.lock(&holder, &|waited| {
            self.world.cancel.check()?;
            if waited >= self.world.lock_timeout {
                let message = format!("{}: another command holds this destination", self.target.describe());
                return Err(Error::new(Code::Locked, message).hint("run again later, or wait with --lock-timeout"));
            }
            if waited >= PATIENCE && !said.swap(true, std::sync::atomic::Ordering::Relaxed) {
                (self.world.waiting)(&self.target.describe());
            }
            Ok(())
        })
    }

    /// Reads the state.
    pub fn read_state(&self) -> Result<ReadState> {
        match self.target.get_small(STATE, state::MAX_BYTES + 1) {
            Ok(small) => {
                let parsed = small.as_ref().map(|small| parse_state(&small.bytes));
                Ok(ReadState { version: small.map(|small| small.version), parsed })
            }
            Err(error) if error.code == Code::NotARegularFile => {
                // What it stands for can't be known, so nothing replaces it, forced or not.
                let message = format!("invalid state file {STATE}: it is a directory, a link or a special file");
                Err(Error::new(Code::InvalidState, message).hint("move it aside, with the outputs, and publish anew"))
            }
            Err(error) => Err(error),
        }
    }

    /// What will be here once what was cut short is finished. `own` is the journal of who looks.
    pub fn foresee(&self, own: &str, warnings: &mut Vec<Warning>) -> Result<Foreseen> {
        let mut read = self.read_state()?;
        let (mut unsettled, mut coming, mut mark) = (Unsettled::default(), BTreeSet::new(), None);
        let busy = self.target.is_locked()?;
        for name in self.target.own_names(JOURNAL_PREFIX)? {
            let Some(journal) = self.read_journal(&name)? else { continue };
            if busy {
                let message = format!("{}: another command is at work here", self.target.describe());
                warnings.push(Warning::new(Code::PublicationInProgress, message));
                unsettled.finish(&journal);
                continue;
            }
            let state = self.target.get_small(STATE, u64::MAX)?;
            let cure = self.cure(&journal, state.as_ref())?;
            if matches!(cure, Cure::Finish | Cure::Delete) {
                let message =
                    format!("{}: a command was cut short here; the next run finishes it", self.target.describe());
                warnings.push(Warning::new(Code::RecoveryPending, message));
                unsettled.ours.extend(read.valid().into_iter().flat_map(|s| s.outputs.iter().map(|o| o.path.clone())));
                if self.target.recovery() == Recovery::Redo || cure == Cure::Delete {
                    unsettled.finish(&journal);
                    coming.extend(journal.written().cloned());
                } else {
                    unsettled.take_back(&journal);
                    mark = self.once_taken_stock(&journal, &mut read, own)?.or(mark);
                }
                read = self.once_finished(&journal, read)?;
            } else if self.target.recovery() == Recovery::DirtyMark && cure == Cure::Discard && own == name {
                mark = Some(journal).filter(|journal| journal.dirty).or(mark);
            }
        }
        Ok(Foreseen { read, unsettled, coming, mark })
    }

    /// Lets `read` say what is there, and gives the mark that will stay for the owner of the journal `own`.
    fn once_taken_stock(&self, journal: &Journal, read: &mut ReadState, own: &str) -> Result<Option<Journal>> {
        let is_own = own == journal.name();
        let mark = || journal.mark(&journal.pipeline_id, &journal.destination_id);
        let Some(Ok(state)) = &mut read.parsed else {
            let stays = is_own && (read.parsed.is_some() || journal.forced.is_some());
            return Ok(stays.then(mark));
        };
        let stock = self.stock(journal, state)?;
        let touched = stock.touched(state).into_iter().find(|(pipeline, id)| journal::name(pipeline, id) == own);
        let touched = touched.map(|(pipeline, destination)| journal.mark(pipeline, destination));
        stock.apply(state, &journal.started_at);
        let stays = is_own && journal.leaves_a_mark();
        Ok(touched.or_else(|| stays.then(mark)))
    }

    fn once_finished(&self, journal: &Journal, mut read: ReadState) -> Result<ReadState> {
        let Some(target) = journal.target else {
            let gone: BTreeSet<&RawPath> = journal.removed().collect();
            if let Some(Ok(state)) = &mut read.parsed {
                state.outputs.retain(|record| !gone.contains(&RawPath::from(&record.path)));
            }
            return Ok(read);
        };
        let staged = self.target.staged(&Stage(journal.stage.clone()), target.job, state::MAX_BYTES + 1)?;
        Ok(staged.map_or(read, |bytes| ReadState { version: None, parsed: Some(parse_state(&bytes)) }))
    }

    pub(super) fn read_journal(&self, name: &str) -> Result<Option<Journal>> {
        let Some(small) = self.target.get_small(name, journal::MAX_BYTES)? else { return Ok(None) };
        Journal::parse(&small.bytes).map(Some).map_err(|fault| {
            let message = format!("{}: {name}: this is no journal: {fault}", self.target.describe());
            Error::new(Code::CommitIncomplete, message).hint(
                "if no other version of distributor wrote it, move it aside and run again, with --force if \
                 half-published outputs are in the way",
            )
        })
    }
}

fn parse_state(bytes: &[u8]) -> std::result::Result<State, String> {
    if bytes.len() as u64 > state::MAX_BYTES {
        return Err(format!("larger than {} bytes", state::MAX_BYTES));
    }
    State::parse(bytes)
}
