//! What a history is made of, and how it is drawn.

use std::collections::BTreeMap;

use distributor::bundle::{Digest, FileEntry, Manifest, SCHEMA_VERSION, content_digest};
use distributor::config::{OnConflict, OnNewer, OnOlder, Reconciliation, TakeoverMode};
use distributor::path::RelPath;
use distributor::timestamp::Timestamp;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};

use crate::mortal::End;

/// Paths of outputs: below one another, the same but for case, pages and what belongs to them.
pub(crate) const PATHS: &[&str] =
    &["A", "A/b", "SS", "a", "a.html", "a/b", "a/b/c", "d/X.css", "d/index.html", "d/x.css", "index.html", "ß"];
/// Further paths that hands use: none of them is ever published.
const STRANGE: &[&str] = &[".distributorish", "a\\b", "a/own", "d", "d/own/x", "manifest.json", "own/x", "tab\there"];
/// What files hold.
const TEXTS: &[&str] = &["", "x", "y", "longer"];
/// When bundles were made, and how old that makes them: two ways to write one instant.
const CREATED: &[(&str, usize)] = &[
    ("2026-06-01T00:00:00Z", 0),
    ("2026-06-01T02:00:00+02:00", 0),
    ("2026-06-02T00:00:00Z", 1),
    ("2026-06-03T00:00:00Z", 2),
    ("2026-06-04T00:00:00Z", 3),
    ("2026-06-05T00:00:00.5Z", 4),
];
/// Pipelines and their destinations.
pub(crate) const OWNERS: &[(&str, &str)] = &[("p", "d"), ("p", "e"), ("q", "d")];

#[derive(Clone, Debug)]
pub(crate) struct Bundle {
    pub(crate) id: &'static str,
    created: usize,
    files: BTreeMap<&'static str, usize>,
    /// Whether its manifest lists the files in the other order.
    backwards: bool,
}

impl Bundle {
    /// A bundle with these files, of the time number `created`.
    pub(crate) fn of(created: usize, files: &[&'static str]) -> Bundle {
        let files = files.iter().map(|path| (*path, created % TEXTS.len())).collect();
        Bundle { id: "s", created, files, backwards: false }
    }

    pub(crate) fn age(&self) -> usize {
        CREATED[self.created].1
    }

    pub(crate) fn files(&self) -> BTreeMap<&'static str, &'static str> {
        self.files.iter().map(|(path, text)| (*path, TEXTS[*text])).collect()
    }

    pub(crate) fn manifest(&self) -> Manifest {
        let entry = |(path, text): (&str, &str)| FileEntry {
            path: RelPath::parse(path).unwrap(),
            sha256: Digest::of(text.as_bytes()),
            size: text.len() as u64,
        };
        let mut files: Vec<FileEntry> = self.files().into_iter().map(entry).collect();
        if self.backwards {
            files.reverse();
        }
        let created = Timestamp::parse(CREATED[self.created].0).unwrap();
        let digest = content_digest(&files);
        Manifest { schema_version: SCHEMA_VERSION, id: self.id.to_owned(), digest, created, files }
    }
}

/// One run that is asked for.
#[derive(Clone, Debug)]
pub(crate) struct Ask {
    /// Counted from where the history has come to: later steps have newer bundles.
    pub(crate) bundle: usize,
    pub(crate) owner: usize,
    pub(crate) older: OnOlder,
    pub(crate) newer: OnNewer,
    pub(crate) conflict: OnConflict,
    pub(crate) reconciliation: Reconciliation,
    pub(crate) takeover: TakeoverMode,
    pub(crate) force: bool,
    pub(crate) republish: bool,
    /// Whether a file of the bundle is not what the manifest says.
    pub(crate) broken: bool,
}

/// What hands put somewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Thing {
    File,
    Link,
    Dir,
    /// A directory that is a destination of its own.
    Managed,
}

/// What hands do to the state file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Harm {
    Delete,
    Garble,
    Cut,
    ExtraKey,
    /// A directory takes its place.
    Replace,
}

/// What hands do at the destination.
#[derive(Clone, Debug)]
pub(crate) enum Edit {
    /// `over`: in the place of whatever is there.
    Put {
        path: &'static str,
        thing: Thing,
        over: bool,
    },
    /// Other bytes in a published file.
    Change(u8),
    DeleteManaged(u8),
    /// Something stands where a published file was.
    Swap(u8, Thing),
    /// Moves aside what nobody recorded.
    Aside(u8),
    State(Harm),
    /// A file where a publication that was cut short still has to create one.
    InTheWay(u8),
    /// A directory goes with all that is in it.
    RemoveDir(u8),
    /// Everything goes.
    Wipe,
}

