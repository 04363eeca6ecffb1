//! Outputs: what is made sure of before the commit point, and the PUTs that are the operations after it.

use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ureq::http::Method;

use super::client::{Answer, Ask};
use super::payload::{Payload, checked_bytes};
use super::small::md5_of;
use super::{Held, S3};
use crate::digest::{Fingerprint, pass};
use crate::error::{Code, Error, Result};
use crate::host::Cancel;
use crate::path::RelPath;
use crate::pool;
use crate::storage::{Body, Commit, Job, Stage, StageError, mismatch};

/// The header that tells which publication made an object.
pub(super) const TOKEN: &str = "x-amz-meta-distributor-token";
/// What a server refuses that is not an error at once: a name that is taken, an upload that was completed before, and
/// conditions that the server does not know.
pub(super) const REFUSED: &[u16] = &[404, 412, 501];
/// The longest key, in bytes (Amazon S3 User Guide, "Naming Amazon S3 objects").
const LONGEST_KEY: usize = 1024;
/// Up to this size, which is that of one read, bytes are held while they are sent.
const SMALL: u64 = 128 * 1024;
/// How many bytes are held like that at a time at most.
const SMALLS: u64 = 16 * 1024 * 1024;

impl S3 {
    /// Makes sure of every job's bytes, and sends what can be sent without anybody seeing it.
    pub(super) fn stage_jobs(
        &self,
        stage: &Stage,
        first: usize,
        jobs: &[Job<'_>],
        cancel: &Cancel,
    ) -> Vec<std::result::Result<Fingerprint, StageError>> {
        let is_big = |job: &Job<'_>| job.expected.is_some_and(|want| want.size > self.settings.parts.above);
        let big: Vec<usize> = (0..jobs.len()).filter(|at| is_big(&jobs[*at])).collect();
        let fits = jobs.iter().try_for_each(|job| self.fits(job.path));
        let uploads = match fits.and_then(|()| self.begin_uploads(stage, jobs, &big)) {
            Ok(uploads) => uploads,
            Err(error) => return vec![Err(StageError::Place(error))],
        };
        let numbered: Vec<(usize, &Job<'_>)> = jobs.iter().enumerate().collect();
        let small: Vec<(usize, &Job<'_>)> = numbered.iter().copied().filter(|(_, job)| !is_big(job)).collect();
        let checked = pool::map(pool::cores(), &small, |(at, job)| (*at, self.check(stage, first + at, job, cancel)));
        let mut results: Vec<_> = checked;
        for (at, upload) in big.into_iter().zip(uploads) {
            let sent = self.send_parts(&jobs[at], upload, cancel);
            let held = |(what, upload)| {
                self.hold(stage, first + at, Held::Upload(upload));
                what
            };
            results.push((at, sent.map(held)));
        }
        results.sort_unstable_by_key(|(at, _)| *at);
        results.into_iter().map(|(_, result)| result).collect()
    }

    /// Whether an object can have this path: with the prefix a key may be too long.
    fn fits(&self, path: &RelPath) -> Result<()> {
        let key = self.key(path.as_str());
        if key.len() <= LONGEST_KEY {
            return Ok(());
        }
        let message = format!(
            "{}: the key has {} bytes, and no more than {LONGEST_KEY} are allowed",
            self.client.place(&key),
            key.len()
        );
        Err(Error::new(Code::PathTooLong, message).hint("shorten the path, or the prefix"))
    }

    /// Up to this size bytes are held while they are sent.
    fn small(&self) -> u64 {
        SMALL.min(SMALLS / self.settings.concurrency.max(1) as u64)
    }

    pub(super) fn hold(&self, stage: &Stage, job: usize, held: Held) {
        self.held.lock().unwrap_or_else(PoisonError::into_inner).insert((stage.0.clone(), job), held);
    }

    fn held(&self, stage: &Stage, job: usize) -> Option<Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner).get(&(stage.0.clone(), job)).cloned()
    }

    /// Reads a job to its end: whether its bytes are the right ones is known before anything changes.
    fn check(
        &self,
        stage: &Stage,
        number: usize,
        job: &Job<'_>,
        cancel: &Cancel,
    ) -> std::result::Result<Fingerprint, StageError> {
        cancel.check().map_err(StageError::Place)?;
        let mut opened = job.body.open().map_err(StageError::Source)?;
        let most = job.expected.map_or(u64::MAX, |want| want.size);
        let mut md5 = md5::Context::new();
        let is_streamed = most > self.small();
        let read = pass(opened.body.as_mut(), most, |bytes| {
            if is_streamed {
                md5.consume(bytes);
            }
            cancel.go_on(bytes.len())
        });
        let got = read.map_err(|error| match cancel.check() {
            Err(interrupted) => StageError::Place(interrupted),
            Ok(()) => StageError::Source(Error::io(job.path, &error)),
        })?;
        if let Some(want) = job.expected {
            mismatch(job.path, &want, &got).map_err(StageError::Source)?;
        }
        if is_streamed {
            self.hold(stage, number, Held::Md5(STANDARD.encode(md5.finalize().0)));
        }
        Ok(got)
    }

    /// Puts the jobs, several at a time; ends at the first that fails.
    pub(super) fn put_jobs(&self, stage: &Stage, jobs: &[Job<'_>], commits: &[Commit<'_>]) -> Result<()> {
        let put = |commit: &Commit<'_>| self.put_job(stage, &jobs[commit.job], commit);
        pool::map_while(self.settings.concurrency, commits, put, Result::is_ok).into_iter().collect()
    }

    fn put_job(&self, stage: &Stage, job: &Job<'_>, commit: &Commit<'_>) -> Result<()> {
        let want = match (job.expected, job.body) {
            (Some(want), _) => want,
            (None, Body::Bytes(bytes)) => Fingerprint::of(bytes),
            (None, _) => Fingerprint::of(&read_all(job)?),
        };
        match self.held(stage, commit.job) {
            Some(Held::Upload(upload)) => return self.complete(stage, commit, &upload),
            _ if want.size > self.settings.parts.above => {
                return self.send_and_complete(stage, &Job { expected: Some(want), ..*job }, commit);
            }
            _ => {}
        }
        let key = self.key(commit.path.as_str());
        let bytes = if want.size <= self.small() { Some(checked_bytes(job, want)?) } else { None };
        let payload = bytes.as_deref().map_or(Payload::Job(job, want), Payload::Bytes);
        let md5 = match (&bytes, self.held(stage, commit.job)) {
            (Some(bytes), _) => Some(md5_of(bytes)),
            (None, Some(Held::Md5(md5))) => Some(md5),
            (None, _) => None,
        };
        self.conditionally(stage, commit, &|if_free| {
            let mut ask = self.object(Ask::new(Method::PUT, &key).of_object(), commit.path, stage).payload(payload);
            if let Some(md5) = &md5 {
                ask = ask.header("content-md5", md5);
            }
            self.put(&ask.if_free(if_free).or(REFUSED))
        })
    }

    /// Sends what makes an output, on the condition that its name is free where it should be.
    pub(super) fn conditionally(
        &self,
        stage: &Stage,
        commit: &Commit<'_>,
        send: &dyn Fn(bool) -> Result<Answer>,
    ) -> Result<()> {
        let key = self.key(commit.path.as_str());
        let conditional = !commit.replace && !self.unconditional.load(Ordering::Relaxed);
        let mut answer = send(conditional)?;
        if answer.status == 501 && conditional {
            // The server knows no conditions.
            self.unconditional.store(true, Ordering::Relaxed);
            answer = send(false)?;
        }
        match answer.status {
            _ if answer.is_good() => Ok(()),
            // An earlier try, or this publication before it was cut short, has made it.
            404 | 412 if self.is_of(stage, &key)? => Ok(()),
            412 => {
                let message = format!("{}: something that is not ours took this name", self.client.place(&key));
                Err(Error::new(Code::CommitIncomplete, message).hint("move it aside; the next run finishes"))
            }
            _ => Err(self.client.refusal(&key, answer)),
        }
    }

    /// The headers of a new object.
    pub(super) fn object<'a>(&self, ask: Ask<'a>, path: &RelPath, stage: &Stage) -> Ask<'a> {
        let mut ask = ask.header("content-type", content_type(path)).header(TOKEN, &stage.0);
        if let Some(value) = (self.settings.cache_control)(path) {
            ask = ask.header("cache-control", value);
        }
        if let Some(class) = &self.settings.storage_class {
            ask = ask.header("x-amz-storage-class", class);
        }
        ask
    }

    /// Whether the publication of this stage made the object.
    fn is_of(&self, stage: &Stage, key: &str) -> Result<bool> {
        Ok(self.head(key)?.is_some_and(|answer| answer.header(TOKEN) == Some(&stage.0)))
    }

    pub(super) fn are_of(&self, stage: &Stage, paths: &[&RelPath]) -> Result<Vec<bool>> {
        let one = |path: &&RelPath| self.is_of(stage, &self.key(path.as_str()));
        pool::map(self.settings.concurrency, paths, one).into_iter().collect()
    }

    /// Removes the objects that this stage made: the version that was looked at, and no other.
    pub(super) fn take_back(&self, stage: &Stage, paths: &[&RelPath]) -> Result<()> {
        let one = |path: &&RelPath| {
            let key = self.key(path.as_str());
            let there = match self.head(&key) {
                // Nothing could be made there.
                Err(error) if error.code == Code::PathTooLong => None,
                there => there?,
            };
            let Some(answer) = there.filter(|answer| answer.header(TOKEN) == Some(&stage.0)) else {
                return Ok(());
            };
            let mut ask = Ask::new(Method::DELETE, &key).or(&[404, 412, 501]);
            match (answer.header("x-amz-version-id").filter(|version| *version != "null"), answer.header("etag")) {
                (Some(version), _) => ask = ask.query("versionId", version),
                (None, Some(etag)) => ask = ask.header("if-match", etag),
                (None, None) => {}
            }
            let answer = self.client.send(&ask)?;
            // The server knows no conditions: what was looked at a moment ago is it.
            if answer.status == 501 { self.delete(&key) } else { Ok(()) }
        };
        pool::map(self.settings.concurrency, paths, one).into_iter().collect()
    }
}

