//! Checked relative paths: the only path rules in the code.

mod raw;

use std::borrow::Borrow;
use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use unicode_normalization::UnicodeNormalization;

use crate::json;

pub use raw::RawPath;

/// The file name that makes a directory a bundle.
pub const MANIFEST: &str = "manifest.json";
/// What every name of ours at a destination begins with.
pub const RESERVED: &str = ".distributor";
/// The longest segment, in bytes.
pub const MAX_SEGMENT: usize = 255;
/// The longest path, in bytes.
pub const MAX_PATH: usize = 1024;

/// A relative path that keeps the path rules: `/`-separated UTF-8, no empty, `.` or `..` segment, no backslash or
/// control character, at most 255 bytes a segment and 1,024 in all, no segment that begins with `.distributor`, and
/// not `manifest.json` at the root. Ordered by its bytes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RelPath(Box<str>);

/// The rule that a path breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The path is the empty string.
    Empty,
    /// It begins with `/`.
    Absolute,
    /// It ends with `/`.
    TrailingSlash,
    /// Two slashes in a row.
    EmptySegment,
    /// A segment is `.` or `..`.
    DotSegment,
    /// It holds a backslash.
    Backslash,
    /// It holds NUL or another control character.
    Control,
    /// A segment is longer than 255 bytes.
    LongSegment,
    /// The path is longer than 1,024 bytes.
    LongPath,
    /// A segment begins with `.distributor`.
    Reserved,
    /// The root-level path `manifest.json`.
    Manifest,
    /// The bytes are not UTF-8.
    NotUtf8,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Fault::Empty => "a path must not be empty",
            Fault::Absolute => "a path must be relative: it begins with \"/\"",
            Fault::TrailingSlash => "a path must name a file: it ends with \"/\"",
            Fault::EmptySegment => "a path must not hold an empty segment (\"//\")",
            Fault::DotSegment => "a path must not hold a \".\" or \"..\" segment",
            Fault::Backslash => "a path must not hold a backslash",
            Fault::Control => "a path must not hold a control character",
            Fault::LongSegment => "a path segment is at most 255 bytes",
            Fault::LongPath => "a path is at most 1024 bytes",
            Fault::Reserved => "names that begin with \".distributor\" are reserved",
            Fault::Manifest => "\"manifest.json\" at the root is the manifest itself",
            Fault::NotUtf8 => "a path must be UTF-8",
        })
    }
}

impl RelPath {
    /// Checks `text` against the path rules.
    pub fn parse(text: &str) -> Result<RelPath, Fault> {
        check(text)?;
        Ok(RelPath(text.into()))
    }

    /// Checks raw bytes, as a file system or an archive gives them.
    pub fn from_bytes(bytes: &[u8]) -> Result<RelPath, Fault> {
        RelPath::parse(std::str::from_utf8(bytes).map_err(|_| Fault::NotUtf8)?)
    }

    /// The path as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The last segment.
    pub fn file_name(&self) -> &str {
        self.0.rsplit('/').next().unwrap_or_default()
    }

    /// The directory that holds it, `None` at the root.
    pub fn parent(&self) -> Option<&str> {
        self.0.rsplit_once('/').map(|(parent, _)| parent)
    }

    /// Every directory above it, the nearest first.
    pub fn ancestors(&self) -> impl Iterator<Item = &str> {
        ancestors(&self.0)
    }
}

/// Every directory above `path`, the nearest first.
pub fn ancestors(path: &str) -> impl Iterator<Item = &str> {
    path.rmatch_indices('/').map(move |(at, _)| &path[..at])
}

fn check(text: &str) -> Result<(), Fault> {
    match text.as_bytes() {
        [] => return Err(Fault::Empty),
        long if long.len() > MAX_PATH => return Err(Fault::LongPath),
        [b'/', ..] => return Err(Fault::Absolute),
        [.., b'/'] => return Err(Fault::TrailingSlash),
        _ => {}
    }
    if text.bytes().any(|byte| byte == b'\\') {
        return Err(Fault::Backslash);
    }
    // Cc is U+0000–U+001F and U+007F–U+009F; of text that is ASCII every byte tells.
    let ascii = text.is_ascii();
    if ascii && text.bytes().any(|byte| byte.is_ascii_control()) || !ascii && text.chars().any(char::is_control) {
        return Err(Fault::Control);
    }
    for segment in text.as_bytes().split(|byte| *byte == b'/') {
        match segment {
            [] => return Err(Fault::EmptySegment),
            b"." | b".." => return Err(Fault::DotSegment),
            long if long.len() > MAX_SEGMENT => return Err(Fault::LongSegment),
            [b'.', ..] if segment.starts_with(RESERVED.as_bytes()) => return Err(Fault::Reserved),
            _ => {}
        }
    }
    if text == MANIFEST {
        return Err(Fault::Manifest);
    }
    Ok(())
}

