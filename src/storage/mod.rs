//! Where bundles are read and outputs are published: one interface, and its backends.
//!
//! A storage is a view on one place, a directory or prefix. Plural verbs belong to the backend, which owns its own
//! concurrency; nothing above loops over blocking calls.

mod local;
pub mod s3;

use std::fmt;
use std::io::{Cursor, Read};
use std::time::Duration;

pub use local::Local;
pub use s3::S3;

use crate::digest::Fingerprint;
pub use crate::entry::{Entry, Kind, Modes};
use crate::error::{Code, Error, Result};
use crate::host::Cancel;
use crate::names::STAGE_PREFIX;
use crate::path::{BundlePath, RawPath, RelPath};
use crate::pool;

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

/// What a listing is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// A bundle's files.
    Source,
    /// What is published.
    Destination,
}

/// How many levels below its root a search goes.
pub const MAX_DEPTH: usize = 64;

/// A file that was opened: its size, and its bytes.
pub struct Opened<'a> {
    /// The size that the storage gives for it.
    pub size: u64,
    /// One whole version of it.
    pub body: Box<dyn Read + Send + 'a>,
}

/// Where the bytes of an output come from; opened again when they are needed again.
#[derive(Clone, Copy)]
pub enum Body<'a> {
    /// A file of a source.
    File(&'a dyn Storage, &'a RelPath),
    /// Bytes made here.
    Bytes(&'a [u8]),
    /// Bytes that are made when they are needed, the same each time.
    Made(&'a dyn Make),
}

/// Makes the bytes of an output.
pub trait Make: Sync {
    /// The bytes. An error is one of the source's side.
    fn make(&self) -> Result<Vec<u8>>;
}

impl<'a> Body<'a> {
    /// Opens it.
    pub fn open(&self) -> Result<Opened<'a>> {
        match *self {
            Body::File(storage, path) => storage.read(path),
            Body::Bytes(bytes) => Ok(Opened { size: bytes.len() as u64, body: Box::new(bytes) }),
            Body::Made(make) => {
                let bytes = make.make()?;
                Ok(Opened { size: bytes.len() as u64, body: Box::new(Cursor::new(bytes)) })
            }
        }
    }
}

/// One output to stage.
#[derive(Clone, Copy)]
pub struct Job<'a> {
    /// The path it will have.
    pub path: &'a RelPath,
    /// What its bytes must be; `None` where that is known only once they are made.
    pub expected: Option<Fingerprint>,
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

/// A stage: where outputs wait, out of readers' sight, until they are committed. Named by its token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stage(pub String);

impl Stage {
    /// Its name at the bundle path.
    pub fn name(&self) -> String {
        format!("{STAGE_PREFIX}{}", self.0)
    }
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

/// One version of a small file. Equal versions are equal bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version(pub String);

/// A small file and which version of it was read.
#[derive(Clone, Debug)]
pub struct Small {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Its version.
    pub version: Version,
}

/// A small file of a directory above a place.
#[derive(Clone, Debug)]
pub struct Above {
    /// That directory, for messages.
    pub place: String,
    /// The path from it to the place.
    pub path: String,
    /// The file's bytes.
    pub bytes: Vec<u8>,
}

/// What must be true of a small file for it to be written.
#[derive(Clone, Copy, Debug)]
pub enum Expected<'a> {
    /// Anything.
    Any,
    /// This version, or where `None` no file at all.
    Version(Option<&'a Version>),
}

/// What becomes of a publication that was cut short after its commit point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recovery {
    /// All outputs are staged here: whoever comes next finishes it.
    Redo,
    /// Only the source has the bytes: the journal is a mark, and the owner publishes again.
    DirtyMark,
}

/// A lock that is held. Dropped without [`Guard::release`], it is free again and its traces stay, as after a crash.
pub trait Guard: Send {
    /// Whether it is still held; `lock_lost` where it is not.
    fn check(&self) -> Result<()>;

    /// Frees it, and takes back the directories that locking made as far as they are empty. `mark` leaves a trace for
    /// [`Storage::disturbed`].
    fn release(self: Box<Self>, mark: bool) -> Result<()>;
}

/// A place that can be read from and published to.
pub trait Storage: Send + Sync {
    /// The place, for messages. Never holds a secret.
    fn describe(&self) -> String;

    /// How many files are best read at the same time.
    fn reads(&self) -> usize {
        pool::cores()
    }

    /// What recovery can do here.
    fn recovery(&self) -> Recovery;

    /// The view on a place below this one. Nothing is touched.
    fn at(&self, path: &BundlePath) -> Box<dyn Storage>;

    /// Finds the directories that hold a `marker`, of whatever kind but a symbolic link, the outermost of each branch, in no promised order;
    /// symbolic links and names that begin with `.distributor` are passed over. Fails with `not_found` where the place
    /// itself is not there.
    fn find(&self, marker: &str, visit: &mut dyn FnMut(&[u8], Met)) -> Result<()>;

    /// Visits every entry below, each once, directories before what they hold. In a destination names of ours at the root
    /// are left out, directories with a state or a lock of their own are not looked into, and a place that is not there has no
    /// entries; in a source all is shown, and `not_found` says that the place is not there. A directory on another file
    /// system, or deeper than any path may be, is shown as closed and not looked into. An error of `visit` ends the
    /// listing and is returned.
    fn list(&self, scope: Scope, visit: &mut dyn FnMut(Entry) -> Result<()>) -> Result<()>;

    /// Which of the paths name something, of whatever kind.
    fn exist_many(&self, paths: &[&RelPath]) -> Result<Vec<bool>>;

    /// The small files `name` in the directories above this place, as far as they can be read, each with the directory
    /// and the path that leads from it to here.
    fn above(&self, name: &str, limit: u64) -> Vec<Above>;

