//! What distributor-run reports.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::text::{Text, count, list, size};
use super::{Failure, Status};
use crate::error::Code;
use crate::path::{RawPath, escape};
use crate::plan::{Action, Change, Forced, Outgoing, Plan, Planned};
use crate::publish::Published;
use crate::state::OutputRecord;

/// The report of a run.
#[derive(Debug, Serialize)]
pub struct RunBody {
    /// One record a pipeline, in the order of the configuration.
    pub pipelines: Vec<PipelineRecord>,
    /// How many of each.
    pub summary: Summary,
    #[serde(skip)]
    /// Whether nothing was written.
    pub dry_run: bool,
    #[serde(skip)]
    /// How long it took.
    pub seconds: f64,
    #[serde(skip)]
    /// Whether a command was cut short somewhere, which the next run finishes.
    pub recovery: bool,
    #[serde(skip)]
    /// Whether something would be made otherwise today.
    pub differs: bool,
    #[serde(skip)]
    /// The command that does what a dry run showed.
    pub next: Option<String>,
}

/// A pipeline's part of a run.
#[derive(Debug, Serialize)]
pub struct PipelineRecord {
    /// Its id.
    pub pipeline_id: String,
    /// How many bundles its source holds.
    pub bundle_count: usize,
    /// Why its source could not be read.
    pub error: Option<Failure>,
    /// One record a bundle and destination.
    pub destinations: Vec<DestinationRecord>,
}

/// What became of one bundle at one destination.
#[derive(Debug, Serialize)]
pub struct DestinationRecord {
    /// The destination.
    pub destination_id: String,
    /// Its kind of storage.
    pub backend: &'static str,
    /// The bundle's path below the source root.
    pub bundle_path: String,
    /// The bundle's id, where its manifest could be read.
    pub source_id: Option<String>,
    /// What was done.
    pub action: Action,
    /// The configured state mode.
    pub state_mode: &'static str,
    /// The configured reconciliation mode.
    pub reconciliation_mode: &'static str,
    /// What was taken over, and why it could be.
    pub takeover: Option<Takeover>,
    /// Where to start reading.
    pub primary_url: Option<String>,
    /// The outputs that were written.
    pub outputs: Vec<OutputLine>,
    /// The outputs that were deleted.
    pub deleted: Vec<String>,
    /// What a forced replacement removes.
    pub force: Option<Force>,
    /// How many outputs were retained.
    pub retained: usize,
    /// How many bytes were written.
    pub bytes_written: u64,
    /// How long it took.
    pub duration_ms: u64,
    /// Why it failed.
    pub error: Option<Failure>,
    #[serde(skip)]
    /// The pipeline, for text.
    pub pipeline_id: String,
    /// What else is to be said.
    pub note: Option<String>,
    #[serde(skip)]
    /// The outputs of other owners, and whose they are, where any of them goes or is overwritten.
    pub theirs: BTreeMap<String, String>,
}

/// What a forced replacement removes.
#[derive(Debug, Serialize)]
pub struct Force {
    /// What it would fail with, were it not forced.
    pub instead_of: &'static str,
    /// The paths that nobody recorded.
    pub unmanaged: Vec<String>,
    /// Whose outputs go.
    pub owners: Vec<Outgoing>,
}

/// A takeover.
#[derive(Debug, Serialize)]
pub struct Takeover {
    /// The configured mode.
    pub mode: &'static str,
    /// Why.
    pub reason: crate::plan::Reason,
}

/// An output of a publication.
#[derive(Debug, Serialize)]
pub struct OutputLine {
    /// Its path.
    pub path: String,
    /// What happens to it.
    pub change: Change,
    /// How it came to be.
    pub kind: crate::state::OutputKind,
    /// The source file.
    pub source_path: String,
    /// The transform.
    pub transform: Option<String>,
    /// Its URL.
    pub url: Option<String>,
    /// Its digest.
    pub sha256: crate::bundle::Digest,
    /// Its size in bytes.
    pub size: u64,
}

impl From<&Planned> for OutputLine {
    fn from(planned: &Planned) -> OutputLine {
        let output = &planned.output;
        OutputLine {
            path: output.path.to_string(),
            change: if planned.replaces { Change::Overwrite } else { Change::Create },
            kind: output.kind,
            source_path: output.source_path.to_string(),
            transform: output.transform.map(ToOwned::to_owned),
            url: output.url.clone(),
            sha256: output.content.sha256,
            size: output.content.size,
        }
    }
}

