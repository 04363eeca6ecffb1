//! The state file: states of every schema are read for ever, what is written is read back, and no bytes make it panic.
// clippy.toml lets tests unwrap, but not the helpers that they share.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use distributor::bundle::{Digest, FileEntry, Manifest, content_digest};
use distributor::path::RelPath;
use distributor::state::{Mode, OutputKind, OutputRecord, Owner, SourceIdentity, State};
use distributor::timestamp::Timestamp;
use proptest::prelude::*;
use serde_json::Value;

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/state").join(name)
}

fn golden(name: &str) -> String {
    fs::read_to_string(data(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn read(text: &str) -> State {
    State::parse(text.as_bytes()).unwrap()
}

#[test]
fn states_are_written_as_they_were_read() {
    for name in ["v2-full.json", "v2-least.json", "v3-full.json", "v3-least.json"] {
        assert_eq!(read(&golden(name)).into_json(), golden(name), "{name}");
    }
}

#[test]
fn states_of_schema_1_are_read_for_ever() {
    for name in ["v1-full", "v1-least"] {
        let state = read(&golden(&format!("{name}.json")));
        assert_eq!(state.into_json(), golden(&format!("{name}.as-v2.json")), "{name}");
    }
    let least = read(&golden("v1-least.json"));
    assert_eq!((&least.created_at, &least.updated_at), (&least.published_at, &least.published_at));
    assert!(least.outputs.iter().all(|o| o.created_at == least.published_at && o.updated_at == least.published_at));
    assert_eq!(least.owners[0].reconciliation, "replace");
}

#[test]
fn every_file_of_states_is_read() {
    for entry in fs::read_dir(data("")).unwrap() {
        let path = entry.unwrap().path();
        assert!(State::parse(&fs::read(&path).unwrap()).is_ok(), "{}", path.display());
    }
}

/// The keys of an object in the order in which the text of `json` has them, at the given indentation.
fn keys(json: &str, indentation: usize) -> Vec<&str> {
    let lead = " ".repeat(indentation) + "\"";
    json.lines().filter_map(|line| line.strip_prefix(lead.as_str())?.split_once('"')).map(|(key, _)| key).collect()
}

/// The keys of the records of a list, each of which stands on a line of its own.
fn record_keys<'a>(json: &'a str, list: &str) -> Vec<Vec<&'a str>> {
    let (_, list) = json.split_once(&format!("\"{list}\": [\n")).unwrap();
    let lines = list.lines().map(str::trim_start).take_while(|line| line.starts_with('{'));
    let key = |part: &'a str| part.split('"').next().unwrap();
    lines.map(|line| line[2..].split(",\"").map(key).collect()).collect()
}

#[test]
fn the_keys_of_schema_2_stand_in_the_order_of_the_contract() {
    let json = read(&golden("v2-full.json")).into_json();
    let top = [
        "schema_version",
        "distributor_version",
        "pipeline_id",
        "destination_id",
        "published_at",
        "created_at",
        "updated_at",
        "state",
        "reconciliation",
        "source",
        "links",
        "outputs",
    ];
    assert_eq!(keys(&json, 2), top);
    let generated = ["path", "kind", "source_path", "transform", "url", "sha256", "size", "created_at", "updated_at"];
    let copied: Vec<&str> = generated.into_iter().filter(|key| *key != "transform").collect();
    assert_eq!(record_keys(&json, "outputs"), [&generated[..], &copied[..]]);
    assert_eq!(keys(&json, 4), ["mode", "mode", "manifest", "primary_url"]);
    let (manifest, _) = json.split_once("\"links\"").unwrap();
    assert_eq!(keys(manifest, 6), ["schema_version", "id", "digest", "created", "files"]);
    assert!(json.ends_with("}\n") && !json.ends_with("\n\n"));
}

/// Every key in a line, those of nested objects too.
fn all_keys(line: &str) -> String {
    let mut parts: Vec<&str> = line.split("\":").collect();
    parts.pop();
    parts.into_iter().map(|part| part.rsplit('"').next().unwrap()).collect::<Vec<_>>().join(" ")
}

#[test]
fn the_keys_of_schema_3_stand_in_the_order_of_the_contract() {
    let json = read(&golden("v3-full.json")).into_json();
    let top = ["schema_version", "distributor_version", "created_at", "updated_at", "state", "owners", "outputs"];
    assert_eq!(keys(&json, 2), top);
    let owner = "pipeline_id destination_id reconciliation mode source manifest schema_version id digest created files \
                 path sha256 size";
    let (first, second) = json.split_once("\"owners\": [\n").unwrap().1.split_once('\n').unwrap();
    assert_eq!(all_keys(first), [owner, "path sha256 size", "links primary_url"].join(" "));
    assert_eq!(all_keys(second.lines().next().unwrap()), owner);
    let all = "path kind source_path transform url sha256 size pipeline_id destination_id source_id source_digest \
               source_created created_at updated_at";
    let generated: Vec<&str> = all.split(' ').collect();
    let copied: Vec<&str> = generated.iter().copied().filter(|key| *key != "transform").collect();
    let without_url: Vec<&str> = copied.iter().copied().filter(|key| *key != "url").collect();
    assert_eq!(record_keys(&json, "outputs"), [generated.clone(), generated, copied, without_url]);
    assert!(json.ends_with("}\n") && !json.ends_with("\n\n"));
}

#[test]
fn what_schema_3_says_of_owners_and_outputs_is_read() {
    let state = read(&golden("v3-full.json"));
    assert_eq!((state.mode, state.owners.len()), (Mode::SharedRoot, 2));
    assert_eq!((state.owner("docs", "www"), state.owner("reports", "www")), (Some(0), Some(1)));
    assert_eq!((state.owner("www", "docs"), state.owner("docs", "docs")), (None, None));
    assert_eq!(state.outputs.iter().map(|output| output.owner).collect::<Vec<_>>(), [0, 0, 0, 1]);
    let created = |at: usize| state.outputs[at].source.as_ref().unwrap().created.to_string();
    assert_eq!(created(0), "2026-03-01T08:30:00.25+01:00");
    assert_eq!(created(1), "2026-01-31T23:00:00Z", "a retained output comes from an older bundle");
    assert_eq!(created(3), "2026-03-02T09:55:00Z");
}

#[test]
fn unknown_schemas_are_told() {
    for version in ["0", "4", "99"] {
        let text =
            golden("v2-full.json").replacen("\"schema_version\": 2", &format!("\"schema_version\": {version}"), 1);
        let fault = State::parse(text.as_bytes()).unwrap_err();
        assert_eq!(fault, format!("state schema version {version} can't be read by this version"));
    }
}

fn timestamp() -> impl Strategy<Value = Timestamp> {
    let zone = prop::sample::select(vec!["Z", "+00:00", "-00:00", "+02:00", "-11:30", "+23:59"]);
    let fraction = prop_oneof![Just(String::new()), "\\.[0-9]{1,9}"];
    (1_u32..9999, 1_u32..13, 1_u32..29, 0_u32..24, 0_u32..60, fraction, zone).prop_map(|(y, mo, d, h, mi, f, z)| {
        Timestamp::parse(&format!("{y:04}-{mo:02}-{d:02}T{h:02}:{mi:02}:07{f}{z}")).unwrap()
    })
}

fn digest() -> impl Strategy<Value = Digest> {
    any::<[u8; 4]>().prop_map(|bytes| Digest::of(&bytes))
}

/// Paths that keep the rules, none of them a directory of another: each begins with its number.
fn paths(least: usize) -> impl Strategy<Value = Vec<RelPath>> {
    let tail = prop::collection::vec("[ -.0-\\[\\]-~à-ž日\\u{1f600}]{1,5}", 0..3);
    prop::collection::vec(tail, least..6).prop_map(|tails| {
        let path = |(n, tail): (usize, Vec<String>)| {
            let path = std::iter::once(format!("{n}")).chain(tail.into_iter().map(|s| format!("x{s}")));
            RelPath::parse(&path.collect::<Vec<_>>().join("/")).unwrap()
        };
        tails.into_iter().enumerate().map(path).collect()
    })
}

fn id() -> impl Strategy<Value = String> {
    "[A-Za-z0-9][A-Za-z0-9._-]{0,8}"
}

fn url() -> impl Strategy<Value = Option<String>> {
    prop::option::of("https?://[a-z]{1,5}/[ -~à-ž]{0,8}")
}

fn manifest() -> impl Strategy<Value = Manifest> {
    let size = prop_oneof![0..10_u64, Just(i64::MAX.unsigned_abs())];
    (id(), timestamp(), paths(1), digest(), size).prop_map(|(id, created, paths, sha256, size)| {
        let files: Vec<FileEntry> = paths.into_iter().map(|path| FileEntry { path, sha256, size }).collect();
        Manifest { schema_version: 1, id, digest: content_digest(&files), created, files }
    })
}

fn outputs() -> impl Strategy<Value = Vec<OutputRecord>> {
    let each = (any::<bool>(), url(), digest(), any::<u64>(), timestamp(), timestamp());
    (paths(0), prop::collection::vec(each, 6)).prop_map(|(paths, each)| {
        let record = |(path, (made, url, sha256, size, created_at, updated_at)): (RelPath, _)| OutputRecord {
            source_path: path.clone(),
            path,
            kind: if made { OutputKind::Generated } else { OutputKind::Source },
            transform: made.then(|| "markdown_to_html".to_owned()),
            url,
            sha256,
            size,
            created_at,
            updated_at,
            owner: 0,
            source: None,
        };
        paths.into_iter().zip(each).map(record).collect()
    })
}

fn owner() -> impl Strategy<Value = Owner> {
    let mode = prop::sample::select(vec!["replace", "merge"]).prop_map(str::to_owned);
    (id(), id(), mode, manifest(), url()).prop_map(|(pipeline_id, destination_id, reconciliation, manifest, url)| {
        Owner { pipeline_id, destination_id, reconciliation, manifest, primary_url: url }
    })
}

fn single() -> impl Strategy<Value = State> {
    let times = (timestamp(), timestamp(), timestamp());
    (prop::option::of("\\PC{0,6}"), times, owner(), outputs()).prop_map(
        |(distributor_version, times, owner, outputs)| {
            let (published_at, created_at, updated_at) = times;
            let (mode, owners) = (Mode::SingleOwner, vec![owner]);
            let schema_version = mode.schema_version();
            State { mode, schema_version, distributor_version, published_at, created_at, updated_at, owners, outputs }
        },
    )
}

/// Several owners, each output of one of them and of this or an earlier source of it.
fn shared() -> impl Strategy<Value = State> {
    let owners = prop::collection::vec(owner(), 1..4);
    let whose = prop::collection::vec((any::<prop::sample::Index>(), id(), digest(), timestamp()), 6);
    (single(), owners, whose).prop_map(|(single, mut owners, whose)| {
        for (n, owner) in owners.iter_mut().enumerate() {
            owner.destination_id += &n.to_string();
        }
        let mut outputs = single.outputs;
        for (record, (at, id, digest, created)) in outputs.iter_mut().zip(whose) {
            record.owner = at.index(owners.len());
            record.source = Some(Arc::new(SourceIdentity { id, digest, created }));
        }
        State {
            mode: Mode::SharedRoot,
            schema_version: 3,
            published_at: single.updated_at.clone(),
            owners,
            outputs,
            ..single
        }
    })
}

fn state() -> impl Strategy<Value = State> {
    prop_oneof![single(), shared()]
}

/// Something else in the place of the `at`th value of a document, counted from the top.
fn replace(document: &mut Value, at: &mut usize, by: &Value) {
    if *at == 0 {
        document.clone_from(by);
        *at = usize::MAX;
        return;
    }
    *at -= 1;
    match document {
        Value::Array(items) => items.iter_mut().for_each(|item| replace(item, at, by)),
        Value::Object(fields) => fields.iter_mut().for_each(|(_, value)| replace(value, at, by)),
        _ => {}
    }
}

fn odd_value() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<bool>().prop_map(Value::from),
        "\\PC{0,8}".prop_map(Value::from),
        prop::sample::select(vec!["", "../x", "/x", "2026-06-04", "sha256:", "https://", ".distributor.json"])
            .prop_map(Value::from),
        Just(serde_json::json!([])),
        Just(serde_json::json!({})),
        Just(serde_json::json!({"mode": "shared_root"})),
        Just(serde_json::json!([[[{}]]])),
    ]
}

