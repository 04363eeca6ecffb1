//! What a listing of a place says of one entry.

use crate::path::RelPath;

/// What an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A regular file or object.
    File,
    /// A directory, listed before what it holds.
    Directory,
    /// A directory with a state file of its own: managed below, not looked into.
    Managed,
    /// A symbolic link, never followed.
    Link,
    /// A FIFO, socket or device.
    Special,
}

/// An entry of a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its path below the place, as the storage has it.
    pub raw: Vec<u8>,
    /// The same as a checked path, where it keeps the path rules.
    pub path: Option<RelPath>,
    /// What it is.
    pub kind: Kind,
}
