//! The directives of a script: one table row each.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use distributor::timestamp::Timestamp;

use super::play::Play;
use super::scene::{Snapshot, manifest};
use super::{expect, words};

type Follow = fn(&mut Play, &Given) -> Result<(), String>;

/// What stands behind the name of a directive.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Takes {
    /// Words.
    Words,
    /// One word, then a text as it stands.
    Text,
    /// The same, and `|` lines below.
    Lines,
}

/// Name, what it takes, and what it does.
const ALL: &[(&str, Takes, Follow)] = &[
    ("! contains", Takes::Text, |play, given| contains(play, given, false)),
    ("! exists", Takes::Words, |play, given| exists(play, given, false)),
    ("append", Takes::Lines, |play, given| write(play, given, true)),
    ("bundle", Takes::Words, bundle),
    ("cd", Takes::Words, cd),
    ("chmod", Takes::Words, chmod),
    ("clock", Takes::Words, clock),
    ("cmp", Takes::Words, cmp),
    ("contains", Takes::Text, |play, given| contains(play, given, true)),
    ("env", Takes::Words, env),
    ("exists", Takes::Words, |play, given| exists(play, given, true)),
    ("fifo", Takes::Words, |play, given| fifo(&given.paths::<1>(play)?[0])),
    ("json", Takes::Text, json),
    ("json-in", Takes::Text, json_in),
    ("link", Takes::Words, |play, given| link(play, &given.words)),
    ("mkdir", Takes::Words, |play, given| told(fs::create_dir_all(&given.paths::<1>(play)?[0]))),
    ("mode", Takes::Words, mode),
    ("move", Takes::Words, rename),
    ("no-preview", Takes::Text, no_preview),
    ("remove", Takes::Words, remove),
    ("signal", Takes::Words, signal),
    ("snapshot", Takes::Words, snapshot),
    ("touch", Takes::Words, touch),
    ("tree", Takes::Lines, tree),
    ("unchanged", Takes::Words, unchanged),
    ("unset", Takes::Words, unset),
    ("write", Takes::Lines, |play, given| write(play, given, false)),
];

/// The directive that a line holds, and the rest of the line.
pub(crate) fn split(line: &str) -> Option<(&'static str, &str)> {
    ALL.iter().find_map(|(verb, ..)| {
        let rest = line.strip_prefix(verb)?;
        (rest.is_empty() || rest.starts_with(' ')).then(|| (*verb, rest.trim_start()))
    })
}

/// Whether `|` lines may stand below a directive.
pub(crate) fn takes_block(verb: &str) -> bool {
    ALL.iter().any(|(name, takes, _)| *name == verb && *takes == Takes::Lines)
}

/// Follows a directive.
pub(crate) fn follow(play: &mut Play, verb: &str, rest: &str, block: &[String]) -> Result<(), String> {
    let (_, takes, follow) =
        ALL.iter().find(|(name, ..)| *name == verb).ok_or_else(|| format!("unknown directive `{verb}`"))?;
    let (words, text) = match takes {
        Takes::Words => (rest, ""),
        Takes::Text | Takes::Lines => rest.split_once(' ').unwrap_or((rest, "")),
    };
    let words = words::split(words)?.iter().map(|word| play.scene.expand(word)).collect();
    follow(play, &Given { words, text, block }).map_err(|problem| format!("{verb} {rest}: {problem}"))
}

/// What stands behind and below a directive.
struct Given<'a> {
    words: Vec<Vec<u8>>,
    text: &'a str,
    block: &'a [String],
}

impl Given<'_> {
    fn all<const N: usize>(&self) -> Result<[&[u8]; N], String> {
        let words: Vec<&[u8]> = self.words.iter().map(Vec::as_slice).collect();
        words.try_into().map_err(|_| format!("takes {N} words, and {} are given", self.words.len()))
    }

    fn texts<const N: usize>(&self) -> Result<[&str; N], String> {
        let words = self.all::<N>()?;
        let mut texts = [""; N];
        for (text, word) in texts.iter_mut().zip(words) {
            *text = std::str::from_utf8(word).map_err(|_| "a word is not UTF-8".to_owned())?;
        }
        Ok(texts)
    }

    fn paths<const N: usize>(&self, play: &Play) -> Result<[PathBuf; N], String> {
        let mut paths = [const { PathBuf::new() }; N];
        for (path, word) in paths.iter_mut().zip(self.all::<N>()?) {
            *path = play.scene.path(word)?;
        }
        Ok(paths)
    }

    /// The text, its escapes resolved.
    fn bytes(&self, play: &Play) -> Result<Vec<u8>, String> {
        Ok(play.scene.expand(&words::unescape(self.text)?))
    }
}

fn told<T>(result: io::Result<T>) -> Result<T, String> {
    result.map_err(|error| error.to_string())
}

