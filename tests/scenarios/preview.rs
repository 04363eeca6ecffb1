//! The dry run before a run: what it said is held against what the run did.

use std::ffi::OsString;

use distributor::cli::{self, Parsed};
use serde_json::{Map, Value};

use super::expect;

/// What a dry run can't know.
const ONLY_WRITING_TELLS: [&str; 2] = ["bytes_written", "duration_ms"];

/// What a report says of one pipeline, or of one bundle at one destination.
type Record = Map<String, Value>;

/// How a run was asked to report.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Text,
    Json,
    Nothing,
}

/// A run that can be previewed.
pub(crate) struct Asked {
    form: Form,
    /// The arguments of the dry run.
    pub(crate) dry: Vec<OsString>,
}

impl Asked {
    /// What the arguments of distributor-run ask for; `None` where that is no run that writes.
    pub(crate) fn of(args: &[OsString]) -> Option<Asked> {
        let parsed = cli::parse(&cli::RUN, args).ok()?;
        // The exit status of a dry run is a wrong command line without one.
        if [&cli::HELP, &cli::VERSION, &cli::DRY_RUN, &cli::DETAILED_EXITCODE].into_iter().any(|flag| parsed.has(flag))
        {
            return None;
        }
        let form = match parsed.text(&cli::FORMAT).ok()? {
            Some("json") => Form::Json,
            None | Some("text") if parsed.has(&cli::QUIET) => Form::Nothing,
            None | Some("text") => Form::Text,
            Some(_) => return None,
        };
        Some(Asked { form, dry: dry(&parsed) })
    }
}

/// The same arguments for a dry run that reports in JSON, to which `--quiet` and `--verbose` make no difference.
fn dry(parsed: &Parsed) -> Vec<OsString> {
    let mut args = ["--dry-run", "--format", "json"].map(OsString::from).to_vec();
    for flag in cli::RUN.flags().filter(|flag| **flag != cli::FORMAT) {
        for value in parsed.values(flag) {
            args.push(format!("--{}", flag.long).into());
            args.extend(flag.value.map(|_| value.to_owned()));
        }
    }
    args
}

/// What a dry run said.
pub(crate) struct Preview {
    form: Form,
    stdout: String,
    stderr: String,
}

impl Preview {
    /// What the dry run of `asked` said.
    pub(crate) fn new(asked: &Asked, stdout: String, stderr: String) -> Preview {
        Preview { form: asked.form, stdout, stderr }
    }

    /// Holds it against the standard output of the run.
    pub(crate) fn holds(&self, run: &str) -> Result<(), String> {
        self.compare(run).map_err(|problem| format!("the dry run beforehand and the run differ: {problem}"))
    }

    fn compare(&self, run: &str) -> Result<(), String> {
        let shown = |output: &str| expect::block(&expect::split(output));
        match (self.form, self.stdout.is_empty(), run.is_empty()) {
            (Form::Nothing, ..) | (_, true, true) => Ok(()),
            (_, false, true) => Err(format!("the run has no report\n  dry run:{}", shown(&self.stdout))),
            (_, true, false) => {
                Err(format!("the dry run has no report\n  dry run:{}\n  run:{}", shown(&self.stderr), shown(run)))
            }
            (Form::Json, ..) => same_records(&records(&self.stdout)?, &records(run)?),
            (Form::Text, ..) => same_lines(&records(&self.stdout)?, run),
        }
    }
}

/// Each pipeline, and behind it each of its bundles and destinations.
fn records(report: &str) -> Result<Vec<Record>, String> {
    let report: Value = serde_json::from_str(report).map_err(|error| format!("not JSON: {error}"))?;
    let pipelines = report.get("pipelines").and_then(Value::as_array).ok_or("a report without pipelines")?;
    let mut records = Vec::new();
    for pipeline in pipelines.iter().filter_map(Value::as_object) {
        let mut own = pipeline.clone();
        let destinations = own.remove("destinations");
        records.push(comparable(own));
        for destination in destinations.iter().filter_map(Value::as_array).flatten().filter_map(Value::as_object) {
            let mut record = comparable(destination.clone());
            record.insert("pipeline_id".to_owned(), pipeline.get("pipeline_id").cloned().unwrap_or_default());
            records.push(record);
        }
    }
    Ok(records)
}

