//! `distributor-prune`: delete managed outputs by the configured retention policy.

use super::upkeep::{self, Chosen};
use super::{lock_timeout, open, start, status_of};
use crate::cli::{self, APPLY, DRY_RUN, PRUNE, Parsed, usage};
use crate::error::{Code, Error, Result};
use crate::host::Host;
use crate::maintain::Pruning;
use crate::report::{Failure, Problem, PruneBody, Reporter, Status};

/// Runs the program and returns its exit status.
pub fn main(host: &Host) -> u8 {
    start(host, &PRUNE, |parsed, reporter| {
        let dry_run = dry_run(parsed)?;
        let timeout = lock_timeout(&PRUNE, parsed)?;
        let ids = upkeep::ids(&PRUNE, parsed)?;
        let config = open::config(host, parsed, reporter)?;
        let chosen = Chosen::of((host, reporter), (&PRUNE, parsed), &config, ids)?;
        let policy = chosen.destination.retention.prune;
        let mut body = PruneBody::new(chosen.place(), policy, dry_run);
        if !policy.enabled {
            let message = format!("{}: pruning is not enabled", body.place.label());
            return Err(Error::new(Code::PruneDisabled, message).hint("set retention.prune.enabled: true"));
        }
        match chosen.work((host, reporter), timeout, |upkeep, warnings| upkeep.prune(dry_run, warnings))? {
            Ok(pruning) => {
                let failed = deletes_failed(reporter, &body.place.label(), &pruning);
                body.take(pruning);
                body.error = failed.as_ref().map(Failure::from);
                reporter.finish(if failed.is_some() { Status::Failure } else { Status::Success }, dry_run, body)?;
                let exit = if failed.is_some() { cli::FAILED } else { 0 };
                Ok(host.cancel.signal().map_or(exit, cli::signalled))
            }
            Err(error) => {
                reporter.fail(&[body.place.label()], &error);
                body.error = Some(Failure::from(&error));
                reporter.finish(Status::Failure, dry_run, body)?;
                Ok(status_of(host, &error))
            }
        }
    })
}

/// Pruning deletes: which of the two is meant must be said.
fn dry_run(parsed: &Parsed) -> Result<bool> {
    match (parsed.has(&DRY_RUN), parsed.has(&APPLY)) {
        (true, false) => Ok(true),
        (false, true) => Ok(false),
        (true, true) => Err(usage(&PRUNE, "--dry-run and --apply exclude each other")),
        (false, false) => Err(usage(&PRUNE, "say --dry-run to look or --apply to delete")),
    }
}

/// The error that stands for single deletes that failed. Both are said.
fn deletes_failed(reporter: &Reporter<'_>, place: &str, pruning: &Pruning) -> Option<Error> {
    let first = pruning.failed.first()?;
    let problems: Vec<Problem> = pruning.failed.iter().map(|(path, error)| Problem::of(path, error)).collect();
    reporter.problems(place, &problems);
    let (failed, planned) = (pruning.failed.len(), pruning.planned.len());
    let message = format!("{failed} of {planned} outputs could not be deleted, first {}", first.0);
    let error = Error::new(Code::DeleteFailed, message).hint("their records stay: see to the cause, then prune again");
    reporter.fail(&[place.to_owned()], &error);
    Some(error)
}
