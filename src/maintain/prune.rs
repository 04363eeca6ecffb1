//! Retention: outputs that have served their time.

use super::Upkeep;
use crate::error::{Error, Result, Warning};
use crate::journal::{Begin, Journal, Kind};
use crate::path::RelPath;
use crate::plan::{Pruned, prune};

/// What pruning found, and did.
#[derive(Debug)]
pub struct Pruning {
    /// The outputs that the policy lets go.
    pub planned: Vec<Pruned>,
    /// Those that are gone.
    pub deleted: Vec<RelPath>,
    /// Those that could not be deleted, and why.
    pub failed: Vec<(RelPath, Error)>,
    /// How many outputs the policy keeps.
    pub kept: usize,
}

impl Upkeep<'_> {
    /// Finds the outputs that the policy lets go; without `dry_run` it deletes them and drops their records. The record of
    /// one that could not be deleted stays.
    pub fn prune(&self, dry_run: bool, warnings: &mut Vec<Warning>) -> Result<Pruning> {
        let now = (self.site.world.now)();
        let policy = &self.destination.retention.prune;
        let plan = |held: &super::Held| {
            let planned = prune(held.records(), policy, &now);
            let kept = held.records().count() - planned.len();
            Pruning { planned, deleted: Vec::new(), failed: Vec::new(), kept }
        };
        if dry_run {
            return self.look(warnings, |held| Ok(plan(held)));
        }
        self.work(warnings, |guard, held| {
            let pruning = plan(&held);
            if pruning.planned.is_empty() {
                return Ok(pruning);
            }
            self.site.world.cancel.check()?;
            let paths: Vec<RelPath> = pruning.planned.iter().map(|pruned| pruned.path.clone()).collect();
            let deletes = self.site.delete(guard, self.begin(&held), &paths, (held.state, held.version.as_ref()))?;
            Ok(Pruning { deleted: deletes.deleted, failed: deletes.failed, ..pruning })
        })
    }

    fn begin(&self, held: &super::Held) -> Journal {
        let source = held.owner.and_then(|owner| held.state.owners.get(owner)).map(|owner| &owner.manifest);
        Journal::begin(Begin {
            kind: Kind::Prune,
            pipeline_id: self.pipeline_id,
            destination_id: &self.destination.id,
            source_id: source.map_or("", |manifest| &manifest.id),
            source_digest: source.map_or_else(|| crate::digest::Digest::of(b""), |manifest| manifest.digest),
            started_at: (self.site.world.now)(),
            holder: self.site.world.holder.clone(),
            stage: &(self.site.world.token)(),
            dirty: false,
        })
    }
}
