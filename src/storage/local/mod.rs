//! The local file system, through directory handles only: a symbolic link planted below a root leads nowhere.

mod dir;
mod list;
mod lock;
mod parents;
mod small;
mod stage;

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use dir::Dir;
use parents::Parents;

use super::{
    Above, Commit, Entry, Expected, Guard, Job, Met, Modes, Opened, Recovery, Scope, Small, Stage, StageError, Storage,
};
use crate::digest::Fingerprint;
use crate::error::{Code, Error, Result};
use crate::host::Cancel;
use crate::names::{LOCK, STAGE_PREFIX};
use crate::path::{self, BundlePath, RawPath, RelPath};

/// Up to how many files or directories are made durable one by one; beyond that the file system is, as a whole.
const FEW: usize = 64;

/// The system's own error, for its own words.
const NOT_FOUND: rustix::io::Errno = rustix::io::Errno::NOENT;

/// A place on the local file system.
pub struct Local {
    /// The configured root; a symbolic link there is resolved.
    root: PathBuf,
    /// The place, below the root.
    below: BundlePath,
    modes: Modes,
    /// The place's directory, once it was found.
    dir: RwLock<Option<Arc<Dir>>>,
}

impl Local {
    /// The place `root`. Nothing is touched.
    pub fn new(root: impl Into<PathBuf>, modes: Modes) -> Local {
        Local { root: root.into(), below: BundlePath::ROOT, modes, dir: RwLock::default() }
    }

    fn path(&self) -> PathBuf {
        self.below.below().map_or(self.root.clone(), |below| self.root.join(below.as_str()))
    }

    fn fail(&self, name: impl AsRef<str>, error: &io::Error) -> Error {
        let name = name.as_ref();
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

    fn dir(&self) -> Result<Arc<Dir>> {
        self.try_dir()?.ok_or_else(|| self.fail("", &NOT_FOUND.into()))
    }

    /// The place's directory, `None` where it is not there.
    fn try_dir(&self) -> Result<Option<Arc<Dir>>> {
        if let Some(dir) = self.dir.read().unwrap_or_else(PoisonError::into_inner).clone() {
            return Ok(Some(dir));
        }
        match self.open() {
            Ok(dir) => Ok(Some(self.remember(dir))),
            // A link that leads nowhere is there, and no directory can be made of it.
            Err(error) if error.kind() == io::ErrorKind::NotFound && leads_nowhere(&self.root) => {
                Err(self.fail("", &rustix::io::Errno::NOTDIR.into()))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            // A link below the root, where links are not followed.
            Err(error) if is_link(&error) => Err(self.fail("", &rustix::io::Errno::NOTDIR.into())),
            Err(error) => Err(self.fail("", &error)),
        }
    }

    fn remember(&self, dir: Dir) -> Arc<Dir> {
        let dir = Arc::new(dir);
        *self.dir.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&dir));
        dir
    }

    /// Another view on the same place.
    fn view(&self) -> Local {
        Local { root: self.root.clone(), below: self.below.clone(), modes: self.modes, dir: RwLock::default() }
    }

    fn describe_place(&self) -> String {
        path::escape(self.path().as_os_str().as_encoded_bytes())
    }

    /// Opens the place's directory, making what is missing of it; says how many levels were made.
    fn make_place(&self) -> io::Result<(Dir, usize)> {
        let (above, missing) = existing(&self.root);
        let (mut dir, mut made) = (Dir::open_root(&above)?, 0);
        for level in &missing {
            made += usize::from(dir.make_one(level, self.modes.directory)?);
            dir = dir.open_dir(level)?;
        }
        if let Some(below) = self.below.below() {
            let (place, levels) = dir.make_dir(below.as_str(), self.modes.directory)?;
            (dir, made) = (place, made + levels);
        }
        Ok((dir, made))
    }

    /// Takes back directories that were made for a place, as far as they are empty.
    fn unmake(&self, levels: usize) {
        let mut path = self.path();
        for _ in 0..levels {
            let (Some(parent), Some(name)) = (path.parent(), path.file_name().and_then(|name| name.to_str())) else {
                return;
            };
            if !Dir::open_root(parent).and_then(|dir| dir.remove_dir(name)).unwrap_or(false) {
                return;
            }
            path.pop();
        }
    }

