//! Plans, from listings made by hand.

use std::collections::BTreeSet;

use std::io;
use std::path::Path;

use super::layout::colliding;
use super::publish::{Plan, paths, plan};
use super::{Action, Decision, Sight, Survey, Wanted};
use crate::config::{self, Destination};
use crate::digest::Fingerprint;
use crate::entry::{Entry, Kind};
use crate::error::{Code, Result};
use crate::path::{self, RawPath, RelPath};
use crate::state::{OutputKind, State};
use crate::transform::{Output, Outputs};

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
        content: Fingerprint::of(b""),
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

/// The destination `d` of pipeline `p` with these settings.
fn destination(settings: &str) -> Destination {
    let text = format!(
        "pipelines: [{{id: p, source: {{backend: local, path: /in}}, \
         destinations: [{{id: d, backend: local, path: /out, {settings}}}]}}]"
    );
    let read = |_: &Path| Err(io::ErrorKind::NotFound.into());
    let world = config::World { home: None, state_directory: None, read: &read };
    let (mut config, _) = config::parse(text.as_bytes(), Path::new("/etc/site.yml"), &world).unwrap();
    config.pipelines.remove(0).destinations.remove(0)
}

/// What is asked of a plan.
struct Case<'a> {
    settings: &'a str,
    action: Action,
    force: bool,
    /// What is recorded, and lies there.
    old: &'a [&'a str],
    /// What lies there besides.
    there: &'a [(&'a str, Kind)],
}

const OLDER: Case<'static> = Case { settings: "", action: Action::ReplaceOlder, force: false, old: &[], there: &[] };
const MERGE: Case<'static> = Case { settings: "reconciliation: {mode: merge}", ..OLDER };

impl Case<'_> {
    fn plan(&self, new: &[&str], primary: Option<&str>) -> Result<Plan> {
        let (state, destination) = (recording(self.old), destination(self.settings));
        let wanted = Wanted {
            pipeline_id: "p",
            destination: &destination,
            manifest: &state.owners[0].manifest,
            dirty: false,
            force: self.force,
            republish: false,
        };
        let outputs = outputs(new, primary);
        let planned = paths(&outputs);
        let sight = Sight { state: Some(&state), in_progress: &[], planned: &planned, keep: self.force };
        let mut survey = Survey::new("place".to_owned(), sight);
        let mut see = |raw: &[u8], kind| {
            survey.see(Entry { raw: raw.to_vec().into(), path: RelPath::from_bytes(raw).ok(), kind });
        };
        let there = self.there.iter().map(|(name, _)| *name);
        let above: BTreeSet<&str> = self.old.iter().copied().chain(there).flat_map(path::ancestors).collect();
        for dir in above {
            see(dir.as_bytes(), Kind::Directory);
        }
        for file in self.old {
            see(file.as_bytes(), Kind::File);
        }
        // A name ends in a byte that is no text where it is written with a question mark.
        for (name, kind) in self.there {
            see(&name.bytes().map(|byte| if byte == b'?' { 0xff } else { byte }).collect::<Vec<_>>(), *kind);
        }
        plan(&wanted, Decision::of(self.action), outputs, Some(&state), &survey)
    }

    fn refused(&self, new: &[&str]) -> Option<Code> {
        self.plan(new, None).map_err(|error| error.code).err()
    }
}

/// The plan for `new` where `old` is recorded and there, among the directories above it and `dirs`.
fn planned(old: &[&str], dirs: &[&str], new: &[&str], primary: Option<&str>) -> Plan {
    let there: Vec<(&str, Kind)> = dirs.iter().map(|dir| (*dir, Kind::Directory)).collect();
    Case { old, there: &there, ..OLDER }.plan(new, primary).unwrap()
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
    let collides = |text: &str| colliding(&planned)(&RawPath::from(text));
    for text in ["dir", "DIR", "dir/file/below", "Dir/File/below", "page", "PAGE/below", "SS", "dir/FILE"] {
        assert!(collides(text), "{text}");
    }
    for text in ["dir2", "di", "dir/file2", "dir/fil", "dir-file", "Page.html", "other/Page"] {
        assert!(!collides(text), "{text}");
    }
}

