//! The world outside: arguments, environment, directory, streams, clock, random ids and signals, injected so that
//! tests can hold all of it still.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use crate::timestamp::Timestamp;

/// What a program may know of the world it runs in.
pub struct Host {
    /// The arguments, without the program's name.
    pub args: Vec<OsString>,
    /// The environment.
    pub env: BTreeMap<OsString, OsString>,
    /// The directory that relative paths of the command line start from.
    pub cwd: PathBuf,
    /// Where results go.
    pub stdout: Stream,
    /// Where everything else goes.
    pub stderr: Stream,
    /// The wall clock.
    pub clock: Box<dyn Fn() -> Timestamp + Send + Sync>,
    /// A name that nobody else uses: 16 lower-case hex digits.
    pub token: Box<dyn Fn() -> String + Send + Sync>,
    /// Set by SIGINT and SIGTERM.
    pub cancel: Cancel,
    /// This process, for others to read.
    pub holder: Holder,
    /// Becomes the program of this name, from the directory of the running one; returns only where that failed.
    pub become_program: BecomeProgram,
}

/// Who holds a destination: left there for people that find it, and for hosts that wait for it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Holder {
    /// The host's name.
    pub host: String,
    /// Which start of that host.
    pub boot_id: String,
    /// The process.
    pub process_id: u32,
    /// When that process started, in clock ticks since the host did.
    pub process_start: u64,
    /// The namespace that the process id is of.
    pub pid_namespace: String,
    /// The program and its version.
    pub program: String,
}

impl Holder {
    /// Whether `other` was a process of the same host, and is gone.
    pub fn knows_gone(&self, other: &Holder) -> bool {
        !self.boot_id.is_empty()
            && self.boot_id == other.boot_id
            && self.pid_namespace == other.pid_namespace
            && started(&other.process_id.to_string()) != Some(other.process_start)
    }

    /// This process, as far as the system tells.
    pub fn this_process() -> Holder {
        let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        let namespace = std::fs::read_link("/proc/self/ns/pid").unwrap_or_default();
        Holder {
            host: read("/proc/sys/kernel/hostname").trim().to_owned(),
            boot_id: read("/proc/sys/kernel/random/boot_id").trim().to_owned(),
            process_id: std::process::id(),
            process_start: started("self").unwrap_or_default(),
            pid_namespace: namespace.to_string_lossy().into_owned(),
            program: format!("distributor {}", env!("CARGO_PKG_VERSION")),
        }
    }
}

/// When a process started, in clock ticks since the host did.
fn started(process: &str) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // After the program's name, in parentheses that it may hold too: field 22 of proc_pid_stat(5).
    stat.rsplit(") ").next()?.split(' ').nth(19)?.parse().ok()
}

/// Becomes another program; returns only where that failed.
pub type BecomeProgram = Box<dyn Fn(&str, &[OsString]) -> io::Error + Send + Sync>;

impl Host {
    /// The real one: the process's own arguments, streams and clock, with its signal handlers in place.
    pub fn real() -> Host {
        // Every mode is set exactly where something is made.
        rustix::process::umask(rustix::fs::Mode::empty());
        Host {
            args: std::env::args_os().skip(1).collect(),
            env: std::env::vars_os().collect(),
            // Where it is gone, relative paths stay relative, and the system says what is wrong with them.
            cwd: std::env::current_dir().unwrap_or_default(),
            stdout: Stream::new(io::stdout(), io::stdout().is_terminal()),
            stderr: Stream::new(io::stderr(), io::stderr().is_terminal()),
            clock: Box::new(|| Timestamp::from_instant(std::time::SystemTime::now().into())),
            token: Box::new(random_token),
            cancel: Cancel { handles_signals: true, ..Cancel::default() },
            holder: Holder::this_process(),
            become_program: Box::new(become_program),
        }
    }

    /// One that holds still, for tests: the clock stands at 2026-06-04T12:00:00Z, tokens count up, and nothing is shown.
    pub fn fixed(cwd: impl Into<PathBuf>, env: &[(&str, &str)]) -> Host {
        let tokens = AtomicUsize::new(0);
        Host {
            args: Vec::new(),
            env: env.iter().map(|(name, value)| (name.into(), value.into())).collect(),
            cwd: cwd.into(),
            stdout: Stream::new(io::sink(), false),
            stderr: Stream::new(io::sink(), false),
            clock: Box::new(|| Timestamp::from_instant(time::macros::datetime!(2026-06-04 12:00 UTC))),
            token: Box::new(move || format!("{:016x}", tokens.fetch_add(1, Ordering::SeqCst) + 1)),
            cancel: Cancel::default(),
            holder: Holder::default(),
            become_program: Box::new(|name, args| io::Error::other(format!("would become {name} {args:?}"))),
        }
    }

    /// A variable of the environment; an empty one counts as missing.
    pub fn var(&self, name: impl AsRef<OsStr>) -> Option<&OsStr> {
        self.env.get(name.as_ref()).map(OsString::as_os_str).filter(|value| !value.is_empty())
    }

    /// A path of the command line, made absolute.
    pub fn resolve(&self, path: impl AsRef<Path>) -> PathBuf {
        self.cwd.join(path)
    }

    /// The time now, to the second.
    pub fn now(&self) -> Timestamp {
        (self.clock)().to_second()
    }
}

fn become_program(name: &str, args: &[OsString]) -> io::Error {
    use std::os::unix::process::CommandExt;
    match std::env::current_exe() {
        Ok(exe) => std::process::Command::new(exe.with_file_name(name)).args(args).exec(),
        Err(error) => error,
    }
}

