//! The programs: one file each, with the order of its calls.

pub mod bundle;
pub mod distributor;
pub mod inspect;
pub mod prune;
pub mod reconcile_state;
pub mod run;
pub mod validate;

mod open;
mod publish;
mod upkeep;

use std::ffi::OsString;
use std::time::Duration;

use crate::cli::{self, LOCK_TIMEOUT, Parsed, Program, usage};
use crate::config::parse_duration;
use crate::error::{Code, Error, Kind, Result};
use crate::host::Host;
use crate::report::{Format, Progress, Reporter, Settings, is_interrupt};

/// How long a lock is waited for where the command line does not say.
const DEFAULT_LOCK_TIMEOUT: Duration = Duration::from_mins(5);

/// Reads the command line of `program`, serves `--help` and `--version`, and leaves the rest to `work`, which returns
/// the exit status. Its error is said, and gives the status that its code asks for.
fn start(host: &Host, program: &'static Program, work: impl FnOnce(&Parsed, &Reporter<'_>) -> Result<u8>) -> u8 {
    start_with(host, program, &host.args, work)
}

/// The same with arguments that are not the host's.
fn start_with(
    host: &Host,
    program: &'static Program,
    args: &[OsString],
    work: impl FnOnce(&Parsed, &Reporter<'_>) -> Result<u8>,
) -> u8 {
    let result = match cli::parse(program, args).and_then(|parsed| Ok((settings(program, &parsed)?, parsed))) {
        Err(error) => Err((Reporter::new(host, program.name, Settings::default()), error)),
        Ok((_, parsed)) if parsed.has(&cli::HELP) => return print(host, program, &program.help()),
        Ok((_, parsed)) if parsed.has(&cli::VERSION) => {
            return print(host, program, &format!("{} {}\n", program.name, env!("CARGO_PKG_VERSION")));
        }
        Ok((settings, parsed)) => {
            let reporter = Reporter::new(host, program.name, settings);
            reporter.watch(|| work(&parsed, &reporter)).map_err(|error| (reporter, error))
        }
    };
    result.unwrap_or_else(|(reporter, error)| {
        reporter.fail(&[], &error);
        status_of(host, &error)
    })
}

/// How the command line wants results and messages.
fn settings(program: &Program, parsed: &Parsed) -> Result<Settings> {
    let format = match parsed.text(&cli::FORMAT)? {
        None | Some("text") => Format::Text,
        Some("json") => Format::Json,
        Some(other) => return Err(cli::usage(program, format!("--format {other:?} is neither text nor json"))),
    };
    let progress = match parsed.text(&cli::PROGRESS)? {
        None | Some("auto") => Progress::Auto,
        Some("always") => Progress::Always,
        Some("never") => Progress::Never,
        Some(other) => {
            return Err(cli::usage(program, format!("--progress {other:?} is none of auto, always and never")));
        }
    };
    Ok(Settings { format, quiet: parsed.has(&cli::QUIET), verbose: parsed.has(&cli::VERBOSE), progress })
}

fn print(host: &Host, program: &'static Program, text: &str) -> u8 {
    match host.stdout.write(text) {
        Ok(()) => 0,
        Err(error) => {
            let error = Error::io("standard output", &error);
            Reporter::new(host, program.name, Settings::default()).fail(&[], &error);
            cli::FAILED
        }
    }
}

/// The exit status of a program that ends with `error`.
fn status_of(host: &Host, error: &Error) -> u8 {
    match error.code.kind() {
        Kind::Setup => cli::NOT_STARTED,
        _ if error.code == Code::Locked => cli::BUSY,
        _ if is_interrupt(error) => host.cancel.signal().map_or(cli::FAILED, cli::signalled),
        _ => cli::FAILED,
    }
}

/// How long a lock is waited for.
fn lock_timeout(program: &'static Program, parsed: &Parsed) -> Result<Duration> {
    match parsed.text(&LOCK_TIMEOUT)? {
        None => Ok(DEFAULT_LOCK_TIMEOUT),
        Some("0") => Ok(Duration::ZERO),
        Some(text) => parse_duration(text).map_err(|fault| usage(program, format!("--lock-timeout: {fault}"))),
    }
}

/// What may fail while a program runs, and stands in its report; what keeps it from starting is passed on.
fn ran<T>(result: Result<T>) -> Result<Result<T>> {
    match result {
        Err(error) if error.code.kind() == Kind::Setup => Err(error),
        result => Ok(result),
    }
}

/// One error as the finding of a bundle.
fn details_of(error: &Error) -> Vec<crate::error::Detail> {
    if error.detail.is_empty() {
        let code = if error.code == Code::NotFound { Code::InvalidManifest } else { error.code };
        vec![crate::error::Detail::new(code, error.message.clone(), None)]
    } else {
        error.detail.clone()
    }
}
