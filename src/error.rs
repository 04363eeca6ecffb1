//! The one error type: a stable code, what happened, and where there is one, the cure.

use std::fmt;
use std::io;

use crate::path;

/// Declares the codes once: the variant, its stable name, and whether it stops a program from starting.
macro_rules! codes {
    ($($(#[doc = $doc:literal])+ $variant:ident = $name:literal, $kind:ident;)+) => {
        /// A stable code. Scripts match on it, so none ever changes its meaning.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Code { $($(#[doc = $doc])+ $variant,)+ }

        impl Code {
            /// Every code, in the order of distributor(7).
            pub const ALL: &'static [Code] = &[$(Code::$variant,)+];

            /// The name that stands in reports and messages.
            pub const fn as_str(self) -> &'static str {
                match self { $(Code::$variant => $name,)+ }
            }

            /// What a program does about it.
            pub const fn kind(self) -> Kind {
                match self { $(Code::$variant => Kind::$kind,)+ }
            }
        }
    };
}

/// What a code means for the program that meets it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The program does not start (exit status 2).
    Setup,
    /// Something failed while it ran (exit status 1).
    Failure,
    /// It is said, and changes no exit status.
    Warning,
}

codes! {
    /// The command line is wrong.
    Usage = "usage", Setup;
    /// There is no configuration file.
    ConfigNotFound = "config_not_found", Setup;
    /// The configuration breaks a rule.
    InvalidConfig = "invalid_config", Setup;
    /// No pipeline has this id.
    UnknownPipeline = "unknown_pipeline", Setup;
    /// No destination has this id.
    UnknownDestination = "unknown_destination", Setup;
    /// A variable that the selected pipelines need has no value.
    MissingSecret = "missing_secret", Setup;
    /// The secrets directory can't be used.
    InvalidSecretsDirectory = "invalid_secrets_directory", Setup;
    /// Pruning is not enabled for this destination.
    PruneDisabled = "prune_disabled", Setup;

    /// The manifest breaks a rule of the format.
    InvalidManifest = "invalid_manifest", Failure;
    /// The bundle is not complete and valid.
    InvalidBundle = "invalid_bundle", Failure;
    /// A listed file is not there.
    MissingFile = "missing_file", Failure;
    /// A file has another size than the manifest says.
    SizeMismatch = "size_mismatch", Failure;
    /// A file has another SHA-256 than the manifest says.
    DigestMismatch = "digest_mismatch", Failure;
    /// The manifest's `digest` is not that of its files.
    ContentDigestMismatch = "content_digest_mismatch", Failure;
    /// A listed file is a link, a directory or a special file.
    NotARegularFile = "not_a_regular_file", Failure;
    /// A file is there already and is not replaced without being told to.
    AlreadyExists = "already_exists", Failure;
    /// The bundle changed while it was read.
    SourceChanged = "source_changed", Failure;
    /// A page can't be made of a Markdown file.
    InvalidMarkdown = "invalid_markdown", Failure;

    /// Content lies at the destination that nobody recorded.
    UnmanagedContent = "unmanaged_content", Failure;
    /// Content that nobody recorded lies where an output is to be.
    UnmanagedPath = "unmanaged_path", Failure;
    /// The destination's state file can't be read as one.
    InvalidState = "invalid_state", Failure;
    /// The destination's state is of the other mode.
    StateModeMismatch = "state_mode_mismatch", Failure;
    /// The destination belongs to another pipeline or destination id.
    IdentityMismatch = "identity_mismatch", Failure;
    /// The destination holds another source id.
    SourceMismatch = "source_mismatch", Failure;
    /// Two different manifests have the same `created`.
    SourceConflict = "source_conflict", Failure;
    /// The destination is older, and the policy says to fail.
    DestinationOlder = "destination_older", Failure;
    /// The destination is newer, and the policy says to fail.
    DestinationNewer = "destination_newer", Failure;
    /// A planned path belongs to another owner.
    PathOwnedByOther = "path_owned_by_other", Failure;
    /// Two outputs claim one path.
    OutputCollision = "output_collision", Failure;
    /// A destination with its own state lies below one that is to be replaced by force.
    ManagedBelow = "managed_below", Failure;
    /// This version does not carry out what the configuration asks for.
    Unsupported = "unsupported", Failure;

    /// There is no state: nothing is managed here.
    NoState = "no_state", Failure;
    /// The owner has no record in the shared root.
    OwnerNotFound = "owner_not_found", Failure;
    /// An output could not be deleted; its record stays.
    DeleteFailed = "delete_failed", Failure;

    /// A publication could not be finished after its commit point; the next run finishes it.
    CommitIncomplete = "commit_incomplete", Failure;
    /// The lock was lost while it was needed.
    LockLost = "lock_lost", Failure;
    /// Another command holds the destination.
    Locked = "locked", Failure;
    /// A file changed between looking and writing.
    PreconditionFailed = "precondition_failed", Failure;

    /// It is not there.
    NotFound = "not_found", Failure;
    /// Something else stands where a directory should be.
    NotADirectory = "not_a_directory", Failure;
    /// The operating system or server refused access.
    PermissionDenied = "permission_denied", Failure;
    /// The file system is full, or a quota is used up.
    NoSpace = "no_space", Failure;
    /// The file system is read-only.
    ReadOnly = "read_only", Failure;
    /// A name or path is longer than the storage allows.
    PathTooLong = "path_too_long", Failure;
    /// The server can't be reached.
    Unreachable = "unreachable", Failure;
    /// The server did not answer in time.
    Timeout = "timeout", Failure;
    /// The server does not accept the credentials, or there are none.
    AuthFailed = "auth_failed", Failure;
    /// The storage failed in another way.
    StorageError = "storage_error", Failure;
    /// A signal ended the work.
    Interrupted = "interrupted", Failure;

    /// The source holds no bundle.
    NoBundles = "no_bundles", Warning;
    /// A file lies in the bundle that the manifest does not list.
    UnlistedFile = "unlisted_file", Warning;
    /// A symbolic link was passed over.
    LinkSkipped = "link_skipped", Warning;
    /// A source directory lies too deep to be looked into.
    TooDeep = "too_deep", Warning;
    /// Two paths are one name on some file systems.
    PathCollision = "path_collision", Warning;
    /// `created` lies more than a day ahead of the clock.
    CreatedInFuture = "created_in_future", Warning;
    /// What is published would be made otherwise today.
    OutputsDiffer = "outputs_differ", Warning;
    /// Which bundle a fixed destination would publish.
    FixedSelection = "fixed_selection", Warning;
    /// A fixed destination's root would be replaced.
    FixedReplace = "fixed_replace", Warning;
    /// A secret file was passed over in favour of the environment.
    SecretIgnored = "secret_ignored", Warning;
    /// A publication that was cut short has been finished.
    RecoveredPublication = "recovered_publication", Warning;
    /// A dry run met a publication that is going on.
    PublicationInProgress = "publication_in_progress", Warning;
    /// A dry run met a publication that was cut short, which the next run will finish.
    RecoveryPending = "recovery_pending", Warning;
    /// What a command left at a place for its own use could not be removed.
    CleanUpFailed = "clean_up_failed", Warning;
    /// Pruning by age alone can empty a destination.
    PruneMayEmpty = "prune_may_empty", Warning;
    /// A template has no place for the content.
    TemplateWithoutContent = "template_without_content", Warning;
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One of several things that are wrong at once: which, what, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Detail {
    /// Its own code.
    pub code: Code,
    /// What is wrong, in one line.
    pub message: String,
    /// The file, key or path it concerns.
    pub path: Option<String>,
}

impl Detail {
    /// A finding that concerns `path`.
    pub fn new(code: Code, message: impl Into<String>, path: Option<String>) -> Detail {
        Detail { code, message: path::plain(&message.into()), path }
    }
}

/// What went wrong, with a stable code, and the cure where there is one.
#[derive(Clone, Debug)]
pub struct Error {
    /// The stable code.
    pub code: Code,
    /// What happened and where, lower case, one line.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
    /// The single findings, where there are several.
    pub detail: Vec<Detail>,
}

/// Something an operator should know that fails nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// Its code, of kind [`Kind::Warning`].
    pub code: Code,
    /// What is to be known, in one line.
    pub message: String,
    /// The pipeline it concerns.
    pub pipeline_id: Option<String>,
    /// The destination it concerns.
    pub destination_id: Option<String>,
    /// The bundle it concerns.
    pub bundle_path: Option<String>,
}

