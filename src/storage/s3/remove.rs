//! Removing: many objects a request where their names allow it.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use ureq::http::Method;

use super::S3;
use super::client::Ask;
use super::fault;
use super::payload::Payload;
use super::small::md5_of;
use super::xml::Document;
use crate::error::{Code, Error, Result};
use crate::names::STAGE_PREFIX;
use crate::path::RawPath;
use crate::pool;
use crate::storage::Stage;

/// How many keys a request may name.
const MOST_KEYS: usize = 1000;

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

impl Document for Deleted {
    const ROOT: &'static str = "DeleteResult";
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
        let mut results: Vec<Result<()>> = paths.iter().map(|_| Ok(())).collect();
        for (at, result) in self.delete_keys(&there) {
            results[at] = result;
        }
        results
    }

    /// Removes small objects, in one request if it can be, and in no order.
    pub(super) fn delete_smalls(&self, names: &BTreeSet<String>) -> Result<()> {
        let keys: Vec<String> = names.iter().map(|name| self.key(name)).collect();
        let keys: Vec<(usize, &str)> = keys.iter().map(String::as_str).enumerate().collect();
        self.delete_keys(&keys).into_iter().try_for_each(|(_, result)| result)
    }

    fn delete_keys(&self, there: &[(usize, &str)]) -> Vec<(usize, Result<()>)> {
        // No XML names some keys, and no URL others. A single one needs no XML.
        let (batch, single): (Vec<_>, Vec<_>) =
            there.iter().partition(|(_, key)| is_text(key) && (there.len() > 1 || is_nowhere(key)));
        let one = |(at, key): &(usize, &str)| vec![(*at, self.delete(key))];
        let batches: Vec<&[(usize, &str)]> = batch.chunks(MOST_KEYS).collect();
        let mut done = pool::map(self.settings.concurrency, &batches, |keys| self.delete_batch(keys));
        done.extend(pool::map(self.settings.concurrency, &single, one));
        done.into_iter().flatten().collect()
    }

    fn delete_batch(&self, keys: &[(usize, &str)]) -> Vec<(usize, Result<()>)> {
        let alone =
            |keys: &[(usize, &str)]| pool::map(self.settings.concurrency, keys, |(at, key)| (*at, self.delete(key)));
        match self.ask_delete(keys) {
            Ok(Some(refused)) if refused.iter().all(|refused| keys.iter().any(|(_, key)| refused.key == *key)) => {
                let stays = |key: &str| refused.iter().find(|refused| refused.key == key);
                // What is wrong with one may pass; then it is tried as often as any request.
                let result = |key: &str| match stays(key) {
                    None => Ok(()),
                    Some(refused) if fault::passes(&refused.code) => self.delete(key),
                    Some(refused) => Err(self.kept(refused)),
                };
                keys.iter().map(|(at, key)| (*at, result(key))).collect()
            }
            // The server does not know the request, or did not understand the keys.
            Ok(_) => alone(keys),
            Err(error) => keys.iter().map(|(at, _)| (*at, Err(error.clone()))).collect(),
        }
    }

    /// Deletes many objects and gives what is said of those that stay; nothing where the server can't.
    fn ask_delete(&self, keys: &[(usize, &str)]) -> Result<Option<Vec<Refused>>> {
        let objects = keys.iter().map(|(_, key)| Named { key }).collect();
        let body = quick_xml::se::to_string(&Delete { quiet: true, objects })
            .map_err(|error| Error::new(Code::StorageError, error.to_string()))?;
        let ask = Ask::new(Method::POST, "")
            .about(&self.prefix)
            .query("delete", "")
            .header("content-type", "application/xml")
            .header("content-md5", md5_of(body.as_bytes()))
            .payload(Payload::Bytes(body.as_bytes()));
        let (_, said) = self.client.ask::<Deleted>(&ask.or(&[501]))?;
        Ok(said.map(|said| said.errors.into_iter().filter(|refused| refused.code != "NoSuchKey").collect()))
    }

    fn kept(&self, refused: &Refused) -> Error {
        let code = if refused.code == "AccessDenied" { Code::PermissionDenied } else { Code::StorageError };
        let message = format!("{}: {}: {}", self.client.place(&refused.key), refused.code, refused.message);
        self.client.discreet(Error::new(code, message.trim_end_matches([':', ' ', '.'])))
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

/// Whether no URL can name it: its segments `.` and `..` are steps there.
fn is_nowhere(key: &str) -> bool {
    key.split('/').any(|segment| matches!(segment, "." | ".."))
}

/// Whether XML 1.0 can hold it (section 2.2), and whoever reads it takes it as it is.
fn is_text(key: &str) -> bool {
    let is_xml = |c| matches!(c, '\u{20}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..);
    key.chars().all(is_xml) && key.trim() == key
}
