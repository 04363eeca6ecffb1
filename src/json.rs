//! JSON as our files have it.

use std::fmt;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde::{Serialize, Serializer};

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

/// A value as our files have it: indented, with a final line feed.
pub(crate) fn pretty(value: &impl Serialize) -> String {
    // Serialising these types can't fail: no maps with other keys than text, no failing implementations.
    serde_json::to_string_pretty(value).map(|text| text + "\n").unwrap_or_default()
}
