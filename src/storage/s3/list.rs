//! Listings: pages of keys in byte order, and what they mean for a place.

use percent_encoding::percent_decode_str;
use serde::Deserialize;
use time::OffsetDateTime;
use time::format_description::well_known::{Rfc2822, Rfc3339};
use ureq::http::Method;

use super::S3;
use super::client::Ask;
use super::xml::Document;
use crate::error::{Code, Error, Result};
use crate::names::{self, LOCK, STATE};
use crate::path::{RESERVED, RelPath};
use crate::storage::{Entry, Kind, MAX_DEPTH, Met, Scope, Version};

/// How many pages without a key may follow each other.
const MOST_EMPTY: usize = 100;
/// Sorts after every name that may follow.
const LAST: char = char::MAX;

/// An object of a listing.
#[derive(Debug)]
pub(super) struct Object {
    /// Its key below the place.
    pub(super) name: String,
    pub(super) size: u64,
    pub(super) modified: Option<OffsetDateTime>,
    pub(super) version: Option<Version>,
}

/// Where a listing goes on.
pub(super) enum Next {
    /// With what comes next.
    On,
    /// After this key below the place.
    After(String),
    /// Nowhere: enough was seen.
    Stop,
}

/// `ListBucketResult` of `ListObjectsV2`, as far as it is needed.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Page {
    #[serde(default)]
    encoding_type: Option<String>,
    #[serde(default)]
    is_truncated: bool,
    #[serde(default)]
    next_continuation_token: Option<String>,
    #[serde(default)]
    contents: Vec<Content>,
}

impl Document for Page {
    const ROOT: &'static str = "ListBucketResult";
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Content {
    key: String,
    #[serde(default)]
    size: u64,
    #[serde(default)]
    last_modified: Option<String>,
    #[serde(default, rename = "ETag")]
    etag: Option<String>,
}

impl S3 {
    /// Passes the objects whose names begin with `start`, page by page and in byte order, to `visit`, from the first one
    /// after `after`. The server's time of the last answer, where it told it.
    pub(super) fn pages(
        &self,
        start: &str,
        after: Option<&str>,
        visit: &mut dyn FnMut(Vec<Object>) -> Result<Next>,
    ) -> Result<Option<OffsetDateTime>> {
        let prefix = format!("{}{start}", self.prefix);
        let (mut after, mut token) = (after.map(|name| format!("{}{name}", self.prefix)), None::<String>);
        let (mut last, mut empty) = (String::new(), 0);
        loop {
            let (page, now) = self.page(&prefix, after.as_deref(), token.as_deref())?;
            let (truncated, next) = (page.is_truncated, page.next_continuation_token.clone());
            let objects = self.objects(page, &mut last)?;
            empty = if objects.is_empty() { empty + 1 } else { 0 };
            if empty > MOST_EMPTY {
                return Err(self.odd("one page after the other without a key"));
            }
            match visit(objects)? {
                Next::Stop => return Ok(now),
                _ if !truncated => return Ok(now),
                // Never back: what was seen is not seen again.
                Next::After(name) if self.key(&name) > last => (after, token) = (Some(self.key(&name)), None),
                Next::After(_) | Next::On => {
                    if next.is_none() || next == token {
                        return Err(self.odd("a listing that does not say where it goes on"));
                    }
                    token = next;
                }
            }
        }
    }

    fn page(&self, prefix: &str, after: Option<&str>, token: Option<&str>) -> Result<(Page, Option<OffsetDateTime>)> {
        let ask = Ask::new(Method::GET, "").about(prefix);
        let mut ask = ask.query("list-type", "2").query("prefix", prefix).query("encoding-type", "url");
        if let Some(token) = token {
            ask = ask.query("continuation-token", token);
        } else if let Some(after) = after {
            ask = ask.query("start-after", after);
        }
        let (answer, page) = self.client.ask::<Page>(&ask)?;
        let now = answer.header("date").and_then(|date| OffsetDateTime::parse(date, &Rfc2822).ok());
        Ok((page.ok_or_else(|| self.odd("no listing"))?, now))
    }

    fn objects(&self, page: Page, last: &mut String) -> Result<Vec<Object>> {
        let encoded = page.encoding_type.as_deref() == Some("url");
        let mut objects = Vec::with_capacity(page.contents.len());
        for content in page.contents {
            let key = if encoded { decode(&content.key) } else { Some(content.key) };
            let key = key.ok_or_else(|| self.odd("a key that is not UTF-8"))?;
            // Byte order is what tells where a directory ends (general purpose buckets have it).
            if key <= *last && !last.is_empty() {
                return Err(self.odd("a listing that is not in byte order").hint("use a general purpose bucket"));
            }
            last.clone_from(&key);
            let name = key.strip_prefix(&self.prefix).ok_or_else(|| self.odd("keys that were not asked for"))?;
            let modified = content.last_modified.and_then(|time| OffsetDateTime::parse(&time, &Rfc3339).ok());
            let version = content.etag.map(Version);
            objects.push(Object { name: name.to_owned(), size: content.size, modified, version });
        }
        Ok(objects)
    }

