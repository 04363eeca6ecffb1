//! What a killed command left behind.

use std::collections::{BTreeMap, BTreeSet};

use super::site::{ReadState, Site};
use crate::digest::{Digest, Fingerprint};
use crate::error::{Code, Result, Warning};
use crate::journal::{Cure, Journal, Kind, Operation, cure};
use crate::names::{JOURNAL_PREFIX, STATE};
use crate::path::{RawPath, RelPath};
use crate::state::{OutputRecord, State};
use crate::storage::{Expected, Guard, Recovery, Small, Stage};
use crate::timestamp::Timestamp;

impl Site<'_> {
    /// Heals what every journal here tells of, whoever wrote it. `own` is the journal of who publishes now. Gives
    /// the mark of an owner whose outputs are not those of its bundle.
    pub fn recover(&self, guard: &dyn Guard, own: &str, warnings: &mut Vec<Warning>) -> Result<Option<Journal>> {
        let mut open = Vec::new();
        // Those that ask for nothing go first: whether one does is told by the state, which the others change.
        for name in self.target.own_names(JOURNAL_PREFIX)? {
            let Some(journal) = self.read_journal(&name)? else { continue };
            let state = self.target.get_small(STATE, u64::MAX)?;
            match (self.cure(&journal, state.as_ref())?, self.target.recovery()) {
                // Its owner's next publication writes everything anew.
                (Cure::Discard, Recovery::DirtyMark) if journal.dirty => {}
                // The stage of a publication that was not committed is swept.
                (Cure::Discard, Recovery::Redo) => self.target.remove_small(&name)?,
                (Cure::Settle, _) | (Cure::Discard, Recovery::DirtyMark) => self.settle(&name, &journal)?,
                (cure @ (Cure::Finish | Cure::Delete), _) => open.push((name, journal, cure)),
            }
        }
        for (name, journal, cure) in open {
            match (cure, self.target.recovery()) {
                (Cure::Delete, _) => self.delete_recorded(guard, &name, &journal)?,
                (_, Recovery::Redo) => {
                    let state = self.target.get_small(STATE, u64::MAX)?;
                    let whole = journal.clone().with_directories();
                    self.finish(guard, &whole, &[], state.as_ref().map(|small| &small.version))?;
                    // Once another state stands, a journal that stayed would tell to publish this one again.
                    self.settle(&name, &journal)?;
                }
                (_, Recovery::DirtyMark) => {
                    self.take_stock(guard, &name, &journal)?;
                    continue;
                }
            }
            warnings.push(self.recovered(&journal));
        }
        self.target.sweep_stages(&[])?;
        if self.target.recovery() == Recovery::DirtyMark { self.read_journal(own) } else { Ok(None) }
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

    /// Takes up what a publication that was cut short has left where only its source has the bytes: what is new goes, the
    /// state says what is there, and a mark stays for each owner whose outputs are not those of its bundle.
    fn take_stock(&self, guard: &dyn Guard, name: &str, journal: &Journal) -> Result<()> {
        let stage = Stage(journal.stage.clone());
        self.target.remove_created(&stage, &journal.created().collect::<Vec<_>>())?;
        let ReadState { version, parsed } = self.read_state()?;
        let mut state = match parsed {
            Some(Ok(state)) => state,
            None => return self.leave(name, journal, journal.forced.is_some()),
            // What it recorded nobody can say: the journal stays as it is.
            Some(Err(_)) => return Ok(()),
        };
        let found = self.stock(journal, &state)?;
        let own = (journal.pipeline_id.as_str(), journal.destination_id.as_str());
        let touched = found.touched(&state);
        // The marks come first: then whoever is killed here is followed by somebody who finds the same.
        for (pipeline_id, destination_id) in touched.iter().filter(|owner| **owner != own) {
            let mark = journal.mark(pipeline_id, destination_id);
            if self.target.own_names(&mark.name())?.is_empty() {
                self.target.put_small(&mark.name(), &mark.to_json(), Expected::Any)?;
            }
        }
        let stays = journal.leaves_a_mark() || touched.contains(&own);
        if found.apply(&mut state, &journal.started_at) {
            self.write_state(guard, state, version.as_ref())?;
        }
        self.leave(name, journal, stays)
    }

    fn leave(&self, name: &str, journal: &Journal, stays: bool) -> Result<()> {
        if !stays {
            return self.settle(name, journal);
        }
        let mark = journal.mark(&journal.pipeline_id, &journal.destination_id);
        self.target.put_small(name, &mark.to_file()?, Expected::Any)
    }

    /// What of the recorded outputs a publication that was cut short has overwritten, and what it has removed.
    pub(super) fn stock(&self, journal: &Journal, state: &State) -> Result<Stock> {
        let recorded: BTreeSet<&RelPath> = state.outputs.iter().map(|record| &record.path).collect();
        let replaced: Vec<(&RelPath, Fingerprint)> =
            journal.replaced().filter(|(path, _)| recorded.contains(path)).collect();
        let paths: Vec<&RelPath> = replaced.iter().map(|(path, _)| *path).collect();
        let wrote = self.target.wrote(&Stage(journal.stage.clone()), &paths)?;
        let removed: BTreeSet<&RawPath> = journal.removed().collect();
        let removed: Vec<&RelPath> =
            recorded.into_iter().filter(|path| removed.contains(&RawPath::from(*path))).collect();
        let exist = self.target.exist_many(&removed)?;
        let overwritten = replaced.into_iter().zip(wrote).filter(|(_, wrote)| *wrote);
        Ok(Stock {
            overwritten: overwritten.map(|((path, content), _)| (path.clone(), content)).collect(),
            gone: removed.into_iter().zip(exist).filter(|(_, exists)| !exists).map(|(path, _)| path.clone()).collect(),
        })
    }
}

/// What became of recorded outputs.
pub(super) struct Stock {
    overwritten: BTreeMap<RelPath, Fingerprint>,
    gone: BTreeSet<RelPath>,
}

impl Stock {
    /// The owners of these outputs: pipeline and destination.
    pub(super) fn touched<'a>(&self, state: &'a State) -> BTreeSet<(&'a str, &'a str)> {
        let is_meant =
            |record: &&OutputRecord| self.overwritten.contains_key(&record.path) || self.gone.contains(&record.path);
        let owners = state.outputs.iter().filter(is_meant).filter_map(|record| state.owners.get(record.owner));
        owners.map(|owner| (owner.pipeline_id.as_str(), owner.destination_id.as_str())).collect()
    }

    /// Lets the state say what is there; whether it said anything else.
    pub(super) fn apply(&self, state: &mut State, written_at: &Timestamp) -> bool {
        let mut changed = false;
        for record in &mut state.outputs {
            if let Some(content) = self.overwritten.get(&record.path)
                && (record.sha256, record.size) != (content.sha256, content.size)
            {
                (record.sha256, record.size) = (content.sha256, content.size);
                record.updated_at = written_at.clone();
                changed = true;
            }
        }
        let before = state.outputs.len();
        state.outputs.retain(|record| !self.gone.contains(&record.path));
        changed || state.outputs.len() < before
    }
}
