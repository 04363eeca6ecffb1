//! Where bundles are read and outputs are published: one interface, and its backends.
//!
//! A storage is a view on one place, a directory or prefix. Plural verbs belong to the backend, which owns its own
//! concurrency; nothing above loops over blocking calls.

mod local;

use std::fmt;
use std::io::Read;

pub use local::{Local, Modes};

use crate::digest::Digest;
pub use crate::entry::{Entry, Kind};
use crate::error::{Code, Error, Result};
use crate::host::Cancel;
use crate::path::{BundlePath, RelPath};

/// The state file of a destination.
pub const STATE: &str = ".distributor.json";
/// What stage directories, and files on their way to a name of ours, begin with.
pub const STAGE_PREFIX: &str = ".distributor.stage-";
/// What else of ours may lie at a bundle path while a publication goes on, or after a crash.
const OWN_PREFIXES: [&str; 3] = [STAGE_PREFIX, ".distributor.lock", ".distributor.journal-"];

/// Whether `name`, at the root of a destination's bundle path, is one of ours.
pub fn is_own_name(name: &[u8]) -> bool {
    name == STATE.as_bytes() || OWN_PREFIXES.iter().any(|prefix| name.starts_with(prefix.as_bytes()))
}

/// What a search for a marker file met.
#[derive(Debug)]
pub enum Met {
    /// A directory that holds the marker; nothing below it was looked at.
    Marked,
    /// A symbolic link, not followed.
    Link,
    /// A directory deeper than [`MAX_DEPTH`], not looked into.
    TooDeep,
    /// A directory that could not be read.
    Unreadable(Error),
}

/// How many levels below its root a search goes.
pub const MAX_DEPTH: usize = 64;

/// A file that was opened: its size, and its bytes.
pub struct Opened {
    /// The size that the storage gives for it.
    pub size: u64,
    /// One whole version of it.
    pub body: Box<dyn Read + Send>,
}

/// Where the bytes of an output come from; opened again when they are needed again.
#[derive(Clone, Copy)]
pub enum Body<'a> {
    /// A file of a source.
    File(&'a dyn Storage, &'a RelPath),
    /// Bytes made here.
    Bytes(&'a [u8]),
}

impl Body<'_> {
    /// Opens it.
    pub fn open(&self) -> Result<Opened> {
        match *self {
            Body::File(storage, path) => storage.read(path),
            Body::Bytes(bytes) => {
                Ok(Opened { size: bytes.len() as u64, body: Box::new(std::io::Cursor::new(bytes.to_vec())) })
            }
        }
    }
}

/// One output to stage.
#[derive(Clone, Copy)]
pub struct Job<'a> {
    /// The path it will have.
    pub path: &'a RelPath,
    /// The size it must have.
    pub size: u64,
    /// The SHA-256 it must have.
    pub sha256: Digest,
    /// Its bytes.
    pub body: Body<'a>,
}

/// Why a job could not be staged.
#[derive(Debug)]
pub enum StageError {
    /// The source's side: it could not be read, or its bytes are not what was promised.
    Source(Error),
    /// The place's side, or a signal.
    Place(Error),
}

/// A stage: where outputs wait, out of readers' sight, until they are committed.
#[derive(Debug)]
pub struct Stage {
    token: String,
    /// How many directories of the place's own path were made for it.
    made: usize,
}

/// Gives a staged output its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Commit<'a> {
    /// Which job of the stage.
    pub job: usize,
    /// The name it gets.
    pub path: &'a RelPath,
    /// Whether a file of that name is expected there, and replaced. Else the name must be free.
    pub replace: bool,
}

/// A place that can be read from and published to.
pub trait Storage: Send + Sync {
    /// The place, for messages. Never holds a secret.
    fn describe(&self) -> String;

    /// The view on a place below this one. Nothing is touched.
    fn at(&self, path: &BundlePath) -> Box<dyn Storage>;

    /// Finds the directories that hold a regular file `marker`, the outermost of each branch, in no promised order;
    /// symbolic links and names that begin with `.distributor` are passed over. Fails with `not_found` where the place
    /// itself is not there.
    fn find(&self, marker: &str, visit: &mut dyn FnMut(&[u8], Met)) -> Result<()>;

    /// Visits every entry below, each once, directories before what they hold; names of ours at the root are left out.
    /// A place that is not there has no entries. An error of `visit` ends the listing and is returned.
    fn list(&self, visit: &mut dyn FnMut(Entry) -> Result<()>) -> Result<()>;

    /// Opens a regular file. `not_found` where there is none, `not_a_regular_file` where it, or a directory above it,
    /// is anything else. Nothing is followed, and nothing blocks.
    fn read(&self, path: &RelPath) -> Result<Opened>;

    /// The bytes of the file `name` at the root, at most `limit` of them, or `None` where there is none.
    fn get_small(&self, name: &str, limit: u64) -> Result<Option<Vec<u8>>>;

    /// Writes the small file `name` at the root whole: a reader sees the old bytes or the new ones.
    fn put_small(&self, name: &str, bytes: &[u8]) -> Result<()>;

    /// Opens a stage named by `token`, and makes the place's own path where it is not there.
    fn open_stage(&self, token: &str) -> Result<Stage>;

    /// Stages every job while checking its size and SHA-256, and says for each how it went: on the
    /// source's side `size_mismatch`, `digest_mismatch` and what reading gave. After a signal what is left is
    /// `interrupted`. One result in all stands for a stage that can't be written to.
    fn stage_all(&self, stage: &Stage, jobs: &[Job<'_>], cancel: &Cancel) -> Vec<std::result::Result<(), StageError>>;

    /// Commits staged jobs in the given order, each atomically. Ends at the first that fails.
    fn commit_all(&self, stage: &Stage, commits: &[Commit<'_>]) -> Result<()>;

    /// Removes the stage and what still lies in it. With `undo`, also the directories that [`Storage::open_stage`] made.
    fn close_stage(&self, stage: Stage, undo: bool) -> Result<()>;

    /// Makes the directories `paths`, parents first; those that are there already are fine.
    fn make_dirs(&self, paths: &[&str]) -> Result<()>;

    /// Removes files; one that is gone already is fine.
    fn remove_many(&self, paths: &[&RelPath]) -> Result<()>;

    /// Removes those of the directories that are empty, in the given order.
    fn remove_empty_dirs(&self, paths: &[&str]) -> Result<()>;
}

impl fmt::Debug for dyn Storage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.describe())
    }
}

/// The error of an output whose bytes are not what was promised.
pub(crate) fn mismatch(path: &RelPath, want: (u64, &Digest), got: (u64, &Digest)) -> Result<()> {
    if got.0 != want.0 {
        return Err(size_mismatch(path, want.0, got.0));
    }
    if got.1 != want.1 {
        return Err(Error::new(
            Code::DigestMismatch,
            format!("{path}: the SHA-256 is {}, the manifest says {}", got.1, want.1),
        ));
    }
    Ok(())
}

/// The error of a file that has another size than promised.
pub(crate) fn size_mismatch(path: &RelPath, want: u64, got: u64) -> Error {
    Error::new(Code::SizeMismatch, format!("{path}: the file has {got} bytes, the manifest says {want}"))
}
