//! The direction of the arrows between the rooms of src/, the rooms that may touch the world outside, and their size.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// A room, the rooms it may know, and what of the world outside it may touch.
type Room = (&'static str, &'static [&'static str], &'static [Outside]);

/// Something of the world outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outside {
    /// Files and directories.
    Files,
    /// Sockets.
    Net,
    /// The wall clock.
    Clock,
    /// The process: environment, directory, arguments, other programs, its end.
    Process,
    /// The process's own streams.
    Print,
}

use Outside::{Clock, Files, Net, Print, Process};

/// How each shows in the code.
const MARKS: &[(&str, Outside)] = &[
    ("std::fs", Files),
    ("rustix::fs", Files),
    // Addresses are values; what opens a socket or asks a name server is not.
    ("TcpStream", Net),
    ("TcpListener", Net),
    ("UdpSocket", Net),
    ("UnixStream", Net),
    ("UnixListener", Net),
    ("ToSocketAddrs", Net),
    ("SystemTime::now", Clock),
    ("now_utc", Clock),
    ("std::process", Process),
    ("std::env", Process),
    ("println!", Print),
    ("eprintln!", Print),
    ("print!", Print),
    ("eprint!", Print),
    ("dbg!", Print),
    ("io::stdout", Print),
    ("io::stderr", Print),
];

/// From the bottom to the top: an arrow leads to a room that stands above it in this list, so none leads in a circle.
const ROOMS: &[Room] = &[
    ("suggest", &[], &[]),
    ("pool", &[], &[]),
    ("json", &[], &[]),
    ("timestamp", &["json"], &[]),
    ("path", &["json"], &[]),
    ("error", &["path"], &[]),
    ("digest", &["json"], &[]),
    ("id", &[], &[]),
    ("names", &[], &[]),
    ("entry", &["path"], &[]),
    ("host", &["error", "timestamp"], &[Clock, Files, Process, Print]),
    ("journal", &["digest", "error", "host", "names", "path", "timestamp"], &[]),
    ("cli", &["error", "path", "suggest"], &[]),
    ("secrets", &["error", "host", "path"], &[Files]),
    ("config", &["entry", "error", "host", "id", "path", "suggest", "timestamp"], &[Files]),
    ("http", &["error", "host"], &[Files]),
    (
        "storage",
        &["digest", "entry", "error", "host", "http", "names", "path", "pool", "secrets", "timestamp"],
        &[Clock, Files],
    ),
    ("bundle", &["digest", "entry", "error", "host", "id", "json", "path", "pool", "storage", "timestamp"], &[]),
    ("source", &["bundle", "entry", "error", "host", "path", "pool", "storage", "timestamp"], &[Files]),
    ("state", &["bundle", "digest", "config", "error", "id", "json", "path", "timestamp"], &[]),
    ("transform", &["bundle", "config", "digest", "error", "path", "state", "timestamp"], &[]),
    (
        "plan",
        &[
            "bundle",
            "config",
            "digest",
            "entry",
            "error",
            "journal",
            "names",
            "path",
            "state",
            "timestamp",
            "transform",
        ],
        &[],
    ),
    (
        "publish",
        &[
            "bundle",
            "digest",
            "error",
            "host",
            "journal",
            "names",
            "path",
            "plan",
            "pool",
            "source",
            "state",
            "storage",
            "timestamp",
            "transform",
        ],
        &[],
    ),
    (
        "maintain",
        &["config", "digest", "error", "journal", "names", "path", "plan", "publish", "state", "storage"],
        &[],
    ),
    (
        "report",
        &[
            "bundle",
            "cli",
            "config",
            "digest",
            "error",
            "host",
            "maintain",
            "path",
            "plan",
            "publish",
            "state",
            "timestamp",
        ],
        &[],
    ),
    (
        "commands",
        &[
            "bundle",
            "cli",
            "config",
            "entry",
            "error",
            "host",
            "maintain",
            "names",
            "path",
            "plan",
            "pool",
            "publish",
            "report",
            "secrets",
            "source",
            "state",
            "storage",
            "suggest",
            "timestamp",
            "transform",
        ],
        &[],
    ),
];

/// The most lines a file may have.
const MOST_LINES: usize = 400;

