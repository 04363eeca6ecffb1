//! The plan of one publication.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Serialize, Serializer};

use super::decide::{Decision, Wanted};
use super::survey::{Survey, within};
use super::{Action, refuse};
use crate::config::Reconciliation;
use crate::error::Result;
use crate::journal::Operation;
use crate::path::{self, RawPath, RelPath};
use crate::state::{OutputRecord, State};
use crate::timestamp::Timestamp;
use crate::transform::{Output, Outputs};

/// What happens to an output's path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Nothing is there yet.
    Create,
    /// A file is there, and is replaced.
    Overwrite,
    /// It was published before, is not part of the bundle any more, and stays.
    Retain,
}

impl Change {
    /// The name that stands in reports.
    pub const fn as_str(self) -> &'static str {
        match self {
            Change::Create => "create",
            Change::Overwrite => "overwrite",
            Change::Retain => "retain",
        }
    }
}

impl Serialize for Change {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// An output that is written.
#[derive(Clone, Debug)]
pub struct Planned {
    /// The output.
    pub output: Output,
    /// Whether a file of its name is there, and is replaced.
    pub replaces: bool,
}

/// What a publication does, in the order it is done.
#[derive(Debug)]
pub struct Plan {
    /// The table's decision.
    pub decision: Decision,
    /// The outputs, in the order in which they become visible: assets, then HTML, the primary one last.
    pub outputs: Vec<Planned>,
    /// The records of outputs that stay and are not written.
    pub retained: Vec<OutputRecord>,
    /// What stands in the way of a new output, by type or by case, and goes: deleted first.
    pub in_the_way: Vec<RawPath>,
    /// What the destination no longer has: deleted last.
    pub dropped: Vec<RawPath>,
    /// Directories that stand where an output will be, the deepest first; they are empty once `in_the_way` is gone.
    pub clear_dirs: Vec<RawPath>,
    /// Directories that the outputs need, parents first.
    pub make_dirs: Vec<String>,
    /// Directories that deletes may have emptied, the deepest first.
    pub emptied: Vec<RawPath>,
    /// The public URL to start reading at.
    pub primary_url: Option<String>,
    /// What a forced replacement takes away, and whose it is.
    pub force: Option<Forced>,
}

/// What a forced replacement takes away.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Forced {
    /// What nobody recorded, in byte order.
    pub unmanaged: Vec<RawPath>,
    /// Whose outputs go.
    pub owners: Vec<Owner>,
}

/// An owner at a destination.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Owner {
    /// The pipeline.
    pub pipeline_id: String,
    /// The destination of it.
    pub destination_id: String,
    /// How many outputs are recorded for it.
    pub outputs: usize,
}

impl Plan {
    /// Every path that is deleted, in byte order.
    pub fn deleted(&self) -> Vec<&RawPath> {
        let mut all: Vec<&RawPath> = self.in_the_way.iter().chain(&self.dropped).collect();
        all.sort_unstable();
        all
    }

    /// What is done after the commit point, in this order; output number `n` is job `n` of the stage.
    pub fn operations(&self) -> Vec<Operation> {
        let remove = |path: &RawPath| Operation::Remove { path: path.clone() };
        let remove_dir = |path: &RawPath| Operation::RemoveDir { path: path.clone() };
        let write = |(job, planned): (usize, &Planned)| {
            let Output { path, sha256, size, .. } = &planned.output;
            let (path, sha256, size) = (path.clone(), *sha256, *size);
            if planned.replaces {
                Operation::Replace { path, job, sha256, size }
            } else {
                Operation::Create { path, job, sha256, size }
            }
        };
        let mut operations: Vec<Operation> = self.in_the_way.iter().map(remove).collect();
        operations.extend(self.clear_dirs.iter().map(remove_dir));
        operations.extend(self.make_dirs.iter().map(|path| Operation::MakeDir { path: path.clone() }));
        operations.extend(self.outputs.iter().enumerate().map(write));
        operations.extend(self.dropped.iter().map(remove));
        operations.extend(self.emptied.iter().map(remove_dir));
        operations
    }

