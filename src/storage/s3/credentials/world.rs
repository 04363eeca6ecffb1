//! What the chain may know of the world: variables, and files of the user's.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use crate::host::{self, Host};

/// The largest file that is read.
const MAX_SIZE: u64 = 1 << 20;

/// The variables of the chain as they were at the start. Their values are never shown.
pub(super) struct World {
    variables: BTreeMap<OsString, OsString>,
    cwd: PathBuf,
    /// Where instance metadata is, unless a variable says otherwise: there is one address of it on IPv4.
    pub(super) metadata: String,
}

impl World {
    pub(super) fn new(host: &Host) -> World {
        let ours = |name: &OsStr| name == "HOME" || name.as_bytes().starts_with(b"AWS_");
        let names = host.env.keys().filter(|name| ours(name));
        // An empty one counts as missing, as everywhere.
        let variables = names.filter_map(|name| Some((name.clone(), host.var(name)?.to_owned()))).collect();
        World { variables, cwd: host.cwd.clone(), metadata: "http://169.254.169.254".to_owned() }
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.variables.contains_key(OsStr::new(name))
    }

    /// The value of a variable that is text.
    pub(super) fn text(&self, name: &str) -> Result<Option<&str>, String> {
        let Some(value) = self.variables.get(OsStr::new(name)) else { return Ok(None) };
        value.to_str().map(Some).ok_or_else(|| format!("${name} is not UTF-8"))
    }

    /// Whether a variable says `true`, in any case.
    pub(super) fn is_true(&self, name: &str) -> bool {
        self.variables.get(OsStr::new(name)).is_some_and(|value| value.eq_ignore_ascii_case("true"))
    }

    /// The path in a variable, made absolute; `~/` is the home directory, as AWS has it for its own files.
    pub(super) fn path(&self, name: &str) -> Option<PathBuf> {
        let value = self.variables.get(OsStr::new(name))?;
        match value.as_bytes().strip_prefix(b"~/") {
            Some(rest) => self.below_home(OsStr::from_bytes(rest)),
            None => Some(self.cwd.join(value)),
        }
    }

    /// A path below the home directory, where there is one.
    pub(super) fn below_home(&self, path: impl AsRef<OsStr>) -> Option<PathBuf> {
        Some(self.cwd.join(self.variables.get(OsStr::new("HOME"))?).join(path.as_ref()))
    }
}

/// The text of a small file; `None` where there is none.
pub(super) fn read(path: &std::path::Path) -> Result<Option<String>, String> {
    let said = |error: std::io::Error| crate::error::Error::io(path.display(), &error).message;
    let file = match host::open_file(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        file => file.map_err(said)?,
    };
    let mut bytes = Vec::new();
    file.take(MAX_SIZE + 1).read_to_end(&mut bytes).map_err(said)?;
    if bytes.len() as u64 > MAX_SIZE {
        return Err(format!("{}: it is larger than 1 MiB", path.display()));
    }
    String::from_utf8(bytes).map(Some).map_err(|_| format!("{}: it is not UTF-8", path.display()))
}

/// The one value in a file, without the line breaks around it. It is read anew each time: who issued it replaces it.
pub(super) fn read_token(path: &std::path::Path) -> Result<String, String> {
    let text = read(path)?.ok_or_else(|| format!("{}: there is no such file", path.display()))?;
    match text.trim() {
        "" => Err(format!("{}: it is empty", path.display())),
        token if token.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ') => Ok(token.to_owned()),
        _ => Err(format!("{}: it holds more than a token", path.display())),
    }
}
