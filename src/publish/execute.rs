//! Staging, the commit point, and what comes after it.

use std::collections::BTreeSet;

use super::commit::touched;
use super::{Publication, ReadState, invalid_bundle};
use crate::bundle::finding;
use crate::digest::Digest;
use crate::error::{Code, Error, Result};
use crate::journal::{self, Begin, Journal, Kind, Target};
use crate::path::{RawPath, RelPath};
use crate::plan::Plan;
use crate::storage::{Body, Expected, Guard, Job, Stage, StageError};

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
            self.target.check_writable(&touched(&committing.operations))?;
            self.target.put_small(&name, &committing.to_file()?, Expected::Any).map(|()| committing)
        });
        match staged {
            Ok(journal) => {
                self.site().finish(guard, &journal, &jobs, old.as_ref())?;
                // The publication counts. What can't be cleared away now is cleared away by the next command.
                let _ = self.site().settle(&name, &journal);
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
}

/// A state that nobody could read again.
pub(super) fn too_large(fault: String) -> Error {
    Error::new(Code::Unsupported, fault).hint("publish to a destination of its own, or fewer files")
}