    /// What `work` makes of each path in the directory that holds it; `gone` where that is not there.
    fn in_parents<'a, T: Clone>(
        &self,
        paths: impl Iterator<Item = &'a [u8]>,
        work: impl Fn(&Dir, &[u8]) -> io::Result<T>,
        gone: &T,
    ) -> Vec<Result<T>> {
        let dir = match self.try_dir() {
            Ok(Some(dir)) => dir,
            Ok(None) => return paths.map(|_| Ok(gone.clone())).collect(),
            Err(error) => return paths.map(|_| Err(error.clone())).collect(),
        };
        let mut parents = Parents::new(&dir);
        let one = |path: &[u8]| {
            let at = path.iter().rposition(|byte| *byte == b'/');
            let (above, name) = at.map_or((&[][..], path), |at| (&path[..at], &path[at + 1..]));
            match parents.of(above) {
                Ok(parent) => work(parent, name),
                Err(error) if is_gone(&error) => Ok(gone.clone()),
                Err(error) => Err(error),
            }
            .map_err(|error| self.fail(path::escape(path), &error))
        };
        paths.map(one).collect()
    }
}

impl Storage for Local {
    fn describe(&self) -> String {
        self.describe_place()
    }

    fn recovery(&self) -> Recovery {
        Recovery::Redo
    }

    fn at(&self, path: &BundlePath) -> Box<dyn Storage> {
        let (root, below) = match (self.below.below(), path.below()) {
            (_, None) => (self.root.clone(), self.below.clone()),
            (None, Some(_)) => (self.root.clone(), path.clone()),
            (Some(_), Some(below)) => (self.path(), BundlePath::from(below.clone())),
        };
        Box::new(Local { root, below, modes: self.modes, dir: RwLock::default() })
    }

    fn find(&self, marker: &str, visit: &mut dyn FnMut(&[u8], Met)) -> Result<()> {
        list::find(&*self.dir()?, marker, visit).map_err(|error| self.fail("", &error))
    }

    fn list(&self, scope: Scope, visit: &mut dyn FnMut(Entry) -> Result<()>) -> Result<()> {
        let dir = match scope {
            Scope::Source => Some(self.dir()?),
            Scope::Destination => self.try_dir()?,
        };
        let Some(dir) = dir else { return Ok(()) };
        list::list(&dir, scope, visit, &|name, error| self.fail(name, error))
    }

    fn above(&self, name: &str, limit: u64) -> Vec<Above> {
        let Ok(here) = self.path().canonicalize() else { return Vec::new() };
        let of = |dir: &Path| {
            let file = Dir::open_root(dir).ok()?.open_file(name).ok()??;
            let mut bytes = Vec::new();
            file.take(limit).read_to_end(&mut bytes).ok()?;
            let path = here.strip_prefix(dir).ok()?.to_str()?.to_owned();
            Some(Above { place: path::escape(dir.as_os_str().as_encoded_bytes()), path, bytes })
        };
        here.ancestors().skip(1).filter_map(of).collect()
    }

    fn read(&self, path: &RelPath) -> Result<Opened<'static>> {
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

    fn get_small(&self, name: &str, limit: u64) -> Result<Option<Small>> {
        self.read_small(name, limit)
    }

    fn put_small(&self, name: &str, bytes: &[u8], expected: Expected<'_>) -> Result<()> {
        self.write_small(name, bytes, expected)
    }

    fn remove_small(&self, name: &str) -> Result<()> {
        let Some(dir) = self.try_dir()? else { return Ok(()) };
        dir.remove_file(name).and_then(|()| dir.sync()).map_err(|error| self.fail(name, &error))
    }

    fn own_names(&self, prefix: &str) -> Result<Vec<String>> {
        self.list_own(prefix)
    }

    fn disturbed(&self, journal: &str) -> Result<bool> {
        let Some(dir) = self.try_dir()? else { return Ok(false) };
        let there = |name: &str| dir.kind(name).map(|kind| kind.is_some()).map_err(|error| self.fail(name, &error));
        Ok(there(LOCK)? || there(journal)?)
    }

    fn lock(&self, holder: &[u8], waiting: &dyn Fn(Duration) -> Result<()>) -> Result<Box<dyn Guard>> {
        self.acquire(holder, waiting)
    }

