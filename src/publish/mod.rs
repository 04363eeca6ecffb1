//! One publication: one bundle to one destination bundle path.
//!
//! Before the commit point a failure or a crash leaves everything as it was; from there on it goes forward, finished by
//! this process or by the next command that locks the destination.

mod commit;
mod delete;
mod execute;
mod make;
mod recover;
mod site;

pub use delete::Deletes;
pub use site::{Foreseen, ReadState, Site, Unsettled, World};

use crate::error::{Code, Error, Result, Warning};
use crate::journal::{self, Journal};
use crate::names::STATE;
use crate::path::{BundlePath, RESERVED};
use crate::plan::{self, Action, Decision, Forced, Outgoing, Plan, Sight, Wanted, decide};
use crate::source::Files;
use crate::state::{self, OutputRecord, State};
use crate::storage::{Above, Guard, Storage};
use crate::transform;

/// What is to be published, and where.
pub struct Publication<'a> {
    /// Whose it is and under which policies.
    pub wanted: Wanted<'a>,
    /// The bundle's files.
    pub source: &'a Files<'a>,
    /// The destination's bundle path, below its root.
    pub at: &'a BundlePath,
    /// The same as a place.
    pub target: &'a dyn Storage,
    /// The world around it.
    pub world: &'a World<'a>,
}

/// What was decided, and done.
pub struct Published {
    /// What the table says.
    pub decision: Decision,
    /// What was done, where anything was.
    pub plan: Option<Plan>,
}

