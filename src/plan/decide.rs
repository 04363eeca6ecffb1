//! The decision table: a manifest against the state of a destination.

use std::cmp::Ordering;

use super::{Action, Reason};
use crate::bundle::Manifest;
use crate::config::{Destination, OnNewer, OnOlder, TakeoverMode};
use crate::error::{Code, Error, Result};
use crate::names::STATE;
use crate::state::{Fault, State};

/// What is to be published, by whom, and under which policies.
#[derive(Clone, Copy)]
pub struct Wanted<'a> {
    /// The pipeline.
    pub pipeline_id: &'a str,
    /// The destination of it.
    pub destination: &'a Destination,
    /// The bundle.
    pub manifest: &'a Manifest,
    /// Whether what is there may not be what its state says: then it is never skipped as the same.
    pub dirty: bool,
}

/// What the table says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// What is done.
    pub action: Action,
    /// Why it takes over, where it does.
    pub takeover: Option<Reason>,
    /// What an operator should know about it.
    pub note: Option<String>,
}

impl Decision {
    fn of(action: Action) -> Decision {
        Decision { action, takeover: None, note: None }
    }
}

/// Decides by the state alone: `None` where there is none, its fault where it is not valid. Whether unmanaged content
/// lies in the way is for [`super::plan`] to say.
pub fn decide(wanted: &Wanted<'_>, state: Option<&std::result::Result<State, Fault>>) -> Result<Decision> {
    match state {
        None => Ok(Decision::of(Action::PublishNew)),
        Some(Err(Fault::Invalid(fault))) => {
            Err(Error::new(Code::InvalidState, format!("invalid state file {STATE}: {fault}"))
                .hint("restore it from a backup, or move it and its outputs aside and publish anew"))
        }
        Some(Err(Fault::SharedRoot)) => Err(Error::new(
            Code::StateModeMismatch,
            "the destination is a shared root, and a single owner is configured",
        )
        .hint("choose another path, or set state.mode: shared_root")),
        Some(Ok(state)) => compare(wanted, state),
    }
}

fn compare(wanted: &Wanted<'_>, state: &State) -> Result<Decision> {
    let takeover = wanted.destination.takeover;
    if state.pipeline_id != wanted.pipeline_id || state.destination_id != wanted.destination.id {
        if takeover == TakeoverMode::Managed {
            return Ok(Decision { takeover: Some(Reason::Identity), ..Decision::of(Action::ReplaceTakeover) });
        }
        let message =
            format!("the destination belongs to pipeline {}, destination {}", state.pipeline_id, state.destination_id);
        return Err(Error::new(Code::IdentityMismatch, message)
            .hint("choose another path, or set takeover.mode: managed to take it over"));
    }
    if state.manifest.id != wanted.manifest.id {
        if takeover != TakeoverMode::Never {
            return Ok(Decision { takeover: Some(Reason::Source), ..Decision::of(Action::ReplaceTakeover) });
        }
        let message =
            format!("the destination holds source id {}, the bundle is {}", state.manifest.id, wanted.manifest.id);
        return Err(Error::new(Code::SourceMismatch, message)
            .hint("choose another path, or set takeover.mode: source to replace it"));
    }
    by_age(wanted, state)
}

fn by_age(wanted: &Wanted<'_>, state: &State) -> Result<Decision> {
    let (there, here) = (&state.manifest, wanted.manifest);
    if there.matches(here) {
        return Ok(Decision::of(if wanted.dirty { Action::Republish } else { Action::SkipSame }));
    }
    let transfer = wanted.destination.transfer;
    match (there.created.cmp(&here.created), transfer.on_destination_older, transfer.on_destination_newer) {
        (Ordering::Less, OnOlder::Replace, _) => Ok(Decision::of(Action::ReplaceOlder)),
        (Ordering::Less, OnOlder::Skip, _) => Ok(Decision::of(Action::SkipDestinationOlder)),
        (Ordering::Less, OnOlder::Fail, _) => Err(Error::new(
            Code::DestinationOlder,
            format!("the destination is older ({}) than the bundle ({})", there.created, here.created),
        )
        .hint("set transfer.on_destination_older: replace to publish it")),
        (Ordering::Greater, _, OnNewer::Skip | OnNewer::Replace) => Ok(Decision {
            note: Some(format!("the destination is newer ({}) than the bundle ({})", there.created, here.created)),
            ..Decision::of(Action::SkipDestinationNewer)
        }),
        (Ordering::Greater, _, OnNewer::Fail) => Err(Error::new(
            Code::DestinationNewer,
            format!("the destination is newer ({}) than the bundle ({})", there.created, here.created),
        )
        .hint("publish a bundle that is newer")),
        (Ordering::Equal, ..) => Err(Error::new(
            Code::SourceConflict,
            format!("the destination holds another bundle of the same created ({})", here.created),
        )
        .hint("make the bundle anew with a later created")),
    }
}
