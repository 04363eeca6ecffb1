//! What a proxy does to a request instead of passing it on as it is.

use std::time::Duration;

use super::http::Message;

/// One fault.
#[derive(Clone, Debug)]
pub(crate) enum Fault {
    /// It is read and never answered; the server never hears of it.
    Silence,
    /// It is passed on, this much later.
    Delay(Duration),
    /// The connection is reset; the server never hears of it.
    ResetBefore,
    /// The server does it, then the connection is reset: the answer is lost.
    ResetAfter,
    /// The connection is closed, as a server closes one that it finds idle; it never hears of the request.
    Close,
    /// This is the answer; the server never hears of it.
    Instead(Message),
    /// The server does it, and this is the answer.
    After(Message),
    /// Of the server's body this many bytes come, then the connection is closed.
    Cut(usize),
    /// The server's body comes a few bytes at a time.
    Trickle { bytes: usize, pause: Duration },
    /// The server's answer comes a byte at a time, its head and all.
    Drip(Duration),
    /// The server's answer with a `Content-Length` that is this much off. Where it is too large nothing follows and the
    /// connection stays open; where it is too small the rest comes nevertheless.
    Length(isize),
    /// The server's answer with this field as it should not be.
    Field(&'static str, String),
}

/// An error as S3 gives it.
pub(crate) fn error(status: u16, code: &str) -> Message {
    answer(status, &error_body(code, ""))
}

/// The server is busy; the client may come again after so many seconds.
pub(crate) fn slow_down(retry_after: u64) -> Message {
    error(503, "SlowDown").with("Retry-After", &retry_after.to_string())
}

/// The bucket is in another region: 301 `PermanentRedirect`, 307 `TemporaryRedirect`, or 400
/// `AuthorizationHeaderMalformed`.
pub(crate) fn elsewhere(status: u16, code: &str, region: &str) -> Message {
    let inner = format!("<Region>{region}</Region><Bucket>bucket</Bucket><Endpoint>bucket.s3.example</Endpoint>");
    let answer = answer(status, &error_body(code, &inner)).with("x-amz-bucket-region", region);
    if status == 400 { answer } else { answer.with("Location", "http://bucket.s3.example/") }
}

/// Success at the head, an error in the body: what a `CompleteMultipartUpload` that fails late looks like.
pub(crate) fn error_in_200(code: &str) -> Message {
    answer(200, &error_body(code, ""))
}

/// A `DeleteObjects` that did not delete this key.
pub(crate) fn undeleted(key: &str, code: &str) -> Message {
    let error = format!("<Error><Key>{key}</Key><Code>{code}</Code><Message>no</Message></Error>");
    let body = format!("<DeleteResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">{error}</DeleteResult>");
    answer(200, &body)
}

/// Bytes that are no XML, nor text.
pub(crate) fn garbage(status: u16) -> Message {
    let mut answer = answer(status, "");
    answer.body = b"<?xml \xff\xfe<ListBucketResult><Contents>\0</Key>".to_vec();
    answer
}

/// An answer with a body of XML.
pub(crate) fn answer(status: u16, body: &str) -> Message {
    let start = format!("HTTP/1.1 {status} Because");
    let mut answer = Message { start, fields: Vec::new(), body: body.as_bytes().to_vec() };
    answer.set("Content-Type", "application/xml");
    answer
}

impl Message {
    pub(crate) fn with(mut self, name: &str, value: &str) -> Message {
        self.set(name, value);
        self
    }
}

fn error_body(code: &str, inner: &str) -> String {
    let head = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";
    format!(
        "{head}<Error><Code>{code}</Code><Message>A test wants it.</Message>{inner}<RequestId>1</RequestId></Error>"
    )
}
