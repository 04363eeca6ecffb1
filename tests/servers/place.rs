//! What a stranger does to a bucket: S3 by hand, with nothing of the product.

use std::net::SocketAddr;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use time::OffsetDateTime;

use super::http::{self, Message};
use super::{Server, sign};

/// What the signature leaves as it is.
const PLAIN: AsciiSet = NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
const PATH: AsciiSet = PLAIN.remove(b'/');

/// A prefix in a bucket. Keys are what comes after it.
#[derive(Clone)]
pub(crate) struct Place {
    pub(crate) server: &'static Server,
    pub(crate) bucket: &'static str,
    /// Empty, or it ends in `/`.
    pub(crate) prefix: String,
}

/// An object as it was got.
#[derive(Debug)]
pub(crate) struct Object {
    pub(crate) bytes: Vec<u8>,
    answer: Message,
}

impl Object {
    /// A header of the answer, `x-amz-meta-…` among them.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.answer.field(name)
    }
}

/// An upload that has neither been completed nor aborted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Upload {
    pub(crate) key: String,
    pub(crate) id: String,
}

/// What a bucket keeps of one key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Versions {
    pub(crate) objects: usize,
    pub(crate) deletions: usize,
}

impl Place {
    /// A place below.
    pub(crate) fn at(&self, name: &str) -> Place {
        Place { prefix: format!("{}{name}/", self.prefix), ..self.clone() }
    }

    /// The keys of a destination or source in a configuration, as they stand between braces; by way of this address,
    /// the server's or a proxy's. The variables that they name must be set to `ACCESS_KEY` and `SECRET_KEY`.
    pub(crate) fn configuration(&self, address: SocketAddr) -> String {
        let (bucket, prefix, region) = (self.bucket, self.prefix.trim_end_matches('/'), self.server.region);
        format!(
            "backend: s3, endpoint: 'http://{address}', bucket: {bucket}, prefix: '{prefix}', region: {region}, \
             path_style: true, access_key_id_env: TEST_ACCESS_KEY, secret_access_key_env: TEST_SECRET_KEY"
        )
    }

    pub(crate) fn put(&self, key: &str, bytes: &[u8]) {
        self.put_with(key, bytes, &[]);
    }

    /// Puts an object with headers, `Content-Type` perhaps.
    pub(crate) fn put_with(&self, key: &str, bytes: &[u8], headers: &[(&str, &str)]) {
        let answer = self.call("PUT", Some(key), &[], headers, bytes);
        assert_eq!(answer.status(), 200, "PUT {key}: {}", answer.text());
    }

    pub(crate) fn get(&self, key: &str) -> Option<Object> {
        self.look("GET", key)
    }

    /// The bytes of an object that must be there.
    pub(crate) fn bytes(&self, key: &str) -> Vec<u8> {
        self.get(key).unwrap_or_else(|| panic!("no object {key}")).bytes
    }

    /// An object without its bytes.
    pub(crate) fn head(&self, key: &str) -> Option<Object> {
        self.look("HEAD", key)
    }

    fn look(&self, method: &str, key: &str) -> Option<Object> {
        let mut answer = self.call(method, Some(key), &[], &[], b"");
        assert!(matches!(answer.status(), 200 | 404), "{method} {key}: {} {}", answer.start, answer.text());
        (answer.status() == 200).then(|| Object { bytes: std::mem::take(&mut answer.body), answer })
    }

    /// Deletes an object, or nothing.
    pub(crate) fn delete(&self, key: &str) {
        let answer = self.call("DELETE", Some(key), &[], &[], b"");
        assert!(matches!(answer.status(), 200 | 204 | 404), "DELETE {key}: {}", answer.text());
    }

    /// All keys, in order.
    pub(crate) fn keys(&self) -> Vec<String> {
        self.pages(1000)
    }

    /// The same, asked for `page` keys at a time.
    pub(crate) fn pages(&self, page: usize) -> Vec<String> {
        let (mut keys, mut token, page) = (Vec::new(), None, page.to_string());
        loop {
            let mut query = vec![("encoding-type", "url"), ("list-type", "2"), ("max-keys", &page)];
            query.push(("prefix", &self.prefix));
            query.extend(token.as_deref().map(|token| ("continuation-token", token)));
            let text = self.ask(&query);
            keys.extend(all(&text, "Contents").iter().map(|entry| self.key(one(entry, "Key"))));
            if one(&text, "IsTruncated") != "true" {
                keys.sort();
                return keys;
            }
            token = Some(unescape(one(&text, "NextContinuationToken")));
        }
    }

    /// All objects with their bytes.
    pub(crate) fn tree(&self) -> std::collections::BTreeMap<String, Vec<u8>> {
        self.keys().into_iter().map(|key| (key.clone(), self.bytes(&key))).collect()
    }

