//! A web server that keeps a record of what is asked of it.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The server: it lives as long as the test.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    seen: Arc<Mutex<Seen>>,
}

/// What was asked.
#[derive(Clone, Default)]
pub(crate) struct Seen {
    /// The URLs, in order.
    pub(crate) urls: Vec<String>,
    /// What was posted to `/done`.
    pub(crate) done: Option<String>,
}

impl Server {
    /// Serves these documents, by their paths.
    pub(crate) fn start(documents: BTreeMap<String, String>) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (address, seen) = (listener.local_addr().unwrap(), Arc::new(Mutex::new(Seen::default())));
        let (record, documents) = (Arc::clone(&seen), Arc::new(documents));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (record, documents) = (Arc::clone(&record), Arc::clone(&documents));
                std::thread::spawn(move || answer(stream, &documents, &record));
            }
        });
        Server { address, seen }
    }

    pub(crate) fn seen(&self) -> Seen {
        self.seen.lock().unwrap().clone()
    }
}

fn answer(mut stream: TcpStream, documents: &BTreeMap<String, String>, seen: &Mutex<Seen>) -> Option<()> {
    stream.set_read_timeout(Some(Duration::from_secs(20))).ok()?;
    let mut request = Vec::new();
    let mut buffer = [0; 4096];
    let head = loop {
        let read = stream.read(&mut buffer).ok().filter(|read| *read > 0)?;
        request.extend_from_slice(&buffer[..read]);
        // A TLS greeting names the host it is meant for.
        if request[0] == 0x16 {
            let text = String::from_utf8_lossy(&request);
            if text.contains("example") {
                seen.lock().unwrap().urls.push(format!("https: {}", text.escape_default()));
            }
            return None;
        }
        if let Some(end) = request.windows(4).position(|four| four == b"\r\n\r\n") {
            break String::from_utf8_lossy(&request[..end]).into_owned();
        }
    };
    let field =
        |name: &str| head.lines().find_map(|line| line.to_ascii_lowercase().strip_prefix(name).map(str::to_owned));
    let path = head.split(' ').nth(1)?.to_owned();
    if path == "/done" {
        let length: usize = field("content-length: ")?.parse().ok()?;
        while request.len() < head.len() + 4 + length {
            let read = stream.read(&mut buffer).ok().filter(|read| *read > 0)?;
            request.extend_from_slice(&buffer[..read]);
        }
        seen.lock().unwrap().done = Some(String::from_utf8_lossy(&request[head.len() + 4..]).into_owned());
    } else {
        seen.lock().unwrap().urls.push(format!("http://{}{path}", field("host: ")?));
    }
    let (status, body) = documents.get(&path).map_or(("404 Not Found", ""), |body| ("200 OK", body));
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/html\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).ok()?;
    stream.write_all(body.as_bytes()).ok()
}
