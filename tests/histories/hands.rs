//! What hands do at the destination.

use std::collections::BTreeSet;

use distributor::error::Code;
use distributor::names::STATE;
use distributor::path::RelPath;
use distributor::state;

use crate::check;
use crate::model::{State, above};
use crate::place::Node;
use crate::play::Player;
use crate::steps::{Edit, Harm, Thing};

const MINE: &[u8] = b"mine";

impl Player<'_> {
    pub(crate) fn edit(&mut self, edit: &Edit) {
        let chosen = self.choose(edit);
        match (edit, &chosen) {
            (Edit::Put { path, thing, over }, _) => self.put(path, *thing, *over),
            (Edit::Change(_), Some(path)) => self.put(path, Thing::File, true),
            (Edit::Swap(_, thing), Some(path)) => self.put(path, *thing, true),
            (Edit::InTheWay(_), Some(path)) => self.put(path, Thing::File, false),
            (Edit::DeleteManaged(_) | Edit::Aside(_) | Edit::RemoveDir(_), Some(path)) => self.remove(path),
            (Edit::State(harm), _) => self.harm(*harm),
            (Edit::Wipe, _) => self.wipe(),
            (_, None) => {}
        }
        if !self.is_unfinished() {
            self.model.tree = self.place.tree();
            self.touched.clear();
        }
    }

    /// The path that an edit is about, where there is any of its kind.
    fn choose(&self, edit: &Edit) -> Option<String> {
        let tree = self.place.tree();
        let (at, paths): (u8, Vec<String>) = match edit {
            Edit::Put { .. } | Edit::State(_) | Edit::Wipe => return None,
            Edit::Change(at) | Edit::DeleteManaged(at) | Edit::Swap(at, _) => (*at, self.managed()),
            Edit::Aside(at) => (*at, self.model.strangers().into_iter().map(ToOwned::to_owned).collect()),
            Edit::InTheWay(at) => {
                let committing = self.place.committing();
                (*at, committing.iter().flat_map(|one| one.journal.created()).map(ToString::to_string).collect())
            }
            Edit::RemoveDir(at) => {
                (*at, tree.into_iter().filter(|(_, node)| *node == Node::Dir).map(|(path, _)| path).collect())
            }
        };
        (!paths.is_empty()).then(|| paths[usize::from(at) % paths.len()].clone())
    }

    /// Published files that are there.
    fn managed(&self) -> Vec<String> {
        let tree = self.place.tree();
        self.model.records().into_keys().filter(|path| matches!(tree.get(path), Some(Node::File(_)))).collect()
    }

    fn put(&mut self, path: &str, thing: Thing, over: bool) {
        let (tree, has_dirs) = (self.place.tree(), self.model.has_dirs);
        let there = tree.contains_key(path);
        let is_dir = |dir: &str| !has_dirs || tree.get(dir).is_none_or(|node| *node == Node::Dir);
        let possible = has_dirs || matches!(thing, Thing::File | Thing::Managed);
        // What an attempt creates in memory is taken back by its token, which a dry run does not see.
        let taken_back =
            |path: &str| self.place.committing().iter().any(|one| one.journal.created().any(|p| p.as_str() == path));
        if there && !over || !above(path).all(is_dir) || !possible || !has_dirs && taken_back(path) {
            return;
        }
        if there {
            self.remove(path);
        }
        let first = above(path).filter(|dir| has_dirs && !tree.contains_key(*dir)).last();
        self.touched.insert(first.unwrap_or(path).to_owned());
        match thing {
            Thing::File => self.place.put(path, &Node::File(MINE.to_vec())),
            Thing::Link => self.place.put(path, &Node::Link),
            Thing::Dir => self.place.put(path, &Node::Dir),
            Thing::Managed => self.place.put(&format!("{path}/{STATE}"), &Node::File(MINE.to_vec())),
        }
    }

    fn remove(&mut self, path: &str) {
        if self.place.tree().contains_key(path) {
            self.place.remove(path);
            self.touched.insert(path.to_owned());
        }
    }

    /// Only where nothing is half done: what a journal leads to is known by the state's bytes.
    fn harm(&mut self, harm: Harm) {
        let Some(bytes) = self.place.state() else { return };
        if !self.place.journals().is_empty() || harm == Harm::Replace && !self.model.has_dirs {
            return;
        }
        self.place.remove(STATE);
        let broken = match harm {
            Harm::Delete => {
                self.model.state = State::Absent;
                return;
            }
            Harm::Replace => {
                self.place.put(STATE, &Node::Dir);
                self.model.state = State::Odd;
                return;
            }
            Harm::Garble => b"no state\n".to_vec(),
            Harm::Cut => bytes[..bytes.len() / 2].to_vec(),
            Harm::ExtraKey => [b"{\"extra\": 1,", &bytes[1..]].concat(),
        };
        self.place.put(STATE, &Node::File(broken.clone()));
        self.model.state = State::Broken(broken);
    }

    fn wipe(&mut self) {
        if !self.place.journals().is_empty() {
            return;
        }
        let tree = self.place.tree();
        for path in tree.keys().filter(|path| !self.model.has_dirs || !path.contains('/')) {
            self.place.remove(path);
        }
        if !matches!(self.model.state, State::Absent) {
            self.place.remove(STATE);
        }
        self.model.state = State::Absent;
    }

    /// Finishes what was cut short and then touched by hands. It may need that what they put there is moved aside.
    pub(crate) fn heal(&mut self) {
        if self.touched.is_empty() {
            return;
        }
        let what = self.what("finishing what hands touched");
        let may_go = self.may_go();
        let written: BTreeSet<String> =
            self.place.committing().iter().flat_map(|one| one.journal.written()).map(ToString::to_string).collect();
        let mut before = self.place.tree();
        if let Some(code) = self.pass_by() {
            assert_eq!(code, Code::CommitIncomplete, "{what}");
            check::finished(&before, &self.place.tree(), &may_go, &written, &what);
            for path in self.touched.clone() {
                self.remove(&path);
            }
            before = self.place.tree();
            assert_eq!(self.pass_by(), None, "{what}, once all is moved aside");
        }
        check::finished(&before, &self.place.tree(), &may_go, &written, &what);
        let after = self.place.tree();
        let records = self.model.records().into_iter().filter(|(path, _)| written.contains(path)).collect();
        check::truthful(&records, &after, &self.touched, &what);
        self.model.tree = after;
        self.touched.clear();
        self.whole(&what);
    }

    /// Somebody else's run: what it fails with, where that is not that it may do nothing here.
    fn pass_by(&self) -> Option<Code> {
        let error = self.visit().err().unwrap();
        (error.code != Code::IdentityMismatch).then_some(error.code)
    }

    /// What finishing may change or remove: what is recorded, and what the journal says.
    fn may_go(&self) -> BTreeSet<String> {
        let mut paths: BTreeSet<String> = BTreeSet::new();
        if let Some(Ok(state)) = self.place.state().map(|bytes| state::State::parse(&bytes)) {
            paths.extend(state.outputs.iter().map(|output| output.path.to_string()));
        }
        for one in self.place.committing() {
            let created: BTreeSet<&RelPath> = one.journal.created().collect();
            paths.extend(one.journal.written().filter(|path| !created.contains(path)).map(ToString::to_string));
            paths.extend(one.journal.removed().map(|path| String::from_utf8(path.as_bytes().to_vec()).unwrap()));
        }
        paths
    }
}
