//! `distributor-run`: publish the configured pipelines once.

use std::time::Instant;

use super::publish::{Mode, Target, pipeline};
use super::upkeep::with_world;
use super::{lock_timeout, open, start};
use crate::cli::{
    self, CONFIG, DESTINATIONS, DETAILED_EXITCODE, DRY_RUN, FORCE, PIPELINES, Parsed, REPUBLISH, RUN, usage,
};
use crate::config::{Backend, Config, Destination, Pipeline};
use crate::error::{Code, Error, Result};
use crate::host::Host;
use crate::report::{PipelineRecord, RunBody, Summary};

/// Runs the program and returns its exit status.
pub fn main(host: &Host) -> u8 {
    start(host, &RUN, |parsed, reporter| {
        let begun = Instant::now();
        let mode = mode(parsed)?;
        let dry_run = mode.dry_run;
        let config = open::config(host, parsed, reporter)?;
        let mode = Mode { staging: config.staging_directory.as_deref(), ..mode };
        let selected = select(&config, parsed)?;
        let ids: Vec<&str> = selected.iter().map(|(pipeline, _)| pipeline.id.as_str()).collect();
        let opener = open::Opener::new(host, &config, &ids, reporter)?;
        let pipelines: Vec<PipelineRecord> = with_world(host, reporter, lock_timeout(&RUN, parsed)?, |world| {
            let publish = |(source, destinations): &(&Pipeline, Vec<&Destination>)| {
                let targets: Vec<Target<'_>> = destinations.iter().map(|d| Target::new(&opener, d)).collect();
                pipeline((host, &opener), reporter, source, &targets, world, mode)
            };
            selected.iter().map(publish).collect()
        });
        let summary = Summary::of(&pipelines);
        let failed = summary.failed > 0;
        let busy = only_locked(&pipelines);
        let recovery = dry_run && reporter.has(Code::RecoveryPending);
        let pending = parsed.has(&DETAILED_EXITCODE) && (summary.changes() > 0 || recovery);
        let next = (dry_run && !failed).then(|| command(parsed));
        let status = summary.status();
        let differs = reporter.has(Code::OutputsDiffer);
        let body =
            RunBody { pipelines, summary, dry_run, recovery, differs, seconds: begun.elapsed().as_secs_f64(), next };
        reporter.finish(status, dry_run, body)?;
        let exit = if busy {
            cli::BUSY
        } else if failed {
            cli::FAILED
        } else if pending {
            cli::PENDING
        } else {
            0
        };
        Ok(host.cancel.signal().map_or(exit, cli::signalled))
    })
}

fn mode(parsed: &Parsed) -> Result<Mode<'static>> {
    let dry_run = parsed.has(&DRY_RUN);
    if parsed.has(&DETAILED_EXITCODE) && !dry_run {
        return Err(usage(&RUN, "--detailed-exitcode goes with --dry-run".to_owned()));
    }
    Ok(Mode { dry_run, force: parsed.has(&FORCE), republish: parsed.has(&REPUBLISH), staging: None })
}

/// The pipelines and destinations that the command line asks for, in the order of the configuration.
fn select<'a>(config: &'a Config, parsed: &Parsed) -> Result<Vec<(&'a Pipeline, Vec<&'a Destination>)>> {
    let named: Vec<&str> = parsed.texts(&PIPELINES).collect::<Result<_>>()?;
    for id in &named {
        if open::pipeline(config, id)?.source.backend() == Backend::HttpUpload {
            let message = format!("pipeline {id} is served by distributor-serve");
            return Err(Error::new(Code::Usage, message).hint("its bundles come by upload: leave it out"));
        }
    }
    let wanted = |pipeline: &&Pipeline| {
        let by_upload = pipeline.source.backend() == Backend::HttpUpload;
        !by_upload && (named.is_empty() || named.contains(&pipeline.id.as_str()))
    };
    let pipelines: Vec<&Pipeline> = config.pipelines.iter().filter(wanted).collect();
    let only: Vec<&str> = parsed.texts(&DESTINATIONS).collect::<Result<_>>()?;
    let all = || pipelines.iter().flat_map(|pipeline| pipeline.destinations.iter().map(move |d| (pipeline, d)));
    let is = |pipeline: &str, destination: &str, typed: &str| match typed.split_once('/') {
        Some((before, after)) => before == pipeline && after == destination,
        None => typed == destination,
    };
    for typed in &only {
        if !all().any(|(pipeline, destination)| is(&pipeline.id, &destination.id, typed)) {
            let known: Vec<String> = all().map(|(pipeline, d)| format!("{}/{}", pipeline.id, d.id)).collect();
            let known: Vec<&str> = known.iter().map(String::as_str).collect();
            return Err(open::unknown(Code::UnknownDestination, "destination", typed, &known));
        }
    }
    let targets = |pipeline: &'a Pipeline| -> Vec<&'a Destination> {
        let meant = |id: &str| only.is_empty() || only.iter().any(|typed| is(&pipeline.id, id, typed));
        pipeline.destinations.iter().filter(|d| meant(&d.id)).collect()
    };
    let selected = pipelines.iter().map(|pipeline| (*pipeline, targets(pipeline)));
    Ok(selected.filter(|(_, targets)| !targets.is_empty()).collect())
}

/// Whether something failed, and all that failed is `locked`.
fn only_locked(pipelines: &[PipelineRecord]) -> bool {
    let records = pipelines.iter().flat_map(|pipeline| &pipeline.destinations).filter_map(|r| r.error.as_ref());
    let errors: Vec<&str> =
        records.chain(pipelines.iter().filter_map(|p| p.error.as_ref())).map(|error| error.code).collect();
    !errors.is_empty() && errors.iter().all(|code| *code == Code::Locked.as_str())
}

/// The command line that does what this dry run showed.
fn command(parsed: &Parsed) -> String {
    let flags = [&CONFIG, &PIPELINES, &DESTINATIONS];
    let given = flags.into_iter().flat_map(|flag| parsed.values(flag).map(move |value| (flag, value)));
    let line = given.fold(RUN.name.to_owned(), |line, (flag, value)| {
        format!("{line} --{} {}", flag.long, quoted(&value.display().to_string()))
    });
    let switches = [&FORCE, &REPUBLISH].into_iter().filter(|flag| parsed.has(flag));
    switches.fold(line, |line, flag| format!("{line} --{}", flag.long))
}

/// A word as a POSIX shell reads it.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-/:=@%+,".contains(c);
    if word.chars().all(plain) { word.to_owned() } else { format!("'{}'", word.replace('\'', "'\\''")) }
}
