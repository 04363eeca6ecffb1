//! Bundles of remote sources: read once, checked while they arrive, and gone when nobody wants them any more.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Barrier, Mutex};

use distributor::bundle::{Digest, FileEntry, Manifest, content_digest};
use distributor::error::{Code, Error, Result};
use distributor::host::Cancel;
use distributor::path::{BundlePath, RelPath};
use distributor::plan::{Action, Wanted};
use distributor::publish::{Publication, World};
use distributor::source::{Checked, Files, Staging};
use distributor::storage::{Opened, Storage};
use distributor::timestamp::Timestamp;

use crate::memory::{Memory, Reading};
use crate::mortal::{End, Fate, Mortal};
use crate::scene::{NEW, Scene, tree};

fn manifest(files: &[(&str, &[u8])]) -> Manifest {
    let entry = |(path, bytes): &(&str, &[u8])| FileEntry {
        path: RelPath::parse(path).unwrap(),
        sha256: Digest::of(bytes),
        size: bytes.len() as u64,
    };
    let files: Vec<FileEntry> = files.iter().map(entry).collect();
    let created = Timestamp::parse("2026-06-02T00:00:00Z").unwrap();
    Manifest { schema_version: 1, id: "s".to_owned(), digest: content_digest(&files), created, files }
}

/// How often each file was read.
#[derive(Clone, Default)]
struct Reads(Arc<Mutex<BTreeMap<String, usize>>>);

impl Reads {
    fn count(&self, path: &str) {
        *self.0.lock().unwrap().entry(path.to_owned()).or_default() += 1;
    }

    fn of(&self, memory: &Memory) -> Memory {
        let reads = self.clone();
        memory.reading(Arc::new(move |path, opened| {
            reads.count(path);
            Ok(opened)
        }))
    }

    fn all(&self) -> BTreeMap<String, usize> {
        self.0.lock().unwrap().clone()
    }
}

/// A remote bundle, and the place for its copy.
struct Remote {
    memory: Memory,
    manifest: Manifest,
    place: tempfile::TempDir,
    cancel: Cancel,
}

impl Remote {
    fn new(files: &[(&str, &[u8])]) -> Remote {
        let memory = Memory::default();
        for (path, bytes) in files {
            memory.put(path, bytes);
        }
        Remote { memory, manifest: manifest(files), place: tempfile::tempdir().unwrap(), cancel: Cancel::default() }
    }

    fn staging(&self) -> Staging {
        Staging::new(Some(self.place.path()))
    }

    /// What lies in the place.
    fn there(&self) -> Vec<String> {
        tree(self.place.path()).into_keys().collect()
    }

    /// The error of a fetch in which `reading` has its way, and the paths that were read.
    fn refused(&self, reads: usize, reading: Option<Reading>) -> (Error, Vec<String>) {
        let seen = Reads::default();
        let log = seen.clone();
        let reading = reading.unwrap_or_else(|| Arc::new(|_, opened| Ok(opened)));
        let memory = self.memory.at_a_time(reads).reading(Arc::new(move |path, opened| {
            log.count(path);
            reading(path, opened)
        }));
        let (staging, checked) = (self.staging(), Checked::new(1));
        let files = Files::new(&memory, &self.manifest, &checked, Some(&staging), &self.cancel);
        let error = files.ready().unwrap_err();
        assert_eq!(files.ready().unwrap_err().message, error.message, "it is not tried again");
        let left: Vec<String> = self.there().into_iter().filter(|path| !path.ends_with("/lock")).collect();
        assert!(left.is_empty(), "what is no good is not kept: {left:?}");
        drop(staging);
        assert!(self.there().is_empty());
        (error, seen.all().into_keys().collect())
    }
}

fn codes(error: &Error) -> Vec<(&str, Code)> {
    error.detail.iter().map(|detail| (detail.path.as_deref().unwrap_or_default(), detail.code)).collect()
}