#[test]
fn what_is_in_the_way_goes_first_and_what_is_dropped_last() {
    let old = ["Readme", "d/e/f", "gone/x", "keep", "t"];
    let plan = planned(&old, &[], &["README", "d", "keep", "t/u"], None);
    assert_eq!(texts(&plan.in_the_way), ["Readme", "d/e/f", "t"]);
    assert_eq!(texts(&plan.dropped), ["gone/x"]);
    assert_eq!(texts(&plan.deleted()), ["Readme", "d/e/f", "gone/x", "t"]);
    assert_eq!(texts(&plan.clear_dirs), ["d/e", "d"], "the deepest first");
    let replaces: Vec<_> = plan.outputs.iter().map(|p| (p.output.path.as_str(), p.replaces)).collect();
    assert_eq!(replaces, [("README", false), ("d", false), ("keep", true), ("t/u", false)]);
}

#[test]
fn pages_that_are_dropped_go_before_their_assets() {
    let plan = planned(&["a.png", "b.HTM", "d.html/x", "d/p.html", "html", "z"], &[], &["keep"], None);
    assert_eq!(texts(&plan.dropped), ["b.HTM", "d/p.html", "a.png", "d.html/x", "html", "z"]);
}

#[test]
fn a_directory_that_gives_way_to_an_output_is_not_looked_for_afterwards() {
    let plan = planned(&["d/e/f/g", "x/y/z"], &["d/empty"], &["d", "x/w"], None);
    assert_eq!(texts(&plan.clear_dirs), ["d/empty", "d/e/f", "d/e", "d"]);
    assert_eq!(texts(&plan.emptied), ["x/y", "x"]);
    assert!(plan.make_dirs.iter().all(|dir| !dir.starts_with('d')), "{:?}", plan.make_dirs);
}

#[test]
fn directories_are_made_from_the_top_and_emptied_from_the_bottom() {
    let plan = planned(&["a/b/c/old"], &[], &["n/o/p/new", "n/q"], None);
    assert_eq!(plan.make_dirs, ["n", "n/o", "n/o/p"]);
    assert_eq!(texts(&plan.emptied), ["a/b/c", "a/b", "a"]);
}

#[test]
fn an_empty_directory_is_no_content_and_a_foreign_file_is() {
    assert_eq!(texts(&planned(&[], &["a", "a/b"], &["a"], None).clear_dirs), ["a/b", "a"]);
    let odd = Case { there: &[("a", Kind::Directory), ("a/odd?", Kind::Directory)], ..OLDER };
    assert_eq!(texts(&odd.plan(&["a"], None).unwrap().clear_dirs), [r"a/odd\xff", "a"]);
    let names: Vec<String> = (0..12).map(|n| format!("theirs-{n:02}")).collect();
    let there: Vec<(&str, Kind)> = names.iter().map(|name| (name.as_str(), Kind::File)).collect();
    let error = Case { there: &there, action: Action::PublishNew, ..OLDER }.plan(&["a"], None).unwrap_err();
    assert_eq!(error.code, Code::UnmanagedContent);
    assert!(error.message.starts_with("12 entries") && error.message.ends_with("first theirs-00, at place"));
    assert_eq!(error.detail.len(), 10);
}

#[test]
fn nothing_is_planned_in_or_above_a_directory_that_is_managed_by_itself() {
    for case in [OLDER, MERGE] {
        let case = Case { there: &[("sub/site", Kind::Managed)], ..case };
        for new in ["sub/site", "sub/site/a", "sub/site/a/b"] {
            assert_eq!(case.refused(&[new]), Some(Code::PathOwnedByOther), "{new}");
        }
        assert_eq!(case.refused(&["sub"]), Some(Code::OutputCollision));
        for new in ["sub/site2", "sub/a", "site", "su"] {
            assert_eq!(case.refused(&[new]), None, "{new}");
        }
    }
}

