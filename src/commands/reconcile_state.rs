//! `distributor-reconcile-state`: drop records of managed outputs that no longer exist.

use super::upkeep::{self, Chosen};
use super::{lock_timeout, open, start, status_of};
use crate::cli::{self, ALL_OWNERS, DRY_RUN, RECONCILE_STATE};
use crate::host::Host;
use crate::maintain::Upkeep;
use crate::report::{Failure, RepairBody, Status};

/// Runs the program and returns its exit status.
pub fn main(host: &Host) -> u8 {
    start(host, &RECONCILE_STATE, |parsed, reporter| {
        let timeout = lock_timeout(&RECONCILE_STATE, parsed)?;
        let ids = upkeep::ids(&RECONCILE_STATE, parsed)?;
        let config = open::config(host, parsed, reporter)?;
        let chosen = Chosen::of((host, reporter), (&RECONCILE_STATE, parsed), &config, ids)?;
        let (dry_run, all_owners) = (parsed.has(&DRY_RUN), parsed.has(&ALL_OWNERS));
        let mut body = RepairBody::new(chosen.place(), if all_owners { "all_owners" } else { "owner" }, dry_run);
        let result = chosen.work((host, reporter), timeout, |upkeep, warnings| {
            Upkeep { all_owners, ..upkeep }.repair(dry_run, warnings)
        });
        match result? {
            Ok(repair) => {
                body.take(&repair);
                reporter.finish(Status::Success, dry_run, body)?;
                Ok(host.cancel.signal().map_or(0, cli::signalled))
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
