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
use crate::error::{Code, Error, Result};
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
    /// A key of parts that a source of the chain gave. The error says which part can't be one, and never what it is.
    fn of(
        id: &str,
        secret: &str,
        token: Option<&str>,
        expires: Option<OffsetDateTime>,
    ) -> std::result::Result<Key, String> {
        let part = |name: &str, value: &str| match value.trim() {
            "" => Err(format!("the {name} is empty")),
            // All of them are sent in headers, or are of an alphabet that is narrower still.
            value if value.bytes().all(|byte| byte.is_ascii_graphic()) => Ok(Secret::from(value)),
            _ => Err(format!("the {name} holds characters that none has")),
        };
        let session_token = token.map(|token| part("session token", token)).transpose()?;
        Ok(Key { id: part("access key id", id)?, secret: part("secret access key", secret)?, session_token, expires })
    }

    /// A text without what of it is in there.
    pub(super) fn hide(&self, text: &str) -> String {
        let parts = [Some(&self.id), Some(&self.secret), self.session_token.as_ref()].into_iter().flatten();
        let parts = parts.map(Secret::expose).filter(|part| !part.is_empty());
        parts.fold(text.to_owned(), |text, part| text.replace(part, "…"))
    }
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
