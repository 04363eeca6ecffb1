//! A proxy in front of a server of S3: it tells what was asked, and does what networks and servers do on bad days.
//!
//! The client's address for it is the proxy's. The `Host` field goes on as it came, for it is signed.

use std::collections::BTreeMap;
use std::io::{BufReader, ErrorKind, Result, Write, copy, sink};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use percent_encoding::percent_decode_str;

use super::fault::Fault;
use super::http::{self, Message};

/// A longer body is not kept.
const KEPT: usize = 64 * 1024;

/// What a request is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    GetObject,
    HeadObject,
    PutObject,
    CopyObject,
    DeleteObject,
    /// Either version of it.
    List,
    ListVersions,
    ListUploads,
    ListParts,
    DeleteObjects,
    CreateUpload,
    UploadPart,
    CompleteUpload,
    AbortUpload,
    Other,
}

/// A request that came.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) kind: Kind,
    pub(crate) method: String,
    /// As it was sent.
    pub(crate) path: String,
    pub(crate) query: String,
    /// Decoded; empty where it is about the bucket.
    pub(crate) key: String,
    /// Which connection it came over, from 0.
    pub(crate) connection: usize,
    pub(crate) length: usize,
    /// Empty where it is longer than 64 KiB.
    pub(crate) body: Vec<u8>,
    /// What the client was told, if anything.
    pub(crate) status: Option<u16>,
    /// Whether anything was done to it.
    pub(crate) faulty: bool,
    fields: Vec<(String, String)>,
}

impl Seen {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(has, _)| has.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    /// The decoded value of a parameter of the query, empty where it has none.
    pub(crate) fn parameter(&self, name: &str) -> Option<String> {
        let mut parameters = self.query.split('&').map(|pair| pair.split_once('=').unwrap_or((pair, "")));
        parameters.find(|(has, _)| *has == name).map(|(_, value)| decode(value))
    }

    fn of(request: &Message, connection: usize) -> Seen {
        let (path, query) = request.target().split_once('?').unwrap_or((request.target(), ""));
        let host = request.field("host").unwrap_or_default();
        let host = host.rsplit_once(':').map_or(host, |(host, _)| host);
        // A bucket is part of the path unless it is part of the host's name.
        let by_path = host == "localhost" || host.parse::<Ipv4Addr>().is_ok();
        let rest = path.trim_start_matches('/');
        let key = if by_path { rest.split_once('/').map_or("", |(_, key)| key) } else { rest };
        let mut seen = Seen {
            kind: Kind::Other,
            method: request.method().to_owned(),
            path: path.to_owned(),
            query: query.to_owned(),
            key: decode(key),
            connection,
            length: request.body.len(),
            body: if request.body.len() > KEPT { Vec::new() } else { request.body.clone() },
            status: None,
            faulty: false,
            fields: request.fields.clone(),
        };
        seen.kind = seen.kind();
        seen
    }

    fn kind(&self) -> Kind {
        let has = |name| self.parameter(name).is_some();
        match (self.method.as_str(), self.key.is_empty()) {
            ("GET", true) if has("uploads") => Kind::ListUploads,
            ("GET", true) if has("versions") => Kind::ListVersions,
            ("GET", true) if !has("location") && !has("versioning") => Kind::List,
            ("POST", true) if has("delete") => Kind::DeleteObjects,
            ("POST", false) if has("uploads") => Kind::CreateUpload,
            ("POST", false) if has("uploadId") => Kind::CompleteUpload,
            ("GET", false) if has("uploadId") => Kind::ListParts,
            ("PUT", false) if has("partNumber") => Kind::UploadPart,
            ("DELETE", false) if has("uploadId") => Kind::AbortUpload,
            ("PUT", false) if self.header("x-amz-copy-source").is_some() => Kind::CopyObject,
            ("GET", false) => Kind::GetObject,
            ("HEAD", false) => Kind::HeadObject,
            ("PUT", false) => Kind::PutObject,
            ("DELETE", false) => Kind::DeleteObject,
            _ => Kind::Other,
        }
    }
}

