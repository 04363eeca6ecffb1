//! Places on servers.

use std::path::PathBuf;
use std::time::Duration;

use super::choice::HostKeyPolicy;
use super::pattern::Pattern;

/// A place that may need secrets.
pub(super) trait Place {
    /// The names of the variables it needs.
    fn variables(&self) -> Vec<&str>;
}

/// A directory of an SSH server.
#[derive(Clone, Debug, PartialEq)]
pub struct SshPlace {
    /// The server.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// The user; `None` for the current one.
    pub user: Option<String>,
    /// Absolute, or relative to the login directory.
    pub path: String,
    /// A private key, absolute.
    pub ssh_key_file: Option<PathBuf>,
    /// The variable that holds the key's passphrase.
    pub ssh_key_passphrase_env: Option<String>,
    /// Whether the agent is asked where there is one.
    pub ssh_agent: bool,
    /// How strictly the server's key is checked.
    pub host_key_policy: HostKeyPolicy,
    /// Where known keys stand, absolute; `None` where the default has no home directory to stand in.
    pub known_hosts_file: Option<PathBuf>,
    /// How long a connection may take.
    pub connect_timeout: Duration,
    /// How long nothing may move.
    pub timeout: Duration,
    /// How many connections at most.
    pub connections: usize,
}

impl Place for SshPlace {
    fn variables(&self) -> Vec<&str> {
        self.ssh_key_passphrase_env.as_deref().into_iter().collect()
    }
}

/// A prefix of an S3 bucket.
#[derive(Clone, Debug, PartialEq)]
pub struct S3Place {
    /// The server's URL; `None` for AWS's of the region.
    pub endpoint: Option<String>,
    /// The bucket.
    pub bucket: String,
    /// The prefix without `/` at its ends; empty for the whole bucket.
    pub prefix: String,
    /// The region.
    pub region: String,
    /// Whether the bucket stands in the path, not in the host name.
    pub path_style: bool,
    /// The variables that hold the key; `None` for AWS's default chain.
    pub credentials: Option<S3Credentials>,
    /// The storage class of new objects.
    pub storage_class: Option<String>,
    /// `Cache-Control` of new objects; the first match counts.
    pub cache_control: Vec<CacheControl>,
    /// How long a connection may take.
    pub connect_timeout: Duration,
    /// How long nothing may move.
    pub timeout: Duration,
    /// How many requests at the same time.
    pub concurrency: usize,
}

/// The names of the variables that hold an S3 key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct S3Credentials {
    /// Of the key's id.
    pub access_key_id_env: String,
    /// Of the key.
    pub secret_access_key_env: String,
    /// Of the session token.
    pub session_token_env: Option<String>,
}

/// One of `cache_control`.
#[derive(Clone, Debug, PartialEq)]
pub struct CacheControl {
    /// The outputs it is for.
    pub patterns: Vec<Pattern>,
    /// The header's value.
    pub value: String,
}

impl Place for S3Place {
    fn variables(&self) -> Vec<&str> {
        let Some(names) = &self.credentials else { return Vec::new() };
        let mut all = vec![names.access_key_id_env.as_str(), &names.secret_access_key_env];
        all.extend(names.session_token_env.as_deref());
        all
    }
}
