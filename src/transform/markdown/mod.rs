//! `markdown_to_html`: one HTML page from one Markdown file. Pure: bytes in, bytes out.

mod anchors;
mod attributes;
mod escape;
mod footnotes;
mod front;
mod nesting;
mod page;
mod sanitize;
mod targets;
mod writer;

use crate::config::{MarkdownToHtml, RawHtml};
use crate::path::{Fault, RelPath};
use crate::timestamp::Timestamp;

/// What a page is made with.
#[derive(Clone, Copy)]
pub struct Page<'a> {
    /// The Markdown file in its bundle.
    pub source_path: &'a RelPath,
    /// The HTML file that it becomes.
    pub output_path: &'a RelPath,
    /// The manifest's `created`.
    pub created: &'a Timestamp,
    /// The bundle's id.
    pub bundle_id: &'a str,
    /// The transform's settings.
    pub settings: &'a MarkdownToHtml,
    /// The HTML output of a Markdown file of the bundle, by its source path, where the destination publishes it.
    pub output_of: &'a dyn Fn(&str) -> Option<&'a RelPath>,
}

/// A Markdown file that is not UTF-8.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotUtf8 {
    /// Where its first wrong byte is, from 0.
    pub offset: usize,
}

/// The page that `markdown` becomes: the same bytes for the same values, always.
pub fn render(markdown: &[u8], page: &Page<'_>) -> Result<Vec<u8>, NotUtf8> {
    let text = std::str::from_utf8(markdown).map_err(|error| NotUtf8 { offset: error.valid_up_to() })?;
    let (front, body) = front::split(text.strip_prefix('\u{feff}').unwrap_or(text));
    let content = match page.settings.raw_html {
        RawHtml::Escape => writer::write(body, page, RawHtml::Escape, ""),
        RawHtml::Allow => writer::write(body, page, RawHtml::Allow, ""),
        RawHtml::Sanitize => sanitize::write(body, page),
    };
    // Written for a generator that shows the title of front matter.
    let is_shown = front.title.is_some() && !content.html.contains("<h1");
    let title = front.title.or(content.heading).unwrap_or_else(|| stem(page.source_path.file_name()).to_owned());
    Ok(match &page.settings.template {
        Some(template) => page::fill(&template.text, page, &title, &content.html),
        None => page::built_in(&title, is_shown, front.lang.as_deref().unwrap_or("en"), &content.html),
    }
    .into_bytes())
}

/// The path of the page: `report.md` gives `report.html`, `README` gives `README.html`. Fails where that breaks a path
/// rule.
pub fn output_path(source: &RelPath) -> Result<RelPath, Fault> {
    let text = source.as_str();
    let above = &text[..text.len() - source.file_name().len()];
    RelPath::parse(&format!("{above}{}.html", stem(source.file_name())))
}

/// A file name without its extension.
fn stem(name: &str) -> &str {
    match name.rsplit_once('.') {
        Some((stem, _)) if !stem.is_empty() => stem,
        _ => name,
    }
}

#[cfg(test)]
mod tests;
