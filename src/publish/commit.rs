//! What comes after the commit point.

use std::borrow::Cow;
use std::collections::BTreeSet;

use super::site::Site;
use crate::digest::Digest;
use crate::error::{Code, Error, Result};
use crate::journal::{Journal, Operation};
use crate::names::STATE;
use crate::path::{self, RawPath};
use crate::plan::is_html;
use crate::state;
use crate::storage::{Body, Commit, Expected, Guard, Job, Kind, Recovery, Scope, Stage, Version};

/// How many operations are done before the lock is looked at again.
pub(super) const BATCH: usize = 1000;

impl Site<'_> {
    /// All that happens after the commit point; done again after a crash, it goes on from where it was.
    pub(super) fn finish(
        &self,
        guard: &dyn Guard,
        journal: &Journal,
        jobs: &[Job<'_>],
        old: Option<&Version>,
    ) -> Result<()> {
        let stage = Stage(journal.stage.clone());
        let finished = self.carry_out(guard, &stage, journal, jobs, old);
        // Once the lock is lost, what is there is of whoever holds it now, who takes back what was new.
        let failed = finished.as_ref().is_err_and(|error| error.code != Code::LockLost);
        if failed && self.target.recovery() == Recovery::DirtyMark {
            // What is new goes again; what was overwritten stays, and the journal marks it.
            let _ = self.target.remove_created(&stage, &journal.created().collect::<Vec<_>>());
        }
        finished.map_err(half_done)
    }

    /// Clears away what is left of a publication that counts. The stage first: while the journal stands, what is left of
    /// the stage is known to somebody.
    pub(super) fn settle(&self, name: &str, journal: &Journal) -> Result<()> {
        self.target.close_stage(&Stage(journal.stage.clone()))?;
        self.target.remove_small(name)
    }

    fn carry_out(
        &self,
        guard: &dyn Guard,
        stage: &Stage,
        journal: &Journal,
        jobs: &[Job<'_>],
        old: Option<&Version>,
    ) -> Result<()> {
        // Looked at first: without the state that will stand nothing is begun.
        let bytes = self.state_bytes(stage, journal, jobs)?;
        // Done again after a crash: what became a destination of its own since then is not this one's any more.
        let managed = if jobs.is_empty() { self.managed_below()? } else { BTreeSet::new() };
        let ours = |operation: &&Operation| managed.is_empty() || !managed.iter().any(|dir| operation.is_within(dir));
        let operations: Vec<&Operation> = self.open_operations(stage, journal)?.iter().filter(ours).collect();
        for group in in_groups(&operations) {
            for batch in group.chunks(BATCH) {
                guard.check()?;
                self.apply(stage, jobs, batch)?;
            }
        }
        self.target.flush_dirs(&touched(&journal.operations))?;
        guard.check()?;
        self.target.put_small(STATE, &bytes, Expected::Version(old))
    }

    /// The operations that may still have to be done. Once the first output has its name, what had to be removed before
    /// is gone, and must not be removed again: by now it may be that output, where case does not count. Directories may
    /// still have to go or come.
    fn open_operations<'a>(&self, stage: &Stage, journal: &'a Journal) -> Result<&'a [Operation]> {
        let operations = journal.operations.as_slice();
        let first = operations.iter().find_map(|operation| match operation {
            Operation::Create { job, .. } | Operation::Replace { job, .. } => Some(*job),
            _ => None,
        });
        let removals = operations.iter().take_while(|operation| matches!(operation, Operation::Remove { .. })).count();
        match first {
            Some(job) if self.target.recovery() == Recovery::Redo => {
                let waits = self.target.staged(stage, job, 0)?.is_some();
                Ok(if waits { operations } else { &operations[removals..] })
            }
            _ => Ok(operations),
        }
    }

    /// The bytes of the state that will stand.
    fn state_bytes<'a>(&self, stage: &Stage, journal: &Journal, jobs: &[Job<'a>]) -> Result<Cow<'a, [u8]>> {
        let lost = || {
            let message = format!("{}: {} is not whole", self.target.describe(), stage.name());
            Error::new(Code::CommitIncomplete, message)
                .hint(
                "it was cut short, and what was staged is gone: move its journal aside and publish anew, with --force if \
                 its outputs are in the way",
            )
        };
        let target = journal.target.ok_or_else(lost)?;
        if let Some(Job { body: Body::Bytes(bytes), .. }) = jobs.get(target.job) {
            return Ok(Cow::Borrowed(bytes));
        }
        let bytes = self.target.staged(stage, target.job, state::MAX_BYTES)?.ok_or_else(lost)?;
        if Digest::of(&bytes) == target.sha256 { Ok(Cow::Owned(bytes)) } else { Err(lost()) }
    }

    /// The directories below that have a state of their own.
    fn managed_below(&self) -> Result<BTreeSet<RawPath>> {
        let mut managed = BTreeSet::new();
        self.target.list(Scope::Destination, &mut |entry| {
            if entry.kind == Kind::Managed {
                managed.insert(entry.raw);
            }
            Ok(())
        })?;
        Ok(managed)
    }

    /// Applies operations of one kind.
    fn apply(&self, stage: &Stage, jobs: &[Job<'_>], operations: &[&Operation]) -> Result<()> {
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
            Some(Operation::Remove { .. }) => self.target.remove_many(&removed).into_iter().collect(),
            Some(Operation::RemoveDir { .. }) => self.target.remove_empty_dirs(&removed),
            Some(Operation::MakeDir { .. }) => self.target.make_dirs(&made),
            Some(_) => self.target.commit_all(stage, jobs, &commits),
            None => Ok(()),
        }
    }
}

/// The error of a publication that stopped past its commit point: what is there is of two publications.
fn half_done(error: Error) -> Error {
    if matches!(error.code, Code::CommitIncomplete | Code::LockLost) {
        return error;
    }
    let again = "the next run finishes it";
    let hint = error.hint.as_ref().map_or_else(|| again.to_owned(), |hint| format!("{hint}, then {again}"));
    Error { message: format!("{}, and the destination is half-published", error.message), ..error }.hint(hint)
}

/// What may be done together: a store that does several things at once keeps no order among them. Pages come after all
/// that they may name, the last output, the primary one, comes by itself, and pages go before what they may name.
fn in_groups<'a, 'b>(operations: &'b [&'a Operation]) -> impl Iterator<Item = &'b [&'a Operation]> {
    let last = operations.iter().rfind(|operation| is_output(operation)).copied();
    let group = move |operation: &Operation| match operation {
        Operation::Remove { path } => u8::from(is_html(path.file_name())),
        Operation::RemoveDir { .. } => 2,
        Operation::MakeDir { .. } => 3,
        Operation::Create { .. } | Operation::Replace { .. }
            if last.is_some_and(|last| std::ptr::eq(last, operation)) =>
        {
            4
        }
        Operation::Create { path, .. } | Operation::Replace { path, .. } => {
            5 + u8::from(is_html(path.file_name().as_bytes()))
        }
    };
    operations.chunk_by(move |a, b| group(a) == group(b))
}

fn is_output(operation: &Operation) -> bool {
    matches!(operation, Operation::Create { .. } | Operation::Replace { .. })
}

/// The directories whose names the operations change.
pub(super) fn touched(operations: &[Operation]) -> Vec<&[u8]> {
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
