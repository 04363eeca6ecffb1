//! How deep raw HTML is nested, and how much there is of it: what an HTML parser does grows with the elements that are
//! open at once, and what it holds with all of them.

use std::cell::{Cell, RefCell};

use html5ever::LocalName;
use html5ever::tendril::StrTendril;
use html5ever::tokenizer::states::RawKind;
use html5ever::tokenizer::{BufferQueue, Tag, TagKind, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts};

use super::attributes::{self, MAX_ATTRIBUTES};

/// The most elements that are open at once.
const MAX_DEPTH: usize = 256;
/// The most elements: a parser takes some hundred bytes for each.
pub(super) const MAX_ELEMENTS: usize = 1_000_000;

/// Whether `html` may be more than is taken: elements, elements that are open at once, or attributes of one. Never says
/// no where it is so; an end tag counts only where it ends the element that was opened last.
pub(super) fn is_too_much(html: &str) -> bool {
    if attributes::are_too_many(html) {
        return true;
    }
    let tokenizer = Tokenizer::new(Nesting::default(), TokenizerOpts::default());
    let queue = BufferQueue::default();
    queue.push_back(StrTendril::from(html));
    let _ = tokenizer.feed(&queue);
    tokenizer.end();
    tokenizer.sink.too_much.get()
}

#[derive(Default)]
struct Nesting {
    open: RefCell<Vec<LocalName>>,
    /// An `svg` or `math` was seen, in which text is read by other rules.
    foreign: Cell<bool>,
    too_much: Cell<bool>,
    elements: Cell<usize>,
    /// The attributes of all `html` tags: a parser gathers them at one element.
    of_html: Cell<usize>,
}

impl TokenSink for Nesting {
    type Handle = ();

    fn process_token(&self, token: Token, _: u64) -> TokenSinkResult<()> {
        match token {
            Token::TagToken(tag) if tag.kind == TagKind::StartTag => self.start(&tag),
            Token::TagToken(tag) => {
                end(&mut self.open.borrow_mut(), &tag.name);
                TokenSinkResult::Continue
            }
            _ => TokenSinkResult::Continue,
        }
    }
}

impl Nesting {
    fn start(&self, tag: &Tag) -> TokenSinkResult<()> {
        let name: &str = &tag.name;
        if self.count(tag) {
            self.too_much.set(true);
            return TokenSinkResult::Plaintext;
        }
        if CLOSED_BY_OTHERS.contains(&name) {
            return TokenSinkResult::Continue;
        }
        let mut open = self.open.borrow_mut();
        if item(name).is_some() && open.last().and_then(|last| item(last)) == item(name) {
            open.pop();
        }
        open.push(tag.name.clone());
        let raw = raw_kind(name);
        self.foreign.set(self.foreign.get() || matches!(name, "svg" | "math"));
        if open.len() > MAX_DEPTH || raw.is_some() && self.foreign.get() {
            self.too_much.set(true);
            return TokenSinkResult::Plaintext;
        }
        match raw {
            Some(kind) => TokenSinkResult::RawData(kind),
            None if name == "plaintext" => TokenSinkResult::Plaintext,
            None => TokenSinkResult::Continue,
        }
    }
}

impl Nesting {
    /// Counts a tag, and tells whether there are too many.
    fn count(&self, tag: &Tag) -> bool {
        self.elements.set(self.elements.get() + 1);
        if &*tag.name == "html" {
            self.of_html.set(self.of_html.get() + tag.attrs.len());
        }
        self.elements.get() > MAX_ELEMENTS || self.of_html.get() > MAX_ATTRIBUTES
    }
}

fn end(open: &mut Vec<LocalName>, name: &LocalName) {
    // The end of a list ends its items too.
    let is_list = matches!(&**name, "ul" | "ol" | "dl");
    let items = if is_list { open.iter().rev().take_while(|name| item(name).is_some()).count() } else { 0 };
    let rest = open.len() - items;
    if rest > 0 && open[rest - 1] == *name {
        open.truncate(rest - 1);
    }
}

/// What a list item is an item of, where it is one: it ends where the next one begins.
fn item(name: &str) -> Option<&'static str> {
    match name {
        "li" => Some("list"),
        "dt" | "dd" => Some("terms"),
        _ => None,
    }
}

/// How the text of an element is read where it holds no tags.
fn raw_kind(name: &str) -> Option<RawKind> {
    match name {
        "script" => Some(RawKind::ScriptData),
        "title" | "textarea" => Some(RawKind::Rcdata),
        "style" | "xmp" | "iframe" | "noembed" | "noframes" => Some(RawKind::Rawtext),
        _ => None,
    }
}

/// Elements that hold nothing, are passed over, or end where the next one of their kind begins, so that none is open in
/// another one without an element between them that counts.
const CLOSED_BY_OTHERS: &[&str] = &[
    "area", "base", "body", "br", "caption", "col", "colgroup", "embed", "head", "hr", "html", "img", "input", "link",
    "meta", "p", "param", "source", "tbody", "td", "tfoot", "th", "thead", "tr", "track", "wbr",
];
