//! The local file system, through directory handles only: a symbolic link planted below a root leads nowhere.

mod dir;
mod list;
mod stage;

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use dir::Dir;

use super::{Commit, Entry, Job, Met, Opened, STAGE_PREFIX, Stage, StageError, Storage};
use crate::error::{Code, Error, Result};
use crate::host::Cancel;
use crate::path::{self, BundlePath, RelPath};

/// The permission bits of what is published, whatever the umask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Modes {
    /// Of files.
    pub file: u32,
    /// Of directories.
    pub directory: u32,
}

impl Default for Modes {
    fn default() -> Modes {
        Modes { file: 0o644, directory: 0o755 }
    }
}

/// A place on the local file system.
pub struct Local {
    /// The configured root; a symbolic link there is resolved.
    root: PathBuf,
    /// The place, below the root.
    below: BundlePath,
    modes: Modes,
    /// The place's directory, once it was found.
    dir: OnceLock<Dir>,
}

impl Local {
    /// The place `root`. Nothing is touched.
    pub fn new(root: impl Into<PathBuf>, modes: Modes) -> Local {
        Local { root: root.into(), below: BundlePath::ROOT, modes, dir: OnceLock::new() }
    }

    fn path(&self) -> PathBuf {
        self.below.below().map_or(self.root.clone(), |below| self.root.join(below.as_str()))
    }

    fn fail(&self, name: &str, error: &io::Error) -> Error {
        let path = if name.is_empty() { self.path() } else { self.path().join(name) };
        Error::io(path::escape(path.as_os_str().as_encoded_bytes()), error)
    }

    fn open(&self) -> io::Result<Dir> {
        let root = Dir::open_root(&self.root)?;
        match self.below.below() {
            Some(below) => root.open_dir(below.as_str()),
            None => Ok(root),
        }
    }

    fn dir(&self) -> Result<&Dir> {
        self.try_dir()?.ok_or_else(|| self.fail("", &io::ErrorKind::NotFound.into()))
    }

    /// The place's directory, `None` where it is not there.
    fn try_dir(&self) -> Result<Option<&Dir>> {
        if let Some(dir) = self.dir.get() {
            return Ok(Some(dir));
        }
        match self.open() {
            Ok(dir) => Ok(Some(self.dir.get_or_init(|| dir))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(self.fail("", &error)),
        }
    }
}

impl Storage for Local {
    fn describe(&self) -> String {
        path::escape(self.path().as_os_str().as_encoded_bytes())
    }

    fn at(&self, path: &BundlePath) -> Box<dyn Storage> {
        let (root, below) = match (self.below.below(), path.below()) {
            (_, None) => (self.root.clone(), self.below.clone()),
            (None, Some(_)) => (self.root.clone(), path.clone()),
            (Some(_), Some(below)) => (self.path(), BundlePath::from(below.clone())),
        };
        Box::new(Local { root, below, modes: self.modes, dir: OnceLock::new() })
    }

    fn find(&self, marker: &str, visit: &mut dyn FnMut(&[u8], Met)) -> Result<()> {
        list::find(self.dir()?, marker, visit).map_err(|error| self.fail("", &error))
    }

    fn list(&self, visit: &mut dyn FnMut(Entry) -> Result<()>) -> Result<()> {
        let Some(dir) = self.try_dir()? else { return Ok(()) };
        list::list(dir, visit, &|name, error| self.fail(name, error))
    }

    fn read(&self, path: &RelPath) -> Result<Opened> {
        match self.dir()?.open_file(path.as_str()) {
            Ok(Some(file)) => opened(file).map_err(|error| self.fail(path.as_str(), &error)),
            Ok(None) => Err(not_regular(path)),
            // A file stands where a directory above it should be.
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => {
                Err(Error::new(Code::NotFound, format!("{path}: not found")))
            }
            Err(error) => Err(self.fail(path.as_str(), &error)),
        }
    }