impl fmt::Display for RelPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Borrow<str> for RelPath {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl AsRef<str> for RelPath {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl Serialize for RelPath {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for RelPath {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<RelPath, D::Error> {
        json::from_text(deserializer, |text| RelPath::parse(text).map_err(|fault| format!("path {text:?}: {fault}")))
    }
}

/// A bundle's path below its source root: a checked path, or the root itself, written `.`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BundlePath(Option<RelPath>);

impl BundlePath {
    /// The root itself.
    pub const ROOT: BundlePath = BundlePath(None);

    /// The path below the root, `None` for the root itself.
    pub fn below(&self) -> Option<&RelPath> {
        self.0.as_ref()
    }

    /// The path as text, `.` for the root.
    pub fn as_str(&self) -> &str {
        self.0.as_ref().map_or(".", RelPath::as_str)
    }
}

impl From<RelPath> for BundlePath {
    fn from(path: RelPath) -> BundlePath {
        BundlePath(Some(path))
    }
}

impl fmt::Display for BundlePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// `bytes` as text: what is not UTF-8 or is a control character stands as `\xNN`.
pub fn escape(bytes: &[u8]) -> String {
    escape_all(bytes, char::is_control)
}

/// `text` as one line that does nothing to a terminal or log, whatever names it repeats: what acts on the text around it
/// stands as the `\xNN` of its UTF-8 bytes.
pub fn plain(text: &str) -> String {
    escape_all(text.as_bytes(), is_unseen)
}

/// Whether a character acts on the text around it instead of standing in it: a control character, one that sets the
/// direction of text, a line or paragraph separator, a byte-order mark.
fn is_unseen(c: char) -> bool {
    let turns = matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    turns || matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}') || c.is_control()
}

fn escape_all(bytes: &[u8], odd: fn(char) -> bool) -> String {
    use fmt::Write;
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            if odd(c) {
                let mut buffer = [0; 4];
                for b in c.encode_utf8(&mut buffer).bytes() {
                    let _ = write!(text, "\\x{b:02x}");
                }
            } else {
                text.push(c);
            }
        }
        for b in chunk.invalid() {
            let _ = write!(text, "\\x{b:02x}");
        }
    }
    text
}

/// The name that `path` has on a file system that folds case and normalises Unicode: two paths with one folded name
/// are one file there.
pub fn fold(path: &str) -> String {
    if path.is_ascii() {
        return path.to_ascii_lowercase();
    }
    // Upper then lower case folds what has several lower-case forms (ß and ss, σ and ς).
    path.nfd().flat_map(char::to_uppercase).flat_map(char::to_lowercase).nfd().collect()
}

/// A path that can't stand beside another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clash<'a> {
    /// The first of the two, in byte order.
    pub first: &'a str,
    /// The other.
    pub second: &'a str,
}

/// The paths of a list in byte order that are a directory of another one (`a` beside `a/b`).
pub fn nested<P: AsRef<str>>(sorted: &[P]) -> Vec<Clash<'_>> {
    let find = |dir: &str| sorted.binary_search_by(|path| path.as_ref().cmp(dir)).ok().map(|at| sorted[at].as_ref());
    let (mut clashes, mut clear) = (Vec::new(), None);
    for second in sorted.iter().map(AsRef::as_ref) {
        let dir = ancestors(second).next();
        // Neighbours mostly share their directory: what is true of it is looked up once.
        if dir == clear {
            continue;
        }
        match ancestors(second).find_map(find) {
            Some(first) => clashes.push(Clash { first, second }),
            None => clear = dir,
        }
    }
    clashes
}

