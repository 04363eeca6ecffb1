//! What a killed command left behind.

use super::Publication;
use crate::digest::Digest;
use crate::error::{Code, Result, Warning};
use crate::journal::{Cure, Journal, Phase, cure};
use crate::names::{JOURNAL_PREFIX, STATE};
use crate::storage::{Guard, Recovery, Stage};

impl Publication<'_> {
    /// Heals what every journal here tells of, whoever wrote it. `own` is this owner's. Says whether what is there may
    /// not be what the state says.
    pub(super) fn recover(&self, guard: &dyn Guard, own: &str, warnings: &mut Vec<Warning>) -> Result<bool> {
        let mut dirty = false;
        for name in self.target.own_names(JOURNAL_PREFIX)? {
            let Some(journal) = self.read_journal(&name)? else { continue };
            match self.target.recovery() {
                Recovery::Redo => warnings.extend(self.redo(guard, &name, &journal)?),
                Recovery::DirtyMark => dirty |= self.mark(&name, own, &journal)?,
            }
        }
        self.target.sweep_stages(&[])?;
        Ok(dirty)
    }

    fn redo(&self, guard: &dyn Guard, name: &str, journal: &Journal) -> Result<Option<Warning>> {
        let state = self.target.get_small(STATE, u64::MAX)?;
        let digest = state.as_ref().map(|small| Digest::of(&small.bytes));
        match cure(journal, digest) {
            Cure::Finish => {
                self.finish(guard, name, journal, &[], state.as_ref().map(|small| &small.version))?;
                let message = format!(
                    "{}: the publication of {} that was cut short on {} is finished",
                    self.target.describe(),
                    journal.source_id,
                    journal.started_at
                );
                Ok(Some(Warning::new(Code::RecoveredPublication, message)))
            }
            // The stage first: while the journal stands, what is left of the stage is known to somebody.
            Cure::Settle | Cure::Discard => {
                if cure(journal, digest) == Cure::Settle {
                    self.target.close_stage(&Stage(journal.stage.clone()))?;
                }
                self.target.remove_small(name).map(|()| None)
            }
        }
    }

    /// Where only the source has the bytes: new objects go, and the owner publishes again.
    fn mark(&self, name: &str, own: &str, journal: &Journal) -> Result<bool> {
        let state = self.target.get_small(STATE, u64::MAX)?;
        let digest = state.map(|small| Digest::of(&small.bytes));
        let stage = Stage(journal.stage.clone());
        match cure(journal, digest) {
            Cure::Settle => self.target.remove_small(name).map(|()| false),
            Cure::Discard if !journal.dirty => {
                self.target.close_stage(&stage)?;
                self.target.remove_small(name).map(|()| false)
            }
            Cure::Finish | Cure::Discard => {
                if journal.phase == Phase::Committing {
                    self.target.remove_created(&stage, &journal.created().collect::<Vec<_>>())?;
                }
                Ok(name == own)
            }
        }
    }
}