impl From<&OutputRecord> for OutputLine {
    fn from(record: &OutputRecord) -> OutputLine {
        OutputLine {
            path: record.path.to_string(),
            change: Change::Retain,
            kind: record.kind,
            source_path: record.source_path.to_string(),
            transform: record.transform.clone(),
            url: record.url.clone(),
            sha256: record.sha256,
            size: record.size,
        }
    }
}

impl DestinationRecord {
    /// Takes what was decided and done; `only_looked` where nothing was written.
    pub fn take(&mut self, published: &Published, takeover_mode: &'static str, only_looked: bool) {
        self.action = published.decision.action;
        self.note.clone_from(&published.decision.note);
        self.takeover = published.decision.takeover.map(|reason| Takeover { mode: takeover_mode, reason });
        if let Some(plan) = &published.plan {
            self.take_plan(plan);
            self.bytes_written = if only_looked { 0 } else { plan.outputs.iter().map(|p| p.output.content.size).sum() };
        }
    }

    fn take_plan(&mut self, plan: &Plan) {
        let retained = plan.retained.iter().map(OutputLine::from);
        let mut outputs: Vec<OutputLine> = plan.outputs.iter().map(OutputLine::from).chain(retained).collect();
        outputs.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        self.outputs = outputs;
        self.deleted = plan.deleted().into_iter().map(RawPath::text).collect();
        self.primary_url.clone_from(&plan.primary_url);
        self.retained = plan.retained.len();
        self.theirs = plan.theirs.iter().map(|(path, whose)| (path.text(), whose.clone())).collect();
        self.force = plan.force.as_ref().map(|forced| Force::of(forced, plan.decision.forced));
    }
}

impl Force {
    fn of(forced: &Forced, instead_of: Option<Code>) -> Force {
        Force {
            instead_of: instead_of.map_or("", Code::as_str),
            unmanaged: forced.unmanaged.iter().map(RawPath::text).collect(),
            owners: forced.owners.clone(),
        }
    }
}

/// How many destinations ended how.
#[derive(Debug, Default, Serialize)]
pub struct Summary {
    /// Published where nothing was.
    pub publish_new: usize,
    /// Replaced an older bundle.
    pub replace_older: usize,
    /// Took over.
    pub replace_takeover: usize,
    /// Forced.
    pub force_replace: usize,
    /// Published again.
    pub republish: usize,
    /// Left as they were.
    pub skipped: usize,
    /// Failed, sources that could not be read among them.
    pub failed: usize,
}

impl Summary {
    /// Counts the records.
    pub fn of(pipelines: &[PipelineRecord]) -> Summary {
        let mut summary = Summary::default();
        for pipeline in pipelines {
            summary.failed += usize::from(pipeline.error.is_some());
            for record in &pipeline.destinations {
                *match record.action {
                    Action::PublishNew => &mut summary.publish_new,
                    Action::ReplaceOlder => &mut summary.replace_older,
                    Action::ReplaceTakeover => &mut summary.replace_takeover,
                    Action::ForceReplace => &mut summary.force_replace,
                    Action::Republish => &mut summary.republish,
                    Action::SkipSame | Action::SkipDestinationOlder | Action::SkipDestinationNewer => {
                        &mut summary.skipped
                    }
                    Action::Error => &mut summary.failed,
                } += 1;
            }
        }
        summary
    }

    /// How many destinations were, or would be, written to.
    pub fn changes(&self) -> usize {
        self.publish_new + self.replace_older + self.replace_takeover + self.force_replace + self.republish
    }

    /// How the run ended.
    pub fn status(&self) -> Status {
        let done = self.changes() + self.skipped;
        match (self.failed, done) {
            (0, _) => Status::Success,
            (_, 0) => Status::Failure,
            _ => Status::PartialFailure,
        }
    }
}

