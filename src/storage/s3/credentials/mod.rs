//! The key that requests are signed with: one that the configuration names, or that of the AWS default chain.
//!
//! The first source of the chain that is configured decides: where it fails, that is the error, and no other identity is
//! taken in its stead. Nothing is asked before the first request.

mod answer;
mod chain;
mod container;
mod environment;
mod instance;
mod profile;
mod section;
mod sts;
#[cfg(test)]
mod tests;
mod web_identity;
mod world;

use std::fmt;
use std::sync::Arc;

use time::OffsetDateTime;

use self::chain::Chain;
use self::world::World;
use crate::error::{Code, Detail, Error, Result};
use crate::host::{Cancel, Host};
use crate::http::Http;
use crate::secrets::Secret;

/// A key. Never shown.
#[derive(Clone, Debug)]
pub struct Key {
    /// Its id.
    pub id: Secret,
    /// The secret itself.
    pub secret: Secret,
    /// What goes with a key that lasts for a while only.
    pub session_token: Option<Secret>,
    /// When it ends to be good, where it does.
    pub expires: Option<OffsetDateTime>,
}

impl Key {
    /// A key of parts that are each given with what they are called. The error says which part can't be one, and never
    /// what it is.
    pub fn named(
        id: (&str, &str),
        secret: (&str, &str),
        token: Option<(&str, &str)>,
        expires: Option<OffsetDateTime>,
    ) -> std::result::Result<Key, String> {
        let part = |(name, value): (&str, &str)| match value.trim() {
            "" => Err(format!("{name} is empty")),
            // All of them are sent in headers, or are of an alphabet that is narrower still.
            value if value.bytes().all(|byte| byte.is_ascii_graphic()) => Ok(Secret::from(value)),
            _ => Err(format!("{name} holds characters that none has")),
        };
        Ok(Key { id: part(id)?, secret: part(secret)?, session_token: token.map(part).transpose()?, expires })
    }

    /// A key of parts that a source of the chain gave.
    fn of(
        id: &str,
        secret: &str,
        token: Option<&str>,
        expires: Option<OffsetDateTime>,
    ) -> std::result::Result<Key, String> {
        let token = token.map(|token| ("the session token", token));
        Key::named(("the access key id", id), ("the secret access key", secret), token, expires)
    }

    /// A text without what of it is in there, percent-encoded perhaps.
    fn hide(&self, text: &str) -> String {
        let parts = [Some(&self.id), Some(&self.secret), self.session_token.as_ref()].into_iter().flatten();
        parts.fold(text.to_owned(), |text, part| hidden(&text, part.expose()))
    }

    /// An error without it, as servers like to repeat what they were told.
    pub(super) fn hide_in(&self, error: Error) -> Error {
        let detail = |detail: Detail| Detail {
            message: self.hide(&detail.message),
            path: detail.path.map(|path| self.hide(&path)),
            ..detail
        };
        Error {
            message: self.hide(&error.message),
            hint: error.hint.map(|hint| self.hide(&hint)),
            detail: error.detail.into_iter().map(detail).collect(),
            ..error
        }
    }
}

/// A text with `…` for each place where a secret stands, as it is or with some of its bytes percent-encoded.
fn hidden(text: &str, secret: &str) -> String {
    let (mut shown, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(next) = rest.chars().next() {
        match after(rest, secret) {
            Some(after) if !secret.is_empty() => {
                shown.push('…');
                rest = after;
            }
            _ => {
                shown.push(next);
                rest = &rest[next.len_utf8()..];
            }
        }
    }
    shown
}

/// What follows `secret` at the start of `text`.
fn after<'a>(text: &'a str, secret: &str) -> Option<&'a str> {
    secret.bytes().try_fold(text, |text, byte| {
        let encoded = || {
            let digits = text.strip_prefix('%').and_then(|digits| digits.get(..2))?;
            (u8::from_str_radix(digits, 16) == Ok(byte)).then(|| &text[3..])
        };
        text.strip_prefix(char::from(byte)).or_else(encoded)
    })
}

/// Where keys come from.
pub struct Keys(Kind);

enum Kind {
    Given(Arc<Key>),
    Chain(Chain),
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Kind::Given(_) => "Keys(given)",
            Kind::Chain(_) => "Keys(chain)",
        })
    }
}

impl Keys {
    /// This one.
    pub fn given(key: Key) -> Keys {
        Keys(Kind::Given(Arc::new(key)))
    }

    /// The first of the AWS default chain: environment, shared profile files, web identity, container, instance metadata.
    pub fn chain(host: &Host) -> Keys {
        Keys(Kind::Chain(Chain::new(World::new(host))))
    }

    /// The key to sign with now.
    pub(super) fn get(&self, http: &Http, cancel: &Cancel) -> Result<Arc<Key>> {
        match &self.0 {
            Kind::Given(key) => Ok(Arc::clone(key)),
            Kind::Chain(chain) => chain.get(http, cancel),
        }
    }

    /// Forgets the key that the server calls expired. Whether another one may be had.
    pub(super) fn renew(&self, refused: &Arc<Key>) -> bool {
        match &self.0 {
            Kind::Given(_) => false,
            Kind::Chain(chain) => chain.renew(refused),
        }
    }
}

/// What a source needs to ask a server.
struct Web<'a> {
    http: &'a Http,
    cancel: &'a Cancel,
}

/// The error of a source that is configured and gives no key, with the cure.
fn no_key(source: &str, what: impl fmt::Display, cure: impl Into<String>) -> Error {
    Error::new(Code::AuthFailed, format!("no key from {source}: {what}")).hint(cure)
}
