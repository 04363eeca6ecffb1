//! A page as an HTML parser sees it.

use std::collections::BTreeMap;

use html5ever::tendril::TendrilSink;
use html5ever::{ParseOpts, parse_document};
use markup5ever_rcdom::{Handle, NodeData, RcDom};

/// An element: its name, its attributes, and the names of what it stands in.
pub(crate) struct Element {
    pub(crate) name: String,
    pub(crate) attributes: BTreeMap<String, String>,
    pub(crate) text: String,
    pub(crate) above: Vec<String>,
}

/// What a parser makes of a document.
pub(crate) struct Tree {
    pub(crate) elements: Vec<Element>,
    /// Comments and processing instructions.
    pub(crate) others: usize,
    /// Where the parser had to guess.
    pub(crate) errors: Vec<String>,
}

pub(crate) fn parse(html: &str) -> Tree {
    let dom = parse_document(RcDom::default(), ParseOpts::default()).one(html);
    let mut tree = Tree { elements: Vec::new(), others: 0, errors: Vec::new() };
    tree.errors = dom.errors.borrow().iter().map(ToString::to_string).collect();
    let mut pending: Vec<(Handle, Vec<String>)> = vec![(dom.document.clone(), Vec::new())];
    while let Some((node, above)) = pending.pop() {
        let mut below = above.clone();
        match &node.data {
            NodeData::Element { name, attrs, .. } => {
                let read = |attr: &html5ever::Attribute| (attr.name.local.to_string(), attr.value.to_string());
                let attributes = attrs.borrow().iter().map(read).collect();
                below.push(name.local.to_string());
                let text = text(&node);
                tree.elements.push(Element { name: name.local.to_string(), attributes, text, above });
            }
            NodeData::Comment { .. } | NodeData::ProcessingInstruction { .. } => tree.others += 1,
            _ => {}
        }
        pending.extend(node.children.borrow().iter().rev().map(|child| (child.clone(), below.clone())));
    }
    tree
}

/// The text that stands directly in a node.
fn text(node: &Handle) -> String {
    let mut text = String::new();
    for child in node.children.borrow().iter() {
        if let NodeData::Text { contents } = &child.data {
            text.push_str(&contents.borrow());
        }
    }
    text
}
