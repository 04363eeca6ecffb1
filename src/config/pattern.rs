//! Glob patterns on relative paths, the same everywhere in the file.

use std::fmt;

use globset::{GlobBuilder, GlobMatcher};

use crate::path::RelPath;

/// A pattern: `*`, `?`, `[…]` and `{…}` stay within a segment, `**` goes across; one without `/` matches the file name
/// at any depth.
#[derive(Clone)]
pub struct Pattern {
    text: Box<str>,
    matcher: GlobMatcher,
}

impl Pattern {
    /// Reads `text`; the error says what is wrong with it.
    pub fn parse(text: &str) -> Result<Pattern, String> {
        if text.is_empty() {
            return Err("a pattern must not be empty".to_owned());
        }
        if text.starts_with('/') {
            return Err("a pattern must be relative: it begins with \"/\"".to_owned());
        }
        let glob = GlobBuilder::new(text).literal_separator(true).backslash_escape(true).build();
        let glob = glob.map_err(|error| format!("pattern {text:?}: {}", error.kind()))?;
        Ok(Pattern { text: text.into(), matcher: glob.compile_matcher() })
    }

    /// Whether `path` matches.
    pub fn matches(&self, path: &RelPath) -> bool {
        let subject = if self.text.contains('/') { path.as_str() } else { path.file_name() };
        self.matcher.is_match(subject)
    }

    /// The text it was written as.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Pattern) -> bool {
        self.text == other.text
    }
}

impl Eq for Pattern {}

impl fmt::Debug for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.text, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_as_the_manual_says() {
        for (pattern, path, expected) in [
            ("*.md", "a.md", true),
            ("*.md", "deep/er/a.md", true),
            ("index.html", "x/index.html", true),
            ("a/*.md", "a/b.md", true),
            ("a/*.md", "a/b/c.md", false),
            ("a/*.md", "x/a/b.md", false),
            ("a/**", "a/b/c.md", true),
            ("**/a.md", "a.md", true),
            ("**/a.md", "x/y/a.md", true),
            ("a/**/z.md", "a/z.md", true),
            ("a/?.md", "a/b.md", true),
            ("?.md", "bb.md", false),
            ("[ab].md", "b.md", true),
            ("[!ab].md", "b.md", false),
            ("a/b[!x]c", "a/b/c", false),
            ("a/b[!-z]c", "a/b/c", false),
            ("a/b[.-0]c", "a/b/c", false),
            ("a/{b,c}?d", "a/b/d", false),
            ("a/{b,c/d}/e", "a/c/d/e", true),
            ("{*.md,a/**}", "a/b/c", true),
            ("a**", "a/b", false),
            ("a/**", "a", false),
            ("*.{md,markdown}", "r.markdown", true),
            ("*.MD", "a.md", false),
            ("*", ".hidden", true),
            ("**", "a/b", true),
            ("\\*.md", "*.md", true),
            ("\\*.md", "a.md", false),
        ] {
            let Ok(path) = RelPath::parse(path) else { continue };
            assert_eq!(Pattern::parse(pattern).unwrap().matches(&path), expected, "{pattern} on {path}");
        }
    }

    #[test]
    fn bad_patterns_are_refused() {
        for text in ["", "/a", "[a", "{a", "a\\"] {
            assert!(Pattern::parse(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn equality_and_debug_go_by_the_text() {
        let pattern = Pattern::parse("*.md").unwrap();
        assert_eq!(pattern, Pattern::parse("*.md").unwrap());
        assert_eq!(format!("{pattern:?}"), "\"*.md\"");
    }
}
