//! The manifest: what a bundle holds.

use serde::{Deserialize, Deserializer, Serialize};

use crate::digest::{Digest, Fingerprint, Hasher, not_a_digest};
use crate::error::{Code, Detail, Error, Result};
use crate::id::{self, is_id};
use crate::json::{self, Object};
use crate::path::{self, RelPath};
use crate::timestamp::Timestamp;

/// The manifest schema that this version reads and writes.
pub const SCHEMA_VERSION: u64 = 1;
/// The largest manifest, in bytes.
pub const MAX_BYTES: u64 = 16 * 1024 * 1024;
/// The most files of a bundle.
pub const MAX_FILES: usize = 100_000;
/// The largest size of a file, in bytes.
pub const MAX_SIZE: u64 = i64::MAX.unsigned_abs();

/// A valid manifest.
#[derive(Clone, Debug, Serialize)]
pub struct Manifest {
    /// Always 1.
    pub schema_version: u64,
    /// The source's id.
    pub id: String,
    /// The content digest.
    pub digest: Digest,
    /// When the producer made it.
    pub created: Timestamp,
    /// The files, as they were listed.
    pub files: Vec<FileEntry>,
}

/// A file of a bundle.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct FileEntry {
    /// Where it lies in the bundle.
    pub path: RelPath,
    /// The SHA-256 of its bytes.
    pub sha256: Digest,
    /// How many bytes it has.
    pub size: u64,
}

impl FileEntry {
    /// What its bytes must be.
    pub fn fingerprint(&self) -> Fingerprint {
        Fingerprint { size: self.size, sha256: self.sha256 }
    }
}

/// The content digest: SHA-256 over a line `<64 hex><two spaces><path><LF>` for each file, sorted by the path's bytes.
pub fn content_digest(files: &[FileEntry]) -> Digest {
    let mut sorted: Vec<&FileEntry> = files.iter().collect();
    sorted.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    let (mut hasher, mut line) = (Hasher::default(), Vec::new());
    for file in sorted {
        line.clear();
        line.extend_from_slice(&file.sha256.hex_digits());
        line.extend_from_slice(b"  ");
        line.extend_from_slice(file.path.as_str().as_bytes());
        line.push(b'\n');
        hasher.update(&line);
    }
    hasher.finish()
}

/// A value that was read whether or not it keeps its rules, so that all problems can be told at once.
struct Loose<T>(std::result::Result<T, String>);

impl<'de> Deserialize<'de> for Loose<RelPath> {
    fn deserialize<D: Deserializer<'de>>(d: D) -> std::result::Result<Self, D::Error> {
        let read = |text: &str| RelPath::parse(text).map_err(|fault| format!("{text:?}: {fault}"));
        json::from_text(d, |text| Ok(Loose(read(text))))
    }
}

impl<'de> Deserialize<'de> for Loose<Digest> {
    fn deserialize<D: Deserializer<'de>>(d: D) -> std::result::Result<Self, D::Error> {
        json::from_text(d, |text| Ok(Loose(Digest::parse(text).ok_or_else(|| not_a_digest(text)))))
    }
}

impl<'de> Deserialize<'de> for Loose<Timestamp> {
    fn deserialize<D: Deserializer<'de>>(d: D) -> std::result::Result<Self, D::Error> {
        json::from_text(d, |text| Ok(Loose(Timestamp::parse(text))))
    }
}

/// The manifest's fields as they stand.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw {
    schema_version: serde_json::Number,
    id: String,
    digest: Loose<Digest>,
    created: Loose<Timestamp>,
    files: Vec<Object<RawFile>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawFile {
    path: Loose<RelPath>,
    sha256: Loose<Digest>,
    size: serde_json::Number,
}

/// What is wrong, gathered.
#[derive(Default)]
struct Problems(Vec<Detail>);

impl Problems {
    fn add(&mut self, code: Code, message: impl Into<String>) {
        self.0.push(Detail::new(code, message, Some(path::MANIFEST.to_owned())));
    }

    fn rule(&mut self, message: impl Into<String>) {
        self.add(Code::InvalidManifest, message);
    }

    fn take<T>(&mut self, place: impl Fn() -> String, value: Loose<T>) -> Option<T> {
        value.0.map_err(|message| self.rule(format!("{}: {message}", place()))).ok()
    }
}

impl Manifest {
    /// Reads a manifest and checks every rule of it. The error has one detail a problem, with the code
    /// `invalid_manifest` or `content_digest_mismatch`.
    pub fn parse(bytes: &[u8]) -> Result<Manifest> {
        read(bytes).map_err(|problems| invalid(problems.0))
    }

    /// The sum of the files' sizes.
    pub fn bytes(&self) -> u64 {
        self.files.iter().fold(0, |sum: u64, file| sum.saturating_add(file.size))
    }

    /// Whether two manifests are the same, the order of `files` and the writing of `created` aside.
    pub fn matches(&self, other: &Manifest) -> bool {
        let sorted = |manifest: &Manifest| {
            let mut files = manifest.files.clone();
            files.sort_unstable();
            files
        };
        self.schema_version == other.schema_version
            && self.id == other.id
            && self.digest == other.digest
            && self.created == other.created
            && self.files.len() == other.files.len()
            && (self.files == other.files || sorted(self) == sorted(other))
    }

