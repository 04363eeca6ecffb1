//! Small files at the root of a place: whole, durable, compared before they are replaced.

use std::fs::File;
use std::io::{self, Read, Write};

use super::Local;
use crate::digest::{Digest, pass};
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
        let mut bytes = Vec::new();
        file.take(limit).read_to_end(&mut bytes).map_err(|error| self.fail(name, &error))?;
        let version = Version(Digest::of(&bytes).to_string());
        Ok(Some(Small { bytes, version }))
    }

    /// The version of a small file, without holding the whole of it.
    fn version(&self, name: &str) -> Result<Option<Version>> {
        let Some(mut file) = self.open_small(name)? else { return Ok(None) };
        let passed = pass(&mut file, u64::MAX, |_| Ok(())).map_err(|error| self.fail(name, &error))?;
        Ok(Some(Version(passed.1.to_string())))
    }

    pub(super) fn write_small(&self, name: &str, bytes: &[u8], expected: Expected<'_>) -> Result<()> {
        if let Expected::Version(version) = expected {
            let there = self.version(name)?;
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
