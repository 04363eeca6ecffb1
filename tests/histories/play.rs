//! Plays a history: each step at the place and in the model, and compares.

use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use distributor::config::{self, Destination, Transfer};
use distributor::error::{Code, Error, Warning};
use distributor::host::{Cancel, Holder};
use distributor::journal::{self, Journal, Phase};
use distributor::names::{JOURNAL_PREFIX, LOCK, STATE};
use distributor::path::{BundlePath, RawPath};
use distributor::plan::Wanted;
use distributor::publish::{Publication, Published, World};
use distributor::source::{Checked, Files};
use distributor::state;
use distributor::storage::{Stage, Storage};

use crate::check;
use crate::memory::Memory;
use crate::model::{Known, Model, State, Verdict};
use crate::mortal::{End, Fate, Mortal};
use crate::place::{Node, Place, Tree};
use crate::steps::{Ask, Bundle, History, OWNERS, Step};

const CONFIG: &str = "pipelines:
  - id: p
    source: {backend: local, path: /in}
    destinations:
      - {id: d, backend: local, path: /out}
      - {id: e, backend: local, path: /e, links: {base_url: 'https://x.example/'}}
";

pub(crate) struct Player<'a> {
    pub(crate) history: &'a History,
    pub(crate) place: &'a dyn Place,
    pub(crate) model: Model,
    /// The number of the step, and the time.
    pub(crate) now: usize,
    /// What hands did while something was half done.
    pub(crate) touched: BTreeSet<String>,
}

/// The destinations of the two kinds of owners.
static DESTINATIONS: LazyLock<[Destination; 2]> = LazyLock::new(|| {
    let world = config::World { home: None, state_directory: None, read: &|path| std::fs::read(path) };
    let (mut config, _) = config::parse(CONFIG.as_bytes(), std::path::Path::new("/site.yml"), &world).unwrap();
    let e = config.pipelines[0].destinations.remove(1);
    [config.pipelines[0].destinations.remove(0), e]
});

pub(crate) fn play(history: &History, place: &dyn Place) {
    let (model, touched) = (Model::new(place.has_dirs()), BTreeSet::new());
    let mut player = Player { history, place, model, now: 0, touched };
    for (at, step) in history.steps.iter().enumerate() {
        player.now = at;
        match step {
            Step::Run { ask, look } => player.run(ask, *look),
            Step::Look(ask) => drop(player.look(ask)),
            Step::Cut { ask, at, end } => player.cut(ask, *at, *end),
            Step::Edit(edit) => player.edit(edit),
        }
        place.exists();
    }
}

/// Which of the two: a dry run, or a run.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Look,
    Run,
}

type Told = (Result<Published, Error>, Vec<Warning>);