impl Publication<'_> {
    fn site(&self) -> Site<'_> {
        Site { target: self.target, world: self.world }
    }

    /// Decides and plans, and changes nothing. A publication that is going on, or that was cut short, is seen as what it
    /// will be. `warnings` get what an operator should know, failed or not.
    pub fn look(&self, warnings: &mut Vec<Warning>) -> Result<Published> {
        self.without_lock(warnings).map_err(not_a_place)
    }

    fn without_lock(&self, warnings: &mut Vec<Warning>) -> Result<Published> {
        let journal = journal::name(self.wanted.pipeline_id, &self.wanted.destination.id);
        let Foreseen { read, unsettled, mark, .. } = self.site().foresee(&journal, warnings)?;
        let decision = decide(&Wanted { dirty: mark.is_some(), ..self.wanted }, read.parsed.as_ref())?;
        if decision.action.is_skip() {
            return Ok(self.skipped(decision, &read, warnings));
        }
        let plan = self.plan_on(mark.as_ref(), &decision, &read, &unsettled)?;
        let state = plan.state(&self.wanted, read.valid(), &(self.world.now)());
        drop(read);
        state.into_file()?;
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
            let read = self.site().read_state()?;
            let decision = decide(&self.wanted, read.parsed.as_ref())?;
            if decision.action.is_skip() {
                return Ok(self.skipped(decision, &read, warnings));
            }
            // Not even a lock file goes into a directory that is somebody else's; it is, unless another publication was
            // seen half-way, which has left its traces or its state by now.
            let new = decision.action == Action::PublishNew;
            let plan = || self.plan(&decision, &read, &Unsettled::default()).map(drop);
            match (new || self.source.is_remote()).then(plan) {
                Some(Err(error)) if new && self.target.own_names(RESERVED)?.is_empty() => return Err(error),
                // Nobody waits for the lock while a remote bundle arrives, and none is fetched in vain.
                Some(Ok(())) => self.source.ready()?,
                _ => {}
            }
        }
        self.site().locked(warnings, |guard, warnings| self.under_lock(guard, &journal, warnings))
    }

    fn under_lock(&self, guard: &dyn Guard, journal: &str, warnings: &mut Vec<Warning>) -> Result<Published> {
        let mark = self.site().recover(guard, journal, warnings)?;
        let read = self.site().read_state()?;
        let decision = decide(&Wanted { dirty: mark.is_some(), ..self.wanted }, read.parsed.as_ref())?;
        if decision.action.is_skip() {
            return Ok(self.skipped(decision, &read, warnings));
        }
        let mut plan = self.plan_on(mark.as_ref(), &decision, &read, &Unsettled::default())?;
        self.source.ready()?;
        self.execute(guard, &mut plan, read, mark.is_some())?;
        Ok(Published { decision: plan.decision.clone(), plan: Some(plan) })
    }

    /// Nothing is to be done; but what is there may have been made by another configuration.
    fn skipped(&self, decision: Decision, read: &ReadState, warnings: &mut Vec<Warning>) -> Published {
        if let (Action::SkipSame, Some(state)) = (decision.action, read.valid()) {
            // Where outputs collide a run that publishes says so.
            let outputs =
                transform::outputs(self.wanted.manifest, self.wanted.destination, self.at).unwrap_or_default();
            if let Some(difference) = plan::difference(&self.wanted, &outputs, state) {
                let message = format!("{}: {difference}: publish it again with --republish", self.target.describe());
                warnings.push(Warning::new(Code::OutputsDiffer, message));
            }
        }
        Published { decision, plan: None }
    }

    /// The plan. Where a forced replacement of this owner was cut short, what it was to take away goes without being
    /// forced again: nothing else, and nobody else's.
    fn plan_on(
        &self,
        mark: Option<&Journal>,
        decision: &Decision,
        read: &ReadState,
        unsettled: &Unsettled,
    ) -> Result<Plan> {
        let planned = self.plan(decision, read, unsettled);
        let (Some(paths), Err(refusal)) = (mark.and_then(|mark| mark.forced.as_ref()), &planned) else {
            return planned;
        };
        if !matches!(refusal.code, Code::UnmanagedContent | Code::UnmanagedPath) {
            return planned;
        }
        let again = Publication { wanted: Wanted { force: true, ..self.wanted }, ..*self };
        let again = again.plan(decision, read, unsettled)?;
        let is_own = |owner: &Outgoing| {
            (owner.pipeline_id.as_str(), &owner.destination_id)
                == (self.wanted.pipeline_id, &self.wanted.destination.id)
        };
        let goes_on =
            |force: &Forced| force.unmanaged.iter().all(|path| paths.contains(path)) && force.owners.iter().all(is_own);
        if again.force.as_ref().is_some_and(goes_on) { Ok(again) } else { planned }
    }

    fn plan(&self, decision: &Decision, read: &ReadState, unsettled: &Unsettled) -> Result<Plan> {
        let outputs = transform::outputs(self.wanted.manifest, self.wanted.destination, self.at)?;
        let planned = plan::paths(&outputs);
        let sight =
            Sight { state: read.valid(), in_progress: &unsettled.ours, planned: &planned, keep: self.wanted.force };
        let survey = self.site().survey(sight, unsettled)?;
        let plan = plan::plan(&self.wanted, decision.clone(), outputs, read.valid(), &survey)?;
        if plan.force.is_some() {
            self.refuse_claimed()?;
        }
        Ok(plan)
    }

    /// Nothing is replaced by force that a destination above has recorded: it is managed, only not from here.
    fn refuse_claimed(&self) -> Result<()> {
        for Above { place, path, bytes } in self.target.above(STATE, state::MAX_BYTES) {
            let Ok(state) = State::parse(&bytes) else { continue };
            let inside = format!("{path}/");
            let claims =
                |record: &&OutputRecord| record.path.as_str() == path || record.path.as_str().starts_with(&inside);
            if let Some(record) = state.outputs.iter().find(claims) {
                let message = format!(
                    "{}: {} is recorded by the destination above, at {place}",
                    self.target.describe(),
                    record.path
                );
                let hint = "keep destinations out of each other: choose another path for one of the two";
                return Err(Error::new(Code::PathOwnedByOther, message).hint(hint));
            }
        }
        Ok(())
    }
}

/// Something that is no directory stands where the place should be: it is content, and nobody's to replace.
fn not_a_place(error: Error) -> Error {
    let code = if error.code == Code::NotADirectory { Code::UnmanagedContent } else { error.code };
    Error { code, ..error }
}
