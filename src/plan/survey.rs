//! What lies at a destination, seen against what is recorded there.

use std::collections::{BTreeMap, BTreeSet};

use crate::entry::{Entry, Kind};
use crate::path::{self, RawPath, RelPath};
use crate::state::State;

/// How many unmanaged entries a message names.
const NAMED: usize = 10;

/// Entries of which a message names the first ones.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) count: usize,
    pub(super) first: BTreeSet<String>,
}

impl Found {
    fn add(&mut self, path: &RawPath) {
        self.count += 1;
        self.first.insert(path.to_string());
        if self.first.len() > NAMED {
            self.first.pop_last();
        }
    }
}

/// What a survey looks for.
#[derive(Clone, Copy)]
pub struct Sight<'a> {
    /// The state of the destination.
    pub state: Option<&'a State>,
    /// Paths that are ours as well: those of a publication that is under way.
    pub in_progress: &'a [RelPath],
    /// The paths that are to be written.
    pub planned: &'a BTreeSet<RelPath>,
    /// Whether every entry is kept that nobody recorded, for a forced replacement to remove.
    pub keep: bool,
}

/// The sum of a listing: memory is bounded by what is recorded and planned and by the number of directories, except
/// where all is kept.
#[derive(Debug)]
pub struct Survey<'a> {
    place: String,
    recorded: BTreeSet<&'a RelPath>,
    planned: &'a BTreeSet<RelPath>,
    needed: BTreeSet<&'a str>,
    keep: bool,
    /// Recorded outputs that are there.
    pub(super) present: BTreeSet<RelPath>,
    pub(super) directories: BTreeSet<RawPath>,
    /// Directories that are managed by themselves, as they are.
    pub(super) managed: BTreeSet<String>,
    /// What nobody recorded.
    pub(super) unmanaged: Found,
    /// What of it stands where an output is to be, above it or below it.
    pub(super) blocking: Found,
    /// Directories that were not looked into, and that no rename leads into.
    pub(super) closed: BTreeSet<RawPath>,
    /// Where all is kept: what nobody recorded, and the checked paths of the regular files of it.
    pub(super) kept: BTreeMap<RawPath, Option<RelPath>>,
}

impl<'a> Survey<'a> {
    /// A survey of the destination `place`, before anything was seen.
    pub fn new(place: String, sight: Sight<'a>) -> Survey<'a> {
        let recorded = sight.state.into_iter().flat_map(|state| state.outputs.iter().map(|output| &output.path));
        Survey {
            place,
            recorded: recorded.chain(sight.in_progress).collect(),
            planned: sight.planned,
            needed: sight.planned.iter().flat_map(RelPath::ancestors).collect(),
            keep: sight.keep,
            present: BTreeSet::new(),
            directories: BTreeSet::new(),
            managed: BTreeSet::new(),
            unmanaged: Found::default(),
            blocking: Found::default(),
            closed: BTreeSet::new(),
            kept: BTreeMap::new(),
        }
    }

    /// Takes an entry of the listing.
    pub fn see(&mut self, entry: Entry) {
        match (entry.kind, entry.path) {
            // Empty directories are not content; what lies in this one is counted by itself. Where an output will be it is
            // removed, whatever its name.
            (Kind::Directory, _) => drop(self.directories.insert(entry.raw)),
            // A forced replacement takes it away; else it is not even seen.
            (Kind::Marker, _) if self.keep => drop(self.kept.insert(entry.raw, None)),
            (Kind::Marker, _) => {}
            (Kind::Managed, _) => drop(self.managed.insert(entry.raw.to_string())),
            (Kind::File, Some(path)) if self.recorded.contains(&path) => drop(self.present.insert(path)),
            (kind, path) => self.see_unmanaged(kind, path, entry.raw),
        }
    }

    fn see_unmanaged(&mut self, kind: Kind, path: Option<RelPath>, raw: RawPath) {
        self.unmanaged.add(&raw);
        if self.is_needed(&raw) || within(&raw, self.planned) {
            self.blocking.add(&raw);
        }
        if kind == Kind::Closed {
            self.closed.insert(raw.clone());
        }
        if self.keep {
            self.kept.insert(raw, path.filter(|_| kind == Kind::File));
        }
    }

    /// Whether this is a directory of a planned path.
    pub(super) fn is_needed(&self, path: &RawPath) -> bool {
        std::str::from_utf8(path.as_bytes()).is_ok_and(|path| self.needed.contains(path))
    }

    /// Whether a recorded output is there.
    pub fn is_present(&self, path: &RelPath) -> bool {
        self.present.contains(path)
    }

    /// Whether it can't be said if an output is there: it lies in a directory that was not looked into.
    pub fn is_unseen(&self, path: &RelPath) -> bool {
        !self.closed.is_empty() && path.ancestors().any(|dir| self.closed.contains(&RawPath::from(dir)))
    }

    /// Whether this is a directory, and no link to one.
    pub fn is_directory(&self, path: &str) -> bool {
        self.directories.contains(&RawPath::from(path))
    }

    /// What nobody recorded, in byte order. Kept only where all was to be kept.
    pub fn unmanaged_paths(self) -> Vec<RawPath> {
        self.kept.into_keys().collect()
    }

    /// The paths that are to be written.
    pub(super) fn planned(&self) -> &'a BTreeSet<RelPath> {
        self.planned
    }

    /// The destination, for messages.
    pub(super) fn place(&self) -> &str {
        &self.place
    }

    /// The directory with a state of its own that holds `path`, or is it.
    pub(super) fn managed_above(&self, path: &str) -> Option<&str> {
        let mut all = std::iter::once(path).chain(path::ancestors(path));
        all.find_map(|dir| self.managed.get(dir).map(String::as_str))
    }
}

/// Whether `path` is, or lies below, one of `paths`.
pub(super) fn within(path: &RawPath, paths: &BTreeSet<RelPath>) -> bool {
    let mut all = std::iter::once(path.as_bytes()).chain(path.ancestors());
    all.any(|path| std::str::from_utf8(path).is_ok_and(|path| paths.contains(path)))
}
