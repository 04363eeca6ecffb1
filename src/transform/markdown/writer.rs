//! The content of a page: HTML from Markdown events.

mod blocks;
mod inline;

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

use super::anchors::Anchors;
use super::footnotes::Footnotes;
use super::front::one_line;
use super::{Page, escape};
use crate::config::RawHtml;
use blocks::Table;
pub(super) use blocks::checkbox;
use inline::{Heading, Image};

/// The content of a page.
#[derive(Debug)]
pub(super) struct Content {
    /// Its HTML.
    pub(super) html: String,
    /// The text of its first heading that has one.
    pub(super) heading: Option<String>,
    /// The ids of its headings.
    pub(super) anchors: Anchors,
    /// Whether raw HTML stands in it.
    pub(super) has_raw: bool,
}

/// How deep lists, quotes and emphasis are nested at most; what is nested deeper keeps its text.
const MAX_DEPTH: usize = 100;

// Never all of them: heading attributes let any attribute through.
const EXTENSIONS: Options = Options::ENABLE_TABLES
    .union(Options::ENABLE_STRIKETHROUGH)
    .union(Options::ENABLE_TASKLISTS)
    .union(Options::ENABLE_FOOTNOTES);

/// The content that `text` becomes. `mark` stands before every value of an attribute that raw HTML must not set, and
/// for the boxes of task lists; with it empty they are written as they are.
pub(super) fn write(text: &str, page: &Page<'_>, raw_html: RawHtml, mark: &str) -> Content {
    let mut writer = Writer {
        page,
        raw_html,
        mark,
        out: String::with_capacity(text.len() + text.len() / 2),
        depth: 0,
        links: Vec::new(),
        image: None,
        heading: None,
        first_heading: None,
        anchors: Anchors::default(),
        table: Table::default(),
        footnotes: Footnotes::default(),
        outer: Vec::new(),
        has_raw: false,
    };
    for event in Parser::new_ext(text, EXTENSIONS) {
        writer.event(event);
    }
    writer.footnotes.write(&mut writer.out, mark);
    Content { html: writer.out, heading: writer.first_heading, anchors: writer.anchors, has_raw: writer.has_raw }
}

struct Writer<'w, 'a> {
    page: &'w Page<'a>,
    raw_html: RawHtml,
    mark: &'w str,
    out: String,
    /// How many lists, quotes and the like are open.
    depth: usize,
    /// The open links, each with whether it was kept.
    links: Vec<bool>,
    image: Option<Image>,
    heading: Option<Heading>,
    first_heading: Option<String>,
    anchors: Anchors,
    table: Table,
    footnotes: Footnotes,
    /// What was being written where a footnote's text began, with its label.
    outer: Vec<(String, String)>,
    has_raw: bool,
}

