//! One suite for every backend: each promise of each method of the storage interface.

mod local;
mod locking;
mod reading;
mod small;
mod staging;

use std::path::{Path, PathBuf};

use distributor::digest::Fingerprint;
use distributor::entry::Kind;
use distributor::error::{Code, Error, Result};
use distributor::host::Cancel;
use distributor::path::{BundlePath, RawPath, RelPath};
use distributor::storage::{Body, Commit, Job, Local, Modes, Recovery, Scope, Stage, StageError, Storage};

use crate::buckets::s3;
use crate::memory::Memory;
use crate::servers::{self, Place};

type Put = dyn Fn(&str, &[u8]) + Sync;

/// A backend under test: an empty place that is there.
struct Bench {
    storage: Box<dyn Storage>,
    /// Puts a file as a stranger would.
    put: Box<Put>,
    /// Where the place lies, if it is local.
    root: Option<PathBuf>,
    /// Whether it refuses to write what is not as expected when somebody else comes in between.
    heeds_conditions: bool,
    _dir: Option<tempfile::TempDir>,
}

/// Modes that no umask gives.
const MODES: Modes = Modes { file: 0o646, directory: 0o753 };

impl Bench {
    fn local() -> Bench {
        let memory = Path::new("/dev/shm");
        let dir = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.unwrap();
        let root = dir.path().join("place");
        std::fs::create_dir(&root).unwrap();
        let at = root.clone();
        let put = move |path: &str, bytes: &[u8]| {
            std::fs::create_dir_all(at.join(path).parent().unwrap()).unwrap();
            std::fs::write(at.join(path), bytes).unwrap();
        };
        let storage = Box::new(Local::new(&root, MODES));
        Bench { storage, put: Box::new(put), root: Some(root), heeds_conditions: true, _dir: Some(dir) }
    }

    fn memory() -> Bench {
        let memory = Memory::default();
        let at = memory.clone();
        let put = move |path: &str, bytes: &[u8]| at.put(path, bytes);
        Bench { storage: Box::new(memory), put: Box::new(put), root: None, heeds_conditions: true, _dir: None }
    }

    /// A place in a bucket of a server.
    fn s3(place: &Place) -> Bench {
        let at = place.clone();
        let put = move |path: &str, bytes: &[u8]| at.put(path, bytes);
        let heeds_conditions = place.server.name != "garage";
        Bench { storage: Box::new(s3(place)), put: Box::new(put), root: None, heeds_conditions, _dir: None }
    }

    /// Another view on the same place, as another process has it.
    fn again(&self) -> Box<dyn Storage> {
        self.storage.at(&BundlePath::ROOT)
    }

    /// The view on a place below.
    fn below(&self, path: &str) -> Box<dyn Storage> {
        self.storage.at(&BundlePath::from(rel(path)))
    }

    fn bytes(&self, path: &str) -> Option<Vec<u8>> {
        bytes(self.storage.as_ref(), path)
    }
}

/// Runs `work` on each backend.
fn each(work: impl Fn(&Bench)) {
    for bench in [Bench::local(), Bench::memory()] {
        work(&bench);
    }
    for server in servers::all() {
        work(&Bench::s3(&server.place("conformance")));
    }
}

fn rel(path: &str) -> RelPath {
    RelPath::parse(path).unwrap()
}

fn raw(path: &str) -> RawPath {
    path.into()
}

fn remove(storage: &dyn Storage, paths: &[&str]) {
    let paths: Vec<RawPath> = paths.iter().copied().map(RawPath::from).collect();
    storage.remove_many(&paths.iter().collect::<Vec<_>>()).into_iter().for_each(Result::unwrap);
}

fn remove_dirs(storage: &dyn Storage, paths: &[&str]) {
    let paths: Vec<RawPath> = paths.iter().copied().map(RawPath::from).collect();
    storage.remove_empty_dirs(&paths.iter().collect::<Vec<_>>()).unwrap();
}