fn read_all(job: &Job<'_>) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut opened = job.body.open()?;
    opened.body.read_to_end(&mut bytes).map_err(|error| Error::io(job.path, &error))?;
    Ok(bytes)
}

/// `Content-Type` by the name's extension; what is text is UTF-8.
fn content_type(path: &RelPath) -> String {
    let kind = mime_guess::from_path(path.as_str()).first_or_octet_stream();
    // The older name of the same (RFC 9239, section 6).
    let essence = kind.essence_str().replace("application/javascript", "text/javascript");
    let is_text = essence.starts_with("text/")
        || matches!(essence.as_str(), "application/json" | "application/xml" | "image/svg+xml")
        || kind.suffix().is_some_and(|suffix| suffix == "json" || suffix == "xml");
    if is_text { format!("{essence}; charset=utf-8") } else { essence }
}

impl StageError {
    pub(super) fn into_error(self) -> Error {
        let (StageError::Source(error) | StageError::Place(error)) = self;
        error
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_types_go_by_extension_and_text_is_utf_8() {
        for (path, want) in [
            ("index.html", "text/html; charset=utf-8"),
            ("a/style.CSS", "text/css; charset=utf-8"),
            ("a.js", "text/javascript; charset=utf-8"),
            ("a.mjs", "text/javascript; charset=utf-8"),
            ("feed.atom", "application/atom+xml; charset=utf-8"),
            ("x.json", "application/json; charset=utf-8"),
            ("x.svg", "image/svg+xml; charset=utf-8"),
            ("x.md", "text/markdown; charset=utf-8"),
            ("x.png", "image/png"),
            ("x.pdf", "application/pdf"),
            ("x.wasm", "application/wasm"),
            ("x.tar.gz", "application/gzip"),
            ("README", "application/octet-stream"),
        ] {
            assert_eq!(content_type(&RelPath::parse(path).unwrap()), want, "{path}");
        }
    }
}
