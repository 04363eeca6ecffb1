//! moto, a mock of AWS in Python: it knows versions and conditional writes, and believes every signature.

use std::process::Command;
use std::sync::OnceLock;

use super::http::{self, Message};
use super::process::Process;
use super::{BUCKET, Place, Server, tool};

/// A bucket that keeps old versions.
const VERSIONED: &str = "versioned";

/// The server that all tests of this process share, if it is here.
pub(crate) fn server() -> Option<&'static Server> {
    static SERVER: OnceLock<Server> = OnceLock::new();
    let program = tool("moto/bin/moto_server", "`tests/needs` installs it from PyPI")?;
    Some(SERVER.get_or_init(|| {
        let (process, address) = Process::start("moto", |dir, address| {
            let mut command = Command::new(&program);
            let (host, port) = (address.ip().to_string(), address.port().to_string());
            // What a large upload spills goes to its own directory too.
            command.args(["-H", &host, "-p", &port]).env("TMPDIR", dir);
            command
        });
        let put = |target: &str, body: &str| {
            let mut request = Message::request("PUT", target, &[("Host", &address.to_string())]);
            request.body = body.as_bytes().to_vec();
            let answer = http::call(address, &request).unwrap();
            assert_eq!(answer.status(), 200, "{target}: {}", answer.text());
        };
        put(&format!("/{BUCKET}"), "");
        put(&format!("/{VERSIONED}"), "");
        let versioning = "<VersioningConfiguration xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">\
                          <Status>Enabled</Status></VersioningConfiguration>";
        put(&format!("/{VERSIONED}?versioning="), versioning);
        Server { name: "moto", address, region: "us-east-1", process }
    }))
}

impl Server {
    /// A place in a bucket that keeps old versions; moto alone has one.
    pub(crate) fn versioned(&'static self, name: &str) -> Place {
        Place { bucket: VERSIONED, ..self.place(name) }
    }
}
