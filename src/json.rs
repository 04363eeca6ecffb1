//! JSON as our files have it.

use std::fmt;
use std::io;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde::{Serialize, Serializer};
use serde_json::ser::Formatter;

/// A value that stands in JSON as an object and nothing else. Derived code would take an array of its fields too.
#[derive(Clone, Debug)]
pub(crate) struct Object<T>(pub(crate) T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Object<T>, D::Error> {
        struct Fields<T>(std::marker::PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for Fields<T> {
            type Value = T;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map))
            }
        }

        deserializer.deserialize_map(Fields(std::marker::PhantomData)).map(Object)
    }
}

/// Reads a value that stands in JSON as text, without keeping the text.
pub(crate) fn from_text<'de, T, D: Deserializer<'de>>(
    deserializer: D,
    read: impl FnOnce(&str) -> Result<T, String>,
) -> Result<T, D::Error> {
    struct Text<F>(F);

    impl<T, F: FnOnce(&str) -> Result<T, String>> Visitor<'_> for Text<F> {
        type Value = T;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a string")
        }

        fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<T, E> {
            (self.0)(text).map_err(E::custom)
        }
    }

    deserializer.deserialize_str(Text(read))
}

impl<T: Serialize> Serialize for Object<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

/// What is wrong with a document, with its line and column, and without the list of all that would have been right.
pub(crate) fn fault(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match (text.find(", expected one of "), text.rfind(" at line ")) {
        (Some(list), Some(place)) if list < place => format!("{}{}", &text[..list], &text[place..]),
        _ => text,
    }
}

/// What is wrong with bytes that are no text.
pub(crate) fn not_utf8(error: std::str::Utf8Error) -> String {
    format!("not UTF-8 at byte {}", error.valid_up_to())
}

/// A value as our files have it: indented, each entry of a list on a line of its own, with a final line feed. What is
/// written once for every file is a quarter shorter so, and `grep` shows it whole.
pub(crate) fn pretty(value: &impl Serialize) -> String {
    let mut bytes = Vec::new();
    let mut serializer = serde_json::Serializer::with_formatter(&mut bytes, Lines::default());
    // Serialising these types can't fail: no maps with other keys than text, no failing implementations.
    let _ = value.serialize(&mut serializer);
    bytes.push(b'\n');
    String::from_utf8(bytes).unwrap_or_default()
}

/// Indents by two, and writes what stands in a list without a line feed.
#[derive(Default)]
struct Lines {
    indent: usize,
    /// How many list entries the place is in.
    inside: usize,
    /// Whether what ends next holds anything.
    filled: bool,
}

impl Lines {
    fn begin(&mut self, to: &mut (impl io::Write + ?Sized), bracket: &[u8]) -> io::Result<()> {
        self.indent += 1;
        self.filled = false;
        to.write_all(bracket)
    }

    fn entry(&mut self, to: &mut (impl io::Write + ?Sized), first: bool) -> io::Result<()> {
        if !first {
            to.write_all(b",")?;
        }
        self.filled = true;
        self.line(to)
    }

    fn end(&mut self, to: &mut (impl io::Write + ?Sized), bracket: &[u8]) -> io::Result<()> {
        self.indent -= 1;
        if self.filled {
            self.line(to)?;
        }
        self.filled = true;
        to.write_all(bracket)
    }

    fn line(&self, to: &mut (impl io::Write + ?Sized)) -> io::Result<()> {
        if self.inside > 0 { Ok(()) } else { write!(to, "\n{:1$}", "", 2 * self.indent) }
    }
}

impl Formatter for Lines {
    fn begin_array<W: io::Write + ?Sized>(&mut self, to: &mut W) -> io::Result<()> {
        self.begin(to, b"[")
    }

    fn begin_array_value<W: io::Write + ?Sized>(&mut self, to: &mut W, first: bool) -> io::Result<()> {
        self.entry(to, first)?;
        self.inside += 1;
        Ok(())
    }

    fn end_array_value<W: io::Write + ?Sized>(&mut self, _: &mut W) -> io::Result<()> {
        self.inside -= 1;
        Ok(())
    }

    fn end_array<W: io::Write + ?Sized>(&mut self, to: &mut W) -> io::Result<()> {
        self.end(to, b"]")
    }

    fn begin_object<W: io::Write + ?Sized>(&mut self, to: &mut W) -> io::Result<()> {
        self.begin(to, b"{")
    }

    fn begin_object_key<W: io::Write + ?Sized>(&mut self, to: &mut W, first: bool) -> io::Result<()> {
        self.entry(to, first)
    }

    fn begin_object_value<W: io::Write + ?Sized>(&mut self, to: &mut W) -> io::Result<()> {
        to.write_all(if self.inside > 0 { b":" } else { b": " })
    }

    fn end_object<W: io::Write + ?Sized>(&mut self, to: &mut W) -> io::Result<()> {
        self.end(to, b"}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_of_a_list_stand_on_a_line_each() {
        let value = serde_json::json!({
            "a": 1, "b": {"c": {}, "d": []}, "list": [{"x": [1, {"y": 2}], "z": "t"}, {}, 3, [[]]], "z": null
        });
        let text = r#"{
  "a": 1,
  "b": {
    "c": {},
    "d": []
  },
  "list": [
    {"x":[1,{"y":2}],"z":"t"},
    {},
    3,
    [[]]
  ],
  "z": null
}
"#;
        assert_eq!(pretty(&value), text);
        assert_eq!(serde_json::from_str::<serde_json::Value>(text).unwrap(), value);
    }
}
