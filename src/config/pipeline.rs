//! `pipelines`.

use std::collections::BTreeMap;

use super::field::{At, Context};
use super::model::{Destination, Pipeline, Source};
use super::problem::Spot;
use super::{backend, destination};

/// What could be read of a pipeline, however much of it is wrong.
pub(super) struct Read {
    /// Its id.
    pub(super) id: Option<String>,
    /// Its source and where it stands.
    pub(super) source: Option<(Source, Spot)>,
    /// Its destinations and where they stand.
    pub(super) destinations: Vec<(Option<Destination>, Spot)>,
}

impl Read {
    /// The pipeline, where all of it is right.
    pub(super) fn finish(self) -> Option<Pipeline> {
        let destinations = self.destinations.into_iter().map(|(destination, _)| destination);
        Some(Pipeline { id: self.id?, source: self.source?.0, destinations: destinations.collect::<Option<_>>()? })
    }
}

/// All of `pipelines`.
pub(super) fn pipelines(at: &At, cx: &mut Context) -> Option<Vec<Read>> {
    let items = at.list(cx)?;
    if items.is_empty() {
        cx.report.add(&at.spot, "must list at least one pipeline");
    }
    unique(&items, "pipeline", cx);
    Some(items.iter().map(|item| pipeline(item, cx)).collect())
}

fn pipeline(at: &At, cx: &mut Context) -> Read {
    let mut read = Read { id: None, source: None, destinations: Vec::new() };
    let Some(table) = at.section(&["id", "source", "destinations"], cx) else { return read };
    read.id = table.need("id", cx).and_then(|at| at.id(cx));
    read.source = table.need("source", cx).and_then(|at| Some((backend::source(&at, cx)?, place(&at))));
    let Some(list) = table.need("destinations", cx) else { return read };
    let Some(items) = list.list(cx) else { return read };
    if items.is_empty() {
        cx.report.add(&list.spot, "must list at least one destination");
    }
    unique(&items, "destination", cx);
    let name = read.id.as_deref().unwrap_or_default();
    read.destinations = items.iter().map(|item| (destination::destination(item, name, cx), place(item))).collect();
    read
}

/// Where the path of a source or destination stands.
fn place(at: &At) -> Spot {
    let super::node::Value::Map(entries) = &at.node.value else { return at.spot.clone() };
    let table = super::field::Table { entries, spot: at.spot.clone() };
    ["path", "prefix", "bucket"].iter().find_map(|key| table.get(key)).map_or(at.spot.clone(), |at| at.spot)
}

/// Checks that no two of `items` have one `id`.
pub(super) fn unique(items: &[At], what: &str, cx: &mut Context) {
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    for item in items {
        let super::node::Value::Map(entries) = &item.node.value else { continue };
        let table = super::field::Table { entries, spot: item.spot.clone() };
        let Some(at) = table.get("id") else { continue };
        let super::node::Value::Text(id) = &at.node.value else { continue };
        if let Some(line) = seen.insert(id, at.node.line) {
            cx.report.add(&at.spot, format!("another {what} has the id {id:?} (line {line})"));
        }
    }
}