    /// The state that stands once the plan is carried out at `now`. A forced replacement starts a new one.
    pub fn state(&self, wanted: &Wanted<'_>, old: Option<&State>, now: &Timestamp) -> State {
        let old = old.filter(|_| self.force.is_none());
        let records = old.map(State::by_path).unwrap_or_default();
        let written = self.outputs.iter().map(|planned| {
            let created = records.get(&planned.output.path).map_or(now, |record| &record.created_at);
            record(&planned.output, created.clone(), now.clone())
        });
        let mut outputs: Vec<OutputRecord> = written.chain(self.retained.iter().cloned()).collect();
        outputs.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        State {
            distributor_version: Some(env!("CARGO_PKG_VERSION").to_owned()),
            pipeline_id: wanted.pipeline_id.to_owned(),
            destination_id: wanted.destination.id.clone(),
            published_at: now.clone(),
            created_at: old.map_or(now, |state| &state.created_at).clone(),
            updated_at: now.clone(),
            reconciliation: wanted.destination.reconciliation.as_str().to_owned(),
            manifest: wanted.manifest.clone(),
            primary_url: self.primary_url.clone(),
            outputs,
        }
    }
}

fn record(output: &Output, created_at: Timestamp, updated_at: Timestamp) -> OutputRecord {
    OutputRecord {
        path: output.path.clone(),
        kind: output.kind,
        source_path: output.source_path.clone(),
        transform: output.transform.map(ToOwned::to_owned),
        url: output.url.clone(),
        sha256: output.sha256,
        size: output.size,
        created_at,
        updated_at,
    }
}

/// The paths of outputs.
pub fn paths(outputs: &Outputs) -> BTreeSet<RelPath> {
    outputs.list.iter().map(|output| output.path.clone()).collect()
}

/// Plans a publication that `decision` asks for. `survey` has seen what lies at the destination, whose state is `old`.
/// Where something stands against it that is nobody's, it fails, or becomes a forced replacement.
pub fn plan(
    wanted: &Wanted<'_>,
    mut decision: Decision,
    outputs: Outputs,
    old: Option<&State>,
    survey: &Survey<'_>,
) -> Result<Plan> {
    let merges = |decision: &Decision| {
        wanted.destination.reconciliation == Reconciliation::Merge
            && matches!(decision.action, Action::ReplaceOlder | Action::Republish)
    };
    if decision.action != Action::ForceReplace {
        let refusal = if merges(&decision) { refuse::blocking(survey) } else { refuse::unmanaged(survey) };
        match refusal {
            Err(error) if wanted.force => decision = Decision::forced(error.code),
            refusal => refusal?,
        }
    }
    let force = decision.action == Action::ForceReplace;
    if force {
        refuse::out_of_reach(survey)?;
    }
    refuse::managed_below(survey)?;
    let mut retained = Vec::new();
    if merges(&decision) {
        let stays = |record: &&OutputRecord| {
            !survey.planned().contains(&record.path) && survey.managed_above(record.path.as_str()).is_none()
        };
        retained = old.into_iter().flat_map(|state| &state.outputs).filter(stays).cloned().collect();
        refuse::collision(survey.planned(), &retained)?;
    }
    Ok(lay_out(decision, outputs, retained, survey, force.then(|| forced(old, survey))))
}

fn forced(old: Option<&State>, survey: &Survey<'_>) -> Forced {
    let owner = |state: &State| Owner {
        pipeline_id: state.pipeline_id.clone(),
        destination_id: state.destination_id.clone(),
        outputs: state.outputs.len(),
    };
    Forced { unmanaged: survey.kept.keys().cloned().collect(), owners: old.map(owner).into_iter().collect() }
}