impl Warning {
    /// A warning that concerns nothing in particular.
    pub fn new(code: Code, message: impl Into<String>) -> Warning {
        Warning {
            code,
            message: path::plain(&message.into()),
            pipeline_id: None,
            destination_id: None,
            bundle_path: None,
        }
    }

    /// Says which pipeline it concerns.
    #[must_use]
    pub fn pipeline(mut self, id: &str) -> Warning {
        self.pipeline_id = Some(id.to_owned());
        self
    }

    /// Says which destination it concerns.
    #[must_use]
    pub fn destination(mut self, id: &str) -> Warning {
        self.destination_id = Some(id.to_owned());
        self
    }

    /// Says which bundle it concerns.
    #[must_use]
    pub fn bundle(mut self, path: impl fmt::Display) -> Warning {
        self.bundle_path = Some(path.to_string());
        self
    }
}

/// `Result` with this crate's error.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// An error without a cure.
    pub fn new(code: Code, message: impl Into<String>) -> Error {
        Error { code, message: path::plain(&message.into()), hint: None, detail: Vec::new() }
    }

    /// The error that these findings make together: the first of them, and how many more there are.
    pub fn of(code: Code, detail: Vec<Detail>) -> Error {
        let first = detail.first().map_or("", |first| first.message.as_str());
        let more = if detail.len() > 1 { format!(" (and {} more)", detail.len() - 1) } else { String::new() };
        Error::new(code, format!("{first}{more}")).detail(detail)
    }

    /// Adds the cure.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Error {
        self.hint = Some(path::plain(&hint.into()));
        self
    }

    /// Whether a place could not be reached: whatever else is asked of it would be waited for in vain.
    pub fn is_out_of_reach(&self) -> bool {
        let is_far = |code| matches!(code, Code::Unreachable | Code::Timeout | Code::AuthFailed);
        is_far(self.code) || self.detail.iter().any(|detail| is_far(detail.code))
    }

    /// Adds the single findings.
    #[must_use]
    pub fn detail(mut self, detail: Vec<Detail>) -> Error {
        self.detail = detail;
        self
    }

    /// A failed input or output call on `what`, a path or a place: the code follows from the system's error. An error of
    /// ours in it, as the body of a file on a server gives it, keeps its code and its cure.
    pub fn io(what: impl fmt::Display, error: &io::Error) -> Error {
        if let Some(own) = error.get_ref().and_then(|inner| inner.downcast_ref::<Error>()) {
            return Error { hint: own.hint.clone(), ..Error::new(own.code, format!("{what}: {}", own.message)) };
        }
        let (code, hint) = classify(error);
        let error = Error::new(code, format!("{what}: {}", words(error)));
        match hint {
            Some(hint) => error.hint(hint),
            None => error,
        }
    }
}

