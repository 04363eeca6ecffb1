//! Values by the name of their variable: from the environment, else from a directory with one file a variable. They
//! never reach a message, `Debug` output or the command line.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::config::is_variable;
use crate::error::{Code, Detail, Error, Result, Warning};
use crate::host::Host;
use crate::path::escape;

/// The largest value that is read.
const MAX_SIZE: u64 = 1 << 20;
const OTHERS_MAY_WRITE: u32 = 0o002;
const STICKY: u32 = 0o1000;

/// A secret value. It has no `Display`, and `Debug` does not show it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// The value itself: only for where it is used.
    pub fn expose(&self) -> &str {
        &self.0
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
        self.env_value(name).map(|value| Secret(value.to_owned())).or_else(|| self.files.get(name).cloned())
    }

    fn env_value(&self, name: &str) -> Option<&str> {
        self.env.get(OsString::from(name).as_os_str())?.to_str().filter(|value| !value.is_empty())
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
                "set it in the environment, or put a file of its name there",
            ),
            None => (
                "not in the environment, and no secrets directory is configured".to_owned(),
                "set it in the environment, or configure secrets.directory",
            ),
        };
        let detail = missing.iter().map(|name| Detail {
            code: Code::MissingSecret,
            message: format!("{name} {}", self.why(name)),
            path: Some((*name).clone()),
        });
        let noun = if missing.len() == 1 { "variable" } else { "variables" };
        let message = format!("missing {noun} {list}: {place}");
        Err(Error::new(Code::MissingSecret, message).hint(hint).detail(detail.collect()))
    }

    fn why(&self, name: &str) -> &'static str {
        match self.env.get(OsString::from(name).as_os_str()) {
            Some(value) if value.is_empty() => "is empty",
            Some(_) => "is not UTF-8",
            None => "has no value",
        }
    }
}

fn read_directory(directory: &Path) -> Result<BTreeMap<String, Secret>> {
    let place = directory.display();
    let failed = |error: io::Error| {
        let error = Error::io(format!("secrets directory {place}"), &error);
        Error { code: Code::InvalidSecretsDirectory, ..error }
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

/// The value in a file; `None` for what is not a regular file, nor a link to one.
fn read_file(path: &Path) -> std::result::Result<Option<String>, String> {
    let said = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => "the link leads nowhere".to_owned(),
        // The path is said already, and the words of the system follow it.
        _ => Error::io("", &error).message.trim_start_matches(": ").to_owned(),
    };
    if !std::fs::metadata(path).map_err(said)?.is_file() {
        return Ok(None);
    }
    let file = std::fs::File::open(path).map_err(said)?;
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
    let detail = wrong.into_iter().map(|(name, why)| Detail {
        code: Code::InvalidSecretsDirectory,
        message: format!("{name}: {why}"),
        path: Some(name),
    });
    Error::new(Code::InvalidSecretsDirectory, message)
        .hint("it holds one file a variable, named like the variable, that only its owner may write")
        .detail(detail.collect())
}
