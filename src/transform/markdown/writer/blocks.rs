//! Headings, code, lists and tables.

use pulldown_cmark::{Alignment, CodeBlockKind};

use super::Writer;
use super::inline::Heading;
use crate::transform::markdown::escape;

/// The table that is open.
#[derive(Debug, Default)]
pub(super) struct Table {
    alignments: Vec<Alignment>,
    cell: usize,
    in_head: bool,
    has_body: bool,
}

impl Writer<'_, '_> {
    pub(super) fn start_heading(&mut self, level: usize) {
        self.open(&format!("<h{level}>"));
        self.heading = Some(Heading { id_at: self.out.len() - 1, text: String::new(), anchor: String::new() });
    }

    pub(super) fn end_heading(&mut self, level: usize) {
        self.out.push_str(&format!("</h{level}>\n"));
        let Some(heading) = self.heading.take() else { return };
        if let Some(id) = self.anchors.id(&heading.anchor) {
            let mut attribute = format!(" id=\"{}", self.mark);
            escape::text(&mut attribute, &id);
            attribute.push('"');
            self.out.insert_str(heading.id_at, &attribute);
        }
        self.found_heading(&heading.text);
    }

    pub(super) fn start_code(&mut self, kind: &CodeBlockKind<'_>) {
        let language = match kind {
            CodeBlockKind::Fenced(info) => info.split_whitespace().next(),
            CodeBlockKind::Indented => None,
        };
        self.open("<pre><code");
        if let Some(language) = language {
            self.out.push_str(" class=\"");
            self.out.push_str(self.mark);
            self.out.push_str("language-");
            escape::text(&mut self.out, language);
            self.out.push('"');
        }
        self.out.push('>');
    }

    /// A block of raw HTML that is shown as it is written.
    pub(super) fn end_raw_block(&mut self) {
        self.out.truncate(self.out.trim_end().len());
        self.out.push_str("</p>\n");
    }

    pub(super) fn start_list(&mut self, start: Option<u64>) {
        match start {
            None => self.open_nested("<ul>\n"),
            Some(1) => self.open_nested("<ol>\n"),
            Some(start) => self.open_nested(&format!("<ol start=\"{start}\">\n")),
        }
    }

    pub(super) fn task(&mut self, done: bool) {
        if self.mark.is_empty() {
            self.out.push_str(checkbox(done));
        } else {
            self.out.push_str(self.mark);
            self.out.push_str(if done { "[x]" } else { "[ ]" });
        }
        self.out.push(' ');
    }

    pub(super) fn start_table(&mut self, alignments: Vec<Alignment>) {
        self.open(&format!("<div class=\"{0}table\" tabindex=\"{0}0\">\n<table>\n", self.mark));
        self.table = Table { alignments, ..Table::default() };
    }

    pub(super) fn table_head(&mut self) {
        (self.table.cell, self.table.in_head) = (0, true);
        self.out.push_str("<thead>\n<tr>\n");
    }

    pub(super) fn table_row(&mut self) {
        if !self.table.has_body {
            self.out.push_str("<tbody>\n");
        }
        self.table = Table { cell: 0, in_head: false, has_body: true, ..std::mem::take(&mut self.table) };
        self.out.push_str("<tr>\n");
    }

    pub(super) fn start_cell(&mut self) {
        self.out.push_str(if self.table.in_head { "<th" } else { "<td" });
        self.out.push_str(match self.table.alignments.get(self.table.cell) {
            Some(Alignment::Left) => " align=\"left\">",
            Some(Alignment::Center) => " align=\"center\">",
            Some(Alignment::Right) => " align=\"right\">",
            _ => ">",
        });
        self.table.cell += 1;
    }

    pub(super) fn end_cell(&mut self) {
        self.out.push_str(if self.table.in_head { "</th>\n" } else { "</td>\n" });
    }

    pub(super) fn end_table(&mut self) {
        self.out.push_str(if self.table.has_body { "</tbody>\n</table>\n</div>\n" } else { "</table>\n</div>\n" });
    }
}

/// The box of a task. Without quotes, so that it does no harm where a text was taken into an attribute.
pub(in crate::transform::markdown) fn checkbox(done: bool) -> &'static str {
    if done { "<input type=checkbox disabled checked>" } else { "<input type=checkbox disabled>" }
}
