//! Every request that the S3 backend knows, each with what is right once it was done.

use std::time::Duration;

use distributor::digest::Fingerprint;
use distributor::error::{Error, Result};
use distributor::host::Cancel;
use distributor::names::STATE;
use distributor::path::{RawPath, RelPath};
use distributor::storage::s3::{Parts, Settings};
use distributor::storage::{Body, Commit, Expected, Job, S3, Scope, Stage, StageError, Storage};

use crate::buckets::s3_with;
use crate::servers::proxy::{Kind, Proxy};
use crate::servers::{Place, Server};

/// How long a server may be silent.
pub(crate) const PATIENCE: Duration = Duration::from_secs(2);
/// The least that a part may have, but the last one.
pub(crate) const PART: usize = 5 * 1024 * 1024;

/// A place in a bucket that is reached by way of a proxy.
pub(crate) struct Line {
    pub(crate) place: Place,
    pub(crate) proxy: Proxy,
    pub(crate) cancel: Cancel,
    pub(crate) storage: S3,
}

impl Line {
    pub(crate) fn to(place: Place) -> Line {
        Line::with(place, |_| ())
    }

    /// The same for somebody who does not wait for long.
    pub(crate) fn hasty(place: Place) -> Line {
        Line::with(place, |settings| settings.timeout = PATIENCE)
    }

    pub(crate) fn with(place: Place, change: impl FnOnce(&mut Settings)) -> Line {
        let (proxy, cancel) = (Proxy::before(place.server.address), Cancel::default());
        let storage = s3_with(&place, &format!("http://{}", proxy.address), |settings| {
            settings.cancel = cancel.clone();
            settings.parts = Parts { above: PART as u64, size: PART as u64 };
            change(settings);
        });
        Line { place, proxy, cancel, storage }
    }

    /// Reads an object whole.
    pub(crate) fn read(&self, path: &str) -> Result<Vec<u8>> {
        let mut opened = self.storage.read(&rel(path))?;
        let mut bytes = Vec::new();
        opened.body.read_to_end(&mut bytes).map_err(|error| Error::io(path, &error))?;
        Ok(bytes)
    }

    /// Stages outputs.
    pub(crate) fn stage(&self, stage: &str, outputs: &[(&str, &[u8])]) -> Result<()> {
        let paths: Vec<RelPath> = outputs.iter().map(|(path, _)| rel(path)).collect();
        let jobs = jobs(&paths, outputs);
        self.storage.stage_all(&Stage(stage.to_owned()), 0, &jobs, &self.cancel).into_iter().try_for_each(|result| {
            match result {
                Ok(_) => Ok(()),
                Err(StageError::Source(error) | StageError::Place(error)) => Err(error),
            }
        })
    }

    /// Commits outputs that were staged.
    pub(crate) fn commit(&self, stage: &str, outputs: &[(&str, &[u8])], replace: bool) -> Result<()> {
        let paths: Vec<RelPath> = outputs.iter().map(|(path, _)| rel(path)).collect();
        let commits: Vec<_> = paths.iter().enumerate().map(|(job, path)| Commit { job, path, replace }).collect();
        self.storage.commit_all(&Stage(stage.to_owned()), &jobs(&paths, outputs), &commits)
    }

    /// Stages outputs, commits and clears away.
    pub(crate) fn put(&self, outputs: &[(&str, &[u8])], replace: bool) -> Result<()> {
        self.stage("1", outputs)?;
        self.commit("1", outputs, replace)?;
        self.storage.close_stage(&Stage("1".to_owned()))
    }

    pub(crate) fn remove(&self, paths: &[&str]) -> Vec<Result<()>> {
        let paths: Vec<RawPath> = paths.iter().copied().map(RawPath::from).collect();
        self.storage.remove_many(&paths.iter().collect::<Vec<_>>())
    }

    pub(crate) fn list(&self) -> Result<Vec<String>> {
        let mut names = Vec::new();
        self.storage.list(Scope::Destination, &mut |entry| {
            names.push(entry.raw.to_string());
            Ok(())
        })?;
        Ok(names)
    }
}

fn jobs<'a>(paths: &'a [RelPath], outputs: &'a [(&str, &'a [u8])]) -> Vec<Job<'a>> {
    let job = |(path, (_, bytes)): (&'a RelPath, &(&str, &'a [u8]))| Job {
        path,
        expected: Some(Fingerprint::of(bytes)),
        body: Body::Bytes(bytes),
    };
    paths.iter().zip(outputs).map(job).collect()
}

pub(crate) fn rel(path: &str) -> RelPath {
    RelPath::parse(path).unwrap()
}

