//! Walking directories.

use std::io;

use rustix::fs::FileType;

use super::dir::{Dir, Name};
use crate::error::{Error, Result};
use crate::names::{LOCK, STATE, is_own};
use crate::path::{MAX_PATH, RESERVED, RelPath, escape};
use crate::storage::{Entry, Kind, MAX_DEPTH, Met, Scope};

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
    if is_marked(root, marker)? {
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

/// A marker of an odd kind marks as well, so that reading it tells; a link is not followed and tells nothing.
fn is_marked(dir: &Dir, marker: &str) -> io::Result<bool> {
    Ok(!matches!(dir.kind(marker)?, None | Some(FileType::Symlink)))
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
    if !at.path.is_empty() && is_marked(dir, marker)? {
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
    scope: Scope,
    visit: &mut dyn FnMut(Entry) -> Result<()>,
    fail: &dyn Fn(&str, &io::Error) -> Error,
) -> Result<()> {
    let mount = root.mount().map_err(|error| fail("", &error))?;
    let mut pending = vec![Vec::new()];
    while let Some(path) = pending.pop() {
        let fail = |error: io::Error| fail(&escape(&path), &error);
        let opened = open(root, &path).map_err(fail)?;
        let dir = opened.as_ref().unwrap_or(root);
        for name in dir.names().map_err(fail)? {
            let Name { bytes, kind } = name.map_err(fail)?;
            if scope == Scope::Destination && path.is_empty() && is_own(&bytes) {
                continue;
            }
            let raw = join(&path, &bytes);
            let kind = match kind {
                FileType::RegularFile => Kind::File,
                FileType::Symlink => Kind::Link,
                FileType::Directory if raw.len() > MAX_PATH => Kind::Closed,
                FileType::Directory => directory(dir, &bytes, scope, mount).map_err(fail)?,
                _ => Kind::Special,
            };
            if kind == Kind::Directory {
                pending.push(raw.clone());
            }
            visit(Entry { path: RelPath::from_bytes(&raw).ok(), raw: raw.into(), kind })?;
        }
    }
    Ok(())
}

fn directory(above: &Dir, name: &[u8], scope: Scope, mount: u64) -> io::Result<Kind> {
    let Ok(dir) = above.open_named(name) else {
        // The walk itself will say what is wrong when it gets there.
        return Ok(Kind::Directory);
    };
    Ok(match scope {
        // A lock is that of a first publication, which has no state yet.
        Scope::Destination if dir.kind(STATE)?.is_some() || dir.kind(LOCK)?.is_some() => Kind::Managed,
        // No rename leads there, and it is not this place's to begin with.
        Scope::Destination if dir.mount()? != mount => Kind::Closed,
        _ => Kind::Directory,
    })
}
