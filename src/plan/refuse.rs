//! What stands against a plan, found before anything is written.

use std::collections::BTreeSet;

use super::survey::{Found, Survey};
use crate::error::{Code, Detail, Error, Result};
use crate::path::{self, RelPath};
use crate::state::{OutputKind, OutputRecord, Owner, State};
use crate::transform::Outputs;

/// Content that nobody recorded, where all must be recorded. Beside a state it may stay if the destination merges.
pub(super) fn unmanaged(survey: &Survey<'_>, has_state: bool) -> Result<()> {
    let message = |entries: &str, first: &str| {
        format!("{entries} that distributor does not manage, first {first}, at {}", survey.place())
    };
    found(&survey.unmanaged, Code::UnmanagedContent, message, has_state)
}

/// Content that nobody recorded, where an output is to be.
pub(super) fn blocking(survey: &Survey<'_>) -> Result<()> {
    let message = |entries: &str, first: &str| {
        format!(
            "{entries} that distributor does not manage in the way of outputs, first {first}, at {}",
            survey.place()
        )
    };
    found(&survey.blocking, Code::UnmanagedPath, message, false)
}

fn found(found: &Found, code: Code, message: impl Fn(&str, &str) -> String, may_stay: bool) -> Result<()> {
    let Some(first) = found.first.first() else { return Ok(()) };
    let (entries, them) =
        if found.count == 1 { ("1 entry".to_owned(), "it") } else { (format!("{} entries", found.count), "them") };
    let stay = if may_stay { format!(" let {them} stay with reconciliation.mode: merge,") } else { String::new() };
    let hint = format!("move {them} aside,{stay} choose another path, or preview with --dry-run --force");
    let detail = |path: &String| Detail::new(code, format!("{path}: not recorded in the state"), Some(path.clone()));
    Err(Error::new(code, message(&entries, first)).hint(hint).detail(found.first.iter().map(detail).collect()))
}

/// What a forced replacement never takes away.
pub(super) fn out_of_reach(survey: &Survey<'_>) -> Result<()> {
    if let Some(dir) = survey.managed.first() {
        let message = format!("{dir}: a destination with its own state lies below {}", survey.place());
        return Err(Error::new(Code::ManagedBelow, message).hint("move it aside first, or choose another path"));
    }
    match survey.closed.first() {
        None => Ok(()),
        Some(dir) => {
            let message = format!("{dir}: a directory on another file system, or too deep, below {}", survey.place());
            Err(Error::new(Code::UnmanagedContent, message).hint("unmount it, or move it aside, first"))
        }
    }
}

/// Outputs in, at or above a directory that is managed by itself.
pub(super) fn managed_below(survey: &Survey<'_>) -> Result<()> {
    let planned = survey.planned();
    if let Some((path, dir)) = planned.iter().find_map(|path| Some((path, survey.managed_above(path.as_str())?))) {
        let message = format!("{path}: the directory {dir} is a destination of its own, with its own state");
        return Err(Error::new(Code::PathOwnedByOther, message).hint("choose another path for one of the two"));
    }
    let above = |dir: &str| path::ancestors(dir).find_map(|above| planned.get(above));
    match survey.managed.iter().find_map(|dir| Some((above(dir)?, dir))) {
        None => Ok(()),
        Some((path, dir)) => {
            let message = format!("{path}: it is a directory above {dir}, which is a destination of its own");
            Err(Error::new(Code::OutputCollision, message).hint("choose another path for one of the two"))
        }
    }
}

/// Outputs that are a directory of one that stays, or the other way round: of a retained one, or of another owner's.
pub(super) fn collision(
    planned: &BTreeSet<RelPath>,
    retained: &[&OutputRecord],
    others: &[&OutputRecord],
    old: Option<&State>,
) -> Result<()> {
    let staying = retained.iter().chain(others).map(|record| record.path.as_str());
    let both: BTreeSet<&str> = planned.iter().map(RelPath::as_str).chain(staying).collect();
    let all: Vec<&str> = both.into_iter().collect();
    let clashes = path::nested(&all);
    let Some(clash) = clashes.first() else { return Ok(()) };
    let (new, kept) =
        if planned.contains(clash.first) { (clash.first, clash.second) } else { (clash.second, clash.first) };
    let other = others.iter().find(|record| record.path.as_str() == kept);
    let owner = other.and_then(|record| old?.owners.get(record.owner)).map(Owner::label);
    let (whose, hint) = match owner {
        Some(owner) => {
            (format!("output {kept} of {owner}"), "rename one of the two in its source, or choose another path")
        }
        None => (
            format!("retained output {kept}"),
            "set reconciliation.mode: replace, or rename one of the two in the source",
        ),
    };
    let message = format!("{new}: the {whose} can't stand beside it: one is a directory of the other");
    Err(Error::new(Code::OutputCollision, message).hint(hint))
}

/// Outputs whose paths belong to other owners. Of a page the file is named that it would be made of: the bundle has no
/// other one to rename.
pub(super) fn owned(taken: &[&OutputRecord], old: &State, outputs: &Outputs) -> Error {
    let owner = |record: &OutputRecord| old.owners.get(record.owner).map_or(String::new(), Owner::label);
    let output =
        |path: &RelPath| outputs.list.binary_search_by(|output| output.path.cmp(path)).map(|at| &outputs.list[at]);
    let lines = taken.iter().map(|record| {
        let made = match output(&record.path) {
            Ok(output) if output.kind == OutputKind::Generated => format!(" (the page of {})", output.source_path),
            _ => String::new(),
        };
        let message = format!("{}{made}: belongs to {}", record.path, owner(record));
        Detail::new(Code::PathOwnedByOther, message, Some(record.path.to_string()))
    });
    Error::of(Code::PathOwnedByOther, lines.collect())
}
