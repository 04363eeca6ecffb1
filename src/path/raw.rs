//! Paths as a storage has them.

use std::fmt;

use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, percent_encode};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{RelPath, escape};
use crate::json;

/// What is not written as it is: control characters, `%`, and all that is not ASCII.
const ENCODED: &AsciiSet = &CONTROLS.add(b'%');

/// A path below a place as a listing gave it, whatever its bytes: for what is there and has no [`RelPath`]. Ordered by
/// its bytes, shown escaped, and written to JSON percent-encoded, so that no byte is lost.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RawPath(Box<[u8]>);

impl RawPath {
    /// The bytes of it.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// It as JSON reports have it: bytes that are not UTF-8 stand as `\xNN`.
    pub fn text(&self) -> String {
        let chunks = self.0.utf8_chunks();
        let whole = |chunk: std::str::Utf8Chunk<'_>| chunk.valid().to_owned() + &escape(chunk.invalid());
        chunks.map(whole).collect()
    }

    /// Every directory above it, the nearest first.
    pub fn ancestors(&self) -> impl Iterator<Item = &[u8]> {
        let slashes = self.0.iter().enumerate().rev().filter(|(_, byte)| **byte == b'/');
        slashes.map(|(at, _)| &self.0[..at])
    }

    /// The last segment.
    pub fn file_name(&self) -> &[u8] {
        self.0.rsplit(|byte| *byte == b'/').next().unwrap_or_default()
    }

    /// The directory that holds it, `None` at the root.
    pub fn parent(&self) -> Option<&[u8]> {
        self.ancestors().next()
    }
}

impl From<Vec<u8>> for RawPath {
    fn from(bytes: Vec<u8>) -> RawPath {
        RawPath(bytes.into())
    }
}

impl From<&str> for RawPath {
    fn from(path: &str) -> RawPath {
        RawPath(path.as_bytes().into())
    }
}

impl From<&RelPath> for RawPath {
    fn from(path: &RelPath) -> RawPath {
        path.as_str().into()
    }
}

impl fmt::Display for RawPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&escape(&self.0))
    }
}

impl Serialize for RawPath {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&percent_encode(&self.0, ENCODED))
    }
}

impl<'de> Deserialize<'de> for RawPath {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<RawPath, D::Error> {
        json::from_text(deserializer, |text| Ok(percent_decode_str(text).collect::<Vec<u8>>().into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_byte_is_lost_in_json() {
        let all: Vec<u8> = (0..=255).collect();
        for bytes in [all.as_slice(), b"a b/c.html", b"%41", "\u{fc}/x".as_bytes(), b"odd\xff\\\"name"] {
            let path = RawPath::from(bytes.to_vec());
            let json = serde_json::to_string(&path).unwrap();
            assert_eq!(serde_json::from_str::<RawPath>(&json).unwrap(), path, "{json}");
        }
        assert_eq!(serde_json::to_string(&RawPath::from("a b/c.html")).unwrap(), r#""a b/c.html""#);
        assert_eq!(serde_json::to_string(&RawPath::from(b"\xff%".to_vec())).unwrap(), r#""%FF%25""#);
    }

    #[test]
    fn parts_of_a_path() {
        let path = RawPath::from(b"a/\xff/c".to_vec());
        assert_eq!(path.ancestors().collect::<Vec<_>>(), [b"a/\xff".as_slice(), b"a"]);
        assert_eq!(path.file_name(), b"c");
        assert_eq!((path.parent(), RawPath::from("a").parent()), (Some(b"a/\xff".as_slice()), None));
        assert_eq!(path.to_string(), r"a/\xff/c");
        let odd = RawPath::from(b"\n\xff".to_vec());
        assert_eq!((odd.text().as_str(), odd.to_string().as_str()), ("\n\\xff", r"\x0a\xff"));
    }
}
