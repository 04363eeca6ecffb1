//! A YAML document as a tree that remembers where each key and value stands.

/// A value and its place.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Node {
    /// Its line, from 1.
    pub(super) line: usize,
    /// Its column, from 1.
    pub(super) column: usize,
    /// What stands there.
    pub(super) value: Value,
}

/// What a value can be.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    /// Nothing, `~` or `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number: its value where it is a whole one from 0.
    Number(Option<u64>),
    /// Text.
    Text(String),
    /// A sequence.
    List(Vec<Node>),
    /// A mapping, each key once.
    Map(Vec<Entry>),
}

/// A key and its value.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Entry {
    /// The key.
    pub(super) key: String,
    /// The line of the key.
    pub(super) line: usize,
    /// The column of the key.
    pub(super) column: usize,
    /// The value.
    pub(super) node: Node,
}

impl Value {
    /// What it is, for messages; never the value itself, which may be a secret in the wrong place.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Value::Null => "nothing",
            Value::Bool(_) => "true or false",
            Value::Number(_) => "a number",
            Value::Text(_) => "text",
            Value::List(_) => "a list",
            Value::Map(_) => "a mapping",
        }
    }
}