/// A record without what a dry run can't know; of its error the code.
fn comparable(mut record: Record) -> Record {
    record.retain(|key, _| !ONLY_WRITING_TELLS.contains(&key.as_str()));
    if let Some(error) = record.get_mut("error")
        && let Some(code) = error.get_mut("code")
    {
        *error = code.take();
    }
    record
}

fn text<'a>(record: &'a Record, key: &str) -> Option<&'a str> {
    record.get(key)?.as_str()
}

/// `pipeline/destination` and the bundle, or the pipeline alone.
fn place(record: &Record) -> Vec<String> {
    let pipeline = text(record, "pipeline_id").unwrap_or_default();
    match (text(record, "destination_id"), text(record, "bundle_path")) {
        (Some(destination), Some(bundle)) => vec![format!("{pipeline}/{destination}"), bundle.to_owned()],
        _ => vec![pipeline.to_owned()],
    }
}

fn same_records(dry: &[Record], run: &[Record]) -> Result<(), String> {
    let places = |records: &[Record]| records.iter().map(|record| place(record).join("  ")).collect::<Vec<_>>();
    same("other records", &places(dry), &places(run))?;
    dry.iter().zip(run).try_for_each(|(dry, run)| same_record(dry, run))
}

fn same_record(dry: &Record, run: &Record) -> Result<(), String> {
    let mut keys = dry.keys().chain(run.keys());
    let Some(key) = keys.find(|key| dry.get(*key) != run.get(*key)) else { return Ok(()) };
    let shown = |record: &Record| record.get(key).map_or("nothing there".to_owned(), Value::to_string);
    Err(format!("{}: {key}\n  dry run: {}\n  run: {}", place(dry).join("  "), shown(dry), shown(run)))
}

fn same(what: &str, dry: &[String], run: &[String]) -> Result<(), String> {
    if dry == run {
        return Ok(());
    }
    Err(format!("{what}\n  dry run:{}\n  run:{}", expect::block(dry), expect::block(run)))
}

/// Holds records against the lines of a text that stand for one each: all that are not indented, but for the last.
fn same_lines(dry: &[Record], run: &str) -> Result<(), String> {
    let heads: Vec<Vec<String>> = dry.iter().filter_map(head).collect();
    let mut lines: Vec<&str> = run.lines().filter(|line| !line.starts_with(' ')).collect();
    lines.pop();
    if heads.len() == lines.len() && heads.iter().zip(&lines).all(|(head, line)| begins(line, head)) {
        return Ok(());
    }
    let dry: Vec<String> = heads.iter().map(|head| head.join("  ")).collect();
    Err(format!("other records\n  dry run:{}\n  run:{}", expect::block(&dry), expect::block(&lines)))
}

/// The columns that a record's line begins with: action, place, bundle, and the code of an error. Pipelines have a line
/// where they failed.
fn head(record: &Record) -> Option<Vec<String>> {
    let code = text(record, "error").map(|code| format!("{code}:"));
    let action = text(record, "action").or(code.as_ref().map(|_| "error"))?;
    let columns = std::iter::once(action.to_owned()).chain(place(record));
    Some(columns.chain(code).collect())
}

/// Whether a line begins with these columns.
fn begins(line: &str, columns: &[String]) -> bool {
    let mut rest = line;
    columns.iter().all(|column| {
        let gap = if column.ends_with(':') { " " } else { "  " };
        match rest.trim_start().strip_prefix(column.as_str()) {
            Some(after) if after.is_empty() || after.starts_with(gap) => {
                rest = after;
                true
            }
            _ => false,
        }
    })
}
