//! Requests: addressed, signed, sent, tried again, and what went wrong with them.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use hmac::Mac;
use s3::region::Region;
use s3::signing::{self, HmacSha256};
use time::OffsetDateTime;
use ureq::Body;
use ureq::http::header::{HeaderMap, HeaderName, HeaderValue};
use ureq::http::{Method, Request, Response};
use url::Url;

use super::credentials::{Key, Keys};
use super::fault::{self, Fault};
use super::lease::Bond;
use super::payload::Payload;
use super::xml::{self, Document};
use crate::error::{Code, Error, Result};
use crate::host::Cancel;
use crate::http::{Failed, Http, is_broken_off, is_unknown_host, retried};

/// `YYYYMMDD'T'HHMMSS'Z'`, as `x-amz-date` has it.
const AMZ_DATE: &[time::format_description::FormatItem<'static>] =
    time::macros::format_description!("[year][month][day]T[hour][minute][second]Z");

/// The longest document: a thousand keys of 1,024 bytes, each of which may be three in it, and their frames.
const LONGEST: u64 = 16 * 1024 * 1024;

/// Where requests go.
#[derive(Clone, Debug)]
pub(super) struct Address {
    /// The bucket's URL, with `/` at its end.
    pub(super) base: Url,
    /// The bucket, for messages.
    pub(super) bucket: String,
    /// What requests are signed for.
    pub(super) region: String,
}

impl Address {
    /// Whether the bucket is part of the host's name.
    fn is_by_host(&self) -> bool {
        self.base.host_str().and_then(|host| host.strip_prefix(&self.bucket)).is_some_and(|rest| rest.starts_with('.'))
    }
}

/// Sends requests to one bucket.
pub(super) struct Client {
    pub(super) http: Http,
    pub(super) address: Address,
    pub(super) keys: Keys,
    /// The keys that were used.
    pub(super) used: Mutex<Vec<Arc<Key>>>,
    pub(super) cancel: Cancel,
    /// What is begun under a lock comes to its end, or is undone, whatever signal comes; and nothing changes any more once
    /// the lock is lost.
    pub(super) bond: Bond,
}

/// One request.
pub(super) struct Ask<'a> {
    pub(super) method: Method,
    /// The object; empty for the bucket itself.
    pub(super) key: &'a str,
    /// What it is about, for messages.
    about: &'a str,
    pub(super) query: Vec<(&'static str, String)>,
    pub(super) headers: Vec<(&'static str, String)>,
    pub(super) payload: Payload<'a>,
    /// The refusals that are an answer too; all others are errors.
    pub(super) stands: &'static [u16],
    /// Whether it is sent even once the lock is lost.
    unbound: bool,
    /// Whether it carries an object, or is answered by one: its bytes may take as long as they move.
    of_object: bool,
}

impl<'a> Ask<'a> {
    pub(super) fn new(method: Method, key: &'a str) -> Ask<'a> {
        let (query, headers, payload) = (Vec::new(), Vec::new(), Payload::None);
        Ask { method, key, about: key, query, headers, payload, stands: &[], unbound: false, of_object: false }
    }

    /// A request of the bucket that is about what begins with `prefix`.
    pub(super) fn about(mut self, prefix: &'a str) -> Ask<'a> {
        self.about = prefix;
        self
    }

    pub(super) fn query(mut self, name: &'static str, value: impl Into<String>) -> Ask<'a> {
        self.query.push((name, value.into()));
        self
    }

    pub(super) fn header(mut self, name: &'static str, value: impl Into<String>) -> Ask<'a> {
        self.headers.push((name, value.into()));
        self
    }

    /// Only where there is no such object yet, if `wanted`.
    pub(super) fn if_free(self, wanted: bool) -> Ask<'a> {
        if wanted { self.header("if-none-match", "*") } else { self }
    }

    /// It carries an object, or is answered by one.
    pub(super) fn of_object(mut self) -> Ask<'a> {
        self.of_object = true;
        self
    }

    /// These refusals are answers.
    pub(super) fn or(mut self, stands: &'static [u16]) -> Ask<'a> {
        self.stands = stands;
        self
    }

    pub(super) fn payload(mut self, payload: Payload<'a>) -> Ask<'a> {
        self.payload = payload;
        self
    }

    /// What it changes is nobody else's: it is sent even once the lock is lost.
    pub(super) fn unbound(mut self) -> Ask<'a> {
        self.unbound = true;
        self
    }
}

/// What the server said.
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) headers: HeaderMap,
    pub(super) body: Body,
    /// What is wrong, where the body was read for that.
    pub(super) fault: Option<Fault>,
    /// Whether an earlier try of the same request may have had its effect.
    pub(super) repeated: bool,
}

impl Answer {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    pub(super) fn is_good(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// What it says where it is no good.
    pub(super) fn fault(&mut self) -> Fault {
        self.fault.take().unwrap_or_else(|| Fault::read(self))
    }

    /// The body, at most `limit` bytes of it.
    pub(super) fn bytes(&mut self, limit: u64) -> std::result::Result<Vec<u8>, ureq::Error> {
        self.body.with_config().limit(limit).read_to_vec()
    }
}

impl Client {
    /// Sends a request until there is an answer: one that is good, or a refusal that the request takes for an answer.
    pub(super) fn send(&self, ask: &Ask<'_>) -> Result<Answer> {
        self.exchange(ask, &self.heeded(), |_, answer| Ok(answer))
    }

    /// The same until `cancel` ends it.
    pub(super) fn send_until(&self, cancel: &Cancel, ask: &Ask<'_>) -> Result<Answer> {
        self.exchange(ask, cancel, |_, answer| Ok(answer))
    }

    /// The same, and reads the answer's body whole, at most `limit` bytes, as part of each try.
    pub(super) fn fetch(&self, ask: &Ask<'_>, limit: u64) -> Result<(Answer, Vec<u8>)> {
        self.exchange(ask, &self.heeded(), |client, mut answer| {
            let bytes = client.whole(ask, &mut answer, limit)?;
            Ok((answer, bytes))
        })
    }

    /// The same for requests that are answered by a document; nothing where it is a refusal that stands. What it says
    /// counts, whatever the status: servers begin to answer before they are done.
    pub(super) fn ask<T: Document>(&self, ask: &Ask<'_>) -> Result<(Answer, Option<T>)> {
        self.exchange(ask, &self.heeded(), |client, mut answer| {
            let body = client.whole(ask, &mut answer, LONGEST)?;
            if !answer.is_good() {
                answer.fault = Some(Fault::parse(answer.status, &body));
                return Ok((answer, None));
            }
            match xml::read(&body) {
                Ok(document) => Ok((answer, Some(document))),
                Err(_) if xml::is_error(&body) => {
                    let fault = Fault::within(&body);
                    answer.status = fault.status;
                    if ask.stands.contains(&fault.status) {
                        answer.fault = Some(fault);
                        return Ok((answer, None));
                    }
                    Err(client.failed(ask, &fault))
                }
                Err(what) => {
                    let message = format!("{}: the server's answer can't be read: {what}", client.place(ask.about));
                    Err(Failed::ForNow(Error::new(Code::StorageError, message), None))
                }
            }
        })
    }

    fn whole(&self, ask: &Ask<'_>, answer: &mut Answer, limit: u64) -> std::result::Result<Vec<u8>, Failed> {
        answer.bytes(limit).map_err(|error| match error {
            ureq::Error::BodyExceedsLimit(_) => {
                let message = format!("{}: the server's answer is longer than {limit} bytes", self.place(ask.about));
                Failed::ForGood(Error::new(Code::StorageError, message))
            }
            error => self.lost(ask.about, &error),
        })
    }

    fn exchange<T>(
        &self,
        ask: &Ask<'_>,
        cancel: &Cancel,
        finish: impl Fn(&Client, Answer) -> std::result::Result<T, Failed>,
    ) -> Result<T> {
        let (mut repeated, mut renewed) = (false, false);
        let done = retried(cancel, |_| {
            let key = self.keys.get(&self.http, cancel).map_err(Failed::ForGood)?;
            self.note(&key);
            let before = std::mem::replace(&mut repeated, true);
            let (parts, body) = self.once(ask, &key)?.into_parts();
            let (status, headers) = (parts.status.as_u16(), parts.headers);
            let mut answer = Answer { status, headers, body, fault: None, repeated: before };
            if answer.is_good() || ask.stands.contains(&status) {
                return finish(self, answer);
            }
            let fault = answer.fault();
            if fault.is_expired() && !renewed && self.keys.renew(&key) {
                renewed = true;
                return Err(Failed::ForNow(self.refused(ask.about, &fault), Some(Duration::ZERO)));
            }
            Err(self.failed(ask, &fault))
        });
        done.map_err(|error| self.discreet(error))
    }

    fn note(&self, key: &Arc<Key>) {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        if !used.iter().any(|known| Arc::ptr_eq(known, key)) {
            used.push(Arc::clone(key));
        }
    }

    /// An error without any key that was used, whatever of what the server said is in it.
    pub(super) fn discreet(&self, error: Error) -> Error {
        let used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        used.iter().fold(error, |error, key| key.hide_in(error))
    }

    /// What ends the tries of a request: a signal, unless the lock is held.
    fn heeded(&self) -> Cancel {
        if self.bond.is_tied() { self.cancel.deaf() } else { self.cancel.clone() }
    }

    /// Whether a request may be sent now: what changes anything only while the lock is held.
    fn may_send(&self, ask: &Ask<'_>) -> Result<()> {
        if ask.unbound || ask.method.is_safe() { Ok(()) } else { self.bond.check() }
    }

    fn failed(&self, ask: &Ask<'_>, fault: &Fault) -> Failed {
        let mut error = self.refused(ask.about, fault);
        // S3 knows a bucket or says `NoSuchBucket`.
        if ask.key.is_empty() && fault.status == 404 && fault.code != "NoSuchBucket" {
            error = error.hint("check the endpoint: is it that of an S3 server, without the bucket's name?");
        }
        if fault.is_temporary() { Failed::ForNow(error, fault.retry_after) } else { Failed::ForGood(error) }
    }

    /// Sends a request once.
    fn once(&self, ask: &Ask<'_>, key: &Key) -> std::result::Result<Response<Body>, Failed> {
        let fail = |what: &dyn std::fmt::Display| {
            Failed::ForGood(Error::new(Code::StorageError, format!("{}: {what}", self.place(ask.about))))
        };
        let url = self.url(ask).ok_or_else(|| fail(&"no URL can name this object"))?;
        let signed = self.sign(ask, &url, key).map_err(|error| fail(&error))?;
        let mut request = Request::builder().method(ask.method.clone()).uri(url.as_str());
        if let Some(headers) = request.headers_mut() {
            *headers = signed;
        }
        let may = || self.may_send(ask);
        may().map_err(Failed::ForGood)?;
        let http = if ask.of_object { &self.http.patient() } else { &self.http };
        ask.payload.send(http, request, &may, &|error| self.lost(ask.about, error))
    }

    /// Where a request goes; nothing where that would be somewhere else: a URL has no segments `.` and `..`.
    fn url(&self, ask: &Ask<'_>) -> Option<Url> {
        let mut url = self.address.base.clone();
        // Encoded here, once: what is signed is what is sent.
        let path = format!("{}{}", url.path(), signing::uri_encode(ask.key, false));
        url.set_path(&path);
        if url.path() != path {
            return None;
        }
        if !ask.query.is_empty() {
            let encode = |text: &str| signing::uri_encode(text, true);
            let pairs: Vec<String> =
                ask.query.iter().map(|(name, value)| format!("{}={}", encode(name), encode(value))).collect();
            url.set_query(Some(&pairs.join("&")));
        }
        Some(url)
    }

    /// The headers of a request with its signature (AWS Signature Version 4). All of them are signed.
    fn sign(&self, ask: &Ask<'_>, url: &Url, key: &Key) -> std::result::Result<HeaderMap, String> {
        let now = OffsetDateTime::from(SystemTime::now());
        let date = now.format(AMZ_DATE).map_err(|error| error.to_string())?;
        let content = ask.payload.sha256().hex();
        let mut headers = HeaderMap::new();
        let mut set = |name: &'static str, value: &str| {
            // Its value is not said: it may be a session token.
            let value = HeaderValue::from_str(value).map_err(|_| format!("the value of {name} is no header"))?;
            headers.insert(HeaderName::from_static(name), value);
            Ok::<(), String>(())
        };
        set("host", &host(url))?;
        set("x-amz-date", &date)?;
        set("x-amz-content-sha256", &content)?;
        if let Some(length) = ask.payload.length() {
            set("content-length", &length.to_string())?;
        }
        for (name, value) in &ask.headers {
            set(name, value)?;
        }
        if let Some(token) = &key.session_token {
            set("x-amz-security-token", token.expose())?;
        }
        let region = Region::Custom { region: self.address.region.clone(), endpoint: String::new() };
        let sign = || {
            let canonical = signing::canonical_request(ask.method.as_str(), url, &headers, &content)?;
            let to_sign = signing::string_to_sign(&now, &region, &canonical)?;
            let signing_key = signing::signing_key(&now, key.secret.expose(), &region, "s3")?;
            let signature = HmacSha256::new_from_slice(&signing_key)?.chain_update(to_sign).finalize().into_bytes();
            let signature = format!("{signature:x}");
            let signed = signing::signed_header_string(&headers);
            signing::authorization_header(key.id.expose(), &now, &region, &signed, &signature)
        };
        let authorization = sign().map_err(|error: s3::error::S3Error| error.to_string())?;
        let value = HeaderValue::from_str(&authorization).map_err(|_| "the access key id is no header".to_owned())?;
        headers.insert("authorization", value);
        Ok(headers)
    }

    /// An object of this bucket, for messages.
    pub(super) fn place(&self, key: &str) -> String {
        format!("s3://{}/{}", self.address.bucket, crate::path::escape(key.as_bytes()))
    }

    /// What a request ended with that got no whole answer: the server is what matters then.
    fn lost(&self, key: &str, error: &ureq::Error) -> Failed {
        let base = &self.address.base;
        let failed = Failed::of(&format!("{}: {}", self.place(key), self.http.route(base.as_str())), error);
        let hint = if is_unknown_host(error) && self.address.is_by_host() {
            "check the endpoint; a server that does not know buckets as host names wants path_style: true"
        } else if is_broken_off(error) && base.scheme() == "http" {
            "check the address and the network, then run again; or is it https that it speaks?"
        } else {
            return failed;
        };
        failed.hint(hint)
    }

    /// The error of an answer that is no good.
    pub(super) fn refusal(&self, key: &str, mut answer: Answer) -> Error {
        self.refused(key, &answer.fault())
    }

    pub(super) fn refused(&self, key: &str, fault: &Fault) -> Error {
        self.discreet(fault::error(&self.place(key), &self.address, fault))
    }
}

/// `Host` as RFC 9112 has it: with the port where that is not the scheme's own.
fn host(url: &Url) -> String {
    let name = url.host_str().unwrap_or_default();
    url.port().map_or_else(|| name.to_owned(), |port| format!("{name}:{port}"))
}
