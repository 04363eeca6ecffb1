//! What only a file system can be asked.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::Path;

use distributor::entry::Kind;
use distributor::names::{LOCK, STATE};
use distributor::storage::{Expected, Local, MAX_DEPTH, Met, Scope, Storage};
use rustix::fs::{CWD, FileType, Mode, mknodat};

use super::{Bench, Code, Load, MODES, code, listed, raw, rel, remove, remove_dirs};

fn fifo(path: &Path) {
    mknodat(CWD, path, FileType::Fifo, Mode::from_raw_mode(0o644), 0).unwrap();
}

#[test]
fn a_place_that_is_not_there_is_not_found() {
    let bench = Bench::local();
    let nowhere = bench.below("nowhere");
    assert_eq!(code(nowhere.find("m", &mut |_, _| panic!("nothing is there"))), Some(Code::NotFound));
    assert_eq!(code(nowhere.list(Scope::Source, &mut |_| panic!("nothing is there"))), Some(Code::NotFound));
    assert_eq!(code(nowhere.read(&rel("f"))), Some(Code::NotFound));
}

#[test]
fn find_reports_links_and_depth_and_takes_any_marker_but_a_link() {
    let bench = Bench::local();
    let root = bench.root.clone().unwrap();
    for dir in ["fifo", "dir/m", "linked"] {
        fs::create_dir_all(root.join(dir)).unwrap();
    }
    fifo(&root.join("fifo/m"));
    symlink("../fifo/m", root.join("linked/m")).unwrap();
    symlink("fifo", root.join("link")).unwrap();
    symlink("nowhere", root.join("dangling")).unwrap();
    fs::create_dir_all(root.join("deep").join("d/".repeat(MAX_DEPTH))).unwrap();
    let mut seen = BTreeSet::new();
    let visit = &mut |path: &[u8], met: Met| {
        let path = String::from_utf8(path.to_vec()).unwrap();
        seen.insert(if path.len() > 20 {
            format!("{} segments {met:?}", path.split('/').count())
        } else {
            format!("{path} {met:?}")
        });
    };
    bench.storage.find("m", visit).unwrap();
    let deep = format!("{} segments TooDeep", MAX_DEPTH + 1);
    let expected = [&deep, "dangling Link", "dir Marked", "fifo Marked", "link Link", "linked/m Link"];
    assert_eq!(seen.iter().map(String::as_str).collect::<Vec<_>>(), expected);
}

#[test]
fn list_gives_raw_names_and_kinds() {
    let bench = Bench::local();
    let root = bench.root.clone().unwrap();
    let odd = b"d/\xff\x01";
    fs::create_dir(root.join("d")).unwrap();
    fs::write(root.join(OsStr::from_bytes(odd)), b"x").unwrap();
    fifo(&root.join("p"));
    symlink("d", root.join("l")).unwrap();
    fs::create_dir(root.join("m")).unwrap();
    symlink("nowhere", root.join("m").join(STATE)).unwrap();
    let mut seen = Vec::new();
    let visit = &mut |entry: distributor::entry::Entry| {
        assert_eq!(entry.path.is_none(), entry.raw.as_bytes() == odd, "{entry:?}");
        seen.push((entry.raw, entry.kind));
        Ok(())
    };
    bench.storage.list(Scope::Destination, visit).unwrap();
    seen.sort_by(|a, b| a.0.cmp(&b.0));
    let expected: [(&[u8], Kind); 5] =
        [(b"d", Kind::Directory), (odd, Kind::File), (b"l", Kind::Link), (b"m", Kind::Managed), (b"p", Kind::Special)];
    assert_eq!(seen, expected.map(|(raw, kind)| (raw.to_vec().into(), kind)));
}

