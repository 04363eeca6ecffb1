//! `distributor-reconcile-state`: drop records of managed outputs that no longer exist.

use super::upkeep::{Chosen, with_world};
use super::{lock_timeout, open, start, status_of};
use crate::cli::{self, ALL_OWNERS, DRY_RUN, RECONCILE_STATE};
use crate::host::Host;
use crate::maintain::Upkeep;
use crate::publish::Site;
use crate::report::{Failure, RepairBody, Status};

/// Runs the program and returns its exit status.
pub fn main(host: &Host) -> u8 {
    start(host, &RECONCILE_STATE, |parsed, reporter| {
        let timeout = lock_timeout(&RECONCILE_STATE, parsed)?;
        let config = open::config(host, parsed, reporter)?;
        let chosen = Chosen::of(host, &RECONCILE_STATE, parsed, reporter, &config)?;
        let (dry_run, all_owners) = (parsed.has(&DRY_RUN), parsed.has(&ALL_OWNERS));
        let (target, mut warnings) = (chosen.target(), Vec::new());
        let result = with_world(host, reporter, timeout, |world| {
            let site = Site { target: target.as_ref(), world };
            let upkeep = Upkeep { site, pipeline_id: chosen.pipeline_id, destination: chosen.destination, all_owners };
            upkeep.repair(dry_run, &mut warnings)
        });
        for warning in warnings {
            reporter.warn(warning.pipeline(chosen.pipeline_id).destination(&chosen.destination.id));
        }
        let mut body = RepairBody::new(chosen.place(), if all_owners { "all_owners" } else { "owner" }, dry_run);
        match chosen.result(result)? {
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
