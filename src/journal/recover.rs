//! What is to be done about a journal that was left behind.

use super::{Journal, Kind, Phase};
use crate::digest::Digest;

/// What heals a destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cure {
    /// Nothing was published: stage and journal go.
    Discard,
    /// Everything was published: stage and journal go.
    Settle,
    /// The operations are done again from where they were, then the state is written.
    Finish,
    /// The deletes are done again, then what is gone is dropped from the state.
    Delete,
}

/// What `journal` needs, where the state file's bytes have the digest `state`.
pub fn cure(journal: &Journal, state: Option<Digest>) -> Cure {
    match (journal.phase, journal.target) {
        (Phase::Committing, Some(target)) if state == Some(target.sha256) => Cure::Settle,
        (Phase::Committing, Some(_)) => Cure::Finish,
        (Phase::Committing, None) if journal.kind == Kind::Prune => Cure::Delete,
        _ => Cure::Discard,
    }
}
