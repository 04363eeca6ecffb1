//! The state of one destination bundle path.

use std::collections::BTreeMap;

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

/// Why a state file is not a state that can be gone by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It breaks a rule.
    Invalid(String),
    /// It has several owners.
    SharedRoot,
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
}

/// The state of a destination with one owner: schema version 2.
#[derive(Clone, Debug)]
pub struct State {
    /// The version of the program that wrote it.
    pub distributor_version: Option<String>,
    /// The pipeline that owns it.
    pub pipeline_id: String,
    /// The destination of that pipeline.
    pub destination_id: String,
    /// When it was last published to.
    pub published_at: Timestamp,
    /// When this state was first written.
    pub created_at: Timestamp,
    /// When it was last written.
    pub updated_at: Timestamp,
    /// `replace` or `merge`.
    pub reconciliation: String,
    /// The manifest of the bundle that is published.
    pub manifest: Manifest,
    /// The public URL to start reading at.
    pub primary_url: Option<String>,
    /// What is managed.
    pub outputs: Vec<OutputRecord>,
}

impl State {
    /// The records by their paths.
    pub fn by_path(&self) -> BTreeMap<&RelPath, &OutputRecord> {
        self.outputs.iter().map(|record| (&record.path, record)).collect()
    }
}
