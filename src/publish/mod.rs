//! One publication: one bundle to one destination bundle path.
//!
//! Before the commit point a failure or a crash leaves everything as it was; from there on it goes forward, finished by
//! this process or by the next command that locks the destination.

mod execute;
mod recover;

use std::time::Duration;

use crate::error::{Code, Detail, Error, Result, Warning};
use crate::host::{Cancel, Holder};
use crate::journal::{self, Journal, Phase};
use crate::names::{JOURNAL_PREFIX, LOCK, STATE};
use crate::path::{BundlePath, RESERVED, RelPath};
use crate::plan::{self, Action, Decision, Plan, Sight, Survey, Wanted, decide};
use crate::state::{self, State};
use crate::storage::{Guard, Scope, Stage, Storage, Version};
use crate::timestamp::Timestamp;
use crate::transform;

/// After how long it is said that a lock is waited for.
const PATIENCE: Duration = Duration::from_secs(5);

/// What is to be published, and where.
pub struct Publication<'a> {
    /// Whose it is and under which policies.
    pub wanted: Wanted<'a>,
    /// The bundle's directory.
    pub source: &'a dyn Storage,
    /// The destination's bundle path, below its root.
    pub at: &'a BundlePath,
    /// The same as a place.
    pub target: &'a dyn Storage,
    /// The world around it.
    pub world: &'a World<'a>,
}

/// What a publication needs of the world outside.
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

/// What was decided, and done.
pub struct Published {
    /// What the table says.
    pub decision: Decision,
    /// What was done, where anything was.
    pub plan: Option<Plan>,
}

/// The state of a destination as it was read.
struct ReadState {
    version: Option<Version>,
    parsed: Option<std::result::Result<State, String>>,
}

impl ReadState {
    fn valid(&self) -> Option<&State> {
        self.parsed.as_ref()?.as_ref().ok()
    }
}

