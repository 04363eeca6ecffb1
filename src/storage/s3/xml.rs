//! Answers of XML. What an answer is its root says: nothing else is read as it, for every field may be missing.

use quick_xml::Reader;
use quick_xml::events::Event;
use serde::de::DeserializeOwned;

/// A document of the S3 REST API.
pub(super) trait Document: DeserializeOwned {
    /// Its root.
    const ROOT: &'static str;
}

/// What `body` says, if it is such a document, whole and well-formed.
pub(super) fn read<T: Document>(body: &[u8]) -> Result<T, String> {
    let text = text(body).ok_or("it is not UTF-8")?;
    match root(text) {
        Some(root) if root == T::ROOT => quick_xml::de::from_str(text).map_err(|error| error.to_string()),
        Some(root) => Err(format!("it is {root:?}, not {}", T::ROOT)),
        None => Err("it is no XML".to_owned()),
    }
}

/// Whether it is what S3 says instead of an answer.
pub(super) fn is_error(body: &[u8]) -> bool {
    text(body).and_then(root).is_some_and(|root| root == "Error")
}

fn text(body: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(body).ok()?;
    // Servers that take long send blanks until they know.
    Some(text.trim_start_matches('\u{feff}').trim_start())
}

/// The name of the root, as far as anything can be read.
fn root(text: &str) -> Option<String> {
    let mut reader = Reader::from_str(text);
    loop {
        match reader.read_event().ok()? {
            Event::Start(tag) | Event::Empty(tag) => {
                return std::str::from_utf8(tag.local_name().as_ref()).ok().map(str::to_owned);
            }
            Event::Eof => return None,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, serde::Deserialize)]
    struct Told {
        #[serde(rename = "It", default)]
        it: Option<u8>,
    }

    impl Document for Told {
        const ROOT: &'static str = "Told";
    }

    #[test]
    fn a_document_is_known_by_its_root_alone() {
        for good in ["<Told/>", "\u{feff}<?xml version='1.0'?>\n<!-- x --><Told xmlns=\"urn:x\"><It>7</It></Told>\n"] {
            let told = read::<Told>(good.as_bytes()).unwrap();
            assert_eq!(told.it, good.contains('7').then_some(7));
        }
        for bad in ["", " ", "Told", "<Other/>", "<Error/>", "<Told>", "<Told><It>7</It>", "<Told><It>x</It></Told>"] {
            assert!(read::<Told>(bad.as_bytes()).is_err(), "{bad}");
        }
        assert!(read::<Told>(b"<Told>\xff</Told>").is_err());
    }

    #[test]
    fn an_error_is_known_however_it_begins() {
        for error in ["<Error/>", "  \n<Error>", "<?xml version='1.0'?><!-- --><Error xmlns=\"urn:x\"></Error>"] {
            assert!(is_error(error.as_bytes()), "{error}");
        }
        assert!(!is_error(b"<ErrorDocument/>") && !is_error(b"") && !is_error(b"Error"));
    }
}
