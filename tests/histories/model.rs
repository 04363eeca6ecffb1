//! What the contract says: what is decided, and what stands afterwards. Written from its text, not from the program's.

use std::collections::{BTreeMap, BTreeSet};

use distributor::config::{OnConflict, OnNewer, OnOlder, Reconciliation, TakeoverMode};
use distributor::error::Code;
use distributor::names::STATE;
use distributor::plan::{Action, Reason};

use crate::place::{Node, Tree};
use crate::steps::{Ask, Bundle, within};

/// A recorded output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) text: String,
    pub(crate) url: Option<String>,
    pub(crate) created: usize,
    pub(crate) updated: usize,
}

/// A state that can be read.
#[derive(Clone, Debug)]
pub(crate) struct Known {
    pub(crate) owner: usize,
    pub(crate) bundle: Bundle,
    pub(crate) created: usize,
    pub(crate) published: usize,
    pub(crate) updated: usize,
    pub(crate) reconciliation: Reconciliation,
    pub(crate) primary: Option<String>,
    pub(crate) outputs: BTreeMap<String, Record>,
}

#[derive(Clone, Debug)]
pub(crate) enum State {
    Absent,
    /// Bytes that are no state.
    Broken(Vec<u8>),
    /// No file at all.
    Odd,
    Known(Box<Known>),
}

/// What was decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Done {
    pub(crate) action: Action,
    pub(crate) takeover: Option<Reason>,
    pub(crate) forced: Option<Code>,
    /// Paths that are kept without being written, and paths that go.
    pub(crate) retained: BTreeSet<String>,
    pub(crate) deleted: BTreeSet<String>,
}

pub(crate) type Verdict = Result<Done, Code>;

/// The destination.
#[derive(Clone, Debug)]
pub(crate) struct Model {
    pub(crate) tree: Tree,
    pub(crate) state: State,
    /// Owners whose outputs may not be those of their bundles, where only they can make them so, each with what a forced
    /// replacement of it that was cut short may still take away.
    pub(crate) marks: BTreeMap<usize, Option<BTreeSet<String>>>,
    pub(crate) has_dirs: bool,
}

/// What lies there, seen against the records.
struct Seen<'a> {
    present: BTreeSet<&'a str>,
    unmanaged: BTreeSet<&'a str>,
    managed: BTreeSet<&'a str>,
}

impl Seen<'_> {
    /// What nobody recorded and stands against a publication: for a merge, only what is in the way of an output.
    fn against(&self, files: &BTreeMap<&str, &str>, merges: bool) -> Option<Code> {
        let in_the_way = |path: &&&str| {
            files.keys().any(|planned| planned == *path || within(planned, path) || within(path, planned))
        };
        if merges {
            self.unmanaged.iter().find(in_the_way).map(|_| Code::UnmanagedPath)
        } else {
            self.unmanaged.first().map(|_| Code::UnmanagedContent)
        }
    }
}

pub(crate) fn above(path: &str) -> impl Iterator<Item = &str> {
    path.rmatch_indices('/').map(move |(at, _)| &path[..at])
}

pub(crate) fn is_page(path: &str) -> bool {
    path.rsplit('.').next() == Some("html")
}

fn done(action: Action) -> Done {
    Done { action, takeover: None, forced: None, retained: BTreeSet::new(), deleted: BTreeSet::new() }
}

fn forced(code: Code) -> Done {
    Done { forced: Some(code), ..done(Action::ForceReplace) }
}

fn conflict(ask: &Ask, code: Code) -> Verdict {
    if ask.force && ask.conflict == OnConflict::Replace { Ok(forced(code)) } else { Err(code) }
}

/// The URL of an output; one of the owners has them.
fn url(owner: usize, path: &str) -> Option<String> {
    (owner == 1).then(|| format!("https://x.example/{}", path.replace('ß', "%C3%9F")))
}

/// Where to start reading: an index.html, else any page, the shallowest first.
fn primary<'a>(paths: impl Iterator<Item = &'a str> + Clone) -> Option<&'a str> {
    let shallowest = |paths: Vec<&'a str>| paths.into_iter().min_by_key(|path| (path.matches('/').count(), *path));
    let index = paths.clone().filter(|path| path.rsplit('/').next() == Some("index.html")).collect();
    shallowest(index).or_else(|| shallowest(paths.filter(|path| is_page(path)).collect()))
}

impl Model {
    pub(crate) fn new(has_dirs: bool) -> Model {
        Model { tree: Tree::new(), state: State::Absent, marks: BTreeMap::new(), has_dirs }
    }

