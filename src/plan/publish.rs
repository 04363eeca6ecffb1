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
/// that its state does not record.
pub fn plan(decision: Decision, outputs: Outputs, survey: &Survey<'_>) -> Result<Plan> {
    refuse_unmanaged(survey)?;
    let planned: BTreeSet<RelPath> = outputs.list.iter().map(|output| output.path.clone()).collect();
    refuse_managed_below(&planned, survey)?;
    if let Some(odd) = survey.odd_below(&planned) {
        let message = format!("{odd}: this directory is in the way of an output, at {}", survey.place());
        return Err(Error::new(Code::UnmanagedContent, message).hint("remove it, or choose another path"));
    }
    // What is recorded and not there needs no deleting; what lies in a directory with a state of its own is not ours any
    // more, whatever was recorded before.
    let gone = survey.present.iter().filter(|path| !planned.contains(*path)).cloned();
    let collides = colliding(&planned);
    let (in_the_way, dropped): (Vec<_>, Vec<_>) = gone.partition(|path| collides(path));
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
    let detail = |path: &&str| {
        Detail::new(Code::UnmanagedContent, format!("{path}: not recorded in the state"), Some((*path).to_owned()))
    };
    let message = format!("{entries} that distributor does not manage, first {name}, at {}", survey.place());
    Err(Error::new(Code::UnmanagedContent, message)
        .hint("move it aside, or choose another path")
        .detail(first.iter().map(detail).collect()))
}

