//! Stages: a private directory beside the published files, so that a rename is all that makes an output visible.

use std::io::{self, Write};

use super::dir::Dir;
use super::{Local, Parents, existing};
use crate::digest::pass;
use crate::error::{Code, Error, Result};
use crate::host::Cancel;
use crate::pool;
use crate::storage::StageError::{Place, Source};
use crate::storage::{Commit, Job, STAGE_PREFIX, Stage, StageError, mismatch, size_mismatch};

type StageResult = std::result::Result<(), StageError>;

/// How many staged files share a directory.
const SHARD: usize = 256;
const PRIVATE_DIR: u32 = 0o700;

fn name(stage: &Stage) -> String {
    format!("{STAGE_PREFIX}{}", stage.token)
}

fn staged(job: usize) -> (String, String) {
    ((job / SHARD).to_string(), job.to_string())
}

impl Local {
    pub(super) fn new_stage(&self, token: &str) -> Result<Stage> {
        let mut stage = Stage { token: token.to_owned(), made: 0 };
        let fail = |error: io::Error| self.fail("", &error);
        let mut make = || {
            let (above, missing) = existing(&self.root);
            let mut root = Dir::open_root(&above)?;
            for level in &missing {
                stage.made += usize::from(root.make_one(level, self.modes.directory)?);
                root = root.open_dir(level)?;
            }
            if let Some(below) = self.below.below() {
                stage.made += root.make_dir(below.as_str(), self.modes.directory)?.1;
            }
            self.open()?.make_one(&name(&stage), PRIVATE_DIR)
        };
        match make().map_err(fail) {
            Ok(true) => Ok(stage),
            Ok(false) => Err(Error::new(Code::StorageError, format!("{}: it is there already", name(&stage)))),
            Err(error) => {
                self.unmake(stage.made);
                Err(error)
            }
        }
    }

    pub(super) fn fill_stage(&self, stage: &Stage, jobs: &[Job<'_>], cancel: &Cancel) -> Vec<StageResult> {
        let shards = match self.shards(stage, jobs.len()) {
            Ok(shards) => shards,
            Err(error) => return vec![Err(Place(error))],
        };
        let numbered: Vec<(usize, &Job<'_>)> = jobs.iter().enumerate().collect();
        pool::map(pool::cores(), &numbered, |(at, job)| {
            cancel.check().map_err(Place)?;
            self.fill_one(&shards[at / SHARD], *at, job, cancel)
        })
    }

    fn shards(&self, stage: &Stage, jobs: usize) -> Result<Vec<Dir>> {
        let fail = |error: io::Error| self.fail(&name(stage), &error);
        let dir = self.dir()?.open_dir(&name(stage)).map_err(fail)?;
        let shard = |at: usize| dir.make_dir(&at.to_string(), PRIVATE_DIR).map(|(dir, _)| dir);
        (0..jobs.div_ceil(SHARD)).map(shard).collect::<io::Result<_>>().map_err(fail)
    }

    fn fill_one(&self, shard: &Dir, at: usize, job: &Job<'_>, cancel: &Cancel) -> StageResult {
        let mut opened = job.body.open().map_err(Source)?;
        if opened.size != job.size {
            return Err(Source(size_mismatch(job.path, job.size, opened.size)));
        }
        let fail = |error: io::Error| Place(self.fail(job.path.as_str(), &error));
        let mut file = shard.create(&staged(at).1, self.modes.file).map_err(fail)?;
        // Reading and writing share one pass; which of the two failed is kept aside.
        let mut written = Ok(());
        let passed = pass(&mut opened.body, job.size, |bytes| {
            written = cancel.check().map_err(Place).and_then(|()| file.write_all(bytes).map_err(fail));
            written.as_ref().map_or_else(|_| Err(io::ErrorKind::Other.into()), |()| Ok(()))
        });
        written?;
        let (size, sha256) = passed.map_err(|error| Source(Error::io(job.path, &error)))?;
        mismatch(job.path, (job.size, &job.sha256), (size, &sha256)).map_err(Source)
    }

    pub(super) fn empty_stage(&self, stage: &Stage, commits: &[Commit<'_>]) -> Result<()> {
        let dir = self.dir()?;
        let from = dir.open_dir(&name(stage)).map_err(|error| self.fail(&name(stage), &error))?;
        let (mut shards, mut parents) = (Parents::new(&from), Parents::new(dir));
        for commit in commits {
            let (shard, number) = staged(commit.job);
            let mut rename = || {
                let shard = shards.of(&format!("{shard}/{number}"))?;
                let into = parents.of(commit.path.as_str())?;
                if commit.replace {
                    shard.rename(&number, into, commit.path.file_name())
                } else {
                    shard.rename_new(&number, into, commit.path.file_name())
                }
            };
            rename().map_err(|error| self.fail(commit.path.as_str(), &error))?;
        }
        Ok(())
    }

    pub(super) fn drop_stage(&self, stage: &Stage, undo: bool) -> Result<()> {
        let dir = self.dir()?;
        let clear = || {
            dir.open_dir(&name(stage))?.clear()?;
            dir.remove_dir(&name(stage))
        };
        clear().map_err(|error| self.fail(&name(stage), &error))?;
        if undo {
            self.unmake(stage.made);
        }
        Ok(())
    }

    /// Takes back the directories that were made for a stage, as far as they are empty.
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
}