#[test]
fn what_arrives_is_private_whatever_the_umask() {
    const PLACE: &str = "DISTRIBUTOR_TEST_PLACE";
    let files: &[(&str, &[u8])] = &[("a", b"1"), ("d/e/f", b"2"), ("empty", b"")];
    let remote = Remote::new(files);
    // The umask is the process's: each has one of its own.
    let Some(place) = std::env::var_os(PLACE).map(PathBuf::from) else {
        for umask in ["000", "027", "0377"] {
            let place = remote.place.path().join(umask);
            let mut sh = Command::new("sh");
            sh.args(["-c", "umask \"$0\" && exec \"$@\"", umask]).arg(std::env::current_exe().unwrap());
            let name = "fetched::what_arrives_is_private_whatever_the_umask";
            let output = sh.args(["--exact", name]).env(PLACE, place.join("x")).output().unwrap();
            assert!(output.status.success(), "{umask}: {}", String::from_utf8_lossy(&output.stdout));
            assert_eq!(tree(&place).into_keys().collect::<Vec<_>>(), ["x/"], "{umask}");
        }
        return;
    };
    let (staging, checked) = (Staging::new(Some(&place)), Checked::new(1));
    let copy = Files::new(&remote.memory, &remote.manifest, &checked, Some(&staging), &remote.cancel);
    copy.ready().unwrap();
    for (path, bytes) in files {
        let mut got = Vec::new();
        copy.place().read(&RelPath::parse(path).unwrap()).unwrap().body.read_to_end(&mut got).unwrap();
        assert_eq!(&got, bytes, "{path}");
    }
    let mut pending = vec![place];
    while let Some(path) = pending.pop() {
        let meta = std::fs::symlink_metadata(&path).unwrap();
        let mode = if meta.is_dir() { 0o700 } else { 0o600 };
        assert_eq!(meta.permissions().mode() & 0o7777, mode, "{}", path.display());
        if meta.is_dir() {
            pending.extend(std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()));
        }
    }
}

#[test]
fn many_that_want_a_bundle_get_one_copy_and_the_last_one_takes_it_away() {
    let files: &[(&str, &[u8])] = &[("a", b"1"), ("b", b"2"), ("c", b"3"), ("d", b"4")];
    let remote = Remote::new(files);
    let reads = Reads::default();
    // Nobody gets on before four are read at the same time.
    let together = Barrier::new(4);
    let log = reads.clone();
    let memory = remote.memory.reading(Arc::new(move |path, opened| {
        log.count(path);
        together.wait();
        Ok(opened)
    }));
    let (staging, checked) = (remote.staging(), Checked::new(3));
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                Files::new(&memory, &remote.manifest, &checked, Some(&staging), &remote.cancel).ready().unwrap();
            });
        }
    });
    assert_eq!(reads.all().into_values().collect::<Vec<_>>(), [1; 4]);
    for _ in 0..3 {
        assert_eq!(remote.there().len(), 5, "four files and the lock: {:?}", remote.there());
        checked.leave();
    }
    assert_eq!(remote.there().len(), 1, "the lock: {:?}", remote.there());
    drop(staging);
    assert!(remote.there().is_empty());
}

#[test]
fn every_file_that_is_wrong_is_named() {
    let files: &[(&str, &[u8])] =
        &[("cut", b"0123456789"), ("good", b"1"), ("longer", b"12"), ("lost", b"1"), ("other", b"12")];
    let remote = Remote::new(files);
    remote.memory.put("longer", b"123");
    remote.memory.put("other", b"21");
    remote.memory.remove_small("lost").unwrap();
    let reading: Reading = Arc::new(|path, opened| match path {
        "cut" => Ok(Opened { body: Box::new(opened.body.take(5)), ..opened }),
        _ => Ok(opened),
    });
    for reads in [1, 8] {
        let (error, _) = remote.refused(reads, Some(Arc::clone(&reading)));
        let wrong = [
            ("cut", Code::SizeMismatch),
            ("longer", Code::SizeMismatch),
            ("lost", Code::MissingFile),
            ("other", Code::DigestMismatch),
        ];
        assert_eq!((error.code, codes(&error).as_slice()), (Code::InvalidBundle, &wrong[..]));
        assert_eq!(error.hint.as_deref(), Some("make the bundle and its manifest anew, together"));
        // As a local source is told of.
        let checked = Checked::new(1);
        let local = Files::new(&remote.memory, &remote.manifest, &checked, None, &remote.cancel).verify();
        assert_eq!(codes(&local.unwrap_err()), wrong[1..]);
    }
}

