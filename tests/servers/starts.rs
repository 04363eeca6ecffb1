//! Servers come up or say why not, and nothing is left of them.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::servers::process::Process;
use crate::servers::tools;

fn shell(script: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", script]);
    command
}

/// A server that any Python has.
fn plain(dir: &Path, port: u16) -> Command {
    let mut command = Command::new("python3");
    command.args(["-m", "http.server", "--bind", "127.0.0.1", &port.to_string()]).current_dir(dir);
    command
}

#[test]
fn a_server_that_ends_says_why() {
    let started = std::panic::catch_unwind(|| Process::start("broken", |_, _| shell("echo no luck >&2; exit 3")));
    let said = started.err().unwrap().downcast::<String>().unwrap();
    assert!(said.contains("broken ended with exit status: 3") && said.contains("no luck"), "{said}");
}

#[test]
fn nothing_is_left_of_a_server() {
    // Who installed moto has Python.
    if !tools().join("moto").is_dir() {
        return;
    }
    let dir = std::sync::Mutex::new(None);
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let holder = std::net::TcpListener::bind(("127.0.0.1", taken)).unwrap();
    let attempts = std::sync::atomic::AtomicUsize::new(0);
    let (process, address) = Process::start("plain", |at, address| {
        *dir.lock().unwrap() = Some(at.to_owned());
        // At first somebody else has its port.
        let first = attempts.fetch_add(1, std::sync::atomic::Ordering::SeqCst) == 0;
        plain(at, if first { taken } else { address.port() })
    });
    drop(holder);
    assert_eq!(attempts.into_inner(), 2);
    let (pid, dir) = (process.pid(), dir.into_inner().unwrap().unwrap());
    assert!(std::net::TcpStream::connect(address).is_ok() && dir.is_dir());
    drop(process);
    let begun = Instant::now();
    while dir.exists() && begun.elapsed() < Duration::from_secs(20) {
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(!dir.exists() && !Path::new(&format!("/proc/{pid}")).exists());
    assert!(std::net::TcpStream::connect(address).is_err());
}