    fn get_small(&self, name: &str, limit: u64) -> Result<Option<Vec<u8>>> {
        let fail = |error: io::Error| self.fail(name, &error);
        let Some(dir) = self.try_dir()? else { return Ok(None) };
        let file = match dir.open_file(name) {
            Ok(Some(file)) => file,
            Ok(None) => return Err(Error::new(Code::NotARegularFile, format!("{name}: not a regular file"))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(fail(error)),
        };
        let mut bytes = Vec::new();
        file.take(limit).read_to_end(&mut bytes).map_err(fail)?;
        Ok(Some(bytes))
    }

    fn put_small(&self, name: &str, bytes: &[u8]) -> Result<()> {
        let dir = self.dir()?;
        let temporary = format!("{STAGE_PREFIX}{name}");
        let write = || {
            // What a killed process left there is overwritten by nobody else: it is removed, then created anew.
            dir.remove_file(&temporary)?;
            let mut file = dir.create(&temporary, 0o644)?;
            file.write_all(bytes)?;
            file.sync_all()?;
            dir.rename(&temporary, dir, name)
        };
        write().map_err(|error| {
            let _ = dir.remove_file(&temporary);
            self.fail(name, &error)
        })
    }

    fn open_stage(&self, token: &str) -> Result<Stage> {
        self.new_stage(token)
    }

    fn stage_all(&self, stage: &Stage, jobs: &[Job<'_>], cancel: &Cancel) -> Vec<std::result::Result<(), StageError>> {
        self.fill_stage(stage, jobs, cancel)
    }

    fn commit_all(&self, stage: &Stage, commits: &[Commit<'_>]) -> Result<()> {
        self.empty_stage(stage, commits)
    }

    fn close_stage(&self, stage: Stage, undo: bool) -> Result<()> {
        self.drop_stage(&stage, undo)
    }

    fn make_dirs(&self, paths: &[&str]) -> Result<()> {
        let dir = self.dir()?;
        for path in paths {
            dir.make_dir(path, self.modes.directory).map_err(|error| self.fail(path, &error))?;
        }
        Ok(())
    }

    fn remove_many(&self, paths: &[&RelPath]) -> Result<()> {
        let Some(dir) = self.try_dir()? else { return Ok(()) };
        let mut parents = Parents::new(dir);
        for path in paths {
            match parents.of(path.as_str()) {
                Ok(parent) => parent.remove_file(path.file_name()),
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
                Err(error) => Err(error),
            }
            .map_err(|error| self.fail(path.as_str(), &error))?;
        }
        Ok(())
    }

    fn remove_empty_dirs(&self, paths: &[&str]) -> Result<()> {
        let Some(dir) = self.try_dir()? else { return Ok(()) };
        for path in paths {
            let (above, name) = path.rsplit_once('/').unwrap_or(("", path));
            let removed = match above {
                "" => dir.remove_dir(name),
                above => match dir.open_dir(above) {
                    Ok(parent) => parent.remove_dir(name),
                    Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
                    Err(error) => Err(error),
                },
            };
            removed.map_err(|error| self.fail(path, &error))?;
        }
        Ok(())
    }
}

fn opened(file: std::fs::File) -> io::Result<Opened> {
    Ok(Opened { size: file.metadata()?.len(), body: Box::new(file) })
}

fn not_regular(path: &RelPath) -> Error {
    Error::new(Code::NotARegularFile, format!("{path}: it, or a directory above it, is a link or special file"))
        .hint("put the file itself there")
}

/// The directories that hold a series of paths, each opened once.
struct Parents<'a> {
    root: &'a Dir,
    open: BTreeMap<String, Dir>,
}

impl<'a> Parents<'a> {
    fn new(root: &'a Dir) -> Parents<'a> {
        Parents { root, open: BTreeMap::new() }
    }

    fn of(&mut self, path: &str) -> io::Result<&Dir> {
        let Some((parent, _)) = path.rsplit_once('/') else { return Ok(self.root) };
        // Few enough at a time for any limit on open files; paths come mostly in order.
        if self.open.len() >= 64 && !self.open.contains_key(parent) {
            self.open.clear();
        }
        if !self.open.contains_key(parent) {
            self.open.insert(parent.to_owned(), self.root.open_dir(parent)?);
        }
        self.open.get(parent).ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

/// Splits a path that must exist into an existing directory and the levels that are missing below it.
fn existing(path: &Path) -> (PathBuf, Vec<String>) {
    let mut missing = Vec::new();
    let mut at = path.to_path_buf();
    while !at.exists() {
        let Some(name) = at.file_name().map(|name| name.to_string_lossy().into_owned()) else { break };
        missing.push(name);
        at.pop();
    }
    missing.reverse();
    (at, missing)
}
