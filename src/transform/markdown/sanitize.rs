//! Raw HTML by allow-list, over the content as a whole: its elements may begin and end in different Markdown blocks.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use ammonia::Builder;

use super::targets::{IMAGE_SCHEMES, Kind, LINK_SCHEMES, is_allowed};
use super::writer::{self, Content, checkbox};
use super::{Page, nesting};
use crate::config::RawHtml;
use crate::digest::Digest;

const TAGS: &[&str] = &[
    "a",
    "abbr",
    "article",
    "aside",
    "b",
    "bdi",
    "bdo",
    "blockquote",
    "br",
    "caption",
    "center",
    "cite",
    "code",
    "col",
    "colgroup",
    "dd",
    "del",
    "details",
    "dfn",
    "div",
    "dl",
    "dt",
    "em",
    "figcaption",
    "figure",
    "footer",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "header",
    "hr",
    "i",
    "img",
    "ins",
    "kbd",
    "li",
    "mark",
    "nav",
    "ol",
    "p",
    "pre",
    "q",
    "rp",
    "rt",
    "ruby",
    "s",
    "samp",
    "section",
    "small",
    "span",
    "strike",
    "strong",
    "sub",
    "summary",
    "sup",
    "table",
    "tbody",
    "td",
    "tfoot",
    "th",
    "thead",
    "time",
    "tr",
    "tt",
    "u",
    "ul",
    "var",
    "wbr",
];

/// Attributes of every element. Of `class`, `role` and `tabindex` only our own stay, see [`filter`].
const ATTRIBUTES: &[&str] = &["class", "dir", "id", "lang", "role", "tabindex", "title"];

const TAG_ATTRIBUTES: &[(&str, &[&str])] = &[
    ("a", &["href", "name"]),
    ("col", &["align", "span"]),
    ("colgroup", &["align", "span"]),
    ("del", &["datetime"]),
    ("details", &["open"]),
    ("div", &["align"]),
    ("h1", &["align"]),
    ("h2", &["align"]),
    ("h3", &["align"]),
    ("h4", &["align"]),
    ("h5", &["align"]),
    ("h6", &["align"]),
    ("img", &["align", "alt", "height", "src", "width"]),
    ("ins", &["datetime"]),
    ("li", &["value"]),
    ("ol", &["reversed", "start", "type"]),
    ("p", &["align"]),
    ("table", &["align"]),
    ("td", &["align", "colspan", "rowspan", "valign"]),
    ("th", &["align", "colspan", "rowspan", "scope", "valign"]),
    ("time", &["datetime"]),
    ("tr", &["align", "valign"]),
];

/// What stands before the ids and names of raw HTML, so that they take none of ours or of a script's.
const FOREIGN: &str = "user-content-";

/// The content with its raw HTML sanitised. Where that is nested or crowded beyond reason it is shown as text instead.
pub(super) fn write(text: &str, page: &Page<'_>) -> Content {
    // Nobody can write a text that holds a part of its own digest.
    let mark = format!("m{}-", &Digest::of(text.as_bytes()).hex()[..32]);
    let mut content = writer::write(text, page, RawHtml::Sanitize, &mark);
    // A browser-grade parser takes several times as long, and much memory, for the same page: only where there is HTML.
    if !content.has_raw {
        content.html = unmark(&content.html, &mark);
        return content;
    }
    if nesting::is_too_much(&content.html) {
        return writer::write(text, page, RawHtml::Escape, "");
    }
    let ids = std::mem::take(&mut content.anchors).into_ids().collect();
    content.html = unmark(&sanitize(&content.html, &mark, ids), &mark);
    content
}

fn sanitize(html: &str, mark: &str, ids: HashSet<String>) -> String {
    let set = |list: &[&'static str]| list.iter().copied().collect::<HashSet<_>>();
    let attributes: HashMap<_, _> = TAG_ATTRIBUTES.iter().map(|(tag, list)| (*tag, set(list))).collect();
    let mark = mark.to_owned();
    Builder::new()
        .tags(set(TAGS))
        .clean_content_tags(set(&["iframe", "noembed", "noframes", "script", "style", "template", "title"]))
        .generic_attributes(set(ATTRIBUTES))
        .tag_attributes(attributes)
        .url_schemes(LINK_SCHEMES.iter().chain(IMAGE_SCHEMES).copied().collect())
        .link_rel(None)
        .attribute_filter(move |_, attribute, value| filter(attribute, value, &mark, &ids))
        .clean(html)
        .to_string()
}

/// What becomes of an attribute that the lists allow.
fn filter<'a>(attribute: &str, value: &'a str, mark: &str, ids: &HashSet<String>) -> Option<Cow<'a, str>> {
    let own = value.strip_prefix(mark);
    match attribute {
        "id" | "name" => Some(own.map_or_else(|| format!("{FOREIGN}{value}").into(), Cow::Borrowed)),
        "class" | "role" | "tabindex" => own.map(Cow::Borrowed),
        "src" => is_allowed(Kind::Image, value).then_some(Cow::Borrowed(value)),
        "href" if is_allowed(Kind::Link, value) => match value.strip_prefix('#') {
            Some(id) if is_foreign(id, ids) => Some(format!("#{FOREIGN}{id}").into()),
            _ => Some(Cow::Borrowed(value)),
        },
        "href" => None,
        _ => Some(Cow::Borrowed(value)),
    }
}

/// Whether a link to `id` leads to no heading and no footnote of ours.
fn is_foreign(id: &str, ids: &HashSet<String>) -> bool {
    let own = |id: &str| id.starts_with("fn:") || id.starts_with("fnref:") || ids.contains(id);
    !id.is_empty() && !own(id) && !own(&percent_encoding::percent_decode_str(id).decode_utf8_lossy())
}

/// `html` with the boxes of its task lists, and without what is left of `mark`.
fn unmark(html: &str, mark: &str) -> String {
    let mut parts = html.split(mark);
    let mut clean = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let boxed =
            [("[x]", true), ("[ ]", false)].iter().find_map(|(text, done)| Some((part.strip_prefix(text)?, done)));
        match boxed {
            Some((rest, done)) => {
                clean.push_str(checkbox(*done));
                clean.push_str(rest);
            }
            None => clean.push_str(part),
        }
    }
    clean
}
