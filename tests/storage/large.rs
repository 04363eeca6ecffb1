//! Large outputs, which go in parts before the commit point.

use std::io::Read;

use distributor::digest::Fingerprint;
use distributor::error::{Code, Error, Result};
use distributor::host::Cancel;
use distributor::storage::s3::Parts;
use distributor::storage::{Body, Commit, Job, Make, Stage, StageError, Storage};

use crate::servers::fault::{self, Fault};
use crate::servers::proxy::{Kind, Seen};
use crate::servers::{self, Server};
use crate::verbs::{Line, PART, bytes, rel};

fn lines(name: &str) -> impl Iterator<Item = Line> {
    servers::all().into_iter().map(move |server: &'static Server| Line::to(server.place(name)))
}

fn of(kind: Kind) -> impl Fn(&Seen) -> bool {
    move |seen| seen.kind == kind
}

fn stage(token: &str) -> Stage {
    Stage(token.to_owned())
}

/// Stages one output whose bytes should be `want`.
fn stage_as(
    line: &Line,
    want: Fingerprint,
    bytes: &[u8],
    cancel: &Cancel,
) -> std::result::Result<Fingerprint, StageError> {
    let path = rel("big/x.html");
    let job = Job { path: &path, expected: Some(want), body: Body::Bytes(bytes) };
    line.storage.stage_all(&stage("1"), 0, &[job], cancel).pop().unwrap()
}

#[test]
fn a_large_output_arrives_whole_by_the_usual_parts() {
    let want = bytes(70 * 1024 * 1024 + 17);
    for server in servers::all() {
        let line = Line::with(server.place("70"), |settings| {
            settings.parts = Parts::default();
            settings.storage_class = Some("STANDARD".to_owned());
            settings.cache_control = Box::new(|_| Some("max-age=7".to_owned()));
        });
        line.stage("token", &[("big/x.html", &want)]).unwrap();
        assert!(line.place.get("big/x.html").is_none(), "{}: it is seen too early", server.name);
        line.commit("token", &[("big/x.html", &want)], false).unwrap();
        line.storage.close_stage(&stage("token")).unwrap();
        let object = line.place.get("big/x.html").unwrap();
        assert!(object.bytes == want, "{}", server.name);
        assert_eq!(object.header("content-type"), Some("text/html; charset=utf-8"), "{}", server.name);
        assert_eq!(object.header("x-amz-meta-distributor-token"), Some("token"), "{}", server.name);
        assert_eq!(object.header("cache-control"), Some("max-age=7"), "{}", server.name);
        let begun = line.proxy.seen().into_iter().find(|seen| seen.kind == Kind::CreateUpload).unwrap();
        assert_eq!(begun.header("x-amz-storage-class"), Some("STANDARD"));
        assert_eq!(line.proxy.count(Kind::UploadPart), 9);
        assert!(line.place.uploads().is_empty() && line.place.keys() == ["big/x.html"], "{:?}", line.place.keys());
        assert_eq!(line.proxy.count(Kind::AbortUpload), 0, "what is complete is not aborted");
    }
}

#[test]
fn sizes_around_a_part_arrive_whole() {
    for line in lines("sizes") {
        for (at, size) in [PART, PART + 1, 2 * PART - 1, 2 * PART, 2 * PART + 1].into_iter().enumerate() {
            let (path, want) = (format!("{at}"), bytes(size));
            line.put(&[(&path, &want)], false).unwrap();
            assert!(line.place.bytes(&path) == want, "{}: {size}", line.place.server.name);
        }
        // One byte more, and it goes in parts.
        assert_eq!(line.proxy.count(Kind::CompleteUpload), 4);
        assert!(line.place.uploads().is_empty());
    }
}

#[test]
fn wrong_bytes_are_never_completed() {
    let good = bytes(PART + 100);
    let mut other = good.clone();
    other[PART + 99] ^= 1;
    let cases = [
        ("changed", other.clone(), Code::DigestMismatch),
        ("shorter", good[..PART + 99].to_vec(), Code::SizeMismatch),
        ("much shorter", good[..9].to_vec(), Code::SizeMismatch),
        ("empty", Vec::new(), Code::SizeMismatch),
        ("longer", [good.clone(), vec![0]].concat(), Code::SizeMismatch),
        ("much longer", [good.clone(), good.clone()].concat(), Code::SizeMismatch),
    ];
    for line in lines("wrong") {
        for (what, bytes, code) in &cases {
            let result = stage_as(&line, Fingerprint::of(&good), bytes, &Cancel::default());
            let Err(StageError::Source(error)) = result else { panic!("{what}: {result:?}") };
            assert_eq!(error.code, *code, "{what}");
            line.storage.close_stage(&stage("1")).unwrap();
            let left = (line.place.uploads(), line.place.keys());
            assert!(left.0.is_empty() && left.1.is_empty(), "{}: {what}: {left:?}", line.place.server.name);
        }
        assert_eq!(line.proxy.count(Kind::CompleteUpload), 0);
    }
}

#[test]
fn a_part_that_fails_ends_it_and_nothing_is_left() {
    let good = bytes(4 * PART);
    for line in lines("failed part") {
        line.proxy.fault_after(1, usize::MAX, Fault::Instead(fault::error(403, "AccessDenied")), of(Kind::UploadPart));
        let result = stage_as(&line, Fingerprint::of(&good), &good, &Cancel::default());
        let Err(StageError::Place(error)) = result else { panic!("{result:?}") };
        assert_eq!(error.code, Code::PermissionDenied);
        line.storage.close_stage(&stage("1")).unwrap();
        assert!(line.place.uploads().is_empty() && line.place.keys().is_empty());
    }
}

#[test]
fn a_signal_ends_the_sending_and_nothing_is_left() {
    let good = bytes(4 * PART);
    for line in lines("signal") {
        let cancel = Cancel::default();
        cancel.raise(15);
        let result = stage_as(&line, Fingerprint::of(&good), &good, &cancel);
        let Err(StageError::Place(error)) = result else { panic!("{result:?}") };
        assert_eq!(error.code, Code::Interrupted);
        line.storage.close_stage(&stage("1")).unwrap();
        assert!(line.place.uploads().is_empty() && line.place.keys().is_empty());
    }
}

#[test]
fn what_a_dead_process_began_is_aborted_and_nothing_else() {
    let big = bytes(PART + 1);
    for line in lines("dead") {
        let name = line.place.server.name;
        let strange = line.place.open_upload("big/x.html");
        line.stage("1", &[("big/x.html", &big), ("y", &big)]).unwrap();
        let beside = Line::to(line.place.at("below"));
        beside.stage("1", &[("z", &big)]).unwrap();
        assert_eq!(line.place.uploads().len(), 4, "{name}");
        drop(line.storage);
        let next = Line::to(line.place.clone());
        let guard = next.storage.lock(b"me", &|_| Ok(())).unwrap();
        next.storage.sweep_stages(&[stage("1")]).unwrap();
        assert_eq!(line.place.uploads().len(), 4, "{name}: it was to be kept");
        next.storage.sweep_stages(&[]).unwrap();
        guard.release(false).unwrap();
        let left = line.place.uploads();
        let ids: Vec<&str> = left.iter().map(|upload| upload.id.as_str()).collect();
        assert!(left.len() == 2 && ids.contains(&strange.as_str()), "{name}: {left:?}");
        assert_eq!(line.place.keys(), ["below/.distributor.stage-1"], "{name}");
        beside.commit("1", &[("z", &big)], false).unwrap();
        assert!(line.place.bytes("below/z") == big);
    }
}

#[test]
fn a_note_that_is_not_ours_aborts_nothing() {
    for line in lines("note") {
        line.place.open_upload("x");
        line.place.put(".distributor.stage-1", b"not ours");
        line.storage.sweep_stages(&[]).unwrap();
        assert_eq!(line.place.uploads().len(), 1);
    }
}

#[test]
fn a_completion_whose_answer_was_lost_is_done_and_one_by_somebody_else_is_not() {
    let big = bytes(PART + 1);
    for line in lines("lost") {
        let name = line.place.server.name;
        line.stage("1", &[("x", &big)]).unwrap();
        line.proxy.fault(1, Fault::ResetAfter, of(Kind::CompleteUpload));
        line.commit("1", &[("x", &big)], false).unwrap();
        // Done again, as after a crash.
        line.commit("1", &[("x", &big)], false).unwrap();
        assert!(line.place.bytes("x") == big, "{name}");
        line.storage.close_stage(&stage("1")).unwrap();

        line.stage("2", &[("y", &big)]).unwrap();
        let upload = line.place.uploads().pop().unwrap();
        line.place.call("DELETE", Some("y"), &[("uploadId", &upload.id)], &[], b"");
        let error = line.commit("2", &[("y", &big)], false).unwrap_err();
        // moto stumbles over uploads that are gone.
        assert!(error.code == Code::NotFound || name == "moto", "{name}: {error:?}");
        assert!(line.place.get("y").is_none(), "{name}");
    }
}

#[test]
fn a_name_that_was_taken_meanwhile_is_not_overwritten() {
    let Some(server) = servers::moto::server() else { return };
    let (line, big) = (Line::to(server.place("taken")), bytes(PART + 1));
    line.stage("1", &[("x", &big)]).unwrap();
    line.place.put("x", b"theirs");
    let error = line.commit("1", &[("x", &big)], false).unwrap_err();
    assert_eq!(error.code, Code::CommitIncomplete, "{error:?}");
    assert_eq!(line.place.bytes("x"), b"theirs");
    line.storage.close_stage(&stage("1")).unwrap();
    assert!(line.place.uploads().is_empty());
}

/// Makes a large output.
struct Made(Vec<u8>);

impl Make for Made {
    fn make(&self) -> Result<Vec<u8>> {
        Ok(self.0.clone())
    }
}

#[test]
fn what_turns_out_large_once_it_was_made_leaves_nothing_either() {
    let made: Vec<Made> = (1..4).map(|at| Made(bytes(PART + at))).collect();
    let paths = ["p", "q", "r"].map(rel);
    for line in lines("made") {
        let name = line.place.server.name;
        let jobs = |known: bool| -> Vec<Job<'_>> {
            let job = |(path, made): (_, &'_ Made)| (path, known.then(|| Fingerprint::of(&made.0)));
            let known: Vec<_> = paths.iter().zip(&made).map(job).collect();
            known
                .into_iter()
                .zip(&made)
                .map(|((path, expected), made)| Job { path, expected, body: Body::Made(made) })
                .collect()
        };
        let commits: Vec<Commit<'_>> =
            paths.iter().enumerate().map(|(job, path)| Commit { job, path, replace: false }).collect();
        let staged = line.storage.stage_all(&stage("1"), 0, &jobs(false), &Cancel::default());
        assert!(staged.iter().all(std::result::Result::is_ok), "{staged:?}");
        line.proxy.fault_after(2, usize::MAX, Fault::Instead(fault::error(403, "AccessDenied")), of(Kind::UploadPart));
        let error: Error = line.storage.commit_all(&stage("1"), &jobs(true), &commits).unwrap_err();
        assert_eq!(error.code, Code::PermissionDenied, "{name}");
        assert!(!line.place.uploads().is_empty(), "{name}: one of three can be completed at most");
        // Whoever comes next clears away what is left.
        line.proxy.forget();
        Line::to(line.place.clone()).storage.sweep_stages(&[]).unwrap();
        assert_eq!(line.place.uploads(), [], "{name}");

        line.storage.commit_all(&stage("1"), &jobs(true), &commits).unwrap();
        line.storage.close_stage(&stage("1")).unwrap();
        for (path, made) in paths.iter().zip(&made) {
            assert!(line.place.bytes(path.as_str()) == made.0, "{name}");
        }
        assert!(line.place.uploads().is_empty() && line.place.keys() == ["p", "q", "r"], "{:?}", line.place.keys());
    }
}

/// A file whose reader breaks.
struct Broken;

impl Read for Broken {
    fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
        Err(std::io::Error::other("the disk is gone"))
    }
}

impl Make for Broken {
    fn make(&self) -> Result<Vec<u8>> {
        Err(Error::io("x", &Broken.read(&mut []).unwrap_err()))
    }
}

#[test]
fn a_source_that_breaks_is_the_sources_fault() {
    for line in lines("source") {
        let path = rel("x");
        let want = Some(Fingerprint { size: 4 * PART as u64, ..Fingerprint::of(b"") });
        let job = Job { path: &path, expected: want, body: Body::Made(&Broken) };
        let result = line.storage.stage_all(&stage("1"), 0, &[job], &Cancel::default()).pop().unwrap();
        assert!(matches!(result, Err(StageError::Source(_))), "{result:?}");
        line.storage.close_stage(&stage("1")).unwrap();
        assert!(line.place.uploads().is_empty() && line.place.keys().is_empty());
    }
}
