//! What a killed command left behind.

use super::Publication;
use crate::digest::Digest;
use crate::error::{Code, Result, Warning};
use crate::journal::{Cure, Journal, Phase, cure};
use crate::names::{JOURNAL_PREFIX, STATE};
use crate::storage::{Guard, Recovery, Stage};

/// What recovery found.
#[derive(Default)]
pub(super) struct Recovered {
    /// Whether what is there may not be what the state says.
    pub(super) dirty: bool,
    pub(super) warnings: Vec<Warning>,
}

impl Publication<'_> {
    /// Heals what every journal here tells of, whoever wrote it. `own` is this owner's.
    pub(super) fn recover(&self, guard: &dyn Guard, own: &str) -> Result<Recovered> {
        let mut recovered = Recovered::default();
        for name in self.target.own_names(JOURNAL_PREFIX)? {
            let Some(journal) = self.read_journal(&name)? else { continue };
            match self.target.recovery() {
                Recovery::Redo => self.redo(guard, &name, &journal, &mut recovered)?,
                Recovery::DirtyMark => self.mark(&name, own, &journal, &mut recovered)?,
            }
        }
        self.target.sweep_stages(&[])?;
        Ok(recovered)
    }

    fn redo(&self, guard: &dyn Guard, name: &str, journal: &Journal, recovered: &mut Recovered) -> Result<()> {
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
                recovered.warnings.push(Warning::new(Code::RecoveredPublication, message));
                Ok(())
            }
            // The stage first: while the journal stands, what is left of the stage is known to somebody.
            Cure::Settle | Cure::Discard => {
                if cure(journal, digest) == Cure::Settle {
                    self.target.close_stage(&Stage(journal.stage.clone()))?;
                }
                self.target.remove_small(name)
            }
        }
    }

    /// Where only the source has the bytes: new objects go, and the owner publishes again.
    fn mark(&self, name: &str, own: &str, journal: &Journal, recovered: &mut Recovered) -> Result<()> {
        let state = self.target.get_small(STATE, u64::MAX)?;
        let digest = state.map(|small| Digest::of(&small.bytes));
        let stage = Stage(journal.stage.clone());
        match cure(journal, digest) {
            Cure::Settle => self.target.remove_small(name),
            Cure::Discard if !journal.dirty => {
                self.target.close_stage(&stage)?;
                self.target.remove_small(name)
            }
            Cure::Finish | Cure::Discard => {
                if journal.phase == Phase::Committing {
                    self.target.remove_created(&stage, &journal.created().collect::<Vec<_>>())?;
                }
                recovered.dirty |= name == own;
                Ok(())
            }
        }
    }
}
