//! A source, a destination and a configuration, for real processes.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

pub(crate) const RUN: &str = env!("CARGO_BIN_EXE_distributor-run");
pub(crate) const VALIDATE: &str = env!("CARGO_BIN_EXE_distributor-validate");
pub(crate) const INSPECT: &str = env!("CARGO_BIN_EXE_distributor-inspect");
pub(crate) const PRUNE: &str = env!("CARGO_BIN_EXE_distributor-prune");
pub(crate) const BUNDLE: &str = env!("CARGO_BIN_EXE_distributor-bundle");
pub(crate) const DISTRIBUTOR: &str = env!("CARGO_BIN_EXE_distributor");

/// A directory with a source `in`, a destination `out` and a configuration.
pub(crate) struct Scene {
    pub(crate) dir: tempfile::TempDir,
}

impl Scene {
    pub(crate) fn new() -> Scene {
        let dir = tempfile::tempdir().unwrap();
        let text = "pipelines:\n  - id: reports\n    source: {backend: local, path: in}\n    destinations:\n      \
                    - {id: archive, backend: local, path: out, file_mode: \"0664\", directory_mode: \"0775\"}\n";
        fs::write(dir.path().join("site.yml"), text).unwrap();
        fs::create_dir(dir.path().join("in")).unwrap();
        Scene { dir }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> &Scene {
        fs::create_dir_all(self.path(name).parent().unwrap()).unwrap();
        fs::write(self.path(name), text).unwrap();
        self
    }

    pub(crate) fn command(&self, program: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.current_dir(self.dir.path()).args(arguments).stdin(Stdio::null()).env_remove("DISTRIBUTOR_CONFIG");
        command
    }

    pub(crate) fn output(&self, program: &str, arguments: &[&str]) -> Output {
        self.command(program, arguments).output().unwrap()
    }

    pub(crate) fn bundle(&self, dir: &str) -> &Scene {
        let output = self.output(BUNDLE, &[dir, "--id", "x-1", "--force"]);
        assert!(output.status.success(), "{}", stderr(&output));
        self
    }

    pub(crate) fn run(&self) -> Output {
        self.output(RUN, &["-c", "site.yml"])
    }
}

pub(crate) fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

pub(crate) fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", stderr(output)))
}

/// Every path below `dir` with its mode, inode, size and modification time.
pub(crate) fn snapshot(dir: &Path) -> BTreeMap<PathBuf, (u32, u64, u64, i64, i64)> {
    let mut seen = BTreeMap::new();
    let mut pending = vec![dir.to_owned()];
    while let Some(path) = pending.pop() {
        let meta = fs::symlink_metadata(&path).unwrap();
        if meta.is_dir() {
            pending.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        }
        // The directory's own time tells that a stage came and went, which nobody minds.
        let time = if meta.is_dir() { (0, 0) } else { (meta.mtime(), meta.mtime_nsec()) };
        let size = if meta.is_dir() { 0 } else { meta.size() };
        seen.insert(path, (meta.mode(), meta.ino(), size, time.0, time.1));
    }
    seen
}