/// A body that ends with an error.
struct Broken(Box<dyn Read + Send>, Option<Error>);

impl Read for Broken {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.0.read(buffer)? {
            0 => self.1.take().map_or(Ok(0), |error| Err(io::Error::other(error))),
            n => Ok(n),
        }
    }
}

#[test]
fn a_source_that_fails_is_not_asked_for_more() {
    let remote = Remote::new(&[("a", b"1"), ("b", b"2"), ("c", b"3")]);
    let fails = |code: Code| -> Reading {
        Arc::new(move |path, opened| match path {
            "b" => {
                let body = Broken(Box::new(opened.body.take(0)), Some(Error::new(code, "so it is")));
                Ok(Opened { body: Box::new(body), ..opened })
            }
            _ => Ok(opened),
        })
    };
    let (error, read) = remote.refused(1, Some(fails(Code::SourceChanged)));
    assert_eq!((error.code, codes(&error)), (Code::InvalidBundle, vec![("b", Code::SourceChanged)]));
    assert_eq!((error.message.as_str(), read.len()), ("b: so it is", 2));
    assert_eq!(error.hint.as_deref(), Some("run again when the producer has finished"));
    let (error, _) = remote.refused(1, Some(fails(Code::StorageError)));
    assert_eq!(codes(&error), [("b", Code::StorageError)]);
    assert_eq!(error.hint.as_deref(), Some("run again when the source can be read"));
}

#[test]
fn a_signal_ends_it() {
    let remote = Remote::new(&[("a", b"1"), ("b", b"2"), ("c", b"3")]);
    let cancel = remote.cancel.clone();
    let (error, read) = remote.refused(
        1,
        Some(Arc::new(move |_, opened| {
            cancel.raise(15);
            Ok(opened)
        })),
    );
    assert_eq!((error.code, read.len()), (Code::Interrupted, 1));
}

/// So many zeros, of which never more than a little is held back from the disk.
struct Watched {
    left: u64,
    given: u64,
    place: PathBuf,
}

fn bytes_below(dir: &Path) -> u64 {
    let entries = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap());
    let size = |entry: std::fs::DirEntry| {
        let meta = entry.metadata().unwrap();
        if meta.is_dir() { bytes_below(&entry.path()) } else { meta.len() }
    };
    entries.map(size).sum()
}

impl Read for Watched {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        assert!(bytes_below(&self.place) + 256 * 1024 >= self.given, "bytes are held back");
        let n = buffer.len().min(usize::try_from(self.left).unwrap());
        buffer[..n].fill(0);
        (self.left, self.given) = (self.left - n as u64, self.given + n as u64);
        Ok(n)
    }
}

#[test]
fn a_large_file_passes_through() {
    const SIZE: u64 = 16 << 20;
    let mut remote = Remote::new(&[("big", b"")]);
    let zeros = vec![0; usize::try_from(SIZE).unwrap()];
    remote.manifest = manifest(&[("big", &zeros)]);
    drop(zeros);
    let place = remote.place.path().to_owned();
    let memory = remote.memory.reading(Arc::new(move |_, _| {
        let body = Watched { left: SIZE, given: 0, place: place.clone() };
        Ok(Opened { size: SIZE, body: Box::new(body) })
    }));
    let (staging, checked) = (remote.staging(), Checked::new(1));
    Files::new(&memory, &remote.manifest, &checked, Some(&staging), &remote.cancel).ready().unwrap();
    assert_eq!(bytes_below(remote.place.path()), SIZE);
}

/// A remote bundle of the files of [`NEW`], and the scene it is published in.
struct Published {
    scene: Scene,
    remote: Remote,
    reads: Reads,
}

impl Published {
    fn new() -> Published {
        let files: Vec<(&str, &[u8])> = NEW.iter().map(|(path, text)| (*path, text.as_bytes())).collect();
        Published { scene: Scene::new(), remote: Remote::new(&files), reads: Reads::default() }
    }