fn refuse_managed_below(planned: &BTreeSet<RelPath>, survey: &Survey<'_>) -> Result<()> {
    let managed: BTreeSet<&str> = survey.managed.iter().map(String::as_str).collect();
    let above_it = |path: &RelPath| {
        std::iter::once(path.as_str()).chain(path.ancestors()).find_map(|dir| managed.get(dir).copied())
    };
    if let Some((path, dir)) = planned.iter().find_map(|path| Some((path, above_it(path)?))) {
        let message = format!("{path}: the directory {dir} is a destination of its own, with its own state");
        return Err(Error::new(Code::PathOwnedByOther, message).hint("choose another path for one of the two"));
    }
    let above = |dir: &str| path::ancestors(dir).find_map(|above| planned.get(above));
    match managed.iter().find_map(|dir| Some((above(dir)?, dir))) {
        None => Ok(()),
        Some((path, dir)) => {
            let message = format!("{path}: it is a directory above {dir}, which is a destination of its own");
            Err(Error::new(Code::OutputCollision, message).hint("choose another path for one of the two"))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::Digest;
    use crate::entry::{Entry, Kind};
    use crate::plan::Action;
    use crate::state::OutputKind;

    fn path(text: &str) -> RelPath {
        RelPath::parse(text).unwrap()
    }

    fn outputs(paths: &[&str], primary: Option<&str>) -> Outputs {
        let output = |text: &&str| Output {
            path: path(text),
            kind: OutputKind::Source,
            source_path: path(text),
            transform: None,
            url: None,
            sha256: Digest::of(b""),
            size: 0,
        };
        let list = paths.iter().map(output).collect();
        Outputs { list, primary: primary.map(path), primary_url: primary.map(|p| format!("https://h/{p}")) }
    }

    /// A state that records `paths`.
    fn recording(paths: &[&str]) -> State {
        let records: Vec<String> = paths.iter().map(|path| RECORD.replace("PATH", path)).collect();
        State::parse(STATE.replace("RECORDS", &records.join(",")).as_bytes()).unwrap()
    }

    const RECORD: &str = r#"{"path": "PATH", "kind": "source", "source_path": "a", "size": 0,
        "sha256": "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "created_at": "2026-06-04T12:00:00Z", "updated_at": "2026-06-04T12:00:00Z"}"#;
    const STATE: &str = r#"{"schema_version": 2, "pipeline_id": "p", "destination_id": "d",
        "published_at": "2026-06-04T12:00:00Z", "created_at": "2026-06-04T12:00:00Z",
        "updated_at": "2026-06-04T12:00:00Z", "state": {"mode": "single_owner"}, "reconciliation": {"mode": "replace"},
        "source": {"manifest": {"schema_version": 1, "id": "x", "created": "2026-06-04T11:55:00Z",
        "digest": "sha256:fba1930570cf2d33a2a05ff43a4fea532382611f43876988fc9c31fd9ce102d1",
        "files": [{"path": "a", "size": 0,
        "sha256": "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"}]}}, "outputs": [RECORDS]}"#;

    /// The plan for `new` where `old` is recorded and there, among the directories above it and `dirs`.
    fn planned(old: &[&str], dirs: &[&str], new: &[&str], primary: Option<&str>) -> Plan {
        let state = recording(old);
        let mut survey = Survey::new("place".to_owned(), Some(&state), []);
        let above: BTreeSet<&str> =
            old.iter().flat_map(|path| path::ancestors(path)).chain(dirs.iter().copied()).collect();
        let see = |survey: &mut Survey<'_>, text: &str, kind| {
            survey.see(Entry { raw: text.as_bytes().to_vec(), path: Some(path(text)), kind });
        };
        for dir in above {
            see(&mut survey, dir, Kind::Directory);
        }
        for file in old {
            see(&mut survey, file, Kind::File);
        }
        let decision = Decision { action: Action::ReplaceOlder, takeover: None, note: None };
        plan(decision, outputs(new, primary), &survey).unwrap()
    }

    fn texts<T: ToString>(all: &[T]) -> Vec<String> {
        all.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn assets_come_first_then_pages_and_the_primary_output_last() {
        let new = ["a.html", "b.css", "c/d.HTM", "html", "index.html", "x.html.gz", "z.svg"];
        let plan = planned(&[], &[], &new, Some("a.html"));
        let order: Vec<String> = plan.outputs.iter().map(|p| p.output.path.to_string()).collect();
        assert_eq!(order, ["b.css", "html", "x.html.gz", "z.svg", "c/d.HTM", "index.html", "a.html"]);
        // A primary output that is no page is the last one, too.
        let plan = planned(&[], &[], &["a.pdf", "b.html"], Some("a.pdf"));
        assert_eq!(plan.outputs.last().unwrap().output.path.as_str(), "a.pdf");
    }

    #[test]
    fn a_path_collides_where_it_is_above_below_or_the_same_but_for_case() {
        let planned = ["dir/file", "Page", "ß"].map(path).into();
        let collides = colliding(&planned);
        for text in ["dir", "DIR", "dir/file/below", "Dir/File/below", "page", "PAGE/below", "SS", "dir/FILE"] {
            assert!(collides(&path(text)), "{text}");
        }
        for text in ["dir2", "di", "dir/file2", "dir/fil", "dir-file", "Page.html", "other/Page"] {
            assert!(!collides(&path(text)), "{text}");
        }
    }

    #[test]
    fn what_is_in_the_way_goes_first_and_what_is_dropped_last() {
        let old = ["Readme", "d/e/f", "gone/x", "keep", "t"];
        let plan = planned(&old, &[], &["README", "d", "keep", "t/u"], None);
        assert_eq!(texts(&plan.in_the_way), ["Readme", "d/e/f", "t"]);
        assert_eq!(texts(&plan.dropped), ["gone/x"]);
        assert_eq!(texts(&plan.deleted()), ["Readme", "d/e/f", "gone/x", "t"]);
        assert_eq!(plan.clear_dirs, ["d/e", "d"], "the deepest first");
        let changes: Vec<_> = plan.outputs.iter().map(|p| (p.output.path.as_str(), p.change)).collect();
        let (create, overwrite) = (Change::Create, Change::Overwrite);
        assert_eq!(changes, [("README", create), ("d", create), ("keep", overwrite), ("t/u", create)]);
    }

    #[test]
    fn a_directory_that_gives_way_to_an_output_is_not_looked_for_afterwards() {
        let plan = planned(&["d/e/f/g", "x/y/z"], &["d/empty"], &["d", "x/w"], None);
        assert_eq!(plan.clear_dirs, ["d/empty", "d/e/f", "d/e", "d"]);
        assert_eq!(plan.emptied, ["x/y", "x"]);
        assert!(plan.make_dirs.iter().all(|dir| !dir.starts_with('d')), "{:?}", plan.make_dirs);
    }

    #[test]
    fn directories_are_made_from_the_top_and_emptied_from_the_bottom() {
        let plan = planned(&["a/b/c/old"], &[], &["n/o/p/new", "n/q"], None);
        assert_eq!(plan.make_dirs, ["n", "n/o", "n/o/p"]);
        assert_eq!(plan.emptied, ["a/b/c", "a/b", "a"]);
    }

    #[test]
    fn an_empty_directory_is_no_content_and_a_foreign_file_is() {
        assert_eq!(planned(&[], &["a", "a/b"], &["a"], None).clear_dirs, ["a/b", "a"]);
        let mut survey = Survey::new("place".to_owned(), None, []);
        for n in 0..12 {
            let raw = format!("theirs-{n:02}");
            survey.see(Entry { path: Some(path(&raw)), raw: raw.into_bytes(), kind: Kind::File });
        }
        survey.see(Entry { path: None, raw: b"odd\xff".to_vec(), kind: Kind::Directory });
        let decision = Decision { action: Action::PublishNew, takeover: None, note: None };
        let error = plan(decision, outputs(&["a"], None), &survey).unwrap_err();
        assert_eq!(error.code, Code::UnmanagedContent);
        assert!(error.message.starts_with("12 entries") && error.message.ends_with("first theirs-00, at place"));
        assert_eq!(error.detail.len(), 10);
    }

    #[test]
    fn nothing_is_planned_in_or_above_a_directory_that_is_managed_by_itself() {
        let refused = |new: &str| {
            let mut survey = Survey::new("place".to_owned(), None, []);
            survey.see(Entry { path: Some(path("sub/site")), raw: b"sub/site".to_vec(), kind: Kind::Managed });
            let decision = Decision { action: Action::PublishNew, takeover: None, note: None };
            plan(decision, outputs(&[new], None), &survey).map_err(|error| error.code).err()
        };
        for new in ["sub/site", "sub/site/a", "sub/site/a/b"] {
            assert_eq!(refused(new), Some(Code::PathOwnedByOther), "{new}");
        }
        assert_eq!(refused("sub"), Some(Code::OutputCollision));
        for new in ["sub/site2", "sub/a", "site", "su"] {
            assert_eq!(refused(new), None, "{new}");
        }
    }
}
