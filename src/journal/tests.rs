use super::*;

fn begun() -> Journal {
    Journal::begin(Begin {
        kind: Kind::Publish,
        pipeline_id: "p",
        destination_id: "d",
        source_id: "s",
        source_digest: Digest::of(b""),
        started_at: Timestamp::from_instant(time::macros::datetime!(2026-06-04 12:00 UTC)),
        holder: Holder::default(),
        stage: "0123456789abcdef",
        dirty: false,
    })
}

#[test]
fn a_journal_is_read_as_it_was_written() {
    let path = RelPath::parse("a/b").unwrap();
    let (job, sha256) = (0, Digest::of(b"x"));
    let operations = vec![
        Operation::Remove { path: (&path).into() },
        Operation::RemoveDir { path: b"a/b/.odd\\\xff".to_vec().into() },
        Operation::MakeDir { path: "a".to_owned() },
        Operation::Create { path: path.clone(), job, sha256, size: 1 },
        Operation::Replace { path, job, sha256, size: 1 },
    ];
    let target = Target { job: 1, sha256 };
    let journal = begun().commit(operations, target, false);
    let again = Journal::parse(&journal.to_json()).unwrap();
    assert_eq!((again.phase, again.target), (Phase::Committing, Some(target)));
    assert_eq!(again.operations, journal.operations);
    assert_eq!((again.written().count(), again.created().count()), (2, 1));
    assert!(Journal::parse(&begun().to_json()).is_ok());
}

#[test]
fn a_mark_names_no_paths_but_those_that_its_own_owner_may_still_take_away() {
    let path = |name: &str| RelPath::parse(name).unwrap();
    let (job, sha256) = (0, Digest::of(b"x"));
    let operations = || {
        vec![
            Operation::Remove { path: (&path("gone")).into() },
            Operation::Create { path: path("new"), job, sha256, size: 1 },
            Operation::Replace { path: path("old"), job, sha256, size: 1 },
        ]
    };
    let target = Target { job: 1, sha256 };
    for (is_forced, owner, paths) in [
        (false, ("p", "d"), None),
        (true, ("p", "e"), None),
        (true, ("p", "d"), Some(BTreeSet::from([(&path("gone")).into(), (&path("old")).into()]))),
    ] {
        let mark = begun().commit(operations(), target, is_forced).mark(owner.0, owner.1);
        let again = Journal::parse(&mark.to_json()).unwrap();
        assert_eq!((again.phase, again.dirty, again.operations.len()), (Phase::Staging, true, 0));
        assert_eq!((again.name(), again.forced), (name(owner.0, owner.1), paths));
    }
}

#[test]
fn what_leads_out_or_is_not_whole_is_no_journal() {
    for path in ["..", "a/../..", "/etc", "a//b", ".", ""] {
        let make = vec![Operation::MakeDir { path: path.to_owned() }];
        let journal = begun().commit(make, Target { job: 0, sha256: Digest::of(b"") }, false);
        assert!(Journal::parse(&journal.to_json()).is_err(), "{path:?}");
    }
    for stage in ["", "../x", "a/b", "a.b"] {
        let journal = Journal { stage: stage.to_owned(), ..begun() };
        assert!(Journal::parse(&journal.to_json()).is_err(), "{stage:?}");
    }
    let torn = begun().to_json();
    assert!(Journal::parse(&torn[..torn.len() - 1]).is_err());
    let no_target = Journal { phase: Phase::Committing, ..begun() };
    assert!(Journal::parse(&no_target.to_json()).is_err());
}

#[test]
fn the_name_is_made_of_pipeline_and_destination() {
    let hex = &Digest::of(b"reports\0archive").hex()[..16];
    assert_eq!(name("reports", "archive"), format!(".distributor.journal-{hex}.json"));
}