/// What breaks a rule in one file of `room`, each with its line.
fn faults(room: &str, text: &str) -> Vec<String> {
    let Some((_, known, outside)) = ROOMS.iter().find(|(name, ..)| *name == room) else {
        return vec![format!("no room is called {room}")];
    };
    let mut faults = Vec::new();
    for (line, code) in code(text) {
        for other in arrows(&code) {
            if other != room && !known.contains(&other.as_str()) {
                faults.push(format!("{line}: {room} must not know {other}"));
            }
        }
        for what in touches(&code) {
            if !outside.contains(&what) {
                faults.push(format!("{line}: {room} must not touch the world outside: {what:?}"));
            }
        }
        if code.contains("use super::*") {
            faults.push(format!("{line}: use super::* outside of tests"));
        }
    }
    let lines = text.lines().count();
    if lines > MOST_LINES {
        faults.push(format!("{lines}: more than {MOST_LINES} lines"));
    }
    faults
}

/// The code that is compiled into the library, statement by statement with the lines they begin on: no comments, no
/// texts, nothing below `#[cfg(test)]`. A `use` that spans lines is one statement.
fn code(text: &str) -> Vec<(usize, String)> {
    let mut code: Vec<(usize, String)> = Vec::new();
    let mut open = false;
    for (at, line) in text.lines().enumerate() {
        let line = bare(line);
        // Test modules stand last in a file: rustfmt keeps them closed by a brace in the first column, and clippy
        // (items_after_test_module) keeps everything else above them. `#[cfg(test)] mod tests;` ends a list of modules.
        if line.trim() == "#[cfg(test)]" && tests_follow(text, at) {
            break;
        }
        match code.last_mut() {
            Some((_, statement)) if open => *statement += &line,
            _ => code.push((at + 1, line.clone())),
        }
        open = code.last().is_some_and(|(_, s)| s.contains("use crate::") && !s.contains(';'));
    }
    code
}

/// Whether an inline module of tests begins below line `at`.
fn tests_follow(text: &str, at: usize) -> bool {
    text.lines().skip(at + 1).find(|line| !line.trim_start().starts_with('#')).is_some_and(|line| {
        let line = line.trim_end();
        line.contains("mod ") && line.ends_with('{')
    })
}

/// A line without its comment and its texts.
fn bare(line: &str) -> String {
    let mut bare = String::new();
    let mut text = false;
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\\' if text => {
                chars.next();
            }
            // A quote in a character literal opens no text.
            '"' if !bare.ends_with('\'') => text = !text,
            '/' if !text && chars.peek() == Some(&'/') => break,
            _ if text => {}
            _ => bare.push(c),
        }
    }
    bare
}

/// The rooms that a statement names behind `crate::`.
fn arrows(code: &str) -> BTreeSet<String> {
    let mut rooms = BTreeSet::new();
    for (at, _) in code.match_indices("crate::") {
        // `$crate::` and `other_crate::` alike are paths from a root, but only `crate::` itself is ours.
        if code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_') {
            continue;
        }
        let rest = &code[at + "crate::".len()..];
        match rest.strip_prefix('{') {
            Some(list) => rooms.extend(heads(list)),
            None => rooms.extend(name(rest)),
        }
    }
    rooms
}

/// The first names of a `{…}` list, nested lists skipped.
fn heads(list: &str) -> Vec<String> {
    let mut heads = Vec::new();
    let mut depth = 0_usize;
    let mut item = String::new();
    for c in list.chars() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => heads.extend(name(std::mem::take(&mut item).trim())),
            c if depth == 0 => item.push(c),
            _ => {}
        }
    }
    heads.extend(name(item.trim()));
    heads
}

fn name(text: &str) -> Option<String> {
    let name: String = text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
    (!name.is_empty()).then_some(name)
}

/// What of the world outside a statement touches.
fn touches(code: &str) -> Vec<Outside> {
    let mut found = Vec::new();
    let code = unfold(code);
    for (mark, what) in MARKS {
        let whole = code.match_indices(mark).any(|(at, _)| {
            let before = code[..at].chars().next_back();
            let after = code[at + mark.len()..].chars().next();
            let part = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
            !part(before) && (mark.ends_with('!') || !part(after))
        });
        if whole && !found.contains(what) {
            found.push(*what);
        }
    }
    found
}

/// `use std::{fs, io::{self, Read}}` with the names behind `std` written out.
fn unfold(code: &str) -> String {
    let mut unfolded = code.to_owned();
    for root in ["std", "rustix", "std::os::unix"] {
        if let Some((_, list)) = code.split_once(&format!("{root}::{{")) {
            for head in heads(list) {
                unfolded += &format!(" {root}::{head}");
            }
        }
    }
    unfolded
}

