//! Servers of S3 for the tests, on loopback, each with a free port and a directory of its own: started when the first
//! test of a process asks, shared by all of them, gone when the process is, however it ends.
//!
//! A test target includes this with `#[path = "../servers/mod.rs"] mod servers;`.
// No test target uses all of it.
#![allow(dead_code)]

pub(crate) mod fault;
pub(crate) mod garage;
pub(crate) mod http;
pub(crate) mod moto;
pub(crate) mod place;
pub(crate) mod process;
pub(crate) mod proxy;
pub(crate) mod sign;
pub(crate) mod tls;

use std::io::Write;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

pub(crate) use place::Place;

/// What every server lets in, to this bucket.
pub(crate) const ACCESS_KEY: &str = "AKIAIOSFODNN7EXAMPLE";
pub(crate) const SECRET_KEY: &str = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY";
pub(crate) const BUCKET: &str = "bucket";

/// A server that runs.
pub(crate) struct Server {
    pub(crate) name: &'static str,
    pub(crate) address: SocketAddr,
    pub(crate) region: &'static str,
    process: process::Process,
}

impl Server {
    /// Everything in the bucket.
    pub(crate) fn whole(&'static self) -> Place {
        self.below(String::new())
    }

    /// A place in the bucket that no other test has.
    pub(crate) fn place(&'static self, name: &str) -> Place {
        let token = std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), name);
        self.below(format!("{name}-{token:016x}/"))
    }

    fn below(&'static self, prefix: String) -> Place {
        Place { server: self, bucket: BUCKET, prefix }
    }

    /// The process of the server.
    pub(crate) fn pid(&self) -> u32 {
        self.process.pid()
    }
}

/// The servers that are here.
pub(crate) fn all() -> Vec<&'static Server> {
    [moto::server(), garage::server()].into_iter().flatten().collect()
}

/// Where `tests/needs` and the Makefile put what no package of the system has.
pub(crate) fn tools() -> PathBuf {
    let usual = || Path::new(env!("CARGO_MANIFEST_DIR")).join("target/tools");
    std::env::var_os("DISTRIBUTOR_TEST_TOOLS").map_or_else(usual, PathBuf::from)
}

/// A program that a server needs, if it is here; where it is not, the test is skipped, aloud.
fn tool(path: &str, cure: &str) -> Option<PathBuf> {
    let path = tools().join(path);
    let there = path.is_file();
    assert!(
        there || std::env::var_os("DISTRIBUTOR_TEST_NO_SKIP").is_none(),
        "this test needs {}: {cure}",
        path.display()
    );
    if !there {
        let _ = writeln!(std::io::stdout(), "SKIPPED: it needs {}: {cure}", path.display());
    }
    there.then_some(path)
}