#[test]
fn whatever_is_listed_can_be_removed_and_nothing_beside_the_place() {
    let bench = Bench::local();
    let root = bench.root.clone().unwrap();
    let odd = |name: &[u8]| root.join(OsStr::from_bytes(name));
    fs::create_dir_all(odd(b"d\xff/e")).unwrap();
    fs::write(odd(b"d\xff/\xfe\n"), b"x").unwrap();
    fs::write(root.with_file_name("beside"), b"x").unwrap();
    fifo(&root.join("p"));
    symlink("../beside", root.join("l")).unwrap();
    let (mut files, mut dirs) = (Vec::new(), Vec::new());
    let visit = &mut |entry: distributor::entry::Entry| {
        if entry.kind == Kind::Directory { &mut dirs } else { &mut files }.push(entry.raw);
        Ok(())
    };
    bench.storage.list(Scope::Destination, visit).unwrap();
    dirs.sort_by(|a, b| b.cmp(a));
    for _ in 0..2 {
        assert!(bench.storage.remove_many(&files.iter().collect::<Vec<_>>()).iter().all(Result::is_ok));
        bench.storage.remove_empty_dirs(&dirs.iter().collect::<Vec<_>>()).unwrap();
    }
    bench.storage.flush_dirs(&[b"d\xff", b""]).unwrap();
    assert_eq!(fs::read_dir(&root).unwrap().count(), 0);
    for out in ["../beside", "../../place/../beside"] {
        assert!(bench.storage.remove_many(&[&raw(out)])[0].is_err(), "{out}");
    }
    assert!(root.with_file_name("beside").exists());
}

#[test]
fn nothing_but_a_regular_file_is_read_and_nothing_blocks() {
    let bench = Bench::local();
    let root = bench.root.clone().unwrap();
    fs::create_dir(root.join("d")).unwrap();
    fs::write(root.join("d/f"), b"x").unwrap();
    fifo(&root.join("p"));
    symlink("d/f", root.join("l")).unwrap();
    symlink("nowhere", root.join("dangling")).unwrap();
    symlink("d", root.join("ld")).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(root.join("s")).unwrap();
    for path in ["d", "p", "l", "dangling", "ld/f", "s"] {
        assert_eq!(code(bench.storage.read(&rel(path))), Some(Code::NotARegularFile), "{path}");
        assert_eq!(bench.storage.exist_many(&[&rel("p"), &rel("dangling")]).unwrap(), [true, true]);
    }
    assert_eq!(bench.bytes("d/f").unwrap(), b"x");
}

#[test]
fn names_of_ours_that_are_no_files_are_never_followed() {
    let bench = Bench::local();
    let root = bench.root.clone().unwrap();
    let victim = root.parent().unwrap().join("victim");
    fs::write(&victim, b"mine").unwrap();
    for name in [STATE, LOCK] {
        symlink(&victim, root.join(name)).unwrap();
    }
    let storage = bench.storage.as_ref();
    assert_eq!(code(storage.get_small(STATE, 9)), Some(Code::NotARegularFile));
    assert_eq!(code(storage.put_small(STATE, b"x", Expected::Version(None))), Some(Code::NotARegularFile));
    assert_eq!(code(storage.lock(b"me", &|_| Ok(()))), Some(Code::NotARegularFile));
    assert_eq!(bench.storage.is_locked().unwrap_err().code, Code::NotARegularFile);
    // Written without a look at what was there, it is the link itself that goes.
    storage.put_small(STATE, b"x", Expected::Any).unwrap();
    assert!(root.join(STATE).symlink_metadata().unwrap().is_file());
    assert_eq!(fs::read(&victim).unwrap(), b"mine");
}

#[test]
fn a_lock_that_is_no_file_is_told_as_such() {
    for make in [fifo, |path: &Path| fs::create_dir(path).unwrap(), |path: &Path| symlink("nowhere", path).unwrap()] {
        let bench = Bench::local();
        make(&bench.root.clone().unwrap().join(LOCK));
        let result = bench.storage.lock(b"me", &|_| panic!("nobody holds it"));
        assert_eq!(code(result), Some(Code::NotARegularFile));
    }
}

#[test]
fn who_lost_the_lock_file_lost_the_lock() {
    let bench = Bench::local();
    let lock = bench.root.clone().unwrap().join(LOCK);
    for plant in [None, Some(b"another's")] {
        let guard = bench.storage.lock(b"me\n", &|_| Ok(())).unwrap();
        assert_eq!(fs::read(&lock).unwrap(), b"me\n");
        fs::remove_file(&lock).unwrap();
        if let Some(bytes) = plant {
            fs::write(&lock, bytes).unwrap();
        }
        assert_eq!(code(guard.check()), Some(Code::LockLost));
        drop(guard);
        let _ = fs::remove_file(&lock);
    }
}

