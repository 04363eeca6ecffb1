//! The sources of the chain against stand-ins of their servers.

mod files;
mod renewal;
mod servers;

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::chain::Chain;
use super::world::World;
use super::{Key, Keys};
use crate::error::{Code, Error, Result};
use crate::host::{Cancel, Host};
use crate::http::{Http, Proxies, Settings};

/// What every secret of these tests begins with: it stands in no message.
const SECRET: &str = "hush";

/// What a server does.
enum Reply {
    /// Says this status and this text.
    Says(u16, String),
    /// Says nothing.
    Nothing,
    /// Hangs up.
    HangsUp,
    /// Says 200 and never ends.
    Endless,
}

/// A server of this host, and what it was asked: head and body of each request.
struct Server {
    address: String,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Server {
    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

/// A server that replies by what it is asked: how many went before, and the request.
fn serve(reply: impl Fn(usize, &str) -> Reply + Send + Sync + 'static) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let asked: Arc<Mutex<Vec<String>>> = Arc::default();
    let (kept, reply) = (Arc::clone(&asked), Arc::new(reply));
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (kept, reply) = (Arc::clone(&kept), Arc::clone(&reply));
            std::thread::spawn(move || answer(stream.unwrap(), &kept, &*reply));
        }
    });
    Server { address, asked }
}

/// The address of a server that is gone.
fn closed() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    format!("http://{}", listener.local_addr().unwrap())
}

fn answer(mut stream: TcpStream, asked: &Mutex<Vec<String>>, reply: &dyn Fn(usize, &str) -> Reply) {
    let request = request(&mut stream);
    let before = {
        let mut asked = asked.lock().unwrap();
        asked.push(request.clone());
        asked.len() - 1
    };
    match reply(before, &request) {
        Reply::Says(status, text) => {
            let head = format!("HTTP/1.1 {status} x\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", text.len());
            let _ = stream.write_all(format!("{head}{text}").as_bytes());
        }
        Reply::Nothing => std::thread::sleep(Duration::from_secs(5)),
        Reply::HangsUp => {}
        Reply::Endless => {
            let _ = stream.write_all(b"HTTP/1.1 200 x\r\nconnection: close\r\n\r\n");
            while stream.write_all(&[b'x'; 4096]).is_ok() {}
        }
    }
}

/// Head and body.
fn request(stream: &mut TcpStream) -> String {
    let (mut bytes, mut chunk) = (Vec::new(), [0; 4096]);
    loop {
        let count = stream.read(&mut chunk).unwrap();
        bytes.extend_from_slice(&chunk[..count]);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length =
                head.lines().find_map(|line| line.strip_prefix("content-length: ")).map_or(0, |n| n.parse().unwrap());
            if body.len() >= length {
                return text;
            }
        }
        if count == 0 {
            return text;
        }
    }
}

fn http() -> Http {
    let timeout = Duration::from_secs(2);
    Http::new(&Settings {
        connect_timeout: timeout,
        timeout,
        connections: 4,
        authorities: None,
        proxies: Proxies::default(),
    })
}

/// A chain in a world of these variables, without instance metadata where none of them is of it.
fn chain(variables: &[(&str, &str)]) -> Chain {
    let mut host = Host::fixed("/nowhere", variables);
    if host.var("AWS_EC2_METADATA_SERVICE_ENDPOINT").is_none() {
        host.env.insert("AWS_EC2_METADATA_DISABLED".into(), "true".into());
    }
    Chain::new(World::new(&host))
}

fn get(chain: &Chain) -> Result<Arc<Key>> {
    chain.get(&http(), &Cancel::default())
}

/// Id, secret and token of the key that these variables lead to.
fn found(variables: &[(&str, &str)]) -> (String, String, Option<String>) {
    parts(&get(&chain(variables)).unwrap_or_else(|error| panic!("{error}")))
}

fn parts(key: &Key) -> (String, String, Option<String>) {
    let text = |secret: &crate::secrets::Secret| secret.expose().to_owned();
    (text(&key.id), text(&key.secret), key.session_token.as_ref().map(text))
}

fn three(id: &str, secret: &str, token: Option<&str>) -> (String, String, Option<String>) {
    (id.to_owned(), secret.to_owned(), token.map(str::to_owned))
}

/// The error that these variables lead to, which has a cure and gives nothing away.
fn refused(variables: &[(&str, &str)]) -> Error {
    safe(get(&chain(variables)).unwrap_err())
}

