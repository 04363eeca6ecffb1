//! A source with two bundles of one id, and a destination to publish them to.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use distributor::bundle::{Maker, load};
use distributor::config::{self, Config, Destination};
use distributor::error::{Result, Warning};
use distributor::host::{Cancel, Holder, Host};
use distributor::maintain::Upkeep;
use distributor::path::{BundlePath, RelPath};
use distributor::plan::{Decision, Wanted};
use distributor::publish::{Publication, Published, Site, World};
use distributor::source::{self, Checked};
use distributor::storage::{Local, Modes, Storage};
use distributor::timestamp::Timestamp;

/// Paths and bytes.
pub(crate) type Files = &'static [(&'static str, &'static str)];

/// The older bundle.
pub(crate) const OLD: Files =
    &[("a.txt", "a1"), ("b/c.txt", "c1"), ("drop/x.txt", "x1"), ("index.html", "i1"), ("turn", "file")];
/// The newer one: `a.txt` and `index.html` change, `b/c.txt` does not, `drop` goes, `new` comes, `turn` turns into a
/// directory, and a name changes its case.
pub(crate) const NEW: Files = &[
    ("a.txt", "a2"),
    ("b/C.txt", "c1"),
    ("b/d.txt", "d2"),
    ("index.html", "i2"),
    ("new/n.txt", "n2"),
    ("turn/into.txt", "dir"),
];

/// What a merge adds and changes.
pub(crate) const MORE: Files = &[("a.txt", "a3"), ("index.html", "i3"), ("more/n.txt", "n3")];
/// What is there after the older bundle and the merge.
pub(crate) const MERGED: Files = &[
    ("a.txt", "a3"),
    ("b/c.txt", "c1"),
    ("drop/x.txt", "x1"),
    ("index.html", "i3"),
    ("more/n.txt", "n3"),
    ("turn", "file"),
];

/// A publication that is asked for.
#[derive(Clone, Copy)]
pub(crate) struct Wish {
    pub(crate) bundle: &'static str,
    pub(crate) destination: &'static str,
    pub(crate) force: bool,
    pub(crate) again: bool,
}

const CONFIG: &str = "pipelines:
  - id: p
    source: {backend: local, path: in}
    destinations:
      - id: d
        backend: local
        path: out
        links: {base_url: 'https://x.example/'}
        retention: {prune: {enabled: true, keep_latest: 2}}
      - {id: e, backend: local, path: out-e, takeover: {mode: managed}}
      - {id: m, backend: local, path: out-m, reconciliation: {mode: merge}}
      - {id: t, backend: local, path: out-t, state: {mode: shared_root}, takeover: {mode: managed}}
      - id: w
        backend: local
        path: out-w
        outputs: {policy: generated_plus_assets}
        transforms: [{type: markdown_to_html}]
";

/// What all owners of the shared root have in common.
const SHARED: &str = "backend: local, path: out-s, state: {mode: shared_root}, \
                      retention: {prune: {enabled: true, keep_latest: 1}}";

/// The owners of a shared root, and two bundles of each.
pub(crate) const OWNERS: [&str; 8] = ["s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7"];
pub(crate) const FIRST: [&str; 8] = ["1/s0", "1/s1", "1/s2", "1/s3", "1/s4", "1/s5", "1/s6", "1/s7"];
pub(crate) const SECOND: [&str; 8] = ["2/s0", "2/s1", "2/s2", "2/s3", "2/s4", "2/s5", "2/s6", "2/s7"];

pub(crate) struct Scene {
    pub(crate) dir: tempfile::TempDir,
    config: Config,
    /// Who publishes: as everybody else sees it a process that is gone, as after kill -9.
    pub(crate) holder: Holder,
}

/// A process of this host that is gone.
pub(crate) fn gone() -> Holder {
    Holder { process_id: i32::MAX as u32, ..Holder::this_process() }
}

impl Scene {
    pub(crate) fn new() -> Scene {
        // Where there is a file system in memory the thousands of runs of a sweep take seconds.
        let memory = Path::new("/dev/shm");
        let dir = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.unwrap();
        let world = config::World { home: None, state_directory: None, read: &|path| std::fs::read(path) };
        let text = CONFIG.to_owned() + &OWNERS.map(|id| format!("      - {{id: {id}, {SHARED}}}\n")).concat();
        let (config, _) = config::parse(text.as_bytes(), &dir.path().join("site.yml"), &world).unwrap();
        let scene = Scene { dir, config, holder: gone() };
        scene.bundle("old", OLD, "2026-06-01T00:00:00Z");
        scene.bundle("new", NEW, "2026-06-02T00:00:00Z");
        scene.bundle("more", MORE, "2026-06-03T00:00:00Z");
        scene.bundle("other", &[("x.txt", "other")], "2026-06-03T00:00:00Z");
        scene.bundle("less", &[("index.html", "i4")], "2026-06-04T00:00:00Z");
        scene.bundle("mine", &[("t.txt", "t1")], "2026-06-01T00:00:00Z");
        scene.bundle("taken", &[("t.txt", "t2"), ("common/s0", "t2"), ("new.txt", "t2")], "2026-06-02T00:00:00Z");
        scene.bundle("left", &[("t.txt", "t3")], "2026-06-03T00:00:00Z");
        for (owner, (first, second)) in OWNERS.iter().zip(FIRST.iter().zip(SECOND)) {
            let paths =
                [format!("{owner}.html"), format!("{owner}/a"), format!("common/{owner}"), format!("{owner}-old")];
            let files: Vec<(&str, &str)> = paths.iter().map(|path| (path.as_str(), *first)).collect();
            scene.bundle(first, &files, "2026-06-01T00:00:00Z");
            let files: Vec<(&str, &str)> = files[..3].iter().map(|(path, _)| (*path, second)).collect();
            scene.bundle(second, &files, "2026-06-02T00:00:00Z");
        }
        scene
    }

