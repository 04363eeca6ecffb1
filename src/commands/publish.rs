//! One pipeline of a run: its bundles to its destinations.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::OnceLock;
use std::time::Instant;

use super::details_of;
use super::open::Opener;
use crate::bundle::{self, Manifest};
use crate::config::{Destination, PathMapping, Pipeline};
use crate::error::{Code, Error, Result, Warning};
use crate::host::Host;
use crate::path::BundlePath;
use crate::plan::{Action, Wanted};
use crate::pool;
use crate::publish::{Publication, World};
use crate::report::{DestinationRecord, Failure, PipelineRecord, Reporter};
use crate::source::{Checked, Files, Found, Staging, discover, newest};
use crate::storage::Storage;

/// The most destinations that are published to at the same time.
const MAX_PLACES: usize = 8;

/// A destination and its place, or why this version can't publish there.
pub(super) struct Target<'a> {
    destination: &'a Destination,
    place: Result<Box<dyn Storage>>,
}

impl<'a> Target<'a> {
    pub(super) fn new(opener: &Opener<'_>, destination: &'a Destination) -> Target<'a> {
        Target { destination, place: opener.destination(destination) }
    }
}

/// A bundle of the source, with what is known of it once for all destinations.
struct Bundle<'a> {
    found: &'a Found,
    /// What is known of its files once a destination has wanted them.
    checked: Checked,
    noted: OnceLock<()>,
}

struct Run<'a> {
    host: &'a Host,
    reporter: &'a Reporter<'a>,
    pipeline: &'a Pipeline,
    root: &'a dyn Storage,
    /// Where bundles of a remote source are fetched to.
    staging: Option<Staging>,
    world: &'a World<'a>,
    mode: Mode<'a>,
}

/// What a run is told to do.
#[derive(Clone, Copy)]
pub(super) struct Mode<'a> {
    /// Only look.
    pub(super) dry_run: bool,
    /// Remove what stands against it.
    pub(super) force: bool,
    /// Publish the same again.
    pub(super) republish: bool,
    /// Where remote bundles are staged, as the configuration says.
    pub(super) staging: Option<&'a Path>,
}

