//! JSON that people may look at, too.

use std::io;

use serde::Serialize;
use serde_json::ser::Formatter;

/// A value on one line. What does not stand in text but acts on what is around it, or can't be seen, is written as
/// `\uXXXX`: it means the same to who reads JSON, and nothing to a terminal.
pub(super) fn line(value: &impl Serialize) -> String {
    let mut bytes = Vec::new();
    // These types can't fail to serialise: no maps with other keys than text, no failing implementations.
    let _ = value.serialize(&mut serde_json::Serializer::with_formatter(&mut bytes, Plain));
    bytes.push(b'\n');
    String::from_utf8(bytes).unwrap_or_default()
}

/// Compact, as [`serde_json::ser::CompactFormatter`].
struct Plain;

impl Formatter for Plain {
    fn write_string_fragment<W: io::Write + ?Sized>(&mut self, to: &mut W, fragment: &str) -> io::Result<()> {
        let mut rest = fragment;
        while let Some(at) = rest.find(is_unseen) {
            to.write_all(&rest.as_bytes()[..at])?;
            let unseen = rest[at..].chars().next().unwrap_or_default();
            for unit in unseen.encode_utf16(&mut [0; 2]) {
                write!(to, "\\u{unit:04x}")?;
            }
            rest = &rest[at + unseen.len_utf8()..];
        }
        to.write_all(rest.as_bytes())
    }
}

/// Controls, separators of lines, and what Unicode calls formats, as far as they turn or hide text.
fn is_unseen(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{ad}'
                | '\u{61c}'
                | '\u{180e}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{feff}'
                | '\u{fff9}'..='\u{fffb}'
                | '\u{e0000}'..='\u{e007f}'
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_seen_is_written_out_and_means_the_same() {
        let value = serde_json::json!({"a\u{9b}": "x\u{202e}y\u{7f}\u{e0041}é\u{feff}🎈 \"\n", "b": [1, null, "ü"]});
        let text = line(&value);
        let want = "{\"a\\u009b\":\"x\\u202ey\\u007f\\udb40\\udc41é\\ufeff🎈 \\\"\\n\",\"b\":[1,null,\"ü\"]}\n";
        assert_eq!(text, want);
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap(), value);
    }
}
