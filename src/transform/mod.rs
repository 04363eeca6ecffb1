//! The outputs that a destination gets from a bundle. Pure: what they are called, not where they go.

mod links;
pub mod markdown;

use crate::bundle::Manifest;
use crate::config::Destination;
use crate::digest::Digest;
use crate::path::{BundlePath, RelPath};
use crate::state::OutputKind;

/// One output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    /// Where it goes, below the destination's bundle path.
    pub path: RelPath,
    /// How it comes to be.
    pub kind: OutputKind,
    /// The source file it comes from.
    pub source_path: RelPath,
    /// The transform that makes it.
    pub transform: Option<&'static str>,
    /// Its public URL.
    pub url: Option<String>,
    /// The digest of its bytes.
    pub sha256: Digest,
    /// How many bytes it has.
    pub size: u64,
}

/// All outputs of a bundle for one destination.
#[derive(Clone, Debug, Default)]
pub struct Outputs {
    /// The outputs.
    pub list: Vec<Output>,
    /// The path of the one to start reading at.
    pub primary: Option<RelPath>,
    /// Its URL.
    pub primary_url: Option<String>,
}

/// The outputs of `manifest` for `destination`, where it is published at `bundle_path`.
pub fn outputs(manifest: &Manifest, destination: &Destination, bundle_path: &BundlePath) -> Outputs {
    let mut list: Vec<Output> = manifest
        .files
        .iter()
        .map(|file| Output {
            path: file.path.clone(),
            kind: OutputKind::Source,
            source_path: file.path.clone(),
            transform: None,
            url: links::url(&destination.links, bundle_path, &file.path),
            sha256: file.sha256,
            size: file.size,
        })
        .collect();
    list.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    let primary = links::primary(&destination.links, &list);
    let (path, url) = (primary.map(|output| output.path.clone()), primary.and_then(|output| output.url.clone()));
    Outputs { list, primary: path, primary_url: url }
}
