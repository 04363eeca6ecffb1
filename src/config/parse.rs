//! From text to a tree of values with their places, in two readings: the first ([`walk`](super::walk)) knows places
//! and refuses what `serde_yml` lets pass in silence; the second resolves the values.
// serde_yml is marked deprecated as a whole. It is a thin layer over a safe parser, the project has settled on it, and
// this is the one file that knows it.
#![allow(deprecated)]

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};

use super::node::{Entry, Node, Value};
use super::problem::{Report, Spot};
use super::walk::{Kind, Shape, walk};

/// The largest file that is read.
pub(super) const MAX_SIZE: usize = 1 << 20;

/// The document in `bytes`. A byte-order mark at its start is passed over.
pub(super) fn parse(bytes: &[u8], report: &mut Report) -> Option<Node> {
    let mut text = decode(bytes, report)?.to_owned();
    // At the very end of a text a `key:` is no key to the first reader.
    if !text.ends_with('\n') {
        text.push('\n');
    }
    let shape = walk(&text, report)?;
    match serde_yml::from_str::<Raw>(&text) {
        Ok(raw) => join(shape, raw, report),
        Err(error) => {
            let (line, column) = error.location().map_or((1, 1), |at| (at.line(), at.column()));
            // The message repeats the place, in its beginning and on lines of its own.
            let message = error.to_string();
            let message = message.lines().next().unwrap_or_default();
            let message = message
                .strip_prefix("YAML parse error")
                .and_then(|rest| rest.split_once(": ")?.1.into())
                .unwrap_or(message);
            report.add(&Spot::file(line, column), format!("not valid YAML: {message}"));
            None
        }
    }
}

fn decode<'a>(bytes: &'a [u8], report: &mut Report) -> Option<&'a str> {
    if bytes.len() > MAX_SIZE {
        report.add(&Spot::file(1, 1), "the file is larger than 1 MiB");
        return None;
    }
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text.strip_prefix('\u{feff}').unwrap_or(text),
        Err(error) => {
            let good = String::from_utf8_lossy(&bytes[..error.valid_up_to()]);
            report.add_with(&end(&good), "not UTF-8", "save the file as UTF-8");
            return None;
        }
    };
    // YAML has no place for them, and readers differ on what they mean.
    if let Some(at) = text.find(|c: char| c.is_ascii_control() && !"\t\n\r".contains(c)) {
        report.add(&end(&text[..at]), "a control character stands in the file");
        return None;
    }
    Some(text)
}

/// The place that follows `text`.
fn end(text: &str) -> Spot {
    let last = text.rsplit('\n').next().unwrap_or_default();
    Spot::file(text.matches('\n').count() + 1, last.chars().count() + 1)
}

/// A value as `serde_yml` resolves it.
#[derive(Debug)]
enum Raw {
    Null,
    Bool(bool),
    Number(Option<u64>),
    Text(String),
    List(Vec<Raw>),
    Map(BTreeMap<String, Raw>),
}

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Raw, D::Error> {
        deserializer.deserialize_any(RawVisitor)
    }
}

struct RawVisitor;

impl<'de> Visitor<'de> for RawVisitor {
    type Value = Raw;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a YAML value")
    }

    fn visit_unit<E>(self) -> Result<Raw, E> {
        Ok(Raw::Null)
    }

    fn visit_none<E>(self) -> Result<Raw, E> {
        Ok(Raw::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Raw, D::Error> {
        Raw::deserialize(deserializer)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Raw, E> {
        Ok(Raw::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Raw, E> {
        Ok(Raw::Number(u64::try_from(value).ok()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Raw, E> {
        Ok(Raw::Number(Some(value)))
    }

    fn visit_i128<E>(self, value: i128) -> Result<Raw, E> {
        Ok(Raw::Number(u64::try_from(value).ok()))
    }

    fn visit_u128<E>(self, value: u128) -> Result<Raw, E> {
        Ok(Raw::Number(u64::try_from(value).ok()))
    }

    fn visit_f64<E>(self, _: f64) -> Result<Raw, E> {
        Ok(Raw::Number(None))
    }

    fn visit_str<E>(self, value: &str) -> Result<Raw, E> {
        Ok(Raw::Text(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Raw, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = list.next_element()? {
            items.push(item);
        }
        Ok(Raw::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Raw, A::Error> {
        let mut entries = BTreeMap::new();
        while let Some((key, value)) = map.next_entry::<String, Raw>()? {
            entries.insert(key, value);
        }
        Ok(Raw::Map(entries))
    }
}

/// Lays the two readings over each other. Where they differ neither is trusted.
fn join(shape: Shape, raw: Raw, report: &mut Report) -> Option<Node> {
    let (line, column) = (shape.line, shape.column);
    let value = match (shape.kind, raw) {
        (Kind::Scalar { text, .. }, Raw::Text(resolved)) if text == resolved => Some(Value::Text(resolved)),
        (Kind::Scalar { plain: true, .. }, Raw::Null) => Some(Value::Null),
        (Kind::Scalar { plain: true, .. }, Raw::Bool(value)) => Some(Value::Bool(value)),
        (Kind::Scalar { plain: true, .. }, Raw::Number(value)) => Some(Value::Number(value)),
        (Kind::List(shapes), Raw::List(raws)) if shapes.len() == raws.len() => {
            let items = shapes.into_iter().zip(raws).map(|(shape, raw)| join(shape, raw, report));
            Some(Value::List(items.collect::<Option<_>>()?))
        }
        (Kind::Map(shapes), Raw::Map(mut raws)) if shapes.len() == raws.len() => {
            let mut entries = Vec::with_capacity(shapes.len());
            for (key, shape) in shapes {
                let Some(raw) = raws.remove(&key.text) else {
                    report.add_with(&Spot::file(key.line, key.column), AMBIGUOUS, "write the key more plainly");
                    return None;
                };
                let node = join(shape, raw, report)?;
                entries.push(Entry { key: key.text, line: key.line, column: key.column, node });
            }
            Some(Value::Map(entries))
        }
        _ => None,
    };
    if value.is_none() {
        report.add_with(&Spot::file(line, column), AMBIGUOUS, "write it more plainly, or quote it");
    }
    Some(Node { line, column, value: value? })
}

const AMBIGUOUS: &str = "this YAML can be read in two ways";