    /// Does `work` with the publication to `target` as destination `id`.
    fn publication<T>(
        &self,
        (memory, checked, staging): (&Memory, &Checked, &Staging),
        (id, target): (&str, &dyn Storage),
        work: impl FnOnce(&Publication<'_>, &World<'_>) -> T,
    ) -> T {
        self.scene.in_world(|world| {
            let manifest = &self.remote.manifest;
            let source = &Files::new(memory, manifest, checked, Some(staging), world.cancel);
            let destination = self.scene.destination(id);
            let (dirty, force, republish) = (false, false, false);
            let wanted = Wanted { pipeline_id: "p", destination, manifest, dirty, force, republish };
            work(&Publication { wanted, source, at: &BundlePath::ROOT, target, world }, world)
        })
    }

    /// One run to one destination.
    fn run(&self, memory: &Memory, id: &str, target: &dyn Storage) -> Result<Action> {
        let (checked, staging) = (Checked::new(1), self.remote.staging());
        let run = |publication: &Publication<'_>, _: &World<'_>| publication.run(&mut Vec::new());
        let action = self.publication((memory, &checked, &staging), (id, target), run)?.decision.action;
        assert_eq!(action.is_skip(), self.remote.there().is_empty(), "{action:?}: {:?}", self.remote.there());
        Ok(action)
    }
}

#[test]
fn a_bundle_is_read_once_for_all_its_destinations_and_never_for_those_that_have_it() {
    let scene = Published::new();
    let memory = scene.reads.of(&scene.remote.memory);
    let objects = Memory::default();
    let (local, other) = (scene.scene.local(), scene.scene.local_at("out-m"));
    let targets: [(&str, &dyn Storage); 3] = [("d", &local), ("m", &other), ("e", &objects)];
    for (round, action) in [Action::PublishNew, Action::SkipSame].into_iter().enumerate() {
        let (checked, staging) = (Checked::new(targets.len()), scene.remote.staging());
        std::thread::scope(|scope| {
            for target in targets {
                let (scene, checked, staging, memory) = (&scene, &checked, &staging, &memory);
                scope.spawn(move || {
                    let run = |publication: &Publication<'_>, _: &World<'_>| {
                        publication.look(&mut Vec::new()).unwrap();
                        publication.run(&mut Vec::new()).unwrap()
                    };
                    let done = scene.publication((memory, checked, staging), target, run);
                    assert_eq!(done.decision.action, action);
                    checked.leave();
                });
            }
        });
        let once: BTreeMap<String, usize> = NEW.iter().map(|(path, _)| ((*path).to_owned(), 1)).collect();
        assert_eq!(scene.reads.all(), once, "round {round}");
        assert_eq!(scene.remote.there().len(), 1 - round, "the lock alone: {:?}", scene.remote.there());
    }
    assert!(scene.remote.there().is_empty());
    let published: BTreeSet<String> = objects.objects().into_keys().collect();
    assert!(NEW.iter().all(|(path, _)| published.contains(*path)), "{published:?}");
}

#[test]
fn a_dry_run_reads_once_too() {
    let scene = Published::new();
    let memory = scene.reads.of(&scene.remote.memory);
    let (checked, staging) = (Checked::new(1), scene.remote.staging());
    let target = scene.scene.local();
    scene.publication((&memory, &checked, &staging), ("d", &target), |publication, _| {
        let mut plan = publication.look(&mut Vec::new()).unwrap().plan.unwrap();
        assert!(scene.reads.all().is_empty(), "planning reads nothing");
        publication.source.verify().unwrap();
        publication.preview(&mut plan).unwrap();
    });
    assert_eq!(scene.reads.all().into_values().collect::<Vec<_>>(), vec![1; NEW.len()]);
    assert!(!scene.scene.dir.path().join("out").exists());
}

#[test]
fn the_lock_is_free_while_a_bundle_arrives() {
    let scene = Published::new();
    let out = Memory::default();
    let target = out.clone();
    let memory = scene.remote.memory.reading(Arc::new(move |path, opened| {
        assert!(!target.is_locked().unwrap(), "{path}");
        Ok(opened)
    }));
    assert_eq!(scene.run(&memory, "d", &out).unwrap(), Action::PublishNew);
}

