//! What lies at a destination, seen against what is recorded there.

use std::collections::BTreeSet;

use crate::entry::{Entry, Kind};
use crate::path::{self, RelPath};
use crate::state::State;

/// How many unmanaged entries a message names.
const NAMED: usize = 10;

/// The sum of a listing: memory is bounded by what is recorded, and by the number of directories.
#[derive(Debug)]
pub struct Survey<'a> {
    place: String,
    recorded: BTreeSet<&'a RelPath>,
    /// Recorded outputs that are there.
    pub(super) present: BTreeSet<RelPath>,
    /// Directories, as they are.
    pub(super) directories: BTreeSet<String>,
    /// Directories whose names are no text.
    odd: Vec<Vec<u8>>,
    /// Directories that are managed by themselves, as they are.
    pub(super) managed: Vec<String>,
    unmanaged: usize,
    first: BTreeSet<String>,
}

impl<'a> Survey<'a> {
    /// A survey of the destination `place` with this state, before anything was seen. Paths `in_progress` are ours as well.
    pub fn new(
        place: String,
        state: Option<&'a State>,
        in_progress: impl IntoIterator<Item = &'a RelPath>,
    ) -> Survey<'a> {
        let recorded = state.into_iter().flat_map(|state| state.outputs.iter().map(|output| &output.path));
        let recorded = recorded.chain(in_progress).collect();
        Survey {
            place,
            recorded,
            present: BTreeSet::new(),
            directories: BTreeSet::new(),
            odd: Vec::new(),
            managed: Vec::new(),
            unmanaged: 0,
            first: BTreeSet::new(),
        }
    }

    /// Takes an entry of the listing.
    pub fn see(&mut self, entry: Entry) {
        match (entry.kind, entry.path) {
            // Empty directories are not content; what lies in this one is counted by itself. Where an output will be it is
            // removed, whatever its name, as long as that is text.
            (Kind::Directory, _) => match String::from_utf8(entry.raw) {
                Ok(path) => drop(self.directories.insert(path)),
                Err(odd) => self.odd.push(odd.into_bytes()),
            },
            (Kind::Managed, _) => self.managed.push(path::escape(&entry.raw)),
            (Kind::File, Some(path)) if self.recorded.contains(&path) => {
                self.present.insert(path);
            }
            _ => {
                self.unmanaged += 1;
                self.first.insert(path::escape(&entry.raw));
                if self.first.len() > NAMED {
                    self.first.pop_last();
                }
            }
        }
    }

    /// A directory whose name is no text, and which lies below one of `paths`: where that is to be a file, it is in the
    /// way.
    pub(super) fn odd_below(&self, paths: &BTreeSet<RelPath>) -> Option<String> {
        let below = |raw: &&Vec<u8>| {
            let slashes = raw.iter().enumerate().filter(|(_, byte)| **byte == b'/');
            let mut above = slashes.filter_map(|(at, _)| std::str::from_utf8(&raw[..at]).ok());
            above.any(|dir| paths.contains(dir))
        };
        self.odd.iter().find(below).map(|raw| path::escape(raw))
    }

    /// The destination, for messages.
    pub(super) fn place(&self) -> &str {
        &self.place
    }

    /// How many unmanaged entries were seen, and the first ten of them.
    pub fn unmanaged(&self) -> (usize, impl Iterator<Item = &str>) {
        (self.unmanaged, self.first.iter().map(String::as_str))
    }
}
