//! Stages, commits, removals.

use distributor::digest::{Digest, Fingerprint};
use distributor::error::Error;
use distributor::names::STAGE_PREFIX;
use distributor::storage::{Body, Job, Make, Recovery, Scope, Stage, StageError};

use super::{Bench, Cancel, Code, Load, code, each, files, job, rel, remove, remove_dirs, source_code};

const THREE: &[(&str, &[u8])] = &[("a", b"1"), ("d/e/b", b"22"), ("empty", b"")];

/// A place with the directories that [`THREE`] needs, and the outputs staged.
fn staged(bench: &Bench, token: &str) -> Load {
    let load = Load::new(token, THREE);
    bench.storage.make_dirs(&["d", "d/e"]).unwrap();
    load.stage(bench.storage.as_ref());
    load
}

fn published(bench: &Bench) -> Vec<(&'static str, Option<Vec<u8>>)> {
    THREE.iter().map(|(path, _)| (*path, bench.bytes(path))).collect()
}

fn whole() -> Vec<(&'static str, Option<Vec<u8>>)> {
    THREE.iter().map(|(path, bytes)| (*path, Some(bytes.to_vec()))).collect()
}

#[test]
fn what_is_staged_is_seen_by_nobody_until_it_is_committed() {
    each(|bench| {
        let load = staged(bench, "1");
        assert_eq!(files(bench.storage.as_ref(), Scope::Destination), Vec::<String>::new());
        assert!(published(bench).iter().all(|(_, bytes)| bytes.is_none()));
        load.commit(bench.storage.as_ref(), false).unwrap();
        assert_eq!(published(bench), whole());
        bench.storage.close_stage(&load.stage).unwrap();
        assert_eq!(published(bench), whole());
        assert_eq!(files(bench.storage.as_ref(), Scope::Source), ["a", "d/e/b", "empty"], "nothing of ours is left");
        bench.storage.close_stage(&load.stage).unwrap();
    });
}

#[test]
fn commits_may_be_repeated_from_anywhere() {
    each(|bench| {
        let load = staged(bench, "1");
        let first = [distributor::storage::Commit { job: 0, path: &load.outputs[0].0, replace: false }];
        bench.storage.commit_all(&load.stage, &load.jobs(), &first).unwrap();
        for _ in 0..3 {
            load.commit(bench.storage.as_ref(), false).unwrap();
            assert_eq!(published(bench), whole());
        }
        load.commit(bench.storage.as_ref(), true).unwrap();
        assert_eq!(published(bench), whole());
    });
}

#[test]
fn staged_bytes_are_there_until_they_are_committed() {
    each(|bench| {
        let load = staged(bench, "1");
        let staged = |job, limit| bench.again().staged(&load.stage, job, limit).unwrap();
        if bench.storage.recovery() == Recovery::Redo {
            assert_eq!(
                (staged(1, 100), staged(1, 1), staged(2, 9)),
                (Some(b"22".into()), Some(b"2".into()), Some(vec![]))
            );
        }
        assert_eq!(staged(3, 100), None);
        load.commit(bench.storage.as_ref(), false).unwrap();
        assert_eq!(staged(1, 100), None);
        assert_eq!(bench.storage.staged(&Stage("none".to_owned()), 0, 100).unwrap(), None);
    });
}

#[test]
fn a_create_never_overwrites() {
    each(|bench| {
        if !bench.heeds_conditions {
            return;
        }
        let load = staged(bench, "1");
        (bench.put)("d/e/b", b"a stranger's");
        let error = load.commit(bench.storage.as_ref(), false).unwrap_err();
        assert_eq!(error.code, Code::CommitIncomplete);
        assert!(error.message.contains("d/e/b"), "{}", error.message);
        assert_eq!(bench.bytes("d/e/b").unwrap(), b"a stranger's");
        // Once it is moved aside the rest is done.
        remove(bench.storage.as_ref(), &["d/e/b"]);
        load.commit(bench.storage.as_ref(), false).unwrap();
        assert_eq!(published(bench), whole());
    });
}

#[test]
fn a_replace_replaces() {
    each(|bench| {
        for (path, _) in THREE {
            (bench.put)(path, b"the old bytes");
        }
        let load = staged(bench, "1");
        assert_eq!(bench.bytes("a").unwrap(), b"the old bytes");
        load.commit(bench.storage.as_ref(), true).unwrap();
        assert_eq!(published(bench), whole());
    });
}