    pub(super) fn odd(&self, what: &str) -> Error {
        Error::new(Code::StorageError, format!("{}: the server gave {what}", self.client.place(&self.prefix)))
    }

    /// [`crate::storage::Storage::list`].
    pub(super) fn walk(&self, scope: Scope, visit: &mut dyn FnMut(Entry) -> Result<()>) -> Result<()> {
        let mut walk = Walk::new(scope);
        self.pages("", None, &mut |objects| {
            for object in &objects {
                walk.see(object, visit)?;
            }
            Ok(walk.managed.as_ref().map_or(Next::On, |dir| Next::After(format!("{dir}{LAST}"))))
        })?;
        walk.flush(None, visit)
    }

    /// [`crate::storage::Storage::find`].
    pub(super) fn search(&self, marker: &str, visit: &mut dyn FnMut(&[u8], Met)) -> Result<()> {
        let mut dirs: Vec<String> = Vec::new();
        self.pages("", None, &mut |objects| {
            let last = objects.last().map(|object| object.name.clone()).unwrap_or_default();
            let marked = |object: Object| object.name.strip_suffix(marker).map(str::to_owned);
            let is_dir = |dir: &String| dir.is_empty() || dir.ends_with('/');
            let found = objects.into_iter().filter_map(marked).filter(is_dir);
            dirs.extend(found.filter(|dir| !dir.split('/').any(|segment| segment.starts_with(RESERVED))));
            // What is left of a bundle does not matter.
            let inside = dirs.iter().find(|dir| last.starts_with(dir.as_str()));
            Ok(inside
                .map_or(Next::On, |dir| if dir.is_empty() { Next::Stop } else { Next::After(format!("{dir}{LAST}")) }))
        })?;
        dirs.sort_unstable();
        dirs.dedup_by(|dir, above| dir.starts_with(above.as_str()));
        for dir in dirs {
            let met = if dir.split('/').count() > MAX_DEPTH + 1 { Met::TooDeep } else { Met::Marked };
            visit(dir.trim_end_matches('/').as_bytes(), met);
        }
        Ok(())
    }

    /// [`crate::storage::Storage::exist_many`]: a request a path, or one a thousand keys where that is less.
    pub(super) fn are_there(&self, paths: &[&RelPath]) -> Result<Vec<bool>> {
        let mut order: Vec<usize> = (0..paths.len()).collect();
        order.sort_unstable_by_key(|at| paths[*at].as_str());
        let mut there = vec![false; paths.len()];
        let mut waiting = order.into_iter().peekable();
        let Some(first) = waiting.peek() else { return Ok(there) };
        let start = before(paths[*first].as_str());
        self.pages("", Some(&start), &mut |objects| {
            for object in objects {
                while let Some(at) = waiting.next_if(|at| paths[*at].as_str() <= object.name.as_str()) {
                    there[at] = paths[at].as_str() == object.name;
                }
            }
            Ok(waiting.peek().map_or(Next::Stop, |at| Next::After(before(paths[*at].as_str()))))
        })?;
        Ok(there)
    }
}

/// A name shortly before `name`, so that a listing after it begins with `name` or what follows it.
fn before(name: &str) -> String {
    let mut chars = name.chars();
    let Some(last) = chars.next_back() else { return String::new() };
    let less = (1..=u32::from(last)).find_map(|by| char::from_u32(u32::from(last) - by));
    less.map_or_else(|| chars.as_str().to_owned(), |less| format!("{}{less}{LAST}", chars.as_str()))
}

/// Keys as `encoding-type=url` gives them; some servers write a space as `+`, as forms do.
fn decode(key: &str) -> Option<String> {
    percent_decode_str(&key.replace('+', " ")).decode_utf8().ok().map(std::borrow::Cow::into_owned)
}

/// Turns keys, in byte order, into the entries of a place. Whether a directory is managed by itself is known once its
/// names have passed `.distributor.`; until then what was seen of it waits.
struct Walk {
    scope: Scope,
    waiting: Vec<Entry>,
    /// The managed directory that is passed over, with `/` at its end.
    managed: Option<String>,
}

/// Sorts after every name that makes a directory a managed one, and before most others.
const DECIDED: &str = ".distributor.m";

impl Walk {
    fn new(scope: Scope) -> Walk {
        Walk { scope, waiting: Vec::new(), managed: None }
    }

