//! `distributor-bundle`: write a bundle's `manifest.json`.

use super::{open, ran, start, status_of};
use crate::bundle::Maker;
use crate::cli::{BUNDLE, CREATED, FORCE_MANIFEST, ID, Parsed, usage};
use crate::error::{Code, Error, Result};
use crate::host::Host;
use crate::path::escape;
use crate::report::{BundleBody, Failure, Reporter, Status};
use crate::timestamp::Timestamp;

/// Runs the program and returns its exit status.
pub fn main(host: &Host) -> u8 {
    start(host, &BUNDLE, |parsed, reporter| work(host, parsed, reporter))
}

fn work(host: &Host, parsed: &Parsed, reporter: &Reporter<'_>) -> Result<u8> {
    let dir = parsed.operand().ok_or_else(|| usage(&BUNDLE, "DIR is missing"))?;
    let id = parsed.text(&ID)?.ok_or_else(|| usage(&BUNDLE, "--id is missing"))?;
    let created = match parsed.text(&CREATED)? {
        Some(text) => {
            Timestamp::parse(text).map_err(|message| Error::new(Code::Usage, format!("--created: {message}")))?
        }
        // To the millisecond, so that a bundle made anew within a second is a newer one.
        None => (host.clock)(),
    };
    host.cancel.listen();
    let storage = open::directory(host, &BUNDLE, dir)?;
    let force = parsed.has(&FORCE_MANIFEST);
    let maker = Maker { storage: &storage, id, created, force, cancel: &host.cancel };
    match ran(maker.make())? {
        Ok(manifest) => {
            let bytes = manifest.bytes();
            let place = escape(dir.as_encoded_bytes());
            let body = BundleBody { error: None, manifest: Some(manifest), bytes, place };
            reporter.finish(Status::Success, false, body)?;
            Ok(0)
        }
        Err(error) => {
            reporter.fail(&[], &error);
            let body = BundleBody { error: Some(Failure::from(&error)), ..BundleBody::default() };
            reporter.finish(Status::Failure, false, body)?;
            Ok(status_of(host, &error))
        }
    }
}
