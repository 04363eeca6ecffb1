//! Journals: what a command is about to do at a destination, written before it does it, so that whoever comes after a
//! crash knows what is ours and what is still to be done. Pure: values in, values out.

mod recover;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

pub use recover::{Cure, cure};

use crate::digest::{Digest, Fingerprint};
use crate::error::{Code, Error};
use crate::host::Holder;
use crate::names::JOURNAL_PREFIX;
use crate::path::{RawPath, RelPath};
use crate::timestamp::Timestamp;

/// The journal schema that this version reads and writes.
const SCHEMA_VERSION: u64 = 1;
/// The largest journal, in bytes.
pub const MAX_BYTES: u64 = 256 * 1024 * 1024;

/// How far a command has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Nothing a reader could see has changed.
    Staging,
    /// The commit point is passed: it goes forward only.
    Committing,
}

/// What kind of command it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A publication.
    Publish,
    /// Pruning.
    Prune,
}

/// One step after the commit point. Done twice, it does nothing more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case", deny_unknown_fields)]
pub enum Operation {
    /// Removes an output, or whatever else a forced replacement takes away.
    Remove {
        /// Its path.
        path: RawPath,
    },
    /// Removes a directory if it is empty.
    RemoveDir {
        /// Its path.
        path: RawPath,
    },
    /// Makes a directory.
    MakeDir {
        /// Its path.
        path: String,
    },
    /// Gives a staged output a name that is free.
    Create {
        /// The name.
        path: RelPath,
        /// Which job of the stage.
        job: usize,
        /// The digest of its bytes.
        sha256: Digest,
        /// How many bytes it has.
        size: u64,
    },
    /// Gives a staged output the name of a recorded one.
    Replace {
        /// The name.
        path: RelPath,
        /// Which job of the stage.
        job: usize,
        /// The digest of its bytes.
        sha256: Digest,
        /// How many bytes it has.
        size: u64,
    },
}

impl Operation {
    /// Whether its path lies in the directory `dir`, or is it.
    pub fn is_within(&self, dir: &RawPath) -> bool {
        let path = match self {
            Operation::Remove { path } | Operation::RemoveDir { path } => path.as_bytes(),
            Operation::MakeDir { path } => path.as_bytes(),
            Operation::Create { path, .. } | Operation::Replace { path, .. } => path.as_str().as_bytes(),
        };
        path.strip_prefix(dir.as_bytes()).is_some_and(|rest| matches!(rest, [] | [b'/', ..]))
    }
}

/// A journal.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Journal {
    schema_version: u64,
    /// How far the command has come.
    pub phase: Phase,
    /// What kind it is.
    pub kind: Kind,
    /// The pipeline that it acts for.
    pub pipeline_id: String,
    /// The destination of that pipeline.
    pub destination_id: String,
    /// The source that is published.
    pub source_id: String,
    /// Its content digest.
    pub source_digest: Digest,
    /// When it began.
    pub started_at: Timestamp,
    /// Who holds the destination.
    pub holder: Holder,
    /// The token of its stage.
    pub stage: String,
    /// Whether outputs of this owner may not be those of its bundle, where only its source can make them so: a
    /// publication was cut short before.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dirty: bool,
    /// Where a forced replacement was cut short, what it may still take away beside what its operations name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forced: Option<BTreeSet<RawPath>>,
    /// What is done after the commit point, in this order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub operations: Vec<Operation>,
    /// Which job of the stage is the state that will stand, and its digest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<Target>,
}

/// The state that stands once the operations are done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Target {
    /// Which job of the stage it is.
    pub job: usize,
    /// The digest of its bytes.
    pub sha256: Digest,
}

/// What a journal is begun with.
pub struct Begin<'a> {
    /// What kind of command it is.
    pub kind: Kind,
    /// The pipeline.
    pub pipeline_id: &'a str,
    /// The destination.
    pub destination_id: &'a str,
    /// The source.
    pub source_id: &'a str,
    /// Its content digest.
    pub source_digest: Digest,
    /// When it begins.
    pub started_at: Timestamp,
    /// Who holds the destination.
    pub holder: Holder,
    /// The token of the stage.
    pub stage: &'a str,
    /// Whether the destination was dirty before.
    pub dirty: bool,
}

impl Journal {
    /// A journal in its first phase.
    pub fn begin(begin: Begin<'_>) -> Journal {
        Journal {
            schema_version: SCHEMA_VERSION,
            phase: Phase::Staging,
            kind: begin.kind,
            pipeline_id: begin.pipeline_id.to_owned(),
            destination_id: begin.destination_id.to_owned(),
            source_id: begin.source_id.to_owned(),
            source_digest: begin.source_digest,
            started_at: begin.started_at,
            holder: begin.holder,
            stage: begin.stage.to_owned(),
            dirty: begin.dirty,
            forced: None,
            operations: Vec::new(),
            target: None,
        }
    }

    /// The same past its commit point.
    #[must_use]
    pub fn commit(self, operations: Vec<Operation>, target: Target, is_forced: bool) -> Journal {
        let forced = is_forced.then(BTreeSet::new);
        Journal { phase: Phase::Committing, forced, operations, target: Some(target), ..self }
    }