/// Makes what a section `-- head --` describes.
pub(crate) fn create(play: &Play, head: &str, body: &str) -> Result<(), String> {
    let words = words::split(head)?;
    let texts: Vec<_> = words.iter().map(|word| String::from_utf8_lossy(word)).collect();
    let texts: Vec<&str> = texts.iter().map(AsRef::as_ref).collect();
    let (path, size, mode) = match texts.as_slice() {
        ["link", _, "->", _] => {
            empty(body)?;
            return link(play, &words[1..]);
        }
        ["fifo", _] => {
            empty(body)?;
            return fifo(&play.scene.path(&words[1])?);
        }
        ["dir", _] | ["dir", _, "mode", _] => {
            empty(body)?;
            let dir = play.scene.path(&words[1])?;
            told(fs::create_dir_all(&dir))?;
            return texts.get(3).map_or(Ok(()), |mode| set_mode(&dir, mode));
        }
        [_] => (&words[0], None, None),
        [_, "size", size] => (&words[0], Some(*size), None),
        [_, "mode", mode] => (&words[0], None, Some(*mode)),
        [_, "size", size, "mode", mode] => (&words[0], Some(*size), Some(*mode)),
        _ => return Err(format!("not a section: {head}")),
    };
    let path = play.scene.path(path)?;
    let bytes = match size {
        None => play.scene.expand(body.as_bytes()),
        Some(size) => {
            empty(body)?;
            filler(size.parse().map_err(|_| format!("{size} is not a size"))?)
        }
    };
    put(&path, &bytes)?;
    mode.map_or(Ok(()), |mode| set_mode(&path, mode))
}

fn empty(body: &str) -> Result<(), String> {
    if body.trim().is_empty() { Ok(()) } else { Err("this section has no content".to_owned()) }
}

/// Bytes that are the same everywhere and repeat nowhere soon.
fn filler(size: usize) -> Vec<u8> {
    let mut state = 1_u32;
    let next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state.to_be_bytes()[0]
    };
    std::iter::repeat_with(next).take(size).collect()
}

fn put(path: &Path, bytes: &[u8]) -> Result<(), String> {
    if let Some(parent) = path.parent() {
        told(fs::create_dir_all(parent))?;
    }
    told(fs::write(path, bytes))
}

fn set_mode(path: &Path, mode: &str) -> Result<(), String> {
    let mode = u32::from_str_radix(mode, 8).map_err(|_| format!("{mode} is not a mode"))?;
    told(fs::set_permissions(path, fs::Permissions::from_mode(mode)))
}

fn fifo(path: &Path) -> Result<(), String> {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    mknodat(CWD, path, FileType::Fifo, Mode::from_raw_mode(0o644), 0).map_err(|error| error.to_string())
}

fn link(play: &Play, words: &[Vec<u8>]) -> Result<(), String> {
    match words {
        [name, arrow, target] if arrow == b"->" => {
            let name = play.scene.path(name)?;
            told(fs::create_dir_all(name.parent().unwrap_or(&name)))?;
            told(symlink(OsString::from_vec(play.scene.expand(target)), name))
        }
        _ => Err("takes NAME -> TARGET".to_owned()),
    }
}

fn write(play: &mut Play, given: &Given, append: bool) -> Result<(), String> {
    let ([path], mut text) = (given.paths(play)?, given.bytes(play)?);
    if !text.is_empty() || given.block.is_empty() {
        text.push(b'\n');
    }
    for line in given.block {
        text.extend(play.scene.expand(line.as_bytes()));
        text.push(b'\n');
    }
    let before = if append { told(fs::read(&path))? } else { Vec::new() };
    put(&path, &[before, text].concat())
}

fn bundle(play: &mut Play, given: &Given) -> Result<(), String> {
    let [dir, id, created] = given.texts()?;
    let dir = play.scene.path(dir.as_bytes())?;
    let text = told(manifest(&dir, id, created))?;
    put(&dir.join("manifest.json"), text.as_bytes())
}

fn cd(play: &mut Play, given: &Given) -> Result<(), String> {
    let [dir] = given.paths(play)?;
    if !dir.is_dir() {
        return Err("not a directory".to_owned());
    }
    play.cwd = told(dir.canonicalize())?;
    Ok(())
}

fn chmod(play: &mut Play, given: &Given) -> Result<(), String> {
    let [mode, path] = given.texts()?;
    set_mode(&play.scene.path(path.as_bytes())?, mode)
}

fn mode(play: &mut Play, given: &Given) -> Result<(), String> {
    let [path, expected] = given.texts()?;
    let mode = told(fs::symlink_metadata(play.scene.path(path.as_bytes())?))?.mode() & 0o7777;
    let got = format!("{mode:04o}");
    if got == expected { Ok(()) } else { Err(format!("\n  expected: {expected}\n  got: {got}")) }
}

fn clock(play: &mut Play, given: &Given) -> Result<(), String> {
    let [time] = given.texts()?;
    play.clock = Timestamp::parse(time)?;
    Ok(())
}

fn env(play: &mut Play, given: &Given) -> Result<(), String> {
    let [pair] = given.texts()?;
    let (name, value) = pair.split_once('=').ok_or("takes NAME=VALUE")?;
    play.env.insert(name.into(), value.into());
    Ok(())
}

