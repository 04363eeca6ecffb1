//! What distributor-reconcile-state and distributor-prune share: from the command line to one destination.

use std::time::Duration;

use super::{open, ran};
use crate::cli::{BUNDLE_PATH, DESTINATION, Flag, OWNER_PIPELINE, Parsed, Program, usage};
use crate::config::{Config, Destination, PathMapping};
use crate::error::{Code, Error, Result, Warning};
use crate::host::Host;
use crate::maintain::Upkeep;
use crate::names::STATE;
use crate::path::{BundlePath, RelPath, escape};
use crate::publish::{Site, World};
use crate::report::{Place, Reporter};
use crate::storage::{Met, Storage};

/// How many bundle paths an error names.
const NAMED: usize = 10;

/// The destination that a command line means.
pub(super) struct Chosen<'a> {
    pub(super) pipeline_id: &'a str,
    pub(super) destination: &'a Destination,
    /// The root; where this version can't work there, why.
    root: Result<Box<dyn Storage>>,
    bundle_path: BundlePath,
}

/// The ids of the pipeline and the destination that a command line has to name.
pub(super) fn ids<'a>(program: &'static Program, parsed: &'a Parsed) -> Result<[&'a str; 2]> {
    let named =
        |flag: &'static Flag| parsed.text(flag)?.ok_or_else(|| usage(program, format!("--{} is missing", flag.long)));
    Ok([named(&OWNER_PIPELINE)?, named(&DESTINATION)?])
}

impl<'a> Chosen<'a> {
    pub(super) fn of(
        (host, reporter): (&Host, &Reporter<'_>),
        (program, parsed): (&'static Program, &Parsed),
        config: &'a Config,
        [pipeline, destination]: [&str; 2],
    ) -> Result<Chosen<'a>> {
        let pipeline = open::pipeline(config, pipeline)?;
        let found = pipeline.destinations.iter().find(|found| found.id == destination);
        let destination = found.ok_or_else(|| {
            let known: Vec<&str> = pipeline.destinations.iter().map(|known| known.id.as_str()).collect();
            open::unknown(Code::UnknownDestination, "destination", destination, &known)
        })?;
        let bundle_path = bundle_path(program, parsed, destination)?;
        let opener = open::Opener::new(host, config, &[&pipeline.id], reporter)?;
        Ok(Chosen { pipeline_id: &pipeline.id, destination, root: opener.destination(destination), bundle_path })
    }

    /// What every report says of it.
    pub(super) fn place(&self) -> Place {
        Place {
            pipeline_id: self.pipeline_id.to_owned(),
            destination_id: self.destination.id.clone(),
            backend: self.destination.target.backend().as_str(),
            root: self.root.as_ref().ok().map(|root| root.describe()),
            bundle_path: self.bundle_path.to_string(),
        }
    }

    /// Does `work` there, and says its warnings. Where there is no state the error names the bundle paths that have one.
    pub(super) fn work<T>(
        &self,
        (host, reporter): (&Host, &Reporter<'_>),
        lock_timeout: Duration,
        work: impl FnOnce(Upkeep<'_>, &mut Vec<Warning>) -> Result<T>,
    ) -> Result<Result<T>> {
        let root = match &self.root {
            Ok(root) => root.as_ref(),
            Err(error) => return ran(Err(error.clone())),
        };
        let (target, mut warnings) = (root.at(&self.bundle_path), Vec::new());
        let result = with_world(host, reporter, lock_timeout, |world| {
            let site = Site { target: target.as_ref(), world };
            let (pipeline_id, destination) = (self.pipeline_id, self.destination);
            work(Upkeep { site, pipeline_id, destination, all_owners: false }, &mut warnings)
        });
        for warning in warnings {
            reporter.warn(warning.pipeline(self.pipeline_id).destination(&self.destination.id));
        }
        ran(result.map_err(|error| if error.code == Code::NoState { elsewhere(root, error) } else { error }))
    }
}

fn elsewhere(root: &dyn Storage, error: Error) -> Error {
    let mut paths = Vec::new();
    let found = root.find(STATE, &mut |path, met| {
        if matches!(met, Met::Marked) {
            paths.push(escape(path));
        }
    });
    if found.is_err() || paths.is_empty() {
        return error;
    }
    paths.sort_unstable();
    let more = paths.len().saturating_sub(NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    paths.truncate(NAMED);
    error.hint(format!("name one of these with --bundle-path: {}{more}", paths.join(", ")))
}

fn bundle_path(program: &'static Program, parsed: &Parsed, destination: &Destination) -> Result<BundlePath> {
    match parsed.text(&BUNDLE_PATH)? {
        None | Some(".") => Ok(BundlePath::ROOT),
        Some(_) if destination.path_mapping == PathMapping::Fixed => Err(usage(
            program,
            format!("--bundle-path: the destination {} is fixed: it is its root alone", destination.id),
        )),
        // As the completion of names in a shell writes it.
        Some(path) => RelPath::parse(path.strip_suffix('/').unwrap_or(path))
            .map(BundlePath::from)
            .map_err(|fault| usage(program, format!("--bundle-path {path:?}: {fault}"))),
    }
}

/// Does `work` in the world of `host`.
pub(super) fn with_world<T>(
    host: &Host,
    reporter: &Reporter<'_>,
    lock_timeout: Duration,
    work: impl FnOnce(&World<'_>) -> T,
) -> T {
    let now = || host.now();
    let waiting = |place: &str| reporter.say(&[], &format!("waiting for another command that holds {place}"));
    work(&World {
        cancel: &host.cancel,
        now: &now,
        token: &host.token,
        holder: &host.holder,
        lock_timeout,
        waiting: &waiting,
    })
}