    fn see(&mut self, object: &Object, visit: &mut dyn FnMut(Entry) -> Result<()>) -> Result<()> {
        let name = object.name.as_str();
        if self.managed.as_ref().is_some_and(|dir| name.starts_with(dir.as_str())) {
            return Ok(());
        }
        self.managed = None;
        self.flush(Some(name), visit)?;
        let is_ours = self.scope == Scope::Destination && names::is_own(name.as_bytes());
        if name.is_empty() || is_ours {
            return Ok(());
        }
        if let Some((dir, last)) = name.rsplit_once('/')
            && self.scope == Scope::Destination
            && (last == STATE || last.starts_with(LOCK))
        {
            let inside = format!("{dir}/");
            self.waiting.retain(|entry| !entry.raw.as_bytes().starts_with(inside.as_bytes()));
            self.waiting.push(entry(dir, Kind::Managed));
            self.managed = Some(inside);
            return Ok(());
        }
        let kind = if object.size == 0 && name.ends_with('/') { Kind::Marker } else { Kind::File };
        self.waiting.push(entry(name, kind));
        Ok(())
    }

    /// Visits what waits and is decided now that `name` has come; all of it where nothing comes any more.
    fn flush(&mut self, name: Option<&str>, visit: &mut dyn FnMut(Entry) -> Result<()>) -> Result<()> {
        let open = |entry: &Entry| {
            let Some(name) = name.filter(|_| self.scope == Scope::Destination) else { return false };
            entry.raw.ancestors().any(|dir| {
                let rest = name.as_bytes().strip_prefix(dir).and_then(|rest| rest.strip_prefix(b"/"));
                rest.is_some_and(|rest| rest < DECIDED.as_bytes())
            })
        };
        let decided = self.waiting.iter().position(open).unwrap_or(self.waiting.len());
        self.waiting.drain(..decided).try_for_each(visit)
    }
}

fn entry(name: &str, kind: Kind) -> Entry {
    let path = if kind == Kind::Marker { None } else { RelPath::parse(name).ok() };
    Entry { raw: name.into(), path, kind }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn walked(scope: Scope, names: &[&str]) -> Vec<String> {
        let (mut walk, mut seen) = (Walk::new(scope), Vec::new());
        let mut visit = |entry: Entry| {
            let kind = match entry.kind {
                Kind::File => "",
                Kind::Managed => " managed",
                Kind::Marker => " marker",
                other => panic!("{other:?}"),
            };
            seen.push(format!("{}{kind}", entry.raw));
            Ok(())
        };
        let mut names = names.to_vec();
        names.sort_unstable();
        for name in names {
            let size = u64::from(!name.ends_with('/'));
            walk.see(&Object { name: name.to_owned(), size, modified: None, version: None }, &mut visit).unwrap();
        }
        walk.flush(None, &mut visit).unwrap();
        seen
    }

    #[test]
    fn what_is_managed_below_is_one_entry_whatever_sorts_before_its_state() {
        let names = ["a", "b/ c", "b/-/x", "b/.distributor.json", "b/z", "b/z/y", "b-", "c/!", "c/d", "e/", "e/f"];
        let want = ["a", "b-", "b managed", "c/!", "c/d", "e/ marker", "e/f"];
        assert_eq!(walked(Scope::Destination, &names), want);
        assert_eq!(walked(Scope::Source, &names).len(), names.len());
        let deep = ["x/ y/ z", "x/ y/.distributor.lock-1", "x/+"];
        assert_eq!(walked(Scope::Destination, &deep), ["x/ y managed", "x/+"]);
        let outer = ["x/ y/ z", "x/ y/.distributor.json", "x/+", "x/.distributor.lock", "x/q", "y"];
        assert_eq!(walked(Scope::Destination, &outer), ["x managed", "y"]);
    }

    #[test]
    fn names_of_ours_at_the_root_are_left_out() {
        let names = [".distributor.json", ".distributor.lock-1", ".distributor.stage-1", ".distributor-x", "", "a"];
        assert_eq!(walked(Scope::Destination, &names), [".distributor-x", "a"]);
    }

    #[test]
    fn a_name_before_another_is_close() {
        for name in ["a", "a/b", "ä", "\u{e000}", "x\u{10ffff}", " "] {
            let less = before(name);
            assert!(less.as_str() < name, "{less:?} {name:?}");
        }
        assert_eq!(before("ab"), "aa\u{10ffff}");
    }

    #[test]
    fn keys_are_decoded_as_forms_are() {
        assert_eq!(decode("a%2Bb+c%20d%25").as_deref(), Some("a+b c d%"));
        assert_eq!(decode("%ff"), None);
    }

    #[test]
    fn dates_of_http_are_read() {
        assert!(OffsetDateTime::parse("Tue, 15 Nov 1994 08:12:31 GMT", &Rfc2822).is_ok());
    }
}
