//! Reading one field: its type is checked here, what is wrong goes to the report, and `None` means that it was said.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::World;
use super::choice::Choice;
use super::node::{Entry, Node, Value};
use super::pattern::Pattern;
use super::problem::{Report, Spot};
use super::scalar;
use crate::suggest::nearest;

/// What all checks share.
pub(super) struct Context<'a> {
    pub(super) directory: &'a Path,
    pub(super) world: &'a World<'a>,
    pub(super) report: Report,
}

/// A value and its place.
#[derive(Clone)]
pub(super) struct At<'a> {
    pub(super) node: &'a Node,
    pub(super) spot: Spot,
}

impl<'a> At<'a> {
    pub(super) fn new(node: &'a Node, place: String) -> At<'a> {
        At { node, spot: Spot { place, line: node.line, column: node.column } }
    }

    /// Says that the value is of the wrong type.
    fn wrong<T>(&self, expected: &str, cx: &mut Context) -> Option<T> {
        match &self.node.value {
            Value::Null => cx.report.add_with(&self.spot, "has no value", "give it one, or remove the key"),
            value => cx.report.add(&self.spot, format!("must be {expected}, not {}", value.kind())),
        }
        None
    }

    /// Text, not empty.
    pub(super) fn text(&self, cx: &mut Context) -> Option<&'a str> {
        match &self.node.value {
            Value::Text(text) if text.is_empty() => {
                cx.report.add(&self.spot, "must not be empty");
                None
            }
            Value::Text(text) if text.contains(char::is_control) => {
                cx.report.add(&self.spot, "must not hold a control character");
                None
            }
            Value::Text(text) => Some(text),
            value @ (Value::Number(_) | Value::Bool(_)) => {
                cx.report.add_with(&self.spot, format!("must be text, not {}", value.kind()), "quote it");
                None
            }
            _ => self.wrong("text", cx),
        }
    }

    /// What `read` makes of the text.
    pub(super) fn parsed<T>(&self, cx: &mut Context, read: impl Fn(&str) -> Result<T, String>) -> Option<T> {
        match read(self.text(cx)?) {
            Ok(value) => Some(value),
            Err(message) => {
                cx.report.add(&self.spot, message);
                None
            }
        }
    }

    /// `true` or `false`.
    pub(super) fn bool(&self, cx: &mut Context) -> Option<bool> {
        match &self.node.value {
            Value::Bool(value) => Some(*value),
            _ => self.wrong("true or false", cx),
        }
    }

    /// A whole number within bounds.
    pub(super) fn number(&self, min: u64, max: u64, cx: &mut Context) -> Option<u64> {
        let message = match &self.node.value {
            Value::Number(Some(value)) if (min..=max).contains(value) => return Some(*value),
            Value::Number(_) if max == u64::MAX => format!("must be a whole number of at least {min}"),
            Value::Number(_) => format!("must be a whole number from {min} to {max}"),
            _ => return self.wrong("a whole number", cx),
        };
        cx.report.add(&self.spot, message);
        None
    }

    /// A duration over 0.
    pub(super) fn duration(&self, cx: &mut Context) -> Option<Duration> {
        if matches!(self.node.value, Value::Number(_)) {
            cx.report.add(&self.spot, "must be a duration with a unit (s, m, h, d or w), like 30s");
            return None;
        }
        let duration = self.parsed(cx, scalar::duration)?;
        if duration.is_zero() {
            cx.report.add(&self.spot, "must be longer than 0");
            return None;
        }
        Some(duration)
    }

    /// A size over 0.
    pub(super) fn size(&self, cx: &mut Context) -> Option<u64> {
        let size = match &self.node.value {
            Value::Number(Some(size)) => *size,
            Value::Number(None) => return self.wrong("a size like 16GiB, or a whole number of bytes", cx),
            _ => self.parsed(cx, scalar::size)?,
        };
        if size == 0 {
            cx.report.add(&self.spot, "must be larger than 0");
            return None;
        }
        Some(size)
    }

    /// The mode of directories: their owner must be able to list, fill and enter them.
    pub(super) fn directory_mode(&self, cx: &mut Context) -> Option<u32> {
        let mode = self.mode(cx)?;
        if mode & 0o700 == 0o700 {
            return Some(mode);
        }
        cx.report.add_with(
            &self.spot,
            "keeps their owner from filling the directories",
            "begin it with 07, like \"0755\"",
        );
        None
    }

    /// Permission bits.
    pub(super) fn mode(&self, cx: &mut Context) -> Option<u32> {
        if matches!(self.node.value, Value::Number(_)) {
            // YAML reads 0644 as the decimal 644.
            cx.report.add_with(&self.spot, "must be text, not a number", "quote it, like \"0644\"");
            return None;
        }
        self.parsed(cx, scalar::mode)
    }

    /// An id.
    pub(super) fn id(&self, cx: &mut Context) -> Option<String> {
        let wrong = format!("is not an id: {}", crate::id::RULE);
        self.parsed(cx, |text| scalar::checked(crate::id::is_id(text), text, &wrong))
    }

    /// The name of a variable. What stands there is not repeated: it may be the secret itself.
    pub(super) fn variable(&self, cx: &mut Context) -> Option<String> {
        if matches!(self.node.value, Value::Text(_))
            && let Some(text) = self.text(cx)
        {
            if crate::host::is_variable(text) {
                return Some(text.to_owned());
            }
            let hint = "put the value into the environment or the secrets directory, and its variable's name here";
            cx.report.add_with(&self.spot, "is not the name of a variable ([A-Za-z_][A-Za-z0-9_]*)", hint);
            return None;
        }
        match &self.node.value {
            Value::Text(_) => None,
            _ => self.wrong("the name of a variable", cx),
        }
    }

