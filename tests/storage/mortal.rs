//! A storage whose process dies at the nth call: from then on nothing it is asked for happens, as after kill -9.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use distributor::digest::Fingerprint;
use distributor::entry::Entry;
use distributor::error::{Code, Error, Result};
use distributor::host::Cancel;
use distributor::path::{BundlePath, RawPath, RelPath};
use distributor::storage::{
    Above, Commit, Expected, Guard, Job, Met, Opened, Recovery, Scope, Small, Stage, StageError, Storage,
};

/// How a call ends that fate has chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The process dies before it has an effect.
    KilledBefore,
    /// The process dies after it had its effect.
    KilledAfter,
    /// It fails, once; the process lives.
    Fails,
}

/// When what happens, and what happened.
pub(crate) struct Fate {
    at: usize,
    end: End,
    calls: AtomicUsize,
    dead: AtomicBool,
    /// The name of the call that was chosen.
    pub(crate) chosen: Mutex<String>,
}

impl Fate {
    /// The call number `at`, from 1, ends like `end`.
    pub(crate) fn new(at: usize, end: End) -> Arc<Fate> {
        let (calls, dead, chosen) = (AtomicUsize::new(0), AtomicBool::new(false), Mutex::default());
        Arc::new(Fate { at, end, calls, dead, chosen })
    }

    /// Whether the call came that was chosen.
    pub(crate) fn struck(&self) -> bool {
        self.calls.load(Ordering::SeqCst) >= self.at
    }

    fn call<T>(&self, name: &str, work: impl FnOnce() -> Result<T>) -> Result<T> {
        let killed = || Err(Error::new(Code::StorageError, format!("killed at {name}")));
        if self.dead.load(Ordering::SeqCst) {
            return killed();
        }
        if self.calls.fetch_add(1, Ordering::SeqCst) + 1 != self.at {
            return work();
        }
        name.clone_into(&mut self.chosen.lock().unwrap());
        match self.end {
            End::KilledBefore => self.dead.store(true, Ordering::SeqCst),
            End::KilledAfter => {
                let _ = work();
                self.dead.store(true, Ordering::SeqCst);
            }
            End::Fails => {}
        }
        killed()
    }
}

pub(crate) struct Mortal {
    pub(crate) inner: Box<dyn Storage>,
    pub(crate) fate: Arc<Fate>,
}

struct MortalGuard {
    inner: Option<Box<dyn Guard>>,
    fate: Arc<Fate>,
}

impl Guard for MortalGuard {
    fn check(&self) -> Result<()> {
        self.fate.call("check", || self.inner.as_ref().map_or(Ok(()), |guard| guard.check()))
    }

    fn release(mut self: Box<Self>, mark: bool) -> Result<()> {
        let inner = self.inner.take();
        self.fate.call("release", || inner.map_or(Ok(()), |guard| guard.release(mark)))
    }
}