/// Puts what is written and what goes in the order in which it is done.
fn lay_out(
    decision: Decision,
    outputs: Outputs,
    retained: Vec<OutputRecord>,
    survey: &Survey<'_>,
    force: Option<Forced>,
) -> Plan {
    let planned = survey.planned();
    // What is recorded and not there needs no deleting; what lies in a directory with a state of its own is not ours any
    // more, whatever was recorded before. By path, with whether it is a regular file.
    let mut there: BTreeMap<RawPath, bool> = survey.present.iter().map(|path| (path.into(), true)).collect();
    if force.is_some() {
        there.extend(survey.kept.iter().map(|(raw, path)| (raw.clone(), path.is_some())));
    }
    for record in &retained {
        there.remove(&RawPath::from(&record.path));
    }
    let replaced = |output: &Output| there.get(&RawPath::from(&output.path)).copied().unwrap_or_default();
    let stays = |path: &RawPath, regular: bool| regular && is_planned(planned, path);
    let gone = there.iter().filter(|(path, regular)| !stays(path, **regular)).map(|(path, _)| path.clone());
    let collides = colliding(planned);
    let (in_the_way, dropped): (Vec<_>, Vec<_>) = gone.partition(|path| collides(path));
    let clear_dirs: Vec<RawPath> =
        survey.directories.iter().filter(|dir| within(dir, planned)).rev().cloned().collect();
    // Where a directory gives way to an output it is gone before that output comes.
    let emptied = if force.is_some() {
        let goes = |dir: &&RawPath| !within(dir, planned) && !survey.is_needed(dir);
        survey.directories.iter().filter(goes).rev().cloned().collect()
    } else {
        let above: BTreeSet<&[u8]> = in_the_way.iter().chain(&dropped).flat_map(RawPath::ancestors).collect();
        above.into_iter().rev().map(|dir| dir.to_vec().into()).filter(|dir| !within(dir, planned)).collect()
    };
    let needed: BTreeSet<&str> = planned.iter().flat_map(RelPath::ancestors).collect();
    let missing = needed.into_iter().filter(|dir| !survey.directories.contains(&RawPath::from(*dir)));
    Plan {
        make_dirs: missing.map(ToOwned::to_owned).collect(),
        primary_url: outputs.primary_url.clone(),
        outputs: in_order(outputs, replaced),
        decision,
        retained,
        in_the_way,
        dropped,
        clear_dirs,
        emptied,
        force,
    }
}

fn is_planned(planned: &BTreeSet<RelPath>, path: &RawPath) -> bool {
    std::str::from_utf8(path.as_bytes()).is_ok_and(|path| planned.contains(path))
}

/// Whether a path that goes has to go before the planned ones can come: it is one of them and no file, is a directory of
/// one, lies below one, or is one where case does not count.
pub(super) fn colliding(planned: &BTreeSet<RelPath>) -> impl Fn(&RawPath) -> bool {
    let folded: BTreeSet<String> = planned.iter().map(|path| path::fold(path.as_str())).collect();
    let directories: BTreeSet<String> =
        folded.iter().flat_map(|path| path::ancestors(path)).map(ToOwned::to_owned).collect();
    move |path| {
        let name = path::fold(&String::from_utf8_lossy(path.as_bytes()));
        folded.contains(&name)
            || directories.contains(&name)
            || path::ancestors(&name).any(|above| folded.contains(above))
    }
}

fn in_order(outputs: Outputs, replaced: impl Fn(&Output) -> bool) -> Vec<Planned> {
    let primary = outputs.primary;
    let mut planned: Vec<Planned> =
        outputs.list.into_iter().map(|output| Planned { replaces: replaced(&output), output }).collect();
    let is_html = |path: &RelPath| {
        let extension = path.file_name().rsplit_once('.').map(|(_, extension)| extension);
        extension.is_some_and(|e| e.eq_ignore_ascii_case("html") || e.eq_ignore_ascii_case("htm"))
    };
    planned.sort_by(|a, b| {
        let rank = |p: &Planned| (primary.as_ref() == Some(&p.output.path), is_html(&p.output.path));
        rank(a).cmp(&rank(b)).then_with(|| a.output.path.cmp(&b.output.path))
    });
    planned
}

/// What of a destination that is skipped as the same would be made otherwise today, in words; `None` where nothing would.
/// Records that are missing are no reason, as long as there are others of their kind.
pub fn difference(outputs: &Outputs, state: &State) -> Option<String> {
    let records = state.by_path();
    let kinds: BTreeSet<_> = state.outputs.iter().map(|record| record.kind).collect();
    let differs = |output: &&Output| match records.get(&output.path) {
        Some(record) => {
            record.kind != output.kind
                || record.source_path != output.source_path
                || record.transform.as_deref() != output.transform
                || record.url != output.url
        }
        None => !kinds.is_empty() && !kinds.contains(&output.kind),
    };
    let mut changed = outputs.list.iter().filter(differs);
    let first = &changed.next()?.path;
    Some(match changed.count() {
        0 => format!("the configuration would now make the output {first} otherwise"),
        more => format!("the configuration would now make {} outputs otherwise, first {first}", more + 1),
    })
}
