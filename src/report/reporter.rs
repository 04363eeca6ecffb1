//! Where messages go while a program runs, and its result when it ends.

use std::sync::{Mutex, PoisonError};

use serde::Serialize;

use super::json;
use super::progress::{self, Bar, Progress};
use super::{Envelope, Problem, SCHEMA_VERSION, Status, Text, sentence};
use crate::error::{Code, Error, Warning};
use crate::host::Host;
use crate::path::plain;
use crate::timestamp::Timestamp;

/// How a result is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// For people.
    #[default]
    Text,
    /// One JSON document.
    Json,
}

/// How a program says what it does.
#[derive(Clone, Copy, Debug, Default)]
pub struct Settings {
    /// How its result is printed.
    pub format: Format,
    /// Errors only.
    pub quiet: bool,
    /// More detail.
    pub verbose: bool,
    /// How far it has come, while it runs.
    pub progress: Progress,
}

/// Says on standard error what happens, and prints the result on standard output.
pub struct Reporter<'a> {
    host: &'a Host,
    program: &'static str,
    settings: Settings,
    started: Timestamp,
    warnings: Mutex<Vec<Warning>>,
    bar: Bar,
}

impl<'a> Reporter<'a> {
    /// A reporter for `program`, which starts now.
    pub fn new(host: &'a Host, program: &'static str, settings: Settings) -> Reporter<'a> {
        let (started, warnings) = (host.now(), Mutex::default());
        Reporter { host, program, settings, started, warnings, bar: Bar::default() }
    }

    /// Does `work`, and shows how far it has come while it takes its time.
    pub fn watch<T>(&self, work: impl FnOnce() -> T) -> T {
        progress::watch(self.host, self.program, self.settings, &self.bar, work)
    }

    /// When the program started.
    pub fn started(&self) -> &Timestamp {
        &self.started
    }

    /// Says a warning, and keeps it for the report.
    pub fn warn(&self, warning: Warning) {
        self.note(&warning);
        self.warnings.lock().unwrap_or_else(PoisonError::into_inner).push(warning);
    }

    /// Whether a warning of this code was said.
    pub fn has(&self, code: Code) -> bool {
        self.warnings.lock().unwrap_or_else(PoisonError::into_inner).iter().any(|warning| warning.code == code)
    }

    /// Says a warning that stands elsewhere in the report.
    pub fn note(&self, warning: &Warning) {
        if self.settings.quiet {
            return;
        }
        let ids = [&warning.pipeline_id, &warning.destination_id].into_iter().flatten();
        let mut place = vec![ids.cloned().collect::<Vec<_>>().join("/")];
        place.extend(warning.bundle_path.clone());
        self.say(&place, &format!("warning: {} [{}]", warning.message, warning.code));
    }

    /// Says the findings of a bundle: the first of them, unless all were asked for.
    pub fn problems(&self, bundle: &str, problems: &[Problem]) {
        let shown = if self.settings.verbose { problems.len() } else { super::text::SHOWN };
        let place = [bundle.to_owned()];
        for problem in problems.iter().take(shown) {
            self.say(&place, &format!("{} [{}]", problem.message, problem.code));
        }
        if problems.len() > shown {
            self.say(&place, &format!("and {} more (-v shows all)", problems.len() - shown));
        }
    }

    /// Says an error that stands in the report at `place`.
    pub fn fail(&self, place: &[String], error: &Error) {
        self.say(place, &format!("{} [{}]", sentence(error), error.code));
        // A single finding may say more than the error that it stands for, which counts or names them.
        let told = |detail: &crate::error::Detail| {
            let path = detail.path.as_ref().is_some_and(|path| error.message.contains(path.as_str()));
            path || error.message.contains(&detail.message)
        };
        if !error.detail.iter().all(told) {
            let mut lines = String::new();
            super::text::list(
                &mut lines,
                error.detail.iter().map(|d| d.message.clone()).collect(),
                self.settings.verbose,
            );
            self.bar.write(self.host, &lines);
        }
    }

    /// Says something on standard error.
    pub fn say(&self, place: &[String], what: &str) {
        let place = place.iter().filter(|part| !part.is_empty()).fold(String::new(), |all, part| all + part + ": ");
        self.bar.write(self.host, &format!("{}: {}\n", self.program, plain(&format!("{place}{what}"))));
    }

    /// Prints the result. An error means that it could not be printed.
    pub fn finish<B: Serialize + Text>(&self, status: Status, dry_run: bool, body: B) -> Result<(), Error> {
        let text = match self.settings.format {
            Format::Text if self.settings.quiet => return Ok(()),
            Format::Text => {
                let mut text = String::new();
                body.text(&mut text, self.settings.verbose);
                text.split('\n').map(plain).collect::<Vec<_>>().join("\n")
            }
            Format::Json => self.json(status, dry_run, body),
        };
        self.bar.write(self.host, "");
        self.host.stdout.write(&text).map_err(|error| Error::io("standard output", &error))
    }

    fn json<B: Serialize>(&self, status: Status, dry_run: bool, body: B) -> String {
        let warnings = std::mem::take(&mut *self.warnings.lock().unwrap_or_else(PoisonError::into_inner));
        let envelope = Envelope {
            schema_version: SCHEMA_VERSION,
            command: self.program.trim_start_matches("distributor-"),
            version: env!("CARGO_PKG_VERSION"),
            status,
            dry_run,
            started_at: self.started.clone(),
            finished_at: self.host.now(),
            warnings,
            body,
        };
        json::line(&envelope)
    }
}
