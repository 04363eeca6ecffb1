//! The bundle format as any host can check it, and its limits, which are too large for a script.
// clippy.toml lets tests unwrap, but not the helpers that they share.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::Path;
use std::process::Command;

use distributor::bundle::{Digest, FileEntry, MAX_BYTES, MAX_FILES, Maker, Manifest, content_digest, unlisted, verify};
use distributor::error::Code;
use distributor::host::Cancel;
use distributor::path::RelPath;
use distributor::storage::{Local, Modes};
use distributor::timestamp::Timestamp;

/// Names that keep the path rules and that a shell, a sort or a checksum program may trip over. Only `-` at the root is
/// not among them: to sha256sum that is standard input.
const ODD_NAMES: &[&str] = &[
    "-rf",
    "--help",
    "a b",
    " lead",
    "trail ",
    "  ",
    "a",
    "a-b",
    "a.b",
    "B",
    "_",
    "ä",
    "a\u{308}",
    "日本語",
    "\u{1f600}",
    "\u{202e}txt",
    "*",
    "?",
    "[x]",
    "$HOME",
    "`id`",
    "'quoted'",
    "\"quoted\"",
    "#",
    "~",
    "%41",
    "...",
    ".hidden",
    "d/-x",
    "d/-",
    "d/manifest.json",
    "d/ e /f",
    "-d/-e/-f",
    "D/x",
];

/// The line that the guide gives for computing the content digest with coreutils.
fn coreutils_line() -> String {
    let guide = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/getting-started.md")).unwrap();
    let line = guide.lines().find(|line| line.starts_with("find . ")).expect("the guide has the line");
    line.to_owned()
}

/// What the line prints inside `dir`.
fn by_coreutils(dir: &Path) -> String {
    let output = Command::new("sh").args(["-c", &coreutils_line()]).current_dir(dir).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.is_empty(), "{}: {said}", coreutils_line());
    let printed = String::from_utf8(output.stdout).unwrap();
    printed.split_whitespace().next().unwrap().to_owned()
}

fn make(dir: &Path) -> Manifest {
    let storage = Local::new(dir, Modes::default());
    let created = Timestamp::parse("2026-06-04T11:55:00Z").unwrap();
    Maker { storage: &storage, id: "test", created, force: false, cancel: &Cancel::default() }.make().unwrap()
}

#[test]
fn the_content_digest_is_what_coreutils_print() {
    let scene = tempfile::tempdir().unwrap();
    let dir = scene.path().join("a dir – with spaces, 'quotes' and ünïcode");
    for (at, name) in ODD_NAMES.iter().enumerate() {
        let path = dir.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, format!("content {at}\n")).unwrap();
    }
    let manifest = make(&dir);
    assert_eq!(manifest.files.len(), ODD_NAMES.len());
    assert_eq!(by_coreutils(&dir), manifest.digest.hex());
    // It reads the files themselves: one byte more, and it says another digest.
    fs::write(dir.join("a b"), "other\n").unwrap();
    assert_ne!(by_coreutils(&dir), manifest.digest.hex());
}

#[test]
fn the_manual_has_the_same_line_as_the_guide() {
    let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("man/distributor-bundle.5")).unwrap();
    let (_, rest) = page.split_once("\nfind . ").expect("the page has the line");
    let (line, _) = rest.split_once("\n.Ed").unwrap();
    let line: Vec<&str> = line.split_whitespace().collect();
    let line = format!("find . {}", line.join(" ").replace("\\e", "\\").replace("\\-", "-"));
    assert_eq!(line, coreutils_line());
}

#[test]
fn a_bundle_made_by_the_library_is_valid_and_whole() {
    let scene = tempfile::tempdir().unwrap();
    for name in ODD_NAMES {
        let path = scene.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, name).unwrap();
    }
    let made = make(scene.path());
    let storage = Local::new(scene.path(), Modes::default());
    let read = Manifest::parse(&fs::read(scene.path().join("manifest.json")).unwrap()).unwrap();
    assert!(read.matches(&made) && made.matches(&read));
    assert_eq!(verify(&storage, &read, &Cancel::default()).unwrap(), []);
    assert_eq!(unlisted(&storage, &read).unwrap(), []);
    fs::remove_file(scene.path().join("-rf")).unwrap();
    fs::write(scene.path().join("--help"), "--heLp").unwrap();
    let codes: Vec<Code> =
        verify(&storage, &read, &Cancel::default()).unwrap().iter().map(|found| found.code).collect();
    assert_eq!(codes, [Code::DigestMismatch, Code::MissingFile], "in the order of the manifest");
}

/// A manifest of `count` empty files.
fn of_many(count: usize) -> Manifest {
    let sha256 = Digest::of(b"");
    let entry = |n: usize| FileEntry { path: RelPath::parse(&format!("{n:06}")).unwrap(), sha256, size: 0 };
    let files: Vec<FileEntry> = (0..count).map(entry).collect();
    let created = Timestamp::parse("2026-06-04T11:55:00Z").unwrap();
    Manifest { schema_version: 1, id: "many".to_owned(), digest: content_digest(&files), created, files }
}

/// Without white space, so that as many files as may be stay below the greatest size.
fn compact(manifest: &Manifest) -> Vec<u8> {
    serde_json::to_vec(manifest).unwrap()
}

#[test]
fn a_hundred_thousand_files_are_read_and_one_more_is_not() {
    assert_eq!(MAX_FILES, 100_000);
    assert_eq!(Manifest::parse(&compact(&of_many(MAX_FILES))).unwrap().files.len(), MAX_FILES);
    let error = Manifest::parse(&compact(&of_many(MAX_FILES + 1))).unwrap_err();
    assert_eq!(error.code, Code::InvalidManifest);
    assert!(error.message.contains("files: 100001 entries; a bundle has 1 to 100000"), "{}", error.message);
}

#[test]
fn sixteen_mebibytes_are_read_and_one_byte_more_is_not() {
    assert_eq!(MAX_BYTES, 16 << 20);
    let mut text = compact(&of_many(1));
    text.resize(usize::try_from(MAX_BYTES).unwrap(), b' ');
    assert!(Manifest::parse(&text).is_ok());
    text.push(b' ');
    let error = Manifest::parse(&text).unwrap_err();
    assert_eq!(error.code, Code::InvalidManifest);
    assert!(error.message.contains("larger than 16777216 bytes"), "{}", error.message);
}

#[test]
fn manifests_match_as_values() {
    let one = of_many(3);
    let other = |change: &dyn Fn(&mut Manifest)| {
        let mut other = of_many(3);
        change(&mut other);
        (one.matches(&other), other.matches(&one))
    };
    assert_eq!(other(&|_| ()), (true, true));
    assert_eq!(other(&|m| m.files.reverse()), (true, true));
    let at = |text| Timestamp::parse(text).unwrap();
    assert_eq!(other(&|m| m.created = at("2026-06-04T13:55:00.0+02:00")), (true, true));
    assert_eq!(other(&|m| m.created = at("2026-06-04T11:55:00.000000001Z")), (false, false));
    assert_eq!(other(&|m| m.id = "more".to_owned()), (false, false));
    assert_eq!(other(&|m| m.digest = Digest::of(b"x")), (false, false));
    assert_eq!(other(&|m| m.files[1].size = 1), (false, false));
    assert_eq!(other(&|m| m.files[1].sha256 = Digest::of(b"x")), (false, false));
    assert_eq!(other(&|m| m.files.truncate(2)), (false, false));
    // A file listed twice in place of another: as many, and none that the other has not.
    assert_eq!(other(&|m| m.files[1] = m.files[0].clone()), (false, false));
}