impl Writer<'_, '_> {
    fn event(&mut self, event: Event<'_>) {
        if self.image.is_some() {
            return self.in_image(&event);
        }
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) => {
                self.note(&text, true);
                escape::text(&mut self.out, &text);
            }
            Event::Code(text) => {
                self.note(&text, true);
                self.out.push_str("<code>");
                escape::text(&mut self.out, &text);
                self.out.push_str("</code>");
            }
            Event::Html(html) => self.raw(&html),
            Event::InlineHtml(html) => {
                if self.raw_html == RawHtml::Escape {
                    self.note(&html, false);
                }
                self.raw(&html);
            }
            Event::SoftBreak => self.line_break("\n"),
            Event::HardBreak => self.line_break("<br />\n"),
            Event::Rule => self.open("<hr />\n"),
            Event::FootnoteReference(label) => self.footnotes.refer(&mut self.out, &label, self.mark),
            Event::TaskListMarker(done) => self.task(done),
            // Not asked of the parser.
            Event::InlineMath(text) | Event::DisplayMath(text) => escape::text(&mut self.out, &text),
        }
    }

    /// Text of the heading that is open; `anchor` tells whether its id is made of it too.
    fn note(&mut self, text: &str, anchor: bool) {
        if let Some(heading) = &mut self.heading {
            heading.text.push_str(text);
            if anchor {
                heading.anchor.push_str(text);
            }
        }
    }

    fn raw(&mut self, html: &str) {
        match self.raw_html {
            RawHtml::Escape => escape::text(&mut self.out, html),
            RawHtml::Sanitize | RawHtml::Allow => {
                self.out.push_str(html);
                self.has_raw = true;
            }
        }
    }

    fn line_break(&mut self, html: &str) {
        self.note(" ", true);
        self.out.push_str(html);
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Paragraph => self.open("<p>"),
            Tag::Heading { level, .. } => self.start_heading(level as usize),
            Tag::BlockQuote(_) => self.open_nested("<blockquote>\n"),
            Tag::CodeBlock(kind) => self.start_code(&kind),
            Tag::HtmlBlock if self.raw_html == RawHtml::Escape => self.open("<p>"),
            Tag::HtmlBlock => self.fresh_line(),
            Tag::List(start) => self.start_list(start),
            Tag::Item if self.shows() => self.open("<li>"),
            Tag::Table(alignments) => self.start_table(alignments),
            Tag::TableHead => self.table_head(),
            Tag::TableRow => self.table_row(),
            Tag::TableCell => self.start_cell(),
            Tag::FootnoteDefinition(label) => {
                self.outer.push((std::mem::take(&mut self.out), label.into_string()));
            }
            Tag::Emphasis => self.nest("<em>"),
            Tag::Strong => self.nest("<strong>"),
            Tag::Strikethrough => self.nest("<del>"),
            Tag::Link { link_type, dest_url, title, .. } => self.start_link(link_type, &dest_url, &title),
            Tag::Image { dest_url, title, .. } => self.start_image(&dest_url, &title),
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph => self.out.push_str("</p>\n"),
            TagEnd::Heading(level) => self.end_heading(level as usize),
            TagEnd::BlockQuote(_) => {
                self.fresh_line();
                self.unnest("</blockquote>\n");
            }
            TagEnd::CodeBlock => self.out.push_str("</code></pre>\n"),
            TagEnd::HtmlBlock if self.raw_html == RawHtml::Escape => self.end_raw_block(),
            TagEnd::List(ordered) => self.unnest(if ordered { "</ol>\n" } else { "</ul>\n" }),
            TagEnd::Item if self.shows() => self.out.push_str("</li>\n"),
            TagEnd::Table => self.end_table(),
            TagEnd::TableHead => self.out.push_str("</tr>\n</thead>\n"),
            TagEnd::TableRow => self.out.push_str("</tr>\n"),
            TagEnd::TableCell => self.end_cell(),
            TagEnd::FootnoteDefinition => self.end_footnote(),
            TagEnd::Emphasis => self.unnest("</em>"),
            TagEnd::Strong => self.unnest("</strong>"),
            TagEnd::Strikethrough => self.unnest("</del>"),
            TagEnd::Link => self.end_link(),
            _ => {}
        }
    }

    fn fresh_line(&mut self) {
        if !self.out.is_empty() && !self.out.ends_with('\n') {
            self.out.push('\n');
        }
    }

    /// A tag that begins a line.
    fn open(&mut self, tag: &str) {
        self.fresh_line();
        self.out.push_str(tag);
    }

    fn shows(&self) -> bool {
        self.depth <= MAX_DEPTH
    }

    /// A tag that may be nested without end.
    fn nest(&mut self, tag: &str) {
        self.depth += 1;
        if self.shows() {
            self.out.push_str(tag);
        }
    }

    fn open_nested(&mut self, tag: &str) {
        self.fresh_line();
        self.nest(tag);
    }

    fn unnest(&mut self, tag: &str) {
        if self.shows() {
            self.out.push_str(tag);
        }
        self.depth -= 1;
    }

    fn end_footnote(&mut self) {
        if let Some((outer, label)) = self.outer.pop() {
            let text = std::mem::replace(&mut self.out, outer);
            self.footnotes.define(&label, text);
        }
    }

    fn found_heading(&mut self, text: &str) {
        if self.first_heading.is_none() {
            self.first_heading = Some(one_line(text)).filter(|text| !text.is_empty());
        }
    }
}
