//! Public URLs of outputs.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use super::Output;
use crate::config::Links;
use crate::path::{BundlePath, RelPath};

/// All but the unreserved characters of RFC 3986, section 2.3.
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The URL of the output `path` of the bundle published at `bundle`: `base_url` and both paths, percent-encoded segment
/// by segment.
pub(super) fn url(links: &Links, bundle: &BundlePath, path: &RelPath) -> Option<String> {
    let base = links.base_url.as_deref()?.trim_end_matches('/');
    let paths = bundle.below().into_iter().chain([path]);
    let segments = paths.flat_map(|path| path.as_str().split('/'));
    let encoded = segments.map(|segment| format!("/{}", utf8_percent_encode(segment, SEGMENT)));
    Some(encoded.fold(base.to_owned(), |url, segment| url + &segment))
}

/// The output to start reading at: what the first pattern that matches anything finds, shallowest first, then by path.
pub(super) fn primary<'a>(links: &Links, outputs: &'a [Output]) -> Option<&'a Output> {
    let depth = |output: &Output| output.path.as_str().matches('/').count();
    links.primary.iter().find_map(|pattern| {
        let matching = outputs.iter().filter(|output| pattern.matches(&output.path));
        matching.min_by(|a, b| depth(a).cmp(&depth(b)).then_with(|| a.path.cmp(&b.path)))
    })
}
