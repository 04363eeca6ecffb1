//! Checking a bundle against its manifest.

use std::collections::BTreeSet;

use super::manifest::{FileEntry, MAX_BYTES, Manifest};
use crate::digest::pass;
use crate::error::{Code, Detail, Error, Result, Warning};
use crate::host::Cancel;
use crate::path::{self, MANIFEST, RESERVED, RelPath};
use crate::pool;
use crate::storage::{Kind, Scope, Storage, mismatch, size_mismatch};
use crate::timestamp::Timestamp;

/// Reads the manifest of the bundle at `storage`. `not_found` where there is none.
pub fn load(storage: &dyn Storage) -> Result<Manifest> {
    // One byte over the limit is enough to know that it is too large.
    if let Some(small) = storage.get_small(MANIFEST, MAX_BYTES + 1)? {
        return Manifest::parse(&small.bytes);
    }
    // Says so where the directory itself is not there.
    storage.list(Scope::Source, &mut |_| Err(no_manifest(storage)))?;
    Err(no_manifest(storage))
}

fn no_manifest(storage: &dyn Storage) -> Error {
    Error::new(Code::NotFound, format!("{}: no {MANIFEST}: this is not a bundle yet", storage.describe()))
        .hint("write the manifest with distributor-bundle")
}

/// Checks that every listed file is a regular file of the listed size and digest, and returns what is wrong, in the
/// order of the manifest; no more of it where the place itself fails. Reads in parallel; fails only when interrupted.
pub fn verify(storage: &dyn Storage, manifest: &Manifest, cancel: &Cancel) -> Result<Vec<Detail>> {
    verify_files(storage, &manifest.files.iter().collect::<Vec<_>>(), cancel)
}

/// The same of some of the files.
pub fn verify_files(storage: &dyn Storage, files: &[&FileEntry], cancel: &Cancel) -> Result<Vec<Detail>> {
    let check = |file: &&FileEntry| {
        let passed = cancel.check().and_then(|()| pass_file(storage, file, |bytes| cancel.go_on(bytes.len())));
        passed.err().map(|error| finding(&file.path, error))
    };
    let results = pool::map_while(storage.reads(), files, check, |found| found.as_ref().is_none_or(is_of_the_file));
    cancel.check()?;
    Ok(results.into_iter().flatten().collect())
}

/// Whether a finding says nothing of other files. After any other they are not even tried: a server that does not answer
/// would be waited for again with each.
pub(crate) fn is_of_the_file(found: &Detail) -> bool {
    use Code::{DigestMismatch, MissingFile, NotARegularFile, PathTooLong, PermissionDenied, SizeMismatch};
    matches!(found.code, MissingFile | SizeMismatch | DigestMismatch | NotARegularFile | PermissionDenied | PathTooLong)
}

/// The bytes of a listed file, whole and right.
pub fn read_file(storage: &dyn Storage, file: &FileEntry, cancel: &Cancel) -> Result<Vec<u8>> {
    let mut all = Vec::with_capacity(usize::try_from(file.size).unwrap_or_default());
    pass_file(storage, file, |bytes| {
        all.extend_from_slice(bytes);
        cancel.go_on(bytes.len())
    })?;
    Ok(all)
}

/// What is wrong with the listed file `path`, as a report names it.
pub(crate) fn finding(path: &RelPath, error: Error) -> Detail {
    let code = if error.code == Code::NotFound { Code::MissingFile } else { error.code };
    let message = match code {
        Code::MissingFile => format!("{path}: the file is listed and not there"),
        _ => error.message,
    };
    Detail::new(code, message, Some(path.to_string()))
}

/// Passes the bytes of a listed file to `each` while they are checked.
pub(crate) fn pass_file(
    storage: &dyn Storage,
    file: &FileEntry,
    each: impl FnMut(&[u8]) -> std::io::Result<()>,
) -> Result<()> {
    let mut opened = storage.read(&file.path)?;
    if opened.size != file.size {
        return Err(size_mismatch(&file.path, file.size, opened.size));
    }
    let got = pass(&mut opened.body, file.size, each).map_err(|error| Error::io(&file.path, &error))?;
    mismatch(&file.path, &file.fingerprint(), &got)
}

/// The error of a bundle with these findings; `None` where there are none.
pub fn invalid_bundle(details: Vec<Detail>) -> Option<Error> {
    if details.is_empty() {
        return None;
    }
    if details.iter().all(|detail| detail.code == Code::InvalidMarkdown) {
        let hint = "save it as UTF-8, make it smaller, or leave it out of the transform's match";
        return Some(Error::of(Code::InvalidMarkdown, details).hint(hint));
    }
    let any = |codes: &[Code]| details.iter().any(|detail| codes.contains(&detail.code));
    let hint = if any(&[Code::PermissionDenied]) {
        "check the owner and mode of the bundle's files"
    } else if any(&[Code::SourceChanged]) {
        "run again when the producer has finished"
    } else if any(&[Code::MissingFile, Code::SizeMismatch, Code::DigestMismatch, Code::NotARegularFile]) {
        "make the bundle and its manifest anew, together"
    } else {
        "run again when the source can be read"
    };
    Some(Error::of(Code::InvalidBundle, details).hint(hint))
}

/// What the manifest alone is worth a warning for: names that fold together, a `created` in the future.
pub fn notes(manifest: &Manifest, now: &Timestamp) -> Vec<Warning> {
    let mut notes = Vec::new();
    let mut paths: Vec<&str> = manifest.files.iter().map(|file| file.path.as_str()).collect();
    paths.sort_unstable();
    for clash in path::folded(&paths) {
        let message = format!(
            "{:?} and {:?} are one name on file systems that fold case or normalise Unicode",
            clash.first, clash.second
        );
        notes.push(Warning::new(Code::PathCollision, message));
    }
    if manifest.created.is_far_ahead_of(now) {
        let message = format!(
            "created is {}, more than a day ahead of the clock ({now}): it would win against every later bundle",
            manifest.created
        );
        notes.push(Warning::new(Code::CreatedInFuture, message));
    }
    notes
}

/// A file that lies in a bundle and that its manifest does not list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unlisted {
    /// Its path, escaped where it is not text.
    pub path: String,
    /// What is to be said of it.
    pub message: String,
}

/// The files that lie in the bundle and that the manifest does not list. Names of ours are passed over.
pub fn unlisted(storage: &dyn Storage, manifest: &Manifest) -> Result<Vec<Unlisted>> {
    let listed: BTreeSet<&str> = manifest.files.iter().map(|file| file.path.as_str()).collect();
    let mut found = Vec::new();
    storage.list(Scope::Source, &mut |entry| {
        let known = entry.path.as_ref().is_some_and(|path| listed.contains(path.as_str()));
        let ours = entry.raw.as_bytes() == MANIFEST.as_bytes()
            || entry.raw.as_bytes().split(|b| *b == b'/').any(|segment| segment.starts_with(RESERVED.as_bytes()));
        let what = match entry.kind {
            Kind::Directory | Kind::Managed | Kind::Marker => return Ok(()),
            Kind::File => "file",
            Kind::Link => "symbolic link",
            Kind::Special => "special file",
            Kind::Closed => "directory",
        };
        if !known && !ours {
            let path = entry.raw.to_string();
            let message = format!("{path}: this {what} is not listed in the manifest and is never published");
            found.push(Unlisted { path, message: path::plain(&message) });
        }
        Ok(())
    })?;
    found.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    Ok(found)
}
