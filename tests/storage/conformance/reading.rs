//! Views, searches, listings, reads.

use std::collections::BTreeMap;

use distributor::entry::Kind;
use distributor::storage::{Met, Scope};

use super::{Bench, Code, bytes, code, each, files, listed, rel, remove, remove_dirs, stop};

fn found(bench: &Bench, marker: &str) -> Vec<String> {
    let mut found = Vec::new();
    let visit = &mut |path: &[u8], met: Met| {
        assert!(matches!(met, Met::Marked), "{met:?}");
        found.push(String::from_utf8(path.to_vec()).unwrap());
    };
    bench.storage.find(marker, visit).unwrap();
    found.sort();
    found
}

#[test]
fn at_gives_views_that_see_what_lies_below_and_touches_nothing() {
    each(|bench| {
        (bench.put)("a/b/f", b"deep");
        (bench.put)("f", b"root");
        let a = bench.below("a");
        assert_eq!(bytes(a.as_ref(), "b/f").unwrap(), b"deep");
        assert_eq!(bytes(a.as_ref(), "f"), None);
        let b = a.at(&distributor::path::BundlePath::from(rel("b")));
        assert_eq!(bytes(b.as_ref(), "f").unwrap(), b"deep");
        assert_eq!(bytes(bench.again().as_ref(), "f").unwrap(), b"root");
        let _ = bench.below("new/place");
        assert_eq!(files(bench.storage.as_ref(), Scope::Source), ["a/b/f", "f"]);
        assert!(!bench.root.as_ref().is_some_and(|root| root.join("new").exists()));
    });
}

#[test]
fn find_gives_the_outermost_of_each_branch() {
    each(|bench| {
        assert_eq!(found(bench, "m.json"), Vec::<String>::new());
        for path in ["a/m.json", "a/below/m.json", "ab/m.json", "b/c/m.json", "b/other.txt", "c/xm.json"] {
            (bench.put)(path, b"");
        }
        (bench.put)(".distributor.stage-1/m.json", b"");
        (bench.put)("b/.distributor-x/m.json", b"");
        assert_eq!(found(bench, "m.json"), ["a", "ab", "b/c"]);
        (bench.put)("m.json", b"");
        assert_eq!(found(bench, "m.json"), [""], "the root marks as well");
    });
}

#[test]
fn list_shows_every_entry_once_and_a_directory_before_what_it_holds() {
    each(|bench| {
        let paths = ["a", "d/b", "d/e/c", "d/e/f/g", "z"];
        for path in paths {
            (bench.put)(path, b"x");
        }
        for scope in [Scope::Source, Scope::Destination] {
            let seen = listed(bench.storage.as_ref(), scope);
            let first: BTreeMap<&str, usize> =
                seen.iter().enumerate().map(|(at, (path, _))| (path.as_str(), at)).collect();
            assert_eq!(first.len(), seen.len(), "each once: {seen:?}");
            assert_eq!(files(bench.storage.as_ref(), scope), paths);
            for (path, kind) in &seen {
                assert_eq!(*kind, if paths.contains(&path.as_str()) { Kind::File } else { Kind::Directory });
                if let Some((above, _)) = path.rsplit_once('/')
                    && bench.root.is_some()
                {
                    assert!(first[above] < first[path.as_str()], "{path}: {seen:?}");
                }
            }
        }
    });
}

#[test]
fn a_directory_with_a_state_or_a_lock_of_its_own_is_not_looked_into() {
    each(|bench| {
        for path in ["s/.distributor.json", "s/a", "l/.distributor.lock", "l/.distributor.journal-1.json", "o/a"] {
            (bench.put)(path, b"x");
        }
        let all = listed(bench.storage.as_ref(), Scope::Destination);
        assert_eq!(all.iter().filter(|(_, kind)| *kind == Kind::Managed).count(), 2, "{all:?}");
        assert_eq!(files(bench.storage.as_ref(), Scope::Destination), ["l", "o/a", "s"]);
    });
}

