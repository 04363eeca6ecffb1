//! What is said of an entry of a place: what it is in a listing, and which permissions it gets.

use crate::path::{RawPath, RelPath};

/// What an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A regular file or object.
    File,
    /// A directory, listed before what it holds.
    Directory,
    /// A directory with a state file of its own: managed below, not looked into.
    Managed,
    /// An empty object whose name ends in `/`, as tools make it to show a directory: never content.
    Marker,
    /// A symbolic link, never followed.
    Link,
    /// A FIFO, socket or device.
    Special,
    /// A directory on another file system, or deeper than any path may be: not looked into, and not this place's.
    Closed,
}

/// An entry of a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its path below the place, as the storage has it.
    pub raw: RawPath,
    /// The same as a checked path, where it keeps the path rules.
    pub path: Option<RelPath>,
    /// What it is.
    pub kind: Kind,
}

/// The permission bits of what is published, whatever the umask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Modes {
    /// Of files.
    pub file: u32,
    /// Of directories.
    pub directory: u32,
}

impl Default for Modes {
    fn default() -> Modes {
        Modes { file: 0o644, directory: 0o755 }
    }
}
