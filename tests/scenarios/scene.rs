//! The directory that a script plays in, and what can be seen of it.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Component, Path, PathBuf};
use std::time::SystemTime;

use sha2::{Digest, Sha256};

/// What stands for the scene's directory in scripts and outputs.
pub(crate) const SCENE: &str = "$SCENE";

/// A fresh directory that goes when the script has ended.
pub(crate) struct Scene {
    _dir: tempfile::TempDir,
    root: PathBuf,
}

impl Scene {
    /// An empty scene.
    pub(crate) fn new() -> io::Result<Scene> {
        let dir = tempfile::tempdir()?;
        let root = dir.path().canonicalize()?;
        Ok(Scene { _dir: dir, root })
    }

    /// Its directory.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// `bytes` with `$SCENE` replaced by the directory.
    pub(crate) fn expand(&self, bytes: &[u8]) -> Vec<u8> {
        replace(bytes, SCENE.as_bytes(), self.root.as_os_str().as_bytes())
    }

    /// An output with the directory replaced by `$SCENE`.
    pub(crate) fn hide(&self, output: &[u8]) -> String {
        let hidden = replace(output, self.root.as_os_str().as_bytes(), SCENE.as_bytes());
        String::from_utf8_lossy(&hidden).into_owned()
    }

    /// Where a path of a script lies; never outside the scene.
    pub(crate) fn path(&self, word: &[u8]) -> Result<PathBuf, String> {
        let path = PathBuf::from(OsString::from_vec(word.to_vec()));
        let inside = path.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
        if !inside || word.is_empty() {
            return Err(format!("{} is not a path inside the scene", path.display()));
        }
        Ok(self.root.join(path))
    }
}

fn replace(bytes: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some(at) = rest.windows(from.len()).position(|window| window == from) {
        out.extend_from_slice(&rest[..at]);
        out.extend_from_slice(to);
        rest = &rest[at + from.len()..];
    }
    out.extend_from_slice(rest);
    out
}

/// Everything below a directory: kind, mode, inode, modification time and content, by path.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Snapshot(BTreeMap<PathBuf, Entry>);

#[derive(Debug, PartialEq, Eq)]
struct Entry {
    content: Content,
    mode: u32,
    inode: u64,
    modified: SystemTime,
}

#[derive(Debug, PartialEq, Eq)]
enum Content {
    File(Vec<u8>),
    Dir,
    Link(PathBuf),
    Other(&'static str),
}

impl Snapshot {
    /// Looks at everything below `root`, and at `root` itself.
    pub(crate) fn of(root: &Path) -> io::Result<Snapshot> {
        let mut entries = BTreeMap::new();
        look(root, &mut entries)?;
        let below = |path: &Path| path.strip_prefix(root).unwrap_or(path).to_owned();
        Ok(Snapshot(entries.into_iter().map(|(path, entry)| (below(&path), entry)).collect()))
    }

    /// What another look found to be different, one line each.
    pub(crate) fn differences(&self, later: &Snapshot) -> Vec<String> {
        let mut lines = Vec::new();
        let shown = |path: &Path| if path.as_os_str().is_empty() { ".".to_owned() } else { path.display().to_string() };
        for (path, before) in &self.0 {
            match later.0.get(path) {
                None => lines.push(format!("{}: gone", shown(path))),
                Some(after) if after != before => {
                    lines.push(format!("{}: {}", shown(path), before.difference(after)));
                }
                Some(_) => {}
            }
        }
        let new = later.0.keys().filter(|path| !self.0.contains_key(*path));
        lines.extend(new.map(|path| format!("{}: new", shown(path))));
        lines
    }

    /// What differs in names, kinds and bytes alone.
    pub(crate) fn content_differences(&self, other: &Snapshot) -> Vec<String> {
        let same = |path: &PathBuf, entry: &Entry| other.0.get(path).is_some_and(|e| e.content == entry.content);
        let mine = self.0.iter().filter(|(path, entry)| !same(path, entry)).map(|(path, _)| path);
        let theirs = other.0.keys().filter(|path| !self.0.contains_key(*path));
        mine.chain(theirs).map(|path| path.display().to_string()).collect()
    }

    /// Every file as its path, a link as `path -> target`, an empty directory as `path/`, anything else with its kind.
    pub(crate) fn tree(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for (path, entry) in &self.0 {
            let shown = distributor::path::escape(path.as_os_str().as_bytes());
            match &entry.content {
                _ if shown.is_empty() => {}
                Content::File(_) => lines.push(shown),
                Content::Link(target) => lines.push(format!("{shown} -> {}", target.display())),
                Content::Other(kind) => lines.push(format!("{shown} ({kind})")),
                Content::Dir if self.0.keys().any(|other| other.parent() == Some(path)) => {}
                Content::Dir => lines.push(format!("{shown}/")),
            }
        }
        lines.sort();
        lines
    }
}

impl Entry {
    fn difference(&self, after: &Entry) -> String {
        if self.content != after.content {
            "other content".to_owned()
        } else if self.mode != after.mode {
            format!("mode {:o} is now {:o}", self.mode, after.mode)
        } else if self.inode != after.inode {
            "replaced by an equal one".to_owned()
        } else {
            "another modification time".to_owned()
        }
    }
}

fn look(path: &Path, entries: &mut BTreeMap<PathBuf, Entry>) -> io::Result<()> {
    let metadata = fs::symlink_metadata(path)?;
    let content = content(path, &metadata)?;
    if content == Content::Dir {
        for child in fs::read_dir(path)? {
            look(&child?.path(), entries)?;
        }
    }
    let (mode, inode, modified) = (metadata.mode() & 0o7777, metadata.ino(), metadata.modified()?);
    entries.insert(path.to_owned(), Entry { content, mode, inode, modified });
    Ok(())
}

fn content(path: &Path, metadata: &Metadata) -> io::Result<Content> {
    let kind = metadata.file_type();
    Ok(if kind.is_dir() {
        Content::Dir
    } else if kind.is_file() {
        Content::File(fs::read(path)?)
    } else if kind.is_symlink() {
        Content::Link(fs::read_link(path)?)
    } else if kind.is_fifo() {
        Content::Other("fifo")
    } else {
        Content::Other("special")
    })
}

/// The manifest of the regular files that lie in `dir`. Written after the format's page and not through the library,
/// so that scripts hold the library against an independent producer.
pub(crate) fn manifest(dir: &Path, id: &str, created: &str) -> io::Result<String> {
    let mut files = Vec::new();
    for (path, entry) in Snapshot::of(dir)?.0 {
        if let (Content::File(bytes), Some(path)) = (entry.content, path.to_str())
            && path != "manifest.json"
        {
            files.push((path.to_owned(), hex(&bytes), bytes.len()));
        }
    }
    files.sort_by(|a, b| a.0.as_bytes().cmp(b.0.as_bytes()));
    let listing: String = files.iter().flat_map(|(path, hex, _)| [hex, "  ", path, "\n"]).collect();
    let files: Vec<String> = files
        .iter()
        .map(|(path, hex, size)| {
            let path = serde_json::Value::from(path.as_str());
            format!("    {{\"path\": {path}, \"sha256\": \"sha256:{hex}\", \"size\": {size}}}")
        })
        .collect();
    Ok(format!(
        "{{\n  \"schema_version\": 1,\n  \"id\": {},\n  \"digest\": \"sha256:{}\",\n  \"created\": {},\n  \"files\": [\n{}\n  ]\n}}\n",
        serde_json::Value::from(id),
        hex(listing.as_bytes()),
        serde_json::Value::from(created),
        files.join(",\n")
    ))
}

fn hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().concat()
}
