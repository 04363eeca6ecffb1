//! HTTPS in front of a server, with a certificate of an authority that nobody else has.

use std::io::{BufReader, Result, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use super::http::{self, Message};

/// What speaks TLS before a server, as long as the process of the test.
pub(crate) struct Tls {
    pub(crate) address: SocketAddr,
    /// The certificate of the authority, as a PEM file holds it.
    pub(crate) authority: String,
}

impl Tls {
    /// Stands before a server, with a certificate for `127.0.0.1` only.
    pub(crate) fn before(server: SocketAddr) -> Tls {
        let mut authority = CertificateParams::new([]).unwrap();
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate().unwrap()).unwrap();
        let key = KeyPair::generate().unwrap();
        let leaf = CertificateParams::new([Ipv4Addr::LOCALHOST.to_string()]).unwrap().signed_by(&key, &authority);
        let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
        let config = config.with_no_client_auth().with_single_cert(vec![leaf.unwrap().der().clone()], key);
        let config = Arc::new(config.unwrap());
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let config = Arc::clone(&config);
                // A client that does not trust it breaks the connection.
                std::thread::spawn(move || drop(serve(stream, config, server)));
            }
        });
        Tls { address, authority: authority.pem() }
    }
}

fn serve(stream: TcpStream, config: Arc<ServerConfig>, server: SocketAddr) -> Result<()> {
    let connection = ServerConnection::new(config).map_err(std::io::Error::other)?;
    let mut client = BufReader::new(StreamOwned::new(connection, stream));
    while let Some(mut request) = Message::read_head(&mut client)? {
        if request.field("expect").is_some() {
            client.get_mut().write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
        }
        request.read_body(&mut client)?;
        let mut answer = http::call(server, &request)?;
        answer.remove("Connection");
        answer.remove("Transfer-Encoding");
        if request.method() != "HEAD" && answer.status() != 204 {
            answer.set("Content-Length", &answer.body.len().to_string());
        }
        answer.start = answer.start.replacen("HTTP/1.0", "HTTP/1.1", 1);
        client.get_mut().write_all(&[answer.head(), answer.body].concat())?;
    }
    Ok(())
}
