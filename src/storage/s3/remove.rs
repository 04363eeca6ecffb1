//! Removing: many objects a request where their names allow it.

use serde::{Deserialize, Serialize};
use ureq::http::Method;

use super::S3;
use super::client::Ask;
use super::fault::Fault;
use super::payload::Payload;
use super::small::md5_of;
use crate::error::{Code, Error, Result};
use crate::names::STAGE_PREFIX;
use crate::path::RawPath;
use crate::pool;
use crate::storage::Stage;

/// How many keys a request may name.
const MOST_KEYS: usize = 1000;
/// The longest answer: every key of a request with what is said of it.
const LIMIT: u64 = 16 * 1024 * 1024;

/// `DeleteObjects` of the S3 REST API.
#[derive(Serialize)]
struct Delete<'a> {
    #[serde(rename = "Quiet")]
    quiet: bool,
    #[serde(rename = "Object")]
    objects: Vec<Named<'a>>,
}

#[derive(Serialize)]
struct Named<'a> {
    #[serde(rename = "Key")]
    key: &'a str,
}

/// What is said of those that stay.
#[derive(Deserialize)]
struct Deleted {
    #[serde(rename = "Error", default)]
    errors: Vec<Refused>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Refused {
    key: String,
    #[serde(default)]
    code: String,
    #[serde(default)]
    message: String,
}

impl S3 {
    pub(super) fn delete_many(&self, paths: &[&RawPath]) -> Vec<Result<()>> {
        let keys: Vec<Option<String>> = paths
            .iter()
            .map(|path| std::str::from_utf8(path.as_bytes()).ok().filter(|path| !path.is_empty()))
            .map(|path| path.map(|path| self.key(path)))
            .collect();
        // No key is anything but UTF-8: what is not, is not there.
        let there: Vec<(usize, &str)> =
            keys.iter().enumerate().filter_map(|(at, key)| Some((at, key.as_deref()?))).collect();
        // XML can't name every key; and a single one needs none.
        let (batch, single): (Vec<_>, Vec<_>) =
            there.iter().partition(|(_, key)| there.len() > 1 && key.chars().all(is_xml));
        let mut results: Vec<Result<()>> = paths.iter().map(|_| Ok(())).collect();
        let one = |(at, key): &(usize, &str)| vec![(*at, self.delete(key))];
        let batches: Vec<&[(usize, &str)]> = batch.chunks(MOST_KEYS).collect();
        let done = pool::map(self.settings.concurrency, &batches, |keys| self.delete_batch(keys));
        let alone = pool::map(self.settings.concurrency, &single, one);
        for (at, result) in done.into_iter().chain(alone).flatten() {
            results[at] = result;
        }
        results
    }

    fn delete_batch(&self, keys: &[(usize, &str)]) -> Vec<(usize, Result<()>)> {
        match self.ask_delete(keys) {
            Ok(Some(refused)) => {
                let of = |key: &str| refused.iter().find(|refused| refused.key == key);
                let result = |key: &str| of(key).map_or(Ok(()), |refused| Err(self.kept(refused)));
                keys.iter().map(|(at, key)| (*at, result(key))).collect()
            }
            // The server does not know the request.
            Ok(None) => pool::map(self.settings.concurrency, keys, |(at, key)| (*at, self.delete(key))),
            Err(error) => keys.iter().map(|(at, _)| (*at, Err(error.clone()))).collect(),
        }
    }

    /// Deletes many objects and gives what is said of those that stay; nothing where the server can't.
    fn ask_delete(&self, keys: &[(usize, &str)]) -> Result<Option<Vec<Refused>>> {
        let objects = keys.iter().map(|(_, key)| Named { key }).collect();
        let body = quick_xml::se::to_string(&Delete { quiet: true, objects })
            .map_err(|error| Error::new(Code::StorageError, error.to_string()))?;
        let ask = Ask::new(Method::POST, "")
            .query("delete", "")
            .header("content-type", "application/xml")
            .header("content-md5", md5_of(body.as_bytes()))
            .payload(Payload::Bytes(body.as_bytes()));
        let (answer, said) = self.client.fetch(&ask, LIMIT)?;
        if answer.status == 501 {
            return Ok(None);
        }
        if let Some(fault) =
            Fault::within(&said).or_else(|| (!answer.is_good()).then(|| Fault::parse(answer.status, &said)))
        {
            return Err(self.client.refused(&self.prefix, &fault));
        }
        let said = String::from_utf8_lossy(&said);
        let deleted: Deleted = quick_xml::de::from_str(&said)
            .map_err(|error| self.odd(&format!("an answer to a delete that can't be read: {error}")))?;
        Ok(Some(deleted.errors.into_iter().filter(|refused| refused.code != "NoSuchKey").collect()))
    }

    fn kept(&self, refused: &Refused) -> Error {
        let code = if refused.code == "AccessDenied" { Code::PermissionDenied } else { Code::StorageError };
        let message = format!("{}: {}: {}", self.client.place(&refused.key), refused.code, refused.message);
        Error::new(code, message.trim_end_matches([':', ' ', '.']).to_owned())
    }

    /// [`crate::storage::Storage::sweep_stages`].
    pub(super) fn sweep(&self, keep: &[Stage]) -> Result<()> {
        for name in self.list_own(STAGE_PREFIX)? {
            let Some(token) = name.strip_prefix(STAGE_PREFIX) else { continue };
            let stage = Stage(token.to_owned());
            if !keep.contains(&stage) {
                self.drop_stage(&stage)?;
            }
        }
        Ok(())
    }
}

/// Whether XML 1.0 can hold it (section 2.2).
fn is_xml(c: char) -> bool {
    matches!(c, '\t' | '\u{20}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..)
}
