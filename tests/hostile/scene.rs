//! A source `in`, a destination `out` and a configuration, for real processes.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

pub(crate) const RUN: &str = env!("CARGO_BIN_EXE_distributor-run");
const BUNDLE: &str = env!("CARGO_BIN_EXE_distributor-bundle");

/// Paths and bytes.
pub(crate) type Files = BTreeMap<String, Vec<u8>>;

pub(crate) struct Scene {
    dir: tempfile::TempDir,
}

impl Scene {
    pub(crate) fn new() -> Scene {
        let memory = Path::new("/dev/shm");
        let dir = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.unwrap();
        let text = "pipelines:\n  - id: p\n    source: {backend: local, path: in}\n    destinations:\n      \
                    - {id: d, backend: local, path: out/site}\n";
        fs::write(dir.path().join("site.yml"), text).unwrap();
        fs::create_dir(dir.path().join("out")).unwrap();
        Scene { dir }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Makes `dir` a bundle of these files.
    pub(crate) fn bundle(&self, dir: &str, files: &Files, created: &str) {
        let root = self.path(dir);
        let _ = fs::remove_dir_all(&root);
        for (path, bytes) in files {
            fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
            fs::write(root.join(path), bytes).unwrap();
        }
        let mut command = Command::new(BUNDLE);
        let output = command.arg(&root).args(["--id", "b-1", "--created", created]).output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
    }

    pub(crate) fn command(&self) -> Command {
        self.program(&[RUN])
    }

    /// The run as the last arguments of another program's command line.
    pub(crate) fn program(&self, line: &[&str]) -> Command {
        let mut command = Command::new(line[0]);
        command.args(&line[1..]).args(["-c", "site.yml", "--format", "json"]);
        command.current_dir(self.dir.path()).stdin(Stdio::null()).env_remove("DISTRIBUTOR_CONFIG");
        command
    }

    pub(crate) fn run(&self) -> Output {
        self.command().output().unwrap()
    }

    /// Runs, and must do so well; says what was done.
    pub(crate) fn run_well(&self, what: &str) -> String {
        let output = self.run();
        assert!(output.status.success(), "{what}: {} {}", report(&output), stderr(&output));
        let report = report(&output);
        report["pipelines"][0]["destinations"][0]["action"].as_str().unwrap().to_owned()
    }

    /// What is published below `below` is these files, a state, and nothing else.
    pub(crate) fn published(&self, below: &str, files: &Files, what: &str) {
        let mut there = tree(&self.path("out/site").join(below));
        assert!(there.remove(".distributor.json").is_some(), "{what}: no state among {:?}", there.keys());
        same(&there, files, what);
    }
}

/// Compares without printing the bytes of thousands of files.
pub(crate) fn same(there: &Files, files: &Files, what: &str) {
    let extra: Vec<_> = there.keys().filter(|path| !files.contains_key(*path)).take(5).collect();
    let missing: Vec<_> = files.keys().filter(|path| !there.contains_key(*path)).take(5).collect();
    let other: Vec<_> = files.iter().filter(|(path, bytes)| there.get(*path) != Some(bytes)).take(5).collect();
    assert!(there == files, "{what}: too many {extra:?}, missing {missing:?}, other bytes {:?}", other.first());
}

/// Every file below a directory with its bytes; links as their target, empty directories with a `/`.
pub(crate) fn tree(root: &Path) -> Files {
    let mut files = Files::new();
    let mut pending = vec![root.to_owned()];
    while let Some(dir) = pending.pop() {
        let Ok(entries) = fs::read_dir(&dir) else { continue };
        let entries: Vec<_> = entries.map(Result::unwrap).collect();
        if entries.is_empty() && dir != root {
            files.insert(format!("{}/", dir.strip_prefix(root).unwrap().display()), Vec::new());
        }
        for entry in entries {
            let (path, kind) = (entry.path(), entry.file_type().unwrap());
            if kind.is_dir() {
                pending.push(path);
                continue;
            }
            let name = path.strip_prefix(root).unwrap().display().to_string();
            let bytes = if kind.is_symlink() {
                fs::read_link(&path).unwrap().into_os_string().into_encoded_bytes()
            } else {
                fs::read(&path).unwrap()
            };
            files.insert(name, bytes);
        }
    }
    files
}

/// All that a write or delete would change: names, modes, inodes, sizes, times.
pub(crate) fn traces(root: &Path) -> BTreeMap<PathBuf, [i64; 6]> {
    let mut seen = BTreeMap::new();
    let mut pending = vec![root.to_owned()];
    while let Some(path) = pending.pop() {
        let meta = fs::symlink_metadata(&path).unwrap();
        if meta.is_dir() {
            pending.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        }
        let numbers = [meta.ino(), meta.size(), meta.mode().into()].map(u64::cast_signed);
        seen.insert(path, [numbers[0], numbers[1], numbers[2], meta.mtime(), meta.mtime_nsec(), meta.ctime_nsec()]);
    }
    seen
}

pub(crate) fn files(list: &[(&str, &str)]) -> Files {
    list.iter().map(|(path, text)| ((*path).to_owned(), text.as_bytes().to_vec())).collect()
}

pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

pub(crate) fn report(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", stderr(output)))
}

/// The code and message of the error of the only destination.
pub(crate) fn error(output: &Output) -> (String, String) {
    let report = report(output);
    let error = &report["pipelines"][0]["destinations"][0]["error"];
    let text = |key: &str| error[key].as_str().unwrap_or_else(|| panic!("{report}")).to_owned();
    assert_eq!(output.status.code(), Some(1), "{report}");
    (text("code"), text("message"))
}

/// Whether what a test needs works here. If not the test is skipped, which is said aloud, and which is a failure where
/// `DISTRIBUTOR_TEST_NO_SKIP` is set.
pub(crate) fn can(what: &str, probe: &[&str]) -> bool {
    let works = Command::new(probe[0]).args(&probe[1..]).output().is_ok_and(|output| output.status.success());
    let no_skip = std::env::var_os("DISTRIBUTOR_TEST_NO_SKIP").is_some();
    assert!(works || !no_skip, "this test needs {what}: {probe:?} fails");
    if !works {
        // Past libtest's capture, so that it is seen.
        let _ = std::io::stdout().write_all(format!("SKIPPED: it needs {what}\n").as_bytes());
    }
    works
}
