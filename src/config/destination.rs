//! `destinations`.

use super::choice::{Choice, OutputPolicy, Reconciliation, StateMode, TakeoverMode};
use super::field::{At, Context, Table};
use super::model::{Destination, Links, Outputs, Prune, Retention, Transfer, Transform};
use super::pattern::Pattern;
use super::ssh::optional;
use super::{backend, scalar, transform};
use crate::error::{Code, Warning};

/// A destination of `pipeline`. `None` where something in it is wrong.
pub(super) fn destination(at: &At, pipeline: &str, cx: &mut Context) -> Option<Destination> {
    let table = at.table(cx)?;
    let id = table.need("id", cx).and_then(|at| at.id(cx));
    let target = backend::target(&table, cx);
    let path_mapping = table.choice("path_mapping", cx);
    let outputs = section(&table, "outputs", &["policy"], cx, |table, cx| table.choice("policy", cx));
    let transforms = transforms(&table, outputs, cx);
    let links = links(table.get("links").as_ref(), cx);
    let transfer = section(&table, "transfer", TRANSFER, cx, transfer);
    let reconciliation: Option<Reconciliation> = mode(&table, "reconciliation", cx);
    let state_mode: Option<StateMode> = mode(&table, "state", cx);
    let takeover: Option<TakeoverMode> = mode(&table, "takeover", cx);
    let prune = section(&table, "retention", &["prune"], cx, |retention, cx| {
        section(retention, "prune", &["enabled", "older_than", "keep_latest"], cx, prune)
    });
    if let (Some(prune), Some(Reconciliation::Replace), Some(id)) = (prune, reconciliation, &id) {
        warn(prune, pipeline, id, cx);
    }
    Some(Destination {
        id: id?,
        target: target?,
        path_mapping: path_mapping?,
        outputs: Outputs { policy: outputs? },
        transforms: transforms?,
        links: links?,
        transfer: transfer?,
        reconciliation: reconciliation?,
        state_mode: state_mode?,
        takeover: takeover?,
        retention: Retention { prune: prune? },
    })
}

/// The section `key` as `read` takes it: the default where it is absent.
fn section<T: Default>(
    table: &Table,
    key: &str,
    known: &[&str],
    cx: &mut Context,
    read: impl FnOnce(&Table, &mut Context) -> Option<T>,
) -> Option<T> {
    match table.get(key) {
        None => Some(T::default()),
        Some(at) => {
            let section = at.section(known, cx)?;
            read(&section, cx)
        }
    }
}

fn mode<T: Choice + Default>(table: &Table, key: &str, cx: &mut Context) -> Option<T> {
    section(table, key, &["mode"], cx, |table, cx| table.choice("mode", cx))
}

fn transforms(table: &Table, policy: Option<OutputPolicy>, cx: &mut Context) -> Option<Vec<Transform>> {
    let at = table.get("transforms");
    let all = at.as_ref().map_or(Some(Vec::new()), |at| transform::transforms(at, cx))?;
    match (policy?, at) {
        (OutputPolicy::SourceOnly, Some(at)) if !all.is_empty() => {
            let hint = "choose another outputs.policy, or remove them";
            cx.report.add_with(&at.spot, "must be empty with outputs.policy source_only", hint);
            None
        }
        (OutputPolicy::SourceOnly, _) => Some(all),
        (policy, at) if all.is_empty() => {
            let spot = at.map_or_else(|| table.spot.clone(), |at| at.spot);
            let message = format!("outputs.policy {} needs \"transforms\"", policy.as_str());
            cx.report.add_with(&spot, message, "without one nothing is generated");
            None
        }
        _ => Some(all),
    }
}

fn links(at: Option<&At>, cx: &mut Context) -> Option<Links> {
    let default = ["index.html", "*.html"].into_iter().map(|text| Pattern::parse(text).ok()).collect();
    let Some(at) = at else { return Some(Links { base_url: None, primary: default? }) };
    let table = at.section(&["base_url", "primary"], cx)?;
    let base_url = optional(table.get("base_url"), |at| at.parsed(cx, base_url));
    let primary = table.get("primary").map_or(default, |at| at.patterns(cx));
    Some(Links { base_url: base_url?, primary: primary? })
}

fn base_url(text: &str) -> Result<String, String> {
    // Not repeated: a URL may carry a password.
    scalar::url(text).map_err(|why| format!("is not a base URL: {why}"))
}

const TRANSFER: &[&str] = &["on_destination_older", "on_destination_newer", "on_conflict"];

fn transfer(table: &Table, cx: &mut Context) -> Option<Transfer> {
    let older = table.choice("on_destination_older", cx);
    let newer = table.choice("on_destination_newer", cx);
    let conflict = table.choice("on_conflict", cx);
    Some(Transfer { on_destination_older: older?, on_destination_newer: newer?, on_conflict: conflict? })
}

fn prune(table: &Table, cx: &mut Context) -> Option<Prune> {
    let enabled = table.get("enabled").map_or(Some(false), |at| at.bool(cx));
    let older_than = optional(table.get("older_than"), |at| at.duration(cx));
    let keep_latest = optional(table.get("keep_latest"), |at| at.number(0, u64::MAX, cx));
    let prune = Prune { enabled: enabled?, older_than: older_than?, keep_latest: keep_latest? };
    if prune.enabled && prune.older_than.is_none() && prune.keep_latest.is_none() {
        cx.report.add(&table.spot, "enabled: true needs \"older_than\" or \"keep_latest\"");
        return None;
    }
    Some(prune)
}

fn warn(prune: Prune, pipeline: &str, id: &str, cx: &mut Context) {
    if prune.enabled && prune.older_than.is_some() && prune.keep_latest.is_none() {
        let message = "pruning by age alone can empty a destination that is quiet: set retention.prune.keep_latest";
        cx.report.warnings.push(Warning::new(Code::PruneMayEmpty, message).pipeline(pipeline).destination(id));
    }
}