#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// A run; with `look` a dry run first.
    Run {
        ask: Ask,
        look: bool,
    },
    Look(Ask),
    /// A run that ends at the call number `at`.
    Cut {
        ask: Ask,
        at: usize,
        end: End,
    },
    Edit(Edit),
}

#[derive(Clone, Debug)]
pub(crate) struct History {
    pub(crate) bundles: Vec<Bundle>,
    pub(crate) steps: Vec<Step>,
}

fn bundle() -> impl Strategy<Value = Bundle> {
    let texts = prop::collection::vec(0..TEXTS.len(), PATHS.len());
    let paths = subsequence(PATHS, 1..6);
    (select(vec!["s", "s", "s", "s", "s", "s", "t"]), 0..CREATED.len(), paths, texts, any::<bool>()).prop_map(
        |(id, created, paths, texts, backwards)| {
            let mut files = BTreeMap::new();
            for (path, text) in paths.into_iter().zip(texts) {
                // One that has others below it can't stand beside them.
                let nested = |other: &&str| within(path, other);
                if !files.keys().any(nested) {
                    files.insert(path, text);
                }
            }
            Bundle { id, created, files, backwards }
        },
    )
}

/// Whether `path` lies below `dir`.
pub(crate) fn within(path: &str, dir: &str) -> bool {
    path.strip_prefix(dir).is_some_and(|rest| rest.starts_with('/'))
}

fn ask() -> impl Strategy<Value = Ask> {
    let older = select(vec![OnOlder::Replace, OnOlder::Replace, OnOlder::Replace, OnOlder::Skip, OnOlder::Fail]);
    let newer = select(vec![OnNewer::Skip, OnNewer::Replace, OnNewer::Replace, OnNewer::Fail]);
    let conflict = select(vec![OnConflict::Fail, OnConflict::Replace]);
    let reconciliation = select(vec![Reconciliation::Replace, Reconciliation::Merge, Reconciliation::Merge]);
    let takeover = select(vec![TakeoverMode::Never, TakeoverMode::Source, TakeoverMode::Managed]);
    let flags = (prop::bool::weighted(0.3), prop::bool::weighted(0.2), prop::bool::weighted(0.05));
    let who = (0..3_usize, select([vec![0; 14], vec![1, 1, 2]].concat()));
    (who, older, newer, conflict, reconciliation, takeover, flags).prop_map(
        |((bundle, owner), older, newer, conflict, reconciliation, takeover, (force, republish, broken))| Ask {
            bundle,
            owner,
            older,
            newer,
            conflict,
            reconciliation,
            takeover,
            force,
            republish,
            broken,
        },
    )
}

fn thing() -> impl Strategy<Value = Thing> {
    prop_oneof![
        6 => Just(Thing::File),
        2 => Just(Thing::Link),
        3 => Just(Thing::Dir),
        1 => Just(Thing::Managed),
    ]
}

fn edit() -> impl Strategy<Value = Edit> {
    let path = select([PATHS, STRANGE].concat());
    let harm = select(vec![Harm::Delete, Harm::Garble, Harm::Cut, Harm::ExtraKey, Harm::Replace]);
    prop_oneof![
        4 => (path, thing(), prop::bool::weighted(0.2)).prop_map(|(path, thing, over)| Edit::Put { path, thing, over }),
        2 => any::<u8>().prop_map(Edit::Change),
        3 => any::<u8>().prop_map(Edit::DeleteManaged),
        1 => (any::<u8>(), thing()).prop_map(|(at, thing)| Edit::Swap(at, thing)),
        6 => any::<u8>().prop_map(Edit::Aside),
        3 => any::<u8>().prop_map(Edit::InTheWay),
        1 => any::<u8>().prop_map(Edit::RemoveDir),
        1 => harm.prop_map(Edit::State),
        1 => Just(Edit::Wipe),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let end = select(vec![End::KilledBefore, End::KilledAfter, End::Fails]);
    prop_oneof![
        6 => (ask(), any::<bool>()).prop_map(|(ask, look)| Step::Run { ask, look }),
        1 => ask().prop_map(Step::Look),
        4 => (ask(), 1..48_usize, end).prop_map(|(ask, at, end)| Step::Cut { ask, at, end }),
        5 => edit().prop_map(Step::Edit),
    ]
}

pub(crate) fn history() -> impl Strategy<Value = History> {
    let (bundles, steps) = (prop::collection::vec(bundle(), 1..8), prop::collection::vec(step(), 1..24));
    (bundles, steps).prop_map(|(mut bundles, steps)| {
        bundles.sort_by_key(Bundle::age);
        History { bundles, steps }
    })
}
