//! The first reading: where everything stands, and what this format does not take of YAML.

use std::collections::BTreeMap;

use saphyr_parser::{Event, Marker, Parser, ScalarStyle, Span, StrInput, Tag};

use super::problem::{Report, Spot};

/// How deep sections may be nested.
const MAX_DEPTH: usize = 64;

/// How many values a file may hold: some files of this size take the second reading seconds beyond it.
const MAX_VALUES: usize = 20_000;
const ALIAS: (&str, &str) = ("an alias (*) is not taken here", "write the value out where it is needed");

/// A node of the document as it is written, not yet resolved to a type.
#[derive(Debug)]
pub(super) struct Shape {
    pub(super) line: usize,
    pub(super) column: usize,
    pub(super) kind: Kind,
}

/// What a node is.
#[derive(Debug)]
pub(super) enum Kind {
    Scalar { text: String, plain: bool },
    List(Vec<Shape>),
    Map(Vec<(Key, Shape)>),
}

/// A key as it is written.
#[derive(Debug)]
pub(super) struct Key {
    pub(super) text: String,
    pub(super) line: usize,
    pub(super) column: usize,
}

/// The shape of `text`. `None` when something was found that rules out the second reading; duplicate keys do not, the
/// last one stands.
pub(super) fn walk(text: &str, report: &mut Report) -> Option<Shape> {
    let mut walk = Walk { parser: Parser::new_from_str(text), report, refused: false, values: 0 };
    let root = walk.document()?;
    if walk.refused { None } else { Some(root) }
}

struct Walk<'a> {
    parser: Parser<'a, StrInput<'a>>,
    report: &'a mut Report,
    refused: bool,
    values: usize,
}

fn spot(mark: &Marker) -> Spot {
    Spot::file(mark.line(), mark.col() + 1)
}

impl<'a> Walk<'a> {
    /// `None` after an error: the parser would repeat it for ever.
    fn next(&mut self) -> Option<(Event<'a>, Span)> {
        match self.parser.next_event()? {
            Ok(found) => Some(found),
            Err(error) => {
                let place = spot(error.marker());
                if error.info().contains("unknown anchor") {
                    self.report.add_with(&place, ALIAS.0, ALIAS.1);
                } else {
                    self.report.add(&place, format!("not valid YAML: {}", error.info()));
                }
                None
            }
        }
    }

    fn document(&mut self) -> Option<Shape> {
        let mut root = None;
        loop {
            let (event, span) = self.next()?;
            match event {
                Event::StreamEnd => break,
                Event::DocumentStart(_) if root.is_some() => {
                    self.refuse(&span, "a second document begins here", "keep one document in the file");
                    return None;
                }
                Event::Nothing | Event::StreamStart | Event::DocumentStart(_) | Event::DocumentEnd => {}
                event => root = Some(self.node(event, span, 0)?),
            }
        }
        if root.is_none() {
            self.report.add(&Spot::file(1, 1), "the file is empty");
        }
        root
    }

    fn refuse(&mut self, span: &Span, message: &str, hint: &str) {
        self.refused = true;
        self.report.add_with(&spot(&span.start), message, hint);
    }

    fn vet(&mut self, span: &Span, anchor: usize, tag: Option<&Tag>) {
        if anchor != 0 {
            self.refuse(span, "an anchor (&) is not taken here", "write the value out where it is needed");
        }
        if tag.is_some() {
            self.refuse(span, "a tag (!) is not taken here", "remove it; quote a value that is meant as text");
        }
    }

    fn node(&mut self, event: Event<'a>, span: Span, depth: usize) -> Option<Shape> {
        if depth > MAX_DEPTH {
            self.refuse(&span, "nested more than 64 levels deep", "flatten the file");
            return None;
        }
        self.values += 1;
        if self.values > MAX_VALUES {
            self.refuse(&span, "the file holds more than 20000 keys and values", "split it");
            return None;
        }
        let kind = match event {
            Event::Scalar(text, style, anchor, tag) => {
                self.vet(&span, anchor, tag.as_deref());
                Kind::Scalar { text: text.into_owned(), plain: style == ScalarStyle::Plain }
            }
            Event::SequenceStart(anchor, tag) => {
                self.vet(&span, anchor, tag.as_deref());
                Kind::List(self.list(depth)?)
            }
            Event::MappingStart(anchor, tag) => {
                self.vet(&span, anchor, tag.as_deref());
                Kind::Map(self.map(depth)?)
            }
            _ => {
                self.refuse(&span, ALIAS.0, ALIAS.1);
                Kind::Scalar { text: String::new(), plain: true }
            }
        };
        Some(Shape { line: span.start.line(), column: span.start.col() + 1, kind })
    }

    fn list(&mut self, depth: usize) -> Option<Vec<Shape>> {
        let mut items = Vec::new();
        loop {
            match self.next()? {
                (Event::SequenceEnd, _) => return Some(items),
                (event, span) => items.push(self.node(event, span, depth + 1)?),
            }
        }
    }

    fn map(&mut self, depth: usize) -> Option<Vec<(Key, Shape)>> {
        let mut entries: Vec<(Key, Shape)> = Vec::new();
        let mut known: BTreeMap<String, (usize, usize)> = BTreeMap::new();
        loop {
            let key = match self.next()? {
                (Event::MappingEnd, _) => return Some(entries),
                (event, span) => self.node(event, span, depth + 1)?,
            };
            let (event, span) = self.next()?;
            let mut value = self.node(event, span, depth + 1)?;
            let Some(key) = self.key(key) else { continue };
            // A value that is not there has its place wherever the next token is: the key's is of more use.
            if matches!(&value.kind, Kind::Scalar { text, plain: true } if text.is_empty() || text == "~") {
                (value.line, value.column) = (key.line, key.column);
            }
            if let Some(&(at, line)) = known.get(&key.text) {
                let place = Spot::file(key.line, key.column);
                self.report.add(&place, format!("key {:?} stands twice, first on line {line}", key.text));
                entries[at] = (key, value);
            } else {
                known.insert(key.text.clone(), (entries.len(), key.line));
                entries.push((key, value));
            }
        }
    }

    fn key(&mut self, shape: Shape) -> Option<Key> {
        let (line, column) = (shape.line, shape.column);
        let wrong = match shape.kind {
            Kind::Scalar { text, plain: true } if text == "<<" => {
                ("a merge key (<<) is not taken here", "write the keys out")
            }
            Kind::Scalar { text, plain: true } if !is_text(&text) => ("a key must be text", "quote it"),
            Kind::Scalar { text, .. } => return Some(Key { text, line, column }),
            Kind::List(_) | Kind::Map(_) => ("a key must be text", "this is a list or a mapping"),
        };
        self.refused = true;
        self.report.add_with(&Spot::file(line, column), wrong.0, wrong.1);
        None
    }
}

/// Whether a plain scalar is text, not a number, a truth value or nothing.
fn is_text(plain: &str) -> bool {
    let number = plain.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c))
        && (plain.parse::<f64>().is_ok() || plain.starts_with("0x") || plain.starts_with("0o"));
    !number && !matches!(plain.to_ascii_lowercase().as_str(), "" | "~" | "null" | "true" | "false")
}
