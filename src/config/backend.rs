//! The keys of each backend.

use super::choice::{Backend, Choice};
use super::field::{At, Context, Table};
use super::model::{HttpUpload, LocalSource, LocalTarget, Source, SshTarget, Target};
use super::s3;
use super::ssh;
use crate::entry::Modes;

const LOCAL: &[&str] = &["path"];
const MODES: &[&str] = &["file_mode", "directory_mode"];
const HTTP_UPLOAD: &[&str] = &["max_upload_size", "max_files"];

/// What a source or destination may be.
#[derive(Clone, Copy)]
pub(super) struct Side {
    name: &'static str,
    common: &'static [&'static str],
    modes: &'static [&'static str],
    backends: &'static [Backend],
}

/// A source.
pub(super) const SOURCE: Side = Side { name: "sources", common: &["backend"], modes: &[], backends: Backend::ALL };

/// A destination.
pub(super) const DESTINATION: Side = Side {
    name: "destinations",
    common: &[
        "id",
        "backend",
        "path_mapping",
        "outputs",
        "transforms",
        "links",
        "transfer",
        "reconciliation",
        "state",
        "takeover",
        "retention",
    ],
    modes: MODES,
    backends: &[Backend::Local, Backend::Ssh, Backend::S3],
};

impl Side {
    fn keys(self, backend: Backend) -> Vec<&'static str> {
        match backend {
            Backend::Local => [LOCAL, self.modes].concat(),
            Backend::Ssh => [ssh::KEYS, self.modes].concat(),
            Backend::S3 => s3::KEYS.to_vec(),
            Backend::HttpUpload if self.backends.contains(&backend) => HTTP_UPLOAD.to_vec(),
            Backend::HttpUpload => Vec::new(),
        }
    }

    /// The backend of `table`, whose other keys are checked against it.
    pub(super) fn backend(self, table: &Table, cx: &mut Context) -> Option<Backend> {
        let backend = table.need("backend", cx).and_then(|at| match at.node.value {
            super::node::Value::Text(ref text)
                if text == "http_upload" && !self.backends.contains(&Backend::HttpUpload) =>
            {
                cx.report.add_with(&at.spot, "http_upload is a source only", "choose local, ssh or s3");
                None
            }
            _ => at.choice(self.backends, cx),
        });
        let own: Vec<&str> = match backend {
            Some(backend) => self.keys(backend),
            // Without a backend no key of any can be called wrong.
            None => {
                Backend::ALL.iter().flat_map(|&backend| self.keys(backend)).chain(HTTP_UPLOAD.iter().copied()).collect()
            }
        };
        let known = [self.common, &own].concat();
        for entry in table.entries.iter().filter(|entry| !known.contains(&entry.key.as_str())) {
            match backend.and_then(|backend| self.foreign(&entry.key, backend)) {
                Some(message) => cx.report.add(&table.key_spot(entry), message),
                None => table.unknown(entry, &known, cx),
            }
        }
        backend
    }

    /// What to say of a key that another backend, or the other side, has.
    fn foreign(self, key: &str, backend: Backend) -> Option<String> {
        if MODES.contains(&key) && matches!(backend, Backend::Local | Backend::Ssh) {
            return Some(format!("{key:?} is for destinations only"));
        }
        if DESTINATION.common.contains(&key) {
            return Some(format!("{key:?} is a key of destinations, not of {}", self.name));
        }
        let has = |other: &Backend| match other {
            Backend::HttpUpload => HTTP_UPLOAD.contains(&key),
            other => DESTINATION.keys(*other).contains(&key),
        };
        let owners: Vec<&str> = Backend::ALL.iter().filter(|other| has(other)).map(|other| other.as_str()).collect();
        if owners.is_empty() {
            return None;
        }
        let owners = owners.join(" and ");
        Some(format!("{key:?} is a key of backend {owners}, and this one is {}", backend.as_str()))
    }
}

/// A `source`.
pub(super) fn source(at: &At, cx: &mut Context) -> Option<Source> {
    let table = at.table(cx)?;
    match SOURCE.backend(&table, cx)? {
        Backend::Local => {
            let path = table.need("path", cx).and_then(|at| at.path(cx))?;
            Some(Source::Local(LocalSource { path }))
        }
        Backend::Ssh => ssh::place(&table, cx).map(Source::Ssh),
        Backend::S3 => s3::place(&table, cx).map(Source::S3),
        Backend::HttpUpload => {
            let size = table.get("max_upload_size").map_or(Some(1 << 30), |at| at.size(cx));
            let files = table.get("max_files").map_or(Some(100_000), |at| at.number(1, u64::MAX, cx));
            Some(Source::HttpUpload(HttpUpload { max_upload_size: size?, max_files: files? }))
        }
    }
}

/// Where a destination stands.
pub(super) fn target(table: &Table, cx: &mut Context) -> Option<Target> {
    match DESTINATION.backend(table, cx)? {
        Backend::Local => {
            let path = table.need("path", cx).and_then(|at| at.path(cx));
            let modes = modes(table, cx);
            Some(Target::Local(LocalTarget { path: path?, modes: modes? }))
        }
        Backend::Ssh => {
            let place = ssh::place(table, cx);
            let modes = modes(table, cx);
            Some(Target::Ssh(SshTarget { place: place?, modes: modes? }))
        }
        Backend::S3 => s3::place(table, cx).map(Target::S3),
        Backend::HttpUpload => None,
    }
}

fn modes(table: &Table, cx: &mut Context) -> Option<Modes> {
    let file = table.get("file_mode").map_or(Some(0o644), |at| at.mode(cx));
    let directory = table.get("directory_mode").map_or(Some(0o755), |at| at.directory_mode(cx));
    Some(Modes { file: file?, directory: directory? })
}
