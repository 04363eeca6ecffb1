//! A store in memory of the "PUT is commit" kind: no rename, no directories, nothing staged that could be finished
//! without the source. It keeps the storage interface honest for object stores.

use std::collections::BTreeMap;
use std::io::{Cursor, Read};
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::{Duration, Instant};

use distributor::digest::{Digest, Fingerprint};
use distributor::entry::{Entry, Kind};
use distributor::error::{Code, Error, Result};
use distributor::host::Cancel;
use distributor::names::{self, STATE};
use distributor::path::{BundlePath, RESERVED, RawPath, RelPath};
use distributor::storage::{
    Above, Commit, Expected, Guard, Job, Met, Opened, Recovery, Scope, Small, Stage, StageError, Storage, Version,
};

/// An object: its bytes, and the token of the publication that wrote it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Object {
    pub(crate) bytes: Vec<u8>,
    pub(crate) token: String,
}

#[derive(Default)]
struct Store {
    objects: BTreeMap<String, Object>,
    /// Locks by prefix; one whose holder is gone is dead.
    locks: BTreeMap<String, Weak<()>>,
}

/// What becomes of a file that is read.
pub(crate) type Reading = Arc<dyn Fn(&str, Opened<'static>) -> Result<Opened<'static>> + Send + Sync>;

#[derive(Clone, Default)]
pub(crate) struct Memory {
    store: Arc<Mutex<Store>>,
    prefix: String,
    /// A directory that listings do not look into.
    closed: Option<&'static str>,
    reading: Option<Reading>,
    /// How many are best read at the same time, where that is told.
    at_a_time: Option<usize>,
}

impl Memory {
    /// The same objects, of which so many are best read at the same time.
    pub(crate) fn at_a_time(&self, reads: usize) -> Memory {
        Memory { at_a_time: Some(reads), ..self.clone() }
    }

    /// The same objects, where listings do not look into `dir`.
    pub(crate) fn closing(&self, dir: &'static str) -> Memory {
        Memory { closed: Some(dir), ..self.clone() }
    }

    /// The same objects, where `reading` has its way with each that is read.
    pub(crate) fn reading(&self, reading: Reading) -> Memory {
        Memory { reading: Some(reading), ..self.clone() }
    }

    /// All objects below the place, by key.
    pub(crate) fn objects(&self) -> BTreeMap<String, Object> {
        let store = self.store();
        let below = store.objects.iter().filter_map(|(key, object)| Some((key.strip_prefix(&self.prefix)?, object)));
        below.map(|(key, object)| (key.to_owned(), object.clone())).collect()
    }

    /// Puts an object as a stranger would.
    pub(crate) fn put(&self, key: &str, bytes: &[u8]) {
        let object = Object { bytes: bytes.to_vec(), token: String::new() };
        self.store().objects.insert(self.key(key), object);
    }

    /// Puts all objects back to how they were.
    pub(crate) fn restore(&self, objects: &BTreeMap<String, Object>) {
        let mut store = self.store();
        store.locks.clear();
        store.objects = objects.iter().map(|(key, object)| (self.key(key), object.clone())).collect();
    }

    fn store(&self) -> MutexGuard<'_, Store> {
        self.store.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn key(&self, path: &str) -> String {
        format!("{}{path}", self.prefix)
    }

    fn get(&self, path: &str) -> Option<Object> {
        self.store().objects.get(&self.key(path)).cloned()
    }

    fn commit(&self, stage: &Stage, job: &Job<'_>, commit: &Commit<'_>) -> Result<()> {
        let mut bytes = Vec::new();
        job.body.open()?.body.read_to_end(&mut bytes).map_err(|error| Error::io(job.path, &error))?;
        // A server refuses other bytes than the digest says.
        if job.expected != Some(Fingerprint::of(&bytes)) {
            return Err(Error::new(Code::DigestMismatch, format!("{}: other bytes than promised", job.path)));
        }
        let mut store = self.store();
        let key = self.key(commit.path.as_str());
        if !commit.replace && store.objects.get(&key).is_some_and(|there| there.token != stage.0) {
            return Err(Error::new(Code::CommitIncomplete, format!("{}: the name is taken", commit.path)));
        }
        store.objects.insert(key, Object { bytes, token: stage.0.clone() });
        Ok(())
    }
}

struct Held {
    memory: Memory,
    alive: Arc<()>,
}

impl Guard for Held {
    fn check(&self) -> Result<()> {
        let held = self.memory.store().locks.get(&self.memory.prefix).and_then(Weak::upgrade);
        match held {
            Some(held) if Arc::ptr_eq(&held, &self.alive) => Ok(()),
            _ => Err(Error::new(Code::LockLost, "the lock is gone")),
        }
    }

    fn release(self: Box<Self>, mark: bool) -> Result<()> {
        if !mark {
            self.memory.store().locks.remove(&self.memory.prefix);
        }
        Ok(())
    }
}

impl Storage for Memory {
    fn describe(&self) -> String {
        format!("memory:{}", self.prefix)
    }

    fn reads(&self) -> usize {
        self.at_a_time.unwrap_or(4)
    }

    fn recovery(&self) -> Recovery {
        Recovery::DirtyMark
    }

    fn at(&self, path: &BundlePath) -> Box<dyn Storage> {
        let below = path.below().map(|path| format!("{path}/")).unwrap_or_default();
        Box::new(Memory {
            store: Arc::clone(&self.store),
            prefix: self.key(&below),
            closed: None,
            reading: self.reading.clone(),
            at_a_time: self.at_a_time,
        })
    }

    fn find(&self, marker: &str, visit: &mut dyn FnMut(&[u8], Met)) -> Result<()> {
        let dirs: Vec<String> = self
            .objects()
            .keys()
            .filter_map(|key| Some(key.strip_suffix(marker)?.to_owned()).filter(|d| d.is_empty() || d.ends_with('/')))
            .filter(|dir| !dir.split('/').any(|segment| segment.starts_with(RESERVED)))
            .collect();
        let outermost = |dir: &&String| !dirs.iter().any(|other| other != *dir && dir.starts_with(other.as_str()));
        dirs.iter().filter(outermost).for_each(|dir| visit(dir.trim_end_matches('/').as_bytes(), Met::Marked));
        Ok(())
    }

    fn list(&self, scope: Scope, visit: &mut dyn FnMut(Entry) -> Result<()>) -> Result<()> {
        let keys: Vec<String> = self.objects().into_keys().collect();
        let marked = |key: &String| {
            let (dir, name) = key.rsplit_once('/')?;
            [STATE, ".distributor.lock"].contains(&name).then(|| format!("{dir}/"))
        };
        let mut managed: Vec<String> = keys.iter().filter_map(marked).collect();
        managed.dedup();
        let managed = if scope == Scope::Source { Vec::new() } else { managed };
        let own = |key: &String| scope == Scope::Destination && names::is_own(key.as_bytes());
        let closed = self.closed.map(|dir| format!("{dir}/"));
        let inside = |key: &String| managed.iter().chain(&closed).any(|dir| key.starts_with(dir.as_str()));
        for key in keys.iter().filter(|key| !own(key) && !inside(key)) {
            let path = RelPath::parse(key).ok();
            visit(Entry { raw: key.as_str().into(), path, kind: Kind::File })?;
        }
        let managed = managed.iter().map(|dir| (dir.trim_end_matches('/'), Kind::Managed));
        for (dir, kind) in managed.chain(self.closed.map(|dir| (dir, Kind::Closed))) {
            let path = RelPath::parse(dir).ok();
            visit(Entry { raw: dir.into(), path, kind })?;
        }
        Ok(())
    }

    fn exist_many(&self, paths: &[&RelPath]) -> Result<Vec<bool>> {
        Ok(paths.iter().map(|path| self.get(path.as_str()).is_some()).collect())
    }

    fn above(&self, name: &str, _: u64) -> Vec<Above> {
        let (store, here) = (self.store(), self.prefix.trim_end_matches('/'));
        let dirs = distributor::path::ancestors(here).map(|dir| format!("{dir}/")).chain([String::new()]);
        let of = |dir: String| {
            let bytes = store.objects.get(&format!("{dir}{name}"))?.bytes.clone();
            Some(Above { path: here.strip_prefix(&dir)?.to_owned(), place: dir, bytes })
        };
        if here.is_empty() { Vec::new() } else { dirs.filter_map(of).collect() }
    }

    fn read(&self, path: &RelPath) -> Result<Opened<'static>> {
        let object = self.get(path.as_str()).ok_or_else(|| Error::new(Code::NotFound, format!("{path}: not found")))?;
        let opened = Opened { size: object.bytes.len() as u64, body: Box::new(Cursor::new(object.bytes)) };
        match &self.reading {
            Some(reading) => reading(path.as_str(), opened),
            None => Ok(opened),
        }
    }

    fn get_small(&self, name: &str, limit: u64) -> Result<Option<Small>> {
        Ok(self.get(name).map(|object| {
            let version = Version(Digest::of(&object.bytes).to_string());
            let mut bytes = object.bytes;
            bytes.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
            Small { bytes, version }
        }))
    }

    fn put_small(&self, name: &str, bytes: &[u8], expected: Expected<'_>) -> Result<()> {
        let there = self.get_small(name, u64::MAX)?.map(|small| small.version);
        if let Expected::Version(version) = expected
            && there.as_ref() != version
        {
            return Err(Error::new(Code::PreconditionFailed, format!("{name}: it changed")));
        }
        self.put(name, bytes);
        Ok(())
    }

    fn remove_small(&self, name: &str) -> Result<()> {
        self.store().objects.remove(&self.key(name));
        Ok(())
    }

    fn own_names(&self, prefix: &str) -> Result<Vec<String>> {
        let keys = self.objects().into_keys();
        Ok(keys.filter(|key| key.starts_with(prefix) && names::is_own(key.as_bytes())).collect())
    }

    fn disturbed(&self, journal: &str) -> Result<bool> {
        Ok(self.store().locks.contains_key(&self.prefix) || self.get(journal).is_some())
    }

    fn lock(&self, _: &[u8], waiting: &dyn Fn(Duration) -> Result<()>) -> Result<Box<dyn Guard>> {
        let begun = Instant::now();
        loop {
            let mut store = self.store();
            if store.locks.get(&self.prefix).and_then(Weak::upgrade).is_none() {
                let alive = Arc::new(());
                store.locks.insert(self.prefix.clone(), Arc::downgrade(&alive));
                return Ok(Box::new(Held { memory: self.clone(), alive }));
            }
            drop(store);
            waiting(begun.elapsed())?;
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn is_locked(&self) -> Result<bool> {
        Ok(self.store().locks.get(&self.prefix).and_then(Weak::upgrade).is_some())
    }

    fn sweep_stages(&self, _: &[Stage]) -> Result<()> {
        Ok(())
    }

    fn open_stage(&self, _: &Stage) -> Result<()> {
        Ok(())
    }

    fn stage_all(
        &self,
        _: &Stage,
        _: usize,
        jobs: &[Job<'_>],
        cancel: &Cancel,
    ) -> Vec<std::result::Result<Fingerprint, StageError>> {
        let one = |job: &Job<'_>| {
            cancel.check().map_err(StageError::Place)?;
            let mut opened = job.body.open().map_err(StageError::Source)?;
            match job.expected {
                Some(expected) if expected.size == opened.size => Ok(expected),
                Some(_) => {
                    let message = format!("{}: {} bytes", job.path, opened.size);
                    Err(StageError::Source(Error::new(Code::SizeMismatch, message)))
                }
                None => {
                    let mut bytes = Vec::new();
                    let read = opened.body.read_to_end(&mut bytes);
                    read.map_err(|error| StageError::Source(Error::io(job.path, &error)))?;
                    Ok(Fingerprint::of(&bytes))
                }
            }
        };
        jobs.iter().map(one).collect()
    }

    fn flush_stage(&self, _: &Stage, _: usize) -> Result<()> {
        Ok(())
    }

    fn staged(&self, _: &Stage, _: usize, _: u64) -> Result<Option<Vec<u8>>> {
        Ok(None)
    }

    fn commit_all(&self, stage: &Stage, jobs: &[Job<'_>], commits: &[Commit<'_>]) -> Result<()> {
        commits.iter().try_for_each(|commit| self.commit(stage, &jobs[commit.job], commit))
    }

    fn wrote(&self, stage: &Stage, paths: &[&RelPath]) -> Result<Vec<bool>> {
        Ok(paths.iter().map(|path| self.get(path.as_str()).is_some_and(|object| object.token == stage.0)).collect())
    }

    fn remove_created(&self, stage: &Stage, paths: &[&RelPath]) -> Result<()> {
        let mut store = self.store();
        for path in paths {
            let key = self.key(path.as_str());
            if store.objects.get(&key).is_some_and(|object| object.token == stage.0) {
                store.objects.remove(&key);
            }
        }
        Ok(())
    }

    fn close_stage(&self, _: &Stage) -> Result<()> {
        Ok(())
    }

    fn make_dirs(&self, _: &[&str]) -> Result<()> {
        Ok(())
    }

    fn remove_many(&self, paths: &[&RawPath]) -> Vec<Result<()>> {
        let mut store = self.store();
        let mut remove = |path: &&RawPath| {
            if let Ok(path) = std::str::from_utf8(path.as_bytes()) {
                store.objects.remove(&self.key(path));
            }
            Ok(())
        };
        paths.iter().map(&mut remove).collect()
    }

    fn remove_empty_dirs(&self, _: &[&RawPath]) -> Result<()> {
        Ok(())
    }

    fn check_writable(&self, _: &[&[u8]]) -> Result<()> {
        Ok(())
    }

    fn flush_dirs(&self, _: &[&[u8]]) -> Result<()> {
        Ok(())
    }
}