fn decode(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}

/// A fault that waits for its requests.
struct Rule {
    skip: usize,
    left: usize,
    fault: Fault,
    when: Box<dyn Fn(&Seen) -> bool + Send>,
}

struct Shared {
    server: SocketAddr,
    seen: Mutex<Vec<Seen>>,
    rules: Mutex<Vec<Rule>>,
    connections: AtomicUsize,
    busy: AtomicUsize,
    busiest: AtomicUsize,
    ended: AtomicBool,
}

/// The proxy: it lives as long as the test.
pub(crate) struct Proxy {
    pub(crate) address: SocketAddr,
    shared: Arc<Shared>,
}

impl Proxy {
    /// A proxy in front of a server.
    pub(crate) fn before(server: SocketAddr) -> Proxy {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared {
            server,
            seen: Mutex::default(),
            rules: Mutex::default(),
            connections: AtomicUsize::new(0),
            busy: AtomicUsize::new(0),
            busiest: AtomicUsize::new(0),
            ended: AtomicBool::new(false),
        });
        let all = Arc::clone(&shared);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if all.ended.load(Ordering::SeqCst) {
                    return;
                }
                let (shared, connection) = (Arc::clone(&all), all.connections.fetch_add(1, Ordering::SeqCst));
                // What breaks a connection is the client's affair, or what a test wants.
                std::thread::spawn(move || drop(serve(stream, connection, &shared)));
            }
        });
        Proxy { address, shared }
    }

    /// Does this to the next requests of that kind, so many times.
    pub(crate) fn fault(&self, times: usize, fault: Fault, when: impl Fn(&Seen) -> bool + Send + 'static) {
        self.fault_after(0, times, fault, when);
    }

    /// The same, after some of them have passed. Of several faults for one request the first counts.
    pub(crate) fn fault_after(
        &self,
        skip: usize,
        left: usize,
        fault: Fault,
        when: impl Fn(&Seen) -> bool + Send + 'static,
    ) {
        self.shared.rules.lock().unwrap().push(Rule { skip, left, fault, when: Box::new(when) });
    }

    /// How many faults have not come to pass.
    pub(crate) fn faults_left(&self) -> usize {
        self.shared.rules.lock().unwrap().iter().map(|rule| rule.left).sum()
    }

    /// All requests, in the order in which they had come in whole.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.shared.seen.lock().unwrap().clone()
    }

    pub(crate) fn count(&self, kind: Kind) -> usize {
        self.shared.seen.lock().unwrap().iter().filter(|seen| seen.kind == kind).count()
    }

    /// How many requests of each kind there were.
    pub(crate) fn counts(&self) -> BTreeMap<Kind, usize> {
        let mut counts = BTreeMap::new();
        self.shared.seen.lock().unwrap().iter().for_each(|seen| *counts.entry(seen.kind).or_default() += 1);
        counts
    }

    /// How many connections were opened, since the beginning.
    pub(crate) fn connections(&self) -> usize {
        self.shared.connections.load(Ordering::SeqCst)
    }

    /// How many requests there were at a time, at most.
    pub(crate) fn busiest(&self) -> usize {
        self.shared.busiest.load(Ordering::SeqCst)
    }

    /// Forgets all requests, and the faults that have not come to pass.
    pub(crate) fn forget(&self) {
        self.shared.seen.lock().unwrap().clear();
        self.shared.rules.lock().unwrap().clear();
        self.shared.busiest.store(0, Ordering::SeqCst);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shared.ended.store(true, Ordering::SeqCst);
        // It wakes who waits for connections.
        drop(TcpStream::connect(self.address));
    }
}

impl Shared {
    /// The fault that this request meets.
    fn meet(&self, seen: &Seen) -> Option<Fault> {
        let mut rules = self.rules.lock().unwrap();
        for rule in rules.iter_mut().filter(|rule| rule.left > 0 && (rule.when)(seen)) {
            if rule.skip == 0 {
                rule.left -= 1;
                return Some(rule.fault.clone());
            }
            rule.skip -= 1;
        }
        None
    }