/// The system's own words without Rust's `(os error N)`, in lower case.
pub(crate) fn words(error: &io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    let mut chars = text.chars();
    match (chars.next(), chars.clone().next()) {
        (Some(first), Some(second)) if second.is_lowercase() || second == ' ' => {
            first.to_lowercase().chain(chars).collect()
        }
        _ => text.to_owned(),
    }
}

fn classify(error: &io::Error) -> (Code, Option<&'static str>) {
    use io::ErrorKind as K;
    match error.kind() {
        K::NotFound => (Code::NotFound, None),
        K::NotADirectory => (Code::NotADirectory, Some("put a directory there, or name another one")),
        K::PermissionDenied => {
            (Code::PermissionDenied, Some("check the owner and mode of it and of the directories above it"))
        }
        K::StorageFull | K::QuotaExceeded => (Code::NoSpace, Some("free some space, then run again")),
        K::ReadOnlyFilesystem => (Code::ReadOnly, Some("remount it writable, or choose another place")),
        K::InvalidFilename => (Code::PathTooLong, Some("shorten the name")),
        _ => (Code::StorageError, None),
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn system_errors_get_their_code_and_plain_words() {
        let full = Error::io("/srv/www", &io::Error::from_raw_os_error(28));
        assert_eq!(full.code, Code::NoSpace);
        assert_eq!(full.message, "/srv/www: no space left on device");
        assert!(full.hint.is_some());
        for (errno, code) in [
            (2, Code::NotFound),
            (13, Code::PermissionDenied),
            (30, Code::ReadOnly),
            (36, Code::PathTooLong),
            (122, Code::NoSpace),
            (5, Code::StorageError),
        ] {
            assert_eq!(Error::io("x", &io::Error::from_raw_os_error(errno)).code, code, "errno {errno}");
        }
    }

    #[test]
    fn an_error_of_ours_keeps_its_code_and_cure_on_its_way_through_a_reader() {
        let own = Error::new(Code::SourceChanged, "s3://b/x: it changed while it was read").hint("run again");
        let told = Error::io("x", &io::Error::other(own));
        assert_eq!((told.code, told.hint.as_deref()), (Code::SourceChanged, Some("run again")));
        assert_eq!(told.message, "x: s3://b/x: it changed while it was read");
    }

    #[test]
    fn codes_are_unique_and_snake_case() {
        let mut seen = std::collections::BTreeSet::new();
        for code in Code::ALL {
            assert!(seen.insert(code.as_str()), "{code} stands twice");
            assert!(code.as_str().bytes().all(|b| b.is_ascii_lowercase() || b == b'_'), "{code}");
        }
    }
}
