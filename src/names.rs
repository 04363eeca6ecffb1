//! The names of ours at a destination's bundle path; all of them are reserved.

/// The state file.
pub const STATE: &str = ".distributor.json";
/// The lock file, or what lock files begin with.
pub const LOCK: &str = ".distributor.lock";
/// What journals begin with.
pub const JOURNAL_PREFIX: &str = ".distributor.journal-";
/// What stage directories, and files on their way to a name of ours, begin with.
pub const STAGE_PREFIX: &str = ".distributor.stage-";

/// Whether `name`, at the root of a bundle path, is one of ours.
pub fn is_own(name: &[u8]) -> bool {
    name == STATE.as_bytes()
        || [LOCK, JOURNAL_PREFIX, STAGE_PREFIX].iter().any(|prefix| name.starts_with(prefix.as_bytes()))
}
