//! What a killed command left behind.

use super::site::Site;
use crate::digest::Digest;
use crate::error::{Code, Result, Warning};
use crate::journal::{Cure, Journal, Kind, Operation, Phase, cure};
use crate::names::{JOURNAL_PREFIX, STATE};
use crate::storage::{Guard, Recovery, Small, Stage};

impl Site<'_> {
    /// Heals what every journal here tells of, whoever wrote it. `own` is the journal of who publishes now. Says whether
    /// what is there may not be what the state says.
    pub fn recover(&self, guard: &dyn Guard, own: &str, warnings: &mut Vec<Warning>) -> Result<bool> {
        let mut dirty = false;
        for name in self.target.own_names(JOURNAL_PREFIX)? {
            let Some(journal) = self.read_journal(&name)? else { continue };
            let state = self.target.get_small(STATE, u64::MAX)?;
            let cure = self.cure(&journal, state.as_ref())?;
            match (cure, self.target.recovery()) {
                (Cure::Delete, _) => {
                    self.delete_recorded(guard, &name, &journal)?;
                    warnings.push(self.recovered(&journal));
                }
                (Cure::Finish, Recovery::Redo) => {
                    let whole = journal.clone().with_directories();
                    self.finish(guard, &whole, &[], state.as_ref().map(|small| &small.version))?;
                    // Once another state stands, a journal that stayed would tell to publish this one again.
                    self.settle(&name, &journal)?;
                    warnings.push(self.recovered(&journal));
                }
                (Cure::Settle, Recovery::Redo) => self.settle(&name, &journal)?,
                // The stage of a publication that was not committed is swept.
                (Cure::Discard, Recovery::Redo) => self.target.remove_small(&name)?,
                (_, Recovery::DirtyMark) => dirty |= self.mark(&name, &journal, cure)? && own == name,
            }
        }
        self.target.sweep_stages(&[])?;
        Ok(dirty)
    }

    fn recovered(&self, journal: &Journal) -> Warning {
        let what = match journal.kind {
            Kind::Publish => format!("the publication of {}", journal.source_id),
            Kind::Prune => "the pruning".to_owned(),
        };
        let message =
            format!("{}: {what} that was cut short on {} is finished", self.target.describe(), journal.started_at);
        Warning::new(Code::RecoveredPublication, message)
    }

    /// What a journal needs where `state` stands.
    pub(super) fn cure(&self, journal: &Journal, state: Option<&Small>) -> Result<Cure> {
        Ok(match cure(journal, state.map(|small| Digest::of(&small.bytes))) {
            // A publication of the same second again: its state has the bytes of the one before.
            Cure::Settle if self.waits(journal)? => Cure::Finish,
            cure => cure,
        })
    }

    /// Whether the last output of a publication still waits for its name.
    fn waits(&self, journal: &Journal) -> Result<bool> {
        let last = journal.operations.iter().rev().find_map(|operation| match operation {
            Operation::Create { job, .. } | Operation::Replace { job, .. } => Some(*job),
            _ => None,
        });
        let stage = Stage(journal.stage.clone());
        last.map_or(Ok(false), |job| Ok(self.target.staged(&stage, job, 0)?.is_some()))
    }

    /// Whether the journal stays, because only its owner's next publication can finish what it tells of.
    pub(super) fn is_mark(&self, journal: &Journal, cure: Cure) -> bool {
        self.target.recovery() == Recovery::DirtyMark
            && (cure == Cure::Finish || cure == Cure::Discard && journal.dirty)
    }

    /// Where only the source has the bytes: new objects go, and the owner publishes again. Says whether the journal stays
    /// for that.
    fn mark(&self, name: &str, journal: &Journal, cure: Cure) -> Result<bool> {
        let (stage, is_mark) = (Stage(journal.stage.clone()), self.is_mark(journal, cure));
        match (journal.phase, is_mark) {
            (Phase::Committing, true) => {
                self.target.remove_created(&stage, &journal.created().collect::<Vec<_>>())?;
            }
            (Phase::Staging, false) => self.target.close_stage(&stage)?,
            _ => {}
        }
        if is_mark { Ok(true) } else { self.target.remove_small(name).map(|()| false) }
    }
}