    /// Opens a regular file. `not_found` where there is none, `not_a_regular_file` where it, or a directory above it,
    /// is anything else. Nothing is followed, and nothing blocks.
    fn read(&self, path: &RelPath) -> Result<Opened<'static>>;

    /// The file `name` at the root, at most `limit` bytes of it, or `None` where there is none.
    fn get_small(&self, name: &str, limit: u64) -> Result<Option<Small>>;

    /// Writes the small file `name` at the root, durably and whole: a reader sees the old bytes or the new ones.
    /// `precondition_failed` where it is not as expected, and then nothing is written.
    fn put_small(&self, name: &str, bytes: &[u8], expected: Expected<'_>) -> Result<()>;

    /// Removes a small file durably; one that is gone already is fine.
    fn remove_small(&self, name: &str) -> Result<()>;

    /// The names of ours at the root that begin with `prefix`, sorted.
    fn own_names(&self, prefix: &str) -> Result<Vec<String>>;

    /// Whether the journal `journal`, or a trace of another command at work or cut short, lies here. Cheap: a journal
    /// that was written without the lock need not be seen.
    fn disturbed(&self, journal: &str) -> Result<bool>;

    /// Locks the place against other commands, and makes its own path where it is not there. While somebody else holds
    /// it, `waiting` is asked with the time waited so far; its error ends the wait. `holder` is left for others to read.
    fn lock(&self, holder: &[u8], waiting: &dyn Fn(Duration) -> Result<()>) -> Result<Box<dyn Guard>>;

    /// Whether somebody holds the lock now; an error where it could not be taken because of what stands at its name.
    fn is_locked(&self) -> Result<bool>;

    /// Removes stages, and files on their way to a name of ours, that no journal in `keep` knows. Only under the lock.
    fn sweep_stages(&self, keep: &[Stage]) -> Result<()>;

    /// Opens a new stage.
    fn open_stage(&self, stage: &Stage) -> Result<()>;

    /// Stages every job while checking its size and SHA-256, and says for each what it is, or what went wrong: on the
    /// source's side `size_mismatch`, `digest_mismatch` and what reading gave. The jobs are numbered from `first`. After a
    /// signal what is left is `interrupted`. One result in all stands for a stage that can't be written to.
    fn stage_all(
        &self,
        stage: &Stage,
        first: usize,
        jobs: &[Job<'_>],
        cancel: &Cancel,
    ) -> Vec<std::result::Result<Fingerprint, StageError>>;

    /// Makes what was staged durable.
    fn flush_stage(&self, stage: &Stage, jobs: usize) -> Result<()>;

    /// The bytes of a staged job, at most `limit` of them; `None` where it is not there.
    fn staged(&self, stage: &Stage, job: usize, limit: u64) -> Result<Option<Vec<u8>>>;

    /// Commits staged jobs, each atomically and in no promised order; one that was committed before is passed over. Ends
    /// soon after one failed, with `commit_incomplete` where a name that should be free is taken. `jobs` are those that
    /// were staged; only a place that recovers by [`Recovery::DirtyMark`] may read them again. Stores that know no
    /// conditions write over what took a name since it was last looked at.
    fn commit_all(&self, stage: &Stage, jobs: &[Job<'_>], commits: &[Commit<'_>]) -> Result<()>;

    /// Removes those of `paths` that this stage created and that nobody changed since. For [`Recovery::DirtyMark`].
    fn remove_created(&self, stage: &Stage, paths: &[&RelPath]) -> Result<()>;

    /// Which of `paths` hold what this stage wrote. For [`Recovery::DirtyMark`].
    fn wrote(&self, stage: &Stage, paths: &[&RelPath]) -> Result<Vec<bool>>;

    /// Removes the stage and what still lies in it; one that is gone already is fine.
    fn close_stage(&self, stage: &Stage) -> Result<()>;

    /// Fails with `permission_denied` or `read_only` where names can't be made or removed in one of the directories; those
    /// that are not there are fine. Where nothing can be known beforehand, nothing is looked at.
    fn check_writable(&self, paths: &[&[u8]]) -> Result<()>;

    /// Makes the directories `paths`, parents first; those that are there already are fine.
    fn make_dirs(&self, paths: &[&str]) -> Result<()>;

    /// Removes files, links and special files, and says for each how it went; one that is gone already is fine. A name
    /// that leads out of the place is refused.
    fn remove_many(&self, paths: &[&RawPath]) -> Vec<Result<()>>;

    /// Removes those of the directories that are empty, in the given order.
    fn remove_empty_dirs(&self, paths: &[&RawPath]) -> Result<()>;

    /// Makes names that were given or removed in these directories durable; the empty path is the
    /// root.
    fn flush_dirs(&self, paths: &[&[u8]]) -> Result<()>;
}

impl fmt::Debug for dyn Storage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.describe())
    }
}

/// The error of an output whose bytes are not what was promised.
pub(crate) fn mismatch(path: &RelPath, want: &Fingerprint, got: &Fingerprint) -> Result<()> {
    if got.size != want.size {
        return Err(size_mismatch(path, want.size, got.size));
    }
    if got.sha256 != want.sha256 {
        let message = format!("{path}: the SHA-256 is {}, the manifest says {}", got.sha256, want.sha256);
        return Err(Error::new(Code::DigestMismatch, message));
    }
    Ok(())
}

/// The error of a file that has another size than promised.
pub(crate) fn size_mismatch(path: &RelPath, want: u64, got: u64) -> Error {
    Error::new(Code::SizeMismatch, format!("{path}: the file has {got} bytes, the manifest says {want}"))
}
