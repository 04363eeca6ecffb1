//! Staging, and the commit point.

use std::collections::BTreeSet;

use super::commit::touched;
use super::{Publication, ReadState};
use crate::digest::{Digest, Fingerprint};
use crate::error::{Code, Error, Result};
use crate::journal::{Begin, Journal, Kind, Target};
use crate::path::{RawPath, RelPath};
use crate::plan::Plan;
use crate::storage::{Body, Expected, Guard, Job, Recovery, Stage, StageError, Version};

/// A publication at its commit point.
struct Ready {
    journal: Journal,
    /// The state that will stand.
    state: String,
    /// The version of the one that stands now.
    old: Option<Version>,
    unnamed: RelPath,
}

impl Ready {
    fn job(&self) -> Job<'_> {
        let bytes = self.state.as_bytes();
        Job { path: &self.unnamed, expected: Some(Fingerprint::of(bytes)), body: Body::Bytes(bytes) }
    }
}

impl Publication<'_> {
    /// Carries out `plan`.
    pub(super) fn execute(&self, guard: &dyn Guard, plan: &mut Plan, read: ReadState, dirty: bool) -> Result<()> {
        let stage = Stage((self.world.token)());
        let begun = self.begin(&stage, dirty);
        let name = begun.name();
        // Where nothing can be seen of a stage nobody has to know of it: who was cut short there has done nothing.
        if self.target.recovery() == Recovery::Redo {
            self.target.put_small(&name, &begun.to_json(), Expected::Any)?;
        }
        match self.prepare(guard, &stage, plan, read, begun) {
            Ok(ready) => {
                let pages = self.pages(plan);
                let makings = self.makings(plan, &pages);
                let mut jobs = self.jobs(&makings, true);
                jobs.push(ready.job());
                self.site().finish(guard, &ready.journal, &jobs, ready.old.as_ref())?;
                // The publication counts. What can't be cleared away now is cleared away by the next command.
                let _ = self.site().settle(&name, &ready.journal);
                Ok(())
            }
            Err(error) => {
                // The journal first: one that is past its commit point must never outlive its stage. What can't be
                // removed now is removed by the next command; the first failure is the one to tell.
                let removed = if dirty { Ok(()) } else { self.target.remove_small(&name) };
                let _ = removed.and_then(|()| self.target.close_stage(&stage));
                Err(error)
            }
        }
    }

    /// All that happens before the commit point, and the commit point itself.
    fn prepare(
        &self,
        guard: &dyn Guard,
        stage: &Stage,
        plan: &mut Plan,
        read: ReadState,
        begun: Journal,
    ) -> Result<Ready> {
        self.stage(stage, plan)?;
        let state = plan.state(&self.wanted, read.valid(), &begun.started_at);
        // The old state is large, and has served.
        let old = read.version;
        drop(read.parsed);
        let state = state.into_file()?;
        let target = Target { job: plan.outputs.len(), sha256: Digest::of(state.as_bytes()) };
        // The state is staged with the outputs. It never gets a name from there: the path is for messages.
        let unnamed = RelPath::parse("state").map_err(|fault| Error::new(Code::StorageError, fault.to_string()))?;
        let mut ready = Ready { journal: begun, state, old, unnamed };
        for result in self.target.stage_all(stage, target.job, &[ready.job()], self.world.cancel) {
            result.map_err(|(StageError::Place(error) | StageError::Source(error))| error)?;
        }
        self.target.flush_stage(stage, target.job + 1)?;
        self.look_again(plan)?;
        self.world.cancel.check()?;
        guard.check()?;
        ready.journal = ready.journal.commit(plan.operations(), target, plan.force.is_some());
        self.target.check_writable(&touched(&ready.journal.operations))?;
        self.target.put_small(&ready.journal.name(), &ready.journal.to_file()?, Expected::Any)?;
        Ok(ready)
    }

    /// Stages the outputs, and takes down what they are.
    fn stage(&self, stage: &Stage, plan: &mut Plan) -> Result<()> {
        self.target.open_stage(stage)?;
        let pages = self.pages(plan);
        let makings = self.makings(plan, &pages);
        let staged = self.target.stage_all(stage, 0, &self.jobs(&makings, false), self.world.cancel);
        self.world.cancel.check()?;
        let mut results = Vec::with_capacity(staged.len());
        for result in staged {
            match result {
                Ok(content) => results.push(Ok(content)),
                Err(StageError::Source(error)) => results.push(Err(error)),
                Err(StageError::Place(error)) => return Err(error),
            }
        }
        let contents = Self::whole(&makings, results)?;
        drop(makings);
        plan.made(contents);
        self.check_unused(plan)
    }

    fn begin(&self, stage: &Stage, dirty: bool) -> Journal {
        Journal::begin(Begin {
            kind: Kind::Publish,
            pipeline_id: self.wanted.pipeline_id,
            destination_id: &self.wanted.destination.id,
            source_id: &self.wanted.manifest.id,
            source_digest: self.wanted.manifest.digest,
            started_at: (self.world.now)(),
            holder: self.world.holder.clone(),
            stage: &stage.0,
            dirty,
        })
    }

    /// Names that should be free, looked at once more: staging may have taken its time.
    fn look_again(&self, plan: &Plan) -> Result<()> {
        let goes: BTreeSet<&[u8]> = plan.clear_dirs.iter().chain(&plan.in_the_way).map(RawPath::as_bytes).collect();
        let is_taken = |path: &str| goes.contains(path.as_bytes());
        let created = plan.outputs.iter().filter(|planned| !planned.replaces).map(|planned| &planned.output.path);
        let created: Vec<&RelPath> =
            created.filter(|path| !is_taken(path.as_str()) && !path.ancestors().any(is_taken)).collect();
        let taken = self.target.exist_many(&created)?;
        match created.iter().zip(taken).find(|(_, taken)| *taken) {
            None => Ok(()),
            Some((path, _)) => {
                let message = format!("{path}: something that is not ours took this name while the bundle was copied");
                Err(Error::new(Code::UnmanagedContent, message).hint("move it aside, or choose another path"))
            }
        }
    }
}
