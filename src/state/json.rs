//! The state's JSON: schema versions 2 and 3 are written, 1 to 3 are read.

use serde::{Deserialize, Serialize};

use super::MAX_BYTES;
use super::record::{Mode, OutputKind, OutputRecord, State};
use super::shared::{self, Version3};
use super::single::{self, Version1, Version2};
use crate::bundle::Manifest;
use crate::error::{Code, Error};
use crate::id::is_id;
use crate::json::{self, Object};
use crate::path::{self, RelPath};

const RECONCILIATION_MODES: [&str; 2] = ["replace", "merge"];

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Named {
    pub(super) mode: String,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Source {
    pub(super) manifest: Manifest,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Links {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) primary_url: Option<String>,
}

impl Links {
    pub(super) fn of(primary_url: Option<String>) -> Option<Object<Links>> {
        primary_url.map(|url| Object(Links { primary_url: Some(url) }))
    }
}

impl State {
    /// Reads a state file and checks every rule of it. The error says which rule it breaks.
    pub fn parse(bytes: &[u8]) -> Result<State, String> {
        #[derive(Deserialize)]
        struct Schema {
            schema_version: u64,
        }
        let text = std::str::from_utf8(bytes).map_err(json::not_utf8)?;
        let fault = |error: serde_json::Error| json::fault(&error);
        // What is written today is read in one pass, for the other kind fails at its first key that is not in both.
        let single = serde_json::from_str::<Object<Version2>>(text);
        if let Ok(Object(state)) = single
            && state.schema_version == single::SCHEMA_VERSION
        {
            return state.check();
        }
        let shared = serde_json::from_str::<Object<Version3>>(text);
        if let Ok(Object(state)) = shared
            && state.schema_version == shared::SCHEMA_VERSION
        {
            return state.check();
        }
        match serde_json::from_str::<Object<Schema>>(text).map_err(fault)?.0.schema_version {
            1 => {
                let old = serde_json::from_str::<Object<Version1>>(text).map_err(fault)?.0;
                Ok(State { schema_version: 1, ..Version2::from(old).check()? })
            }
            single::SCHEMA_VERSION => {
                serde_json::from_str::<Object<Version2>>(text).map_err(fault).and_then(|state| state.0.check())
            }
            shared::SCHEMA_VERSION => {
                serde_json::from_str::<Object<Version3>>(text).map_err(fault).and_then(|state| state.0.check())
            }
            other => Err(format!("state schema version {other} can't be read by this version")),
        }
    }

    /// The state file, unless it would be so large that nobody could read it again.
    pub fn into_file(self) -> Result<String, Error> {
        let (owners, outputs) = (self.owners.len(), self.outputs.len());
        let json = self.into_json();
        if json.len() as u64 <= MAX_BYTES {
            return Ok(json);
        }
        let bytes = json.len();
        let message = format!(
            "the state would be larger ({bytes} bytes) than {MAX_BYTES} bytes: {owners} owners, {outputs} outputs"
        );
        Err(Error::new(Code::Unsupported, message).hint("publish to a destination of its own, or fewer files"))
    }

    /// The state as it is written.
    pub fn into_json(self) -> String {
        match self.mode {
            Mode::SingleOwner => Version2::of(self).map_or_else(String::new, |state| json::pretty(&state)),
            Mode::SharedRoot => json::pretty(&Version3::from(self)),
        }
    }
}

pub(super) fn check_mode(mode: &Named, expected: &str) -> Result<(), String> {
    if mode.mode == expected { Ok(()) } else { Err(format!("state.mode: {:?} is not {expected:?}", mode.mode)) }
}

pub(super) fn check_reconciliation(mode: &Named) -> Result<(), String> {
    if RECONCILIATION_MODES.contains(&mode.mode.as_str()) {
        Ok(())
    } else {
        Err(format!("reconciliation.mode: {:?} is neither replace nor merge", mode.mode))
    }
}

pub(super) fn check_id(key: &str, id: &str) -> Result<(), String> {
    if is_id(id) { Ok(()) } else { Err(format!("{key}: {id:?} is not an id")) }
}

pub(super) fn check_primary(links: Option<&Object<Links>>) -> Result<(), String> {
    check_url(|| "links.primary_url".to_owned(), links.and_then(|links| links.0.primary_url.as_deref()))
}

pub(super) fn check_outputs(outputs: &[OutputRecord]) -> Result<(), String> {
    for output in outputs {
        let path = &output.path;
        check_url(|| format!("outputs: {path}: url"), output.url.as_deref())?;
        match (output.kind, &output.transform) {
            (OutputKind::Generated, None) => return Err(format!("outputs: {path}: generated, and no transform")),
            (OutputKind::Source, Some(_)) => return Err(format!("outputs: {path}: copied, and a transform")),
            _ => {}
        }
    }
    let mut paths: Vec<&RelPath> = outputs.iter().map(|output| &output.path).collect();
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