    /// The same with every directory that its outputs need among those that it makes: since it was planned some may have
    /// been removed.
    #[must_use]
    pub fn with_directories(mut self) -> Journal {
        let is_output =
            |operation: &Operation| matches!(operation, Operation::Create { .. } | Operation::Replace { .. });
        let Some(at) = self.operations.iter().position(is_output) else { return self };
        let needed: BTreeSet<String> = self.written().flat_map(RelPath::ancestors).map(ToOwned::to_owned).collect();
        self.operations.splice(at..at, needed.into_iter().map(|path| Operation::MakeDir { path }));
        self
    }

    /// What stays of it for an owner whose outputs it has touched, once the state is true again: a mark that lets the
    /// owner's next publication write all of them anew.
    #[must_use]
    pub fn mark(&self, pipeline_id: &str, destination_id: &str) -> Journal {
        let own = (self.pipeline_id.as_str(), self.destination_id.as_str()) == (pipeline_id, destination_id);
        let paths = || self.removed().cloned().chain(self.replaced().map(|(path, _)| path.into())).collect();
        let begun = Journal::begin(Begin {
            kind: self.kind,
            pipeline_id,
            destination_id,
            source_id: &self.source_id,
            source_digest: self.source_digest,
            started_at: self.started_at.clone(),
            holder: self.holder.clone(),
            stage: &self.stage,
            dirty: true,
        });
        Journal { forced: self.forced.as_ref().filter(|_| own).map(|_| paths()), ..begun }
    }

    /// Whether its owner keeps a mark of it even where no output was touched.
    pub fn leaves_a_mark(&self) -> bool {
        self.dirty || self.forced.is_some()
    }

    /// The name of its file.
    pub fn name(&self) -> String {
        name(&self.pipeline_id, &self.destination_id)
    }

    /// A journal of deletes: nothing is staged for them, and what they leave is known once they are done.
    #[must_use]
    pub fn delete(self, operations: Vec<Operation>) -> Journal {
        Journal { phase: Phase::Committing, operations, ..self }
    }

    /// Reads a journal. The error says what is wrong with it.
    pub fn parse(bytes: &[u8]) -> Result<Journal, String> {
        let journal: Journal = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        match (journal.schema_version, journal.phase, journal.target) {
            (SCHEMA_VERSION, Phase::Committing, None) if journal.kind == Kind::Publish => {
                Err("past its commit point, and no target".to_owned())
            }
            (SCHEMA_VERSION, ..) if journal.leads_out() => Err("a directory that is not below the place".to_owned()),
            (SCHEMA_VERSION, ..) if !is_token(&journal.stage) => Err(format!("stage: {:?}", journal.stage)),
            (SCHEMA_VERSION, ..) => Ok(journal),
            (other, ..) => Err(format!("journal schema version {other} can't be read by this version")),
        }
    }

    /// Whether a directory that it makes is not below the place. What it removes is for the storage to look at: there
    /// are stores where such names are names like any other.
    fn leads_out(&self) -> bool {
        let leads_out = |path: &str| path.split('/').any(|segment| matches!(segment, "" | "." | ".."));
        let made = |operation: &Operation| matches!(operation, Operation::MakeDir { path } if leads_out(path));
        self.operations.iter().any(made)
    }

    /// The same, unless it is larger than one that can be read.
    pub fn to_file(&self) -> Result<Vec<u8>, Error> {
        let bytes = self.to_json();
        if bytes.len() as u64 > MAX_BYTES {
            let message =
                format!("what is to be done takes a journal of {} bytes, and one has at most {MAX_BYTES}", bytes.len());
            return Err(Error::new(Code::Unsupported, message).hint("remove some of what is there by hand first"));
        }
        Ok(bytes)
    }

    /// The journal as it is written.
    pub fn to_json(&self) -> Vec<u8> {
        // These types can't fail to serialise: no maps, no failing implementations.
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// The paths that it removes.
    pub fn removed(&self) -> impl Iterator<Item = &RawPath> {
        self.operations.iter().filter_map(|operation| match operation {
            Operation::Remove { path } => Some(path),
            _ => None,
        })
    }

    /// The paths that it creates or replaces.
    pub fn written(&self) -> impl Iterator<Item = &RelPath> {
        self.operations.iter().filter_map(|operation| match operation {
            Operation::Create { path, .. } | Operation::Replace { path, .. } => Some(path),
            _ => None,
        })
    }

    /// The paths that it replaces, and what it writes there.
    pub fn replaced(&self) -> impl Iterator<Item = (&RelPath, Fingerprint)> {
        self.operations.iter().filter_map(|operation| match operation {
            Operation::Replace { path, sha256, size, .. } => Some((path, Fingerprint { size: *size, sha256: *sha256 })),
            _ => None,
        })
    }

    /// The paths that it creates.
    pub fn created(&self) -> impl Iterator<Item = &RelPath> {
        self.operations.iter().filter_map(|operation| match operation {
            Operation::Create { path, .. } => Some(path),
            _ => None,
        })
    }
}

/// Tokens become names: nothing but letters and digits may stand in one.
fn is_token(text: &str) -> bool {
    !text.is_empty() && text.len() <= 64 && text.bytes().all(|b| b.is_ascii_alphanumeric())
}

/// The journal's name: `.distributor.journal-` and 16 hex digits of the SHA-256 of pipeline id, NUL, destination id.
pub fn name(pipeline_id: &str, destination_id: &str) -> String {
    let owner = Digest::of(format!("{pipeline_id}\0{destination_id}").as_bytes()).hex();
    format!("{JOURNAL_PREFIX}{}.json", &owner[..16])
}
