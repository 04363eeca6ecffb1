//! The configuration file: found, read, checked, typed. Every problem of a file is reported, with its place.

mod backend;
mod choice;
mod destination;
mod field;
mod file;
mod model;
mod node;
mod overlap;
mod parse;
mod pattern;
mod pipeline;
mod place;
mod problem;
mod s3;
mod scalar;
mod ssh;
mod transform;
mod walk;

use std::ffi::OsStr;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

pub use choice::{
    Backend, HostKeyPolicy, OnConflict, OnNewer, OnOlder, OutputPolicy, PathMapping, RawHtml, Reconciliation,
    StateMode, TakeoverMode,
};
pub use model::{
    Config, Destination, Http, HttpUpload, Links, LocalSource, LocalTarget, MarkdownToHtml, Outputs, Pipeline, Prune,
    Retention, Source, SshTarget, Target, Template, Transfer, Transform, UploadToken,
};
pub use pattern::Pattern;
pub use place::{CacheControl, S3Credentials, S3Place, SshPlace};
pub use problem::Problem;
pub use scalar::duration as parse_duration;

use crate::error::{Code, Detail, Error, Result, Warning};
use crate::host::Host;

/// Where the configuration stands when nothing else is said.
pub const DEFAULT_FILE: &str = "/etc/distributor/distributor.yml";

/// What the meaning of a file depends on beside its text.
pub struct World<'a> {
    /// The user's home, absolute.
    pub home: Option<&'a Path>,
    /// Where staged bundles go by default, absolute.
    pub state_directory: Option<&'a Path>,
    /// Reads a template.
    pub read: &'a dyn Fn(&Path) -> io::Result<Vec<u8>>,
}

/// The configuration file: `flag`, else `$DISTRIBUTOR_CONFIG`, else [`DEFAULT_FILE`].
pub fn locate(host: &Host, flag: Option<&OsStr>) -> PathBuf {
    host.resolve(flag.or_else(|| host.var("DISTRIBUTOR_CONFIG")).unwrap_or(OsStr::new(DEFAULT_FILE)))
}

/// Finds, reads and checks the configuration file.
pub fn load(host: &Host, flag: Option<&OsStr>) -> Result<(Config, Vec<Warning>)> {
    let file = locate(host, flag);
    let text = read_limited(&file).map_err(|error| unreadable(&file, &error))?;
    let absolute = |path: &OsStr| Some(PathBuf::from(path)).filter(|path| path.is_absolute());
    let home = host.var("HOME").and_then(absolute);
    let state = host.var("STATE_DIRECTORY").and_then(|list| absolute(first(list)));
    let world = World { home: home.as_deref(), state_directory: state.as_deref(), read: &read_template };
    parse(&text, &file, &world).map_err(|problems| invalid(&file, &problems))
}

/// Checks the text of a configuration file that stands, or would stand, at the absolute path `file`. Pure but for
/// templates, which `world` reads. On success the file's warnings come with it, otherwise all problems in its order.
pub fn parse(text: &[u8], file: &Path, world: &World) -> std::result::Result<(Config, Vec<Warning>), Vec<Problem>> {
    let directory = file.parent().unwrap_or(Path::new("/"));
    let mut cx = field::Context { directory, world, report: problem::Report::default() };
    let root = parse::parse(text, &mut cx.report);
    let config = root.and_then(|root| file::config(&root, file, &mut cx));
    match config {
        Some(config) if cx.report.problems.is_empty() => Ok((config, cx.report.warnings)),
        _ => Err(cx.report.sorted()),
    }
}

/// systemd gives several state directories as a list with colons.
fn first(list: &OsStr) -> &OsStr {
    use std::os::unix::ffi::OsStrExt;
    OsStr::from_bytes(list.as_bytes().split(|&b| b == b':').next().unwrap_or_default())
}

/// The content of a file, of which one byte over the limit is enough to refuse it.
fn read_limited(file: &Path) -> io::Result<Vec<u8>> {
    let limit = u64::try_from(parse::MAX_SIZE).unwrap_or(u64::MAX).saturating_add(1);
    let mut bytes = Vec::new();
    std::fs::File::open(file)?.take(limit).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// A template is a file: what comes through a pipe would be gone for the next destination.
fn read_template(file: &Path) -> io::Result<Vec<u8>> {
    if std::fs::metadata(file)?.is_file() { read_limited(file) } else { Err(io::Error::other("not a regular file")) }
}

fn unreadable(file: &Path, error: &io::Error) -> Error {
    let place = crate::path::escape(file.as_os_str().as_encoded_bytes());
    if error.kind() == io::ErrorKind::NotFound {
        let hint = "name it with --config or in DISTRIBUTOR_CONFIG";
        return Error::new(Code::ConfigNotFound, format!("{place}: no such configuration file")).hint(hint);
    }
    // Its code says what failed, but a program that can't read its configuration does not start.
    let error = Error::io(place, error);
    Error { code: Code::InvalidConfig, ..error }
}

fn invalid(file: &Path, problems: &[Problem]) -> Error {
    let file = file.display();
    let message = match problems {
        [only] => format!("{file}:{only}"),
        all => format!("{file}: {} problems", all.len()),
    };
    let detail = problems.iter().map(|problem| {
        let place = Some(problem.place.clone()).filter(|place| !place.is_empty());
        Detail::new(Code::InvalidConfig, problem.to_string(), place)
    });
    Error::new(Code::InvalidConfig, message).detail(detail.collect())
}
