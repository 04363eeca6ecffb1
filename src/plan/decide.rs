//! The decision table: a manifest against the state of a destination.

use std::cmp::Ordering;

use super::{Action, Reason};
use crate::bundle::Manifest;
use crate::config::{Destination, OnConflict, OnNewer, OnOlder, Reconciliation, StateMode, TakeoverMode};
use crate::error::{Code, Error, Result};
use crate::names::STATE;
use crate::state::{Mode, Owner, State};

/// What is to be published, by whom, and under which policies.
#[derive(Clone, Copy)]
pub struct Wanted<'a> {
    /// The pipeline.
    pub pipeline_id: &'a str,
    /// The destination of it.
    pub destination: &'a Destination,
    /// The bundle.
    pub manifest: &'a Manifest,
    /// Whether what is there may not be what its bundle says: then it is never skipped.
    pub dirty: bool,
    /// Whether what stands against it may be removed, within the bounds of the configuration.
    pub force: bool,
    /// Whether what is there is published again where it is the same.
    pub republish: bool,
}

impl Wanted<'_> {
    /// The place of this owner in a state.
    pub(super) fn own(&self, state: &State) -> Option<usize> {
        state.owner(self.pipeline_id, &self.destination.id)
    }

    pub(super) fn is_shared(&self) -> bool {
        self.destination.state_mode == StateMode::SharedRoot
    }

    /// Whether `action` retains what the bundle lacks. A takeover and a forced replacement never do.
    pub(super) fn merges(&self, action: Action) -> bool {
        self.destination.reconciliation == Reconciliation::Merge
            && matches!(action, Action::ReplaceOlder | Action::Republish)
    }

    /// Whether `action` replaces all that is published at the place, and not a part of it.
    pub fn replaces_all(&self, action: Action) -> bool {
        match action {
            Action::ReplaceOlder | Action::Republish => !self.is_shared() && !self.merges(action),
            Action::ReplaceTakeover => !self.is_shared(),
            Action::ForceReplace => true,
            _ => false,
        }
    }
}

/// What the table says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// What is done.
    pub action: Action,
    /// Why it takes over, where it does.
    pub takeover: Option<Reason>,
    /// What it would fail with, were it not forced.
    pub forced: Option<Code>,
    /// What an operator should know about it.
    pub note: Option<String>,
}

impl Decision {
    /// This action, for no particular reason.
    pub fn of(action: Action) -> Decision {
        Decision { action, takeover: None, forced: None, note: None }
    }

    /// A forced replacement of what would fail with `code`.
    pub fn forced(code: Code) -> Decision {
        Decision { forced: Some(code), ..Decision::of(Action::ForceReplace) }
    }

    pub(super) fn take_over(reason: Reason) -> Decision {
        Decision { takeover: Some(reason), ..Decision::of(Action::ReplaceTakeover) }
    }
}

/// Decides by the state alone: `None` where there is none, its fault where it is not valid. Whether unmanaged content
/// lies in the way is for [`super::plan`] to say.
pub fn decide(wanted: &Wanted<'_>, state: Option<&std::result::Result<State, String>>) -> Result<Decision> {
    match state {
        None => Ok(Decision::of(Action::PublishNew)),
        Some(Err(fault)) => conflict(
            wanted,
            Error::new(Code::InvalidState, format!("invalid state file {STATE}: {fault}")),
            "restore it from a backup, or move it and its outputs aside and publish anew",
        ),
        Some(Ok(state)) => by_mode(wanted, state),
    }
}

/// A conflict is an error, unless the policy lets it go and the operator says so.
pub(super) fn conflict(wanted: &Wanted<'_>, error: Error, cure: &str) -> Result<Decision> {
    let replace = wanted.destination.transfer.on_conflict == OnConflict::Replace;
    match (wanted.force, replace) {
        (true, true) => Ok(Decision::forced(error.code)),
        (false, true) => Err(error.hint(format!("{cure}; or preview with --dry-run --force what would be replaced"))),
        (true, false) => Err(error
            .hint(format!("{cure}; --force replaces all that is there, and only with transfer.on_conflict: replace"))),
        (false, false) => Err(error.hint(cure)),
    }
}

fn by_mode(wanted: &Wanted<'_>, state: &State) -> Result<Decision> {
    let own = wanted.own(state).and_then(|at| state.owners.get(at));
    match (wanted.is_shared(), state.mode, own) {
        (false, Mode::SingleOwner, None) => another(wanted, state),
        (false, Mode::SingleOwner, Some(own)) | (true, _, Some(own)) => by_source(wanted, own),
        (true, Mode::SharedRoot, None) => Ok(Decision::of(Action::PublishNew)),
        (true, Mode::SingleOwner, None) => {
            let message = format!("the destination is not shared, it belongs to {}", named(state));
            let cure = "choose another path, or let its owner publish there with state.mode: shared_root and --republish first";
            conflict(wanted, Error::new(Code::StateModeMismatch, message), cure)
        }
        (false, Mode::SharedRoot, _) => {
            let message =
                format!("the destination is a shared root of {}, and a single owner is configured", named(state));
            let cure = "choose another path, or set state.mode: shared_root";
            conflict(wanted, Error::new(Code::StateModeMismatch, message), cure)
        }
    }
}

