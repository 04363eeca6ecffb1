//! Walking directories.

use std::io;

use rustix::fs::FileType;

use super::dir::{Dir, Name};
use crate::error::{Error, Result};
use crate::names::{STATE, is_own};
use crate::path::{RESERVED, RelPath, escape};
use crate::storage::{Entry, Kind, MAX_DEPTH, Met};

/// A directory still to be walked: its path as it is, and how deep it lies.
struct Pending {
    path: Vec<u8>,
    depth: usize,
}

fn join(above: &[u8], name: &[u8]) -> Vec<u8> {
    if above.is_empty() { name.to_vec() } else { [above, b"/", name].concat() }
}

/// Opens `path` below `root`, a segment at a time, so that no link is followed whatever the names are.
fn open(root: &Dir, path: &[u8]) -> io::Result<Option<Dir>> {
    let mut at: Option<Dir> = None;
    for segment in path.split(|b| *b == b'/').filter(|segment| !segment.is_empty()) {
        at = Some(at.as_ref().unwrap_or(root).open_named(segment)?);
    }
    Ok(at)
}

/// [`crate::storage::Storage::find`].
pub(super) fn find(root: &Dir, marker: &str, visit: &mut dyn FnMut(&[u8], Met)) -> io::Result<()> {
    if root.kind(marker)? == Some(FileType::RegularFile) {
        visit(b"", Met::Marked);
        return Ok(());
    }
    let mut pending = vec![Pending { path: Vec::new(), depth: 0 }];
    while let Some(dir) = pending.pop() {
        if let Err(error) = search(root, &dir, marker, visit, &mut pending) {
            if dir.path.is_empty() {
                return Err(error);
            }
            let shown = escape(&dir.path);
            visit(&dir.path, Met::Unreadable(Error::io(shown, &error)));
        }
    }
    Ok(())
}

fn search(
    root: &Dir,
    at: &Pending,
    marker: &str,
    visit: &mut dyn FnMut(&[u8], Met),
    pending: &mut Vec<Pending>,
) -> io::Result<()> {
    let opened = open(root, &at.path)?;
    let dir = opened.as_ref().unwrap_or(root);
    if !at.path.is_empty() && dir.kind(marker)? == Some(FileType::RegularFile) {
        visit(&at.path, Met::Marked);
        return Ok(());
    }
    for name in dir.names()? {
        let Name { bytes, kind } = name?;
        if bytes.starts_with(RESERVED.as_bytes()) {
            continue;
        }
        let path = join(&at.path, &bytes);
        match kind {
            FileType::Symlink => visit(&path, Met::Link),
            FileType::Directory if at.depth >= MAX_DEPTH => visit(&path, Met::TooDeep),
            FileType::Directory => pending.push(Pending { path, depth: at.depth + 1 }),
            _ => {}
        }
    }
    Ok(())
}

/// [`crate::storage::Storage::list`].
pub(super) fn list(
    root: &Dir,
    visit: &mut dyn FnMut(Entry) -> Result<()>,
    fail: &dyn Fn(&str, &io::Error) -> Error,
) -> Result<()> {
    let mut pending = vec![Vec::new()];
    while let Some(path) = pending.pop() {
        let fail = |error: io::Error| fail(&escape(&path), &error);
        let opened = open(root, &path).map_err(fail)?;
        let dir = opened.as_ref().unwrap_or(root);
        for name in dir.names().map_err(fail)? {
            let Name { bytes, kind } = name.map_err(fail)?;
            if path.is_empty() && is_own(&bytes) {
                continue;
            }
            let raw = join(&path, &bytes);
            let kind = match kind {
                FileType::RegularFile => Kind::File,
                FileType::Symlink => Kind::Link,
                FileType::Directory if is_managed(dir, &bytes).map_err(fail)? => Kind::Managed,
                FileType::Directory => Kind::Directory,
                _ => Kind::Special,
            };
            if kind == Kind::Directory {
                pending.push(raw.clone());
            }
            visit(Entry { path: RelPath::from_bytes(&raw).ok(), raw, kind })?;
        }
    }
    Ok(())
}

fn is_managed(dir: &Dir, name: &[u8]) -> io::Result<bool> {
    match dir.open_named(name) {
        Ok(below) => Ok(below.kind(STATE)?.is_some()),
        // The walk itself will say what is wrong when it gets there.
        Err(_) => Ok(false),
    }
}
