//! The state of one destination bundle path.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::bundle::{Digest, Manifest};
use crate::path::RelPath;
use crate::timestamp::Timestamp;

/// How an output came to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutputKind {
    /// A copy of a source file.
    Source,
    /// Made from a source file by a transform.
    Generated,
}

/// A managed output.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OutputRecord {
    /// Where it lies at the destination.
    pub path: RelPath,
    /// How it came to be.
    pub kind: OutputKind,
    /// The source file it comes from.
    pub source_path: RelPath,
    /// The transform that made it; none for a copy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transform: Option<String>,
    /// Its public URL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The digest of its bytes.
    pub sha256: Digest,
    /// How many bytes it has.
    pub size: u64,
    /// When its path was first recorded.
    pub created_at: Timestamp,
    /// When it was last written.
    pub updated_at: Timestamp,
    /// Whose it is: the place of its owner in [`State::owners`].
    #[serde(skip)]
    pub owner: usize,
    /// The source that it comes from, where the state says so of each output.
    #[serde(skip)]
    pub source: Option<Arc<SourceIdentity>>,
}

/// A source, in short.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceIdentity {
    /// Its id.
    pub id: String,
    /// Its content digest.
    pub digest: Digest,
    /// When it was made.
    pub created: Timestamp,
}

impl From<&Manifest> for SourceIdentity {
    fn from(manifest: &Manifest) -> SourceIdentity {
        SourceIdentity { id: manifest.id.clone(), digest: manifest.digest, created: manifest.created.clone() }
    }
}

/// How many owners a state has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// One: schema version 2.
    SingleOwner,
    /// Several: schema version 3.
    SharedRoot,
}

/// Who publishes here, and what it published last.
#[derive(Clone, Debug)]
pub struct Owner {
    /// The pipeline.
    pub pipeline_id: String,
    /// The destination of that pipeline.
    pub destination_id: String,
    /// `replace` or `merge`.
    pub reconciliation: String,
    /// The manifest of the bundle that it published last.
    pub manifest: Manifest,
    /// Its public URL to start reading at.
    pub primary_url: Option<String>,
}

impl Owner {
    /// Pipeline and destination, as messages name them.
    pub fn label(&self) -> String {
        format!("{}/{}", self.pipeline_id, self.destination_id)
    }

    /// Whether it is this destination of this pipeline.
    pub fn is(&self, pipeline_id: &str, destination_id: &str) -> bool {
        self.pipeline_id == pipeline_id && self.destination_id == destination_id
    }
}

impl Mode {
    /// The schema version that is written.
    pub const fn schema_version(self) -> u64 {
        match self {
            Mode::SingleOwner => 2,
            Mode::SharedRoot => 3,
        }
    }
}

/// The state of a destination.
#[derive(Clone, Debug)]
pub struct State {
    /// How many owners it has.
    pub mode: Mode,
    /// The schema version that it was read as.
    pub schema_version: u64,
    /// The version of the program that wrote it.
    pub distributor_version: Option<String>,
    /// When it was last published to. Not written for a shared root.
    pub published_at: Timestamp,
    /// When this state was first written.
    pub created_at: Timestamp,
    /// When it was last written.
    pub updated_at: Timestamp,
    /// The owners: one, unless it is a shared root.
    pub owners: Vec<Owner>,
    /// What is managed.
    pub outputs: Vec<OutputRecord>,
}

impl State {
    /// The records by their paths.
    pub fn by_path(&self) -> BTreeMap<&RelPath, &OutputRecord> {
        self.outputs.iter().map(|record| (&record.path, record)).collect()
    }

    /// The place of this owner in [`State::owners`].
    pub fn owner(&self, pipeline_id: &str, destination_id: &str) -> Option<usize> {
        self.owners.iter().position(|owner| owner.is(pipeline_id, destination_id))
    }
}