#[test]
fn locking_makes_the_place_and_takes_it_back_as_far_as_it_is_empty() {
    let bench = Bench::local();
    let root = bench.root.clone().unwrap();
    let place = bench.below("a/b/c");
    place.lock(b"", &|_| Ok(())).unwrap().release(false).unwrap();
    assert!(!root.join("a").exists() && root.exists());
    let guard = place.lock(b"", &|_| Ok(())).unwrap();
    fs::write(root.join("a/x"), b"").unwrap();
    guard.release(false).unwrap();
    assert!(root.join("a/x").exists() && !root.join("a/b").exists());
    // The root itself, too.
    let root = root.join("new/root");
    let guard = Local::new(&root, MODES).lock(b"", &|_| Ok(())).unwrap();
    assert!(root.join(LOCK).exists());
    guard.release(false).unwrap();
    assert!(!root.parent().unwrap().exists());
}

#[test]
fn directories_in_place_of_files_and_files_in_place_of_directories_stay() {
    let bench = Bench::local();
    let root = bench.root.clone().unwrap();
    fs::create_dir_all(root.join("d/e")).unwrap();
    fs::write(root.join("f"), b"x").unwrap();
    remove(bench.storage.as_ref(), &["d", "f/below"]);
    remove_dirs(bench.storage.as_ref(), &["f", "d"]);
    assert_eq!(listed(bench.storage.as_ref(), Scope::Source).len(), 3);
    remove_dirs(bench.storage.as_ref(), &["d/e", "d"]);
    assert!(!root.join("d").exists());
    assert!(bench.storage.make_dirs(&["f"]).is_err());
    let load = Load::new("1", &[("f/g", b"x")]);
    load.stage(bench.storage.as_ref());
    assert_eq!(code(load.commit(bench.storage.as_ref(), false)), Some(Code::CommitIncomplete));
    let load = Load::new("2", &[("d", b"x")]);
    load.stage(bench.storage.as_ref());
    fs::create_dir(root.join("d")).unwrap();
    for replace in [false, true] {
        assert_eq!(code(load.commit(bench.storage.as_ref(), replace)), Some(Code::CommitIncomplete));
    }
    assert!(root.join("d").is_dir());
}

const PLACE: &str = "DISTRIBUTOR_TEST_PLACE";

/// Does the work of the test below in a process of its own, whose umask is odd.
#[test]
fn modes_child() {
    let Some(place) = std::env::var_os(PLACE) else { return };
    let local = Local::new(Path::new(&place).join("new/root"), MODES);
    let storage = local.at(&distributor::path::BundlePath::from(rel("at")));
    let guard = storage.lock(b"", &|_| Ok(())).unwrap();
    storage.make_dirs(&["d", "d/e"]).unwrap();
    let load = Load::new("1", &[("d/e/f", b"x")]);
    load.stage(storage.as_ref());
    load.commit(storage.as_ref(), false).unwrap();
    storage.put_small(STATE, b"{}", Expected::Any).unwrap();
    storage.put_small(".distributor.journal-1.json", b"{}", Expected::Any).unwrap();
    guard.release(true).unwrap();
}

#[test]
fn modes_are_as_configured_whatever_the_umask() {
    for umask in ["000", "022", "077"] {
        let dir = tempfile::tempdir().unwrap();
        let mut shell = std::process::Command::new("sh");
        shell.args(["-c", &format!("umask {umask}; exec \"$@\""), "sh"]).arg(std::env::current_exe().unwrap());
        shell.args(["--exact", "conformance::local::modes_child"]).env(PLACE, dir.path());
        let output = shell.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        let mode = |path: &str| fs::metadata(dir.path().join("new/root").join(path)).unwrap().mode() & 0o7777;
        let modes = ["", "at", "at/d", "at/d/e"].map(mode);
        assert_eq!(modes, [MODES.directory; 4], "umask {umask}: {modes:?}");
        assert_eq!(mode("at/d/e/f"), MODES.file, "umask {umask}");
        assert_eq!(mode("../../new"), MODES.directory);
        assert_eq!(["at/.distributor.json", "at/.distributor.journal-1.json"].map(mode), [0o644, 0o600]);
        assert_eq!(mode("at/.distributor.stage-1"), 0o700, "nobody else looks into a stage");
    }
}
