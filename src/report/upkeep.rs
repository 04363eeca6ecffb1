//! What distributor-reconcile-state and distributor-prune report.

use std::time::Duration;

use serde::Serialize;

use super::text::{Text, count, list, size};
use super::{Failure, Problem};
use crate::config::Prune;
use crate::maintain::{Pruning, Repair};
use crate::path::{RawPath, escape};
use crate::timestamp::Timestamp;

/// Which destination it is about.
#[derive(Debug, Serialize)]
pub struct Place {
    /// The pipeline.
    pub pipeline_id: String,
    /// The destination.
    pub destination_id: String,
    /// Its kind of storage.
    pub backend: &'static str,
    /// Its root; none where this version can't work there.
    pub root: Option<String>,
    /// The bundle path below the root.
    pub bundle_path: String,
}

impl Place {
    /// Pipeline and destination, as messages name them.
    pub fn label(&self) -> String {
        format!("{}/{}", self.pipeline_id, self.destination_id)
    }
}

/// What distributor-reconcile-state found and did.
#[derive(Debug, Serialize)]
pub struct RepairBody {
    /// Why it failed, where it did.
    pub error: Option<Failure>,
    /// The destination.
    #[serde(flatten)]
    pub place: Place,
    /// The schema version of the state that was read.
    pub state_schema_version: Option<u64>,
    /// `owner` or `all_owners`.
    pub scope: &'static str,
    /// How many records were looked at.
    pub checked: usize,
    /// The recorded outputs that are not there.
    pub missing: Vec<String>,
    /// What is there and nobody recorded.
    pub unmanaged: Vec<String>,
    /// Whether the state was changed; in a dry run, whether it would be.
    pub changed: bool,
    #[serde(skip)]
    dry_run: bool,
}

impl RepairBody {
    /// A report of nothing yet.
    pub fn new(place: Place, scope: &'static str, dry_run: bool) -> RepairBody {
        RepairBody {
            error: None,
            place,
            state_schema_version: None,
            scope,
            checked: 0,
            missing: Vec::new(),
            unmanaged: Vec::new(),
            changed: false,
            dry_run,
        }
    }

    /// Takes what was found.
    pub fn take(&mut self, repair: &Repair) {
        self.state_schema_version = Some(repair.schema_version);
        self.checked = repair.checked;
        self.changed = !repair.missing.is_empty();
        self.missing = repair.missing.iter().map(ToString::to_string).collect();
        self.unmanaged = repair.unmanaged.iter().map(RawPath::text).collect();
    }
}

impl Text for RepairBody {
    fn text(&self, out: &mut String, verbose: bool) {
        if self.error.is_some() {
            return;
        }
        *out += &format!(
            "{}  {}  {} checked, {} missing, {} not managed\n",
            self.place.label(),
            self.place.bundle_path,
            count(self.checked, "record"),
            self.missing.len(),
            self.unmanaged.len()
        );
        let line = |what: &str, path: &String| format!("{what:11}  {}", escape(path.as_bytes()));
        list(out, self.missing.iter().map(|path| line("missing", path)).collect(), verbose);
        list(out, self.unmanaged.iter().map(|path| line("not managed", path)).collect(), verbose);
        *out += match (self.changed, self.dry_run) {
            (true, true) => "nothing was written; without --dry-run the records of what is missing are dropped\n",
            (true, false) => {
                "their records were dropped; distributor-run --republish brings back what the bundle still has\n"
            }
            (false, _) => "there is nothing to do\n",
        };
    }
}

/// A retention policy.
#[derive(Debug, Serialize)]
pub struct Policy {
    /// Outputs older than this go.
    pub older_than: Option<String>,
    /// The newest ones that stay in any case.
    pub keep_latest: Option<u64>,
}

/// An output that is to be pruned.
#[derive(Debug, Serialize)]
pub struct PrunedLine {
    /// Its path.
    pub path: String,
    /// When it was last written.
    pub updated_at: Timestamp,
    /// How many bytes it has.
    pub size: u64,
    /// Why it goes.
    pub reason: &'static str,
}

/// What distributor-prune found and did.
#[derive(Debug, Serialize)]
pub struct PruneBody {
    /// Why it failed, where it did.
    pub error: Option<Failure>,
    /// The destination.
    #[serde(flatten)]
    pub place: Place,
    /// The configured policy.
    pub policy: Policy,
    /// The outputs that the policy lets go.
    pub planned: Vec<PrunedLine>,
    /// Those that are gone.
    pub deleted: Vec<String>,
    /// Those that could not be deleted.
    pub failed: Vec<Problem>,
    /// How many outputs are kept.
    pub kept: usize,
    /// Whether anything was changed; in a dry run, whether it would be.
    pub changed: bool,
    #[serde(skip)]
    dry_run: bool,
}

impl PruneBody {
    /// A report of nothing yet.
    pub fn new(place: Place, policy: Prune, dry_run: bool) -> PruneBody {
        PruneBody {
            error: None,
            place,
            policy: Policy { older_than: policy.older_than.map(written), keep_latest: policy.keep_latest },
            planned: Vec::new(),
            deleted: Vec::new(),
            failed: Vec::new(),
            kept: 0,
            changed: false,
            dry_run,
        }
    }

    /// Takes what was found and done.
    pub fn take(&mut self, pruning: Pruning) {
        self.changed = if self.dry_run { !pruning.planned.is_empty() } else { !pruning.deleted.is_empty() };
        self.kept = pruning.kept;
        self.deleted = pruning.deleted.iter().map(ToString::to_string).collect();
        let line = |pruned: crate::plan::Pruned| PrunedLine {
            path: pruned.path.to_string(),
            updated_at: pruned.updated_at,
            size: pruned.size,
            reason: pruned.reason.as_str(),
        };
        self.planned = pruning.planned.into_iter().map(line).collect();
        self.failed = pruning.failed.iter().map(|(path, error)| Problem::of(path, error)).collect();
    }
}

impl Text for PruneBody {
    fn text(&self, out: &mut String, verbose: bool) {
        if self.error.is_some() && self.failed.is_empty() {
            return;
        }
        let bytes = self.planned.iter().map(|line| line.size).sum();
        *out += &format!(
            "{}  {}  {} to prune, {}; {} kept\n",
            self.place.label(),
            self.place.bundle_path,
            count(self.planned.len(), "output"),
            size(bytes),
            self.kept
        );
        let line = |line: &PrunedLine| format!("delete  {}  {}  {}", line.updated_at, line.path, line.reason);
        list(out, self.planned.iter().map(line).collect(), verbose);
        match (self.planned.is_empty(), self.dry_run) {
            (true, _) => *out += "there is nothing to do\n",
            (false, true) => *out += "nothing was deleted; to delete them say --apply instead of --dry-run\n",
            (false, false) => *out += &format!("{} deleted, {} failed\n", self.deleted.len(), self.failed.len()),
        }
    }
}

/// A duration as configurations have it, in its largest whole unit.
fn written(duration: Duration) -> String {
    const UNITS: [(u64, char); 4] = [(7 * 86_400, 'w'), (86_400, 'd'), (3_600, 'h'), (60, 'm')];
    let seconds = duration.as_secs();
    let whole = UNITS.iter().find(|(unit, _)| seconds > 0 && seconds.is_multiple_of(*unit));
    whole.map_or_else(|| format!("{seconds}s"), |(unit, letter)| format!("{}{letter}", seconds / unit))
}
