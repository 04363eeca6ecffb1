//! Asking a server for a key, and what its answers may be. Nothing that it says is repeated but its status and plain
//! words: an answer may hold a key wherever it goes wrong.

use serde::Deserialize;
use ureq::AsSendBody;
use ureq::http::Request;

use super::Key;
use crate::error::{Code, Error};
use crate::http::{Failed, Http};
use crate::timestamp::Timestamp;

/// The longest answer: keys and tokens take a few thousand bytes.
const LIMIT: u64 = 64 * 1024;

/// An answer of 200.
pub(super) type Text = String;

/// Why there is none.
pub(super) enum Refusal {
    /// The server said another status than 200, and this with it.
    Status(u16, Text),
    /// There was no whole answer.
    Failed(Failed),
}

/// Sends a request once. `place` is for messages.
pub(super) fn ask(http: &Http, place: &str, request: Request<impl AsSendBody>) -> Result<Text, Refusal> {
    let failed = |error: &ureq::Error| Refusal::Failed(Failed::of(place, error));
    let response = http.send(request).map_err(|error| failed(&error))?;
    let status = response.status().as_u16();
    let bytes = response.into_body().with_config().limit(LIMIT).read_to_vec();
    let text = match bytes {
        Ok(bytes) => String::from_utf8(bytes).unwrap_or_default(),
        Err(ureq::Error::BodyExceedsLimit(_)) => {
            return Err(for_good(place, &format!("the answer is longer than {LIMIT} bytes")));
        }
        Err(error) => return Err(failed(&error)),
    };
    if status == 200 { Ok(text) } else { Err(Refusal::Status(status, text)) }
}

/// An end to trying.
pub(super) fn for_good(place: &str, what: &str) -> Refusal {
    Refusal::Failed(Failed::ForGood(Error::new(Code::AuthFailed, format!("{place}: {what}"))))
}

impl Refusal {
    /// Whether trying again may help, and the error where it does not.
    pub(super) fn failed(self, place: &str) -> Failed {
        match self {
            Refusal::Failed(failed) => failed,
            Refusal::Status(status, _) => {
                let error = Error::new(Code::AuthFailed, format!("{place}: the server answers {status}"));
                if matches!(status, 408 | 429 | 500..) { Failed::ForNow(error, None) } else { Failed::ForGood(error) }
            }
        }
    }
}

/// `word` where it is one: a code that a server gives, or a name.
pub(super) fn word(word: &str) -> Option<&str> {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"_+=,.@-".contains(&byte);
    (!word.is_empty() && word.len() <= 64 && word.bytes().all(fits)).then_some(word)
}

/// The JSON of a key, as containers and instance metadata give it.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Document {
    access_key_id: String,
    secret_access_key: String,
    token: Option<String>,
    expiration: Option<String>,
}

/// The key in an answer.
pub(super) fn key(place: &str, text: &str) -> Result<Key, Refusal> {
    // The parser's own words would repeat the text.
    let document: Document =
        serde_json::from_str(text).map_err(|_| for_good(place, "the answer is not that of a key"))?;
    let Document { access_key_id, secret_access_key, token, expiration } = document;
    let expires = expiration.map(|text| Timestamp::parse(&text)).transpose();
    let expires = expires.map_err(|_| for_good(place, "the key's end is no time"))?.map(|time| time.instant());
    let key = Key::of(&access_key_id, &secret_access_key, token.as_deref(), expires);
    key.map_err(|what| for_good(place, &what))
}
