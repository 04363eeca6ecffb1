//! The place of a history, as those see it who are not this program.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use distributor::digest::Digest;
use distributor::journal::{Journal, Phase};
use distributor::names::{self, JOURNAL_PREFIX, STATE};
use distributor::path::RawPath;
use distributor::storage::{Local, Modes, Storage};

use crate::memory::Memory;
use crate::steps::within;

/// What stands at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Node {
    File(Vec<u8>),
    Link,
    Dir,
}

pub(crate) type Tree = BTreeMap<String, Node>;

/// A journal past its commit point, and whether the state that it leads to stands.
pub(crate) struct Committing {
    pub(crate) name: String,
    pub(crate) journal: Journal,
    pub(crate) settled: bool,
}

pub(crate) trait Place {
    fn storage(&self) -> Box<dyn Storage>;
    /// Whether the place itself is there.
    fn exists(&self) -> bool;
    /// Everything, names of ours included.
    fn all(&self) -> Tree;
    /// Whether it has directories and links.
    fn has_dirs(&self) -> bool;
    /// Puts something at a path that is free.
    fn put(&self, path: &str, node: &Node);
    /// Removes what stands at a path, and all below it.
    fn remove(&self, path: &str);
    /// What is there and not ours by its name, as it will be once what was cut short is healed.
    fn tree(&self) -> Tree;

    /// The names of ours at the root.
    fn own(&self) -> BTreeMap<String, Node> {
        self.all().into_iter().filter(|(path, _)| !path.contains('/') && names::is_own(path.as_bytes())).collect()
    }

    fn state(&self) -> Option<Vec<u8>> {
        match self.own().remove(STATE) {
            Some(Node::File(bytes)) => Some(bytes),
            _ => None,
        }
    }

    fn journals(&self) -> Vec<(String, Journal)> {
        let read = |(name, node)| match node {
            Node::File(bytes) => (name, Journal::parse(&bytes).unwrap()),
            node => panic!("{name}: {node:?}"),
        };
        self.own().into_iter().filter(|(name, _)| name.starts_with(JOURNAL_PREFIX)).map(read).collect()
    }

    fn committing(&self) -> Vec<Committing> {
        let state = self.state().map(|bytes| Digest::of(&bytes));
        let past = |(name, journal): (String, Journal)| {
            let settled = state.is_some() && journal.target.map(|target| target.sha256) == state;
            (journal.phase == Phase::Committing).then_some(Committing { name, journal, settled })
        };
        self.journals().into_iter().filter_map(past).collect()
    }
}

fn is_own(path: &str) -> bool {
    names::is_own(path.split('/').next().unwrap().as_bytes())
}

/// A directory, with something beside it that links lead to.
pub(crate) struct Disk {
    dir: tempfile::TempDir,
}

impl Disk {
    pub(crate) fn new() -> Disk {
        let memory = Path::new("/dev/shm");
        let dir = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.unwrap();
        std::fs::create_dir(dir.path().join("outside")).unwrap();
        std::fs::write(dir.path().join("outside/x.css"), "precious").unwrap();
        Disk { dir }
    }

    fn root(&self) -> PathBuf {
        self.dir.path().join("above/out")
    }
}

fn walk(root: &Path, at: &Path, into: &mut Tree) {
    let Ok(entries) = std::fs::read_dir(at) else { return };
    for entry in entries.map(Result::unwrap) {
        let (path, kind) = (entry.path(), entry.file_type().unwrap());
        let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
        let node = if kind.is_dir() {
            walk(root, &path, into);
            Node::Dir
        } else if kind.is_symlink() {
            Node::Link
        } else {
            Node::File(std::fs::read(&path).unwrap())
        };
        into.insert(name, node);
    }
}

impl Place for Disk {
    fn storage(&self) -> Box<dyn Storage> {
        Box::new(Local::new(self.root(), Modes::default()))
    }

    fn exists(&self) -> bool {
        let outside = std::fs::read_dir(self.dir.path().join("outside")).unwrap().count();
        assert_eq!(outside, 1, "a link was followed");
        assert_eq!(std::fs::read(self.dir.path().join("outside/x.css")).unwrap(), b"precious");
        self.dir.path().join("above").exists()
    }

    fn all(&self) -> Tree {
        let mut tree = Tree::new();
        walk(&self.root(), &self.root(), &mut tree);
        tree
    }

    fn has_dirs(&self) -> bool {
        true
    }

    fn put(&self, path: &str, node: &Node) {
        let path = self.root().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        match node {
            Node::File(bytes) => std::fs::write(path, bytes).unwrap(),
            Node::Link => std::os::unix::fs::symlink(self.dir.path().join("outside"), path).unwrap(),
            Node::Dir => std::fs::create_dir(path).unwrap(),
        }
    }

    fn remove(&self, path: &str) {
        let path = self.root().join(path);
        if path.is_dir() && !path.is_symlink() {
            std::fs::remove_dir_all(path).unwrap();
        } else {
            std::fs::remove_file(path).unwrap();
        }
    }

    fn tree(&self) -> Tree {
        self.all().into_iter().filter(|(path, _)| !is_own(path)).collect()
    }
}

#[derive(Default)]
pub(crate) struct Objects(Memory);

impl Place for Objects {
    fn storage(&self) -> Box<dyn Storage> {
        Box::new(self.0.clone())
    }

    fn exists(&self) -> bool {
        true
    }

    fn all(&self) -> Tree {
        self.0.objects().into_iter().map(|(key, object)| (key, Node::File(object.bytes))).collect()
    }

    fn has_dirs(&self) -> bool {
        false
    }

    fn put(&self, path: &str, node: &Node) {
        if let Node::File(bytes) = node {
            self.0.put(path, bytes);
        }
    }

    fn remove(&self, path: &str) {
        for key in self.0.objects().keys().filter(|key| *key == path || within(key, path)) {
            self.0.remove_many(&[&RawPath::from(key.as_str())]).into_iter().for_each(Result::unwrap);
        }
    }

    fn tree(&self) -> Tree {
        // What an attempt created goes before anything is done again.
        let attempts: Vec<(String, BTreeSet<String>)> = self
            .committing()
            .iter()
            .filter(|one| !one.settled)
            .map(|one| (one.journal.stage.clone(), one.journal.created().map(ToString::to_string).collect()))
            .collect();
        let goes = |key: &str, token: &str| attempts.iter().any(|(stage, paths)| stage == token && paths.contains(key));
        let stays = self.0.objects().into_iter().filter(|(key, object)| !is_own(key) && !goes(key, &object.token));
        stays.map(|(key, object)| (key, Node::File(object.bytes))).collect()
    }
}