    /// Makes the bundle `name`, or makes it anew.
    pub(crate) fn bundle(&self, name: &str, files: &[(&str, &str)], created: &str) {
        let dir = self.dir.path().join("in").join(name);
        let _ = std::fs::remove_dir_all(&dir);
        for (path, text) in files {
            let path = dir.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let storage = Local::new(&dir, Modes::default());
        let created = Timestamp::parse(created).unwrap();
        Maker { storage: &storage, id: "s", created, force: false, cancel: &Cancel::default() }.make().unwrap();
    }

    pub(crate) fn local(&self) -> Local {
        self.local_at("out")
    }

    pub(crate) fn local_at(&self, path: &str) -> Local {
        Local::new(self.dir.path().join(path), Modes::default())
    }

    /// Publishes the bundle `bundle` to `target` as destination `destination`.
    pub(crate) fn publish(
        &self,
        bundle: &'static str,
        destination: &'static str,
        target: &dyn Storage,
    ) -> Result<Told> {
        self.grant(Wish { bundle, destination, force: false, again: false }, target)
    }

    pub(crate) fn grant(&self, wish: Wish, target: &dyn Storage) -> Result<Told> {
        self.publication(wish, target, |publication, warnings| publication.run(warnings))
    }

    pub(crate) fn look(&self, wish: Wish, target: &dyn Storage) -> Result<Told> {
        self.publication(wish, target, |publication, warnings| publication.look(warnings))
    }

    fn publication(
        &self,
        wish: Wish,
        target: &dyn Storage,
        work: impl FnOnce(&Publication<'_>, &mut Vec<Warning>) -> Result<Published>,
    ) -> Result<Told> {
        let source = Local::new(self.dir.path().join("in"), Modes::default());
        let source = source.at(&BundlePath::from(RelPath::parse(wish.bundle).unwrap()));
        let manifest = load(source.as_ref()).unwrap();
        let (pipeline_id, destination) = ("p", self.destination(wish.destination));
        let (dirty, force, republish) = (false, wish.force, wish.again);
        let wanted = Wanted { pipeline_id, destination, manifest: &manifest, dirty, force, republish };
        let mut warnings = Vec::new();
        let published = self.in_world(|world| {
            let checked = Checked::new(1);
            let source = &source::Files::new(source.as_ref(), &manifest, &checked, None, world.cancel);
            work(&Publication { wanted, source, at: &BundlePath::ROOT, target, world }, &mut warnings)
        })?;
        Ok(Told { decision: published.decision, warnings })
    }

    /// Does `work` in a world that stands still.
    pub(crate) fn in_world<T>(&self, work: impl FnOnce(&World<'_>) -> T) -> T {
        let host = Host::fixed("/", &[]);
        let token = || format!("{:016x}", std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), 0));
        work(&World {
            cancel: &host.cancel,
            now: &|| host.now(),
            token: &token,
            holder: &self.holder,
            lock_timeout: Duration::from_mins(5),
            waiting: &|_| {},
        })
    }

    pub(crate) fn destination(&self, id: &str) -> &Destination {
        self.config.pipelines[0].destinations.iter().find(|destination| destination.id == id).unwrap()
    }

    /// Looks after `target` as destination `id`.
    pub(crate) fn upkeep<T>(
        &self,
        (id, all_owners): (&str, bool),
        target: &dyn Storage,
        work: impl FnOnce(&Upkeep<'_>, &mut Vec<Warning>) -> Result<T>,
    ) -> Result<T> {
        self.in_world(|world| {
            let (site, destination) = (Site { target, world }, self.destination(id));
            work(&Upkeep { site, pipeline_id: "p", destination, all_owners }, &mut Vec::new())
        })
    }
}

/// What was decided and done, and what was said.
pub(crate) struct Told {
    pub(crate) decision: Decision,
    pub(crate) warnings: Vec<Warning>,
}

/// All files below a directory with their bytes; empty directories with a `/`.
pub(crate) fn tree(root: &Path) -> BTreeMap<String, Vec<u8>> {
    fn walk(root: &Path, at: &Path, into: &mut BTreeMap<String, Vec<u8>>) {
        let Ok(entries) = std::fs::read_dir(at) else { return };
        let mut empty = true;
        for entry in entries.map(std::result::Result::unwrap) {
            empty = false;
            let path = entry.path();
            let bytes = || match std::fs::read_link(&path) {
                Ok(link) => link.into_os_string().into_encoded_bytes(),
                Err(_) => std::fs::read(&path).unwrap(),
            };
            if entry.file_type().unwrap().is_dir() {
                walk(root, &path, into);
            } else {
                into.insert(path.strip_prefix(root).unwrap().display().to_string(), bytes());
            }
        }
        if empty && at != root {
            into.insert(format!("{}/", at.strip_prefix(root).unwrap().display()), Vec::new());
        }
    }
    let mut files = BTreeMap::new();
    walk(root, root, &mut files);
    files
}

/// Copies a directory with all below it.
pub(crate) fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().map(std::result::Result::unwrap) {
        let to = to.join(entry.file_name());
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            copy(&entry.path(), &to);
        } else if kind.is_symlink() {
            std::os::unix::fs::symlink(std::fs::read_link(entry.path()).unwrap(), to).unwrap();
        } else {
            std::fs::copy(entry.path(), to).unwrap();
        }
    }
}