    pub(crate) fn records(&self) -> BTreeMap<String, Record> {
        match &self.state {
            State::Known(known) => known.outputs.clone(),
            _ => BTreeMap::new(),
        }
    }

    /// What lies there and nobody recorded; destinations below with all that they hold.
    pub(crate) fn strangers(&self) -> BTreeSet<&str> {
        let seen = self.see();
        let inside = |path: &&str| seen.managed.iter().any(|dir| within(path, dir));
        seen.unmanaged.iter().copied().chain(self.tree.keys().map(String::as_str).filter(inside)).collect()
    }

    fn see(&self) -> Seen<'_> {
        let recorded = match &self.state {
            State::Known(known) => known.outputs.keys().map(String::as_str).collect(),
            _ => BTreeSet::new(),
        };
        let managed: BTreeSet<&str> =
            self.tree.keys().filter_map(|path| path.strip_suffix(STATE)?.strip_suffix('/')).collect();
        let (mut present, mut unmanaged) = (BTreeSet::new(), BTreeSet::new());
        for (path, node) in self.tree.iter().filter(|(path, _)| !managed.iter().any(|dir| within(path, dir))) {
            match node {
                Node::Dir => {}
                Node::File(_) if recorded.contains(path.as_str()) => drop(present.insert(path.as_str())),
                Node::File(_) | Node::Link => drop(unmanaged.insert(path.as_str())),
            }
        }
        Seen { present, unmanaged, managed }
    }

    /// The decision table.
    fn table(&self, ask: &Ask, bundle: &Bundle) -> Verdict {
        let state = match &self.state {
            State::Absent => return Ok(done(Action::PublishNew)),
            State::Odd => return Err(Code::InvalidState),
            State::Broken(_) => return conflict(ask, Code::InvalidState),
            State::Known(state) => state,
        };
        let take_over = |reason| Done { takeover: Some(reason), ..done(Action::ReplaceTakeover) };
        if state.owner != ask.owner {
            let lets = ask.takeover == TakeoverMode::Managed;
            return if lets { Ok(take_over(Reason::Identity)) } else { conflict(ask, Code::IdentityMismatch) };
        }
        if state.bundle.id != bundle.id {
            let lets = ask.takeover != TakeoverMode::Never;
            return if lets { Ok(take_over(Reason::Source)) } else { conflict(ask, Code::SourceMismatch) };
        }
        if state.bundle.age() == bundle.age() {
            if state.bundle.files() != bundle.files() {
                return conflict(ask, Code::SourceConflict);
            }
            let again = ask.republish || self.marks.contains_key(&ask.owner);
            return Ok(done(if again { Action::Republish } else { Action::SkipSame }));
        }
        match by_age(ask, state, bundle) {
            // What is half-published can't be left as it is.
            Ok(done) if done.action.is_skip() && self.marks.contains_key(&ask.owner) => Err(Code::CommitIncomplete),
            verdict => verdict,
        }
    }

    /// Whether what stands against a publication is what a forced one of the same owner was cut short of taking away.
    fn goes_on(&self, ask: &Ask, seen: &Seen<'_>) -> bool {
        let is_own = match &self.state {
            State::Known(known) => known.owner == ask.owner,
            _ => true,
        };
        let paths = self.marks.get(&ask.owner).and_then(Option::as_ref);
        is_own && paths.is_some_and(|paths| seen.unmanaged.iter().all(|path| paths.contains(*path)))
    }

    /// What a run decides, and what stands once it is done. A dry run decides the same.
    pub(crate) fn run(&self, ask: &Ask, bundle: &Bundle, now: usize) -> (Verdict, Model) {
        let verdict = self.table(ask, bundle).and_then(|done| self.rules(ask, bundle, done));
        let mut next = self.clone();
        match &verdict {
            Ok(done) if !done.action.is_skip() => next.publish(ask, bundle, done, now),
            _ => {}
        }
        (verdict, next)
    }

    /// The path rules.
    fn rules(&self, ask: &Ask, bundle: &Bundle, mut done: Done) -> Verdict {
        if done.action.is_skip() {
            return Ok(done);
        }
        let (seen, files) = (self.see(), bundle.files());
        let merges = ask.reconciliation == Reconciliation::Merge
            && matches!(done.action, Action::ReplaceOlder | Action::Republish);
        match seen.against(&files, merges) {
            Some(code) if done.action != Action::ForceReplace => {
                if !ask.force && !self.goes_on(ask, &seen) {
                    return Err(code);
                }
                done = forced(code);
            }
            _ => {}
        }
        let force = done.action == Action::ForceReplace;
        if force && !seen.managed.is_empty() {
            return Err(Code::ManagedBelow);
        }
        let foreign = |path: &str| seen.managed.iter().any(|dir| path == *dir || within(path, dir));
        if files.keys().any(|path| foreign(path)) {
            return Err(Code::PathOwnedByOther);
        }
        if files.keys().any(|path| seen.managed.iter().any(|dir| within(dir, path))) {
            return Err(Code::OutputCollision);
        }
        if merges && !force {
            let kept = |path: &String| !files.contains_key(path.as_str()) && !foreign(path);
            done.retained = self.records().into_keys().filter(kept).collect();
            if done.retained.iter().any(|old| files.keys().any(|new| within(old, new) || within(new, old))) {
                return Err(Code::OutputCollision);
            }
        }
        let gone = seen.present.into_iter().chain(if force { seen.unmanaged } else { BTreeSet::new() });
        let written = |path: &str| files.contains_key(path) && matches!(self.tree[path], Node::File(_));
        let gone = gone.filter(|path| !written(path)).map(ToOwned::to_owned);
        done.deleted = gone.filter(|path| !done.retained.contains(path)).collect();
        Ok(done)
    }

    fn publish(&mut self, ask: &Ask, bundle: &Bundle, done: &Done, now: usize) {
        let old = match &self.state {
            State::Known(known) if done.action != Action::ForceReplace => Some(known.clone()),
            _ => None,
        };
        let files = bundle.files();
        if done.action == Action::ForceReplace {
            self.tree.clear();
        }
        self.tree.retain(|path, _| !done.deleted.contains(path));
        // Directories without content give way to outputs.
        self.tree
            .retain(|path, node| *node != Node::Dir || !files.keys().any(|file| file == path || within(path, file)));
        for (path, text) in &files {
            self.tree.insert((*path).to_owned(), Node::File(text.as_bytes().to_vec()));
            let dirs = above(path).filter(|_| self.has_dirs).map(|dir| (dir.to_owned(), Node::Dir));
            self.tree.extend(dirs.collect::<Vec<_>>());
        }
        let emptied: BTreeSet<&str> = done.deleted.iter().flat_map(|path| above(path)).collect();
        for dir in emptied.into_iter().rev() {
            let full = self.tree.keys().any(|path| within(path, dir));
            if !full && self.tree.get(dir) == Some(&Node::Dir) {
                self.tree.remove(dir);
            }
        }
        self.marks.remove(&ask.owner);
        self.state = State::Known(Box::new(known(ask, bundle, done, old.as_deref(), now)));
    }
}

