//! `distributor-validate`: check a bundle directory, a pipeline's source, or a configuration.

use super::{details_of, open, ran, start};
use crate::bundle::{self, Manifest};
use crate::cli::{self, CONFIG, PIPELINE, Parsed, STRICT, VALIDATE, usage};
use crate::error::{Code, Detail, Error, Result, Warning};
use crate::host::Host;
use crate::path::escape;
use crate::report::{CheckedBundle, ConfigBody, Failure, Problem, Reporter, Status, ValidateBody};
use crate::source::{Found, discover};
use crate::storage::{Local, Storage};

/// Runs the program and returns its exit status.
pub fn main(host: &Host) -> u8 {
    start(host, &VALIDATE, |parsed, reporter| match (parsed.operand(), parsed.text(&PIPELINE)?, parsed.has(&CONFIG)) {
        (Some(_), Some(_), _) => Err(usage(&VALIDATE, "DIR and --pipeline exclude each other")),
        (Some(_), _, true) => Err(usage(&VALIDATE, "DIR and --config exclude each other")),
        (Some(dir), None, false) => {
            host.cancel.listen();
            let storage = open::directory(host, &VALIDATE, dir)?;
            Check { host, reporter, strict: parsed.has(&STRICT) }.directory(&storage)
        }
        (None, Some(id), _) => pipeline(host, parsed, reporter, id),
        (None, None, true) if parsed.has(&STRICT) => Err(usage(&VALIDATE, "--strict needs DIR or --pipeline")),
        (None, None, true) => configuration(host, parsed, reporter),
        (None, None, false) => Err(usage(&VALIDATE, "nothing to check: give DIR, --pipeline or --config")),
    })
}

fn configuration(host: &Host, parsed: &Parsed, reporter: &Reporter<'_>) -> Result<u8> {
    let config = open::config(host, parsed, reporter)?;
    let body = ConfigBody {
        error: None,
        bundles: Vec::new(),
        file: escape(config.file.as_os_str().as_encoded_bytes()),
        pipelines: config.pipelines.len(),
        destinations: config.pipelines.iter().map(|pipeline| pipeline.destinations.len()).sum(),
    };
    reporter.finish(Status::Success, false, body)?;
    Ok(0)
}

fn pipeline(host: &Host, parsed: &Parsed, reporter: &Reporter<'_>, id: &str) -> Result<u8> {
    let config = open::config(host, parsed, reporter)?;
    let pipeline = open::pipeline(&config, id)?;
    let opener = open::Opener::new(host, &config, &[id], reporter)?;
    let check = Check { host, reporter, strict: parsed.has(&STRICT) };
    let look = || {
        let root = opener.source(pipeline)?;
        Ok((discover(root.as_ref())?, root))
    };
    match ran(look())? {
        Err(error) => check.finish(Vec::new(), Some(&error)),
        Ok((discovery, root)) => {
            discovery.warnings.into_iter().for_each(|warning| reporter.warn(warning.pipeline(id)));
            let bundles = discovery.bundles.into_iter().map(|found| check.found(root.as_ref(), found)).collect();
            check.finish(bundles, None)
        }
    }
}

struct Check<'a> {
    host: &'a Host,
    reporter: &'a Reporter<'a>,
    strict: bool,
}

impl Check<'_> {
    fn directory(&self, storage: &Local) -> Result<u8> {
        match bundle::load(storage) {
            Ok(manifest) => self.finish(vec![self.bundle(".", storage, &manifest)], None),
            Err(error) if is_manifest(error.code) => self.finish(vec![unreadable(".", &error)], None),
            Err(error) => self.finish(Vec::new(), Some(&error)),
        }
    }

    fn found(&self, root: &dyn Storage, found: Found) -> CheckedBundle {
        match found.bundle {
            Ok((path, manifest)) => self.bundle(&found.shown, root.at(&path).as_ref(), &manifest),
            Err(error) => unreadable(&found.shown, &error),
        }
    }

    fn bundle(&self, path: &str, storage: &dyn Storage, manifest: &Manifest) -> CheckedBundle {
        let detail = |error: &Error| details_of(error);
        let mut errors = bundle::verify(storage, manifest, &self.host.cancel).unwrap_or_else(|error| detail(&error));
        let mut warnings = bundle::notes(manifest, &self.host.now());
        let mut unlisted = Vec::new();
        match bundle::unlisted(storage, manifest) {
            Ok(found) => unlisted = found,
            Err(error) => errors.extend(detail(&error)),
        }
        if self.strict {
            errors
                .extend(unlisted.drain(..).map(|file| Detail::new(Code::UnlistedFile, file.message, Some(file.path))));
        }
        for warning in &warnings {
            self.reporter.note(&warning.clone().bundle(path));
        }
        for file in &unlisted {
            self.reporter.note(&Warning::new(Code::UnlistedFile, file.message.clone()).bundle(path));
        }
        let unlisted = unlisted.into_iter().map(|file| Problem {
            code: Code::UnlistedFile.as_str(),
            message: file.message,
            path: Some(file.path),
        });
        let notes = warnings.drain(..).map(|w| Problem { code: w.code.as_str(), message: w.message, path: None });
        CheckedBundle {
            bundle_path: path.to_owned(),
            id: Some(manifest.id.clone()),
            valid: errors.is_empty(),
            files: manifest.files.len(),
            bytes: manifest.bytes(),
            warnings: notes.chain(unlisted).collect(),
            errors: errors.iter().map(Problem::from).collect(),
        }
    }

    fn finish(&self, bundles: Vec<CheckedBundle>, error: Option<&Error>) -> Result<u8> {
        for bundle in &bundles {
            self.reporter.problems(&bundle.bundle_path, &bundle.errors);
        }
        if let Some(error) = error {
            self.reporter.fail(&[], error);
        }
        let good = error.is_none() && bundles.iter().all(|bundle| bundle.valid);
        let (status, exit) = if good { (Status::Success, 0) } else { (Status::Failure, cli::FAILED) };
        self.reporter.finish(status, false, ValidateBody { error: error.map(Failure::from), bundles })?;
        Ok(self.host.cancel.signal().map_or(exit, cli::signalled))
    }
}

/// Whether an error is about the manifest itself, and so about a bundle that is there.
fn is_manifest(code: Code) -> bool {
    matches!(code, Code::InvalidManifest | Code::ContentDigestMismatch | Code::NotARegularFile)
}

fn unreadable(path: &str, error: &Error) -> CheckedBundle {
    CheckedBundle {
        bundle_path: path.to_owned(),
        id: None,
        valid: false,
        files: 0,
        bytes: 0,
        errors: details_of(error).iter().map(Problem::from).collect(),
        warnings: Vec::new(),
    }
}
