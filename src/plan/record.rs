//! The state that a plan leaves.

use std::sync::Arc;

use super::decide::Wanted;
use super::publish::Plan;
use crate::state::{Mode, OutputRecord, Owner, SourceIdentity, State};
use crate::timestamp::Timestamp;
use crate::transform::Output;

impl Plan {
    /// The state that stands once the plan is carried out at `now`. A forced replacement starts a new one.
    pub fn state(&self, wanted: &Wanted<'_>, old: Option<&State>, now: &Timestamp) -> State {
        let old = old.filter(|_| self.force.is_none());
        let mut owners = if wanted.is_shared() { old.map_or(Vec::new(), |old| old.owners.clone()) } else { Vec::new() };
        let own = old.filter(|_| wanted.is_shared()).and_then(|old| wanted.own(old)).unwrap_or(owners.len());
        let source = Arc::new(SourceIdentity::from(wanted.manifest));
        let records = old.map(State::by_path).unwrap_or_default();
        let written = self.outputs.iter().map(|planned| {
            let created = records.get(&planned.output.path).map_or(now, |record| &record.created_at);
            OutputRecord {
                owner: own,
                source: Some(Arc::clone(&source)),
                ..record(&planned.output, created.clone(), now.clone())
            }
        });
        // A record of a single owner says no source of its own: it was that owner's bundle so far.
        let stays = |record: &OutputRecord| {
            let owner = old.and_then(|old| old.owners.get(record.owner));
            let source = record.source.clone().or_else(|| owner.map(|o| Arc::new(SourceIdentity::from(&o.manifest))));
            OutputRecord { source, ..record.clone() }
        };
        let mut outputs: Vec<OutputRecord> =
            written.chain(self.retained.iter().chain(&self.others).map(stays)).collect();
        outputs.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        let owner = Owner {
            pipeline_id: wanted.pipeline_id.to_owned(),
            destination_id: wanted.destination.id.clone(),
            reconciliation: wanted.destination.reconciliation.as_str().to_owned(),
            manifest: wanted.manifest.clone(),
            primary_url: self.primary_url.clone(),
        };
        match owners.get_mut(own) {
            Some(there) => *there = owner,
            None => owners.push(owner),
        }
        let mode = if wanted.is_shared() { Mode::SharedRoot } else { Mode::SingleOwner };
        State {
            mode,
            schema_version: mode.schema_version(),
            distributor_version: Some(env!("CARGO_PKG_VERSION").to_owned()),
            published_at: now.clone(),
            created_at: old.map_or(now, |state| &state.created_at).clone(),
            updated_at: now.clone(),
            owners,
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
        sha256: output.content.sha256,
        size: output.content.size,
        created_at,
        updated_at,
        owner: 0,
        source: None,
    }
}
