//! Reading objects: one whole version, taken up again where a connection breaks.

use std::io::{self, Read};
use std::sync::Arc;

use ureq::BodyReader;
use ureq::http::Method;

use super::S3;
use super::client::{Ask, Client};
use crate::error::{Code, Error, Result};
use crate::path::RelPath;
use crate::storage::Opened;

/// How often a body is taken up again without a byte having come.
const RESUMES: u32 = 4;

impl S3 {
    pub(super) fn open(&self, path: &RelPath) -> Result<Opened<'static>> {
        let key = self.key(path.as_str());
        let answer = self.client.send(&Ask::new(Method::GET, &key))?;
        if answer.status == 404 {
            return Err(self.client.refusal(&key, answer));
        }
        let size = answer.header("content-length").and_then(|length| length.parse().ok());
        let size = size.ok_or_else(|| self.odd("an object without its length"))?;
        let etag = answer.header("etag").map(str::to_owned);
        let body = answer.body.into_with_config().limit(u64::MAX).reader();
        let client = Arc::clone(&self.client);
        let body = Resumed { client, key, etag, size, passed: 0, body: Some(body), resumes: 0 };
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
    body: Option<BodyReader<'static>>,
    resumes: u32,
}

impl Resumed {
    /// Asks for what is still missing, of the same version.
    fn resume(&mut self) -> Result<()> {
        let mut ask = Ask::new(Method::GET, &self.key).header("range", format!("bytes={}-", self.passed));
        if let Some(etag) = &self.etag {
            ask = ask.header("if-match", etag);
        }
        let answer = self.client.send(&ask)?;
        let part = format!("bytes {}-", self.passed);
        match answer.status {
            206 if answer.header("content-range").is_some_and(|range| range.starts_with(&part)) => {
                self.body = Some(answer.body.into_with_config().limit(u64::MAX).reader());
                Ok(())
            }
            404 | 412 => {
                let message = format!("{}: it changed while it was read", self.client.place(&self.key));
                Err(Error::new(Code::SourceChanged, message))
            }
            _ => Err(self.client.refusal(&self.key, answer)),
        }
    }
}

impl Read for Resumed {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if self.passed == self.size || buffer.is_empty() {
                return Ok(0);
            }
            let Some(body) = &mut self.body else {
                self.resume().map_err(|error| io::Error::other(error.message))?;
                continue;
            };
            match body.read(buffer) {
                Ok(n) if n > 0 => {
                    self.passed += n as u64;
                    self.resumes = 0;
                    return Ok(n);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                broken => {
                    self.body = None;
                    self.resumes += 1;
                    if self.resumes > RESUMES {
                        let place = self.client.place(&self.key);
                        let why = broken.err().map_or_else(|| "cut short".to_owned(), |error| error.to_string());
                        return Err(io::Error::other(format!("{place}: {why}")));
                    }
                }
            }
        }
    }
}
