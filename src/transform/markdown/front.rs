//! Front matter: YAML between `---` lines at the very start of a file.

use saphyr_parser::{Event, Parser, ScalarStyle};

/// What a page takes from front matter.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Front {
    /// `title`, on one line.
    pub(super) title: Option<String>,
    /// `lang`, where it looks like a language tag.
    pub(super) lang: Option<String>,
}

/// The largest block that is read; a larger one is only not shown.
const MAX_SIZE: usize = 64 << 10;

/// The front matter of `text`, and what follows it.
pub(super) fn split(text: &str) -> (Front, &str) {
    let Some((block, body)) = block(text) else { return (Front::default(), text) };
    match read(block) {
        Some(front) => (front, body),
        // A text that begins with a rule and goes on after an empty line has another rule somewhere below.
        None if block.lines().next().is_none_or(|line| !line.trim().is_empty()) => (Front::default(), body),
        None => (Front::default(), text),
    }
}

fn block(text: &str) -> Option<(&str, &str)> {
    let mut lines = text.split_inclusive('\n');
    let is_fence = |line: &str| line.trim_end() == "---";
    let start = lines.next().filter(|line| is_fence(line))?.len();
    let mut end = start;
    for line in lines {
        if is_fence(line) {
            return Some((&text[start..end], &text[end + line.len()..]));
        }
        end += line.len();
    }
    None
}

/// `None` where the block is no mapping in the YAML that is taken here: without aliases, anchors and tags.
fn read(block: &str) -> Option<Front> {
    if block.len() > MAX_SIZE {
        return Some(Front::default());
    }
    let (mut front, mut depth, mut key, mut seen) = (Front::default(), 0_usize, None, false);
    let mut parser = Parser::new_from_str(block);
    while let Some(event) = parser.next_event() {
        match event.ok()?.0 {
            Event::Alias(_) => return None,
            Event::DocumentStart(_) if seen => return None,
            Event::DocumentStart(_) => seen = true,
            Event::Scalar(_, _, anchor, tag) if anchor != 0 || tag.is_some() => return None,
            Event::MappingStart(anchor, tag) | Event::SequenceStart(anchor, tag) if anchor != 0 || tag.is_some() => {
                return None;
            }
            Event::Scalar(..) | Event::SequenceStart(..) if depth == 0 => return None,
            Event::Scalar(text, style, ..) if depth == 1 => match key.take() {
                None => key = Some(text.into_owned()),
                Some(key) => front.take(&key, &text, style == ScalarStyle::Plain),
            },
            Event::MappingStart(..) | Event::SequenceStart(..) => depth += 1,
            Event::MappingEnd | Event::SequenceEnd => {
                depth -= 1;
                // A list or mapping was the key, or the value of one.
                if depth == 1 {
                    key = if key.is_some() { None } else { Some(String::new()) };
                }
            }
            _ => {}
        }
    }
    Some(front)
}

impl Front {
    fn take(&mut self, key: &str, text: &str, plain: bool) {
        let line = one_line(text);
        if line.is_empty() || plain && matches!(line.as_str(), "~" | "null" | "Null" | "NULL") {
            return;
        }
        match key {
            "title" if self.title.is_none() => self.title = Some(line),
            "lang" if self.lang.is_none() && is_language(&line) => self.lang = Some(line),
            _ => {}
        }
    }
}

/// `text` with every run of white space and control characters as one space.
pub(super) fn one_line(text: &str) -> String {
    let words = text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join(" ")
}

/// Whether `text` has the form of a BCP 47 tag.
fn is_language(text: &str) -> bool {
    let part = |part: &str| (1..=8).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let first = text.split('-').next().unwrap_or_default();
    text.len() <= 35 && text.split('-').all(part) && first.len() >= 2 && first.bytes().all(|b| b.is_ascii_alphabetic())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn title(text: &str) -> (Option<String>, &str) {
        let (front, body) = split(text);
        (front.title, body)
    }

    #[test]
    fn a_title_is_read_from_yaml() {
        for (yaml, expected) in [
            ("title: Report", "Report"),
            ("title: 'It''s'", "It's"),
            ("title: \"a\\tb\\u0000c\"", "a b c"),
            ("title: 2024", "2024"),
            ("title: \"null\"", "null"),
            ("tags: [a, b]\nnested: {title: no}\ntitle: yes", "yes"),
            ("? [a]\n: b\ntitle: x", "x"),
            ("? {a: b}\n: [c]\ntitle: x", "x"),
            ("title: >\n  two\n  lines", "two lines"),
            ("title: a\ntitle: b", "a"),
            ("\ntitle: after an empty line", "after an empty line"),
        ] {
            let text = format!("---\n{yaml}\n---\nbody");
            assert_eq!(title(&text), (Some(expected.to_owned()), "body"), "{yaml}");
            let text = text.replace('\n', "\r\n");
            assert_eq!(title(&text), (Some(expected.to_owned()), "body"), "{yaml}");
        }
    }

    #[test]
    fn what_is_not_understood_is_not_shown() {
        for yaml in [
            "title: [",
            "title: a\n b: c: d",
            "a: &x 1\ntitle: *x",
            "title: !!str x",
            "- title: x",
            "title: ~",
            "title:",
            "title: {a: b}",
            "just text",
            "title: \"open",
        ] {
            assert_eq!(title(&format!("---\n{yaml}\n---\nbody")), (None, "body"), "{yaml}");
        }
        assert_eq!(title("---\n---\nbody"), (None, "body"));
        let long = format!("---\ntitle: x\na: {}\n---\nbody", "y".repeat(MAX_SIZE));
        assert_eq!(title(&long), (None, "body"));
    }

    #[test]
    fn what_is_not_front_matter_stays() {
        for text in [
            "",
            "---",
            "---\ntitle: x",
            " ---\ntitle: x\n---\n",
            "a\n---\ntitle: x\n---\n",
            "----\na: b\n----\n",
            "---\n\nA rule, a text, a rule.\n\n---\n",
        ] {
            assert_eq!(title(text), (None, text), "{text:?}");
        }
    }

    #[test]
    fn a_language_is_a_plain_tag() {
        for (lang, expected) in [
            ("de", Some("de")),
            ("pt-BR", Some("pt-BR")),
            ("zh-Hant-TW", Some("zh-Hant-TW")),
            ("d", None),
            ("1a", None),
            ("en--us", None),
            ("en us", None),
            ("'en\" onload=\"x'", None),
            ("en-123456789", None),
        ] {
            let text = format!("---\nlang: {lang}\n---\n");
            assert_eq!(split(&text).0.lang.as_deref(), expected, "{lang}");
        }
    }
}
