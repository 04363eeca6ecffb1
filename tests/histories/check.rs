//! Comparing what was done with what the model says.

use std::collections::{BTreeMap, BTreeSet};

use distributor::digest::Digest;
use distributor::error::Error;
use distributor::path::RelPath;
use distributor::plan::{Action, Plan};
use distributor::publish::Published;
use distributor::state::{OutputKind, OutputRecord};
use distributor::timestamp::Timestamp;

use crate::model::{Known, Model, Record, State, Verdict, is_page};
use crate::place::{Node, Place, Tree};
use crate::steps::{OWNERS, within};

/// The time of the step number `at`.
pub(crate) fn time(at: usize) -> Timestamp {
    Timestamp::parse(&format!("2026-06-04T12:{:02}:{:02}Z", at / 60, at % 60)).unwrap()
}

/// What was decided against what should be.
pub(crate) fn decided(got: &Result<Published, Error>, verdict: &Verdict, what: &str) {
    let shown = got.as_ref().map(|published| &published.decision);
    match (got, verdict) {
        (Err(error), Err(code)) => assert_eq!(error.code, *code, "{what}: {error:?}"),
        (Ok(published), Ok(done)) => {
            let decision = &published.decision;
            assert_eq!(
                (decision.action, decision.takeover, decision.forced),
                (done.action, done.takeover, done.forced),
                "{what}"
            );
            assert_eq!(published.plan.is_some(), !done.action.is_skip(), "{what}");
        }
        _ => panic!("{what}: {shown:?} instead of {verdict:?}"),
    }
}

/// What is planned against what should be, where nothing is half done.
pub(crate) fn planned(got: &Result<Published, Error>, verdict: &Verdict, what: &str) {
    let (Ok(Published { plan: Some(plan), .. }), Ok(done)) = (got, verdict) else { return };
    let deleted: BTreeSet<String> =
        plan.deleted().into_iter().map(|path| String::from_utf8(path.as_bytes().to_vec()).unwrap()).collect();
    assert_eq!(deleted, done.deleted, "{what}: deletes");
    let retained: BTreeSet<String> = plan.retained.iter().map(|record| record.path.to_string()).collect();
    assert_eq!(retained, done.retained, "{what}: retains");
    assert_eq!(plan.force.is_some(), done.action == Action::ForceReplace, "{what}");
    in_order(plan, what);
}

/// Assets first, then pages, an index among the last.
fn in_order(plan: &Plan, what: &str) {
    let paths: Vec<String> = plan.outputs.iter().map(|planned| planned.output.path.to_string()).collect();
    let first_page = paths.iter().position(|path| is_page(path)).unwrap_or(paths.len());
    assert!(paths[first_page..].iter().all(|path| is_page(path)), "{what}: {paths:?}");
    let index = paths.iter().any(|path| path.ends_with("index.html"));
    assert!(!index || paths.last().unwrap().ends_with("index.html"), "{what}: {paths:?}");
}

/// The state that stands, against that of the model.
pub(crate) fn state(place: &dyn Place, model: &Model, what: &str) {
    match (place.state(), &model.state) {
        (None, State::Absent | State::Odd) => {}
        (Some(bytes), State::Broken(broken)) => assert_eq!(&bytes, broken, "{what}: broken bytes changed"),
        (Some(bytes), State::Known(known)) => {
            let state = distributor::state::State::parse(&bytes);
            same(&state.unwrap_or_else(|fault| panic!("{what}: {fault:?}")), known, what);
        }
        (there, state) => panic!("{what}: {:?} instead of {state:?}", there.map(String::from_utf8)),
    }
}

fn same(state: &distributor::state::State, known: &Known, what: &str) {
    let [by] = state.owners.as_slice() else { panic!("{what}: {} owners", state.owners.len()) };
    let owner = (by.pipeline_id.as_str(), by.destination_id.as_str());
    assert_eq!(owner, OWNERS[known.owner], "{what}");
    let times = [&state.published_at, &state.updated_at, &state.created_at].map(ToString::to_string);
    let expected = [known.published, known.updated, known.created].map(|at| time(at).to_string());
    assert_eq!(times, expected, "{what}: published, updated, created");
    assert_eq!(by.reconciliation, known.reconciliation.as_str(), "{what}");
    let manifest = known.bundle.manifest();
    assert_eq!(by.manifest.to_json(), manifest.to_json(), "{what}");
    assert_eq!(by.primary_url, known.primary, "{what}");
    let expected: Vec<OutputRecord> = known.outputs.iter().map(|(path, record)| output(path, record)).collect();
    assert_eq!(state.outputs, expected, "{what}");
}

fn output(path: &str, record: &Record) -> OutputRecord {
    let path = RelPath::parse(path).unwrap();
    OutputRecord {
        source_path: path.clone(),
        path,
        kind: OutputKind::Source,
        transform: None,
        url: record.url.clone(),
        sha256: Digest::of(record.text.as_bytes()),
        size: record.text.len() as u64,
        created_at: time(record.created),
        updated_at: time(record.updated),
        owner: 0,
        source: None,
    }
}

/// What lies there, against what should.
pub(crate) fn tree(got: &Tree, expected: &Tree, what: &str) {
    let text = |tree: &Tree| tree.iter().map(|(path, node)| format!("  {path}: {node:?}\n")).collect::<String>();
    assert!(got == expected, "{what}:\n{}instead of\n{}", text(got), text(expected));
}

/// What nobody recorded is there as it was.
pub(crate) fn strangers(before: &Model, after: &Tree, what: &str) {
    for path in before.strangers() {
        assert_eq!(after.get(path), Some(&before.tree[path]), "{what}: {path} is nobody's to change");
    }
}

/// What was cut short and then touched by hands is finished: nothing has changed but what may, and nothing has come but
/// what was to be written.
pub(crate) fn finished(before: &Tree, after: &Tree, may_go: &BTreeSet<String>, written: &BTreeSet<String>, what: &str) {
    for (path, node) in before.iter().filter(|(_, node)| **node != Node::Dir) {
        let same = after.get(path) == Some(node);
        assert!(same || may_go.contains(path), "{what}: {path} is nobody's to change");
    }
    for (path, _) in after.iter().filter(|(_, node)| **node != Node::Dir) {
        assert!(before.contains_key(path) || written.contains(path), "{what}: {path} came from nowhere");
    }
}

/// Every record that no hand came near has its file.
pub(crate) fn truthful(records: &BTreeMap<String, Record>, tree: &Tree, touched: &BTreeSet<String>, what: &str) {
    for (path, record) in records {
        let near = |other: &String| other == path || within(path, other) || within(other, path);
        let file = Node::File(record.text.as_bytes().to_vec());
        assert!(tree.get(path) == Some(&file) || touched.iter().any(near), "{what}: {path} is not what is recorded");
    }
}
