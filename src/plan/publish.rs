//! The plan of one publication.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Serialize, Serializer};

use super::decide::{Decision, Wanted, conflict};
use super::layout::{Staying, lay_out};
use super::survey::Survey;
use super::{Action, Reason, refuse};
use crate::config::TakeoverMode;
use crate::digest::Fingerprint;
use crate::error::Result;
use crate::journal::Operation;
use crate::path::{RawPath, RelPath};
use crate::state::{OutputRecord, Owner, State};
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
    /// The records of other owners, which stay.
    pub others: Vec<OutputRecord>,
    /// What stands in the way of a new output, by type or by case, and goes: deleted first.
    pub in_the_way: Vec<RawPath>,
    /// What the destination no longer has: deleted last, HTML before the rest.
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
    /// The outputs that other owners have recorded, and whose they are, where any of them may go or be overwritten.
    pub theirs: BTreeMap<RawPath, String>,
}

/// What a forced replacement takes away.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Forced {
    /// What nobody recorded, in byte order.
    pub unmanaged: Vec<RawPath>,
    /// Whose outputs go.
    pub owners: Vec<Outgoing>,
}

/// An owner whose outputs go.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Outgoing {
    /// The pipeline.
    pub pipeline_id: String,
    /// The destination of it.
    pub destination_id: String,
    /// How many outputs are recorded for it.
    pub outputs: usize,
}

impl Plan {
    /// Takes what the outputs turned out to be once they were made or copied, in their order.
    pub fn made(&mut self, contents: impl IntoIterator<Item = Fingerprint>) {
        for (planned, content) in self.outputs.iter_mut().zip(contents) {
            planned.output.content = content;
        }
    }

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
            let path = planned.output.path.clone();
            let Fingerprint { size, sha256 } = planned.output.content;
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
    let planned = survey.planned();
    let (own, others) = stand(wanted, old);
    let (taken, others): (Vec<_>, Vec<_>) = others.into_iter().partition(|record| planned.contains(&record.path));
    if let (Some(old), false) = (old, taken.is_empty()) {
        decision = take(wanted, decision, &taken, old, &outputs)?;
    }
    if decision.action != Action::ForceReplace {
        // Without a state nothing is recorded: then all of it is somebody else's.
        let some = old.is_some() && (wanted.is_shared() || wanted.merges(decision.action));
        match if some { refuse::blocking(survey) } else { refuse::unmanaged(survey, old.is_some()) } {
            Err(error) if wanted.force => decision = Decision::forced(error.code),
            refusal => refusal?,
        }
    }
    if decision.action == Action::ForceReplace {
        refuse::out_of_reach(survey)?;
        let plan = lay_out(decision, outputs, survey, Staying::default(), Some(forced(old, survey)));
        return Ok(Plan { theirs: theirs(wanted, old), ..plan });
    }
    refuse::managed_below(survey)?;
    let stays = |record: &&OutputRecord| {
        !planned.contains(&record.path) && survey.managed_above(record.path.as_str()).is_none()
    };
    let retained: Vec<&OutputRecord> =
        own.into_iter().filter(|_| wanted.merges(decision.action)).filter(stays).collect();
    refuse::collision(planned, &retained, &others, old)?;
    let staying =
        Staying { retained: retained.into_iter().cloned().collect(), others: others.into_iter().cloned().collect() };
    let theirs = if decision.action == Action::ReplaceTakeover { theirs(wanted, old) } else { BTreeMap::new() };
    Ok(Plan { theirs, ..lay_out(decision, outputs, survey, staying, None) })
}

/// The records that this publication may replace, and those of other owners. A single owner may replace them all, and
/// has been told so where they are another one's.
fn stand<'a>(wanted: &Wanted<'_>, old: Option<&'a State>) -> (Vec<&'a OutputRecord>, Vec<&'a OutputRecord>) {
    let Some(old) = old else { return (Vec::new(), Vec::new()) };
    let own = wanted.own(old);
    old.outputs.iter().partition(|record| !wanted.is_shared() || Some(record.owner) == own)
}

/// Paths that are planned and belong to others: taken over where that is configured.
fn take(
    wanted: &Wanted<'_>,
    decision: Decision,
    taken: &[&OutputRecord],
    old: &State,
    outputs: &Outputs,
) -> Result<Decision> {
    match (decision.action, wanted.destination.takeover) {
        (Action::ForceReplace | Action::ReplaceTakeover, TakeoverMode::Managed) | (Action::ForceReplace, _) => {
            Ok(decision)
        }
        (_, TakeoverMode::Managed) => Ok(Decision::take_over(Reason::OutputOwner)),
        _ => {
            let cure = "rename the file in one of the two bundles, publish outside of this root, or set takeover.mode: \
                        managed";
            conflict(wanted, refuse::owned(taken, old, outputs), cure)
        }
    }
}

fn forced(old: Option<&State>, survey: &Survey<'_>) -> Forced {
    let owners = old.into_iter().flat_map(|old| old.owners.iter().enumerate());
    let owner = |(at, owner): (usize, &Owner)| Outgoing {
        pipeline_id: owner.pipeline_id.clone(),
        destination_id: owner.destination_id.clone(),
        outputs: old.map_or(0, |old| old.outputs.iter().filter(|record| record.owner == at).count()),
    };
    Forced { unmanaged: survey.kept.keys().cloned().collect(), owners: owners.map(owner).collect() }
}

/// The outputs that other owners have recorded, and whose they are.
fn theirs(wanted: &Wanted<'_>, old: Option<&State>) -> BTreeMap<RawPath, String> {
    let own = old.and_then(|old| wanted.own(old));
    let theirs = old.into_iter().flat_map(|old| &old.outputs).filter(|record| Some(record.owner) != own);
    let whose = |record: &OutputRecord| Some(((&record.path).into(), old?.owners.get(record.owner)?.label()));
    theirs.filter_map(whose).collect()
}

/// What of a destination that is skipped as the same would be made otherwise today, in words; `None` where nothing would.
/// Records that are missing are no reason, as long as there are others of their kind.
pub fn difference(wanted: &Wanted<'_>, outputs: &Outputs, state: &State) -> Option<String> {
    let (own, _) = stand(wanted, Some(state));
    let kinds: BTreeSet<_> = own.iter().map(|record| record.kind).collect();
    let records: BTreeMap<&RelPath, &OutputRecord> = own.into_iter().map(|record| (&record.path, record)).collect();
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
    let Some(first) = changed.next().map(|output| &output.path) else {
        // A state of another make may record none.
        let recorded = state.owners.get(wanted.own(state)?)?.primary_url.as_ref()?;
        let stands = outputs.primary_url.as_ref();
        let differs = stands != Some(recorded) && !outputs.list.is_empty();
        let stands = stands.map_or("no output", String::as_str);
        return differs.then(|| format!("the configuration would now let {stands} stand for the bundle"));
    };
    Some(match changed.count() {
        0 => format!("the configuration would now make the output {first} otherwise"),
        more => format!("the configuration would now make {} outputs otherwise, first {first}", more + 1),
    })
}
