//! Footnotes: numbered as they are first referred to, and written at the end of the content.

use std::collections::HashMap;

/// The footnotes of a page. Their ids hold a colon, which no heading's id does.
#[derive(Debug, Default)]
pub(super) struct Footnotes {
    notes: Vec<Note>,
    /// The place of every label in `notes`.
    places: HashMap<String, usize>,
    /// How many were referred to.
    referred: usize,
}

/// How many of the places that refer to a footnote it leads back to. Nobody follows more, and a page would be made of
/// little else.
const MAX_BACKLINKS: usize = 100;

#[derive(Debug, Default)]
struct Note {
    number: usize,
    references: usize,
    text: Option<String>,
}

impl Footnotes {
    fn note(&mut self, label: &str) -> &mut Note {
        // Labels match whatever their case.
        let label = label.to_uppercase().to_lowercase();
        let place = *self.places.entry(label).or_insert_with(|| {
            self.notes.push(Note::default());
            self.notes.len() - 1
        });
        &mut self.notes[place]
    }

    /// Writes a reference.
    pub(super) fn refer(&mut self, out: &mut String, label: &str, mark: &str) {
        let next = self.referred + 1;
        let note = self.note(label);
        if note.references == 0 {
            note.number = next;
        }
        note.references += 1;
        let (number, nth) = (note.number, note.references);
        self.referred = self.referred.max(number);
        let id = if nth > MAX_BACKLINKS { String::new() } else { format!(" id=\"{mark}{}\"", id(number, nth)) };
        out.push_str(&format!("<sup><a{id} href=\"#fn:{number}\">{number}</a></sup>"));
    }

    /// Takes the text of a footnote; the first one of a label stands.
    pub(super) fn define(&mut self, label: &str, text: String) {
        self.note(label).text.get_or_insert(text);
    }

    /// Writes the footnotes, those that nothing refers to last.
    pub(super) fn write(mut self, out: &mut String, mark: &str) {
        self.notes.retain(|note| note.text.is_some() || note.references > 0);
        if self.notes.is_empty() {
            return;
        }
        for note in self.notes.iter_mut().filter(|note| note.references == 0) {
            self.referred += 1;
            note.number = self.referred;
        }
        self.notes.sort_by_key(|note| note.number);
        if !out.is_empty() && !out.ends_with('\n') {
            out.push('\n');
        }
        out.push_str(&format!("<section class=\"{mark}footnotes\" role=\"{mark}doc-endnotes\">\n<ol>\n"));
        for note in self.notes {
            note.write(out, mark);
        }
        out.push_str("</ol>\n</section>\n");
    }
}

impl Note {
    fn write(self, out: &mut String, mark: &str) {
        out.push_str(&format!("<li id=\"{mark}fn:{}\">\n", self.number));
        let text = self.text.unwrap_or_default();
        let (text, end) = match text.strip_suffix("</p>\n") {
            Some(text) => (text, "</p>\n"),
            None => (text.as_str(), "\n"),
        };
        out.push_str(text);
        for nth in 1..=self.references.min(MAX_BACKLINKS) {
            let id = id(self.number, nth);
            let suffix = if nth == 1 { String::new() } else { format!("<sup>{nth}</sup>") };
            out.push_str(&format!(" <a href=\"#{id}\" role=\"{mark}doc-backlink\">\u{21a9}\u{fe0e}{suffix}</a>"));
        }
        out.push_str(end);
        out.push_str("</li>\n");
    }
}

/// The id of the nth reference to a footnote.
fn id(number: usize, nth: usize) -> String {
    if nth == 1 { format!("fnref:{number}") } else { format!("fnref:{number}:{nth}") }
}
