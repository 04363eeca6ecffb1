//! Results as values, and the only text and JSON renderers.

mod bundles;
mod json;
mod progress;
mod reporter;
mod run;
mod text;
mod upkeep;

use serde::{Serialize, Serializer};

pub use bundles::{
    BundleBody, CheckedBundle, ConfigBody, InspectBody, InspectedBundle, InspectedFile, Problem, ValidateBody,
};
pub use progress::Progress;
pub use reporter::{Format, Reporter, Settings};
pub use run::{DestinationRecord, OutputLine, PipelineRecord, RunBody, Summary, Takeover};
pub use text::Text;
pub use upkeep::{Place, Policy, PruneBody, PrunedLine, RepairBody};

use crate::error::{Code, Detail, Error, Warning};
use crate::path::RelPath;
use crate::timestamp::Timestamp;

/// The schema of the JSON reports.
pub const SCHEMA_VERSION: u64 = 1;

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Nothing failed.
    Success,
    /// Something failed, something did not.
    PartialFailure,
    /// Nothing succeeded.
    Failure,
}

/// What every JSON report begins with.
#[derive(Debug, Serialize)]
pub struct Envelope<B> {
    /// Always 1.
    pub schema_version: u64,
    /// The command, without `distributor-`.
    pub command: &'static str,
    /// The version of the program.
    pub version: &'static str,
    /// How it ended.
    pub status: Status,
    /// Whether it only looked.
    pub dry_run: bool,
    /// When it started.
    pub started_at: Timestamp,
    /// When it ended.
    pub finished_at: Timestamp,
    /// What an operator should know.
    #[serde(serialize_with = "warnings")]
    pub warnings: Vec<Warning>,
    /// The command's own part.
    #[serde(flatten)]
    pub body: B,
}

fn warnings<S: Serializer>(warnings: &[Warning], serializer: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Line<'a> {
        code: &'static str,
        message: &'a str,
        pipeline_id: Option<&'a str>,
        destination_id: Option<&'a str>,
        bundle_path: Option<&'a str>,
    }
    serializer.collect_seq(warnings.iter().map(|warning| Line {
        code: warning.code.as_str(),
        message: &warning.message,
        pipeline_id: warning.pipeline_id.as_deref(),
        destination_id: warning.destination_id.as_deref(),
        bundle_path: warning.bundle_path.as_deref(),
    }))
}

/// An error as it stands in a report.
#[derive(Debug, Serialize)]
pub struct Failure {
    /// Its code.
    pub code: &'static str,
    /// What happened, and the cure.
    pub message: String,
    /// The single findings; null where there are none.
    pub detail: Option<Vec<Problem>>,
    #[serde(skip)]
    pub(crate) what: String,
    #[serde(skip)]
    pub(crate) cure: Option<String>,
}

impl From<&Error> for Failure {
    fn from(error: &Error) -> Failure {
        Failure {
            code: error.code.as_str(),
            message: sentence(error),
            detail: (!error.detail.is_empty()).then(|| error.detail.iter().map(Problem::from).collect()),
            what: error.message.clone(),
            cure: error.hint.clone(),
        }
    }
}

/// What happened and the cure, in one line.
pub(crate) fn sentence(error: &Error) -> String {
    error.hint.as_ref().map_or_else(|| error.message.clone(), |hint| format!("{}: {hint}", error.message))
}

/// Whether an error ends the work because of a signal.
pub fn is_interrupt(error: &Error) -> bool {
    error.code == Code::Interrupted
}

impl Problem {
    /// What went wrong with one path.
    pub fn of(path: &RelPath, error: &Error) -> Problem {
        Problem { code: error.code.as_str(), message: sentence(error), path: Some(path.to_string()) }
    }
}

impl From<&Detail> for Problem {
    fn from(detail: &Detail) -> Problem {
        Problem { code: detail.code.as_str(), message: detail.message.clone(), path: detail.path.clone() }
    }
}
