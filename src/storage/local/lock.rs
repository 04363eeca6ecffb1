//! The lock of a place: `flock` on a file of ours, which is unlinked while it is held.

use std::fs::File;
use std::io::{self, Write};
use std::time::{Duration, Instant};

use rustix::io::Errno;

use super::Local;
use super::dir::Dir;
use crate::error::{Code, Error, Result};
use crate::names::LOCK;
use crate::storage::Guard;

/// How long between two attempts, at least and at most: spread so that many that wait don't step in one rhythm.
const PAUSE: (u64, u64) = (20, 100);

/// How often a directory may vanish between making and opening it before that is taken for what it seems.
const PATIENCE: usize = 50;

struct Held {
    local: Local,
    file: File,
    made: usize,
}

impl Local {
    pub(super) fn acquire(&self, holder: &[u8], waiting: &dyn Fn(Duration) -> Result<()>) -> Result<Box<dyn Guard>> {
        let (begun, mut made, mut vanished) = (Instant::now(), 0, 0);
        loop {
            match self.attempt(holder, &mut made) {
                Ok(Some(file)) => return Ok(Box::new(Held { local: self.view(), file, made })),
                Ok(None) => {}
                // Who held it took the directory back while it was empty: it is made anew.
                Err(error) if error.kind() == io::ErrorKind::NotFound && vanished < PATIENCE => vanished += 1,
                Err(error) => {
                    self.unmake(made);
                    return Err(self.not_locked(&error));
                }
            }
            if let Err(error) = waiting(begun.elapsed()) {
                self.unmake(made);
                return Err(error);
            }
            std::thread::sleep(Duration::from_millis(PAUSE.0 + jitter(PAUSE.1 - PAUSE.0)));
        }
    }

    fn not_locked(&self, error: &io::Error) -> Error {
        // A link, a FIFO, a directory: what was opened, or was not, can't be locked.
        if [Errno::LOOP, Errno::ISDIR].iter().any(|errno| error.raw_os_error() == Some(errno.raw_os_error())) {
            return self.no_lock_file();
        }
        self.fail(LOCK, error)
    }

    pub(super) fn no_lock_file(&self) -> Error {
        let message = format!("{}/{LOCK}: not a regular file", self.describe_place());
        Error::new(Code::NotARegularFile, message).hint("move it aside, then run again")
    }

    fn attempt(&self, holder: &[u8], made: &mut usize) -> io::Result<Option<File>> {
        let (dir, levels) = self.make_place()?;
        *made += levels;
        let mut file = dir.open_lock(LOCK)?;
        if !Dir::try_lock(&file)? {
            return Ok(None);
        }
        // The file may have been unlinked, or the whole directory, between opening and locking it.
        let now = self.open()?;
        if !now.is_same(LOCK, &file)? {
            return Ok(None);
        }
        file.set_len(0)?;
        file.write_all(holder)?;
        self.remember(now);
        Ok(Some(file))
    }
}

/// Something below `most`, different from process to process.
fn jitter(most: u64) -> u64 {
    use std::hash::{BuildHasher, Hasher};
    std::collections::hash_map::RandomState::new().build_hasher().finish() % most.max(1)
}

impl Guard for Held {
    fn check(&self) -> Result<()> {
        match self.local.open().and_then(|dir| dir.is_same(LOCK, &self.file)) {
            Ok(true) => Ok(()),
            _ => Err(Error::new(Code::LockLost, format!("{}: the lock file is gone", self.local.describe_place()))
                .hint("somebody removed it: run again")),
        }
    }

    fn release(self: Box<Self>, mark: bool) -> Result<()> {
        if !mark {
            let dir = self.local.open().map_err(|error| self.local.fail("", &error))?;
            dir.remove_file(LOCK).map_err(|error| self.local.fail(LOCK, &error))?;
        }
        self.local.unmake(self.made);
        Ok(())
    }
}
