//! Pages of a bundle that is only imagined.

use distributor::config::{MarkdownToHtml, RawHtml, Template};
use distributor::path::RelPath;
use distributor::timestamp::Timestamp;
use distributor::transform::markdown::{Page, render};

/// What holds against hostile input.
pub(crate) const ALL: [RawHtml; 3] = [RawHtml::Escape, RawHtml::Sanitize, RawHtml::Allow];
pub(crate) const SAFE: [RawHtml; 2] = [RawHtml::Escape, RawHtml::Sanitize];

fn made(markdown: &str, raw_html: RawHtml, template: Option<&str>) -> String {
    let template = template.map(|text| Template { path: "template.html".into(), text: text.to_owned() });
    let page = Page {
        source_path: &RelPath::parse("notes/page.md").unwrap(),
        output_path: &RelPath::parse("notes/page.html").unwrap(),
        created: &Timestamp::parse("2026-06-04T11:55:00Z").unwrap(),
        bundle_id: "example.notes",
        settings: &MarkdownToHtml { patterns: Vec::new(), raw_html, template },
        output_of: &|_| None,
    };
    String::from_utf8(render(markdown.as_bytes(), &page).unwrap()).unwrap()
}

/// The built-in page.
pub(crate) fn page(markdown: &str, raw_html: RawHtml) -> String {
    made(markdown, raw_html, None)
}

/// The content alone.
pub(crate) fn content(markdown: &str, raw_html: RawHtml) -> String {
    made(markdown, raw_html, Some("{{content}}"))
}
