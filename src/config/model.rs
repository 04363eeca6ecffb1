//! The typed configuration: what a file says once every check has passed.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use super::choice::{
    Backend, OnConflict, OnNewer, OnOlder, OutputPolicy, PathMapping, RawHtml, Reconciliation, StateMode, TakeoverMode,
};
use super::pattern::Pattern;
use super::place::{Place, S3Place, SshPlace};
use crate::entry::Modes;

/// A checked configuration file.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// The file it was read from.
    pub file: PathBuf,
    /// The secrets directory, where the file names one.
    pub secrets_directory: Option<PathBuf>,
    /// Settings of distributor-serve.
    pub server: Http,
    /// Who may upload.
    pub upload_tokens: Vec<UploadToken>,
    /// Where remote bundles are staged; `None` for a private directory under `/var/tmp`.
    pub staging_directory: Option<PathBuf>,
    /// The pipelines, in the order of the file.
    pub pipelines: Vec<Pipeline>,
}

/// `server.http`.
#[derive(Clone, Debug, PartialEq)]
pub struct Http {
    /// The address to listen on.
    pub listen: SocketAddr,
    /// Where uploads are staged; `None` for a private directory under `/var/tmp`.
    pub staging_directory: Option<PathBuf>,
    /// What staged bundles may take together, in bytes.
    pub max_staging_size: u64,
    /// Whether `GET /metrics` answers.
    pub metrics: bool,
    /// How many accepted uploads may wait.
    pub queue_size: usize,
    /// How many publications run at the same time.
    pub max_concurrency: usize,
    /// How long a finished run's record and staged bundle are kept.
    pub retention: Duration,
}

/// One of `upload_tokens`.
#[derive(Clone, Debug, PartialEq)]
pub struct UploadToken {
    /// Its id.
    pub id: String,
    /// The name of the variable that holds the token.
    pub token_env: String,
    /// The ids of the pipelines it may upload to.
    pub pipelines: Vec<String>,
}

/// One of `pipelines`.
#[derive(Clone, Debug, PartialEq)]
pub struct Pipeline {
    /// Its id.
    pub id: String,
    /// Where its bundles come from.
    pub source: Source,
    /// Where they go; at least one.
    pub destinations: Vec<Destination>,
}

/// Where bundles come from.
#[derive(Clone, Debug, PartialEq)]
pub enum Source {
    /// A directory of this machine.
    Local(LocalSource),
    /// A directory of an SSH server.
    Ssh(SshPlace),
    /// A prefix of an S3 bucket.
    S3(S3Place),
    /// Uploads.
    HttpUpload(HttpUpload),
}

impl Source {
    /// Whether its bundles are fetched before they are read.
    pub fn is_remote(&self) -> bool {
        matches!(self, Source::Ssh(_) | Source::S3(_))
    }
}

/// A local source.
#[derive(Clone, Debug, PartialEq)]
pub struct LocalSource {
    /// The source root, absolute.
    pub path: PathBuf,
}

/// An upload source.
#[derive(Clone, Debug, PartialEq)]
pub struct HttpUpload {
    /// Bounds the archive and what it unpacks to, in bytes.
    pub max_upload_size: u64,
    /// Bounds the number of files.
    pub max_files: u64,
}

impl Source {
    /// Its kind of storage.
    pub fn backend(&self) -> Backend {
        match self {
            Source::Local(_) => Backend::Local,
            Source::Ssh(_) => Backend::Ssh,
            Source::S3(_) => Backend::S3,
            Source::HttpUpload(_) => Backend::HttpUpload,
        }
    }
}

/// One of a pipeline's `destinations`.
#[derive(Clone, Debug, PartialEq)]
pub struct Destination {
    /// Its id.
    pub id: String,
    /// Where bundles go.
    pub target: Target,
    /// Where below it.
    pub path_mapping: PathMapping,
    /// Which files it gets.
    pub outputs: Outputs,
    /// What is made of source files.
    pub transforms: Vec<Transform>,
    /// How outputs are addressed.
    pub links: Links,
    /// What decides whether a bundle is published.
    pub transfer: Transfer,
    /// What becomes of outputs that are no longer there.
    pub reconciliation: Reconciliation,
    /// Who may publish here.
    pub state_mode: StateMode,
    /// Whose publications it may take over.
    pub takeover: TakeoverMode,
    /// What pruning does.
    pub retention: Retention,
}

/// Where bundles go.
#[derive(Clone, Debug, PartialEq)]
pub enum Target {
    /// A directory of this machine.
    Local(LocalTarget),
    /// A directory of an SSH server.
    Ssh(SshTarget),
    /// A prefix of an S3 bucket.
    S3(S3Place),
}