/// Publishes what the source of `pipeline` holds to `targets`.
pub(super) fn pipeline(
    (host, opener): (&Host, &Opener<'_>),
    reporter: &Reporter<'_>,
    pipeline: &Pipeline,
    targets: &[Target<'_>],
    world: &World<'_>,
    mode: Mode<'_>,
) -> PipelineRecord {
    let mut record =
        PipelineRecord { pipeline_id: pipeline.id.clone(), bundle_count: 0, error: None, destinations: Vec::new() };
    let looked = opener.source(pipeline).and_then(|root| Ok((discover(root.as_ref())?, root)));
    match looked {
        Err(error) => {
            reporter.fail(std::slice::from_ref(&pipeline.id), &error);
            record.error = Some(Failure::from(&error));
        }
        Ok((discovery, root)) => {
            record.bundle_count = discovery.bundles.len();
            discovery.warnings.into_iter().for_each(|warning| reporter.warn(warning.pipeline(&pipeline.id)));
            let staging = pipeline.source.is_remote().then(|| Staging::new(mode.staging));
            let run = Run { host, reporter, pipeline, root: root.as_ref(), staging, world, mode };
            record.destinations = run.all(&discovery.bundles, targets);
        }
    }
    record
}

impl Run<'_> {
    fn all(&self, found: &[Found], targets: &[Target<'_>]) -> Vec<DestinationRecord> {
        let bundle = |found| Bundle { found, checked: Checked::new(targets.len()), noted: OnceLock::new() };
        let bundles: Vec<Bundle<'_>> = found.iter().map(bundle).collect();
        // Destinations of one place take turns: they are one item of the pool's work.
        let mut places: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for (at, target) in targets.iter().enumerate() {
            let place = target.place.as_ref().map_or_else(|_| String::new(), |place| place.describe());
            places.entry(place).or_default().push(at);
        }
        let places: Vec<Vec<usize>> = places.into_values().collect();
        let records = pool::map(MAX_PLACES, &places, |place| {
            place.iter().flat_map(|at| self.target(&bundles, &targets[*at], *at)).collect::<Vec<_>>()
        });
        let mut records: Vec<_> = records.into_iter().flatten().collect();
        records.sort_by_key(|(order, _)| *order);
        records.into_iter().map(|(_, record)| record).collect()
    }

    /// Every bundle that `target` gets, each with its place in the report: by bundle, then by destination.
    fn target(
        &self,
        bundles: &[Bundle<'_>],
        target: &Target<'_>,
        at: usize,
    ) -> Vec<((usize, usize), DestinationRecord)> {
        let fixed = target.destination.path_mapping == PathMapping::Fixed;
        let key = |bundle: &'_ Bundle<'_>| bundle.found.bundle.as_ref().ok().map(|(path, _)| path.clone());
        let chosen = if fixed { self.choose(bundles, target) } else { None };
        let wanted = |bundle: &Bundle<'_>| !fixed || key(bundle).is_none() || key(bundle) == chosen;
        let mut lost = None;
        let each = |(number, bundle): (usize, &Bundle<'_>)| {
            let record = wanted(bundle).then(|| ((number, at), self.record(bundle, target, &mut lost)));
            bundle.checked.leave();
            record
        };
        bundles.iter().enumerate().filter_map(each).collect()
    }

    /// The bundle of a fixed destination.
    fn choose(&self, bundles: &[Bundle<'_>], target: &Target<'_>) -> Option<BundlePath> {
        let valid: Vec<&(BundlePath, Manifest)> = bundles.iter().filter_map(|b| b.found.bundle.as_ref().ok()).collect();
        let (path, manifest) = newest(valid.iter().copied(), |(path, manifest)| Some((path, manifest)))?;
        if self.mode.dry_run {
            let count = valid.len();
            let message = format!("fixed: bundle {path} ({}, created {}) of {count}", manifest.id, manifest.created);
            self.warn(Warning::new(Code::FixedSelection, message), target);
        }
        Some(path.clone())
    }

    fn warn(&self, warning: Warning, target: &Target<'_>) {
        self.reporter.warn(warning.pipeline(&self.pipeline.id).destination(&target.destination.id));
    }

    /// Publishes a bundle. `lost` says that the source or the destination is out of reach, which is found out once.
    fn record(&self, bundle: &Bundle<'_>, target: &Target<'_>, lost: &mut Option<Error>) -> DestinationRecord {
        let begun = Instant::now();
        let mut record = blank(self.pipeline, target.destination, bundle.found);
        let published = lost.clone().map_or_else(|| self.publish(bundle, target, &mut record), Err);
        if let Err(error) = published {
            if lost.is_none() && error.is_out_of_reach() {
                *lost = Some(Error { message: format!("not tried any more: {}", error.message), ..error.clone() });
            }
            record.action = Action::Error;
            let id = format!("{}/{}", self.pipeline.id, target.destination.id);
            self.reporter.fail(&[id, bundle.found.shown.clone()], &error);
            record.error = Some(Failure::from(&error));
        }
        record.duration_ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        record
    }

    fn publish(&self, bundle: &Bundle<'_>, target: &Target<'_>, record: &mut DestinationRecord) -> Result<()> {
        self.host.cancel.check()?;
        let place = target.place.as_ref().map_err(Error::clone)?;
        let (path, manifest) = bundle.found.bundle.as_ref().map_err(invalid)?;
        let fixed = target.destination.path_mapping == PathMapping::Fixed;
        let at = if fixed { BundlePath::ROOT } else { path.clone() };
        let (source, there) = (self.root.at(path), place.at(&at));
        let files = Files::new(source.as_ref(), manifest, &bundle.checked, self.staging.as_ref(), &self.host.cancel);
        let publication = Publication {
            wanted: Wanted {
                pipeline_id: &self.pipeline.id,
                destination: target.destination,
                manifest,
                dirty: false,
                force: self.mode.force,
                republish: self.mode.republish,
            },
            source: &files,
            at: &at,
            target: there.as_ref(),
            world: self.world,
        };
        let mut warnings = Vec::new();
        let published =
            if self.mode.dry_run { publication.look(&mut warnings) } else { publication.run(&mut warnings) };
        for warning in warnings {
            self.warn(warning.bundle(&bundle.found.shown), target);
        }
        let mut published = published?;
        if self.mode.dry_run
            && let Some(plan) = &mut published.plan
        {
            files.verify()?;
            publication.preview(plan)?;
            if fixed && publication.wanted.replaces_all(published.decision.action) {
                self.fixed_replace(target, there.as_ref());
            }
        }
        record.take(&published, target.destination.takeover.as_str(), self.mode.dry_run);
        if published.plan.is_some() {
            self.notes(bundle, source.as_ref(), manifest);
        }
        Ok(())
    }

    /// Says once what is odd about a bundle that is published: what its manifest is worth a warning for, and which files
    /// nobody will get.
    fn notes(&self, bundle: &Bundle<'_>, source: &dyn Storage, manifest: &Manifest) {
        bundle.noted.get_or_init(|| {
            let mut notes = bundle::notes(manifest, self.reporter.started());
            // A directory that can't be listed will say so where its files are read.
            let unlisted = bundle::unlisted(source, manifest).unwrap_or_default();
            notes.extend(unlisted.into_iter().map(|file| Warning::new(Code::UnlistedFile, file.message)));
            for warning in notes {
                self.reporter.warn(warning.pipeline(&self.pipeline.id).bundle(&bundle.found.shown));
            }
        });
    }

    fn fixed_replace(&self, target: &Target<'_>, there: &dyn Storage) {
        let message = format!("the destination root {} would be replaced", there.describe());
        self.warn(Warning::new(Code::FixedReplace, message), target);
    }
}

fn blank(pipeline: &Pipeline, destination: &Destination, found: &Found) -> DestinationRecord {
    DestinationRecord {
        destination_id: destination.id.clone(),
        backend: destination.target.backend().as_str(),
        bundle_path: found.shown.clone(),
        source_id: found.bundle.as_ref().ok().map(|(_, manifest)| manifest.id.clone()),
        action: Action::Error,
        state_mode: destination.state_mode.as_str(),
        reconciliation_mode: destination.reconciliation.as_str(),
        takeover: None,
        primary_url: None,
        outputs: Vec::new(),
        deleted: Vec::new(),
        force: None,
        retained: 0,
        bytes_written: 0,
        duration_ms: 0,
        error: None,
        pipeline_id: pipeline.id.clone(),
        note: None,
        theirs: BTreeMap::new(),
    }
}

/// The error of a bundle whose manifest could not be read.
fn invalid(error: &Error) -> Error {
    Error { code: Code::InvalidBundle, detail: details_of(error), ..error.clone() }
}
