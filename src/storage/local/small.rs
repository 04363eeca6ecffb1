//! Small files at the root of a place: whole, durable, compared before they are replaced.

use std::fs::{File, Metadata};
use std::io::{self, Read, Write};
use std::os::unix::fs::MetadataExt;

use super::Local;
use crate::error::{Code, Error, Result};
use crate::names::{self, JOURNAL_PREFIX, STAGE_PREFIX};
use crate::storage::{Expected, Small, Version};

impl Local {
    /// A small file, opened; `None` where there is none.
    fn open_small(&self, name: &str) -> Result<Option<File>> {
        let Some(dir) = self.try_dir()? else { return Ok(None) };
        match dir.open_file(name) {
            Ok(Some(file)) => Ok(Some(file)),
            Ok(None) => Err(Error::new(Code::NotARegularFile, format!("{name}: not a regular file"))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(self.fail(name, &error)),
        }
    }

    pub(super) fn read_small(&self, name: &str, limit: u64) -> Result<Option<Small>> {
        let Some(file) = self.open_small(name)? else { return Ok(None) };
        let read = || -> io::Result<Small> {
            let metadata = file.metadata()?;
            let mut bytes = Vec::with_capacity(usize::try_from(metadata.len().min(limit)).unwrap_or_default() + 1);
            (&file).take(limit).read_to_end(&mut bytes)?;
            Ok(Small { bytes, version: version_of(&metadata) })
        };
        read().map(Some).map_err(|error| self.fail(name, &error))
    }

    pub(super) fn write_small(&self, name: &str, bytes: &[u8], expected: Expected<'_>) -> Result<()> {
        if let Expected::Version(version) = expected {
            let there = match self.open_small(name)? {
                Some(file) => Some(version_of(&file.metadata().map_err(|error| self.fail(name, &error))?)),
                None => None,
            };
            if there.as_ref() != version {
                let message = format!("{}/{name}: it changed since it was read", self.describe_place());
                return Err(Error::new(Code::PreconditionFailed, message).hint("run again"));
            }
        }
        let dir = self.dir()?;
        let temporary = format!("{STAGE_PREFIX}{name}");
        let mode = if name.starts_with(JOURNAL_PREFIX) { 0o600 } else { 0o644 };
        let write = || {
            // What a killed process left there is overwritten by nobody else: it is removed, then created anew.
            dir.remove_file(&temporary)?;
            let mut file = dir.create(&temporary, mode)?;
            file.write_all(bytes)?;
            file.sync_all()?;
            dir.rename(&temporary, &dir, name)?;
            dir.sync()
        };
        write().map_err(|error| {
            let _ = dir.remove_file(&temporary);
            self.fail(name, &error)
        })
    }

    pub(super) fn list_own(&self, prefix: &str) -> Result<Vec<String>> {
        let Some(dir) = self.try_dir()? else { return Ok(Vec::new()) };
        let read = || -> io::Result<Vec<String>> {
            let mut found = Vec::new();
            for name in dir.names()? {
                let name = name?.bytes;
                if name.starts_with(prefix.as_bytes()) && names::is_own(&name) {
                    found.extend(String::from_utf8(name));
                }
            }
            found.sort_unstable();
            Ok(found)
        };
        read().map_err(|error| self.fail("", &error))
    }
}

/// Every writing of a small file makes a new one of that name: which one it is tells its version.
fn version_of(file: &Metadata) -> Version {
    let (made, changed) = ((file.mtime(), file.mtime_nsec()), (file.ctime(), file.ctime_nsec()));
    Version(format!("{}:{}:{}:{made:?}:{changed:?}", file.dev(), file.ino(), file.size()))
}
