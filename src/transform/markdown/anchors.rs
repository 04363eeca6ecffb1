//! Ids of headings, by GitHub's rule.

use std::collections::HashMap;

use unicode_normalization::char::is_combining_mark;

/// The ids that are taken, each with how often it was asked for again.
#[derive(Debug, Default)]
pub(super) struct Anchors(HashMap<String, usize>);

impl Anchors {
    /// An id for a heading of this text; none where the text has no letter, digit, `-` or `_`.
    pub(super) fn id(&mut self, text: &str) -> Option<String> {
        let slug = slug(text);
        if slug.is_empty() {
            return None;
        }
        let id = match self.0.get(&slug).copied() {
            None => slug,
            Some(mut count) => {
                let id = loop {
                    count += 1;
                    let id = format!("{slug}-{count}");
                    if !self.0.contains_key(&id) {
                        break id;
                    }
                };
                self.0.insert(slug, count);
                id
            }
        };
        self.0.insert(id.clone(), 0);
        Some(id)
    }

    /// All ids.
    pub(super) fn into_ids(self) -> impl Iterator<Item = String> {
        self.0.into_keys()
    }
}

/// Lower case, white space as `-`, punctuation dropped.
fn slug(text: &str) -> String {
    let mut slug = String::with_capacity(text.len());
    for c in text.trim().chars() {
        match c {
            c if c.is_whitespace() => slug.push('-'),
            '-' | '_' => slug.push(c),
            c if c.is_alphanumeric() || is_combining_mark(c) => slug.extend(c.to_lowercase()),
            _ => {}
        }
    }
    slug
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_those_of_github() {
        for (text, id) in [
            ("Hello, World!", "hello-world"),
            ("A -- B", "a----b"),
            ("snake_case & 100%", "snake_case--100"),
            ("Ärger über Größe", "ärger-über-größe"),
            ("日本語 テスト", "日本語-テスト"),
            ("e\u{301}te\u{301}", "e\u{301}te\u{301}"),
            ("हिन्दी", "हिन्दी"),
            ("v1.2.3", "v123"),
            ("\"><script>alert(1)</script>", "scriptalert1script"),
            ("🚀 Launch", "-launch"),
        ] {
            assert_eq!(Anchors::default().id(text).as_deref(), Some(id), "{text}");
        }
        assert_eq!(Anchors::default().id("!?"), None);
    }

    #[test]
    fn repeated_ids_are_counted_and_never_taken_twice() {
        let mut anchors = Anchors::default();
        let ids: Vec<_> = ["a", "A", "a-1", "a", "a-1", "a"].iter().filter_map(|text| anchors.id(text)).collect();
        assert_eq!(ids, ["a", "a-1", "a-1-1", "a-2", "a-1-2", "a-3"]);
    }
}
