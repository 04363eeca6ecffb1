//! Small files, and the names of ours.

use distributor::names::{JOURNAL_PREFIX, STAGE_PREFIX, STATE};
use distributor::storage::{Expected, Scope};

use super::{Code, code, each, files};

const JOURNAL: &str = ".distributor.journal-0123456789abcdef.json";

#[test]
fn small_files_are_written_read_and_removed_whole() {
    each(|bench| {
        let storage = bench.storage.as_ref();
        assert!(storage.get_small(STATE, 100).unwrap().is_none());
        for bytes in [&b"one"[..], b"", b"another"] {
            storage.put_small(STATE, bytes, Expected::Any).unwrap();
            assert_eq!(bench.again().get_small(STATE, 100).unwrap().unwrap().bytes, bytes);
        }
        assert_eq!(storage.get_small(STATE, 3).unwrap().unwrap().bytes, b"ano");
        assert_eq!(storage.get_small(STATE, 0).unwrap().unwrap().bytes, b"");
        assert_eq!(files(storage, Scope::Source), [STATE], "nothing else is left");
        storage.remove_small(STATE).unwrap();
        assert!(storage.get_small(STATE, 100).unwrap().is_none());
        storage.remove_small(STATE).unwrap();
    });
}

#[test]
fn equal_versions_are_equal_bytes() {
    each(|bench| {
        let storage = bench.storage.as_ref();
        let version = |bytes: &[u8]| {
            storage.put_small(STATE, bytes, Expected::Any).unwrap();
            storage.get_small(STATE, 100).unwrap().unwrap().version
        };
        let (one, other) = (version(b"one"), version(b"two"));
        assert!(one != other && other != version(b"") && one != version(b"one "));
        // However much of it is read, and by whomever: until it is written again it is this version.
        let now = version(b"onward");
        for limit in [0, 2, 100] {
            assert_eq!(bench.again().get_small(STATE, limit).unwrap().unwrap().version, now);
        }
        assert_eq!(code(storage.put_small(STATE, b"next", Expected::Version(Some(&now)))), None);
    });
}

#[test]
fn a_small_file_that_is_not_as_expected_is_not_written() {
    each(|bench| {
        let storage = bench.storage.as_ref();
        let put = |bytes: &[u8], expected| code(storage.put_small(STATE, bytes, expected));
        let now = || storage.get_small(STATE, 100).unwrap();
        assert_eq!(put(b"1", Expected::Version(None)), None);
        let first = now().unwrap().version;
        assert_eq!(put(b"2", Expected::Version(None)), Some(Code::PreconditionFailed));
        assert_eq!(now().unwrap().bytes, b"1");
        assert_eq!(put(b"2", Expected::Version(Some(&first))), None);
        assert_eq!(put(b"3", Expected::Version(Some(&first))), Some(Code::PreconditionFailed));
        assert_eq!(now().unwrap().bytes, b"2");
        storage.remove_small(STATE).unwrap();
        assert_eq!(put(b"3", Expected::Version(Some(&first))), Some(Code::PreconditionFailed));
        assert!(now().is_none());
        assert_eq!(files(storage, Scope::Source), Vec::<String>::new(), "nothing on its way is left");
    });
}

#[test]
fn own_names_are_ours_alone_and_sorted() {
    each(|bench| {
        for name in ["c", "a", "b"] {
            (bench.put)(&format!("{JOURNAL_PREFIX}{name}.json"), b"");
        }
        (bench.put)(STATE, b"");
        (bench.put)(".distributor-else", b"");
        (bench.put)("other", b"");
        (bench.put)("d/.distributor.journal-d.json", b"");
        let journals = ["a", "b", "c"].map(|name| format!("{JOURNAL_PREFIX}{name}.json"));
        let names = |prefix| bench.storage.own_names(prefix).unwrap();
        assert_eq!(names(JOURNAL_PREFIX), journals);
        assert_eq!(names(STAGE_PREFIX), Vec::<String>::new());
        assert_eq!(names(".distributor"), [&journals[..], &[STATE.to_owned()]].concat());
        assert_eq!(names("other"), Vec::<String>::new());
    });
}

#[test]
fn a_journal_disturbs_its_owner_and_a_state_nobody() {
    each(|bench| {
        let disturbed = || bench.again().disturbed(JOURNAL).unwrap();
        let locked = || bench.storage.lock(b"me\n", &|_| Ok(())).unwrap();
        assert!(!disturbed());
        bench.storage.put_small(STATE, b"{}", Expected::Any).unwrap();
        assert!(!disturbed());
        let guard = locked();
        bench.storage.put_small(JOURNAL, b"{}", Expected::Any).unwrap();
        guard.release(true).unwrap();
        assert!(disturbed());
        let guard = locked();
        bench.storage.remove_small(JOURNAL).unwrap();
        guard.release(false).unwrap();
        assert!(!disturbed());
    });
}