fn sources(dir: &Path, into: &mut Vec<PathBuf>) {
    let mut paths: Vec<PathBuf> = fs::read_dir(dir).expect("src").map(|entry| entry.expect("src").path()).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            sources(&path, into);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            into.push(path);
        }
    }
}

/// The room that a file below src/ is in; none for the crate's root.
fn room(path: &Path) -> Option<String> {
    let first = path.components().next()?.as_os_str().to_str()?;
    let name = first.strip_suffix(".rs").unwrap_or(first);
    (name != "lib").then(|| name.to_owned())
}

#[test]
fn every_file_keeps_to_its_room() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let (mut paths, mut found) = (Vec::new(), Vec::new());
    sources(&src, &mut paths);
    for path in paths {
        let below = path.strip_prefix(&src).expect("below src");
        // Modules of tests in files of their own see what they test.
        if below.file_stem().is_some_and(|stem| stem == "tests") {
            continue;
        }
        if let Some(room) = room(below) {
            let text = fs::read_to_string(&path).expect("a source file");
            found.extend(faults(&room, &text).iter().map(|fault| format!("src/{}:{fault}", below.display())));
        }
    }
    assert!(found.is_empty(), "{} faults\n{}", found.len(), found.join("\n"));
}

#[test]
fn no_arrow_of_the_table_leads_in_a_circle() {
    for (at, (room, known, _)) in ROOMS.iter().enumerate() {
        for other in *known {
            let place = ROOMS.iter().position(|(name, ..)| name == other);
            assert!(place.is_some_and(|place| place < at), "{room} -> {other}");
        }
    }
}

#[test]
fn forbidden_arrows_are_found_in_every_form() {
    for text in [
        "use crate::storage::Storage;",
        "pub use crate::storage::{Kind, Storage};",
        "pub(crate) use crate::{\n    error::Error,\n    storage::{Kind, Storage},\n};",
        "use crate::{error::{Code, Error}, storage};",
        "fn f(s: &crate::storage::Local) {}",
        "let x = crate::storage::open(\"a // b\"); // not a comment before",
        "let q = '\"'; let x = crate::storage::open();",
        "#[cfg(test)]\nuse crate::error::Error;\nuse crate::storage::X;",
    ] {
        let faults = faults("plan", text);
        assert!(faults.len() == 1 && faults[0].contains("plan must not know storage"), "{text}: {faults:?}");
    }
    for text in [
        "use crate::state::State;",
        "use crate::plan::decide;",
        "// use crate::storage::Storage;",
        "/// [`crate::storage::Storage`]",
        "let text = \"crate::storage::\";",
        "use othercrate::storage::Storage;",
        "#[cfg(test)]\nmod tests {\n    use super::*;\n    use crate::storage::Storage;\n}",
    ] {
        assert_eq!(faults("plan", text), [""; 0], "{text}");
    }
    assert_eq!(faults("attic", ""), ["no room is called attic"]);
}

#[test]
fn the_world_outside_is_found_in_every_form() {
    for (text, what) in [
        ("use std::fs;", "Files"),
        ("use std::{fs, io};", "Files"),
        ("let x = std::fs::read(p);", "Files"),
        ("use std::net::TcpStream;", "Net"),
        ("let now = SystemTime::now();", "Clock"),
        ("std::process::exit(1)", "Process"),
        ("std::env::var(\"A\")", "Process"),
        ("println!(\"a\")", "Print"),
        ("eprint!(\"a\")", "Print"),
        ("io::stdout().write_all(b)", "Print"),
    ] {
        let faults = faults("plan", text);
        assert!(faults.len() == 1 && faults[0].ends_with(&format!("outside: {what}")), "{text}: {faults:?}");
    }
    for text in [
        "use std::fmt;",
        "use std::net::SocketAddr;",
        "// std::fs",
        "let fs = my_std::fs;",
        "blueprint!(x)",
        "use std::io::{self, Read};",
    ] {
        assert_eq!(faults("plan", text), [""; 0], "{text}");
    }
    assert_eq!(faults("storage", "use std::fs;"), [""; 0]);
    assert_eq!(faults("storage", "use std::net::UdpSocket;").len(), 1);
}

#[test]
fn long_files_and_wildcards_are_found() {
    assert_eq!(faults("plan", &"\n".repeat(400)), [""; 0]);
    assert_eq!(faults("plan", &"\n".repeat(401)), ["401: more than 400 lines"]);
    assert_eq!(faults("plan", "mod x {\n    use super::*;\n}"), ["2: use super::* outside of tests"]);
}