/// The owners in words.
fn named(state: &State) -> String {
    match state.owners.as_slice() {
        [one] => format!("pipeline {}, destination {}", one.pipeline_id, one.destination_id),
        owners => format!("{} owners", owners.len()),
    }
}

/// A single owner, and it is another one.
fn another(wanted: &Wanted<'_>, state: &State) -> Result<Decision> {
    if wanted.destination.takeover == TakeoverMode::Managed {
        return Ok(Decision::take_over(Reason::Identity));
    }
    let message = format!("the destination belongs to {}", named(state));
    let cure = "choose another path, or set takeover.mode: managed to take it over";
    conflict(wanted, Error::new(Code::IdentityMismatch, message), cure)
}

fn by_source(wanted: &Wanted<'_>, own: &Owner) -> Result<Decision> {
    if own.manifest.id == wanted.manifest.id {
        return by_age(wanted, &own.manifest);
    }
    if wanted.destination.takeover != TakeoverMode::Never {
        return Ok(Decision::take_over(Reason::Source));
    }
    let message = format!("the destination holds source id {}, the bundle is {}", own.manifest.id, wanted.manifest.id);
    let cure = "choose another path, or set takeover.mode: source to replace it";
    conflict(wanted, Error::new(Code::SourceMismatch, message), cure)
}

/// By the age of the bundle that is there. Where that is half-published, what would be skipped can't be made whole.
fn by_age(wanted: &Wanted<'_>, there: &Manifest) -> Result<Decision> {
    let half = "the publication that was cut short here has left it half-published";
    match compare(wanted, there) {
        Ok(Decision { action: Action::SkipSame, .. }) if wanted.dirty => Ok(Decision::of(Action::Republish)),
        Ok(Decision { action, note, .. }) if wanted.dirty && action.is_skip() => {
            let message = format!("{}, and {half}", note.unwrap_or_default());
            Err(Error::new(Code::CommitIncomplete, message)
                .hint("publish the newer bundle, or the one that was cut short, or change the policy for once"))
        }
        Err(error) if wanted.dirty => Err(Error { message: format!("{}, and {half}", error.message), ..error }),
        decided => decided,
    }
}

fn compare(wanted: &Wanted<'_>, there: &Manifest) -> Result<Decision> {
    let here = wanted.manifest;
    if there.matches(here) {
        return Ok(Decision::of(if wanted.republish { Action::Republish } else { Action::SkipSame }));
    }
    let transfer = wanted.destination.transfer;
    match there.created.cmp(&here.created) {
        Ordering::Less => match transfer.on_destination_older {
            OnOlder::Replace => Ok(Decision::of(Action::ReplaceOlder)),
            OnOlder::Skip => Ok(Decision {
                note: Some(format!("the destination is older ({}) than the bundle ({})", there.created, here.created)),
                ..Decision::of(Action::SkipDestinationOlder)
            }),
            OnOlder::Fail => Err(Error::new(
                Code::DestinationOlder,
                format!("the destination is older ({}) than the bundle ({})", there.created, here.created),
            )
            .hint("set transfer.on_destination_older: replace to publish it")),
        },
        Ordering::Greater => newer(wanted, there),
        Ordering::Equal => {
            let message =
                format!("the destination holds another bundle of the same time ({}): its files differ", there.created);
            conflict(wanted, Error::new(Code::SourceConflict, message), "give the changed bundle a later created")
        }
    }
}

fn newer(wanted: &Wanted<'_>, there: &Manifest) -> Result<Decision> {
    let fact = format!("the destination is newer ({}) than the bundle ({})", there.created, wanted.manifest.created);
    let skip = |note| Ok(Decision { note: Some(note), ..Decision::of(Action::SkipDestinationNewer) });
    match (wanted.destination.transfer.on_destination_newer, wanted.force) {
        (OnNewer::Fail, force) => {
            let cure = "publish a newer bundle, or leave this one out";
            let missing = "--force replaces all that is there, and only with transfer.on_destination_newer: replace";
            let hint = if force { format!("{cure}; {missing}") } else { cure.to_owned() };
            Err(Error::new(Code::DestinationNewer, fact).hint(hint))
        }
        (OnNewer::Replace, true) => Ok(Decision::forced(Code::DestinationNewer)),
        (OnNewer::Replace, false) => skip(format!("{fact}; --force would replace it")),
        (OnNewer::Skip, true) => skip(format!(
            "{fact}; --force replaces all that is there, and only with transfer.on_destination_newer: replace"
        )),
        (OnNewer::Skip, false) => skip(fact),
    }
}