impl Text for RunBody {
    fn text(&self, out: &mut String, verbose: bool) {
        let records: Vec<&DestinationRecord> = self.pipelines.iter().flat_map(|p| &p.destinations).collect();
        let place = |record: &DestinationRecord| format!("{}/{}", record.pipeline_id, record.destination_id);
        let action = records.iter().map(|r| r.action.as_str().len()).max().unwrap_or_default().max(15);
        let width = records.iter().map(|r| place(r).chars().count()).max().unwrap_or_default();
        let bundle = records.iter().map(|r| r.bundle_path.chars().count()).max().unwrap_or_default();
        for pipeline in &self.pipelines {
            if let Some(error) = &pipeline.error {
                *out += &format!("{:action$}  {}  {}: {}\n", "error", pipeline.pipeline_id, error.code, error.what);
                cure(out, action, error);
            }
            for record in &pipeline.destinations {
                let line = format!(
                    "{:action$}  {:width$}  {:bundle$}  {}",
                    record.action.as_str(),
                    place(record),
                    record.bundle_path,
                    RunBody::about(record)
                );
                *out += line.trim_end();
                *out += "\n";
                if let Some(error) = &record.error {
                    cure(out, action, error);
                    let details = error.detail.iter().flatten();
                    let lines: Vec<String> = details.map(|d| format!("{}: {}", d.code, d.message)).collect();
                    if lines.len() > 1 {
                        list(out, lines, verbose);
                    }
                }
                if verbose || self.dry_run {
                    list(out, changes(record), verbose);
                }
            }
        }
        self.end(out);
    }
}

fn cure(out: &mut String, indent: usize, error: &Failure) {
    if let Some(cure) = &error.cure {
        *out += &format!("{:indent$}  cure: {cure}\n", "");
    }
}

fn changes(record: &DestinationRecord) -> Vec<String> {
    let unmanaged: BTreeSet<&String> = record.force.iter().flat_map(|force| &force.unmanaged).collect();
    let whose = |path: &String| match record.theirs.get(path) {
        Some(owner) => format!("  (of {owner})"),
        None if unmanaged.contains(path) => "  (not managed)".to_owned(),
        None => String::new(),
    };
    let line = |what: &str, path: &String, whose: &str| format!("{what:9}  {}{whose}", escape(path.as_bytes()));
    // What goes is what an operator looks for first.
    let deleted = record.deleted.iter().map(|path| line("delete", path, &whose(path)));
    let written = record.outputs.iter().map(|output| {
        let whose = if output.change == Change::Overwrite { whose(&output.path) } else { String::new() };
        line(output.change.as_str(), &output.path, &whose)
    });
    deleted.chain(written).collect()
}

impl RunBody {
    fn about(record: &DestinationRecord) -> String {
        if let Some(error) = &record.error {
            return format!("{}: {}", error.code, error.what);
        }
        if let Some(note) = &record.note {
            return note.clone();
        }
        if record.action.is_skip() {
            return String::new();
        }
        let written = || record.outputs.iter().filter(|output| output.change != Change::Retain);
        let bytes = written().map(|output| output.size).sum();
        let mut text = format!("{}, {}", count(written().count(), "output"), size(bytes));
        if record.retained > 0 {
            text += &format!(", {} retained", record.retained);
        }
        if !record.deleted.is_empty() {
            text += &format!(", {} deleted", record.deleted.len());
            let theirs = record.deleted.iter().filter(|path| record.theirs.contains_key(*path)).count();
            if theirs > 0 {
                text += &format!(", {theirs} of them of other owners");
            }
        }
        if let Some(force) = &record.force {
            text += &format!(", in spite of {}", force.instead_of);
            if !force.unmanaged.is_empty() {
                text += &format!(" ({} not managed)", count(force.unmanaged.len(), "path"));
            }
        }
        if let Some(takeover) = &record.takeover {
            text += &format!(", reason {}", takeover.reason.as_str());
        }
        if let Some(url) = &record.primary_url {
            text += &format!("  {url}");
        }
        text
    }

    fn end(&self, out: &mut String) {
        let s = &self.summary;
        let would = if self.dry_run { "would be: " } else { "" };
        *out += &format!(
            "{would}{} published, {} replaced, {} taken over, {} forced, {} skipped, {} failed in {:.1} s\n",
            s.publish_new + s.republish,
            s.replace_older,
            s.replace_takeover,
            s.force_replace,
            s.skipped,
            s.failed,
            self.seconds
        );
        match &self.next {
            Some(next) if s.force_replace > 0 => {
                *out += &format!("nothing was written; to delete what is listed and publish: {next}\n");
            }
            Some(next) if s.changes() > 0 => *out += &format!("nothing was written; to publish: {next}\n"),
            Some(next) if self.recovery => {
                *out += &format!("nothing was written; to finish what was cut short: {next}\n");
            }
            Some(_) if self.differs => *out += "nothing was written, and there is nothing to do without --republish\n",
            Some(_) => *out += "nothing was written, and there is nothing to do\n",
            None if self.dry_run => *out += "nothing was written\n",
            None => {}
        }
    }
}
