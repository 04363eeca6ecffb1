//! The files of a bundle: a local source is read where they lie, those of a remote one are fetched once, and checked
//! while they arrive, however many destinations want them.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::staging::{Staging, create, fail, placed};
use crate::bundle::{self, FileEntry, Manifest, finding, invalid_bundle, is_of_the_file, pass_file};
use crate::error::{Detail, Error, Result};
use crate::host::Cancel;
use crate::pool;
use crate::storage::{Local, Modes, Storage};

/// What is fetched is nobody else's.
const PRIVATE: Modes = Modes { file: 0o600, directory: 0o700 };

/// What is known of a bundle's files, once for all who want them.
pub struct Checked {
    /// Whether they are as the manifest says, and where a copy of them lies.
    outcome: OnceLock<Result<Option<PathBuf>>>,
    wanted: AtomicUsize,
}

impl Checked {
    /// Nothing yet, for so many that want them.
    pub fn new(wanted: usize) -> Checked {
        Checked { outcome: OnceLock::new(), wanted: AtomicUsize::new(wanted) }
    }

    /// One of those that want them is done. The last one takes the copy away.
    pub fn leave(&self) {
        if self.wanted.fetch_sub(1, Ordering::SeqCst) == 1
            && let Some(Ok(Some(copy))) = self.outcome.get()
        {
            // What can't be removed now goes with the staging directory.
            let _ = fs::remove_dir_all(copy);
        }
    }
}

/// The files of a bundle, as one of those that want them sees them.
pub struct Files<'a> {
    source: &'a dyn Storage,
    manifest: &'a Manifest,
    checked: &'a Checked,
    staging: Option<&'a Staging>,
    cancel: &'a Cancel,
    copy: OnceLock<Local>,
}

impl<'a> Files<'a> {
    /// The files of `manifest` in `source`; those of a remote source come by way of `staging`.
    pub fn new(
        source: &'a dyn Storage,
        manifest: &'a Manifest,
        checked: &'a Checked,
        staging: Option<&'a Staging>,
        cancel: &'a Cancel,
    ) -> Files<'a> {
        Files { source, manifest, checked, staging, cancel, copy: OnceLock::new() }
    }

    /// Whether they are to be fetched before they are read.
    pub fn is_remote(&self) -> bool {
        self.staging.is_some()
    }

    /// Where they are read: the copy of a remote bundle once it is [`Files::ready`], else the source itself.
    pub fn place(&self) -> &dyn Storage {
        match self.checked.outcome.get() {
            Some(Ok(Some(copy))) => self.copy.get_or_init(|| Local::new(copy, PRIVATE)),
            _ => self.source,
        }
    }

    /// Fetches those of a remote source. Others that want them meanwhile wait, and get what this one got.
    pub fn ready(&self) -> Result<()> {
        if self.is_remote() { self.verify() } else { Ok(()) }
    }

    /// Checks every file against the manifest, once for all who ask; a remote one while it is fetched.
    pub fn verify(&self) -> Result<()> {
        let outcome = self.checked.outcome.get_or_init(|| self.check());
        self.cancel.check()?;
        outcome.as_ref().map(|_| ()).map_err(Error::clone)
    }

    fn check(&self) -> Result<Option<PathBuf>> {
        if let Some(staging) = self.staging {
            return self.fetch(staging).map(Some);
        }
        let wrong = bundle::verify(self.source, self.manifest, self.cancel)?;
        invalid_bundle(wrong).map_or(Ok(None), Err)
    }

    fn fetch(&self, staging: &Staging) -> Result<PathBuf> {
        let into = staging.directory()?;
        let fetched = self.fetch_into(&into);
        if fetched.is_err() {
            let _ = fs::remove_dir_all(&into);
        }
        fetched.map(|()| into)
    }

    fn fetch_into(&self, into: &Path) -> Result<()> {
        let dirs: BTreeSet<&str> = self.manifest.files.iter().filter_map(|file| file.path.parent()).collect();
        Local::new(into, PRIVATE).make_dirs(&dirs.into_iter().collect::<Vec<_>>()).map_err(placed)?;
        let goes_on = |fetched: &Result<Option<Detail>>| match fetched {
            Ok(found) => found.as_ref().is_none_or(is_of_the_file),
            Err(_) => false,
        };
        let fetch = |file: &FileEntry| self.fetch_file(into, file);
        let results = pool::map_while(self.source.reads(), &self.manifest.files, fetch, goes_on);
        self.cancel.check()?;
        let wrong: Vec<Option<Detail>> = results.into_iter().collect::<Result<_>>()?;
        invalid_bundle(wrong.into_iter().flatten().collect()).map_or(Ok(()), Err)
    }

    /// Fetches one file. What is wrong with it is the bundle's; an error is the staging directory's, or a signal.
    fn fetch_file(&self, into: &Path, file: &FileEntry) -> Result<Option<Detail>> {
        self.cancel.check()?;
        let path = into.join(file.path.as_str());
        let mut copy = create(&path).map_err(|error| fail(&path, &error))?;
        // Reading and writing share one pass; which of the two failed is kept aside.
        let mut written = Ok(());
        let passed = pass_file(self.source, file, |bytes| {
            let _ = self.cancel.go_on(bytes.len());
            let mut write = || copy.write_all(bytes).map_err(|error| fail(&path, &error));
            written = self.cancel.check().and_then(|()| write());
            written.as_ref().map_or_else(|_| Err(io::ErrorKind::Other.into()), |()| Ok(()))
        });
        written?;
        Ok(passed.err().map(|error| finding(&file.path, error)))
    }
}