    /// The manifest as it is written to `manifest.json`.
    pub fn to_json(&self) -> String {
        json::pretty(self)
    }
}

impl<'de> Deserialize<'de> for Manifest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Manifest, D::Error> {
        check(Object::<Raw>::deserialize(deserializer)?.0).map_err(|problems| {
            let first = problems.0.into_iter().next().map(|detail| detail.message).unwrap_or_default();
            serde::de::Error::custom(format!("manifest: {first}"))
        })
    }
}

fn invalid(details: Vec<Detail>) -> Error {
    let message = match details.as_slice() {
        [one] => one.message.clone(),
        [first, rest @ ..] => format!("{} (and {} more)", first.message, rest.len()),
        [] => String::new(),
    };
    let mismatch = details.iter().all(|detail| detail.code == Code::ContentDigestMismatch);
    let code = if mismatch { Code::ContentDigestMismatch } else { Code::InvalidManifest };
    Error::new(code, format!("{}: {message}", path::MANIFEST))
        .hint("make it anew with distributor-bundle --force")
        .detail(details)
}

fn read(bytes: &[u8]) -> std::result::Result<Manifest, Problems> {
    let mut problems = Problems::default();
    if bytes.len() as u64 > MAX_BYTES {
        problems.rule(format!("larger than {MAX_BYTES} bytes"));
        return Err(problems);
    }
    match std::str::from_utf8(bytes) {
        Ok(text) if text.starts_with('\u{feff}') => {
            problems.rule("begins with a byte-order mark: write it as plain UTF-8");
        }
        Ok(text) => match serde_json::from_str::<Object<Raw>>(text) {
            Ok(raw) => return check(raw.0),
            Err(error) => problems.rule(version_first(text).unwrap_or_else(|| json::fault(&error))),
        },
        Err(error) => problems.rule(json::not_utf8(error)),
    }
    Err(problems)
}

/// A manifest of another schema may have other fields: then its version is the thing to tell.
fn version_first(text: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct Version {
        schema_version: serde_json::Number,
    }
    let version = serde_json::from_str::<Version>(text).ok()?.schema_version;
    (version.as_u64() != Some(SCHEMA_VERSION)).then(|| unsupported(&version))
}

fn unsupported(version: &serde_json::Number) -> String {
    format!("manifest schema version {version} is not supported (this version reads {SCHEMA_VERSION})")
}

fn check(raw: Raw) -> std::result::Result<Manifest, Problems> {
    let mut problems = Problems::default();
    if raw.schema_version.as_u64() != Some(SCHEMA_VERSION) {
        problems.rule(unsupported(&raw.schema_version));
        return Err(problems);
    }
    if !is_id(&raw.id) {
        problems.rule(format!("id: {:?} is not {}", raw.id, id::RULE));
    }
    let digest = problems.take(|| "digest".to_owned(), raw.digest);
    let created = problems.take(|| "created".to_owned(), raw.created);
    if raw.files.is_empty() || raw.files.len() > MAX_FILES {
        problems.rule(format!("files: {} entries; a bundle has 1 to {MAX_FILES}", raw.files.len()));
        return Err(problems);
    }
    let files: Vec<FileEntry> =
        raw.files.into_iter().enumerate().filter_map(|(at, file)| check_file(&mut problems, at, file.0)).collect();
    check_paths(&mut problems, &files);
    let (Some(digest), Some(created)) = (digest, created) else { return Err(problems) };
    if problems.0.is_empty() {
        let right = content_digest(&files);
        if right != digest {
            problems.add(
                Code::ContentDigestMismatch,
                format!("digest: {digest} is not the digest of the files listed, which is {right}"),
            );
        }
    }
    if problems.0.is_empty() {
        Ok(Manifest { schema_version: SCHEMA_VERSION, id: raw.id, digest, created, files })
    } else {
        Err(problems)
    }
}

fn check_file(problems: &mut Problems, at: usize, file: RawFile) -> Option<FileEntry> {
    let place = |field: &str| format!("files[{at}].{field}");
    let path = problems.take(|| place("path"), file.path);
    let sha256 = problems.take(|| place("sha256"), file.sha256);
    let size = file.size.as_u64().filter(|size| *size <= MAX_SIZE);
    if size.is_none() {
        problems.rule(format!("{}: {} is not a whole number of bytes from 0 to {MAX_SIZE}", place("size"), file.size));
    }
    Some(FileEntry { path: path?, sha256: sha256?, size: size? })
}

fn check_paths(problems: &mut Problems, files: &[FileEntry]) {
    let mut sorted: Vec<&str> = files.iter().map(|file| file.path.as_str()).collect();
    sorted.sort_unstable();
    for same in sorted.chunk_by(|a, b| a == b).filter(|same| same.len() > 1) {
        problems.rule(format!("files: {:?} is listed {} times", same[0], same.len()));
    }
    sorted.dedup();
    for clash in path::nested(&sorted) {
        problems.rule(format!("files: {:?} is listed as a file and is a directory of {:?}", clash.first, clash.second));
    }
}