    fn forward(&self, request: &Message) -> Result<Message> {
        let stream = TcpStream::connect(self.server)?;
        stream.set_nodelay(true)?;
        http::exchange(&mut BufReader::new(stream), request)
    }
}

/// Serves a connection to its end.
fn serve(stream: TcpStream, connection: usize, shared: &Shared) -> Result<()> {
    stream.set_nodelay(true)?;
    let mut client = BufReader::new(stream);
    while let Some(mut request) = Message::read_head(&mut client)? {
        if request.field("expect").is_some_and(|expect| expect.eq_ignore_ascii_case("100-continue")) {
            client.get_mut().write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
        }
        request.read_body(&mut client)?;
        let busy = shared.busy.fetch_add(1, Ordering::SeqCst) + 1;
        shared.busiest.fetch_max(busy, Ordering::SeqCst);
        let stays = answer(&request, &mut client, connection, shared);
        shared.busy.fetch_sub(1, Ordering::SeqCst);
        if !stays? {
            break;
        }
    }
    Ok(())
}

/// Answers a request, or not; says whether the connection stays.
fn answer(request: &Message, client: &mut BufReader<TcpStream>, connection: usize, shared: &Shared) -> Result<bool> {
    let mut seen = Seen::of(request, connection);
    let fault = shared.meet(&seen);
    seen.faulty = fault.is_some();
    let index = {
        let mut all = shared.seen.lock().unwrap();
        all.push(seen);
        all.len() - 1
    };
    let mut answer = match &fault {
        Some(Fault::Silence) => return copy(client, &mut sink()).map(|_| false),
        Some(Fault::Close) => return Ok(false),
        Some(Fault::ResetBefore) => return reset(client),
        Some(Fault::Instead(answer)) => answer.clone(),
        Some(Fault::Delay(time)) => {
            std::thread::sleep(*time);
            shared.forward(request)?
        }
        _ => shared.forward(request)?,
    };
    match &fault {
        Some(Fault::ResetAfter) => return reset(client),
        Some(Fault::After(instead)) => answer = instead.clone(),
        Some(Fault::Field(name, value)) => answer.set(name, value),
        _ => {}
    }
    if let Some(seen) = shared.seen.lock().unwrap().get_mut(index) {
        seen.status = Some(answer.status());
    }
    let whole = answer.body.len();
    // A `HEAD` tells the length of a body that does not come.
    if request.method() != "HEAD" && !matches!(answer.status(), 204 | 304) {
        let length = if let Some(Fault::Length(off)) = fault { whole.saturating_add_signed(off) } else { whole };
        answer.remove("Transfer-Encoding");
        answer.set("Content-Length", &length.to_string());
    } else {
        answer.body.clear();
    }
    // Connections are kept, whatever the server does with its own.
    answer.remove("Connection");
    answer.start = answer.start.replacen("HTTP/1.0", "HTTP/1.1", 1);
    if let Some(Fault::Drip(pause)) = fault {
        for byte in [answer.head(), answer.body].concat() {
            client.get_mut().write_all(&[byte])?;
            std::thread::sleep(pause);
        }
        return Ok(true);
    }
    client.get_mut().write_all(&answer.head())?;
    match fault {
        Some(Fault::Cut(bytes)) => {
            client.get_mut().write_all(&answer.body[..bytes.min(answer.body.len())])?;
            return Ok(false);
        }
        Some(Fault::Trickle { bytes, pause }) => {
            for some in answer.body.chunks(bytes) {
                std::thread::sleep(pause);
                client.get_mut().write_all(some)?;
            }
        }
        _ => client.get_mut().write_all(&answer.body)?,
    }
    Ok(true)
}

/// Resets a connection: it is closed by the caller, who has the only hold on it.
fn reset(client: &BufReader<TcpStream>) -> Result<bool> {
    rustix::net::sockopt::set_socket_linger(client.get_ref(), Some(Duration::ZERO))?;
    Err(ErrorKind::ConnectionReset.into())
}