#[test]
fn merging_retains_what_is_recorded_and_looks_at_the_planned_paths_alone() {
    let case = Case { old: &["a", "b/c"], there: &[("theirs", Kind::File), ("b/link", Kind::Link)], ..MERGE };
    let plan = case.plan(&["a", "b/d"], None).unwrap();
    let retained: Vec<&str> = plan.retained.iter().map(|record| record.path.as_str()).collect();
    assert_eq!(retained, ["b/c"]);
    assert!(plan.deleted().is_empty() && plan.emptied.is_empty() && plan.force.is_none());
    let replaces: Vec<_> = plan.outputs.iter().map(|p| (p.output.path.as_str(), p.replaces)).collect();
    assert_eq!(replaces, [("a", true), ("b/d", false)]);
    for new in ["theirs", "theirs/below", "b/link", "b/link/x"] {
        assert_eq!(case.refused(&[new]), Some(Code::UnmanagedPath), "{new}");
    }
    let above = Case { there: &[("dir/theirs", Kind::File)], ..MERGE };
    assert_eq!(above.refused(&["dir"]), Some(Code::UnmanagedPath));
    assert_eq!(above.refused(&["dir/x"]), None);
    for (old, new) in [("a", "a/b"), ("a/b", "a"), ("x/y/z", "x/y")] {
        assert_eq!(Case { old: &[old], ..MERGE }.refused(&[new]), Some(Code::OutputCollision), "{old}, {new}");
    }
    // A takeover does not merge.
    let taken = Case { action: Action::ReplaceTakeover, old: &["a", "b/c"], ..MERGE }.plan(&["a"], None).unwrap();
    assert_eq!((taken.retained.len(), texts(&taken.dropped)), (0, vec!["b/c".to_owned()]));
}

#[test]
fn force_takes_all_that_is_there_and_says_whose_it_is() {
    let there = [
        ("index.html", Kind::File),
        ("link", Kind::Link),
        ("x/fifo", Kind::Special),
        ("x/odd?", Kind::File),
        ("empty", Kind::Directory),
        ("up", Kind::File),
    ];
    let case = Case { old: &["old", "keep"], there: &there, force: true, ..OLDER };
    let plan = case.plan(&["index.html", "keep", "link", "up/x"], None).unwrap();
    assert_eq!((plan.decision.action, plan.decision.forced), (Action::ForceReplace, Some(Code::UnmanagedContent)));
    assert_eq!(texts(&plan.in_the_way), ["link", "up"]);
    assert_eq!(texts(&plan.dropped), ["old", "x/fifo", r"x/odd\xff"]);
    assert_eq!(texts(&plan.emptied), ["x", "empty"]);
    let replaces: Vec<_> = plan.outputs.iter().map(|p| (p.output.path.as_str(), p.replaces)).collect();
    assert_eq!(replaces, [("keep", true), ("link", false), ("up/x", false), ("index.html", true)]);
    let force = plan.force.unwrap();
    assert_eq!(texts(&force.unmanaged), ["index.html", "link", "up", "x/fifo", r"x/odd\xff"]);
    assert_eq!((force.owners[0].pipeline_id.as_str(), force.owners[0].outputs), ("p", 2));
    // Without anything in the way nothing is forced.
    let plain = Case { force: true, old: &["old"], ..OLDER }.plan(&["a"], None).unwrap();
    assert_eq!((plain.decision.action, plain.force), (Action::ReplaceOlder, None));
    for (kind, code) in [(Kind::Managed, Code::ManagedBelow), (Kind::Closed, Code::UnmanagedContent)] {
        let case = Case { action: Action::ForceReplace, there: &[("sub", kind)], force: true, ..OLDER };
        assert_eq!(case.refused(&["a"]), Some(code));
    }
    // What a merge would retain goes as well.
    let merge = Case { there: &[("theirs", Kind::File)], old: &["a"], force: true, ..MERGE };
    let plan = merge.plan(&["theirs"], None).unwrap();
    assert_eq!((texts(&plan.dropped), plan.retained.len()), (vec!["a".to_owned()], 0));
}
