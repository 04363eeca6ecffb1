//! The state's JSON: schema version 2 is written, versions 1 and 2 are read.

use serde::{Deserialize, Serialize};

use super::record::{Fault, OutputKind, OutputRecord, State};
use crate::bundle::Manifest;
use crate::digest::Digest;
use crate::id::is_id;
use crate::json::{self, Object};
use crate::path::{self, RelPath};
use crate::timestamp::Timestamp;

const SCHEMA_VERSION: u64 = 2;
/// The schema of states with several owners.
const SHARED_ROOT: u64 = 3;
const SINGLE_OWNER: &str = "single_owner";
const RECONCILIATION_MODES: [&str; 2] = ["replace", "merge"];

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Mode {
    mode: String,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Source {
    manifest: Manifest,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Links {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    primary_url: Option<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Version2 {
    schema_version: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    distributor_version: Option<String>,
    pipeline_id: String,
    destination_id: String,
    published_at: Timestamp,
    created_at: Timestamp,
    updated_at: Timestamp,
    state: Object<Mode>,
    reconciliation: Object<Mode>,
    source: Object<Source>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    links: Option<Object<Links>>,
    outputs: Vec<Object<OutputRecord>>,
}

/// Version 1 had one mode of everything, and one time.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Version1 {
    #[serde(rename = "schema_version")]
    _schema_version: u64,
    distributor_version: Option<String>,
    pipeline_id: String,
    destination_id: String,
    published_at: Timestamp,
    created_at: Option<Timestamp>,
    updated_at: Option<Timestamp>,
    source: Object<Source>,
    links: Option<Object<Links>>,
    outputs: Vec<Object<Output1>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Output1 {
    path: RelPath,
    kind: OutputKind,
    source_path: RelPath,
    transform: Option<String>,
    url: Option<String>,
    sha256: Digest,
    size: u64,
    created_at: Option<Timestamp>,
    updated_at: Option<Timestamp>,
}

impl State {
    /// Reads a state file and checks every rule of it. The error says which rule it breaks.
    pub fn parse(bytes: &[u8]) -> Result<State, Fault> {
        #[derive(Deserialize)]
        struct Schema {
            schema_version: u64,
        }
        let text = std::str::from_utf8(bytes).map_err(|error| Fault::Invalid(json::not_utf8(error)))?;
        let invalid = |error: serde_json::Error| Fault::Invalid(json::fault(&error));
        // What is written today is read in one pass; anything else is asked for its version first.
        let state = match serde_json::from_str::<Object<Version2>>(text) {
            Ok(Object(state)) if state.schema_version == SCHEMA_VERSION => state,
            newest => match serde_json::from_str::<Object<Schema>>(text).map_err(invalid)?.0.schema_version {
                SCHEMA_VERSION => newest.map_err(invalid)?.0,
                1 => serde_json::from_str::<Object<Version1>>(text).map_err(invalid)?.0.into(),
                SHARED_ROOT => return Err(Fault::SharedRoot),
                other => {
                    return Err(Fault::Invalid(format!("state schema version {other} can't be read by this version")));
                }
            },
        };
        check(&state).map_err(Fault::Invalid)?;
        Ok(state.into())
    }

    /// The state as it is written.
    pub fn into_json(self) -> String {
        json::pretty(&Version2::from(self))
    }
}

fn check(state: &Version2) -> Result<(), String> {
    if state.state.0.mode != SINGLE_OWNER {
        return Err(format!("state.mode: {:?} is not {SINGLE_OWNER:?}", state.state.0.mode));
    }
    if !RECONCILIATION_MODES.contains(&state.reconciliation.0.mode.as_str()) {
        return Err(format!("reconciliation.mode: {:?} is neither replace nor merge", state.reconciliation.0.mode));
    }
    for (key, id) in [("pipeline_id", &state.pipeline_id), ("destination_id", &state.destination_id)] {
        if !is_id(id) {
            return Err(format!("{key}: {id:?} is not an id"));
        }
    }
    check_url(
        || "links.primary_url".to_owned(),
        state.links.as_ref().and_then(|links| links.0.primary_url.as_deref()),
    )?;
    check_outputs(&state.outputs)
}

fn check_outputs(outputs: &[Object<OutputRecord>]) -> Result<(), String> {
    for Object(output) in outputs {
        let path = &output.path;
        check_url(|| format!("outputs: {path}: url"), output.url.as_deref())?;
        match (output.kind, &output.transform) {
            (OutputKind::Generated, None) => return Err(format!("outputs: {path}: generated, and no transform")),
            (OutputKind::Source, Some(_)) => return Err(format!("outputs: {path}: copied, and a transform")),
            _ => {}
        }
    }
    let mut paths: Vec<&RelPath> = outputs.iter().map(|output| &output.0.path).collect();
    paths.sort_unstable();
    if let Some([twice, _]) = paths.array_windows().find(|[a, b]| a == b) {
        return Err(format!("outputs: {twice} is recorded twice"));
    }
    match path::nested(&paths).first() {
        Some(clash) => Err(format!("outputs: {} is recorded, and is a directory of {}", clash.first, clash.second)),
        None => Ok(()),
    }
}

fn check_url(place: impl Fn() -> String, url: Option<&str>) -> Result<(), String> {
    match url {
        Some(url) if !url.starts_with("http://") && !url.starts_with("https://") => {
            Err(format!("{}: {url:?} is not an absolute http or https URL", place()))
        }
        _ => Ok(()),
    }
}

impl From<Version1> for Version2 {
    fn from(old: Version1) -> Version2 {
        let at = &old.published_at;
        let outputs = old.outputs.into_iter().map(|Object(output)| OutputRecord {
            path: output.path,
            kind: output.kind,
            source_path: output.source_path,
            transform: output.transform,
            url: output.url,
            sha256: output.sha256,
            size: output.size,
            created_at: output.created_at.unwrap_or_else(|| at.clone()),
            updated_at: output.updated_at.unwrap_or_else(|| at.clone()),
        });
        Version2 {
            schema_version: SCHEMA_VERSION,
            distributor_version: old.distributor_version,
            pipeline_id: old.pipeline_id,
            destination_id: old.destination_id,
            outputs: outputs.map(Object).collect(),
            created_at: old.created_at.unwrap_or_else(|| at.clone()),
            updated_at: old.updated_at.unwrap_or_else(|| at.clone()),
            published_at: old.published_at,
            state: Object(Mode { mode: SINGLE_OWNER.to_owned() }),
            reconciliation: Object(Mode { mode: RECONCILIATION_MODES[0].to_owned() }),
            source: old.source,
            links: old.links,
        }
    }
}

impl From<Version2> for State {
    fn from(read: Version2) -> State {
        State {
            distributor_version: read.distributor_version,
            pipeline_id: read.pipeline_id,
            destination_id: read.destination_id,
            published_at: read.published_at,
            created_at: read.created_at,
            updated_at: read.updated_at,
            reconciliation: read.reconciliation.0.mode,
            manifest: read.source.0.manifest,
            primary_url: read.links.and_then(|links| links.0.primary_url),
            outputs: read.outputs.into_iter().map(|output| output.0).collect(),
        }
    }
}

impl From<State> for Version2 {
    fn from(state: State) -> Version2 {
        Version2 {
            schema_version: SCHEMA_VERSION,
            distributor_version: state.distributor_version,
            pipeline_id: state.pipeline_id,
            destination_id: state.destination_id,
            published_at: state.published_at,
            created_at: state.created_at,
            updated_at: state.updated_at,
            state: Object(Mode { mode: SINGLE_OWNER.to_owned() }),
            reconciliation: Object(Mode { mode: state.reconciliation }),
            source: Object(Source { manifest: state.manifest }),
            links: state.primary_url.map(|url| Object(Links { primary_url: Some(url) })),
            outputs: state.outputs.into_iter().map(Object).collect(),
        }
    }
}