    /// Uploads that are still open.
    pub(crate) fn uploads(&self) -> Vec<Upload> {
        let text = self.ask(&[("encoding-type", "url"), ("prefix", &self.prefix), ("uploads", "")]);
        assert_ne!(one(&text, "IsTruncated"), "true", "more uploads than one answer lists");
        let upload = |entry: &&str| Upload { key: self.key(one(entry, "Key")), id: unescape(one(entry, "UploadId")) };
        all(&text, "Upload").iter().map(upload).collect()
    }

    /// Opens an upload, as another program would, and leaves it open.
    pub(crate) fn open_upload(&self, key: &str) -> String {
        let answer = self.call("POST", Some(key), &[("uploads", "")], &[], b"");
        assert_eq!(answer.status(), 200, "{}", answer.text());
        unescape(one(&answer.text(), "UploadId"))
    }

    /// What is kept of a key.
    pub(crate) fn versions(&self, key: &str) -> Versions {
        let text =
            self.ask(&[("encoding-type", "url"), ("prefix", &format!("{}{key}", self.prefix)), ("versions", "")]);
        assert_ne!(one(&text, "IsTruncated"), "true", "more versions than one answer lists");
        let count = |tag| all(&text, tag).iter().filter(|entry| self.key(one(entry, "Key")) == key).count();
        Versions { objects: count("Version"), deletions: count("DeleteMarker") }
    }

    /// The key below the prefix of one that a listing with `encoding-type=url` gave.
    fn key(&self, listed: &str) -> String {
        let listed = unescape(listed).replace('+', " ");
        let listed = percent_decode_str(&listed).decode_utf8_lossy().into_owned();
        listed.strip_prefix(&self.prefix).unwrap_or_else(|| panic!("{listed} is not below {}", self.prefix)).to_owned()
    }

    /// Asks about the bucket.
    fn ask(&self, query: &[(&str, &str)]) -> String {
        let answer = self.call("GET", None, query, &[], b"");
        assert_eq!(answer.status(), 200, "{query:?}: {}", answer.text());
        answer.text()
    }

    /// A signed request about a key, or the bucket, in path style.
    pub(crate) fn call(
        &self,
        method: &str,
        key: Option<&str>,
        query: &[(&str, &str)],
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Message {
        let call = || self.call_at(self.server.address, method, key, query, headers, body);
        // moto looks at a bucket while another request changes it, and falls.
        let fell = |answer: &Message| answer.status() == 500 && matches!(method, "GET" | "HEAD");
        (0..5).map(|_| call()).find(|answer| !fell(answer)).unwrap_or_else(call)
    }

    /// The same by way of another address, a proxy's perhaps.
    pub(crate) fn call_at(
        &self,
        address: SocketAddr,
        method: &str,
        key: Option<&str>,
        query: &[(&str, &str)],
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Message {
        let request = self.signed((address, method), key, query, headers, body);
        http::call(address, &request).unwrap_or_else(|error| panic!("{}: {error}", request.start))
    }

    /// A signed request that has not been sent.
    pub(crate) fn signed(
        &self,
        (address, method): (SocketAddr, &str),
        key: Option<&str>,
        query: &[(&str, &str)],
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Message {
        let encode = |text: &str| utf8_percent_encode(text, &PLAIN).to_string();
        let key = key.map(|key| format!("/{}{key}", self.prefix)).unwrap_or_default();
        let path = utf8_percent_encode(&format!("/{}{key}", self.bucket), &PATH).to_string();
        let mut query: Vec<String> = query.iter().map(|(name, value)| format!("{name}={}", encode(value))).collect();
        // As the signature wants it.
        query.sort();
        let mark = if query.is_empty() { "" } else { "?" };
        let target = format!("{path}{mark}{}", query.join("&"));
        let host = address.to_string();
        let mut request = Message::request(method, &target, &[&[("Host", host.as_str())], headers].concat());
        request.body = body.to_vec();
        sign::sign(&mut request, self.server, OffsetDateTime::now_utc());
        request
    }
}

/// What stands in each element of a name.
pub(crate) fn all<'a>(xml: &'a str, tag: &str) -> Vec<&'a str> {
    let (open, close) = (format!("<{tag}>"), format!("</{tag}>"));
    xml.split(&open).skip(1).map(|rest| rest.split(&close).next().unwrap_or_default()).collect()
}

/// What stands in the first element of a name; nothing where there is none.
pub(crate) fn one<'a>(xml: &'a str, tag: &str) -> &'a str {
    all(xml, tag).first().copied().unwrap_or_default()
}

fn unescape(text: &str) -> String {
    let text = text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&#34;", "\"");
    text.replace("&apos;", "'").replace("&#39;", "'").replace("&amp;", "&")
}
