//! How deep raw HTML is nested: what an HTML parser does grows with the elements that are open at once.

use std::cell::{Cell, RefCell};

use html5ever::LocalName;
use html5ever::tendril::StrTendril;
use html5ever::tokenizer::states::RawKind;
use html5ever::tokenizer::{BufferQueue, Tag, TagKind, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts};

/// The most elements that are open at once.
const MAX_DEPTH: usize = 256;

/// Whether more elements than are taken may be open at once in `html`. Never says no where it is so; an end tag counts
/// only where it ends the element that was opened last.
pub(super) fn is_too_deep(html: &str) -> bool {
    let tokenizer = Tokenizer::new(Nesting::default(), TokenizerOpts::default());
    let queue = BufferQueue::default();
    queue.push_back(StrTendril::from(html));
    let _ = tokenizer.feed(&queue);
    tokenizer.end();
    tokenizer.sink.too_deep.get()
}

#[derive(Default)]
struct Nesting {
    open: RefCell<Vec<LocalName>>,
    /// An `svg` or `math` was seen, in which text is read by other rules.
    foreign: Cell<bool>,
    too_deep: Cell<bool>,
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
            self.too_deep.set(true);
            return TokenSinkResult::Plaintext;
        }
        match raw {
            Some(kind) => TokenSinkResult::RawData(kind),
            None if name == "plaintext" => TokenSinkResult::Plaintext,
            None => TokenSinkResult::Continue,
        }
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