fn unset(play: &mut Play, given: &Given) -> Result<(), String> {
    let [name] = given.texts()?;
    play.env.remove(&OsString::from(name)).map(|_| ()).ok_or("it is not set".to_owned())
}

fn signal(play: &mut Play, given: &Given) -> Result<(), String> {
    let [number] = given.texts()?;
    play.signal = Some(number.parse().map_err(|_| "not the number of a signal".to_owned())?);
    Ok(())
}

fn touch(play: &mut Play, given: &Given) -> Result<(), String> {
    let [path, time] = given.texts()?;
    let time = Timestamp::parse(time)?.instant().into();
    told(fs::File::open(play.scene.path(path.as_bytes())?).and_then(|file| file.set_modified(time)))
}

fn rename(play: &mut Play, given: &Given) -> Result<(), String> {
    let [from, to] = given.paths(play)?;
    told(fs::rename(from, to))
}

fn remove(play: &mut Play, given: &Given) -> Result<(), String> {
    let [path] = given.paths(play)?;
    let is_dir = told(fs::symlink_metadata(&path))?.is_dir();
    told(if is_dir { fs::remove_dir_all(&path) } else { fs::remove_file(&path) })
}

fn exists(play: &mut Play, given: &Given, wanted: bool) -> Result<(), String> {
    let [path] = given.paths(play)?;
    match (fs::symlink_metadata(path).is_ok(), wanted) {
        (true, false) => Err("it is there".to_owned()),
        (false, true) => Err("it is not there".to_owned()),
        _ => Ok(()),
    }
}

fn contains(play: &mut Play, given: &Given, wanted: bool) -> Result<(), String> {
    let ([path], text) = (given.paths(play)?, given.bytes(play)?);
    if text.is_empty() {
        return Err("takes a path and a text".to_owned());
    }
    let bytes = told(fs::read(path))?;
    if bytes.windows(text.len()).any(|window| window == text) == wanted {
        return Ok(());
    }
    let lines = expect::split(&String::from_utf8_lossy(&bytes));
    Err(format!("the file has {}it:{}", if wanted { "not " } else { "" }, expect::block(&lines)))
}

fn cmp(play: &mut Play, given: &Given) -> Result<(), String> {
    let [a, b] = given.paths(play)?;
    let differences = told(Snapshot::of(&a))?.content_differences(&told(Snapshot::of(&b))?);
    match differences.as_slice() {
        [] => Ok(()),
        [only] if only.is_empty() => Err("they differ".to_owned()),
        _ => Err(format!("they differ:{}", expect::block(&differences))),
    }
}

fn tree(play: &mut Play, given: &Given) -> Result<(), String> {
    let [dir] = given.paths(play)?;
    let found: String = told(Snapshot::of(&dir))?.tree().into_iter().map(|line| line + "\n").collect();
    expect::lines("the tree", given.block, &play.scene.hide(found.as_bytes()))
}

fn no_preview(play: &mut Play, given: &Given) -> Result<(), String> {
    if given.words.is_empty() {
        return Err("takes a reason".to_owned());
    }
    play.no_preview = true;
    Ok(())
}

fn snapshot(play: &mut Play, given: &Given) -> Result<(), String> {
    let dir = if given.words.is_empty() { play.scene.root().to_owned() } else { given.paths::<1>(play)?[0].clone() };
    let snapshot = told(Snapshot::of(&dir))?;
    play.snapshot = Some((dir, snapshot));
    Ok(())
}

fn unchanged(play: &mut Play, given: &Given) -> Result<(), String> {
    given.all::<0>()?;
    let (dir, before) = play.snapshot.as_ref().ok_or("no snapshot was taken")?;
    let differences = before.differences(&told(Snapshot::of(dir))?);
    if differences.is_empty() { Ok(()) } else { Err(format!("changed:{}", expect::block(&differences))) }
}

fn json(play: &mut Play, given: &Given) -> Result<(), String> {
    let stdout = play.stdout.as_deref().ok_or("no command has run")?;
    if !stdout.ends_with('\n') || stdout.ends_with("\n\n") {
        return Err("standard output is not one document and a line feed".to_owned());
    }
    let [pointer] = given.texts()?;
    pointed(stdout.as_bytes(), &format!("{pointer} {}", given.text))
}

fn json_in(play: &mut Play, given: &Given) -> Result<(), String> {
    let [path] = given.paths(play)?;
    pointed(&told(fs::read(path))?, given.text)
}

fn pointed(document: &[u8], rest: &str) -> Result<(), String> {
    let (pointer, expected) = rest.split_once(" = ").ok_or("takes POINTER = VALUE")?;
    let document = serde_json::from_slice(document).map_err(|error| {
        let shown = expect::split(&String::from_utf8_lossy(document));
        format!("not JSON: {error}:{}", expect::block(&shown))
    })?;
    expect::json(&document, pointer.trim(), expected.trim())
}
