//! Links and images.

use pulldown_cmark::{Event, LinkType};

use super::Writer;
use crate::config::RawHtml;
use crate::transform::markdown::escape;
use crate::transform::markdown::targets::{self, Kind};

/// The heading that is open.
#[derive(Debug)]
pub(super) struct Heading {
    /// Where its id goes.
    pub(super) id_at: usize,
    /// Its text, with what images and raw HTML say.
    pub(super) text: String,
    /// The text that its id is made of.
    pub(super) anchor: String,
}

/// The image that is open: inside of it everything is text.
#[derive(Debug)]
pub(super) struct Image {
    /// How many more are open in it.
    nested: usize,
    /// What closes it.
    end: String,
}

impl Writer<'_, '_> {
    pub(super) fn start_link(&mut self, kind: LinkType, target: &str, title: &str) {
        let address = if kind == LinkType::Email { format!("mailto:{target}") } else { String::new() };
        let target = if address.is_empty() { target } else { &address };
        let kept = self.keeps(Kind::Link, target);
        self.links.push(kept);
        if kept {
            self.out.push_str("<a href=\"");
            match targets::follow(self.page, target) {
                Some(target) => escape::url(&mut self.out, &target),
                None => escape::url(&mut self.out, target),
            }
            self.out.push_str(&title_attribute(title));
            self.out.push_str("\">");
        }
    }

    pub(super) fn end_link(&mut self) {
        if self.links.pop() == Some(true) {
            self.out.push_str("</a>");
        }
    }

    pub(super) fn start_image(&mut self, target: &str, title: &str) {
        let mut end = String::new();
        if self.keeps(Kind::Image, target) {
            self.out.push_str("<img src=\"");
            escape::url(&mut self.out, target);
            self.out.push_str("\" alt=\"");
            end = format!("{}\" />", title_attribute(title));
        }
        self.image = Some(Image { nested: 0, end });
    }

    fn keeps(&self, kind: Kind, target: &str) -> bool {
        self.raw_html == RawHtml::Allow || targets::is_allowed(kind, target)
    }

    /// What stands in an image is its text, whether the image itself is kept or not.
    pub(super) fn in_image(&mut self, event: &Event<'_>) {
        let Some(image) = &mut self.image else { return };
        let text = match event {
            Event::Text(text) | Event::Code(text) | Event::InlineHtml(text) => text,
            Event::SoftBreak | Event::HardBreak => " ",
            Event::Start(pulldown_cmark::Tag::Image { .. }) => {
                image.nested += 1;
                return;
            }
            Event::End(pulldown_cmark::TagEnd::Image) if image.nested > 0 => {
                image.nested -= 1;
                return;
            }
            Event::End(pulldown_cmark::TagEnd::Image) => {
                self.out.push_str(&image.end);
                self.image = None;
                return;
            }
            _ => return,
        };
        escape::text(&mut self.out, text);
        self.note(text, false);
    }
}

/// The end of an attribute's value and a `title`, up to its last quote.
fn title_attribute(title: &str) -> String {
    let mut attribute = String::new();
    if !title.is_empty() {
        attribute.push_str("\" title=\"");
        escape::text(&mut attribute, title);
    }
    attribute
}