/// What was read from odd bytes is a state as any other.
fn whole(bytes: &[u8]) -> Result<(), TestCaseError> {
    if let Ok(state) = State::parse(bytes) {
        let json = state.into_json();
        let again = State::parse(json.as_bytes());
        prop_assert!(again.is_ok(), "{:?}: {}", again.err(), json);
        prop_assert_eq!(again.unwrap().into_json(), json);
    }
    Ok(())
}

proptest! {
    #[test]
    fn what_is_written_is_read_back(state in state()) {
        let json = state.clone().into_json();
        let again = State::parse(json.as_bytes());
        prop_assert!(again.is_ok(), "{:?}: {}", again.err(), json);
        let again = again.unwrap();
        prop_assert_eq!(again.clone().into_json(), json);
        prop_assert_eq!(&again.outputs, &state.outputs);
        prop_assert_eq!((again.mode, again.by_path().len()), (state.mode, state.outputs.len()));
        prop_assert_eq!(again.owners.len(), state.owners.len());
        for (a, b) in again.owners.iter().zip(&state.owners) {
            prop_assert!(a.manifest.matches(&b.manifest) && a.is(&b.pipeline_id, &b.destination_id));
            prop_assert_eq!((&a.reconciliation, &a.primary_url), (&b.reconciliation, &b.primary_url));
            prop_assert!(a.manifest.created.is_written_as(&b.manifest.created));
        }
        prop_assert_eq!(again.distributor_version, state.distributor_version);
        prop_assert!(again.published_at.is_written_as(&state.published_at));
    }

    #[test]
    fn a_key_more_or_less_is_refused(state in state(), extra in "[a-z]{1,3}") {
        let json: Value = serde_json::from_str(&state.into_json()).unwrap();
        let mut more = json.clone();
        more.as_object_mut().unwrap().insert(extra, Value::Null);
        prop_assert!(State::parse(more.to_string().as_bytes()).is_err());
        for key in json.as_object().unwrap().keys().filter(|key| !["distributor_version", "links"].contains(&key.as_str())) {
            let mut less = json.clone();
            less.as_object_mut().unwrap().remove(key);
            prop_assert!(State::parse(less.to_string().as_bytes()).is_err(), "without {}", key);
        }
    }

    #[test]
    fn changed_values_never_panic(state in state(), at in 0_usize..80, by in odd_value()) {
        let mut json: Value = serde_json::from_str(&state.into_json()).unwrap();
        replace(&mut json, &mut at.clone(), &by);
        whole(json.to_string().as_bytes())?;
    }

    #[test]
    fn changed_bytes_never_panic(
        state in state(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let mut bytes = state.into_json().into_bytes();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        whole(&bytes)?;
    }

    #[test]
    fn any_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        whole(&bytes)?;
    }
}
