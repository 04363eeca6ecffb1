//! The keys of backend `s3`.

use std::time::Duration;

use super::field::{At, Context, Table};
use super::place::{CacheControl, S3Credentials, S3Place};
use super::scalar;
use super::ssh::optional;
use crate::path::RelPath;

pub(super) const KEYS: &[&str] = &[
    "endpoint",
    "bucket",
    "prefix",
    "region",
    "path_style",
    "access_key_id_env",
    "secret_access_key_env",
    "session_token_env",
    "storage_class",
    "cache_control",
    "connect_timeout",
    "timeout",
    "concurrency",
];

pub(super) fn place(table: &Table, cx: &mut Context) -> Option<S3Place> {
    let endpoint = optional(table.get("endpoint"), |at| at.parsed(cx, endpoint));
    let bucket = table.need("bucket", cx).and_then(|at| at.parsed(cx, bucket));
    let prefix = table.get("prefix").map_or(Some(String::new()), |at| at.parsed(cx, prefix));
    let region = table.get("region").map_or(Some("us-east-1".to_owned()), |at| at.parsed(cx, word));
    let path_style = table.get("path_style").map_or(Some(false), |at| at.bool(cx));
    if let (Some(at), Some(Some(url)), Some(false)) = (table.get("endpoint"), &endpoint, path_style)
        && is_address(url)
    {
        cx.report.add_with(
            &at.spot,
            "is an IP address, which no bucket's name can stand before",
            "set path_style: true",
        );
    }
    let credentials = credentials(table, cx);
    let storage_class = optional(table.get("storage_class"), |at| at.parsed(cx, word));
    let cache_control = table.get("cache_control").map_or(Some(Vec::new()), |at| cache_control(&at, cx));
    let connect_timeout = table.get("connect_timeout").map_or(Some(Duration::from_secs(10)), |at| at.duration(cx));
    let timeout = table.get("timeout").map_or(Some(Duration::from_mins(1)), |at| at.duration(cx));
    let concurrency = table.get("concurrency").map_or(Some(16), |at| at.number(1, 256, cx));
    Some(S3Place {
        endpoint: endpoint?,
        bucket: bucket?,
        prefix: prefix?,
        region: region?,
        path_style: path_style?,
        credentials: credentials?,
        storage_class: storage_class?,
        cache_control: cache_control?,
        connect_timeout: connect_timeout?,
        timeout: timeout?,
        concurrency: usize::try_from(concurrency?).ok()?,
    })
}

fn endpoint(text: &str) -> Result<String, String> {
    // Not repeated: a URL may carry a password.
    let url = scalar::url(text).map_err(|why| format!("is not the URL of a server: {why}"))?;
    Ok(url.trim_end_matches('/').to_owned())
}

/// Whether the server is named by its IP address.
fn is_address(url: &str) -> bool {
    let url = url::Url::parse(url).ok();
    url.is_some_and(|url| matches!(url.host(), Some(url::Host::Ipv4(_) | url::Host::Ipv6(_))))
}

fn bucket(text: &str) -> Result<String, String> {
    let allowed = |b: u8| b.is_ascii_alphanumeric() || b".-_".contains(&b);
    let good = (3..=255).contains(&text.len())
        && text.bytes().all(allowed)
        && text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && !text.contains("..");
    let rule = "is not the name of a bucket: letters, digits, \".\", \"-\" and \"_\", at least three";
    scalar::checked(good, text, rule)
}

fn prefix(text: &str) -> Result<String, String> {
    let trimmed = text.strip_suffix('/').unwrap_or(text);
    if text == "/" || text.starts_with('/') {
        return Err("a prefix does not begin with \"/\"; without the key the whole bucket is meant".to_owned());
    }
    RelPath::parse(trimmed).map(|path| path.as_str().to_owned()).map_err(|fault| format!("{text:?}: {fault}"))
}

fn word(text: &str) -> Result<String, String> {
    let good = text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b));
    scalar::checked(good, text, "holds more than letters, digits, \"-\" and \"_\"")
}

#[allow(clippy::option_option)]
fn credentials(table: &Table, cx: &mut Context) -> Option<Option<S3Credentials>> {
    let id = optional(table.get("access_key_id_env"), |at| at.variable(cx));
    let key = optional(table.get("secret_access_key_env"), |at| at.variable(cx));
    let token = optional(table.get("session_token_env"), |at| at.variable(cx));
    match (table.get("access_key_id_env"), table.get("secret_access_key_env"), table.get("session_token_env")) {
        (Some(_), Some(_), _) | (None, None, None) => {}
        (Some(at), None, _) => cx.report.add(&at.spot, "needs \"secret_access_key_env\" beside it"),
        (None, Some(at), _) => cx.report.add(&at.spot, "needs \"access_key_id_env\" beside it"),
        (None, None, Some(at)) => {
            cx.report.add(&at.spot, "needs \"access_key_id_env\" and \"secret_access_key_env\" beside it");
        }
    }
    match (id?, key?, token?) {
        (Some(access_key_id_env), Some(secret_access_key_env), session_token_env) => {
            Some(Some(S3Credentials { access_key_id_env, secret_access_key_env, session_token_env }))
        }
        _ => Some(None),
    }
}

fn cache_control(at: &At, cx: &mut Context) -> Option<Vec<CacheControl>> {
    let rules: Vec<_> = at.list(cx)?.iter().map(|item| rule(item, cx)).collect();
    rules.into_iter().collect()
}

fn rule(at: &At, cx: &mut Context) -> Option<CacheControl> {
    let table = at.section(&["match", "value"], cx)?;
    let patterns = table.need("match", cx).and_then(|at| at.patterns(cx));
    let value = table.need("value", cx).and_then(|at| at.parsed(cx, header));
    Some(CacheControl { patterns: patterns?, value: value? })
}

fn header(text: &str) -> Result<String, String> {
    scalar::checked(text.bytes().all(|b| (b' '..=b'~').contains(&b)), text, "holds a character that no header may hold")
}