#[test]
fn list_leaves_out_our_names_in_a_destination_alone() {
    let own = [".distributor.json", ".distributor.lock", ".distributor.journal-1.json", ".distributor.stage-1"];
    each(|bench| {
        for name in own {
            (bench.put)(name, b"x");
        }
        (bench.put)("a", b"x");
        // What only begins like ours is not ours, and neither is ours where it lies elsewhere.
        (bench.put)(".distributor-else", b"x");
        (bench.put)("d/.distributor.journal-1.json", b"x");
        assert_eq!(
            files(bench.storage.as_ref(), Scope::Destination),
            [".distributor-else", "a", "d/.distributor.journal-1.json"]
        );
        assert_eq!(files(bench.storage.as_ref(), Scope::Source).len(), own.len() + 3);
    });
}

#[test]
fn list_does_not_look_into_what_is_managed_below() {
    each(|bench| {
        (bench.put)("d/m/.distributor.json", b"{}");
        (bench.put)("d/m/secret", b"x");
        (bench.put)("d/f", b"x");
        let seen = listed(bench.storage.as_ref(), Scope::Destination);
        assert!(seen.contains(&("d/m".to_owned(), Kind::Managed)), "{seen:?}");
        assert_eq!(files(bench.storage.as_ref(), Scope::Destination), ["d/f", "d/m"]);
        assert_eq!(files(bench.storage.as_ref(), Scope::Source), ["d/f", "d/m/.distributor.json", "d/m/secret"]);
    });
}

#[test]
fn list_ends_with_the_error_of_the_visit() {
    each(|bench| {
        for path in ["a", "b", "c"] {
            (bench.put)(path, b"x");
        }
        let mut visits = 0;
        let result = bench.storage.list(Scope::Destination, &mut |_| {
            visits += 1;
            if visits == 2 { stop() } else { Ok(()) }
        });
        assert_eq!((code(result), visits), (Some(Code::Interrupted), 2));
    });
}

#[test]
fn a_destination_that_is_not_there_has_no_entries_and_is_not_disturbed() {
    each(|bench| {
        let nowhere = bench.below("no/where");
        assert_eq!(listed(nowhere.as_ref(), Scope::Destination), []);
        assert_eq!(nowhere.own_names("").unwrap(), Vec::<String>::new());
        assert!(!nowhere.disturbed(".distributor.journal-1.json").unwrap());
        assert!(!nowhere.is_locked().unwrap());
        assert!(nowhere.get_small(".distributor.json", 9).unwrap().is_none());
        assert_eq!(nowhere.exist_many(&[&rel("a"), &rel("b/c")]).unwrap(), [false, false]);
        remove(nowhere.as_ref(), &["a", "b/c"]);
        nowhere.remove_small(".distributor.json").unwrap();
        remove_dirs(nowhere.as_ref(), &["a"]);
        nowhere.flush_dirs(&[b"", b"a"]).unwrap();
        nowhere.sweep_stages(&[]).unwrap();
        assert!(!bench.root.as_ref().is_some_and(|root| root.join("no").exists()));
    });
}

#[test]
fn exist_many_answers_in_order() {
    each(|bench| {
        (bench.put)("a", b"x");
        (bench.put)("d/b", b"");
        let paths = ["zz", "a", "d/none", "d/b", "none/b", "a/below"].map(rel);
        let paths: Vec<_> = paths.iter().collect();
        assert_eq!(bench.storage.exist_many(&paths).unwrap(), [false, true, false, true, false, false]);
        assert_eq!(bench.storage.exist_many(&[]).unwrap(), Vec::<bool>::new());
    });
}

#[test]
fn read_gives_one_whole_version() {
    each(|bench| {
        let old: Vec<u8> = (0..200_000_u32).map(|at| u8::try_from(at % 251).unwrap()).collect();
        (bench.put)("d/f", &old);
        let mut opened = bench.storage.read(&rel("d/f")).unwrap();
        // Replaced as a publication does it, while somebody reads.
        let load = super::Load::new("1", &[("d/f", b"new")]);
        load.stage(bench.storage.as_ref());
        load.commit(bench.storage.as_ref(), true).unwrap();
        let mut bytes = Vec::new();
        opened.body.read_to_end(&mut bytes).unwrap();
        assert!(bytes == old && opened.size == old.len() as u64);
        assert_eq!(bench.bytes("d/f").unwrap(), b"new");
        for path in ["none", "none/f", "d/f/below"] {
            assert_eq!(code(bench.storage.read(&rel(path))), Some(Code::NotFound), "{path}");
        }
    });
}