impl Publication<'_> {
    /// Decides and plans, and changes nothing. A publication that is going on, or that was cut short, is seen as what it
    /// will be. `warnings` get what an operator should know, failed or not.
    pub fn look(&self, warnings: &mut Vec<Warning>) -> Result<Published> {
        self.without_lock(warnings).map_err(not_a_place)
    }

    fn without_lock(&self, warnings: &mut Vec<Warning>) -> Result<Published> {
        let mut read = self.read_state()?;
        let mut in_progress: Vec<RelPath> = Vec::new();
        let busy = self.target.is_locked()?;
        for name in self.target.own_names(JOURNAL_PREFIX)? {
            let Some(journal) = self.read_journal(&name)? else { continue };
            in_progress.extend(journal.written().cloned());
            if busy {
                let message = format!("{}: a publication is going on here", self.target.describe());
                warnings.push(Warning::new(Code::PublicationInProgress, message));
            } else if journal.phase == Phase::Committing {
                let message =
                    format!("{}: a publication was cut short here; the next run finishes it", self.target.describe());
                warnings.push(Warning::new(Code::RecoveryPending, message));
                in_progress.extend(read.valid().into_iter().flat_map(|s| s.outputs.iter().map(|o| o.path.clone())));
                read = self.target_state(&journal)?.unwrap_or(read);
            }
        }
        let decision = decide(&self.wanted, read.parsed.as_ref())?;
        if decision.action.is_skip() {
            return Ok(self.skipped(decision, &read, warnings));
        }
        let plan = self.plan(&decision, &read, &in_progress)?;
        let state = plan.state(&self.wanted, read.valid(), &(self.world.now)());
        drop(read);
        state.into_file().map_err(execute::too_large)?;
        Ok(Published { decision: plan.decision.clone(), plan: Some(plan) })
    }

    /// Publishes what is to be published. `warnings` get what an operator should know, failed or not.
    pub fn run(&self, warnings: &mut Vec<Warning>) -> Result<Published> {
        self.with_lock(warnings).map_err(not_a_place)
    }

    fn with_lock(&self, warnings: &mut Vec<Warning>) -> Result<Published> {
        let journal = journal::name(self.wanted.pipeline_id, &self.wanted.destination.id);
        if !self.target.disturbed(&journal)? {
            // The fast path: who finds nothing to do, or may not do it, needs no lock.
            let read = self.read_state()?;
            let decision = decide(&self.wanted, read.parsed.as_ref())?;
            if decision.action.is_skip() {
                return Ok(self.skipped(decision, &read, warnings));
            }
            // Not even a lock file goes into a directory that is somebody else's; it is, unless another publication was
            // seen half-way, which has left its traces or its state by now.
            if decision.action == Action::PublishNew
                && let Err(error) = self.plan(&decision, &read, &[])
                && !self.target.disturbed(&journal)?
                && self.target.get_small(STATE, 0)?.is_none()
            {
                return Err(error);
            }
        }
        let guard = self.lock()?;
        let published = self.locked(guard.as_ref(), &journal, warnings);
        let left = |name: &String| name != STATE && name != LOCK;
        let mark = self.target.own_names(RESERVED).map_or(true, |names| names.iter().any(left));
        // Whatever was done counts; a lock file that can't be removed makes the next command look twice, no more.
        let _ = guard.release(mark);
        published
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

    fn locked(&self, guard: &dyn Guard, journal: &str, warnings: &mut Vec<Warning>) -> Result<Published> {
        let dirty = self.recover(guard, journal, warnings)?;
        let read = self.read_state()?;
        let wanted = Wanted { dirty, ..self.wanted };
        let decision = decide(&wanted, read.parsed.as_ref())?;
        if decision.action.is_skip() {
            return Ok(self.skipped(decision, &read, warnings));
        }
        let plan = self.plan(&decision, &read, &[])?;
        self.execute(guard, &plan, read, dirty)?;
        Ok(Published { decision: plan.decision.clone(), plan: Some(plan) })
    }

    /// Nothing is to be done; but what is there may have been made by another configuration.
    fn skipped(&self, decision: Decision, read: &ReadState, warnings: &mut Vec<Warning>) -> Published {
        if let (Action::SkipSame, Some(state)) = (decision.action, read.valid()) {
            let outputs = transform::outputs(self.wanted.manifest, self.wanted.destination, self.at);
            if let Some(difference) = plan::difference(&self.wanted, &outputs, state) {
                let message = format!("{}: {difference}: publish it again with --republish", self.target.describe());
                warnings.push(Warning::new(Code::OutputsDiffer, message));
            }
        }
        Published { decision, plan: None }
    }

    fn plan(&self, decision: &Decision, read: &ReadState, in_progress: &[RelPath]) -> Result<Plan> {
        let outputs = transform::outputs(self.wanted.manifest, self.wanted.destination, self.at);
        let planned = plan::paths(&outputs);
        let sight = Sight { state: read.valid(), in_progress, planned: &planned, keep: self.wanted.force };
        let mut survey = Survey::new(self.target.describe(), sight);
        self.target.list(Scope::Destination, &mut |entry| {
            self.world.cancel.check()?;
            survey.see(entry);
            Ok(())
        })?;
        plan::plan(&self.wanted, decision.clone(), outputs, read.valid(), &survey)
    }

    fn read_state(&self) -> Result<ReadState> {
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

    /// The state that a publication will leave once it is finished.
    fn target_state(&self, journal: &Journal) -> Result<Option<ReadState>> {
        let Some(target) = journal.target else { return Ok(None) };
        let staged = self.target.staged(&Stage(journal.stage.clone()), target.job, state::MAX_BYTES + 1)?;
        Ok(staged.map(|bytes| ReadState { version: None, parsed: Some(parse_state(&bytes)) }))
    }

    fn read_journal(&self, name: &str) -> Result<Option<Journal>> {
        let Some(small) = self.target.get_small(name, journal::MAX_BYTES)? else { return Ok(None) };
        Journal::parse(&small.bytes).map(Some).map_err(|fault| {
            let message = format!("{}: {name}: this is no journal: {fault}", self.target.describe());
            Error::new(Code::CommitIncomplete, message)
                .hint("if no other version of distributor wrote it, move it aside and run again")
        })
    }
}

/// Something that is no directory stands where the place should be: it is content, and nobody's to replace.
fn not_a_place(error: Error) -> Error {
    let code = if error.code == Code::NotADirectory { Code::UnmanagedContent } else { error.code };
    Error { code, ..error }
}

fn parse_state(bytes: &[u8]) -> std::result::Result<State, String> {
    if bytes.len() as u64 > state::MAX_BYTES {
        return Err(format!("larger than {} bytes", state::MAX_BYTES));
    }
    State::parse(bytes)
}

/// The error of a bundle with these findings; `None` where there are none.
pub fn invalid_bundle(details: Vec<Detail>) -> Option<Error> {
    let first = details.first()?;
    let more = if details.len() > 1 { format!(" (and {} more)", details.len() - 1) } else { String::new() };
    let hint = if details.iter().any(|detail| detail.code == Code::PermissionDenied) {
        "check the owner and mode of the bundle's files"
    } else {
        "make the bundle and its manifest anew, together"
    };
    Some(Error::new(Code::InvalidBundle, format!("{}{more}", first.message)).hint(hint).detail(details))
}
