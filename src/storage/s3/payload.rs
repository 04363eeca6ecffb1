//! What a request carries. What is sent from a file is checked while it passes, and its last bytes are kept back until
//! all of it is known to be right: no server ever gets a whole object of wrong bytes.

use std::cell::RefCell;
use std::io::{self, Read};

use ureq::http::{Response, request};
use ureq::{Body, SendBody};

use crate::digest::{Digest, Fingerprint, Hasher};
use crate::error::{Error, Result};
use crate::http::{Failed, Http};
use crate::path::RelPath;
use crate::storage::{self, Job};

/// What a request carries.
#[derive(Clone, Copy)]
pub(super) enum Payload<'a> {
    /// Nothing.
    None,
    /// Bytes.
    Bytes(&'a [u8]),
    /// The bytes of a job, which are known to be these.
    Job(&'a Job<'a>, Fingerprint),
}

impl Payload<'_> {
    pub(super) fn sha256(&self) -> Digest {
        match self {
            Payload::None => Digest::of(b""),
            Payload::Bytes(bytes) => Digest::of(bytes),
            Payload::Job(_, what) => what.sha256,
        }
    }

    /// How long it is, where the client has to be told.
    pub(super) fn length(&self) -> Option<u64> {
        match self {
            Payload::None => None,
            Payload::Bytes(bytes) => Some(bytes.len() as u64),
            Payload::Job(_, what) => Some(what.size),
        }
    }

    /// Sends it, as far as `may` allows that while it is read.
    pub(super) fn send(
        &self,
        http: &Http,
        request: request::Builder,
        may: &dyn Fn() -> Result<()>,
        fail: &dyn Fn(&ureq::Error) -> Failed,
    ) -> std::result::Result<Response<Body>, Failed> {
        let built = |error: ureq::http::Error| fail(&ureq::Error::Http(error));
        let failed = |error: ureq::Error| fail(&error);
        match self {
            Payload::None => http.send(request.body(()).map_err(built)?).map_err(failed),
            Payload::Bytes(bytes) => http.send(request.body(*bytes).map_err(built)?).map_err(failed),
            Payload::Job(job, what) => {
                let opened = job.body.open().map_err(Failed::ForGood)?;
                let wrong = RefCell::new(None);
                let mut body = Checked::new(opened.body, job.path, *what, (&wrong, may));
                let sent = http.send(request.body(SendBody::from_reader(&mut body)).map_err(built)?);
                match wrong.take() {
                    Some(error) => Err(Failed::ForGood(error)),
                    None => sent.map_err(failed),
                }
            }
        }
    }
}

/// Passes the bytes of an output on, all but the last ones only once they are known to be right.
struct Checked<'a> {
    from: Box<dyn Read + Send + 'a>,
    path: &'a RelPath,
    want: Fingerprint,
    hasher: Option<Hasher>,
    passed: u64,
    /// What is wrong with them.
    wrong: &'a RefCell<Option<Error>>,
    /// Whether they are still to be passed on.
    may: &'a dyn Fn() -> Result<()>,
}

impl<'a> Checked<'a> {
    fn new(
        from: Box<dyn Read + Send + 'a>,
        path: &'a RelPath,
        want: Fingerprint,
        (wrong, may): (&'a RefCell<Option<Error>>, &'a dyn Fn() -> Result<()>),
    ) -> Checked<'a> {
        Checked { from, path, want, hasher: Some(Hasher::default()), passed: 0, wrong, may }
    }

    fn stop<T>(&self, error: Error) -> io::Result<T> {
        self.wrong.replace(Some(error));
        Err(io::Error::other("wrong bytes"))
    }

    /// Called once as many bytes came as should: whether they are all, and the right ones.
    fn finish(&mut self) -> io::Result<()> {
        let more = self.from.read(&mut [0])?;
        let got = Fingerprint {
            size: self.passed + more as u64,
            sha256: self.hasher.take().map_or(self.want.sha256, Hasher::finish),
        };
        storage::mismatch(self.path, &self.want, &got).or_else(|error| self.stop(error))
    }
}

impl Read for Checked<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.want.size - self.passed).unwrap_or(usize::MAX).min(buffer.len());
        if left == 0 {
            if self.want.size == self.passed && self.hasher.is_some() {
                self.finish()?;
            }
            return Ok(0);
        }
        let n = match self.from.read(&mut buffer[..left]) {
            Err(error) if error.kind() != io::ErrorKind::Interrupted => return self.stop(Error::io(self.path, &error)),
            other => other?,
        };
        if n == 0 {
            return self.stop(storage::size_mismatch(self.path, self.want.size, self.passed));
        }
        self.passed += n as u64;
        if let Some(hasher) = &mut self.hasher {
            hasher.update(&buffer[..n]);
        }
        if self.passed == self.want.size {
            self.finish()?;
        }
        (self.may)().or_else(|error| self.stop(error))?;
        Ok(n)
    }
}

/// The bytes of `reader` while they are what `want` says.
pub(super) fn checked_bytes(job: &Job<'_>, want: Fingerprint) -> Result<Vec<u8>> {
    let wrong = RefCell::new(None);
    let opened = job.body.open()?;
    let mut bytes = Vec::with_capacity(usize::try_from(want.size).unwrap_or_default());
    let read = Checked::new(opened.body, job.path, want, (&wrong, &|| Ok(()))).read_to_end(&mut bytes);
    match (wrong.take(), read) {
        (Some(error), _) => Err(error),
        (None, Err(error)) => Err(Error::io(job.path, &error)),
        (None, Ok(_)) => Ok(bytes),
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::error::Code;

    #[test]
    fn bytes_that_may_not_be_sent_any_more_are_kept_back() {
        let (path, bytes) = (RelPath::parse("x").unwrap(), b"123456");
        let (wrong, left) = (RefCell::new(None), Cell::new(2));
        let may = || match left.replace(left.get() - 1) {
            0 => Err(Error::new(Code::LockLost, "lost")),
            _ => Ok(()),
        };
        let mut body = Checked::new(Box::new(&bytes[..]), &path, Fingerprint::of(bytes), (&wrong, &may));
        let (mut passed, mut buffer) = (Vec::<u8>::new(), [0; 2]);
        while let Ok(n) = body.read(&mut buffer) {
            passed.extend(&buffer[..n]);
        }
        assert_eq!(passed, b"1234");
        assert_eq!(wrong.take().map(|error| error.code), Some(Code::LockLost));
    }
}
