//! The plan of one publication.

use std::collections::BTreeSet;

use serde::Serialize;

use super::decide::{Decision, Wanted};
use super::survey::Survey;
use crate::error::{Code, Detail, Error, Result};
use crate::journal::Operation;
use crate::path::{self, RelPath};
use crate::state::{OutputRecord, State};
use crate::timestamp::Timestamp;
use crate::transform::{Output, Outputs};

/// What happens to an output's path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// Nothing is there yet.
    Create,
    /// A recorded output is there.
    Overwrite,
}

/// An output and what happens to its path.
#[derive(Clone, Debug)]
pub struct Planned {
    /// The output.
    pub output: Output,
    /// What happens to its path.
    pub change: Change,
}

/// What a publication does, in the order it is done.
#[derive(Debug)]
pub struct Plan {
    /// The table's decision.
    pub decision: Decision,
    /// The outputs, in the order in which they become visible: assets, then HTML, the primary one last.
    pub outputs: Vec<Planned>,
    /// Recorded outputs that stand in the way of a new one, by type or by case: deleted first.
    pub in_the_way: Vec<RelPath>,
    /// Recorded outputs that the bundle no longer has: deleted last.
    pub dropped: Vec<RelPath>,
    /// Directories that stand where an output will be, the deepest first; they are empty once `in_the_way` is gone.
    pub clear_dirs: Vec<String>,
    /// Directories that the outputs need, parents first.
    pub make_dirs: Vec<String>,
    /// Directories that deletes may have emptied, the deepest first.
    pub emptied: Vec<String>,
    /// The public URL to start reading at.
    pub primary_url: Option<String>,
}

impl Plan {
    /// Every path that is deleted, in byte order.
    pub fn deleted(&self) -> Vec<&RelPath> {
        let mut all: Vec<&RelPath> = self.in_the_way.iter().chain(&self.dropped).collect();
        all.sort_unstable();
        all
    }

    /// What is done after the commit point, in this order; output number `n` is job `n` of the stage.
    pub fn operations(&self) -> Vec<Operation> {
        let remove = |path: &RelPath| Operation::Remove { path: path.clone() };
        let remove_dir = |path: &String| Operation::RemoveDir { path: path.clone() };
        let write = |(job, planned): (usize, &Planned)| {
            let Output { path, sha256, size, .. } = &planned.output;
            let (path, sha256, size) = (path.clone(), *sha256, *size);
            match planned.change {
                Change::Create => Operation::Create { path, job, sha256, size },
                Change::Overwrite => Operation::Replace { path, job, sha256, size },
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

    /// The state that stands once the plan is carried out at `now`.
    pub fn state(&self, wanted: &Wanted<'_>, old: Option<&State>, now: &Timestamp) -> State {
        let records = old.map(State::by_path).unwrap_or_default();
        let mut outputs: Vec<OutputRecord> = self
            .outputs
            .iter()
            .map(|planned| {
                let created = records.get(&planned.output.path).map_or(now, |record| &record.created_at);
                record(&planned.output, created.clone(), now.clone())
            })
            .collect();
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

/// Plans a publication that `decision` asks for. Fails with `unmanaged_content` where anything lies at the destination
/// that `state` does not record.
pub fn plan(decision: Decision, outputs: Outputs, state: Option<&State>, survey: &Survey<'_>) -> Result<Plan> {
    refuse_unmanaged(survey)?;
    let planned: BTreeSet<RelPath> = outputs.list.iter().map(|output| output.path.clone()).collect();
    refuse_managed_below(&planned, survey)?;
    let recorded = state.into_iter().flat_map(|state| &state.outputs).map(|record| &record.path);
    let gone: Vec<RelPath> = recorded.filter(|path| !planned.contains(*path)).cloned().collect();
    let collides = colliding(&planned);
    let (in_the_way, dropped): (Vec<_>, Vec<_>) = gone.into_iter().partition(|path| collides(path));
    // Where a directory gives way to an output it is gone before that output comes.
    let emptied = above(in_the_way.iter().chain(&dropped)).into_iter().filter(|dir| !within(dir, &planned)).collect();
    let clear_dirs = survey.directories.iter().filter(|dir| within(dir, &planned)).rev().cloned().collect();
    Ok(Plan {
        make_dirs: above(planned.iter()).into_iter().rev().filter(|dir| !survey.directories.contains(dir)).collect(),
        primary_url: outputs.primary_url.clone(),
        outputs: in_order(outputs, survey),
        decision,
        in_the_way,
        dropped,
        clear_dirs,
        emptied,
    })
}

fn refuse_unmanaged(survey: &Survey<'_>) -> Result<()> {
    let (count, first) = survey.unmanaged();
    let first: Vec<&str> = first.collect();
    let Some(name) = first.first() else { return Ok(()) };
    let entries = if count == 1 { "1 entry".to_owned() } else { format!("{count} entries") };
    let detail = |path: &&str| Detail {
        code: Code::UnmanagedContent,
        message: format!("{path}: not recorded in the state"),
        path: Some((*path).to_owned()),
    };
    Err(Error::new(Code::UnmanagedContent, format!("{entries} that distributor does not manage, first {name}"))
        .hint("move it aside, or choose another path")
        .detail(first.iter().map(detail).collect()))
}

fn refuse_managed_below(planned: &BTreeSet<RelPath>, survey: &Survey<'_>) -> Result<()> {
    let managed: BTreeSet<&str> = survey.managed.iter().map(String::as_str).collect();
    let owner = |path: &RelPath| {
        std::iter::once(path.as_str()).chain(path.ancestors()).find_map(|dir| managed.get(dir).copied())
    };
    match planned.iter().find_map(|path| Some((path, owner(path)?))) {
        None => Ok(()),
        Some((path, dir)) => {
            let message = format!("{path}: the directory {dir} is a destination of its own, with its own state");
            Err(Error::new(Code::PathOwnedByOther, message).hint("choose another path for one of the two"))
        }
    }
}

/// Whether a recorded path has to go before the planned ones can come: it is a directory of one, lies below one, or is
/// one where case does not count.
fn colliding(planned: &BTreeSet<RelPath>) -> impl Fn(&RelPath) -> bool {
    let folded: BTreeSet<String> = planned.iter().map(|path| path::fold(path.as_str())).collect();
    let directories: BTreeSet<String> =
        folded.iter().flat_map(|path| path::ancestors(path)).map(ToOwned::to_owned).collect();
    move |path| {
        let name = path::fold(path.as_str());
        folded.contains(&name)
            || directories.contains(&name)
            || path::ancestors(&name).any(|above| folded.contains(above))
    }
}

/// Whether a directory is, or lies below, a path where an output will be.
fn within(dir: &str, planned: &BTreeSet<RelPath>) -> bool {
    planned.contains(dir) || path::ancestors(dir).any(|above| planned.contains(above))
}

/// The directories above `paths`, each once, the deepest first.
fn above<'a>(paths: impl Iterator<Item = &'a RelPath>) -> Vec<String> {
    let all: BTreeSet<&str> = paths.flat_map(RelPath::ancestors).collect();
    all.into_iter().rev().map(ToOwned::to_owned).collect()
}

fn in_order(outputs: Outputs, survey: &Survey<'_>) -> Vec<Planned> {
    let primary = outputs.primary;
    let mut planned: Vec<Planned> = outputs
        .list
        .into_iter()
        .map(|output| {
            let there = survey.present.contains(&output.path);
            Planned { change: if there { Change::Overwrite } else { Change::Create }, output }
        })
        .collect();
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