#[test]
fn what_the_source_gives_is_checked_while_it_is_staged() {
    each(|bench| {
        (bench.put)("in/good", b"abc");
        let source = bench.below("in");
        let [good, none, path] = ["good", "none", "p"].map(rel);
        let sha256 = Digest::of(b"abc");
        let of = |body, size, sha256| Job { path: &path, expected: Some(Fingerprint { size, sha256 }), body };
        let from = |path| Body::File(source.as_ref(), path);
        let stage = Stage("1".to_owned());
        let out = bench.below("out");
        out.lock(b"", &|_| Ok(())).unwrap().release(true).unwrap();
        out.open_stage(&stage).unwrap();
        let jobs = [
            of(from(&good), 3, sha256),
            of(from(&good), 4, sha256),
            of(from(&none), 3, sha256),
            of(from(&good), 2, sha256),
        ];
        let results = out.stage_all(&stage, 0, &jobs, &Cancel::default());
        let codes: Vec<_> = results.into_iter().map(|r| if r.is_ok() { None } else { Some(source_code(r)) }).collect();
        assert_eq!(codes, [None, Some(Code::SizeMismatch), Some(Code::NotFound), Some(Code::SizeMismatch)]);
        // Where nothing is staged the digest is looked at when it is committed.
        let wrong = [of(from(&good), 3, Digest::of(b"abd"))];
        let stage = Stage("2".to_owned());
        out.open_stage(&stage).unwrap();
        let result = out.stage_all(&stage, 0, &wrong, &Cancel::default()).remove(0);
        let commit = distributor::storage::Commit { job: 0, path: &path, replace: false };
        if bench.storage.recovery() == Recovery::Redo {
            assert_eq!(source_code(result), Code::DigestMismatch);
        } else {
            assert_eq!(code(out.commit_all(&stage, &wrong, &[commit])), Some(Code::DigestMismatch));
        }
        assert_eq!(out.exist_many(&[&path]).unwrap(), [false]);
    });
}

