//! Directories, opened once.

use std::collections::BTreeMap;
use std::io;

use super::dir::Dir;

/// The directories that hold a series of paths, each opened once.
pub(super) struct Parents<'a> {
    root: &'a Dir,
    open: BTreeMap<Vec<u8>, Dir>,
}

impl<'a> Parents<'a> {
    pub(super) fn new(root: &'a Dir) -> Parents<'a> {
        Parents { root, open: BTreeMap::new() }
    }

    pub(super) fn of(&mut self, parent: &[u8]) -> io::Result<&Dir> {
        if parent.is_empty() {
            return Ok(self.root);
        }
        // Few enough at a time for any limit on open files; paths come mostly in order.
        if self.open.len() >= 64 && !self.open.contains_key(parent) {
            self.open.clear();
        }
        if !self.open.contains_key(parent) {
            self.open.insert(parent.to_vec(), self.root.open_dir(parent)?);
        }
        self.open.get(parent).ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}
