//! Large outputs: sent in parts before the commit point, where nobody sees them, and completed after it.

use std::collections::BTreeSet;
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use ureq::http::Method;

use super::client::Ask;
use super::hand::{self, Share};
use super::payload::Payload;
use super::put::REFUSED;
use super::xml::Document;
use super::{Held, S3};
use crate::digest::{Fingerprint, Hasher};
use crate::error::{Code, Error, Result};
use crate::host::Cancel;
use crate::path::RelPath;
use crate::pool;
use crate::storage::{Commit, Expected, Job, Stage, StageError, mismatch};

/// When outputs are sent in parts, and in which.
#[derive(Clone, Copy, Debug)]
pub struct Parts {
    /// What is larger than this goes in parts.
    pub above: u64,
    /// The size of a part, as long as there are not too many; the last one is smaller.
    pub size: u64,
}

impl Default for Parts {
    fn default() -> Parts {
        Parts { above: 64 * 1024 * 1024, size: 8 * 1024 * 1024 }
    }
}

/// How many parts an object has at most.
const MOST_PARTS: u64 = 10_000;
/// The longest note that is read.
const LIMIT: u64 = 16 * 1024 * 1024;

impl Parts {
    /// The size of the parts of so many bytes, and how many of them are on their way at a time. With the one that is read
    /// they are as many as can be held.
    fn of(&self, whole: u64, concurrency: usize) -> (u64, usize) {
        let size = self.size.max(whole.div_ceil(MOST_PARTS));
        let senders = usize::try_from(hand::MOST / size).unwrap_or(1).saturating_sub(1);
        (size, senders.clamp(1, concurrency.max(1)))
    }
}

/// An upload whose parts are there.
#[derive(Clone, Debug)]
pub(super) struct Upload {
    pub(super) begun: Begun,
    /// The `ETag` of each part, in order.
    parts: Vec<String>,
    /// Whether an object was made of it.
    completed: bool,
}

/// An upload that was begun: all that is needed to abort it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Begun {
    /// The name of the object below the place.
    pub(super) path: RelPath,
    pub(super) upload_id: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Initiated {
    upload_id: String,
}

impl Document for Initiated {
    const ROOT: &'static str = "InitiateMultipartUploadResult";
}

/// What is said of an upload that was completed does not matter; that it is said does.
#[derive(Deserialize)]
struct Completed {}

impl Document for Completed {
    const ROOT: &'static str = "CompleteMultipartUploadResult";
}

/// `CompleteMultipartUpload` of the S3 REST API.
#[derive(Serialize)]
struct CompleteMultipartUpload<'a> {
    #[serde(rename = "Part")]
    parts: Vec<Sent<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Sent<'a> {
    part_number: usize,
    #[serde(rename = "ETag")]
    etag: &'a str,
}

/// A part that was read and is not sent yet.
struct Part {
    number: usize,
    share: Share,
}