#[test]
fn where_something_is_to_be_finished_first_a_bundle_is_fetched_under_the_lock() {
    let scene = Published::new();
    let out = scene.scene.dir.path().join("out");
    std::fs::create_dir(&out).unwrap();
    // What a killed process leaves.
    std::fs::write(out.join(".distributor.lock"), "").unwrap();
    let target = scene.scene.local();
    let memory = scene.remote.memory.reading(Arc::new(move |path, opened| {
        assert!(target.is_locked().unwrap(), "{path}");
        Ok(opened)
    }));
    assert_eq!(scene.run(&memory, "d", &scene.scene.local()).unwrap(), Action::PublishNew);
}

#[test]
fn what_is_refused_is_not_fetched() {
    let scene = Published::new();
    let memory = scene.reads.of(&scene.remote.memory);
    let out = scene.scene.dir.path().join("out");
    std::fs::create_dir(&out).unwrap();
    std::fs::write(out.join("theirs"), "precious").unwrap();
    assert_eq!(scene.run(&memory, "d", &scene.scene.local()).unwrap_err().code, Code::UnmanagedContent);
    std::fs::remove_file(out.join("theirs")).unwrap();
    scene.scene.publish("old", "d", &scene.scene.local()).unwrap();
    std::fs::write(out.join("theirs"), "precious").unwrap();
    assert_eq!(scene.run(&memory, "d", &scene.scene.local()).unwrap_err().code, Code::UnmanagedContent);
    assert!(scene.reads.all().is_empty(), "{:?}", scene.reads.all());
}

#[test]
fn a_staging_directory_that_is_none_is_not_taken_for_a_destination() {
    let scene = Published::new();
    let file = scene.remote.place.path().join("file");
    std::fs::write(&file, "").unwrap();
    let (checked, staging, target) = (Checked::new(1), Staging::new(Some(&file)), scene.scene.local());
    let run = |publication: &Publication<'_>, _: &World<'_>| publication.run(&mut Vec::new()).err();
    let error = scene.publication((&scene.remote.memory, &checked, &staging), ("d", &target), run).unwrap();
    assert!(error.code == Code::StorageError && error.message.ends_with("file: not a directory"), "{error:?}");
    assert!(!scene.scene.dir.path().join("out").exists());
}

#[test]
fn a_bundle_that_changes_while_it_arrives_leaves_all_as_it_was() {
    let scene = Published::new();
    scene.scene.publish("old", "d", &scene.scene.local()).unwrap();
    let before = tree(&scene.scene.dir.path().join("out"));
    let store = scene.remote.memory.clone();
    // The producer writes the next one over it.
    let memory = scene.remote.memory.reading(Arc::new(move |_, opened| {
        for (path, _) in NEW {
            store.put(path, b"ix");
        }
        Ok(opened)
    }));
    let error = scene.run(&memory, "d", &scene.scene.local()).unwrap_err();
    assert!(error.code == Code::InvalidBundle && !error.detail.is_empty(), "{error:?}");
    assert_eq!(tree(&scene.scene.dir.path().join("out")), before);
}

#[test]
fn what_was_cut_short_is_finished_without_the_source() {
    let scene = Published::new();
    let nothing = scene.reads.of(&Memory::default());
    let mut finished = 0;
    for at in 1.. {
        let _ = std::fs::remove_dir_all(scene.scene.dir.path().join("out"));
        let fate = Fate::new(at, End::KilledAfter);
        let target = Mortal { inner: Box::new(scene.scene.local()), fate: Arc::clone(&fate) };
        let _ = scene.run(&scene.remote.memory, "d", &target);
        if !fate.struck() {
            break;
        }
        match scene.run(&nothing, "d", &scene.scene.local()) {
            Ok(action) => {
                assert_eq!(action, Action::SkipSame);
                finished += 1;
            }
            // Before the commit point only the source has the bytes.
            Err(error) => assert_eq!(error.code, Code::InvalidBundle, "{error:?}"),
        }
    }
    assert!(finished > 3, "{finished} past the commit point");
    assert!(scene.reads.all().is_empty());
}
