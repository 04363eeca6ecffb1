//! The record, made true to what is there.

use std::collections::BTreeSet;

use super::{Held, Upkeep};
use crate::error::{Result, Warning};
use crate::path::{RawPath, RelPath};
use crate::plan::{Sight, Survey};
use crate::storage::Scope;

/// What a repair found, and did.
#[derive(Debug)]
pub struct Repair {
    /// The schema version of the state, as it was read.
    pub schema_version: u64,
    /// How many records were looked at.
    pub checked: usize,
    /// The recorded outputs that are not there.
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
                let missing: BTreeSet<&RelPath> = repair.missing.iter().collect();
                held.state.outputs.retain(|record| !missing.contains(&record.path));
                self.site.write_state(guard, held.state, held.version.as_ref())?;
            }
            Ok(repair)
        })
    }

    fn inspect(&self, held: &Held) -> Result<Repair> {
        let planned = BTreeSet::new();
        let sight = Sight { state: Some(&held.state), in_progress: &[], planned: &planned, keep: true };
        let mut survey = Survey::new(self.site.target.describe(), sight);
        self.site.target.list(Scope::Destination, &mut |entry| {
            self.site.world.cancel.check()?;
            survey.see(entry);
            Ok(())
        })?;
        let missing = held.records().filter(|record| !survey.is_present(&record.path));
        Ok(Repair {
            schema_version: held.state.schema_version,
            checked: held.records().count(),
            missing: missing.map(|record| record.path.clone()).collect(),
            unmanaged: survey.unmanaged_paths(),
        })
    }
}
