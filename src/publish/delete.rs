//! Deletes that are journaled, and the state after them.

use std::collections::BTreeSet;

use super::commit::BATCH;
use super::site::{Site, Unsettled};
use crate::error::{Code, Error, Result};
use crate::journal::{Journal, Operation};
use crate::names::STATE;
use crate::path::{RawPath, RelPath};
use crate::plan::{Sight, is_html};
use crate::state::State;
use crate::storage::{Expected, Guard, Version};

/// What became of paths that were to be deleted.
#[derive(Debug, Default)]
pub struct Deletes {
    /// What is gone.
    pub deleted: Vec<RelPath>,
    /// What is not, and why.
    pub failed: Vec<(RelPath, Error)>,
}

/// What there is to delete.
struct There {
    /// The outputs.
    outputs: BTreeSet<RelPath>,
    /// Outputs that another file system hides.
    unseen: BTreeSet<RelPath>,
    /// The directories above them, the innermost first.
    dirs: Vec<RawPath>,
}

impl Site<'_> {
    /// Deletes the recorded outputs `paths`, and drops from `state` the records of those that are gone. Nothing else is
    /// deleted but directories that this empties. Killed half-way it is finished by whoever locks the place next.
    pub fn delete(
        &self,
        guard: &dyn Guard,
        journal: Journal,
        paths: &[RelPath],
        (state, version): (State, Option<&Version>),
    ) -> Result<Deletes> {
        let there = self.there(&state, paths)?;
        let name = journal.name();
        let remove = paths.iter().map(|path| Operation::Remove { path: path.into() });
        let journal = journal.delete(remove.collect());
        self.target.put_small(&name, &journal.to_file()?, Expected::Any)?;
        let deletes = self.carry_out_deletes(guard, (paths, &there), state, version)?;
        // What can't be cleared away now is cleared away by the next command.
        let _ = self.target.remove_small(&name);
        Ok(deletes)
    }

    /// Finishes what a journal of deletes began. What is not recorded any more is nobody's, and stays.
    pub(super) fn delete_recorded(&self, guard: &dyn Guard, name: &str, journal: &Journal) -> Result<()> {
        let read = self.read_state()?;
        if let Some(Ok(state)) = read.parsed {
            let began: BTreeSet<&RawPath> = journal.removed().collect();
            let recorded = state.outputs.iter().map(|record| &record.path);
            let paths: Vec<RelPath> = recorded.filter(|path| began.contains(&RawPath::from(*path))).cloned().collect();
            if !paths.is_empty() {
                let there = self.there(&state, &paths)?;
                self.carry_out_deletes(guard, (&paths, &there), state, read.version.as_ref())?;
            }
        }
        self.target.remove_small(name)
    }

    /// What is there of recorded outputs. A link, a directory or whatever else stands at the name of one is not what was
    /// published, and what lies in a directory with a state of its own is managed there.
    fn there(&self, state: &State, paths: &[RelPath]) -> Result<There> {
        let planned = BTreeSet::new();
        let sight = Sight { state: Some(state), in_progress: &[], planned: &planned, keep: false };
        let survey = self.survey(sight, &Unsettled::default())?;
        let outputs = paths.iter().filter(|path| survey.is_present(path)).cloned().collect();
        let unseen = paths.iter().filter(|path| survey.is_unseen(path)).cloned().collect();
        let dirs: BTreeSet<&str> = paths.iter().flat_map(RelPath::ancestors).collect();
        let dirs = dirs.into_iter().rev().filter(|dir| survey.is_directory(dir)).map(RawPath::from).collect();
        Ok(There { outputs, unseen, dirs })
    }

    fn carry_out_deletes(
        &self,
        guard: &dyn Guard,
        (paths, there): (&[RelPath], &There),
        mut state: State,
        version: Option<&Version>,
    ) -> Result<Deletes> {
        let (outputs, gone): (Vec<&RelPath>, Vec<&RelPath>) =
            paths.iter().partition(|path| there.outputs.contains(*path));
        let (hidden, gone): (Vec<&RelPath>, Vec<&RelPath>) =
            gone.into_iter().partition(|path| there.unseen.contains(*path));
        let failed = hidden.into_iter().map(|path| (path.clone(), self.hidden(path))).collect();
        let mut deletes = Deletes { deleted: gone.into_iter().cloned().collect(), failed };
        // Pages go before what they name: no reader meets one without it.
        let (pages, others): (Vec<&RelPath>, Vec<&RelPath>) =
            outputs.into_iter().partition(|path| is_html(path.file_name().as_bytes()));
        for batch in pages.chunks(BATCH).chain(others.chunks(BATCH)) {
            guard.check()?;
            let raw: Vec<RawPath> = batch.iter().map(|path| RawPath::from(*path)).collect();
            let results = self.target.remove_many(&raw.iter().collect::<Vec<_>>());
            for (path, result) in batch.iter().zip(results) {
                match result {
                    Ok(()) => deletes.deleted.push((*path).clone()),
                    Err(error) => deletes.failed.push(((*path).clone(), error)),
                }
            }
        }
        deletes.deleted.sort_unstable();
        self.tidy(&there.dirs)?;
        let gone: BTreeSet<&RelPath> = deletes.deleted.iter().collect();
        state.outputs.retain(|record| !gone.contains(&record.path));
        if !gone.is_empty() {
            self.write_state(guard, state, version)?;
        }
        Ok(deletes)
    }

    fn hidden(&self, path: &RelPath) -> Error {
        let message = format!("{}/{path}: another file system is mounted above it", self.target.describe());
        Error::new(Code::StorageError, message).hint("unmount it first: what lies there is not what was published")
    }

    /// Removes those of the directories that are empty, the innermost first, and makes all of it durable.
    fn tidy(&self, dirs: &[RawPath]) -> Result<()> {
        // A directory that stays is empty and in nobody's way.
        let _ = self.target.remove_empty_dirs(&dirs.iter().collect::<Vec<_>>());
        let touched: Vec<&[u8]> = std::iter::once(&b""[..]).chain(dirs.iter().map(RawPath::as_bytes)).collect();
        self.target.flush_dirs(&touched)
    }

    /// Writes a state that was changed, if nobody changed it meanwhile.
    pub fn write_state(&self, guard: &dyn Guard, mut state: State, version: Option<&Version>) -> Result<()> {
        state.updated_at = (self.world.now)();
        state.distributor_version = Some(env!("CARGO_PKG_VERSION").to_owned());
        guard.check()?;
        self.target.put_small(STATE, state.into_file()?.as_bytes(), Expected::Version(version))
    }
}