/// A name that nobody else uses: 16 lower-case hex digits.
pub fn random_token() -> String {
    use std::hash::{BuildHasher, Hasher};
    // Seeded by the system's random source once a process, then by a counter: unique, not secret.
    let mut hasher = std::collections::hash_map::RandomState::new().build_hasher();
    hasher.write_u32(std::process::id());
    format!("{:016x}", hasher.finish())
}

/// Opens a regular file, or `/dev/null`, which is an empty one. Links are followed, and nothing blocks: what is neither, a
/// pipe perhaps, is an error.
pub fn open_file(path: &Path) -> io::Result<File> {
    use rustix::fs::{Mode, OFlags};
    let file = File::from(rustix::fs::open(path, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty())?);
    let metadata = file.metadata()?;
    let is_null = metadata.file_type().is_char_device() && metadata.rdev() == rustix::fs::makedev(1, 3);
    if metadata.is_dir() {
        return Err(rustix::io::Errno::ISDIR.into());
    }
    if metadata.is_file() || is_null { Ok(file) } else { Err(io::Error::other("it is not a regular file")) }
}

/// Whether `text` is the name of a variable.
pub fn is_variable(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

/// An output stream that many threads may write lines to.
pub struct Stream {
    out: Mutex<Box<dyn Write + Send>>,
    terminal: bool,
}

impl Stream {
    /// A stream over any writer; `terminal` says whether a person looks at it.
    pub fn new(out: impl Write + Send + 'static, terminal: bool) -> Stream {
        Stream { out: Mutex::new(Box::new(out)), terminal }
    }

    /// Whether a person looks at it.
    pub fn is_terminal(&self) -> bool {
        self.terminal
    }

    /// Writes `text` whole and flushes it. A pipe that its reader has closed is no error: the reader has had enough.
    pub fn write(&self, text: &str) -> io::Result<()> {
        let mut out = self.out.lock().unwrap_or_else(PoisonError::into_inner);
        match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            result => result,
        }
    }
}

/// The signals that this process ignores, as a mask: bit 0 is signal 1 (`SigIgn` of `proc_pid_status(5)`).
fn ignored_signals() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or_default()
}

/// Whether a signal has asked the program to stop, and which; and how far it has come.
#[derive(Clone, Default)]
pub struct Cancel {
    signal: Arc<AtomicUsize>,
    passed: Arc<AtomicU64>,
    handles_signals: bool,
}

impl Cancel {
    /// From here on the first SIGINT or SIGTERM is noted, and a second one ends the process at once with 130 or 143.
    /// Before, each does so by itself: nothing has begun that would have to end well. A signal that is ignored by who
    /// started the program stays ignored.
    pub fn listen(&self) {
        let armed = Arc::new(AtomicBool::new(false));
        let ignored = if self.handles_signals { ignored_signals() } else { u64::MAX };
        for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
            let number = usize::try_from(signal).unwrap_or_default();
            if ignored >> (number - 1) & 1 == 1 {
                continue;
            }
            // Order matters: the shutdown looks at the flag before this signal arms it. Registering fails for
            // forbidden signals only, which these are not.
            let _ = signal_hook::flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&armed));
            let _ = signal_hook::flag::register(signal, Arc::clone(&armed));
            let _ = signal_hook::flag::register_usize(signal, Arc::clone(&self.signal), number);
        }
    }

    /// The same count, deaf to signals: for what has to come to its end.
    #[must_use]
    pub fn deaf(&self) -> Cancel {
        Cancel { passed: Arc::clone(&self.passed), ..Cancel::default() }
    }

    /// How many bytes loops have passed on.
    pub fn passed(&self) -> u64 {
        self.passed.load(Ordering::Relaxed)
    }

    /// Asks the program to stop, as signal `number` would.
    pub fn raise(&self, number: u8) {
        self.signal.store(number.into(), Ordering::SeqCst);
    }

    /// The signal that came, if one did.
    pub fn signal(&self) -> Option<u8> {
        match self.signal.load(Ordering::Relaxed) {
            0 => None,
            number => u8::try_from(number).ok(),
        }
    }

    /// Told by read and write loops how many bytes they have passed on; an error when a signal came, of which
    /// [`Cancel::check`] says what it was.
    pub fn go_on(&self, bytes: usize) -> io::Result<()> {
        self.passed.fetch_add(bytes as u64, Ordering::Relaxed);
        if self.signal().is_some() { Err(io::Error::other("interrupted")) } else { Ok(()) }
    }

    /// An error when a signal came.
    pub fn check(&self) -> crate::error::Result<()> {
        match self.signal() {
            None => Ok(()),
            Some(_) => Err(crate::error::Error::new(crate::error::Code::Interrupted, "interrupted by a signal")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Closed;
    impl Write for Closed {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::BrokenPipe.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_closed_pipe_is_no_error() {
        assert!(Stream::new(Closed, false).write("x").is_ok());
    }

    #[test]
    fn tokens_are_hex_and_differ() {
        let (a, b) = (random_token(), random_token());
        assert_ne!(a, b);
        assert!(a.len() == 16 && a.bytes().all(|b| b.is_ascii_hexdigit()));
    }

    #[test]
    fn variables_keep_their_rule() {
        assert!(is_variable("_A9") && is_variable("b"));
        for text in ["", "9A", "A-B", "A B", "Ä", "A=B"] {
            assert!(!is_variable(text), "{text:?}");
        }
    }
}