    /// A path of this machine, made absolute.
    pub(super) fn path(&self, cx: &mut Context) -> Option<PathBuf> {
        let text = self.text(cx)?;
        let Some(rest) = text.strip_prefix('~') else { return Some(cx.directory.join(text)) };
        let Some(below) = rest.strip_prefix('/').or(rest.is_empty().then_some("")) else {
            let hint = "write the path out; a name that begins with ~ is written ./~name";
            cx.report.add_with(&self.spot, "only \"~/\" is known, the user's own home", hint);
            return None;
        };
        match cx.world.home {
            Some(home) if below.is_empty() => Some(home.to_owned()),
            Some(home) => Some(home.join(below.trim_start_matches('/'))),
            None => {
                cx.report.add(&self.spot, "\"~/\" needs the variable HOME, which is not set to an absolute path");
                None
            }
        }
    }

    /// One of the values of `T`.
    pub(super) fn choice<T: Choice>(&self, allowed: &[T], cx: &mut Context) -> Option<T> {
        let names: Vec<&str> = allowed.iter().map(|value| value.text()).collect();
        self.one_of(&names, cx).map(|at| allowed[at])
    }

    /// Which of `names` it is.
    pub(super) fn one_of(&self, names: &[&str], cx: &mut Context) -> Option<usize> {
        if let value @ (Value::Number(_) | Value::Bool(_)) = &self.node.value {
            let message = format!("must be text, not {}", value.kind());
            cx.report.add_with(&self.spot, message, format!("one of {}", names.join(", ")));
            return None;
        }
        let text = self.text(cx)?;
        if let Some(at) = names.iter().position(|name| *name == text) {
            return Some(at);
        }
        let message = format!("{text:?} is not one of {}", names.join(", "));
        match nearest(text, names.iter().copied()) {
            Some(near) => cx.report.add_with(&self.spot, message, format!("did you mean {near:?}?")),
            None => cx.report.add(&self.spot, message),
        }
        None
    }

    /// The items of a list.
    pub(super) fn list(&self, cx: &mut Context) -> Option<Vec<At<'a>>> {
        match &self.node.value {
            Value::List(items) => {
                let item = |(at, node)| At::new(node, format!("{}[{at}]", self.spot.place));
                Some(items.iter().enumerate().map(item).collect())
            }
            _ => self.wrong("a list", cx),
        }
    }

    /// A list of patterns, at least one.
    pub(super) fn patterns(&self, cx: &mut Context) -> Option<Vec<Pattern>> {
        let items = self.list(cx)?;
        if items.is_empty() {
            cx.report.add(&self.spot, "must list at least one pattern");
            return None;
        }
        let read: Vec<_> = items.iter().map(|item| item.parsed(cx, Pattern::parse)).collect();
        read.into_iter().collect()
    }

    /// The entries of a mapping.
    pub(super) fn table(&self, cx: &mut Context) -> Option<Table<'a>> {
        match &self.node.value {
            Value::Map(entries) => Some(Table { entries, spot: self.spot.clone() }),
            _ => self.wrong("a mapping", cx),
        }
    }

    /// A mapping that has no keys but these.
    pub(super) fn section(&self, known: &[&str], cx: &mut Context) -> Option<Table<'a>> {
        let table = self.table(cx)?;
        for entry in table.entries.iter().filter(|entry| !known.contains(&entry.key.as_str())) {
            table.unknown(entry, known, cx);
        }
        Some(table)
    }
}

/// A mapping and its place.
#[derive(Clone)]
pub(super) struct Table<'a> {
    pub(super) entries: &'a [Entry],
    pub(super) spot: Spot,
}

impl<'a> Table<'a> {
    /// The value of `key`.
    pub(super) fn get(&self, key: &str) -> Option<At<'a>> {
        let entry = self.entries.iter().find(|entry| entry.key == key)?;
        let place = if self.spot.place.is_empty() { key.to_owned() } else { format!("{}.{key}", self.spot.place) };
        Some(At::new(&entry.node, place))
    }

    /// The value of `key`, whose absence is a problem.
    pub(super) fn need(&self, key: &str, cx: &mut Context) -> Option<At<'a>> {
        let found = self.get(key);
        if found.is_none() {
            cx.report.add(&self.spot, format!("the key {key:?} is missing"));
        }
        found
    }

    /// The value of an enumeration: its default where the key is absent, `None` where it is wrong.
    pub(super) fn choice<T: Choice>(&self, key: &str, cx: &mut Context) -> Option<T> {
        self.get(key).map_or(Some(T::ALL[0]), |at| at.choice(T::ALL, cx))
    }

    /// The place of a key.
    pub(super) fn key_spot(&self, entry: &Entry) -> Spot {
        Spot { place: self.spot.place.clone(), line: entry.line, column: entry.column }
    }

    /// Says that a key is unknown.
    pub(super) fn unknown(&self, entry: &Entry, known: &[&str], cx: &mut Context) {
        let spot = self.key_spot(entry);
        let message = format!("unknown key {:?}", entry.key);
        // First, or the nearest key would invite to put the secret there.
        let hint = literal(&entry.key, known)
            .or_else(|| nearest(&entry.key, known.iter().copied()).map(|near| format!("did you mean {near:?}?")));
        match hint {
            Some(hint) => cx.report.add_with(&spot, message, hint),
            None => cx.report.add(&spot, message),
        }
    }
}

/// The hint for a key that asks for a secret itself.
fn literal(key: &str, known: &[&str]) -> Option<String> {
    let named = format!("{key}_env");
    if known.contains(&named.as_str()) {
        return Some(format!("a secret does not stand in this file: {named:?} takes the name of its variable"));
    }
    (key == "password").then(|| "passwords are not taken: use a key file or the agent".to_owned())
}
