//! Decisions and plans: values in, a [`Plan`] out. Nothing here reads, writes or asks the time.

mod decide;
mod layout;
mod prune;
mod publish;
mod record;
mod refuse;
mod survey;
#[cfg(test)]
mod tests;

use serde::{Serialize, Serializer};

pub use decide::{Decision, Wanted, decide};
pub use layout::is_html;
pub use prune::{PruneReason, Pruned, prune};
pub use publish::{Change, Forced, Outgoing, Plan, Planned, difference, paths, plan};
pub use survey::{Sight, Survey};

/// What is done at a destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Nothing of ours was there.
    PublishNew,
    /// What is there is older.
    ReplaceOlder,
    /// What is there belongs to another source or owner, and the configuration lets it go.
    ReplaceTakeover,
    /// What is there goes, whatever it is, because the operator says so and the configuration allows it.
    ForceReplace,
    /// What is there is this bundle, and was not published whole, or is to be published again.
    Republish,
    /// What is there is this bundle.
    SkipSame,
    /// What is there is older, and the policy leaves it.
    SkipDestinationOlder,
    /// What is there is newer.
    SkipDestinationNewer,
    /// It failed, or it may not be done.
    Error,
}

impl Action {
    /// The name that stands in reports.
    pub const fn as_str(self) -> &'static str {
        match self {
            Action::PublishNew => "publish_new",
            Action::ReplaceOlder => "replace_older",
            Action::ReplaceTakeover => "replace_takeover",
            Action::ForceReplace => "force_replace",
            Action::Republish => "republish",
            Action::SkipSame => "skip_same",
            Action::SkipDestinationOlder => "skip_destination_older",
            Action::SkipDestinationNewer => "skip_destination_newer",
            Action::Error => "error",
        }
    }

    /// Whether nothing is written.
    pub const fn is_skip(self) -> bool {
        matches!(self, Action::SkipSame | Action::SkipDestinationOlder | Action::SkipDestinationNewer)
    }
}

impl Serialize for Action {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// Why a destination is taken over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Its state names another pipeline or destination.
    Identity,
    /// Its state names another source id.
    Source,
    /// A planned path belongs to another owner of the shared root.
    OutputOwner,
}

impl Reason {
    /// The name that stands in reports.
    pub const fn as_str(self) -> &'static str {
        match self {
            Reason::Identity => "identity",
            Reason::Source => "source",
            Reason::OutputOwner => "output_owner",
        }
    }
}

impl Serialize for Reason {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}
