//! Schema versions 1 and 2: one owner.

use serde::{Deserialize, Serialize};

use super::json::{Links, Named, Source, check_id, check_mode, check_outputs, check_primary, check_reconciliation};
use super::record::{Mode, OutputKind, OutputRecord, Owner, State};
use crate::digest::Digest;
use crate::json::Object;
use crate::path::RelPath;
use crate::timestamp::Timestamp;

pub(super) const SCHEMA_VERSION: u64 = Mode::SingleOwner.schema_version();
const MODE: &str = "single_owner";

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Version2 {
    pub(super) schema_version: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    distributor_version: Option<String>,
    pipeline_id: String,
    destination_id: String,
    published_at: Timestamp,
    created_at: Timestamp,
    updated_at: Timestamp,
    state: Object<Named>,
    reconciliation: Object<Named>,
    source: Object<Source>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    links: Option<Object<Links>>,
    outputs: Vec<Object<OutputRecord>>,
}

/// Version 1 had one mode of everything, and one time.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Version1 {
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
            owner: 0,
            source: None,
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
            state: Object(Named { mode: MODE.to_owned() }),
            reconciliation: Object(Named { mode: "replace".to_owned() }),
            source: old.source,
            links: old.links,
        }
    }
}

impl Version2 {
    /// The state, if it keeps the rules.
    pub(super) fn check(self) -> Result<State, String> {
        check_mode(&self.state.0, MODE)?;
        check_reconciliation(&self.reconciliation.0)?;
        check_id("pipeline_id", &self.pipeline_id)?;
        check_id("destination_id", &self.destination_id)?;
        check_primary(self.links.as_ref())?;
        let outputs: Vec<OutputRecord> = self.outputs.into_iter().map(|output| output.0).collect();
        check_outputs(&outputs)?;
        let owner = Owner {
            pipeline_id: self.pipeline_id,
            destination_id: self.destination_id,
            reconciliation: self.reconciliation.0.mode,
            manifest: self.source.0.manifest,
            primary_url: self.links.and_then(|links| links.0.primary_url),
        };
        Ok(State {
            mode: Mode::SingleOwner,
            schema_version: SCHEMA_VERSION,
            distributor_version: self.distributor_version,
            published_at: self.published_at,
            created_at: self.created_at,
            updated_at: self.updated_at,
            owners: vec![owner],
            outputs,
        })
    }

    /// The state of the first owner, as it is written; `None` where there is none.
    pub(super) fn of(state: State) -> Option<Version2> {
        let owner = state.owners.into_iter().next()?;
        Some(Version2 {
            schema_version: SCHEMA_VERSION,
            distributor_version: state.distributor_version,
            pipeline_id: owner.pipeline_id,
            destination_id: owner.destination_id,
            published_at: state.published_at,
            created_at: state.created_at,
            updated_at: state.updated_at,
            state: Object(Named { mode: MODE.to_owned() }),
            reconciliation: Object(Named { mode: owner.reconciliation }),
            source: Object(Source { manifest: owner.manifest }),
            links: Links::of(owner.primary_url),
            outputs: state.outputs.into_iter().map(Object).collect(),
        })
    }
}
