//! What a page may hold, told by a parser and by the rules of browsers, not by the code that makes it.

use distributor::config::RawHtml;

use crate::tree::{Element, parse};

/// What Markdown becomes, each element with its attributes.
const OURS: &[(&str, &[&str])] = &[
    ("a", &["href", "id", "role", "title"]),
    ("blockquote", &[]),
    ("br", &[]),
    ("code", &["class"]),
    ("del", &[]),
    ("div", &["class", "tabindex"]),
    ("em", &[]),
    ("h1", &["id"]),
    ("h2", &["id"]),
    ("h3", &["id"]),
    ("h4", &["id"]),
    ("h5", &["id"]),
    ("h6", &["id"]),
    ("hr", &[]),
    ("img", &["alt", "src", "title"]),
    ("input", &["checked", "disabled", "type"]),
    ("li", &["id"]),
    ("ol", &["start"]),
    ("p", &[]),
    ("pre", &[]),
    ("section", &["class", "role"]),
    ("strong", &[]),
    ("sup", &[]),
    ("table", &[]),
    ("tbody", &[]),
    ("td", &["align"]),
    ("th", &["align"]),
    ("thead", &[]),
    ("tr", &[]),
    ("ul", &[]),
];

/// What `sanitize` lets through beside.
const RAW: &[&str] = &[
    "abbr",
    "article",
    "aside",
    "b",
    "bdi",
    "bdo",
    "caption",
    "center",
    "cite",
    "col",
    "colgroup",
    "dd",
    "details",
    "dfn",
    "div",
    "dl",
    "dt",
    "figcaption",
    "figure",
    "footer",
    "header",
    "i",
    "ins",
    "kbd",
    "mark",
    "nav",
    "q",
    "rp",
    "rt",
    "ruby",
    "s",
    "samp",
    "small",
    "span",
    "strike",
    "sub",
    "summary",
    "tfoot",
    "time",
    "tt",
    "u",
    "var",
    "wbr",
];
const RAW_ATTRIBUTES: &[&str] = &[
    "align", "alt", "colspan", "datetime", "dir", "height", "id", "lang", "name", "open", "reversed", "rowspan",
    "scope", "span", "start", "title", "type", "valign", "value", "width",
];

/// What a page holds that it must not.
pub(crate) fn faults(page: &str, raw_html: RawHtml) -> Vec<String> {
    let tree = parse(page);
    let mut faults = Vec::new();
    let mut ids = std::collections::BTreeSet::new();
    if tree.others > 0 {
        faults.push(format!("{} comments", tree.others));
    }
    if raw_html == RawHtml::Escape {
        faults.extend(tree.errors.iter().filter(|error| !is_of_characters(error)).cloned());
    }
    for element in &tree.elements {
        let in_main = element.above.get(..3).is_some_and(|above| above == ["html", "body", "main"]);
        if in_main {
            content(element, raw_html, &mut faults);
        } else {
            frame(element, &mut faults);
        }
        if let Some(id) = element.attributes.get("id")
            && !ids.insert(id.clone())
            && !id.starts_with("user-content-")
        {
            faults.push(format!("the id {id} is there twice"));
        }
    }
    for name in ["head", "body", "main", "title", "style"] {
        if tree.elements.iter().filter(|element| element.name == name).count() != 1 {
            faults.push(format!("not one {name}"));
        }
    }
    faults
}

/// What a parser has to say of characters, not of tags.
fn is_of_characters(error: &str) -> bool {
    ["Bad character", "Character reference", "haracter"].iter().any(|part| error.contains(part))
}

/// The page around the content.
fn frame(element: &Element, faults: &mut Vec<String>) {
    let attributes: Vec<&str> = element.attributes.keys().map(String::as_str).collect();
    let expected: &[&str] = match element.name.as_str() {
        "html" => &["lang"],
        "head" | "title" | "style" | "body" | "main" => &[],
        "meta" if element.attributes.contains_key("charset") => &["charset"],
        "meta" if element.attributes.contains_key("http-equiv") => &["content", "http-equiv"],
        "meta" => &["content", "name"],
        name => return faults.push(format!("{name} around the content")),
    };
    if attributes != expected {
        faults.push(format!("{} has {attributes:?}", element.name));
    }
    if element.name == "style" && (element.text.contains("url(") || element.text.contains("@import")) {
        faults.push("the style loads something".to_owned());
    }
}

fn content(element: &Element, raw_html: RawHtml, faults: &mut Vec<String>) {
    let name = element.name.as_str();
    let ours = OURS.iter().find(|(ours, _)| *ours == name);
    let sanitized = raw_html == RawHtml::Sanitize;
    if ours.is_none() && !(sanitized && RAW.contains(&name)) {
        faults.push(format!("the element {name}"));
    }
    for (attribute, value) in &element.attributes {
        let known = ours.is_some_and(|(_, list)| list.contains(&attribute.as_str()));
        if !(known || sanitized && RAW_ATTRIBUTES.contains(&attribute.as_str())) {
            faults.push(format!("the attribute {attribute} of {name}"));
        }
        let good = match attribute.as_str() {
            "href" | "src" => is_harmless(attribute == "src", value),
            "class" => value.starts_with("language-") || ["table", "footnotes"].contains(&value.as_str()),
            "role" => value.starts_with("doc-"),
            "tabindex" => value == "0",
            "type" if name == "input" => value == "checkbox",
            _ => true,
        };
        if !good {
            faults.push(format!("{attribute}={value:?} of {name}"));
        }
    }
    if name == "input" && !element.attributes.contains_key("disabled") {
        faults.push("a form control".to_owned());
    }
}

/// Whether a browser reads a URL as relative or by a scheme that is taken.
fn is_harmless(image: bool, url: &str) -> bool {
    let url = url.trim_start_matches(|c: char| c <= ' ').replace(['\t', '\n', '\r'], "");
    let Some((scheme, rest)) = url.split_once(':') else { return true };
    let mut chars = scheme.chars();
    let first = chars.next().is_some_and(|c| c.is_ascii_alphabetic());
    if !first || !chars.all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c)) {
        return true;
    }
    let rest = rest.to_ascii_lowercase();
    match (scheme.to_ascii_lowercase().as_str(), image) {
        ("http" | "https", _) | ("mailto" | "tel", false) => true,
        ("data", true) => ["png", "jpeg", "gif", "webp"]
            .iter()
            .any(|kind| rest.strip_prefix(&format!("image/{kind}")).is_some_and(|rest| rest.starts_with([';', ',']))),
        _ => false,
    }
}

#[test]
fn what_must_not_be_there_is_found() {
    let page = |content: &str| {
        let made = crate::scene::page("x", RawHtml::Escape);
        made.replace("<p>x</p>", content)
    };
    assert_eq!(faults(&page("<p>x</p>"), RawHtml::Escape), [""; 0]);
    for hostile in [
        "<script>x</script>",
        "<p onclick=x>y</p>",
        "<a href=javascript:x>y</a>",
        "<a href=' java\tscript:x'>y</a>",
        "<a href='data:text/html,x'>y</a>",
        "<img src=data:image/svg+xml,x>",
        "<p class=x>y</p>",
        "<p style=x>y</p>",
        "<svg></svg>",
        "<input>",
        "<!-- x -->",
        "</main><p>x</p>",
        "</body></html><script>x</script>",
        "<a id=x></a><a id=x></a>",
    ] {
        for raw_html in crate::scene::SAFE {
            assert_ne!(faults(&page(hostile), raw_html), [""; 0], "{hostile}");
        }
    }
    assert_ne!(faults(&page("<p><b>x</p>"), RawHtml::Escape), [""; 0]);
}
