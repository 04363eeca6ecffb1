//! `distributor-inspect`: show what a bundle or a pipeline's source holds.

use super::{open, ran, start};
use crate::bundle;
use crate::cli::{self, CONFIG, INSPECT, PIPELINE, Parsed, usage};
use crate::error::{Error, Result};
use crate::host::Host;
use crate::report::{Failure, InspectBody, InspectedBundle, Reporter, Status};
use crate::source::discover;
use crate::storage::{Local, Storage};

/// Runs the program and returns its exit status.
pub fn main(host: &Host) -> u8 {
    start(host, &INSPECT, |parsed, reporter| match (parsed.operand(), parsed.text(&PIPELINE)?) {
        (Some(_), Some(_)) => Err(usage(&INSPECT, "DIR and --pipeline exclude each other")),
        (Some(_), None) if parsed.has(&CONFIG) => Err(usage(&INSPECT, "DIR and --config exclude each other")),
        (Some(dir), None) => {
            let storage = open::directory(host, &INSPECT, dir)?;
            match bundle::load(&storage) {
                Ok(manifest) => finish(reporter, vec![InspectedBundle::new(".", &manifest)], &[]),
                Err(error) => finish(reporter, Vec::new(), &[(place_of(&storage, &error), error)]),
            }
        }
        (None, Some(id)) => pipeline(host, parsed, reporter, id),
        (None, None) => Err(usage(&INSPECT, "nothing to show: give DIR or --pipeline")),
    })
}

/// The place of an error that does not name it itself.
fn place_of(storage: &Local, error: &Error) -> String {
    let place = storage.describe();
    if error.message.contains(&place) { String::new() } else { place }
}

fn pipeline(host: &Host, parsed: &Parsed, reporter: &Reporter<'_>, id: &str) -> Result<u8> {
    let config = open::config(host, parsed, reporter)?;
    let pipeline = open::pipeline(&config, id)?;
    let opener = open::Opener::new(host, &config, &[id], reporter)?;
    match ran(opener.source(pipeline).and_then(|root| discover(root.as_ref())))? {
        Err(error) => finish(reporter, Vec::new(), &[(id.to_owned(), error)]),
        Ok(discovery) => {
            discovery.warnings.into_iter().for_each(|warning| reporter.warn(warning.pipeline(id)));
            let (mut bundles, mut failed) = (Vec::new(), Vec::new());
            for found in discovery.bundles {
                match found.bundle {
                    Ok((_, manifest)) => bundles.push(InspectedBundle::new(&found.shown, &manifest)),
                    Err(error) => failed.push((found.shown, error)),
                }
            }
            finish(reporter, bundles, &failed)
        }
    }
}

fn finish(reporter: &Reporter<'_>, bundles: Vec<InspectedBundle>, failed: &[(String, Error)]) -> Result<u8> {
    for (place, error) in failed {
        reporter.fail(std::slice::from_ref(place), error);
    }
    let (status, exit) = if failed.is_empty() { (Status::Success, 0) } else { (Status::Failure, cli::FAILED) };
    let error = failed.first().map(|(_, error)| Failure::from(error));
    reporter.finish(status, false, InspectBody { error, bundles })?;
    Ok(exit)
}