fn safe(error: Error) -> Error {
    let all = format!("{error} {error:?}");
    assert!(!all.contains(SECRET), "{all}");
    assert_eq!(error.code, Code::AuthFailed, "{all}");
    assert!(error.hint.is_some(), "{all}");
    error
}

/// An error with all of `words` in its message or hint.
#[track_caller]
fn says(error: &Error, words: &[&str]) {
    let text = format!("{} ({})", error.message, error.hint.as_deref().unwrap_or_default());
    for word in words {
        assert!(text.contains(word), "{word:?} is not in {text:?}");
    }
}

/// A time so many minutes from now.
fn in_minutes(minutes: i64) -> String {
    let time = time::OffsetDateTime::now_utc() + time::Duration::minutes(minutes);
    time.format(&time::format_description::well_known::Rfc3339).unwrap()
}

/// The answer of a container's agent or of instance metadata.
fn document(id: &str, expires: &str) -> String {
    format!(
        r#"{{"Code":"Success","AccessKeyId":"{id}","SecretAccessKey":"hush-secret","Token":"hush-token","Expiration":"{expires}"}}"#
    )
}

#[test]
fn a_key_that_is_given_is_never_shown_nor_renewed() {
    let key = Key::of("hush-id", "hush-secret", Some("hush-token"), None).unwrap();
    let keys = Keys::given(key);
    let key = keys.get(&http(), &Cancel::default()).unwrap();
    let host = Host::fixed("/", &[("AWS_ACCESS_KEY_ID", "hush"), ("AWS_SECRET_ACCESS_KEY", "hush")]);
    let shown = format!("{keys:?} {key:?} {:#?} {:?}", key, Keys::chain(&host));
    assert!(!shown.contains(SECRET), "{shown}");
    assert!(!keys.renew(&key));
}

#[test]
fn with_nothing_configured_the_error_says_what_could_be() {
    let error = refused(&[]);
    says(&error, &["there are no credentials", "AWS_EC2_METADATA_DISABLED", "access_key_id_env", "default chain"]);
}

#[test]
fn nothing_is_asked_before_the_first_request() {
    let server = serve(|_, _| Reply::Says(200, document("A", &in_minutes(60))));
    let host = Host::fixed("/", &[("AWS_CONTAINER_CREDENTIALS_FULL_URI", &server.address)]);
    let keys = Keys::chain(&host);
    std::thread::sleep(Duration::from_millis(50));
    assert!(server.asked().is_empty());
    keys.get(&http(), &Cancel::default()).unwrap();
    keys.get(&http(), &Cancel::default()).unwrap();
    assert_eq!(server.asked().len(), 1);
}

#[test]
fn the_first_source_that_is_configured_decides() {
    let sts = serve(|_, _| Reply::Says(403, String::new()));
    let agent = serve(|_, _| Reply::Says(200, document("agent", &in_minutes(60))));
    let home = tempfile::tempdir().unwrap();
    std::fs::create_dir(home.path().join(".aws")).unwrap();
    let file = home.path().join(".aws/credentials");
    std::fs::write(&file, "[default]\naws_access_key_id = file\naws_secret_access_key = hush\n").unwrap();
    std::fs::write(home.path().join("token"), "hush-identity").unwrap();
    let mut all = vec![
        ("AWS_ACCESS_KEY_ID", "env"),
        ("AWS_SECRET_ACCESS_KEY", "hush"),
        ("HOME", home.path().to_str().unwrap()),
        ("AWS_ROLE_ARN", "arn:aws:iam::1:role/r"),
        ("AWS_WEB_IDENTITY_TOKEN_FILE", "~/token"),
        ("AWS_ENDPOINT_URL_STS", &sts.address),
        ("AWS_CONTAINER_CREDENTIALS_FULL_URI", &agent.address),
    ];
    assert_eq!(found(&all).0, "env");
    all.drain(..2);
    assert_eq!(found(&all).0, "file");
    std::fs::remove_file(file).unwrap();
    says(&refused(&all), &["no key from the web identity", "403"]);
    assert!(agent.asked().is_empty(), "an error is not passed over");
    all.retain(|(name, _)| *name != "AWS_WEB_IDENTITY_TOKEN_FILE");
    assert_eq!(found(&all).0, "agent", "a role without a token configures nothing");
}