fn bytes(storage: &dyn Storage, path: &str) -> Option<Vec<u8>> {
    match storage.read(&rel(path)) {
        Ok(mut opened) => {
            let mut bytes = Vec::new();
            opened.body.read_to_end(&mut bytes).unwrap();
            assert_eq!(opened.size, bytes.len() as u64, "{path}");
            Some(bytes)
        }
        Err(error) => {
            assert_eq!(error.code, Code::NotFound, "{error:?}");
            None
        }
    }
}

fn code<T>(result: Result<T>) -> Option<Code> {
    result.err().map(|error| error.code)
}

/// The paths of a listing with their kinds, as they came.
fn listed(storage: &dyn Storage, scope: Scope) -> Vec<(String, Kind)> {
    let mut seen = Vec::new();
    let visit = &mut |entry: distributor::entry::Entry| {
        seen.push((String::from_utf8_lossy(entry.raw.as_bytes()).into_owned(), entry.kind));
        Ok(())
    };
    storage.list(scope, visit).unwrap();
    seen
}

/// The same, sorted, without directories, which not every backend has.
fn files(storage: &dyn Storage, scope: Scope) -> Vec<String> {
    let mut seen: Vec<String> =
        listed(storage, scope).into_iter().filter(|(_, kind)| *kind != Kind::Directory).map(|(path, _)| path).collect();
    seen.sort();
    seen
}

/// Outputs to stage.
struct Load {
    stage: Stage,
    outputs: Vec<(RelPath, &'static [u8])>,
}

impl Load {
    fn new(token: &str, outputs: &[(&str, &'static [u8])]) -> Load {
        let outputs = outputs.iter().map(|(path, bytes)| (rel(path), *bytes)).collect();
        Load { stage: Stage(token.to_owned()), outputs }
    }

    fn jobs(&self) -> Vec<Job<'_>> {
        let job = |(path, bytes)| job(path, bytes);
        self.outputs.iter().map(|(path, bytes)| job((path, *bytes))).collect()
    }

    /// Opens the stage, fills and flushes it.
    fn stage(&self, storage: &dyn Storage) {
        storage.open_stage(&self.stage).unwrap();
        let results = storage.stage_all(&self.stage, 0, &self.jobs(), &Cancel::default());
        assert_eq!(results.len(), self.outputs.len());
        for result in results {
            result.unwrap();
        }
        storage.flush_stage(&self.stage, self.outputs.len()).unwrap();
    }

    fn commit(&self, storage: &dyn Storage, replace: bool) -> Result<()> {
        let commits = |(at, output): (usize, &'_ (RelPath, &[u8]))| (at, output.0.clone());
        let named: Vec<(usize, RelPath)> = self.outputs.iter().enumerate().map(commits).collect();
        let commits: Vec<Commit<'_>> = named.iter().map(|(job, path)| Commit { job: *job, path, replace }).collect();
        storage.commit_all(&self.stage, &self.jobs(), &commits)
    }
}

fn job<'a>(path: &'a RelPath, bytes: &'a [u8]) -> Job<'a> {
    Job { path, expected: Some(Fingerprint::of(bytes)), body: Body::Bytes(bytes) }
}

fn source_code(result: std::result::Result<Fingerprint, StageError>) -> Code {
    match result {
        Err(StageError::Source(error)) => error.code,
        other => panic!("{other:?}"),
    }
}

fn stop<T>() -> Result<T> {
    Err(Error::new(Code::Interrupted, "enough"))
}

#[test]
fn a_backend_names_its_place_and_its_way_to_recover() {
    each(|bench| {
        let recovery = if bench.root.is_some() { Recovery::Redo } else { Recovery::DirtyMark };
        assert_eq!(bench.storage.recovery(), recovery);
        assert!(bench.below("x/y").describe().contains("x/y"), "{}", bench.below("x/y").describe());
        assert!(bench.storage.describe() != bench.below("x").describe());
    });
}
