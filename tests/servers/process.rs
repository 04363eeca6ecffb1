//! The process of a server: nothing of it is left when the process of the test is gone.

use std::fs::File;
use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use super::http;

/// Long for a machine that builds beside the tests; a server that ended is seen at once.
const PATIENCE: Duration = Duration::from_mins(1);
/// Somebody may take a port that was free a moment ago.
const ATTEMPTS: usize = 5;

/// Reads until the process of the test ends, whatever ended it, then ends the server. It removes the directory, which
/// nobody else does where a server lives until the very end.
const GUARD: &str = r#"read -r _ || kill -KILL "$1"; rm -rf "$2"; sleep 0.2; rm -rf "$2""#;

/// A server that is up.
pub(crate) struct Process {
    server: Child,
    guard: Child,
    /// Taken when it is dropped, after the server.
    _dir: tempfile::TempDir,
}

impl Process {
    /// Starts a server with its directory and the address that it is to listen at, and waits until it answers there.
    pub(crate) fn start(name: &str, command: impl Fn(&Path, SocketAddr) -> Command) -> (Process, SocketAddr) {
        let mut said = String::new();
        for _ in 0..ATTEMPTS {
            let dir = tempfile::Builder::new().prefix(&format!("distributor-{name}-")).tempdir().unwrap();
            let (address, log) = (free(), dir.path().join("log"));
            let mut command = command(dir.path(), address);
            let output = File::create(&log).unwrap();
            command.stdin(Stdio::null()).stdout(output.try_clone().unwrap()).stderr(output);
            // Ctrl-C is for the test, whose end is the server's.
            command.process_group(0);
            let server = command.spawn().unwrap_or_else(|error| panic!("{name} can't be started: {error}"));
            let mut process = Process { guard: guard(&server, dir.path()), server, _dir: dir };
            match process.wait(address, &log) {
                Up::Answers => return (process, address),
                Up::Taken(log) => said = log,
                Up::Ended(status, said) => panic!("{name} ended with {status}; it said:\n{said}"),
                Up::Late(said) => panic!("{name} does not answer at {address} within {PATIENCE:?}; it said:\n{said}"),
            }
        }
        panic!("{name} found {ATTEMPTS} ports taken; it said:\n{said}");
    }

    pub(crate) fn pid(&self) -> u32 {
        self.server.id()
    }

    /// Waits for any answer.
    fn wait(&mut self, address: SocketAddr, log: &Path) -> Up {
        let begun = Instant::now();
        loop {
            let answers = http::call(address, &http::Message::request("GET", "/", &[("Host", "localhost")])).is_ok();
            // Looked at after the answer, which may be that of whoever took the port.
            let ended = self.server.try_wait().unwrap();
            let said = std::fs::read_to_string(log).unwrap_or_default();
            match ended {
                _ if said.to_ascii_lowercase().contains("address already in use") => return Up::Taken(said),
                Some(status) => return Up::Ended(status, said),
                None if answers => return Up::Answers,
                None if begun.elapsed() > PATIENCE => return Up::Late(said),
                None => std::thread::sleep(Duration::from_millis(20)),
            }
        }
    }
}

/// What became of a server, with what it said.
enum Up {
    Answers,
    /// Somebody else has its port.
    Taken(String),
    Ended(ExitStatus, String),
    Late(String),
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
        // With a line, the guard knows that nobody is left to be killed.
        let _ = self.guard.stdin.take().map(|mut line| line.write_all(b"ended\n"));
        let _ = self.guard.wait();
    }
}

fn guard(server: &Child, dir: &Path) -> Child {
    let mut command = Command::new("sh");
    command.args(["-c", GUARD, "guard", &server.id().to_string()]).arg(dir);
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0).spawn().unwrap()
}

/// An address that is free now.
pub(crate) fn free() -> SocketAddr {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap()
}
