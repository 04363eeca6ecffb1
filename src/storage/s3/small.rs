//! Small objects at the root of a place: states, journals, locks.

use std::sync::atomic::Ordering;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ureq::http::Method;

use super::S3;
use super::client::{Answer, Ask};
use super::fault::Fault;
use super::payload::Payload;
use super::put::REFUSED;
use crate::error::{Code, Error, Result};
use crate::names::STATE;
use crate::path;
use crate::storage::{Above, Expected, Small, Version};

impl S3 {
    pub(super) fn key(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }

    pub(super) fn read_small(&self, name: &str, limit: u64) -> Result<Option<Small>> {
        if self.is_absent(name) {
            return Ok(None);
        }
        match self.still(name, limit) {
            Some(small) => Ok(Some(small)),
            None => self.read_now(name, limit),
        }
    }

    /// The same, whatever is known.
    pub(super) fn read_now(&self, name: &str, limit: u64) -> Result<Option<Small>> {
        let key = self.key(name);
        let mut answer = self.client.send(&Ask::new(Method::GET, &key).or(&[404]))?;
        if answer.status == 404 {
            return self.absent(&key, &answer.fault()).map(|()| None);
        }
        let etag = answer.header("etag").unwrap_or_default().to_owned();
        let length = answer.header("content-length").and_then(|length| length.parse::<u64>().ok());
        if length.is_none_or(|length| length <= limit) {
            match answer.bytes(limit.max(1)) {
                Ok(bytes) => {
                    let small = Small { bytes, version: Version(etag) };
                    self.glimpse(name, &small);
                    return Ok(Some(small));
                }
                Err(ureq::Error::BodyExceedsLimit(_)) => {}
                // It was cut short on the way: as often as any request is tried.
                Err(_) => return self.read_again(&key, limit),
            }
        }
        self.read_part(&key, limit, etag).map(Some)
    }

    fn read_again(&self, key: &str, limit: u64) -> Result<Option<Small>> {
        let (answer, bytes) = self.client.fetch(&Ask::new(Method::GET, key).or(&[404]), limit.max(1))?;
        let version = Version(answer.header("etag").unwrap_or_default().to_owned());
        Ok(answer.is_good().then_some(Small { bytes, version }))
    }

    /// The first bytes of an object that has more than are wanted.
    fn read_part(&self, key: &str, limit: u64, etag: String) -> Result<Small> {
        if limit == 0 {
            return Ok(Small { bytes: Vec::new(), version: Version(etag) });
        }
        let ask = Ask::new(Method::GET, key).header("range", format!("bytes=0-{}", limit - 1));
        let (answer, bytes) = self.client.fetch(&ask, limit)?;
        let etag = answer.header("etag").map_or(etag, str::to_owned);
        Ok(Small { bytes, version: Version(etag) })
    }

    /// What is said of an object that is not there: an error where there is not even the bucket.
    fn absent(&self, key: &str, fault: &Fault) -> Result<()> {
        if fault.code == "NoSuchBucket" { Err(self.client.refused(key, fault)) } else { Ok(()) }
    }

    pub(super) fn write_small(&self, name: &str, bytes: &[u8], expected: Expected<'_>) -> Result<()> {
        let key = self.key(name);
        if name == STATE {
            self.delete_smalls(&self.leaving())?;
        }
        // From here on it may be there, whatever the server answers, if it does.
        self.comes(name);
        let ask = || {
            Ask::new(Method::PUT, &key)
                .header("content-type", "application/json")
                .header("cache-control", "no-store")
                .header("content-md5", md5_of(bytes))
                .payload(Payload::Bytes(bytes))
        };
        let Expected::Version(version) = expected else { return self.put(&ask()).map(drop) };
        // Not every server heeds the headers. Under the lock nobody else writes here; without it one looks.
        if !self.is_known() && self.version(&key)?.as_ref() != version {
            return Err(self.changed(name));
        }
        let conditional = match version {
            _ if self.unconditional.load(Ordering::Relaxed) => ask(),
            Some(version) if version.0.is_empty() => ask(),
            Some(version) => ask().header("if-match", &version.0),
            None => ask().header("if-none-match", "*"),
        };
        let mut answer = self.put(&conditional.or(REFUSED))?;
        match answer.status {
            _ if answer.is_good() => Ok(()),
            // The server knows no conditions.
            501 => {
                self.unconditional.store(true, Ordering::Relaxed);
                self.put(&ask()).map(drop)
            }
            _ => {
                self.absent(&key, &answer.fault())?;
                // A try whose answer was lost has written it: the next one finds its own bytes.
                let there = if answer.repeated { self.read_small(name, bytes.len() as u64 + 1)? } else { None };
                if there.is_some_and(|small| small.bytes == bytes) { Ok(()) } else { Err(self.changed(name)) }
            }
        }
    }

    /// Sends a PUT of an object. Who has made one says which: an answer without an `ETag` is somebody else's.
    pub(super) fn put(&self, ask: &Ask<'_>) -> Result<Answer> {
        let answer = self.client.send(ask)?;
        if answer.is_good() && answer.header("etag").is_none_or(str::is_empty) {
            return Err(self.odd("no ETag for an object"));
        }
        Ok(answer)
    }

    fn changed(&self, name: &str) -> Error {
        let message = format!("{}: it changed since it was read", self.client.place(&self.key(name)));
        Error::new(Code::PreconditionFailed, message).hint("run again")
    }

    /// The version of an object; `None` where there is none.
    fn version(&self, key: &str) -> Result<Option<Version>> {
        let answer = self.head(key)?;
        Ok(answer.map(|answer| Version(answer.header("etag").unwrap_or_default().to_owned())))
    }

    pub(super) fn head(&self, key: &str) -> Result<Option<Answer>> {
        let answer = self.client.send(&Ask::new(Method::HEAD, key).or(&[301, 307, 400, 403, 404]))?;
        match answer.status {
            404 => Ok(None),
            _ if answer.is_good() => Ok(Some(answer)),
            // To HEAD no server says why.
            _ => {
                self.client.send(&Ask::new(Method::GET, key).or(&[404]))?;
                Err(self.client.refusal(key, answer))
            }
        }
    }

    pub(super) fn delete(&self, key: &str) -> Result<()> {
        self.client.send(&Ask::new(Method::DELETE, key).or(&[404])).map(drop)
    }

    pub(super) fn delete_small(&self, name: &str) -> Result<()> {
        if !self.may_leave(name) {
            self.delete(&self.key(name))?;
            self.is_gone(name);
        }
        Ok(())
    }

    /// The states in the directories above, as far as they can be read.
    pub(super) fn states_above(&self, name: &str, limit: u64) -> Vec<Above> {
        debug_assert_eq!(name, STATE);
        let here = self.prefix.trim_end_matches('/');
        let dirs = path::ancestors(here).map(|dir| format!("{dir}/")).chain([String::new()]);
        let of = |dir: String| {
            let above = self.with_prefix(dir.clone());
            let bytes = above.read_small(name, limit).ok()??.bytes;
            Some(Above { place: self.client.place(&dir), path: here.strip_prefix(&dir)?.to_owned(), bytes })
        };
        if here.is_empty() { Vec::new() } else { dirs.filter_map(of).collect() }
    }
}

/// `Content-MD5` (RFC 1864).
pub(super) fn md5_of(bytes: &[u8]) -> String {
    STANDARD.encode(md5::compute(bytes).0)
}
