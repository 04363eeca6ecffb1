//! Deletes that are journaled, and the state after them.

use std::collections::BTreeSet;

use super::site::Site;
use crate::error::{Error, Result};
use crate::journal::{self, Journal, Operation};
use crate::names::STATE;
use crate::path::{RawPath, RelPath};
use crate::state::State;
use crate::storage::{Expected, Guard, Version};

/// How many deletes are done before the lock is looked at again.
const BATCH: usize = 1000;

/// What became of paths that were to be deleted.
#[derive(Debug, Default)]
pub struct Deletes {
    /// What is gone.
    pub deleted: Vec<RelPath>,
    /// What is not, and why.
    pub failed: Vec<(RelPath, Error)>,
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
        let name = journal::name(&journal.pipeline_id, &journal.destination_id);
        let remove = paths.iter().map(|path| Operation::Remove { path: path.into() });
        let journal = journal.delete(remove.collect());
        self.target.put_small(&name, &journal.to_json(), Expected::Any)?;
        let deletes = self.carry_out_deletes(guard, paths, state, version)?;
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
                self.carry_out_deletes(guard, &paths, state, read.version.as_ref())?;
            }
        }
        self.target.remove_small(name)
    }

    fn carry_out_deletes(
        &self,
        guard: &dyn Guard,
        paths: &[RelPath],
        mut state: State,
        version: Option<&Version>,
    ) -> Result<Deletes> {
        let mut deletes = Deletes::default();
        for batch in paths.chunks(BATCH) {
            guard.check()?;
            let raw: Vec<RawPath> = batch.iter().map(RawPath::from).collect();
            let results = self.target.remove_many(&raw.iter().collect::<Vec<_>>());
            for (path, result) in batch.iter().zip(results) {
                match result {
                    Ok(()) => deletes.deleted.push(path.clone()),
                    Err(error) => deletes.failed.push((path.clone(), error)),
                }
            }
        }
        self.tidy(&deletes.deleted)?;
        let gone: BTreeSet<&RelPath> = deletes.deleted.iter().collect();
        state.outputs.retain(|record| !gone.contains(&record.path));
        if !gone.is_empty() {
            self.write_state(guard, state, version)?;
        }
        Ok(deletes)
    }

    /// Removes the directories that deletes emptied, and makes all of it durable.
    fn tidy(&self, deleted: &[RelPath]) -> Result<()> {
        let above: BTreeSet<&str> = deleted.iter().flat_map(RelPath::ancestors).collect();
        let dirs: Vec<RawPath> = above.iter().rev().map(|dir| RawPath::from(*dir)).collect();
        // A directory that stays is empty and in nobody's way.
        let _ = self.target.remove_empty_dirs(&dirs.iter().collect::<Vec<_>>());
        let touched: BTreeSet<&[u8]> = above.iter().map(|dir| dir.as_bytes()).chain([&b""[..]]).collect();
        self.target.flush_dirs(&touched.into_iter().collect::<Vec<_>>())
    }

    /// Writes a state that was changed, if nobody changed it meanwhile.
    pub fn write_state(&self, guard: &dyn Guard, mut state: State, version: Option<&Version>) -> Result<()> {
        state.updated_at = (self.world.now)();
        state.distributor_version = Some(env!("CARGO_PKG_VERSION").to_owned());
        guard.check()?;
        self.target.put_small(STATE, state.into_json().as_bytes(), Expected::Version(version))
    }
}