/// The paths that are one name, or a file and a directory of one name, where case or Unicode form does not count.
pub fn folded<P: AsRef<str>>(paths: &[P]) -> Vec<Clash<'_>> {
    let names: Vec<(String, &str)> = paths.iter().map(|p| (fold(p.as_ref()), p.as_ref())).collect();
    let mut first = std::collections::BTreeMap::new();
    let mut clashes = Vec::new();
    for (name, path) in &names {
        match first.get(name.as_str()) {
            Some(&other) if other != *path => clashes.push(Clash { first: other, second: path }),
            Some(_) => {}
            None => {
                first.insert(name.as_str(), *path);
            }
        }
    }
    for (name, path) in &names {
        if let Some(other) = ancestors(name).find_map(|dir| first.get(dir))
            && !path.starts_with(&format!("{other}/"))
        {
            clashes.push(Clash { first: other, second: path });
        }
    }
    clashes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_has_a_path_that_breaks_it() {
        let long = "x".repeat(256);
        let deep = "ab/".repeat(400) + "c";
        for (text, fault) in [
            ("", Fault::Empty),
            ("/a", Fault::Absolute),
            ("a/", Fault::TrailingSlash),
            ("a//b", Fault::EmptySegment),
            (".", Fault::DotSegment),
            ("a/../b", Fault::DotSegment),
            ("a/./b", Fault::DotSegment),
            ("a\\b", Fault::Backslash),
            ("a\0b", Fault::Control),
            ("a\nb", Fault::Control),
            ("a\u{7f}", Fault::Control),
            ("a\u{85}b", Fault::Control),
            (long.as_str(), Fault::LongSegment),
            (deep.as_str(), Fault::LongPath),
            (".distributor.json", Fault::Reserved),
            ("a/.distributor-x/b", Fault::Reserved),
            ("manifest.json", Fault::Manifest),
        ] {
            assert_eq!(RelPath::parse(text), Err(fault), "{text:?}");
        }
        assert_eq!(RelPath::from_bytes(b"a\xff"), Err(Fault::NotUtf8));
    }

    #[test]
    fn what_looks_odd_but_keeps_the_rules_passes() {
        for text in ["a", "a/manifest.json", "...", ".hidden", "a b/ü", ".distribut", "-rf", "~", &"x".repeat(255)] {
            assert_eq!(RelPath::parse(text).unwrap().as_str(), text);
        }
    }

    #[test]
    fn a_file_that_is_a_directory_of_another_is_found() {
        let clash =
            |paths: &[&str]| nested(paths).iter().map(|c| format!("{}|{}", c.first, c.second)).collect::<Vec<_>>();
        assert_eq!(clash(&["a", "a-b", "a/b"]), ["a|a/b"]);
        assert!(clash(&["a-b", "a/b", "a/c"]).is_empty());
    }

    #[test]
    fn names_that_fold_together_are_found() {
        let clash =
            |paths: &[&str]| folded(paths).iter().map(|c| format!("{}|{}", c.first, c.second)).collect::<Vec<_>>();
        assert_eq!(clash(&["A", "a"]), ["A|a"]);
        assert_eq!(clash(&["\u{e9}", "e\u{301}"]), ["\u{e9}|e\u{301}"]);
        assert_eq!(clash(&["STRASSE", "straße"]), ["STRASSE|straße"]);
        assert_eq!(clash(&["A", "a/b"]), ["A|a/b"]);
        assert!(clash(&["A/x", "a/y"]).is_empty());
    }

    #[test]
    fn what_turns_or_hides_text_is_shown() {
        assert_eq!(plain("a\u{202e}txt.exe\u{2028}\x1b\u{fc}"), "a\\xe2\\x80\\xaetxt.exe\\xe2\\x80\\xa8\\x1b\u{fc}");
        assert_eq!(plain("\u{200d}\u{202f}"), "\u{200d}\u{202f}");
    }

    #[test]
    fn bytes_that_are_not_text_are_escaped() {
        assert_eq!(escape(b"a\xffb\n\xc3\xbc"), "a\\xffb\\x0a\u{fc}");
        // A name stays what it is, whatever a terminal makes of it.
        assert_eq!(escape("a\u{202e}b".as_bytes()), "a\u{202e}b");
    }
}
