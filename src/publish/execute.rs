//! Staging, the commit point, and what comes after it.

use std::borrow::Cow;
use std::collections::BTreeSet;

use super::{Publication, ReadState, invalid_bundle};
use crate::bundle::finding;
use crate::digest::Digest;
use crate::error::{Code, Error, Result};
use crate::journal::{self, Begin, Journal, Kind, Operation, Target};
use crate::names::STATE;
use crate::path::{self, RawPath, RelPath};
use crate::plan::Plan;
use crate::state;
use crate::storage::{Body, Commit, Expected, Guard, Job, Recovery, Stage, StageError, Version};

/// How many operations are done before the lock is looked at again.
const BATCH: usize = 1000;

impl Publication<'_> {
    /// Carries out `plan`.
    pub(super) fn execute(&self, guard: &dyn Guard, plan: &Plan, read: ReadState, dirty: bool) -> Result<()> {
        let stage = Stage((self.world.token)());
        let begun = self.begin(&stage, dirty);
        let name = journal::name(&begun.pipeline_id, &begun.destination_id);
        let state = plan.state(&self.wanted, read.valid(), &begun.started_at);
        // The old state is large, and has served.
        let old = read.version;
        drop(read.parsed);
        let state = state.into_file().map_err(too_large)?;
        self.target.put_small(&name, &begun.to_json(), Expected::Any)?;
        let target = Target { job: plan.outputs.len(), sha256: Digest::of(state.as_bytes()) };
        // The state is staged with the outputs. It never gets a name from there: the path is for messages.
        let unnamed = RelPath::parse("state").map_err(|fault| Error::new(Code::StorageError, fault.to_string()))?;
        let mut jobs = self.jobs(plan);
        jobs.push(Job {
            path: &unnamed,
            size: state.len() as u64,
            sha256: target.sha256,
            body: Body::Bytes(state.as_bytes()),
        });
        let staged = self.stage(guard, &stage, plan, &jobs).and_then(|()| {
            let committing = begun.commit(plan.operations(), target);
            self.target.put_small(&name, &committing.to_json(), Expected::Any).map(|()| committing)
        });
        match staged {
            Ok(journal) => self.finish(guard, &name, &journal, &jobs, old.as_ref()),
            Err(error) => {
                // The journal first: one that is past its commit point must never outlive its stage. What can't be
                // removed now is removed by the next command; the first failure is the one to tell.
                let removed = if dirty { Ok(()) } else { self.target.remove_small(&name) };
                let _ = removed.and_then(|()| self.target.close_stage(&stage));
                Err(error)
            }
        }
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

    fn jobs<'a>(&'a self, plan: &'a Plan) -> Vec<Job<'a>> {
        let outputs = plan.outputs.iter().map(|planned| &planned.output);
        outputs
            .map(|output| Job {
                path: &output.path,
                size: output.size,
                sha256: output.sha256,
                body: Body::File(self.source, &output.source_path),
            })
            .collect()
    }

    /// All that happens before the commit point.
    fn stage(&self, guard: &dyn Guard, stage: &Stage, plan: &Plan, jobs: &[Job<'_>]) -> Result<()> {
        self.target.open_stage(stage)?;
        let mut details = Vec::new();
        let results = self.target.stage_all(stage, jobs, self.world.cancel);
        self.world.cancel.check()?;
        for (job, result) in jobs.iter().zip(results) {
            match result {
                Ok(()) => {}
                Err(StageError::Place(error)) => return Err(error),
                Err(StageError::Source(error)) => details.push(finding(job.path, error)),
            }
        }
        invalid_bundle(details).map_or(Ok(()), Err)?;
        self.target.flush_stage(stage, jobs.len())?;
        self.look_again(plan)?;
        self.world.cancel.check()?;
        guard.check()
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

    /// All that happens after the commit point; done again after a crash, it goes on from where it was.
    pub(super) fn finish(
        &self,
        guard: &dyn Guard,
        name: &str,
        journal: &Journal,
        jobs: &[Job<'_>],
        old: Option<&Version>,
    ) -> Result<()> {
        let stage = Stage(journal.stage.clone());
        let finished = self.carry_out(guard, &stage, journal, jobs, old);
        if finished.is_err() && self.target.recovery() == Recovery::DirtyMark {
            // What is new goes again; what was overwritten stays, and the journal marks it.
            let _ = self.target.remove_created(&stage, &journal.created().collect::<Vec<_>>());
        }
        finished?;
        // The publication counts. What can't be cleared away now is cleared away by the next command.
        let _ = self.target.close_stage(&stage).and_then(|()| self.target.remove_small(name));
        Ok(())
    }

    fn carry_out(
        &self,
        guard: &dyn Guard,
        stage: &Stage,
        journal: &Journal,
        jobs: &[Job<'_>],
        old: Option<&Version>,
    ) -> Result<()> {
        let same_kind = |a: &Operation, b: &Operation| kind(a) == kind(b);
        for group in self.open_operations(stage, journal)?.chunk_by(same_kind) {
            for batch in group.chunks(BATCH) {
                guard.check()?;
                self.apply(stage, jobs, batch)?;
            }
        }
        self.target.flush_dirs(&touched(&journal.operations))?;
        let bytes = self.state_bytes(stage, journal, jobs)?;
        guard.check()?;
        self.target.put_small(STATE, &bytes, Expected::Version(old))
    }

    /// The operations that may still have to be done. Once the first output has its name all before it is done, and
    /// must not be done again: what it removes may by now be that output, where case does not count.
    fn open_operations<'a>(&self, stage: &Stage, journal: &'a Journal) -> Result<&'a [Operation]> {
        let operations = journal.operations.as_slice();
        let first = operations.iter().enumerate().find_map(|(at, operation)| match operation {
            Operation::Create { job, .. } | Operation::Replace { job, .. } => Some((at, *job)),
            _ => None,
        });
        match first {
            Some((at, job)) if self.target.recovery() == Recovery::Redo => {
                let waits = self.target.staged(stage, job, 0)?.is_some();
                Ok(if waits { operations } else { &operations[at..] })
            }
            _ => Ok(operations),
        }
    }

    /// The bytes of the state that will stand.
    fn state_bytes<'a>(&self, stage: &Stage, journal: &Journal, jobs: &[Job<'a>]) -> Result<Cow<'a, [u8]>> {
        let lost = || {
            let message = format!("{}: {} is not whole", self.target.describe(), stage.name());
            Error::new(Code::CommitIncomplete, message)
                .hint("it was cut short, and what was staged is gone: move its journal aside and publish anew")
        };
        let target = journal.target.ok_or_else(lost)?;
        if let Some(Job { body: Body::Bytes(bytes), .. }) = jobs.get(target.job) {
            return Ok(Cow::Borrowed(bytes));
        }
        let bytes = self.target.staged(stage, target.job, state::MAX_BYTES)?.ok_or_else(lost)?;
        if Digest::of(&bytes) == target.sha256 { Ok(Cow::Owned(bytes)) } else { Err(lost()) }
    }

    /// Applies operations of one kind.
    fn apply(&self, stage: &Stage, jobs: &[Job<'_>], operations: &[Operation]) -> Result<()> {
        let (mut removed, mut made, mut commits) = (Vec::new(), Vec::new(), Vec::new());
        for operation in operations {
            match operation {
                Operation::Remove { path } | Operation::RemoveDir { path } => removed.push(path),
                Operation::MakeDir { path } => made.push(path.as_str()),
                Operation::Create { path, job, .. } => commits.push(Commit { job: *job, path, replace: false }),
                Operation::Replace { path, job, .. } => commits.push(Commit { job: *job, path, replace: true }),
            }
        }
        match operations.first() {
            Some(Operation::Remove { .. }) => self.target.remove_many(&removed),
            Some(Operation::RemoveDir { .. }) => self.target.remove_empty_dirs(&removed),
            Some(Operation::MakeDir { .. }) => self.target.make_dirs(&made),
            Some(_) => self.target.commit_all(stage, jobs, &commits),
            None => Ok(()),
        }
    }
}

/// Operations of one kind are done together, in their order.
fn kind(operation: &Operation) -> u8 {
    match operation {
        Operation::Remove { .. } => 0,
        Operation::RemoveDir { .. } => 1,
        Operation::MakeDir { .. } => 2,
        Operation::Create { .. } | Operation::Replace { .. } => 3,
    }
}

/// The directories whose names the operations change.
fn touched(operations: &[Operation]) -> Vec<&[u8]> {
    let all: BTreeSet<&[u8]> = operations
        .iter()
        .map(|operation| match operation {
            Operation::Remove { path } | Operation::RemoveDir { path } => path.parent().unwrap_or_default(),
            Operation::Create { path, .. } | Operation::Replace { path, .. } => {
                path.parent().unwrap_or_default().as_bytes()
            }
            Operation::MakeDir { path } => path::ancestors(path).next().unwrap_or_default().as_bytes(),
        })
        .collect();
    all.into_iter().collect()
}

/// A state that nobody could read again.
pub(super) fn too_large(fault: String) -> Error {
    Error::new(Code::Unsupported, fault).hint("publish to a destination of its own, or fewer files")
}
