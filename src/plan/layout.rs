//! The order of a publication: what goes, what is written, and when.

use std::collections::{BTreeMap, BTreeSet};

use super::decide::Decision;
use super::publish::{Forced, Plan, Planned};
use super::survey::{Survey, within};
use crate::path::{self, RawPath, RelPath};
use crate::state::OutputRecord;
use crate::transform::{Output, Outputs};

/// The records that stay and are not written: this owner's, and others'.
#[derive(Default)]
pub(super) struct Staying {
    pub(super) retained: Vec<OutputRecord>,
    pub(super) others: Vec<OutputRecord>,
}

/// Puts what is written and what goes in the order in which it is done.
pub(super) fn lay_out(
    decision: Decision,
    outputs: Outputs,
    survey: &Survey<'_>,
    staying: Staying,
    force: Option<Forced>,
) -> Plan {
    let planned = survey.planned();
    // What is recorded and not there needs no deleting; what lies in a directory with a state of its own is not ours any
    // more, whatever was recorded before. By path, with whether it is a regular file.
    let mut there: BTreeMap<RawPath, bool> = survey.present.iter().map(|path| (path.into(), true)).collect();
    if force.is_some() {
        there.extend(survey.kept.iter().map(|(raw, path)| (raw.clone(), path.is_some())));
    }
    for record in staying.retained.iter().chain(&staying.others) {
        there.remove(&RawPath::from(&record.path));
    }
    let replaced = |output: &Output| there.get(&RawPath::from(&output.path)).copied().unwrap_or_default();
    let stays = |path: &RawPath, regular: bool| regular && is_planned(planned, path);
    let gone = there.iter().filter(|(path, regular)| !stays(path, **regular)).map(|(path, _)| path.clone());
    let collides = colliding(planned);
    let (in_the_way, mut dropped): (Vec<_>, Vec<_>) = gone.partition(|path| collides(path));
    // As pages come after their assets, they go before them.
    dropped.sort_by_key(|path| !is_html(path.file_name()));
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
        retained: staying.retained,
        others: staying.others,
        in_the_way,
        dropped,
        clear_dirs,
        emptied,
        force,
        theirs: BTreeMap::new(),
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
    planned.sort_by(|a, b| {
        let rank =
            |p: &Planned| (primary.as_ref() == Some(&p.output.path), is_html(p.output.path.file_name().as_bytes()));
        rank(a).cmp(&rank(b)).then_with(|| a.output.path.cmp(&b.output.path))
    });
    planned
}

fn is_html(file_name: &[u8]) -> bool {
    let dot = file_name.iter().rposition(|byte| *byte == b'.');
    let extension = dot.map_or(&[][..], |dot| &file_name[dot + 1..]);
    extension.eq_ignore_ascii_case(b"html") || extension.eq_ignore_ascii_case(b"htm")
}
