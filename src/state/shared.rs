//! Schema version 3: several owners in one root.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::json::{Links, Named, Source, check_id, check_mode, check_outputs, check_primary, check_reconciliation};
use super::record::{Mode, OutputKind, OutputRecord, Owner, SourceIdentity, State};
use crate::digest::Digest;
use crate::json::Object;
use crate::path::RelPath;
use crate::timestamp::Timestamp;

pub(super) const SCHEMA_VERSION: u64 = Mode::SharedRoot.schema_version();
const MODE: &str = "shared_root";

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Version3 {
    pub(super) schema_version: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    distributor_version: Option<String>,
    created_at: Timestamp,
    updated_at: Timestamp,
    state: Object<Named>,
    owners: Vec<Object<Owner3>>,
    outputs: Vec<Object<Output3>>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Owner3 {
    pipeline_id: String,
    destination_id: String,
    reconciliation: Object<Named>,
    source: Object<Source>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    links: Option<Object<Links>>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Output3 {
    path: RelPath,
    kind: OutputKind,
    source_path: RelPath,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    transform: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    url: Option<String>,
    sha256: Digest,
    size: u64,
    pipeline_id: String,
    destination_id: String,
    source_id: String,
    source_digest: Digest,
    source_created: Timestamp,
    created_at: Timestamp,
    updated_at: Timestamp,
}

impl Version3 {
    /// The state, if it keeps the rules.
    pub(super) fn check(self) -> Result<State, String> {
        check_mode(&self.state.0, MODE)?;
        let owners = self.owners.into_iter().map(|owner| owner.0.check()).collect::<Result<Vec<Owner>, String>>()?;
        let mut places = Places::new();
        for (at, Owner { pipeline_id, destination_id, .. }) in owners.iter().enumerate() {
            if places.insert((pipeline_id.as_str(), destination_id.as_str()), at).is_some() {
                return Err(format!("owners: {pipeline_id}/{destination_id} is recorded twice"));
            }
        }
        let mut sources = vec![None; owners.len()];
        let outputs = self.outputs.into_iter().map(|output| output.0.check(&places, &mut sources));
        let outputs = outputs.collect::<Result<Vec<OutputRecord>, String>>()?;
        check_outputs(&outputs)?;
        Ok(State {
            mode: Mode::SharedRoot,
            schema_version: SCHEMA_VERSION,
            distributor_version: self.distributor_version,
            published_at: self.updated_at.clone(),
            created_at: self.created_at,
            updated_at: self.updated_at,
            owners,
            outputs,
        })
    }
}

/// Where each owner stands.
type Places<'a> = BTreeMap<(&'a str, &'a str), usize>;

impl Owner3 {
    fn check(self) -> Result<Owner, String> {
        check_id("owners: pipeline_id", &self.pipeline_id)?;
        check_id("owners: destination_id", &self.destination_id)?;
        let fault = |fault| format!("owners: {}/{}: {fault}", self.pipeline_id, self.destination_id);
        check_reconciliation(&self.reconciliation.0).map_err(fault)?;
        check_primary(self.links.as_ref()).map_err(fault)?;
        Ok(Owner {
            pipeline_id: self.pipeline_id,
            destination_id: self.destination_id,
            reconciliation: self.reconciliation.0.mode,
            manifest: self.source.0.manifest,
            primary_url: self.links.and_then(|links| links.0.primary_url),
        })
    }
}

impl Output3 {
    /// The record, if it keeps the rules. `sources` has that of the last output of each owner: most share it, and it is
    /// kept once.
    fn check(self, places: &Places<'_>, sources: &mut [Option<Arc<SourceIdentity>>]) -> Result<OutputRecord, String> {
        let (path, pipeline, destination) = (&self.path, &self.pipeline_id, &self.destination_id);
        let none = || format!("outputs: {path}: there is no owner {pipeline}/{destination}");
        let owner = *places.get(&(pipeline.as_str(), destination.as_str())).ok_or_else(none)?;
        let source = SourceIdentity { id: self.source_id, digest: self.source_digest, created: self.source_created };
        let source = match sources[owner].take() {
            Some(kept) if *kept == source && kept.created.is_written_as(&source.created) => kept,
            _ => {
                check_id(&format!("outputs: {path}: source_id"), &source.id)?;
                Arc::new(source)
            }
        };
        sources[owner] = Some(Arc::clone(&source));
        Ok(OutputRecord {
            path: self.path,
            kind: self.kind,
            source_path: self.source_path,
            transform: self.transform,
            url: self.url,
            sha256: self.sha256,
            size: self.size,
            created_at: self.created_at,
            updated_at: self.updated_at,
            owner,
            source: Some(source),
        })
    }
}

impl From<State> for Version3 {
    fn from(state: State) -> Version3 {
        let outputs = state.outputs.into_iter().filter_map(|record| {
            let owner = state.owners.get(record.owner)?;
            // What was written for one owner says of no output where it comes from: it is that owner's bundle.
            let source = record.source.unwrap_or_else(|| Arc::new(SourceIdentity::from(&owner.manifest)));
            Some(Object(Output3 {
                path: record.path,
                kind: record.kind,
                source_path: record.source_path,
                transform: record.transform,
                url: record.url,
                sha256: record.sha256,
                size: record.size,
                pipeline_id: owner.pipeline_id.clone(),
                destination_id: owner.destination_id.clone(),
                source_id: source.id.clone(),
                source_digest: source.digest,
                source_created: source.created.clone(),
                created_at: record.created_at,
                updated_at: record.updated_at,
            }))
        });
        let outputs = outputs.collect();
        let owners = state.owners.into_iter().map(|owner| {
            Object(Owner3 {
                pipeline_id: owner.pipeline_id,
                destination_id: owner.destination_id,
                reconciliation: Object(Named { mode: owner.reconciliation }),
                source: Object(Source { manifest: owner.manifest }),
                links: Links::of(owner.primary_url),
            })
        });
        Version3 {
            schema_version: SCHEMA_VERSION,
            distributor_version: state.distributor_version,
            created_at: state.created_at,
            updated_at: state.updated_at,
            state: Object(Named { mode: MODE.to_owned() }),
            owners: owners.collect(),
            outputs,
        }
    }
}
