//! Reading objects: one whole version, taken up again where a connection breaks.

use std::io::{self, Read};
use std::sync::Arc;
use std::time::Duration;

use ureq::BodyReader;
use ureq::http::Method;

use super::S3;
use super::client::{Ask, Client};
use crate::error::{Code, Error, Result};
use crate::http::{pause, varied};
use crate::path::RelPath;
use crate::storage::Opened;

/// How often a body may break off before enough has come.
const RESUMES: u32 = 6;
/// How much has to come, once it was taken up again, for what went before to be forgotten.
const ENOUGH: u64 = 64 * 1024;
/// How often by silence.
const SILENT: u32 = 2;
/// The pause before it is taken up again for the first time; the next ones are longer.
const PAUSE: Duration = Duration::from_millis(100);

impl S3 {
    pub(super) fn open(&self, path: &RelPath) -> Result<Opened<'static>> {
        let key = self.key(path.as_str());
        let answer = self.client.send(&Ask::new(Method::GET, &key).of_object())?;
        let size = answer.header("content-length").and_then(|length| length.parse().ok());
        let size = size.ok_or_else(|| self.odd("an object without its length"))?;
        let etag = answer.header("etag").map(str::to_owned);
        let body = answer.body.into_with_config().limit(u64::MAX).reader();
        let client = Arc::clone(&self.client);
        let body = Resumed { client, key, etag, size, passed: 0, since: 0, body: Some(body), resumes: 0 };
        Ok(Opened { size, body: Box::new(body) })
    }
}

/// The body of an object.
struct Resumed {
    client: Arc<Client>,
    key: String,
    /// The version that is read.
    etag: Option<String>,
    size: u64,
    passed: u64,
    /// Where it was taken up last.
    since: u64,
    body: Option<BodyReader<'static>>,
    resumes: u32,
}

impl Resumed {
    /// Asks for what is still missing, of the same version.
    fn resume(&mut self) -> Result<()> {
        self.since = self.passed;
        let mut ask = Ask::new(Method::GET, &self.key).of_object().header("range", format!("bytes={}-", self.passed));
        if let Some(etag) = &self.etag {
            ask = ask.header("if-match", etag);
        }
        let answer = self.client.send(&ask.or(&[404, 412]))?;
        let part = format!("bytes {}-", self.passed);
        let fail = |code, what| Err(Error::new(code, format!("{}: {what}", self.client.place(&self.key))));
        // Not every server heeds the condition.
        if !answer.is_good() || answer.header("etag") != self.etag.as_deref() {
            return fail(Code::SourceChanged, "it changed while it was read");
        }
        if answer.status != 206 || !answer.header("content-range").is_some_and(|range| range.starts_with(&part)) {
            return fail(Code::StorageError, "it broke off, and the server can't go on from there");
        }
        self.body = Some(answer.body.into_with_config().limit(u64::MAX).reader());
        Ok(())
    }
}

impl Resumed {
    /// Whether it is tried again after it broke off like this.
    fn go_on(&mut self, broken: &io::Result<usize>) -> Result<()> {
        self.body = None;
        let silent = matches!(broken, Err(error) if error.kind() == io::ErrorKind::TimedOut);
        self.resumes += if silent { RESUMES / SILENT } else { 1 };
        if self.resumes >= RESUMES {
            let why = broken.as_ref().err().map_or_else(|| "cut short".to_owned(), ToString::to_string);
            let code = if silent { Code::Timeout } else { Code::Unreachable };
            return Err(Error::new(code, format!("{}: {why}", self.client.place(&self.key))));
        }
        pause(&self.client.cancel, varied(PAUSE * self.resumes))
    }
}

impl Read for Resumed {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.passed < self.size && !buffer.is_empty() {
            let Some(body) = &mut self.body else {
                self.resume().map_err(io::Error::other)?;
                continue;
            };
            match body.read(buffer) {
                Ok(n) if n > 0 => {
                    self.passed += n as u64;
                    if self.passed - self.since >= ENOUGH {
                        self.resumes = 0;
                    }
                    return Ok(n);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                broken => self.go_on(&broken).map_err(io::Error::other)?,
            }
        }
        Ok(0)
    }
}
