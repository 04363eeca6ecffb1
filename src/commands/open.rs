//! From the configuration to pipelines and places.

use crate::cli::{self, Parsed};
use crate::config::{self, Backend, Config, Destination, Pipeline, Source, Target};
use crate::error::{Code, Error, Result};
use crate::host::Host;
use crate::report::Reporter;
use crate::secrets::Secrets;
use crate::storage::{Local, Modes, Storage};
use crate::suggest::nearest;

/// How many files of a source on an SSH server are read at the same time: what hides the way there and back.
const SSH_READS: usize = 16;

/// Reads the configuration that `--config` or the environment names, and says its warnings.
pub(super) fn config(host: &Host, parsed: &Parsed, reporter: &Reporter<'_>) -> Result<Config> {
    let (config, warnings) = config::load(host, parsed.value(&cli::CONFIG))?;
    for warning in warnings {
        reporter.warn(warning);
    }
    Ok(config)
}

/// The pipeline with this id.
pub(super) fn pipeline<'a>(config: &'a Config, id: &str) -> Result<&'a Pipeline> {
    config.pipeline(id).ok_or_else(|| {
        let known: Vec<&str> = config.pipelines.iter().map(|pipeline| pipeline.id.as_str()).collect();
        unknown(Code::UnknownPipeline, "pipeline", id, &known)
    })
}

/// The error of an id that nothing has.
pub(super) fn unknown(code: Code, what: &str, id: &str, known: &[&str]) -> Error {
    let error = Error::new(code, format!("there is no {what} {id:?}"));
    match nearest(id, known.iter().copied()) {
        Some(near) => error.hint(format!("did you mean {near}?")),
        None => error.hint(format!("there is {}", known.join(", "))),
    }
}

/// Checks that every variable the pipelines need has a value.
pub(super) fn secrets(host: &Host, config: &Config, ids: &[&str], reporter: &Reporter<'_>) -> Result<()> {
    let secrets = Secrets::load(host, config.secrets_directory.as_deref())?;
    let names = config.variables(ids);
    secrets.warnings(&names).into_iter().for_each(|warning| reporter.warn(warning));
    secrets.require(&names)?;
    // All is read that a program starts with.
    host.cancel.listen();
    Ok(())
}

/// The place of a pipeline's source.
pub(super) fn source(pipeline: &Pipeline) -> Result<Box<dyn Storage>> {
    match &pipeline.source {
        Source::Local(source) => Ok(Box::new(Local::new(&source.path, Modes::default()))),
        other => Err(unsupported(&format!("a source with backend: {}", other.backend().as_str()))),
    }
}

/// How many files of a remote source are read at the same time; `None` for a source that is read where it lies.
pub(super) fn reads(source: &Source) -> Option<usize> {
    match source {
        Source::Local(_) | Source::HttpUpload(_) => None,
        Source::S3(place) => Some(place.concurrency),
        Source::Ssh(_) => Some(SSH_READS),
    }
}

/// The source of a pipeline that a program was told to look at.
pub(super) fn named_source(pipeline: &Pipeline) -> Result<Box<dyn Storage>> {
    if pipeline.source.backend() == Backend::HttpUpload {
        let message = format!("pipeline {} is served by distributor-serve", pipeline.id);
        return Err(Error::new(Code::Usage, message).hint("its bundles come by upload: there is no source to look at"));
    }
    source(pipeline)
}

/// The place of a destination.
pub(super) fn destination(destination: &Destination) -> Result<Box<dyn Storage>> {
    match &destination.target {
        Target::Local(target) => Ok(Box::new(Local::new(&target.path, target.modes))),
        other => Err(unsupported(&format!("a destination with backend: {}", other.backend().as_str()))),
    }
}

fn unsupported(what: &str) -> Error {
    Error::new(Code::Unsupported, format!("this version does not carry out {what}"))
        .hint("change the configuration, or use a version that does")
}
