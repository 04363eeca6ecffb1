//! The keys of backend `ssh`.

use std::time::Duration;

use super::field::{At, Context, Table};
use super::place::SshPlace;

pub(super) const KEYS: &[&str] = &[
    "host",
    "port",
    "user",
    "path",
    "ssh_key_file",
    "ssh_key_passphrase_env",
    "ssh_agent",
    "host_key_policy",
    "known_hosts_file",
    "connect_timeout",
    "timeout",
    "connections",
];

pub(super) fn place(table: &Table, cx: &mut Context) -> Option<SshPlace> {
    let host = table.need("host", cx).and_then(|at| at.parsed(cx, host));
    let port = table.get("port").map_or(Some(22), |at| at.number(1, 65_535, cx));
    let user = optional(table.get("user"), |at| at.parsed(cx, user));
    let path = table.need("path", cx).and_then(|at| path(&at, cx));
    let ssh_key_file = optional(table.get("ssh_key_file"), |at| at.path(cx));
    let passphrase = optional(table.get("ssh_key_passphrase_env"), |at| at.variable(cx));
    let ssh_agent = table.get("ssh_agent").map_or(Some(true), |at| at.bool(cx));
    let host_key_policy = table.choice("host_key_policy", cx);
    let known_hosts = match table.get("known_hosts_file") {
        Some(at) => at.path(cx).map(Some),
        None => Some(cx.world.home.map(|home| home.join(".ssh/known_hosts"))),
    };
    let connect_timeout = table.get("connect_timeout").map_or(Some(Duration::from_secs(10)), |at| at.duration(cx));
    let timeout = table.get("timeout").map_or(Some(Duration::from_mins(1)), |at| at.duration(cx));
    let connections = table.get("connections").map_or(Some(2), |at| at.number(1, 8, cx));
    Some(SshPlace {
        host: host?,
        port: u16::try_from(port?).ok()?,
        user: user?,
        path: path?,
        ssh_key_file: ssh_key_file?,
        ssh_key_passphrase_env: passphrase?,
        ssh_agent: ssh_agent?,
        host_key_policy: host_key_policy?,
        known_hosts_file: known_hosts?,
        connect_timeout: connect_timeout?,
        timeout: timeout?,
        connections: usize::try_from(connections?).ok()?,
    })
}

/// `Some(None)` where the key is absent, `None` where it is wrong.
#[allow(clippy::option_option)]
pub(super) fn optional<'a, T>(at: Option<At<'a>>, read: impl FnOnce(At<'a>) -> Option<T>) -> Option<Option<T>> {
    match at {
        None => Some(None),
        Some(at) => read(at).map(Some),
    }
}

fn host(text: &str) -> Result<String, String> {
    if text.starts_with('-') || text.contains(|c: char| c.is_whitespace() || "/@[]".contains(c)) {
        return Err(format!("{text:?} is not a host name or address (user and port have keys of their own)"));
    }
    if text.contains(':') && text.parse::<std::net::Ipv6Addr>().is_err() {
        return Err(format!("{text:?} is not a host name or address (the port has a key of its own)"));
    }
    Ok(text.to_owned())
}

fn user(text: &str) -> Result<String, String> {
    let good = !text.starts_with('-') && !text.contains(|c: char| c.is_whitespace() || c == ':');
    super::scalar::checked(good, text, "is not the name of a user")
}

/// A path of the server; `~/` is the login directory, where relative paths start anyway.
fn path(at: &At, cx: &mut Context) -> Option<String> {
    let text = at.text(cx)?;
    match text.strip_prefix('~') {
        None => Some(text.to_owned()),
        Some("" | "/") => Some(".".to_owned()),
        Some(rest) if rest.starts_with('/') => Some(rest.trim_start_matches('/').to_owned()),
        Some(_) => {
            cx.report.add_with(&at.spot, "only \"~/\" is known, the login directory", "write the path out");
            None
        }
    }
}
