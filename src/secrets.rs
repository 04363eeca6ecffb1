//! Values by the name of their variable: from the environment, else from a directory with one file a variable. They
//! never reach a message, `Debug` output or the command line.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::error::{Code, Detail, Error, Result, Warning};
use crate::host::{self, Host, is_variable};
use crate::path::escape;

/// The largest value that is read.
const MAX_SIZE: u64 = 1 << 20;
const OTHERS_MAY_WRITE: u32 = 0o002;
const STICKY: u32 = 0o1000;

/// A secret value. It has no `Display`, and `Debug` does not show it.
#[derive(Clone)]
pub struct Secret(String);

impl Secret {
    /// The value itself: only for where it is used.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl From<&str> for Secret {
    fn from(text: &str) -> Secret {
        Secret(text.to_owned())
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// Where values are looked up.
pub struct Secrets {
    env: BTreeMap<OsString, OsString>,
    directory: Option<PathBuf>,
    files: BTreeMap<String, Secret>,
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&String> = self.files.keys().collect();
        f.debug_struct("Secrets").field("directory", &self.directory).field("files", &names).finish_non_exhaustive()
    }
}

impl Secrets {
    /// Reads the secrets directory: `directory`, else `$CREDENTIALS_DIRECTORY`; without either the environment alone
    /// serves. All that is wrong with it stands in one error.
    pub fn load(host: &Host, directory: Option<&Path>) -> Result<Secrets> {
        let directory = directory.or_else(|| host.var("CREDENTIALS_DIRECTORY").map(Path::new));
        let directory = directory.map(|directory| host.resolve(directory));
        let files = directory.as_deref().map_or(Ok(BTreeMap::new()), read_directory)?;
        Ok(Secrets { env: host.env.clone(), directory, files })
    }

    /// The value of a variable: the environment's, else the directory's. An empty one counts as missing.
    pub fn get(&self, name: &str) -> Option<Secret> {
        match self.env_value(name) {
            Some(value) => value.to_str().map(|value| Secret(value.to_owned())),
            None => self.files.get(name).cloned(),
        }
    }

    fn env_value(&self, name: &str) -> Option<&OsStr> {
        self.env.get(OsStr::new(name)).map(OsString::as_os_str).filter(|value| !value.is_empty())
    }

    /// A warning for each of `names` whose file says otherwise than the environment, which wins.
    pub fn warnings(&self, names: &[String]) -> Vec<Warning> {
        let directory = self.directory.as_deref().unwrap_or(Path::new("")).display();
        let differ = |name: &&String| matches!((self.env_value(name), self.files.get(*name)), (Some(env), Some(file)) if env != file.expose());
        let warning = |name: &String| {
            let message = format!("{name}: the environment's value is used, the one in {directory} differs");
            Warning::new(Code::SecretIgnored, message)
        };
        names.iter().filter(differ).map(warning).collect()
    }

    /// An error that lists all of `names` that have no value.
    pub fn require(&self, names: &[String]) -> Result<()> {
        let missing: Vec<&String> = names.iter().filter(|name| self.get(name).is_none()).collect();
        if missing.is_empty() {
            return Ok(());
        }
        let list = missing.iter().map(|name| name.as_str()).collect::<Vec<_>>().join(", ");
        let (place, hint) = match &self.directory {
            Some(directory) => (
                format!("neither in the environment nor in {}", directory.display()),
                "set each in the environment, or put a file of its name there",
            ),
            None => (
                "not in the environment, and no secrets directory is configured".to_owned(),
                "set each in the environment, or configure secrets.directory",
            ),
        };
        let detail = missing
            .iter()
            .map(|name| Detail::new(Code::MissingSecret, format!("{name} {}", self.why(name)), Some((*name).clone())));
        let noun = if missing.len() == 1 { "variable" } else { "variables" };
        let message = format!("missing {noun} {list}: {place}");
        Err(Error::new(Code::MissingSecret, message).hint(hint).detail(detail.collect()))
    }