#[test]
fn what_is_made_is_known_once_it_is_staged() {
    struct Shout(&'static str);
    impl Make for Shout {
        fn make(&self) -> distributor::error::Result<Vec<u8>> {
            match self.0 {
                "" => Err(Error::new(Code::InvalidMarkdown, "nothing to shout")),
                text => Ok(text.to_uppercase().into_bytes()),
            }
        }
    }
    each(|bench| {
        let (paths, stage) = (["a", "b", "c"].map(rel), Stage("1".to_owned()));
        let made = [Shout("one"), Shout(""), Shout("three")];
        let mut jobs: Vec<Job<'_>> =
            paths.iter().zip(&made).map(|(path, make)| Job { path, expected: None, body: Body::Made(make) }).collect();
        bench.storage.open_stage(&stage).unwrap();
        let mut results = bench.storage.stage_all(&stage, 5, &jobs, &Cancel::default());
        assert_eq!(results.remove(0).unwrap(), Fingerprint::of(b"ONE"));
        assert_eq!(source_code(results.remove(0)), Code::InvalidMarkdown);
        assert_eq!(results.remove(0).unwrap(), Fingerprint::of(b"THREE"));
        if bench.storage.recovery() == Recovery::Redo {
            assert_eq!(bench.storage.staged(&stage, 7, 99).unwrap().unwrap(), b"THREE", "numbered from the first");
        }
        jobs[0].expected = Some(Fingerprint::of(b"ONE"));
        let all: Vec<Job<'_>> = std::iter::repeat_n(jobs[0], 6).collect();
        let commit = distributor::storage::Commit { job: 5, path: &paths[0], replace: false };
        bench.storage.commit_all(&stage, &all, &[commit]).unwrap();
        assert_eq!(bench.bytes("a").unwrap(), b"ONE");
    });
}

#[test]
fn a_signal_ends_staging() {
    each(|bench| {
        let (load, cancel) = (Load::new("1", THREE), Cancel::default());
        cancel.raise(15);
        bench.storage.open_stage(&load.stage).unwrap();
        let results = bench.storage.stage_all(&load.stage, 0, &load.jobs(), &cancel);
        assert_eq!(results.len(), 3);
        for result in results {
            assert!(matches!(&result, Err(StageError::Place(error)) if error.code == Code::Interrupted), "{result:?}");
        }
    });
}

#[test]
fn a_stage_of_many_outputs_holds_them_all() {
    // More than the directories of a stage, and the handles kept open, hold.
    let paths: Vec<_> = (0..700).map(|at| rel(&format!("d{}/f{at}", at % 90))).collect();
    let dirs: Vec<String> = (0..90).map(|at| format!("d{at}")).collect();
    each(|bench| {
        bench.storage.make_dirs(&dirs.iter().map(String::as_str).collect::<Vec<_>>()).unwrap();
        let jobs: Vec<Job<'_>> = paths.iter().map(|path| job(path, path.as_str().as_bytes())).collect();
        let stage = Stage("1".to_owned());
        bench.storage.open_stage(&stage).unwrap();
        assert!(bench.storage.stage_all(&stage, 0, &jobs, &Cancel::default()).iter().all(Result::is_ok));
        bench.storage.flush_stage(&stage, jobs.len()).unwrap();
        let commit = |(job, path)| distributor::storage::Commit { job, path, replace: false };
        let commits: Vec<_> = paths.iter().enumerate().map(commit).collect();
        bench.storage.commit_all(&stage, &jobs, &commits).unwrap();
        bench.storage.close_stage(&stage).unwrap();
        bench.storage.flush_dirs(&dirs.iter().map(String::as_bytes).collect::<Vec<_>>()).unwrap();
        for path in &paths {
            assert_eq!(bench.bytes(path.as_str()).unwrap(), path.as_str().as_bytes());
        }
        remove(bench.storage.as_ref(), &paths.iter().map(|path| path.as_str()).collect::<Vec<_>>());
        assert_eq!(files(bench.storage.as_ref(), Scope::Source), Vec::<String>::new());
    });
}

#[test]
fn only_what_the_stage_created_is_taken_back() {
    each(|bench| {
        let load = staged(bench, "1");
        load.commit(bench.storage.as_ref(), false).unwrap();
        (bench.put)("a", b"changed since");
        let paths = [rel("a"), rel("d/e/b"), rel("none")];
        let paths: Vec<_> = paths.iter().collect();
        let wrote = bench.storage.recovery() == Recovery::DirtyMark;
        assert_eq!(bench.storage.wrote(&load.stage, &paths).unwrap(), [false, wrote, false]);
        assert_eq!(bench.storage.wrote(&Stage("another".to_owned()), &paths).unwrap(), [false; 3]);
        bench.storage.remove_created(&Stage("another".to_owned()), &paths).unwrap();
        assert_eq!(bench.bytes("d/e/b").unwrap(), b"22");
        bench.storage.remove_created(&load.stage, &paths).unwrap();
        assert_eq!(bench.bytes("a").unwrap(), b"changed since");
        // Where recovery goes forward nothing is ever taken back.
        assert_eq!(bench.bytes("d/e/b").is_some(), bench.storage.recovery() == Recovery::Redo);
    });
}

#[test]
fn a_sweep_leaves_what_is_kept() {
    each(|bench| {
        let (keep, go) = (staged(bench, "keep"), Load::new("go", THREE));
        go.stage(bench.storage.as_ref());
        if bench.root.is_some() {
            // A file that was on its way to a name of ours.
            (bench.put)(".distributor.stage-.distributor.json", b"half");
        }
        (bench.put)("d/.distributor.stage-else", b"not at the root");
        bench.storage.sweep_stages(std::slice::from_ref(&keep.stage)).unwrap();
        let left = bench.storage.own_names(STAGE_PREFIX).unwrap();
        assert!(left.iter().all(|name| *name == keep.stage.name()), "{left:?}");
        keep.commit(bench.storage.as_ref(), false).unwrap();
        assert_eq!(published(bench), whole());
        bench.storage.sweep_stages(&[]).unwrap();
        assert_eq!(bench.storage.own_names(STAGE_PREFIX).unwrap(), Vec::<String>::new());
        let left = files(bench.storage.as_ref(), Scope::Source);
        assert!(left.contains(&"d/.distributor.stage-else".to_owned()), "not at the root: {left:?}");
    });
}

#[test]
fn what_is_gone_already_may_be_removed_again() {
    each(|bench| {
        (bench.put)("a", b"x");
        (bench.put)("d/b", b"x");
        (bench.put)("stays", b"x");
        for _ in 0..2 {
            remove(bench.storage.as_ref(), &["a", "d/b", "d/none", "none/b", "a/below"]);
            assert_eq!(files(bench.storage.as_ref(), Scope::Source), ["stays"]);
        }
        for _ in 0..2 {
            bench.storage.make_dirs(&["m", "m/n"]).unwrap();
        }
        (bench.put)("m/n/f", b"x");
        remove_dirs(bench.storage.as_ref(), &["m/n", "m", "d", "none", "none/too", "stays"]);
        assert_eq!(files(bench.storage.as_ref(), Scope::Source), ["m/n/f", "stays"]);
        bench.storage.flush_dirs(&[b"", b"m", b"none", b"none/too", b"stays/below"]).unwrap();
    });
}
