//! The key that requests are signed with.

use std::sync::Arc;

use time::OffsetDateTime;

use crate::error::Result;
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

/// Where keys come from.
#[derive(Debug)]
pub enum Keys {
    /// The configuration named its variables.
    Given(Arc<Key>),
}

impl Keys {
    /// This one.
    pub fn given(key: Key) -> Keys {
        Keys::Given(Arc::new(key))
    }

    /// The first of the AWS default chain.
    pub fn chain(_: &Host) -> Keys {
        todo!()
    }

    /// The key to sign with now.
    pub(super) fn get(&self, _: &Http, _: &Cancel) -> Result<Arc<Key>> {
        match self {
            Keys::Given(key) => Ok(Arc::clone(key)),
        }
    }

    /// A text without what is secret in it.
    pub(super) fn hide(&self, text: &str) -> String {
        let Keys::Given(key) = self;
        let secrets = [Some(&key.id), Some(&key.secret), key.session_token.as_ref()];
        secrets
            .into_iter()
            .flatten()
            .map(Secret::expose)
            .filter(|secret| !secret.is_empty())
            .fold(text.to_owned(), |text, secret| text.replace(secret, "…"))
    }

    /// Forgets the key, which the server calls expired. Whether another one may be had.
    pub(super) fn renew(&self) -> bool {
        match self {
            Keys::Given(_) => false,
        }
    }
}