    fn why(&self, name: &str) -> &'static str {
        match self.env.get(OsStr::new(name)) {
            Some(value) if value.is_empty() => "is empty",
            Some(_) => "is not UTF-8",
            None => "has no value",
        }
    }
}

fn read_directory(directory: &Path) -> Result<BTreeMap<String, Secret>> {
    let place = directory.display();
    let failed = |error: io::Error| {
        let hint = (error.kind() == io::ErrorKind::NotFound).then(|| "create it, or name another one".to_owned());
        let error = Error::io(format!("secrets directory {place}"), &error);
        Error { code: Code::InvalidSecretsDirectory, hint: error.hint.or(hint), ..error }
    };
    let mode = std::fs::metadata(directory).map_err(failed)?.mode();
    let mut names = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(failed)? {
        names.push(entry.map_err(failed)?.file_name());
    }
    names.sort_unstable();
    let mut wrong = Vec::new();
    if mode & OTHERS_MAY_WRITE != 0 && mode & STICKY == 0 {
        wrong.push((place.to_string(), "others may write to the directory (chmod o-w)".to_owned()));
    }
    let mut files = BTreeMap::new();
    // Names with a dot are how Kubernetes keeps its versions; they are not variables.
    for name in names.iter().filter(|name| !name.as_bytes().starts_with(b".")) {
        let shown = escape(name.as_bytes());
        match read_file(&directory.join(name)) {
            Ok(None) => {}
            Ok(Some(_)) if !name.to_str().is_some_and(is_variable) => {
                wrong.push((shown, "the name is not that of a variable ([A-Za-z_][A-Za-z0-9_]*)".to_owned()));
            }
            Ok(Some(value)) if value.is_empty() => {}
            Ok(Some(value)) => drop(files.insert(shown, Secret(value))),
            Err(why) => wrong.push((shown, why)),
        }
    }
    if wrong.is_empty() { Ok(files) } else { Err(invalid(directory, wrong)) }
}

/// The value in a file, or one that a link leads to; `None` for a directory.
fn read_file(path: &Path) -> std::result::Result<Option<String>, String> {
    let said = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => "the link leads nowhere".to_owned(),
        // The path is said already, and the words of the system follow it.
        _ => Error::io("", &error).message.trim_start_matches(": ").to_owned(),
    };
    if std::fs::metadata(path).map_err(said)?.is_dir() {
        return Ok(None);
    }
    let file = host::open_file(path).map_err(said)?;
    if file.metadata().map_err(said)?.mode() & OTHERS_MAY_WRITE != 0 {
        return Err("others may write to it (chmod o-w)".to_owned());
    }
    let mut bytes = Vec::new();
    file.take(MAX_SIZE + 1).read_to_end(&mut bytes).map_err(said)?;
    if bytes.len() as u64 > MAX_SIZE {
        return Err("it is larger than 1 MiB".to_owned());
    }
    let mut value = String::from_utf8(bytes).map_err(|_| "its value is not UTF-8".to_owned())?;
    if value.ends_with('\n') {
        value.pop();
    }
    Ok(Some(value))
}