/// Bytes of which no two parts are the same.
pub(crate) fn bytes(length: usize) -> Vec<u8> {
    (0..length as u64).map(|at| (at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8).collect()
}

/// A request, by what makes the backend send it.
pub(crate) struct Verb {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    /// What has to be there before.
    pub(crate) before: &'static [(&'static str, &'static [u8])],
    /// An error is one that was told; what is not right once it was done is a panic.
    pub(crate) act: fn(&Line) -> Result<()>,
    /// What is there after it.
    pub(crate) after: fn() -> Vec<(&'static str, Vec<u8>)>,
}

const SOME: &[(&str, &[u8])] = &[("a", b"1"), ("b/c", b"2")];

fn some() -> Vec<(&'static str, Vec<u8>)> {
    SOME.iter().map(|(key, bytes)| (*key, bytes.to_vec())).collect()
}

fn large() -> Vec<u8> {
    bytes(PART + 3)
}

fn streamed() -> Vec<u8> {
    bytes(2 * 1024 * 1024 + 1)
}

fn put_large(line: &Line) -> Result<()> {
    line.put(&[("large", &large())], false)
}

fn large_alone() -> Vec<(&'static str, Vec<u8>)> {
    vec![("large", large())]
}

/// All of them.
pub(crate) const VERBS: [Verb; 15] = [
    Verb {
        name: "read",
        kind: Kind::GetObject,
        before: SOME,
        act: |line| line.read("b/c").map(|bytes| assert_eq!(bytes, b"2")),
        after: some,
    },
    Verb {
        name: "get_small",
        kind: Kind::GetObject,
        before: &[(STATE, b"state")],
        act: |line| line.storage.get_small(STATE, 99).map(|small| assert_eq!(small.unwrap().bytes, b"state")),
        after: || vec![(STATE, b"state".to_vec())],
    },
    Verb {
        name: "disturbed",
        kind: Kind::HeadObject,
        before: &[(".distributor.lock", b"")],
        act: |line| line.storage.disturbed("").map(|disturbed| assert!(disturbed)),
        after: || vec![(".distributor.lock", Vec::new())],
    },
    Verb {
        name: "put_small",
        kind: Kind::PutObject,
        before: &[],
        act: |line| line.storage.put_small(STATE, b"new", Expected::Version(None)),
        after: || vec![(STATE, b"new".to_vec())],
    },
    Verb {
        name: "put_small, replacing",
        kind: Kind::PutObject,
        before: &[(STATE, b"old")],
        act: |line| {
            let old = line.storage.get_small(STATE, 9)?.unwrap().version;
            line.storage.put_small(STATE, b"new", Expected::Version(Some(&old)))
        },
        after: || vec![(STATE, b"new".to_vec())],
    },
    Verb {
        name: "put_small under the lock",
        kind: Kind::PutObject,
        before: &[],
        act: |line| {
            let guard = line.storage.lock(b"me", &|_| Ok(()))?;
            let put = line.storage.put_small(STATE, b"new", Expected::Version(None));
            guard.release(false)?;
            put
        },
        after: || vec![(STATE, b"new".to_vec())],
    },
    Verb {
        name: "create",
        kind: Kind::PutObject,
        before: SOME,
        act: |line| line.put(&[("n", b"3")], false),
        after: || [some(), vec![("n", b"3".to_vec())]].concat(),
    },
    Verb {
        name: "replace, streamed",
        kind: Kind::PutObject,
        before: &[("s", b"old")],
        act: |line| line.put(&[("s", &streamed())], true),
        after: || vec![("s", streamed())],
    },
    Verb {
        name: "list",
        kind: Kind::List,
        before: SOME,
        act: |line| line.list().map(|names| assert_eq!(names, ["a", "b/c"])),
        after: some,
    },
    Verb {
        name: "remove one",
        kind: Kind::DeleteObject,
        before: &[("a", b"1"), ("b/c", b"2"), ("gone", b"3")],
        act: |line| line.remove(&["gone"]).into_iter().collect(),
        after: some,
    },
    Verb {
        name: "remove many",
        kind: Kind::DeleteObjects,
        before: &[("a", b"1"), ("b/c", b"2"), ("g/1", b"3"), ("g/2", b"4")],
        act: |line| line.remove(&["g/1", "g/2", "g/3"]).into_iter().collect(),
        after: some,
    },
    Verb { name: "begin", kind: Kind::CreateUpload, before: &[], act: put_large, after: large_alone },
    Verb { name: "part", kind: Kind::UploadPart, before: &[], act: put_large, after: large_alone },
    Verb { name: "complete", kind: Kind::CompleteUpload, before: &[], act: put_large, after: large_alone },
    Verb {
        name: "abort",
        kind: Kind::AbortUpload,
        before: &[],
        act: |line| {
            line.stage("1", &[("large", &large())])?;
            line.storage.close_stage(&Stage("1".to_owned()))
        },
        after: Vec::new,
    },
];

impl Verb {
    /// A place where it can be done.
    pub(crate) fn line(&self, server: &'static Server, hasty: bool) -> Line {
        let place = server.place("verbs");
        let line = if hasty { Line::hasty(place) } else { Line::to(place) };
        self.before.iter().for_each(|(key, bytes)| line.place.put(key, bytes));
        line
    }

    /// Panics unless what is there is what should be after it.
    pub(crate) fn check(&self, line: &Line, what: &str) {
        let want: std::collections::BTreeMap<String, Vec<u8>> =
            (self.after)().into_iter().map(|(key, bytes)| (key.to_owned(), bytes)).collect();
        let there = line.place.tree();
        assert!(there == want, "{what}: {:?} instead of {:?}", there.keys(), want.keys());
        // An upload whose id was lost on the way nobody can abort: that is for the rules of the bucket.
        assert!(self.kind == Kind::CreateUpload || line.place.uploads().is_empty(), "{what}");
    }

    /// How many of the requests that it is about came.
    pub(crate) fn count(&self, line: &Line) -> usize {
        line.proxy.count(self.kind)
    }
}
