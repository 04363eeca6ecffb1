//! What validate, inspect and bundle report.

use serde::Serialize;

use super::Failure;
use super::text::{Text, count, size};
use crate::bundle::{Digest, Manifest};
use crate::timestamp::Timestamp;

/// A finding.
#[derive(Debug, Serialize)]
pub struct Problem {
    /// Its code.
    pub code: &'static str,
    /// What is wrong.
    pub message: String,
    /// What it concerns.
    pub path: Option<String>,
}

/// What distributor-validate found.
#[derive(Debug, Default, Serialize)]
pub struct ValidateBody {
    /// Why it could not look, where it could not.
    pub error: Option<Failure>,
    /// The bundles.
    pub bundles: Vec<CheckedBundle>,
}

/// A bundle that was checked.
#[derive(Debug, Serialize)]
pub struct CheckedBundle {
    /// Its path below the source root.
    pub bundle_path: String,
    /// Its id, where the manifest could be read.
    pub id: Option<String>,
    /// Whether it is valid.
    pub valid: bool,
    /// How many files the manifest lists.
    pub files: usize,
    /// The sum of their sizes.
    pub bytes: u64,
    /// What is wrong.
    pub errors: Vec<Problem>,
    /// What is worth knowing.
    pub warnings: Vec<Problem>,
}

/// What distributor-validate says of a configuration alone.
#[derive(Debug, Serialize)]
pub struct ConfigBody {
    /// Always null: an invalid configuration is no report.
    pub error: Option<Failure>,
    /// The bundles: none were looked at.
    pub bundles: Vec<CheckedBundle>,
    #[serde(skip)]
    /// The file.
    pub file: String,
    #[serde(skip)]
    /// How many pipelines it has.
    pub pipelines: usize,
    #[serde(skip)]
    /// How many destinations they have together.
    pub destinations: usize,
}

/// What distributor-inspect found.
#[derive(Debug, Default, Serialize)]
pub struct InspectBody {
    /// What failed first, where anything did.
    pub error: Option<Failure>,
    /// The bundles that could be read.
    pub bundles: Vec<InspectedBundle>,
}

/// A bundle as its manifest describes it.
#[derive(Debug, Serialize)]
pub struct InspectedBundle {
    /// Its path below the source root.
    pub bundle_path: String,
    /// Its id.
    pub id: String,
    /// Its content digest.
    pub digest: Digest,
    /// When it was made.
    pub created: Timestamp,
    /// The sum of its files' sizes.
    pub bytes: u64,
    /// Its files.
    pub files: Vec<InspectedFile>,
}

/// A file of a bundle.
#[derive(Debug, Serialize)]
pub struct InspectedFile {
    /// Its path.
    pub path: String,
    /// Its digest.
    pub sha256: Digest,
    /// Its size in bytes.
    pub size: u64,
}

impl InspectedBundle {
    /// What `manifest` says of the bundle at `path`.
    pub fn new(path: &str, manifest: &Manifest) -> InspectedBundle {
        let file = |file: &crate::bundle::FileEntry| InspectedFile {
            path: file.path.to_string(),
            sha256: file.sha256,
            size: file.size,
        };
        InspectedBundle {
            bundle_path: path.to_owned(),
            id: manifest.id.clone(),
            digest: manifest.digest,
            created: manifest.created.clone(),
            bytes: manifest.bytes(),
            files: manifest.files.iter().map(file).collect(),
        }
    }
}

/// What distributor-bundle made.
#[derive(Debug, Default, Serialize)]
pub struct BundleBody {
    /// Why it made none.
    pub error: Option<Failure>,
    /// The manifest; null where none was made.
    pub manifest: Option<Manifest>,
    /// The sum of the files' sizes.
    pub bytes: u64,
    #[serde(skip)]
    /// Where it was written.
    pub place: String,
}

impl Text for ValidateBody {
    fn text(&self, out: &mut String, verbose: bool) {
        for bundle in &self.bundles {
            let id = bundle.id.as_deref().unwrap_or("-");
            let word = if bundle.valid { "valid  " } else { "invalid" };
            *out += &format!(
                "{word}  {}  {id}  {}, {}\n",
                bundle.bundle_path,
                count(bundle.files, "file"),
                size(bundle.bytes)
            );
            let lines = bundle.errors.iter().map(|error| format!("{}: {}", error.code, error.message));
            super::text::list(out, lines.collect(), verbose);
        }
        if self.bundles.len() > 1 {
            let bad = self.bundles.iter().filter(|bundle| !bundle.valid).count();
            *out += &format!("{} valid, {bad} invalid\n", self.bundles.len() - bad);
        }
    }
}

impl Text for ConfigBody {
    fn text(&self, out: &mut String, _: bool) {
        *out += &format!(
            "valid  {}  {}, {}\n",
            self.file,
            count(self.pipelines, "pipeline"),
            count(self.destinations, "destination")
        );
    }
}

impl Text for InspectBody {
    fn text(&self, out: &mut String, _: bool) {
        for bundle in &self.bundles {
            *out += &format!(
                "bundle   {}\nid       {}\ncreated  {}\ndigest   {}\n",
                bundle.bundle_path, bundle.id, bundle.created, bundle.digest
            );
            *out += &format!("files    {}, {}\n", bundle.files.len(), size(bundle.bytes));
            for file in &bundle.files {
                *out += &format!("  {}  {:>10}  {}\n", file.sha256.hex(), file.size, file.path);
            }
        }
    }
}

impl Text for BundleBody {
    fn text(&self, out: &mut String, _: bool) {
        if let Some(manifest) = &self.manifest {
            *out += &format!(
                "{}  {}  {}, {}\n",
                self.place,
                manifest.id,
                count(manifest.files.len(), "file"),
                size(self.bytes)
            );
        }
    }
}