fn invalid(directory: &Path, wrong: Vec<(String, String)>) -> Error {
    let place = directory.display();
    let message = match wrong.as_slice() {
        [(name, why)] => format!("secrets directory {place}: {name}: {why}"),
        all => {
            let names: Vec<&str> = all.iter().map(|(name, _)| name.as_str()).collect();
            format!("secrets directory {place}: {} problems: {}", all.len(), names.join(", "))
        }
    };
    let detail = wrong
        .into_iter()
        .map(|(name, why)| Detail::new(Code::InvalidSecretsDirectory, format!("{name}: {why}"), Some(name)));
    Error::new(Code::InvalidSecretsDirectory, message)
        .hint("it holds one file a variable, named like the variable, that only its owner may write")
        .detail(detail.collect())
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    const VALUE: &str = "hunter2";

    fn host(env: &[(&str, &str)]) -> Host {
        Host::fixed("/", env)
    }

    fn directory(files: &[(&str, &str)]) -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        for (name, value) in files {
            std::fs::write(directory.path().join(name), value).unwrap();
            mode(&directory, name, 0o600);
        }
        directory
    }

    fn mode(directory: &tempfile::TempDir, name: &str, mode: u32) {
        std::fs::set_permissions(directory.path().join(name), PermissionsExt::from_mode(mode)).unwrap();
    }

    fn load(env: &[(&str, &str)], directory: &tempfile::TempDir) -> Secrets {
        Secrets::load(&host(env), Some(directory.path())).unwrap()
    }

    fn refused(directory: &tempfile::TempDir) -> Error {
        let error = Secrets::load(&host(&[]), Some(directory.path())).unwrap_err();
        assert_eq!(error.code, Code::InvalidSecretsDirectory);
        let all = format!("{error} {error:?}");
        assert!(!all.contains(VALUE), "{all}");
        error
    }

    fn value(secrets: &Secrets, name: &str) -> Option<String> {
        secrets.get(name).map(|secret| secret.expose().to_owned())
    }

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn the_environment_wins_and_one_newline_goes() {
        let directory = directory(&[("A", "file\n"), ("B", "two\n\n"), ("C", "plain"), ("D", "\n"), ("E", "file")]);
        let secrets = load(&[("A", "env"), ("E", "")], &directory);
        assert_eq!(value(&secrets, "A").as_deref(), Some("env"));
        assert_eq!(value(&secrets, "B").as_deref(), Some("two\n"));
        assert_eq!(value(&secrets, "C").as_deref(), Some("plain"));
        assert_eq!(value(&secrets, "D"), None, "an empty value counts as missing");
        assert_eq!(value(&secrets, "E").as_deref(), Some("file"), "in the environment too");
        assert_eq!(value(&secrets, "F"), None);
    }

    #[test]
    fn systemd_s_directory_serves_where_none_is_configured() {
        let directory = directory(&[("A", "x")]);
        let path = directory.path().to_str().unwrap();
        let secrets = Secrets::load(&host(&[("CREDENTIALS_DIRECTORY", path)]), None).unwrap();
        assert_eq!(value(&secrets, "A").as_deref(), Some("x"));
        let other = tempfile::tempdir().unwrap();
        let secrets = Secrets::load(&host(&[("CREDENTIALS_DIRECTORY", path)]), Some(other.path())).unwrap();
        assert_eq!(value(&secrets, "A"), None, "the configured one goes before it");
        assert!(Secrets::load(&host(&[]), None).unwrap().files.is_empty());
    }

    #[test]
    fn links_are_followed_as_kubernetes_lays_them() {
        let directory = directory(&[]);
        let versions = directory.path().join("..2026_06_04");
        std::fs::create_dir(&versions).unwrap();
        std::fs::write(versions.join("TOKEN"), "x").unwrap();
        symlink("..2026_06_04", directory.path().join("..data")).unwrap();
        symlink("..data/TOKEN", directory.path().join("TOKEN")).unwrap();
        std::fs::create_dir(directory.path().join("not-a-name")).unwrap();
        std::fs::write(directory.path().join(".hid-den"), "x").unwrap();
        assert_eq!(value(&load(&[], &directory), "TOKEN").as_deref(), Some("x"));
    }

    #[test]
    fn a_value_that_is_passed_over_is_warned_of_for_what_is_used_alone() {
        let directory = directory(&[("A", VALUE), ("B", VALUE), ("C", "same"), ("D", VALUE)]);
        let secrets = load(&[("A", "hunter2x"), ("B", "y"), ("C", "same"), ("D", "")], &directory);
        let warnings = secrets.warnings(&names(&["A", "C", "D", "Z"]));
        assert_eq!(warnings.len(), 1);
        assert_eq!(warnings[0].code, Code::SecretIgnored);
        assert!(warnings[0].message.starts_with("A: "));
        assert!(!warnings[0].message.contains(VALUE));
    }

    #[test]
    fn every_missing_variable_is_named_with_where_it_was_looked_for() {
        let directory = directory(&[("A", VALUE), ("B", "")]);
        let secrets = load(&[], &directory);
        assert!(secrets.require(&names(&["A"])).is_ok());
        let error = secrets.require(&names(&["A", "B", "C"])).unwrap_err();
        let place = directory.path().display();
        assert_eq!(error.code, Code::MissingSecret);
        assert_eq!(error.message, format!("missing variables B, C: neither in the environment nor in {place}"));
        assert_eq!(error.detail.len(), 2);
        let mut odd = host(&[]);
        odd.env.insert("A".into(), OsString::from_vec(b"hunter2\xff".to_vec()));
        let error = Secrets::load(&odd, Some(directory.path())).unwrap().require(&names(&["A"])).unwrap_err();
        assert_eq!(error.detail[0].message, "A is not UTF-8", "the environment wins all the same");
        let error = Secrets::load(&host(&[("A", "")]), None).unwrap().require(&names(&["A"])).unwrap_err();
        assert!(error.message.starts_with("missing variable A: not in the environment"), "{error}");
        assert_eq!(error.detail[0].message, "A is empty");
    }

    #[test]
    fn all_that_is_wrong_with_a_directory_is_named() {
        let directory = directory(&[("A", VALUE), ("bad-name", VALUE), ("9", VALUE), ("OPEN", VALUE), ("BIG", "")]);
        mode(&directory, "OPEN", 0o602);
        std::fs::write(directory.path().join("BIG"), VALUE.repeat(160_000)).unwrap();
        std::fs::write(directory.path().join("BYTES"), b"hunter2\xff").unwrap();
        symlink("nowhere", directory.path().join("DANGLING")).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, directory.path().join("PIPE"), 0o600.into()).unwrap();
        let error = refused(&directory);
        let found: Vec<&str> = error.detail.iter().map(|detail| detail.message.as_str()).collect();
        assert_eq!(
            found,
            [
                "9: the name is not that of a variable ([A-Za-z_][A-Za-z0-9_]*)",
                "BIG: it is larger than 1 MiB",
                "BYTES: its value is not UTF-8",
                "DANGLING: the link leads nowhere",
                "OPEN: others may write to it (chmod o-w)",
                "PIPE: it is not a regular file",
                "bad-name: the name is not that of a variable ([A-Za-z_][A-Za-z0-9_]*)",
            ]
        );
        assert!(error.message.ends_with("7 problems: 9, BIG, BYTES, DANGLING, OPEN, PIPE, bad-name"), "{error}");
    }

    #[test]
    fn a_directory_that_others_may_write_is_refused_unless_it_is_sticky() {
        let directory = directory(&[("A", VALUE)]);
        mode(&directory, ".", 0o703);
        assert!(refused(&directory).message.contains("others may write to the directory"));
        mode(&directory, ".", 0o1703);
        assert_eq!(value(&load(&[], &directory), "A").as_deref(), Some(VALUE));
    }

    #[test]
    fn a_directory_that_is_not_there_or_is_a_file_is_refused() {
        for path in ["/nowhere/at/all", "/dev/null"] {
            let error = Secrets::load(&host(&[]), Some(Path::new(path))).unwrap_err();
            assert_eq!(error.code, Code::InvalidSecretsDirectory);
            assert!(error.message.starts_with(&format!("secrets directory {path}: ")), "{error}");
        }
    }

    #[test]
    fn debug_output_shows_no_value() {
        let directory = directory(&[("A", VALUE)]);
        let secrets = load(&[("B", VALUE)], &directory);
        let text = format!("{secrets:?} {:#?} {:?}", secrets, secrets.get("B"));
        assert!(text.contains('A') && !text.contains(VALUE), "{text}");
    }
}
