//! The flags: one row each.

/// One flag.
#[derive(Debug, PartialEq, Eq)]
pub struct Flag {
    /// Its long name, without dashes.
    pub long: &'static str,
    /// Its one-letter name.
    pub short: Option<char>,
    /// The name of its value, where it takes one.
    pub value: Option<&'static str>,
    /// Whether it may be given more than once.
    pub repeats: bool,
    /// What it does, for `--help`.
    pub help: &'static str,
}

const fn switch(long: &'static str, short: Option<char>, help: &'static str) -> Flag {
    Flag { long, short, value: None, repeats: false, help }
}

const fn value(long: &'static str, short: Option<char>, value: &'static str, help: &'static str) -> Flag {
    Flag { long, short, value: Some(value), repeats: false, help }
}

const fn list(long: &'static str, value: &'static str, help: &'static str) -> Flag {
    Flag { long, short: None, value: Some(value), repeats: true, help }
}

/// The configuration file.
pub const CONFIG: Flag = value(
    "config",
    Some('c'),
    "FILE",
    "read this configuration (default: $DISTRIBUTOR_CONFIG, else /etc/distributor/distributor.yml)",
);
/// Pipelines to run.
pub const PIPELINES: Flag = list("pipeline", "ID", "run this pipeline only; may be repeated");
/// The pipeline meant.
pub const PIPELINE: Flag = value("pipeline", None, "ID", "look at this pipeline's source");
/// The pipeline of the destination meant.
pub const OWNER_PIPELINE: Flag = value("pipeline", None, "ID", "the pipeline of the destination");
/// Destinations to publish to.
pub const DESTINATIONS: Flag =
    list("destination", "[PIPELINE/]ID", "publish to this destination only; may be repeated");
/// Look, write nothing.
pub const DRY_RUN: Flag = switch("dry-run", Some('n'), "show what would happen; write nothing");
/// Say by the exit status whether anything would change.
pub const DETAILED_EXITCODE: Flag =
    switch("detailed-exitcode", None, "with --dry-run: exit with 4 where something would change");
/// Replace what stands against it.
pub const FORCE: Flag = switch("force", None, "replace what is in the way, as far as the configuration allows");
/// Publish the same again.
pub const REPUBLISH: Flag = switch("republish", None, "publish again what is there already");
/// The destination meant.
pub const DESTINATION: Flag = value("destination", None, "ID", "look after this destination");
/// The bundle path meant.
pub const BUNDLE_PATH: Flag =
    value("bundle-path", None, "PATH", "the bundle path below the destination's root (default: the root itself)");
/// Not this owner alone.
pub const ALL_OWNERS: Flag = switch("all-owners", None, "in a shared root: look after the records of all owners");
/// Do it.
pub const APPLY: Flag = switch("apply", None, "delete what the policy lets go");
/// How long to wait.
pub const LOCK_TIMEOUT: Flag = value(
    "lock-timeout",
    None,
    "DURATION",
    "wait this long for another command at a destination (default: 5m, 0: don't)",
);
/// Warnings count as errors.
pub const STRICT: Flag = switch("strict", None, "a file that the manifest does not list is an error");
/// The bundle's id.
pub const ID: Flag = value("id", None, "ID", "the bundle's id (required)");
/// The bundle's `created`.
pub const CREATED: Flag = value("created", None, "TIME", "its RFC 3339 time of creation (default: now)");
/// Replace a manifest.
pub const FORCE_MANIFEST: Flag = switch("force", None, "replace the manifest that is there");
/// Text or JSON.
pub const FORMAT: Flag = value("format", None, "text|json", "how results are printed (default: text)");
/// Errors only.
pub const QUIET: Flag = switch("quiet", Some('q'), "print errors only");
/// More detail.
pub const VERBOSE: Flag = switch("verbose", Some('v'), "print more, and lists in full");
/// Progress.
pub const PROGRESS: Flag =
    value("progress", None, "auto|always|never", "show how far it has come (default: auto, on a terminal)");
/// Help.
pub const HELP: Flag = switch("help", Some('h'), "print this help");
/// The version.
pub const VERSION: Flag = switch("version", Some('V'), "print the version");

/// What every program takes.
pub const COMMON: &[&Flag] = &[&FORMAT, &QUIET, &VERBOSE, &PROGRESS, &HELP, &VERSION];