/// A local destination.
#[derive(Clone, Debug, PartialEq)]
pub struct LocalTarget {
    /// The destination root, absolute.
    pub path: PathBuf,
    /// What its files and directories get.
    pub modes: Modes,
}

/// A destination on an SSH server.
#[derive(Clone, Debug, PartialEq)]
pub struct SshTarget {
    /// The server and the root.
    pub place: SshPlace,
    /// What its files and directories get.
    pub modes: Modes,
}

impl Target {
    /// Its kind of storage.
    pub fn backend(&self) -> Backend {
        match self {
            Target::Local(_) => Backend::Local,
            Target::Ssh(_) => Backend::Ssh,
            Target::S3(_) => Backend::S3,
        }
    }
}

/// `outputs`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outputs {
    /// Which files of a bundle are published.
    pub policy: OutputPolicy,
}

/// One of `transforms`.
#[derive(Clone, Debug, PartialEq)]
pub enum Transform {
    /// HTML from Markdown.
    MarkdownToHtml(MarkdownToHtml),
}

impl Transform {
    /// Its `type`.
    pub fn as_str(&self) -> &'static str {
        match self {
            Transform::MarkdownToHtml(_) => "markdown_to_html",
        }
    }
}

/// Settings of `markdown_to_html`.
#[derive(Clone, Debug, PartialEq)]
pub struct MarkdownToHtml {
    /// The files it takes.
    pub patterns: Vec<Pattern>,
    /// What becomes of raw HTML.
    pub raw_html: RawHtml,
    /// The page around the content, where it is not the built-in one.
    pub template: Option<Template>,
}

/// A page template, read with the configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct Template {
    /// The file, absolute.
    pub path: PathBuf,
    /// Its text, in which every placeholder is a known one.
    pub text: String,
}

/// `links`.
#[derive(Clone, Debug, PartialEq)]
pub struct Links {
    /// The URL of the destination root, with a `/` at the end.
    pub base_url: Option<String>,
    /// Which output is the primary one, in order of preference.
    pub primary: Vec<Pattern>,
}

/// `transfer`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Transfer {
    /// The destination holds an older bundle.
    pub on_destination_older: OnOlder,
    /// It holds a newer one.
    pub on_destination_newer: OnNewer,
    /// Something is in the way.
    pub on_conflict: OnConflict,
}

/// `retention`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Retention {
    /// `retention.prune`.
    pub prune: Prune,
}

/// What distributor-prune deletes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Prune {
    /// Whether it deletes at all.
    pub enabled: bool,
    /// Outputs older than this go.
    pub older_than: Option<Duration>,
    /// The newest ones that stay in any case.
    pub keep_latest: Option<u64>,
}

impl Config {
    /// The pipeline with this id.
    pub fn pipeline(&self, id: &str) -> Option<&Pipeline> {
        self.pipelines.iter().find(|pipeline| pipeline.id == id)
    }

    /// The names of the variables that these pipelines need, sorted, each once.
    pub fn variables(&self, pipelines: &[&str]) -> Vec<String> {
        let mut names: Vec<String> =
            self.selected(pipelines).flat_map(Pipeline::variables).map(str::to_owned).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// The places on S3 that these pipelines read from or publish to.
    pub fn s3_places(&self, pipelines: &[&str]) -> Vec<&S3Place> {
        self.selected(pipelines).flat_map(Pipeline::s3_places).collect()
    }

    fn selected(&self, pipelines: &[&str]) -> impl Iterator<Item = &Pipeline> {
        self.pipelines.iter().filter(|pipeline| pipelines.contains(&pipeline.id.as_str()))
    }
}

impl Pipeline {
    fn s3_places(&self) -> impl Iterator<Item = &S3Place> {
        let source = if let Source::S3(place) = &self.source { Some(place) } else { None };
        let targets = self.destinations.iter().filter_map(|destination| match &destination.target {
            Target::S3(place) => Some(place),
            Target::Local(_) | Target::Ssh(_) => None,
        });
        source.into_iter().chain(targets)
    }

    fn variables(&self) -> impl Iterator<Item = &str> {
        let source: Option<&dyn Place> = match &self.source {
            Source::Ssh(place) => Some(place),
            Source::S3(place) => Some(place),
            Source::Local(_) | Source::HttpUpload(_) => None,
        };
        let targets = self.destinations.iter().filter_map(|destination| match &destination.target {
            Target::Local(_) => None,
            Target::Ssh(target) => Some(&target.place as &dyn Place),
            Target::S3(place) => Some(place as &dyn Place),
        });
        source.into_iter().chain(targets).flat_map(Place::variables)
    }
}
