//! One profile in one of the shared files.

use std::collections::BTreeSet;
use std::path::PathBuf;

use awscreds::Credentials;
use awscreds::error::CredentialsError;

use super::world::{self, World};
use super::{Key, no_key};
use crate::error::Result;

const ID: &str = "aws_access_key_id";
const SECRET: &str = "aws_secret_access_key";

/// A profile as it stands in one of the files.
pub(super) struct Section {
    file: PathBuf,
    /// As the file has it.
    name: String,
    /// The names of what is set.
    settings: BTreeSet<String>,
}

impl Section {
    /// The first section of `names` in the file that `variable` names, else in the one below the home directory. A file
    /// that is named has to be there.
    pub(super) fn open(
        world: &World,
        variable: &str,
        below_home: &str,
        names: &[String],
    ) -> std::result::Result<Option<Section>, String> {
        let named = world.has(variable);
        let file = if named { world.path(variable) } else { world.below_home(below_home) };
        let Some(file) = file else { return Ok(None) };
        // A service is often kept out of its user's home directory: then there is no file, rather than one that fails.
        if !named && std::fs::symlink_metadata(&file).is_err() {
            return Ok(None);
        }
        let text = match world::read(&file)? {
            Some(text) => text,
            None if named => {
                return Err(format!("{}: there is no such file, and ${variable} names it", file.display()));
            }
            None => return Ok(None),
        };
        if let Some(number) = unreadable(&text) {
            return Err(format!("{}: line {number} is neither a [profile] nor a setting", file.display()));
        }
        let section = names.iter().find_map(|wanted| settings(&text, wanted));
        Ok(section.map(|(name, settings)| Section { file, name, settings }))
    }

    /// Whether it sets this.
    pub(super) fn sets(&self, name: &str) -> bool {
        self.settings.contains(name)
    }

    /// The key that stands in it, where one does.
    pub(super) fn key(&self) -> Result<Option<Key>> {
        if !self.sets(ID) && !self.sets(SECRET) {
            return Ok(None);
        }
        let parts = Credentials::from_credentials_file(&self.file, Some(&self.name));
        let key = parts.map_err(|error| said(&error)).and_then(|parts| {
            // The older name of the same, which has been read for as long as there are both.
            let token = parts.session_token.or(parts.security_token).filter(|token| !token.is_empty());
            let part = |value: Option<String>| value.unwrap_or_default();
            Key::of(&part(parts.access_key), &part(parts.secret_key), token.as_deref(), None)
        });
        let failed = |what| {
            let place = format!("[{}] of {}", self.name, self.file.display());
            no_key(&place, what, format!("give it both {ID} and {SECRET}"))
        };
        key.map(Some).map_err(failed)
    }
}

/// What is wrong, in words that repeat nothing of the file.
fn said(error: &CredentialsError) -> String {
    match error {
        CredentialsError::ConfigMissingAccessKeyId => format!("{ID} is missing"),
        CredentialsError::ConfigMissingSecretKey => format!("{SECRET} is missing"),
        _ => "the file is not one of profiles".to_owned(),
    }
}

/// The number of the first line that says nothing a file of profiles may say.
fn unreadable(text: &str) -> Option<usize> {
    let good = |line: &str| line.is_empty() || line.starts_with(['#', ';', '[']) || line.contains('=');
    text.lines().position(|line| !good(line.trim())).map(|at| at + 1)
}

/// A section's name as the text has it, and the names of what it sets: these alone say whether the profile asks for what
/// is not done. Values are read by aws-creds.
fn settings(text: &str, wanted: &str) -> Option<(String, BTreeSet<String>)> {
    let mut found: Option<(String, BTreeSet<String>)> = None;
    let mut inside = false;
    for line in text.lines().map(str::trim).filter(|line| !line.starts_with(['#', ';'])) {
        if let Some(rest) = line.strip_prefix('[') {
            let name = rest.split(']').next().unwrap_or_default().trim();
            inside = name.split_whitespace().eq(wanted.split_whitespace());
            if inside && found.is_none() {
                found = Some((name.to_owned(), BTreeSet::new()));
            }
        } else if let Some((_, settings)) = found.as_mut().filter(|_| inside) {
            settings.extend(line.split_once('=').map(|(name, _)| name.trim().to_ascii_lowercase()));
        }
    }
    found
}
