//! Finding the bundles below a source root.

use crate::bundle::{self, Manifest};
use crate::error::{Code, Error, Result, Warning};
use crate::path::{BundlePath, MANIFEST, RelPath, escape};
use crate::pool;
use crate::storage::{MAX_DEPTH, Met, Storage};

/// What was found below a source root.
#[derive(Debug, Default)]
pub struct Discovery {
    /// The bundles, in the byte order of their paths.
    pub bundles: Vec<Found>,
    /// What was passed over.
    pub warnings: Vec<Warning>,
}

/// A bundle that was found, or a directory that could not be looked into.
#[derive(Debug)]
pub struct Found {
    /// Its path as it is shown.
    pub shown: String,
    /// Its path, and its manifest.
    pub bundle: Result<(BundlePath, Manifest)>,
}

/// Finds every bundle below `root` and reads its manifest. One bad bundle is a [`Found`] with an error; only a root
/// that can't be read, or not any more, fails as a whole.
pub fn discover(root: &dyn Storage) -> Result<Discovery> {
    let mut discovery = Discovery::default();
    let mut met: Vec<(Vec<u8>, Option<Error>)> = Vec::new();
    root.find(MANIFEST, &mut |raw, what| match what {
        Met::Marked => met.push((raw.to_vec(), None)),
        Met::Unreadable(error) => met.push((raw.to_vec(), Some(error))),
        Met::Link => discovery.warnings.push(Warning::new(
            Code::LinkSkipped,
            format!("{}: symbolic links in a source are not followed", escape(raw)),
        )),
        Met::TooDeep => discovery.warnings.push(Warning::new(
            Code::TooDeep,
            format!("{}: lies more than {MAX_DEPTH} levels deep and is not looked into", escape(raw)),
        )),
    })?;
    met.sort_unstable_by(|a, b| a.0.cmp(&b.0));
    discovery.warnings.sort_unstable_by(|a, b| a.message.cmp(&b.message));
    if met.is_empty() {
        let message = format!("{}: no {MANIFEST} below it", root.describe());
        discovery.warnings.push(Warning::new(Code::NoBundles, message));
    }
    let load = |(raw, error): &(Vec<u8>, Option<Error>)| found(root, raw, error.clone());
    for found in pool::map_while(root.reads(), &met, load, |found| {
        found.bundle.as_ref().err().is_none_or(|error| !error.is_out_of_reach())
    }) {
        match found.bundle {
            Err(error) if error.is_out_of_reach() => return Err(error),
            _ => discovery.bundles.push(found),
        }
    }
    Ok(discovery)
}

fn found(root: &dyn Storage, raw: &[u8], error: Option<Error>) -> Found {
    let shown = if raw.is_empty() { BundlePath::ROOT.to_string() } else { escape(raw) };
    let path = if raw.is_empty() { Ok(BundlePath::ROOT) } else { RelPath::from_bytes(raw).map(BundlePath::from) };
    let bundle = match (error, path) {
        (Some(error), _) => Err(error),
        (None, Err(fault)) => Err(Error::new(Code::InvalidBundle, format!("the bundle's path: {fault}"))
            .hint("rename the directory, then run again")),
        (None, Ok(path)) => bundle::load(root.at(&path).as_ref()).map(|manifest| (path, manifest)),
    };
    Found { shown, bundle }
}
