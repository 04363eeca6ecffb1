//! One publication: one bundle to one destination bundle path.

use crate::bundle::finding;
use crate::error::{Code, Detail, Error, Result};
use crate::host::Cancel;
use crate::path::BundlePath;
use crate::plan::{Change, Decision, Plan, Survey, Wanted, decide, plan};
use crate::state::{self, State};
use crate::storage::{Body, Commit, Job, STATE, Stage, StageError, Storage};
use crate::timestamp::Timestamp;
use crate::transform;

/// What is to be published, and where.
pub struct Publication<'a> {
    /// Whose it is and under which policies.
    pub wanted: Wanted<'a>,
    /// The bundle's directory.
    pub source: &'a dyn Storage,
    /// The destination's bundle path, below its root.
    pub at: &'a BundlePath,
    /// The same as a place.
    pub target: &'a dyn Storage,
    /// What can interrupt it.
    pub cancel: &'a Cancel,
}

/// A publication that was decided upon.
pub struct Decided {
    /// What the table says.
    pub decision: Decision,
    /// What is to be done, where anything is.
    pub plan: Option<Plan>,
    old: Option<State>,
}

impl Publication<'_> {
    /// The pure part: reads the state and, where there is something to do, what lies there, and plans. Changes nothing.
    pub fn decide(&self) -> Result<Decided> {
        let read = self.target.get_small(STATE, state::MAX_BYTES + 1)?;
        let state = read.map(|bytes| parse_state(&bytes));
        let decision = decide(&self.wanted, state.as_ref())?;
        if decision.action.is_skip() {
            return Ok(Decided { decision, plan: None, old: None });
        }
        let old = state.and_then(std::result::Result::ok);
        let mut survey = Survey::new(old.as_ref());
        self.target.list(&mut |entry| {
            self.cancel.check()?;
            survey.see(entry);
            Ok(())
        })?;
        let outputs = transform::outputs(self.wanted.manifest, self.wanted.destination, self.at);
        let plan = plan(decision.clone(), outputs, old.as_ref(), &survey)?;
        drop(survey);
        Ok(Decided { decision, plan: Some(plan), old })
    }

    /// The effectful part: carries out what was decided. Until every output is staged and verified, a failure leaves
    /// everything as it was.
    pub fn execute(&self, decided: &Decided, token: &str, now: &Timestamp) -> Result<()> {
        let Some(plan) = &decided.plan else { return Ok(()) };
        let stage = self.target.open_stage(token)?;
        if let Err(error) = self.stage(&stage, plan) {
            // The first failure is the one to tell; a stage that stays behind is swept later.
            let _ = self.target.close_stage(stage, true);
            return Err(error);
        }
        let committed = self.commit(&stage, plan).and_then(|()| {
            let state = plan.state(&self.wanted, decided.old.as_ref(), now);
            self.target.put_small(STATE, state.to_json().as_bytes())
        });
        let closed = self.target.close_stage(stage, false);
        committed.and(closed)
    }

    fn stage(&self, stage: &Stage, plan: &Plan) -> Result<()> {
        let outputs = plan.outputs.iter().map(|planned| &planned.output);
        let jobs: Vec<Job<'_>> = outputs
            .map(|output| Job {
                path: &output.path,
                size: output.size,
                sha256: output.sha256,
                body: Body::File(self.source, &output.source_path),
            })
            .collect();
        let mut details = Vec::new();
        let results = self.target.stage_all(stage, &jobs, self.cancel);
        self.cancel.check()?;
        for (planned, result) in plan.outputs.iter().zip(results) {
            match result {
                Ok(()) => {}
                Err(StageError::Place(error)) => return Err(error),
                Err(StageError::Source(error)) => details.push(finding(&planned.output.source_path, error)),
            }
        }
        invalid_bundle(details).map_or(Ok(()), Err)
    }

    fn commit(&self, stage: &Stage, plan: &Plan) -> Result<()> {
        self.target.remove_many(&plan.in_the_way.iter().collect::<Vec<_>>())?;
        self.target.remove_empty_dirs(&plan.clear_dirs.iter().map(String::as_str).collect::<Vec<_>>())?;
        self.target.make_dirs(&plan.make_dirs.iter().map(String::as_str).collect::<Vec<_>>())?;
        let commits: Vec<Commit<'_>> = plan
            .outputs
            .iter()
            .enumerate()
            .map(|(job, planned)| Commit {
                job,
                path: &planned.output.path,
                replace: planned.change == Change::Overwrite,
            })
            .collect();
        self.target.commit_all(stage, &commits)?;
        self.target.remove_many(&plan.dropped.iter().collect::<Vec<_>>())?;
        self.target.remove_empty_dirs(&plan.emptied.iter().map(String::as_str).collect::<Vec<_>>())
    }
}

fn parse_state(bytes: &[u8]) -> std::result::Result<State, String> {
    if bytes.len() as u64 > state::MAX_BYTES {
        return Err(format!("larger than {} bytes", state::MAX_BYTES));
    }
    State::parse(bytes)
}

/// The error of a bundle with these findings; `None` where there are none.
pub fn invalid_bundle(details: Vec<Detail>) -> Option<Error> {
    let first = details.first()?;
    let more = if details.len() > 1 { format!(" (and {} more)", details.len() - 1) } else { String::new() };
    Some(
        Error::new(Code::InvalidBundle, format!("{}{more}", first.message))
            .hint("make the bundle and its manifest anew, together")
            .detail(details),
    )
}
