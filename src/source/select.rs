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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bundle::{Digest, FileEntry, content_digest};
    use crate::path::RelPath;
    use crate::timestamp::Timestamp;

    fn bundle(path: &str, created: &str) -> (BundlePath, Manifest) {
        let file = FileEntry { path: RelPath::parse("a").unwrap(), sha256: Digest::of(b""), size: 0 };
        let path = if path == "." { BundlePath::ROOT } else { RelPath::parse(path).unwrap().into() };
        let (digest, created) = (content_digest(std::slice::from_ref(&file)), Timestamp::parse(created).unwrap());
        (path, Manifest { schema_version: 1, id: "x".to_owned(), digest, created, files: vec![file] })
    }

    /// The path of the newest of these bundles, in either order.
    fn chosen(bundles: &[(&str, &str)]) -> Option<String> {
        let mut all: Vec<_> = bundles.iter().map(|(path, created)| bundle(path, created)).collect();
        let newest = |all: &[(BundlePath, Manifest)]| {
            newest(all, |(path, manifest)| Some((path, manifest))).map(|(path, _)| path.to_string())
        };
        let first = newest(&all);
        all.reverse();
        assert_eq!(newest(&all), first, "the order of the bundles does not count");
        first
    }

    #[test]
    fn the_newest_instant_wins_and_then_the_first_path() {
        assert_eq!(chosen(&[]), None);
        assert_eq!(chosen(&[(".", "2026-06-04T12:00:00Z")]).as_deref(), Some("."));
        let later_by_instant = [("a", "2026-06-04T12:30:00+09:00"), ("b", "2026-06-04T11:00:00Z")];
        assert_eq!(chosen(&later_by_instant).as_deref(), Some("b"));
        let equal =
            [("b", "2026-06-04T11:00:00Z"), ("a-z", "2026-06-04T13:00:00+02:00"), ("a/b", "2026-06-04T11:00:00.0Z")];
        assert_eq!(chosen(&equal).as_deref(), Some("a-z"), "by the bytes of the path");
        let by_a_nanosecond = [("a", "2026-06-04T11:00:00Z"), ("b", "2026-06-04T11:00:00.000000001Z")];
        assert_eq!(chosen(&by_a_nanosecond).as_deref(), Some("b"));
    }

    #[test]
    fn what_has_no_manifest_is_never_chosen() {
        let all = [(true, bundle("a", "2026-06-04T10:00:00Z")), (false, bundle("b", "2026-06-04T11:00:00Z"))];
        let found = newest(&all, |(valid, (path, manifest))| valid.then_some((path, manifest)));
        assert_eq!(found.unwrap().1.0.as_str(), "a");
    }
}