impl Player<'_> {
    pub(crate) fn what(&self, step: &str) -> String {
        format!("step {}, {step}", self.now)
    }

    fn bundle(&self, ask: &Ask) -> &Bundle {
        &self.history.bundles[(self.now / 3 + ask.bundle) % self.history.bundles.len()]
    }

    fn destination(ask: &Ask) -> Destination {
        let transfer =
            Transfer { on_destination_older: ask.older, on_destination_newer: ask.newer, on_conflict: ask.conflict };
        let base = DESTINATIONS[usize::from(OWNERS[ask.owner].1 == "e")].clone();
        Destination { transfer, reconciliation: ask.reconciliation, takeover: ask.takeover, ..base }
    }

    fn publish(&self, ask: &Ask, target: &dyn Storage, way: Way) -> Told {
        let (bundle, destination, source) = (self.bundle(ask), Self::destination(ask), Memory::default());
        for (path, text) in bundle.files() {
            source.put(path, if ask.broken { "something else" } else { text }.as_bytes());
        }
        let wanted = Wanted {
            pipeline_id: OWNERS[ask.owner].0,
            destination: &destination,
            manifest: &bundle.manifest(),
            dirty: false,
            force: ask.force,
            republish: ask.republish,
        };
        self.go(wanted, &source, target, way)
    }

    fn go(&self, wanted: Wanted<'_>, source: &dyn Storage, target: &dyn Storage, way: Way) -> Told {
        let now = self.now;
        let world = World {
            cancel: &Cancel::default(),
            now: &|| check::time(now),
            token: &|| format!("{now:016x}"),
            holder: &Holder::default(),
            lock_timeout: Duration::ZERO,
            waiting: &|_| {},
        };
        let checked = Checked::new(1);
        let source = &Files::new(source, wanted.manifest, &checked, None, world.cancel);
        let publication = Publication { wanted, source, at: &BundlePath::ROOT, target, world: &world };
        let mut warnings = Vec::new();
        let result = match way {
            Way::Look => publication.look(&mut warnings),
            Way::Run => publication.run(&mut warnings),
        };
        (result, warnings)
    }

    /// Somebody who may do nothing here comes by: what was cut short is finished, and no more.
    pub(crate) fn visit(&self) -> Result<Published, Error> {
        let destination = Destination { id: "visitor".to_owned(), ..DESTINATIONS[0].clone() };
        let wanted = Wanted {
            pipeline_id: "visitor",
            destination: &destination,
            manifest: &self.history.bundles[0].manifest(),
            dirty: false,
            force: false,
            republish: false,
        };
        self.go(wanted, &Memory::default(), self.place.storage().as_ref(), Way::Run).0
    }

    /// A dry run decides as the model does, and changes nothing.
    fn look(&mut self, ask: &Ask) -> Result<Published, Error> {
        let what = self.what("dry run");
        let (before, there) = (self.place.all(), self.place.exists());
        let (got, _) = self.publish(ask, self.place.storage().as_ref(), Way::Look);
        check::tree(&self.place.all(), &before, &what);
        assert_eq!(self.place.exists(), there, "{what}");
        if self.touched.is_empty() {
            let verdict = self.stocked().run(ask, self.bundle(ask), self.now).0;
            check::decided(&got, &verdict, &what);
            if self.place.journals().is_empty() {
                check::planned(&got, &verdict, &what);
            }
        }
        got
    }

    /// What a run should come to.
    fn foresee(&self, ask: &Ask) -> (Verdict, Model) {
        match self.model.run(ask, self.bundle(ask), self.now) {
            (Ok(done), _) if ask.broken && !done.action.is_skip() => (Err(Code::InvalidBundle), self.model.clone()),
            foreseen => foreseen,
        }
    }

    fn run(&mut self, ask: &Ask, look: bool) {
        self.heal();
        let looked = look.then(|| self.look(ask));
        self.model = self.stocked();
        let (what, (verdict, next)) = (self.what("run"), self.foresee(ask));
        let (clean, there) = (self.place.journals().is_empty(), self.place.exists());
        let unfinished = self.is_unfinished();
        let (got, warnings) = self.publish(ask, self.place.storage().as_ref(), Way::Run);
        check::decided(&got, &verdict, &what);
        check::planned(&got, &verdict, &what);
        assert_eq!(warnings.iter().any(|w| w.code == Code::RecoveredPublication), unfinished, "{what}: {warnings:?}");
        if let (Some(Ok(looked)), Ok(got), true) = (&looked, &got, clean) {
            assert_eq!(format!("{:?}", looked.plan), format!("{:?}", got.plan), "{what}: not what the dry run said");
        }
        if got.is_err() && clean {
            assert_eq!(self.place.exists(), there, "{what}: a place that was made stays");
        }
        self.model = next;
        self.whole(&what);
    }

    /// Nothing is half done, and all is as the model says.
    pub(crate) fn whole(&self, what: &str) {
        check::tree(&self.place.tree(), &self.model.tree, what);
        check::state(self.place, &self.model, what);
        let mark = |owner: &usize| journal::name(OWNERS[*owner].0, OWNERS[*owner].1);
        let mut names: BTreeSet<String> = self.model.marks.keys().map(mark).collect();
        if !matches!(self.model.state, State::Absent) {
            names.insert(STATE.to_owned());
        }
        let own: BTreeSet<String> = self.place.own().into_keys().collect();
        assert_eq!(own, names, "{what}: names of ours");
    }

    /// A run that is killed or fails on its way.
    fn cut(&mut self, ask: &Ask, at: usize, end: End) {
        self.heal();
        if !self.model.has_dirs && self.place.committing().iter().any(|one| !one.settled) {
            // Whoever comes by takes stock of what was cut short before.
            self.model = self.stocked();
            drop(self.visit());
        }
        let (verdict, next) = self.foresee(ask);
        let before = self.place.own();
        let fate = Fate::new(at, end);
        let mortal = Mortal { inner: self.place.storage(), fate: Arc::clone(&fate) };
        let (got, _) = self.publish(ask, &mortal, Way::Run);
        drop(mortal);
        let what = self.what(&format!("{end:?} at call {at}, {}", fate.chosen.lock().unwrap()));
        if !fate.struck() {
            check::decided(&got, &verdict, &what);
            self.model = next;
            return self.whole(&what);
        }
        let writes = verdict.as_ref().is_ok_and(|done| !done.action.is_skip());
        let went_well = got.as_ref().is_ok_and(|published| !published.decision.action.is_skip());
        let committed = self.is_committed();
        assert!(!went_well || committed, "{what}: it went well, and nothing came of it");
        assert!(!committed || writes, "{what}: it wrote, and should not: {verdict:?}");
        let forced = verdict.as_ref().is_ok_and(|done| done.forced.is_some());
        if !(committed && forced) {
            check::strangers(&self.model, &self.place.tree(), &what);
        }
        self.still_readable(before.get(STATE), &what);
        if self.model.has_dirs {
            if end == End::Fails && got.is_err() && !committed && !ask.broken {
                self.nothing_left(&before, &what);
            }
            self.cut_on_disk(committed, next, &what);
        } else {
            self.cut_in_memory(committed, next, forced, &what);
        }
    }

    /// The model once stock was taken of what was cut short where only its source has the bytes: the state says what is
    /// there, and each owner of an output that was touched has a mark.
    fn stocked(&self) -> Model {
        let mut model = self.model.clone();
        let unsettled = self.place.committing().into_iter().filter(|one| !one.settled && !self.model.has_dirs);
        for one in unsettled {
            let journal = one.journal;
            let by = (journal.pipeline_id.as_str(), journal.destination_id.as_str());
            let by = (0..OWNERS.len()).find(|owner| OWNERS[*owner] == by).unwrap();
            let text = |path: &RawPath| String::from_utf8(path.as_bytes().to_vec()).unwrap();
            let paths = journal.removed().map(text).chain(journal.replaced().map(|(path, _)| path.to_string()));
            let forced = journal.forced.as_ref().map(|_| paths.collect::<BTreeSet<String>>());
            let touched = match &mut model.state {
                State::Absent => None,
                State::Broken(_) | State::Odd => continue,
                State::Known(known) => self.touch(known, &journal),
            };
            let stays = journal.dirty || forced.is_some() || touched == Some(by);
            model.marks.remove(&by);
            model.marks.extend(touched.map(|owner| (owner, None)));
            model.marks.extend(stays.then_some((by, forced)));
        }
        model
    }

    /// Lets a state say what a publication that was cut short has left; the owner, where that touched any output.
    fn touch(&self, known: &mut Known, journal: &Journal) -> Option<usize> {
        let (tree, storage, stage) = (self.place.tree(), self.place.storage(), Stage(journal.stage.clone()));
        let written = journal.started_at.to_string();
        let at = (0..=self.now).find(|at| check::time(*at).to_string() == written).unwrap();
        let (mut touched, mut changed) = (false, false);
        for (path, _) in journal.replaced().filter(|(path, _)| storage.wrote(&stage, &[path]).unwrap()[0]) {
            let Some(record) = known.outputs.get_mut(path.as_str()) else { continue };
            let Some(Node::File(bytes)) = tree.get(path.as_str()) else { continue };
            touched = true;
            if record.text.as_bytes() != bytes.as_slice() {
                (record.text, record.updated, changed) = (String::from_utf8(bytes.clone()).unwrap(), at, true);
            }
        }
        for path in journal.removed().map(ToString::to_string).filter(|path| !tree.contains_key(path)) {
            if known.outputs.remove(&path).is_some() {
                (touched, changed) = (true, true);
            }
        }
        if changed {
            known.updated = self.now;
        }
        touched.then_some(known.owner)
    }

    /// Whether what was cut short is still to be finished.
    pub(crate) fn is_unfinished(&self) -> bool {
        self.model.has_dirs && self.place.committing().iter().any(|one| !one.settled)
    }

    /// Whether this step's publication is past its commit point.
    fn is_committed(&self) -> bool {
        let token = format!("{:016x}", self.now);
        self.place.committing().iter().any(|one| one.journal.stage == token) || self.is_published()
    }

    /// Whether the state is that of this step's publication.
    fn is_published(&self) -> bool {
        let state = self.place.state().map(|bytes| state::State::parse(&bytes));
        matches!(state, Some(Ok(state)) if state.published_at.to_string() == check::time(self.now).to_string())
    }

    fn still_readable(&self, before: Option<&Node>, what: &str) {
        let now = self.place.own().remove(STATE);
        let readable = match &now {
            Some(Node::File(bytes)) => state::State::parse(bytes).is_ok(),
            _ => false,
        };
        assert!(readable || now.as_ref() == before, "{what}: the state is gone or broken");
    }

    /// What failed before its commit point took all away that it brought.
    fn nothing_left(&self, before: &Tree, what: &str) {
        let left = |name: &String| name != LOCK && name != STATE && !before.contains_key(name);
        let own: Vec<String> = self.place.own().into_keys().filter(left).collect();
        assert_eq!(own, [""; 0], "{what}: left behind");
    }

    fn cut_on_disk(&mut self, committed: bool, next: Model, what: &str) {
        if committed {
            // From here on it goes forward, whatever comes.
            self.model = next;
        }
        if !self.is_unfinished() {
            check::tree(&self.place.tree(), &self.model.tree, what);
            check::state(self.place, &self.model, what);
        }
    }

    /// Where only the source has the bytes: what was overwritten stays, and the owner publishes again.
    fn cut_in_memory(&mut self, committed: bool, next: Model, forced: bool, what: &str) {
        if committed && self.is_published() {
            self.model = next;
            check::tree(&self.place.tree(), &self.model.tree, what);
        }
        check::state(self.place, &self.model, what);
        let state = self.place.tree();
        let before = std::mem::replace(&mut self.model.tree, state);
        let old = Model { tree: before, ..self.model.clone() };
        // A crash never makes anything need force.
        assert!(forced || self.model.strangers().is_subset(&old.strangers()), "{what}: a stranger came from nowhere");
        let committing = self.place.committing();
        let marked = |owner: &usize| {
            let name = journal::name(OWNERS[*owner].0, OWNERS[*owner].1);
            let staging = |(other, journal): &(String, Journal)| *other == name && journal.phase == Phase::Staging;
            let dirty = self.place.journals().into_iter().find(staging).is_some_and(|(_, journal)| journal.dirty);
            dirty || committing.iter().any(|one| one.name == name && !one.settled)
        };
        let marks = std::mem::take(&mut self.model.marks);
        let mark = |owner: usize| (owner, marks.get(&owner).cloned().flatten());
        self.model.marks = (0..OWNERS.len()).filter(marked).map(mark).collect();
        assert!(self.place.own().into_keys().all(|name| name == STATE || name.starts_with(JOURNAL_PREFIX)), "{what}");
    }
}
