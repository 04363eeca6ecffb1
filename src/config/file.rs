//! The top level: `secrets`, `server`, `upload_tokens`, `staging_directory`, `pipelines`.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::field::{At, Context, Table};
use super::model::{Config, Http, Source, UploadToken};
use super::node::Node;
use super::overlap;
use super::pipeline::{self, Read};
use super::ssh::optional;

const KEYS: &[&str] = &["secrets", "server", "upload_tokens", "staging_directory", "pipelines"];
const HTTP: &[&str] =
    &["listen", "staging_directory", "max_staging_size", "metrics", "queue_size", "max_concurrency", "retention"];

/// The configuration in `root`. `None` where something is wrong.
pub(super) fn config(root: &Node, file: &Path, cx: &mut Context) -> Option<Config> {
    let table = At::new(root, String::new()).section(KEYS, cx)?;
    let secrets = optional(table.get("secrets"), |at| secrets(&at, cx));
    let staging = match table.get("staging_directory") {
        Some(at) => at.path(cx).map(Some),
        None => Some(cx.world.state_directory.map(Path::to_owned)),
    };
    let server = server(&table, staging.clone().flatten(), cx);
    let read = table.need("pipelines", cx).and_then(|at| pipeline::pipelines(&at, cx));
    let tokens = table.get("upload_tokens").map_or(Some(Vec::new()), |at| tokens(&at, read.as_deref(), cx));
    let read = read?;
    overlap::check(&read, cx);
    Some(Config {
        file: file.to_owned(),
        secrets_directory: secrets?.flatten(),
        server: server?,
        upload_tokens: tokens?,
        staging_directory: staging?,
        pipelines: read.into_iter().map(Read::finish).collect::<Option<_>>()?,
    })
}

#[allow(clippy::option_option)]
fn secrets(at: &At, cx: &mut Context) -> Option<Option<PathBuf>> {
    let table = at.section(&["directory"], cx)?;
    optional(table.get("directory"), |at| at.path(cx))
}

fn server(table: &Table, staging: Option<PathBuf>, cx: &mut Context) -> Option<Http> {
    let http = match table.get("server") {
        None => None,
        Some(at) => at.section(&["http"], cx)?.get("http"),
    };
    let table = match &http {
        None => Table { entries: &[], spot: table.spot.clone() },
        Some(at) => at.section(HTTP, cx)?,
    };
    let listen = table.get("listen").map_or(Some(SocketAddr::from(([127, 0, 0, 1], 8080))), |at| at.parsed(cx, listen));
    let staging = table.get("staging_directory").map_or(Some(staging), |at| at.path(cx).map(Some));
    let size = table.get("max_staging_size").map_or(Some(16 << 30), |at| at.size(cx));
    let metrics = table.get("metrics").map_or(Some(false), |at| at.bool(cx));
    let queue_size = table.get("queue_size").map_or(Some(64), |at| at.number(1, 100_000, cx));
    let concurrency = table.get("max_concurrency").map_or(Some(2), |at| at.number(1, 256, cx));
    let retention = table.get("retention").map_or(Some(Duration::from_hours(24)), |at| at.duration(cx));
    Some(Http {
        listen: listen?,
        staging_directory: staging?,
        max_staging_size: size?,
        metrics: metrics?,
        queue_size: usize::try_from(queue_size?).ok()?,
        max_concurrency: usize::try_from(concurrency?).ok()?,
        retention: retention?,
    })
}

fn listen(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| format!("{text:?} is not an IP address and port like 127.0.0.1:8080 or [::1]:8080"))
}

fn tokens(at: &At, read: Option<&[Read]>, cx: &mut Context) -> Option<Vec<UploadToken>> {
    let items = at.list(cx)?;
    pipeline::unique(&items, "token", cx);
    let all: Vec<_> = items.iter().map(|item| token(item, read, cx)).collect();
    all.into_iter().collect()
}

fn token(at: &At, read: Option<&[Read]>, cx: &mut Context) -> Option<UploadToken> {
    let table = at.section(&["id", "token_env", "pipelines"], cx)?;
    let id = table.need("id", cx).and_then(|at| at.id(cx));
    // A literal token is said to be wrong already; the missing name would be the same news.
    let literal = table.get("token").is_some() && table.get("token_env").is_none();
    let token_env = if literal { None } else { table.need("token_env", cx).and_then(|at| at.variable(cx)) };
    let pipelines = table.need("pipelines", cx).and_then(|at| token_pipelines(&at, read, cx));
    Some(UploadToken { id: id?, token_env: token_env?, pipelines: pipelines? })
}

fn token_pipelines(at: &At, read: Option<&[Read]>, cx: &mut Context) -> Option<Vec<String>> {
    let items = at.list(cx)?;
    if items.is_empty() {
        cx.report.add(&at.spot, "must list at least one pipeline");
        return None;
    }
    let mut ids: Vec<String> = Vec::new();
    for item in &items {
        let Some(id) = item.text(cx) else { continue };
        if ids.iter().any(|known| known == id) {
            cx.report.add(&item.spot, format!("{id:?} stands twice"));
        } else if let Some(read) = read {
            upload_pipeline(item, id, read, cx);
        }
        ids.push(id.to_owned());
    }
    Some(ids)
}

fn upload_pipeline(at: &At, id: &str, read: &[Read], cx: &mut Context) {
    let known = || read.iter().filter_map(|pipeline| pipeline.id.as_deref());
    match read.iter().find(|pipeline| pipeline.id.as_deref() == Some(id)) {
        // A pipeline whose id is wrong may be the one that is meant.
        None if read.iter().any(|pipeline| pipeline.id.is_none()) && !crate::id::is_id(id) => {}
        None => match crate::suggest::nearest(id, known()) {
            Some(near) => {
                let hint = format!("did you mean {near:?}?");
                cx.report.add_with(&at.spot, format!("no pipeline has the id {id:?}"), hint);
            }
            None => cx.report.add(&at.spot, format!("no pipeline has the id {id:?}")),
        },
        Some(Read { source: Some((source, _)), .. }) if !matches!(source, Source::HttpUpload(_)) => {
            let message = format!("pipeline {id:?} takes no uploads: its source is {}", source.backend().as_str());
            cx.report.add(&at.spot, message);
        }
        Some(_) => {}
    }
}
