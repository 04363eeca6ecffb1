//! What distributor-reconcile-state and distributor-prune share: from the command line to one destination.

use super::{open, ran};
use crate::cli::{BUNDLE_PATH, DESTINATION, OWNER_PIPELINE, Parsed, Program, usage};
use crate::config::{Config, Destination, PathMapping};
use crate::error::{Code, Error, Result};
use crate::host::Host;
use crate::names::STATE;
use crate::path::{BundlePath, RelPath, escape};
use crate::publish::World;
use crate::report::{Place, Reporter};
use crate::storage::{Met, Storage};

/// The destination that a command line means.
pub(super) struct Chosen<'a> {
    pub(super) pipeline_id: &'a str,
    pub(super) destination: &'a Destination,
    root: Box<dyn Storage>,
    bundle_path: BundlePath,
}

impl<'a> Chosen<'a> {
    pub(super) fn of(
        host: &Host,
        program: &'static Program,
        parsed: &Parsed,
        reporter: &Reporter<'_>,
        config: &'a Config,
    ) -> Result<Chosen<'a>> {
        let named = |flag: &'static crate::cli::Flag| {
            parsed.text(flag)?.ok_or_else(|| usage(program, format!("--{} is missing", flag.long)))
        };
        let (pipeline, destination) = (named(&OWNER_PIPELINE)?, named(&DESTINATION)?);
        let pipeline = open::pipeline(config, pipeline)?;
        let found = pipeline.destinations.iter().find(|found| found.id == destination);
        let destination = found.ok_or_else(|| {
            let known: Vec<&str> = pipeline.destinations.iter().map(|known| known.id.as_str()).collect();
            open::unknown(Code::UnknownDestination, "destination", destination, &known)
        })?;
        let bundle_path = bundle_path(program, parsed, destination)?;
        open::secrets(host, config, &[&pipeline.id], reporter)?;
        Ok(Chosen { pipeline_id: &pipeline.id, destination, root: open::place(destination)?, bundle_path })
    }

    /// The bundle path as a place.
    pub(super) fn target(&self) -> Box<dyn Storage> {
        self.root.at(&self.bundle_path)
    }

    /// What every report says of it.
    pub(super) fn place(&self) -> Place {
        Place {
            pipeline_id: self.pipeline_id.to_owned(),
            destination_id: self.destination.id.clone(),
            backend: self.destination.target.backend().as_str(),
            root: self.root.describe(),
            bundle_path: self.bundle_path.to_string(),
        }
    }

    /// The result of the work. Where the root has no state the error names the bundle paths that have one.
    pub(super) fn result<T>(&self, result: Result<T>) -> Result<Result<T>> {
        ran(result.map_err(|error| {
            if error.code == Code::NoState && self.bundle_path.below().is_none() {
                self.elsewhere(error)
            } else {
                error
            }
        }))
    }

    fn elsewhere(&self, error: Error) -> Error {
        let mut paths = Vec::new();
        let found = self.root.find(STATE, &mut |path, met| {
            if matches!(met, Met::Marked) {
                paths.push(escape(path));
            }
        });
        paths.sort_unstable();
        match (found, paths.as_slice()) {
            (Ok(()), [_, ..]) => error.hint(format!("name one of these with --bundle-path: {}", paths.join(", "))),
            _ => error,
        }
    }
}

fn bundle_path(program: &'static Program, parsed: &Parsed, destination: &Destination) -> Result<BundlePath> {
    match parsed.text(&BUNDLE_PATH)? {
        None | Some(".") => Ok(BundlePath::ROOT),
        Some(_) if destination.path_mapping == PathMapping::Fixed => Err(usage(
            program,
            format!("--bundle-path: the destination {} is fixed: it is its root alone", destination.id),
        )),
        Some(path) => RelPath::parse(path)
            .map(BundlePath::from)
            .map_err(|fault| usage(program, format!("--bundle-path {path:?}: {fault}"))),
    }
}

/// Does `work` in the world of `host`.
pub(super) fn with_world<T>(
    host: &Host,
    reporter: &Reporter<'_>,
    lock_timeout: std::time::Duration,
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