impl Storage for Mortal {
    fn describe(&self) -> String {
        self.inner.describe()
    }
    fn recovery(&self) -> Recovery {
        self.inner.recovery()
    }
    fn at(&self, path: &BundlePath) -> Box<dyn Storage> {
        Box::new(Mortal { inner: self.inner.at(path), fate: Arc::clone(&self.fate) })
    }
    fn find(&self, marker: &str, visit: &mut dyn FnMut(&[u8], Met)) -> Result<()> {
        self.fate.call("find", || self.inner.find(marker, visit))
    }
    fn list(&self, scope: Scope, visit: &mut dyn FnMut(Entry) -> Result<()>) -> Result<()> {
        self.fate.call("list", || self.inner.list(scope, visit))
    }
    fn exist_many(&self, paths: &[&RelPath]) -> Result<Vec<bool>> {
        self.fate.call("exist_many", || self.inner.exist_many(paths))
    }
    fn above(&self, name: &str, limit: u64) -> Vec<Above> {
        self.inner.above(name, limit)
    }
    fn read(&self, path: &RelPath) -> Result<Opened<'static>> {
        self.fate.call("read", || self.inner.read(path))
    }
    fn get_small(&self, name: &str, limit: u64) -> Result<Option<Small>> {
        self.fate.call("get_small", || self.inner.get_small(name, limit))
    }
    fn put_small(&self, name: &str, bytes: &[u8], expected: Expected<'_>) -> Result<()> {
        self.fate.call(&format!("put_small {name}"), || self.inner.put_small(name, bytes, expected))
    }
    fn remove_small(&self, name: &str) -> Result<()> {
        self.fate.call(&format!("remove_small {name}"), || self.inner.remove_small(name))
    }
    fn own_names(&self, prefix: &str) -> Result<Vec<String>> {
        self.fate.call("own_names", || self.inner.own_names(prefix))
    }
    fn disturbed(&self, journal: &str) -> Result<bool> {
        self.fate.call("disturbed", || self.inner.disturbed(journal))
    }
    fn lock(&self, holder: &[u8], waiting: &dyn Fn(Duration) -> Result<()>) -> Result<Box<dyn Guard>> {
        let fate = Arc::clone(&self.fate);
        self.fate.call("lock", || {
            let inner = Some(self.inner.lock(holder, waiting)?);
            Ok(Box::new(MortalGuard { inner, fate }) as Box<dyn Guard>)
        })
    }
    fn is_locked(&self) -> Result<bool> {
        self.fate.call("is_locked", || self.inner.is_locked())
    }
    fn sweep_stages(&self, keep: &[Stage]) -> Result<()> {
        self.fate.call("sweep_stages", || self.inner.sweep_stages(keep))
    }
    fn open_stage(&self, stage: &Stage) -> Result<()> {
        self.fate.call("open_stage", || self.inner.open_stage(stage))
    }
    fn stage_all(
        &self,
        stage: &Stage,
        first: usize,
        jobs: &[Job<'_>],
        cancel: &Cancel,
    ) -> Vec<std::result::Result<Fingerprint, StageError>> {
        let fill = |what: &str, jobs| self.fate.call(what, || Ok(self.inner.stage_all(stage, first, jobs, cancel)));
        // Some of the jobs done and others not is what a kill in the middle leaves.
        if jobs.len() > 1 {
            if let Err(error) = fill("stage_all half", &jobs[..jobs.len() / 2]) {
                return vec![Err(StageError::Place(error))];
            }
            let _ = self.inner.sweep_stages(&[]);
            if let Err(error) = self.inner.open_stage(stage) {
                return vec![Err(StageError::Place(error))];
            }
        }
        fill("stage_all", jobs).unwrap_or_else(|error| vec![Err(StageError::Place(error))])
    }
    fn flush_stage(&self, stage: &Stage, jobs: usize) -> Result<()> {
        self.fate.call("flush_stage", || self.inner.flush_stage(stage, jobs))
    }
    fn staged(&self, stage: &Stage, job: usize, limit: u64) -> Result<Option<Vec<u8>>> {
        self.fate.call("staged", || self.inner.staged(stage, job, limit))
    }
    fn commit_all(&self, stage: &Stage, jobs: &[Job<'_>], commits: &[Commit<'_>]) -> Result<()> {
        // One at a time, so that death comes between any two.
        commits.iter().try_for_each(|commit| {
            self.fate.call(&format!("commit {}", commit.path), || {
                self.inner.commit_all(stage, jobs, std::slice::from_ref(commit))
            })
        })
    }
    fn wrote(&self, stage: &Stage, paths: &[&RelPath]) -> Result<Vec<bool>> {
        self.fate.call("wrote", || self.inner.wrote(stage, paths))
    }

    fn remove_created(&self, stage: &Stage, paths: &[&RelPath]) -> Result<()> {
        paths.iter().try_for_each(|path| {
            self.fate.call(&format!("remove_created {path}"), || self.inner.remove_created(stage, &[path]))
        })
    }
    fn close_stage(&self, stage: &Stage) -> Result<()> {
        self.fate.call("close_stage", || self.inner.close_stage(stage))
    }
    fn make_dirs(&self, paths: &[&str]) -> Result<()> {
        paths.iter().try_for_each(|path| self.fate.call(&format!("make_dir {path}"), || self.inner.make_dirs(&[path])))
    }
    fn remove_many(&self, paths: &[&RawPath]) -> Vec<Result<()>> {
        let one = |path: &&RawPath| {
            self.fate.call(&format!("remove {path}"), || self.inner.remove_many(&[path]).into_iter().collect())
        };
        paths.iter().map(one).collect()
    }
    fn remove_empty_dirs(&self, paths: &[&RawPath]) -> Result<()> {
        paths.iter().try_for_each(|path| {
            self.fate.call(&format!("remove_dir {path}"), || self.inner.remove_empty_dirs(&[path]))
        })
    }
    fn check_writable(&self, paths: &[&[u8]]) -> Result<()> {
        self.inner.check_writable(paths)
    }
    fn flush_dirs(&self, paths: &[&[u8]]) -> Result<()> {
        self.fate.call("flush_dirs", || self.inner.flush_dirs(paths))
    }
}
