//! Choosing the bundle of a fixed destination.

use crate::bundle::Manifest;
use crate::path::BundlePath;

/// The newest bundle by `created`; of several equally new ones the first by path.
pub fn newest<'a, T>(
    bundles: impl IntoIterator<Item = &'a T>,
    key: impl Fn(&'a T) -> Option<(&'a BundlePath, &'a Manifest)>,
) -> Option<&'a T> {
    bundles
        .into_iter()
        .filter_map(|bundle| key(bundle).map(|(path, manifest)| (bundle, path, manifest)))
        .min_by(|a, b| b.2.created.cmp(&a.2.created).then_with(|| a.1.cmp(b.1)))
        .map(|(bundle, ..)| bundle)
}