/// By the age of what is there, where it differs from that of the bundle.
fn by_age(ask: &Ask, state: &Known, bundle: &Bundle) -> Verdict {
    if state.bundle.age() < bundle.age() {
        return match ask.older {
            OnOlder::Replace => Ok(done(Action::ReplaceOlder)),
            OnOlder::Skip => Ok(done(Action::SkipDestinationOlder)),
            OnOlder::Fail => Err(Code::DestinationOlder),
        };
    }
    match ask.newer {
        OnNewer::Fail => Err(Code::DestinationNewer),
        OnNewer::Replace if ask.force => Ok(forced(Code::DestinationNewer)),
        OnNewer::Skip | OnNewer::Replace => Ok(done(Action::SkipDestinationNewer)),
    }
}

/// The state after a publication.
fn known(ask: &Ask, bundle: &Bundle, done: &Done, old: Option<&Known>, now: usize) -> Known {
    let before = |path: &str| old.and_then(|old| old.outputs.get(path));
    let written = bundle.files().into_iter().map(|(path, text)| {
        let created = before(path).map_or(now, |record| record.created);
        (path.to_owned(), Record { text: text.to_owned(), url: url(ask.owner, path), created, updated: now })
    });
    let retained = done.retained.iter().map(|path| (path.clone(), before(path).unwrap().clone()));
    Known {
        owner: ask.owner,
        bundle: bundle.clone(),
        created: old.map_or(now, |old| old.created),
        published: now,
        updated: now,
        reconciliation: ask.reconciliation,
        primary: primary(bundle.files().into_keys().collect::<Vec<_>>().into_iter())
            .and_then(|path| url(ask.owner, path)),
        outputs: written.chain(retained).collect(),
    }
}
