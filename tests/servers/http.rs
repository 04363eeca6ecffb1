//! As much of HTTP/1.1 as a test needs to speak it by hand, on either side.

use std::io::{BufRead, BufReader, Error, ErrorKind, Read, Result, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// A request or a response.
#[derive(Clone, Debug, Default)]
pub(crate) struct Message {
    /// The request line or the status line.
    pub(crate) start: String,
    /// As they came: order, case and repetitions.
    pub(crate) fields: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Message {
    pub(crate) fn request(method: &str, target: &str, fields: &[(&str, &str)]) -> Message {
        let fields = fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Message { start: format!("{method} {target} HTTP/1.1"), fields, body: Vec::new() }
    }

    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(has, _)| has.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    pub(crate) fn set(&mut self, name: &str, value: &str) {
        self.remove(name);
        self.fields.push((name.to_owned(), value.to_owned()));
    }

    pub(crate) fn remove(&mut self, name: &str) {
        self.fields.retain(|(has, _)| !has.eq_ignore_ascii_case(name));
    }

    pub(crate) fn method(&self) -> &str {
        self.start.split(' ').next().unwrap_or_default()
    }

    /// Path and query, as they were sent.
    pub(crate) fn target(&self) -> &str {
        self.start.split(' ').nth(1).unwrap_or_default()
    }

    pub(crate) fn status(&self) -> u16 {
        self.start.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0)
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The head with the empty line, as it goes over the line.
    pub(crate) fn head(&self) -> Vec<u8> {
        let fields: String = self.fields.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        format!("{}\r\n{fields}\r\n", self.start).into_bytes()
    }

    /// Reads a head; none where the other side closed the connection instead.
    pub(crate) fn read_head(from: &mut impl BufRead) -> Result<Option<Message>> {
        let Some(start) = line(from)? else { return Ok(None) };
        let mut message = Message { start, ..Message::default() };
        loop {
            let line = line(from)?.ok_or(ErrorKind::UnexpectedEof)?;
            if line.is_empty() {
                return Ok(Some(message));
            }
            let (name, value) = line.split_once(':').ok_or(ErrorKind::InvalidData)?;
            message.fields.push((name.to_owned(), value.trim().to_owned()));
        }
    }

    /// Reads the body of a request: nothing where no field announces one.
    pub(crate) fn read_body(&mut self, from: &mut impl BufRead) -> Result<()> {
        if self.field("transfer-encoding").is_some_and(|coding| coding.eq_ignore_ascii_case("chunked")) {
            return self.read_chunks(from);
        }
        let length = self.length()?.unwrap_or(0);
        from.take(length).read_to_end(&mut self.body)?;
        if self.body.len() as u64 == length { Ok(()) } else { Err(ErrorKind::UnexpectedEof.into()) }
    }

    /// Reads the body of the answer to a request: to the end where no field says how long it is.
    pub(crate) fn read_answer(&mut self, method: &str, from: &mut impl BufRead) -> Result<()> {
        if method == "HEAD" || matches!(self.status(), 204 | 304) {
            return Ok(());
        }
        if self.length()?.is_some() || self.field("transfer-encoding").is_some() {
            return self.read_body(from);
        }
        from.read_to_end(&mut self.body).map(drop)
    }

    fn length(&self) -> Result<Option<u64>> {
        self.field("content-length").map(|length| length.parse().map_err(Error::other)).transpose()
    }

    fn read_chunks(&mut self, from: &mut impl BufRead) -> Result<()> {
        loop {
            let size = line(from)?.ok_or(ErrorKind::UnexpectedEof)?;
            let size = u64::from_str_radix(size.split(';').next().unwrap_or_default().trim(), 16);
            let size = size.map_err(Error::other)?;
            if from.take(size).read_to_end(&mut self.body)? as u64 != size {
                return Err(ErrorKind::UnexpectedEof.into());
            }
            if size == 0 {
                // Trailers are of no use to anybody here.
                while line(from)?.is_some_and(|line| !line.is_empty()) {}
                return Ok(());
            }
            line(from)?;
        }
    }
}

/// A line without its end; none at the end.
fn line(from: &mut impl BufRead) -> Result<Option<String>> {
    let mut bytes = Vec::new();
    if from.read_until(b'\n', &mut bytes)? == 0 {
        return Ok(None);
    }
    if bytes.pop() != Some(b'\n') {
        return Err(ErrorKind::UnexpectedEof.into());
    }
    bytes.pop_if(|byte| *byte == b'\r');
    Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
}

/// Sends a request over a connection of its own, and reads the answer.
pub(crate) fn call(address: SocketAddr, request: &Message) -> Result<Message> {
    let stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(Duration::from_mins(1)))?;
    exchange(&mut BufReader::new(stream), request)
}

/// Sends a request, and reads the answer.
pub(crate) fn exchange(stream: &mut BufReader<TcpStream>, request: &Message) -> Result<Message> {
    let mut request = request.clone();
    if !request.body.is_empty() || matches!(request.method(), "PUT" | "POST") {
        request.remove("transfer-encoding");
        request.set("Content-Length", &request.body.len().to_string());
    }
    stream.get_mut().write_all(&[request.head(), request.body.clone()].concat())?;
    loop {
        let mut answer = Message::read_head(stream)?.ok_or(ErrorKind::UnexpectedEof)?;
        // `100 Continue` comes before the answer.
        if !(100..200).contains(&answer.status()) {
            answer.read_answer(request.method(), stream)?;
            return Ok(answer);
        }
    }
}
