//! Stages: a private directory beside the published files, so that a rename is all that makes an output visible.

use std::io::{self, Read, Write};

use super::dir::Dir;
use super::{FEW, Local, Parents, is_link};
use crate::digest::{Fingerprint, pass};
use crate::error::{Code, Error, Result};
use crate::host::Cancel;
use crate::pool;
use crate::storage::StageError::{Place, Source};
use crate::storage::{Commit, Job, Stage, StageError, mismatch, size_mismatch};

type StageResult = std::result::Result<Fingerprint, StageError>;

/// How many staged files share a directory.
const SHARD: usize = 256;
const PRIVATE_DIR: u32 = 0o700;

fn shard_of(job: usize) -> String {
    (job / SHARD).to_string()
}

fn gone(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound
}

impl Local {
    fn stage_dir(&self, stage: &Stage) -> Result<Dir> {
        self.dir()?.open_dir(stage.name()).map_err(|error| self.fail(stage.name(), &error))
    }

    pub(super) fn new_stage(&self, stage: &Stage) -> Result<()> {
        match self.dir()?.make_one(&stage.name(), PRIVATE_DIR) {
            Ok(true) => Ok(()),
            Ok(false) => Err(Error::new(Code::StorageError, format!("{}: it is there already", stage.name()))),
            Err(error) => Err(self.fail(stage.name(), &error)),
        }
    }

    pub(super) fn fill_stage(
        &self,
        stage: &Stage,
        first: usize,
        jobs: &[Job<'_>],
        cancel: &Cancel,
    ) -> Vec<StageResult> {
        let dir = match self.sharded(stage, first + jobs.len()) {
            Ok(dir) => dir,
            Err(error) => return vec![Err(Place(error))],
        };
        let numbered: Vec<(usize, &Job<'_>)> = (first..).zip(jobs).collect();
        pool::map(pool::cores(), &numbered, |(at, job)| {
            cancel.check().map_err(Place)?;
            self.fill_one(&dir, *at, job, cancel)
        })
    }

    /// The stage with the directories that so many jobs need.
    fn sharded(&self, stage: &Stage, jobs: usize) -> Result<Dir> {
        let dir = self.stage_dir(stage)?;
        let make =
            || (0..jobs.div_ceil(SHARD)).try_for_each(|at| dir.make_one(&at.to_string(), PRIVATE_DIR).map(|_| ()));
        make().map_err(|error| self.fail(stage.name(), &error))?;
        Ok(dir)
    }

    fn fill_one(&self, stage: &Dir, at: usize, job: &Job<'_>, cancel: &Cancel) -> StageResult {
        let mut opened = job.body.open().map_err(Source)?;
        let size = job.expected.map_or(opened.size, |expected| expected.size);
        if opened.size != size {
            return Err(Source(size_mismatch(job.path, size, opened.size)));
        }
        let fail = |error: io::Error| Place(self.fail(job.path, &error));
        let mut file = stage.create(&format!("{}/{at}", shard_of(at)), self.modes.file).map_err(fail)?;
        // Reading and writing share one pass; which of the two failed is kept aside.
        let mut written = Ok(());
        let passed = pass(&mut opened.body, size, |bytes| {
            let _ = cancel.go_on(bytes.len());
            written = cancel.check().map_err(Place).and_then(|()| file.write_all(bytes).map_err(fail));
            written.as_ref().map_or_else(|_| Err(io::ErrorKind::Other.into()), |()| Ok(()))
        });
        written?;
        let got = passed.map_err(|error| Source(Error::io(job.path, &error)))?;
        job.expected.map_or(Ok(()), |expected| mismatch(job.path, &expected, &got)).map_err(Source)?;
        Ok(got)
    }

    pub(super) fn sync_stage(&self, stage: &Stage, jobs: usize) -> Result<()> {
        let dir = self.stage_dir(stage)?;
        let sync = || {
            if jobs > FEW {
                return dir.sync_all();
            }
            for job in 0..jobs {
                if let Some(file) = dir.open_file(&format!("{}/{job}", shard_of(job)))? {
                    file.sync_all()?;
                }
            }
            for shard in 0..jobs.div_ceil(SHARD) {
                dir.open_dir(shard.to_string())?.sync()?;
            }
            dir.sync()
        };
        sync().map_err(|error| self.fail(stage.name(), &error))
    }

    pub(super) fn read_staged(&self, stage: &Stage, job: usize, limit: u64) -> Result<Option<Vec<u8>>> {
        let read = || -> io::Result<Option<Vec<u8>>> {
            let dir = self.open()?.open_dir(stage.name())?;
            let Some(file) = dir.open_file(&format!("{}/{job}", shard_of(job)))? else { return Ok(None) };
            let mut bytes = Vec::new();
            file.take(limit).read_to_end(&mut bytes)?;
            Ok(Some(bytes))
        };
        match read() {
            Err(error) if gone(&error) => Ok(None),
            result => result.map_err(|error| self.fail(stage.name(), &error)),
        }
    }

    pub(super) fn empty_stage(&self, stage: &Stage, commits: &[Commit<'_>]) -> Result<()> {
        let (dir, from) = (self.dir()?, self.stage_dir(stage)?);
        let (mut shards, mut parents) = (Parents::new(&from), Parents::new(&dir));
        for commit in commits {
            let number = commit.job.to_string();
            let mut rename = || -> io::Result<()> {
                let shard = shards.of(shard_of(commit.job).as_bytes())?;
                let into = parents.of(commit.path.parent().unwrap_or_default().as_bytes())?;
                let name = commit.path.file_name();
                let renamed = if commit.replace {
                    shard.rename(&number, into, name)
                } else {
                    shard.rename_new(&number, into, name)
                };
                match renamed {
                    // Committed before, by who was cut short.
                    Err(_) if shard.kind(&number)?.is_none() => Ok(()),
                    // Linked before, and not yet unlinked.
                    Err(_) if shard.same(&number, into, name)? => shard.remove_file(&number),
                    renamed => renamed,
                }
            };
            rename().map_err(|error| self.refused(commit.path.as_str(), &error))?;
        }
        Ok(())
    }

    /// The error of a name past the commit point that could not be given.
    pub(super) fn refused(&self, path: &str, error: &io::Error) -> Error {
        use io::ErrorKind as K;
        let taken =
            matches!(error.kind(), K::AlreadyExists | K::IsADirectory | K::NotADirectory | K::DirectoryNotEmpty);
        if taken || is_link(error) {
            let path = self.path().join(path);
            let path = crate::path::escape(path.as_os_str().as_encoded_bytes());
            let message = format!("{path}: something that is not ours took this name meanwhile");
            return Error::new(Code::CommitIncomplete, message).hint("move it aside; the next run finishes the rest");
        }
        self.fail(path, error)
    }

    /// Removes a stage with all that lies in it, or a file of ours that stood on its way.
    pub(super) fn sweep(&self, name: &str) -> Result<()> {
        let Some(dir) = self.try_dir()? else { return Ok(()) };
        let clear = || match dir.open_dir(name) {
            Err(error) if gone(&error) => Ok(()),
            // With NOFOLLOW a link is no directory either: the link itself goes.
            Err(_) => dir.remove_file(name),
            Ok(stage) => stage.clear().and_then(|()| dir.remove_dir(name)).map(|_| ()),
        };
        clear().map_err(|error| self.fail(name, &error))
    }
}
