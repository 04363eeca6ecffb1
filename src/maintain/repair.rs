//! The record, made true to what is there.

use std::collections::BTreeSet;

use super::{Held, Upkeep};
use crate::error::{Result, Warning};
use crate::path::{RawPath, RelPath};
use crate::plan::{Sight, Survey};
use crate::publish::Unsettled;

/// What a repair found, and did.
#[derive(Debug)]
pub struct Repair {
    /// The schema version of the state, as it was read.
    pub schema_version: u64,
    /// How many records were looked at.
    pub checked: usize,
    /// The recorded outputs that are not there, in byte order.
    pub missing: Vec<RelPath>,
    /// What is there and nobody recorded.
    pub unmanaged: Vec<RawPath>,
}

impl Upkeep<'_> {
    /// Finds the records whose outputs are not there any more, and what nobody recorded; without `dry_run` it drops those
    /// records. Nothing but the state is written, and nothing is deleted.
    pub fn repair(&self, dry_run: bool, warnings: &mut Vec<Warning>) -> Result<Repair> {
        if dry_run {
            return self.look(warnings, |held| self.inspect(held));
        }
        self.work(warnings, |guard, mut held| {
            let repair = self.inspect(&held)?;
            if !repair.missing.is_empty() {
                self.site.world.cancel.check()?;
                // In byte order.
                held.state.outputs.retain(|record| repair.missing.binary_search(&record.path).is_err());
                self.site.write_state(guard, held.state, held.version.as_ref())?;
            }
            Ok(repair)
        })
    }

    fn inspect(&self, held: &Held) -> Result<Repair> {
        let planned = BTreeSet::new();
        let sight = Sight { state: Some(&held.state), in_progress: &held.ours, planned: &planned, keep: true };
        let survey = self.site.survey(sight, &Unsettled::default())?;
        let missing = Upkeep::missing(held, &survey);
        // The path of a record that stays is managed, whatever stands there.
        let staying: BTreeSet<RawPath> = held
            .state
            .outputs
            .iter()
            .filter(|record| !missing.contains(&record.path))
            .map(|record| RawPath::from(&record.path))
            .collect();
        let unmanaged = survey.unmanaged_paths().into_iter().filter(|path| !staying.contains(path));
        Ok(Repair {
            schema_version: held.state.schema_version,
            checked: held.records().count(),
            unmanaged: unmanaged.collect(),
            missing: missing.into_iter().collect(),
        })
    }

    fn missing(held: &Held, survey: &Survey<'_>) -> BTreeSet<RelPath> {
        // What another file system hides may well be there.
        let is_missing =
            |path: &&RelPath| !survey.is_present(path) && !survey.is_unseen(path) && !held.coming.contains(*path);
        held.records().map(|record| &record.path).filter(is_missing).cloned().collect()
    }
}
