//! Making a bundle: hashing what lies in a directory and writing its manifest.

use super::manifest::{FileEntry, MAX_BYTES, MAX_FILES, Manifest, SCHEMA_VERSION, content_digest};
use crate::digest::{Fingerprint, pass};
use crate::error::{Code, Detail, Error, Result};
use crate::host::Cancel;
use crate::id::{self, is_id};
use crate::path::{self, MANIFEST, RelPath};
use crate::pool;
use crate::storage::{Expected, Kind, Scope, Storage};
use crate::timestamp::Timestamp;

/// Makes the manifest of a directory that holds a bundle's files.
pub struct Maker<'a> {
    /// The directory.
    pub storage: &'a dyn Storage,
    /// The bundle's id.
    pub id: &'a str,
    /// The bundle's `created`.
    pub created: Timestamp,
    /// Whether a manifest that is there is replaced.
    pub force: bool,
    /// What can interrupt it.
    pub cancel: &'a Cancel,
}

impl Maker<'_> {
    /// Hashes every file below the directory in parallel and writes `manifest.json` last, whole or not at all.
    /// Refuses names that break the path rules, links and special files, each with its detail.
    pub fn make(self) -> Result<Manifest> {
        if !is_id(self.id) {
            let message = format!("--id {:?} is not {}", self.id, id::RULE);
            return Err(Error::new(Code::Usage, message));
        }
        match self.storage.get_small(MANIFEST, MAX_BYTES + 1) {
            Ok(None) => {}
            Ok(Some(there)) => self.may_replace(&there.bytes)?,
            Err(error) if error.code == Code::NotARegularFile => self.may_replace(b"")?,
            Err(error) => return Err(error),
        }
        let paths = self.paths()?;
        let files = self.hash(&paths)?;
        let digest = content_digest(&files);
        let manifest =
            Manifest { schema_version: SCHEMA_VERSION, id: self.id.to_owned(), digest, created: self.created, files };
        let text = manifest.to_json();
        if text.len() as u64 > MAX_BYTES {
            let message = format!("the manifest would have {} bytes; it may have {MAX_BYTES}", text.len());
            return Err(Error::new(Code::InvalidManifest, message).hint("make several bundles of it"));
        }
        self.cancel.check()?;
        self.storage.put_small(MANIFEST, text.as_bytes(), Expected::Any)?;
        Ok(manifest)
    }

    /// A manifest is replaced when that was asked for; any other file of that name never is.
    fn may_replace(&self, there: &[u8]) -> Result<()> {
        #[derive(serde::Deserialize)]
        struct Sign {
            #[serde(rename = "schema_version")]
            _schema_version: serde_json::Number,
            #[serde(rename = "files")]
            _files: Vec<serde::de::IgnoredAny>,
        }
        let place = self.storage.describe();
        if serde_json::from_slice::<Sign>(there).is_err() {
            let message = format!("{place}: {MANIFEST} is there, and is no manifest of a bundle");
            return Err(Error::new(Code::AlreadyExists, message)
                .hint("move it aside: a bundle can't hold a file of that name at its root"));
        }
        if self.force {
            return Ok(());
        }
        let message = format!("{place}: {MANIFEST} is there already");
        Err(Error::new(Code::AlreadyExists, message).hint("replace it with --force"))
    }

    fn paths(&self) -> Result<Vec<RelPath>> {
        let (mut paths, mut refused) = (Vec::new(), Vec::new());
        self.storage.list(Scope::Source, &mut |entry| {
            self.cancel.check()?;
            if entry.raw.as_bytes() == MANIFEST.as_bytes() || entry.kind == Kind::Directory {
                return Ok(());
            }
            match (entry.kind, entry.path) {
                (Kind::File, Some(path)) => paths.push(path),
                (kind, _) => refused.push(refusal(entry.raw.as_bytes(), kind)),
            }
            if paths.len() > MAX_FILES {
                let message = format!("{}: more than {MAX_FILES} files", self.storage.describe());
                return Err(Error::new(Code::InvalidBundle, message).hint("make several bundles of it"));
            }
            Ok(())
        })?;
        if let Some(first) = refused.first() {
            let more = if refused.len() > 1 { format!(" (and {} more)", refused.len() - 1) } else { String::new() };
            let message = format!("{}{more}", first.message);
            let hint = "rename or remove it, then run again";
            return Err(Error::new(Code::InvalidBundle, message).hint(hint).detail(refused));
        }
        if paths.is_empty() {
            let message = format!("{}: there is no file in it", self.storage.describe());
            return Err(Error::new(Code::InvalidBundle, message).hint("a bundle holds at least one file"));
        }
        paths.sort_unstable();
        Ok(paths)
    }

    fn hash(&self, paths: &[RelPath]) -> Result<Vec<FileEntry>> {
        let entry = |path: &RelPath| {
            self.cancel.check()?;
            let mut opened = self.storage.read(path)?;
            let passed = pass(&mut opened.body, u64::MAX, |bytes| self.cancel.go_on(bytes.len()))
                .map_err(|error| Error::io(path, &error));
            self.cancel.check()?;
            let Fingerprint { size, sha256 } = passed?;
            if size != opened.size {
                let message = format!("{path}: the file changed while it was read");
                return Err(Error::new(Code::SourceChanged, message).hint("write the files first, the manifest last"));
            }
            Ok(FileEntry { path: path.clone(), sha256, size })
        };
        pool::map(pool::cores(), paths, entry).into_iter().collect()
    }
}

fn refusal(raw: &[u8], kind: Kind) -> Detail {
    let path = path::escape(raw);
    let (code, message) = match (kind, RelPath::from_bytes(raw)) {
        (Kind::Link, _) => (Code::NotARegularFile, format!("{path}: a symbolic link can't be part of a bundle")),
        (Kind::Special, _) => (Code::NotARegularFile, format!("{path}: a special file can't be part of a bundle")),
        (_, Err(fault)) => (Code::InvalidBundle, format!("{path}: {fault}")),
        (_, Ok(_)) => (Code::InvalidBundle, format!("{path}: a published destination can't be part of a bundle")),
    };
    Detail::new(code, message, Some(path))
}