    fn is_locked(&self) -> Result<bool> {
        let Some(dir) = self.try_dir()? else { return Ok(false) };
        match dir.open_file(LOCK) {
            Ok(Some(file)) => Dir::is_locked(&file).map_err(|error| self.fail(LOCK, &error)),
            Ok(None) => Err(self.no_lock_file()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(self.fail(LOCK, &error)),
        }
    }

    fn sweep_stages(&self, keep: &[Stage]) -> Result<()> {
        let keep: Vec<String> = keep.iter().map(Stage::name).collect();
        for name in self.own_names(STAGE_PREFIX)?.iter().filter(|name| !keep.contains(name)) {
            self.sweep(name)?;
        }
        Ok(())
    }

    fn open_stage(&self, stage: &Stage) -> Result<()> {
        self.new_stage(stage)
    }

    fn stage_all(
        &self,
        stage: &Stage,
        first: usize,
        jobs: &[Job<'_>],
        cancel: &Cancel,
    ) -> Vec<std::result::Result<Fingerprint, StageError>> {
        self.fill_stage(stage, first, jobs, cancel)
    }

    fn flush_stage(&self, stage: &Stage, jobs: usize) -> Result<()> {
        self.sync_stage(stage, jobs)
    }

    fn staged(&self, stage: &Stage, job: usize, limit: u64) -> Result<Option<Vec<u8>>> {
        self.read_staged(stage, job, limit)
    }

    fn commit_all(&self, stage: &Stage, _: &[Job<'_>], commits: &[Commit<'_>]) -> Result<()> {
        self.empty_stage(stage, commits)
    }

    fn wrote(&self, _: &Stage, paths: &[&RelPath]) -> Result<Vec<bool>> {
        Ok(vec![false; paths.len()])
    }

    fn remove_created(&self, _: &Stage, _: &[&RelPath]) -> Result<()> {
        Ok(())
    }

    fn close_stage(&self, stage: &Stage) -> Result<()> {
        self.sweep(&stage.name())
    }

    fn make_dirs(&self, paths: &[&str]) -> Result<()> {
        let dir = self.dir()?;
        for path in paths {
            dir.make_dir(path, self.modes.directory).map_err(|error| self.refused(path, &error))?;
        }
        Ok(())
    }

    fn exist_many(&self, paths: &[&RelPath]) -> Result<Vec<bool>> {
        let look = |dir: &Dir, name: &[u8]| Ok(dir.kind(name)?.is_some());
        self.in_parents(paths.iter().map(|path| path.as_str().as_bytes()), look, &false).into_iter().collect()
    }

    fn remove_many(&self, paths: &[&RawPath]) -> Vec<Result<()>> {
        self.in_parents(paths.iter().map(|path| path.as_bytes()), |dir, name| dir.remove_file(name), &())
    }

    fn remove_empty_dirs(&self, paths: &[&RawPath]) -> Result<()> {
        for path in paths {
            // One at a time: a handle on a directory that goes is of no use for the next.
            let one = std::iter::once(path.as_bytes());
            let removed = self.in_parents(one, |dir, name| dir.remove_dir(name).map(|_| ()), &());
            removed.into_iter().collect::<Result<()>>()?;
        }
        Ok(())
    }

    fn check_writable(&self, paths: &[&[u8]]) -> Result<()> {
        let Some(dir) = self.try_dir()? else { return Ok(()) };
        for path in paths {
            let writable =
                if path.is_empty() { dir.is_writable() } else { dir.open_dir(path).and_then(|d| d.is_writable()) };
            match writable {
                Ok(true) => {}
                Ok(false) => return Err(self.fail(path::escape(path), &io::ErrorKind::PermissionDenied.into())),
                Err(error) if is_gone(&error) => {}
                Err(error) => return Err(self.fail(path::escape(path), &error)),
            }
        }
        Ok(())
    }

    fn flush_dirs(&self, paths: &[&[u8]]) -> Result<()> {
        let Some(dir) = self.try_dir()? else { return Ok(()) };
        if paths.len() > FEW {
            return dir.sync_all().map_err(|error| self.fail("", &error));
        }
        for path in paths {
            let synced = if path.is_empty() { dir.sync() } else { dir.open_dir(path).and_then(|dir| dir.sync()) };
            match synced {
                Err(error) if is_gone(&error) => {}
                synced => synced.map_err(|error| self.fail(path::escape(path), &error))?,
            }
        }
        Ok(())
    }
}

/// Whether a path is gone: it is not there, or a file or a link stands where a directory above it was.
fn is_gone(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) || is_link(error)
}

/// Whether a link stood where none is followed.
fn is_link(error: &io::Error) -> bool {
    error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error())
}

fn opened(file: std::fs::File) -> io::Result<Opened<'static>> {
    Ok(Opened { size: file.metadata()?.len(), body: Box::new(file) })
}

fn not_regular(path: &RelPath) -> Error {
    Error::new(Code::NotARegularFile, format!("{path}: it, or a directory above it, is a link or special file"))
        .hint("put the file itself there")
}

/// Whether the first thing that is there of a path, from below, is a link to nothing.
fn leads_nowhere(path: &Path) -> bool {
    let there = path.ancestors().find(|path| path.is_symlink() || path.exists());
    there.is_some_and(|path| !path.exists())
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