impl S3 {
    /// Begins the uploads of the jobs `big`, a few at a time, and leaves their ids at the stage's name before a part is
    /// sent: what is cut short is aborted by whoever comes next.
    pub(super) fn begin_uploads(&self, stage: &Stage, jobs: &[Job<'_>], big: &[usize]) -> Result<Vec<Begun>> {
        if big.is_empty() {
            return Ok(Vec::new());
        }
        // One after the other adds to the note.
        let _noting = self.noting.lock().unwrap_or_else(PoisonError::into_inner);
        let mut all = self.begun(stage)?;
        let earlier = all.len();
        let noted = big.chunks(self.settings.concurrency.max(1)).try_for_each(|some| {
            let begun = pool::map(self.settings.concurrency, some, |at| self.begin_upload(stage, &jobs[*at]));
            let mut failed = None;
            for upload in begun {
                match upload {
                    Ok(upload) => all.push(upload),
                    Err(error) => failed = failed.take().or(Some(error)),
                }
            }
            failed.map_or_else(|| self.note(stage, &all), Err)
        });
        let mine = all.split_off(earlier);
        noted.inspect_err(|_| drop(self.abort(&mine))).map(|()| mine)
    }

    fn begin_upload(&self, stage: &Stage, job: &Job<'_>) -> Result<Begun> {
        let key = self.key(job.path.as_str());
        let ask = self.object(Ask::new(Method::POST, &key), job.path, stage).query("uploads", "");
        let (_, said) = self.client.ask::<Initiated>(&ask)?;
        let upload_id = said.map(|said| said.upload_id).filter(|id| !id.is_empty());
        let upload_id = upload_id.ok_or_else(|| self.odd("no id for an upload in parts"))?;
        Ok(Begun { path: job.path.clone(), upload_id })
    }

    fn note(&self, stage: &Stage, begun: &[Begun]) -> Result<()> {
        let bytes = serde_json::to_vec(begun).map_err(|error| Error::new(Code::StorageError, error.to_string()))?;
        self.write_small(&stage.name(), &bytes, Expected::Any)
    }

    /// The uploads that are noted for a stage.
    fn begun(&self, stage: &Stage) -> Result<Vec<Begun>> {
        if !self.list_own(&stage.name())?.contains(&stage.name()) {
            return Ok(Vec::new());
        }
        let small = self.read_small(&stage.name(), LIMIT)?;
        // One that can't be read was not written by us: what it tells of is not ours to abort.
        let begun: Option<Vec<Begun>> = small.and_then(|small| serde_json::from_slice(&small.bytes).ok());
        Ok(begun.filter(|begun| begun.iter().all(|begun| !begun.upload_id.is_empty())).unwrap_or_default())
    }

    /// Sends a job in parts, several at a time, while it is read once.
    pub(super) fn send_parts(
        &self,
        job: &Job<'_>,
        begun: Begun,
        cancel: &Cancel,
    ) -> std::result::Result<(Fingerprint, Upload), StageError> {
        let want = job.expected.unwrap_or(Fingerprint { size: 0, sha256: crate::digest::Digest::of(b"") });
        let (size, senders) = self.settings.parts.of(want.size, self.settings.concurrency);
        let key = self.key(begun.path.as_str());
        let etags: Mutex<Vec<(usize, Result<String>)>> = Mutex::default();
        let (give, take) = sync_channel::<Part>(0);
        let take = Mutex::new(take);
        let send = || self.send_part_after_part((&key, &begun.upload_id), &take, &etags, cancel);
        let read = std::thread::scope(|scope| {
            pool::spawn(scope, senders, &send).map_err(|error| {
                StageError::Place(Error::new(Code::StorageError, format!("no thread to send parts: {error}")))
            })?;
            // With it the senders come to their end.
            let give = give;
            read_parts(job, size, want.size, cancel, &mut |part| {
                let failed = etags.lock().unwrap_or_else(PoisonError::into_inner).iter().any(|(_, etag)| etag.is_err());
                !failed && give.send(part).is_ok()
            })
        });
        let mut etags = etags.into_inner().unwrap_or_else(PoisonError::into_inner);
        etags.sort_unstable_by_key(|(number, _)| *number);
        let parts: Result<Vec<String>> = etags.into_iter().map(|(_, etag)| etag).collect();
        let parts = parts.map_err(StageError::Place)?;
        let got = read?;
        mismatch(job.path, &want, &got).map_err(StageError::Source)?;
        Ok((got, Upload { begun, parts, completed: false }))
    }

    fn send_part_after_part(
        &self,
        upload: (&str, &str),
        take: &Mutex<Receiver<Part>>,
        etags: &Mutex<Vec<(usize, Result<String>)>>,
        cancel: &Cancel,
    ) {
        loop {
            let next = take.lock().unwrap_or_else(PoisonError::into_inner).recv();
            let Ok(part) = next else { return };
            let sent = self.send_part(upload, &part, cancel);
            etags.lock().unwrap_or_else(PoisonError::into_inner).push((part.number, sent));
        }
    }

    fn send_part(&self, (key, upload_id): (&str, &str), part: &Part, cancel: &Cancel) -> Result<String> {
        let ask = Ask::new(Method::PUT, key)
            .of_object()
            .query("partNumber", part.number.to_string())
            .query("uploadId", upload_id)
            .payload(Payload::Bytes(&part.share.bytes));
        let answer = self.client.send_until(cancel, &ask)?;
        answer.header("etag").map(str::to_owned).ok_or_else(|| self.odd("no ETag for a part"))
    }

    /// Makes an object of an upload.
    pub(super) fn complete(&self, stage: &Stage, commit: &Commit<'_>, upload: &Upload) -> Result<()> {
        let key = self.key(commit.path.as_str());
        let parts = upload.parts.iter().enumerate().map(|(at, etag)| Sent { part_number: at + 1, etag }).collect();
        let body = quick_xml::se::to_string(&CompleteMultipartUpload { parts })
            .map_err(|error| Error::new(Code::StorageError, error.to_string()))?;
        self.conditionally(stage, commit, &|if_free| {
            let ask = Ask::new(Method::POST, &key)
                .query("uploadId", &upload.begun.upload_id)
                .header("content-type", "application/xml")
                .payload(Payload::Bytes(body.as_bytes()));
            let (answer, _) = self.client.ask::<Completed>(&ask.if_free(if_free).or(REFUSED))?;
            Ok(answer)
        })?;
        self.hold(stage, commit.job, Held::Upload(Upload { completed: true, ..upload.clone() }));
        Ok(())
    }

    /// Sends a job in parts that turned out large once it was made, after the commit point, and completes it.
    pub(super) fn send_and_complete(&self, stage: &Stage, job: &Job<'_>, commit: &Commit<'_>) -> Result<()> {
        let begun = self.begin_uploads(stage, std::slice::from_ref(job), &[0])?;
        for begun in begun {
            let (_, upload) =
                self.send_parts(job, begun, &self.client.cancel.deaf()).map_err(StageError::into_error)?;
            self.complete(stage, commit, &upload)?;
        }
        Ok(())
    }

    /// Aborts uploads, which are nobody's but those of who began them; those that are gone already are fine.
    pub(super) fn abort(&self, uploads: &[Begun]) -> Result<()> {
        let one = |begun: &Begun| {
            let key = self.key(begun.path.as_str());
            let ask = Ask::new(Method::DELETE, &key).query("uploadId", &begun.upload_id).or(&[404]).unbound();
            self.client.send(&ask).map(drop)
        };
        pool::map(self.settings.concurrency, uploads, one).into_iter().collect()
    }

    /// Aborts what the stage `stage` has begun and not completed, and removes the note of it.
    pub(super) fn drop_stage(&self, stage: &Stage) -> Result<()> {
        let completed = self.let_go(stage);
        if !self.list_own(&stage.name())?.contains(&stage.name()) {
            return Ok(());
        }
        let mut open = self.begun(stage)?;
        open.retain(|begun| !completed.contains(&begun.upload_id));
        self.abort(&open)?;
        self.delete_small(&stage.name())
    }

    /// Forgets what is held of a stage. The ids of its uploads that were completed.
    fn let_go(&self, stage: &Stage) -> BTreeSet<String> {
        let mut completed = BTreeSet::new();
        self.held.lock().unwrap_or_else(PoisonError::into_inner).retain(|(of, _), held| {
            match held {
                Held::Upload(upload) if *of == stage.0 && upload.completed => {
                    completed.insert(upload.begun.upload_id.clone());
                }
                _ => {}
            }
            *of != stage.0
        });
        completed
    }
}

/// Reads a job and gives its parts away, from number 1; stops early where they are not wanted any more.
fn read_parts(
    job: &Job<'_>,
    size: u64,
    whole: u64,
    cancel: &Cancel,
    give: &mut dyn FnMut(Part) -> bool,
) -> std::result::Result<Fingerprint, StageError> {
    let mut opened = job.body.open().map_err(StageError::Source)?;
    let (mut hasher, mut total) = (Hasher::default(), 0);
    for number in 1.. {
        cancel.check().map_err(StageError::Place)?;
        // A byte more than is expected in all tells that there is more.
        let most = size.min((whole + 1).saturating_sub(total));
        let mut share = hand::take(size);
        let read = std::io::Read::read_to_end(&mut std::io::Read::take(&mut opened.body, most), &mut share.bytes);
        let read = read.map_err(|error| StageError::Source(Error::io(job.path, &error)))?;
        hasher.update(&share.bytes);
        total += read as u64;
        let is_last = (read as u64) < size || total > whole;
        let _ = cancel.go_on(read);
        if total > whole || read == 0 || !give(Part { number, share }) || is_last {
            break;
        }
    }
    Ok(Fingerprint { size: total, sha256: hasher.finish() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_not_too_many_and_those_in_hand_not_too_large() {
        const GIB: u64 = 1024 * 1024 * 1024;
        for whole in [64 * 1024 * 1024 + 1, GIB, 78 * GIB, 79 * GIB, 150 * GIB, 195 * GIB] {
            for concurrency in [1, 4, 16] {
                let (size, senders) = Parts::default().of(whole, concurrency);
                assert!(whole.div_ceil(size) <= MOST_PARTS && (1..=concurrency).contains(&senders), "{whole}");
                assert!(size * (senders as u64 + 1) <= hand::MOST, "{whole}: {senders} of {size}");
            }
        }
        // As large as an object may be: one part of it after the other.
        let (size, senders) = Parts::default().of(5 * 1024 * GIB, 16);
        assert!((5 * 1024 * GIB).div_ceil(size) <= MOST_PARTS && senders == 1);
        assert_eq!(Parts::default().of(GIB, 0).1, 1);
    }
}
