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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Pattern;
    use crate::digest::Fingerprint;
    use crate::state::OutputKind;

    fn links(base_url: Option<&str>, primary: &[&str]) -> Links {
        let primary = primary.iter().map(|pattern| Pattern::parse(pattern).unwrap()).collect();
        Links { base_url: base_url.map(str::to_owned), primary }
    }

    fn at(base: &str, bundle: &str, path: &str) -> String {
        let bundle = if bundle == "." { BundlePath::ROOT } else { RelPath::parse(bundle).unwrap().into() };
        url(&links(Some(base), &[]), &bundle, &RelPath::parse(path).unwrap()).unwrap()
    }

    #[test]
    fn urls_are_joined_with_one_slash_and_encoded_by_segment() {
        for base in ["https://h", "https://h/"] {
            assert_eq!(at(base, ".", "a.html"), "https://h/a.html");
            assert_eq!(at(base, "2026/06", "d/a.html"), "https://h/2026/06/d/a.html");
        }
        assert_eq!(at("https://h:8443/x/y/", "b", "a"), "https://h:8443/x/y/b/a");
        // A base that is encoded already stays as it is.
        assert_eq!(at("https://h/a%20b", ".", "c d"), "https://h/a%20b/c%20d");
        assert_eq!(at("https://h", ".", "ü/%41?#&=+.html"), "https://h/%C3%BC/%2541%3F%23%26%3D%2B.html");
        assert_eq!(at("https://h", ".", "AZaz09-._~"), "https://h/AZaz09-._~", "unreserved characters stay");
        let others = "!\"$'()*,:;<>@[]^`{|}";
        let encoded = at("https://h", ".", others);
        assert!(encoded["https://h/".len()..].bytes().all(|b| b == b'%' || b.is_ascii_hexdigit()), "{encoded}");
        assert_eq!(encoded.len(), "https://h/".len() + 3 * others.len());
    }

    #[test]
    fn without_a_base_there_is_no_url() {
        assert_eq!(url(&links(None, &["*"]), &BundlePath::ROOT, &RelPath::parse("a").unwrap()), None);
    }

    fn found(patterns: &[&str], paths: &[&str]) -> Option<String> {
        let output = |path: &&str| Output {
            path: RelPath::parse(path).unwrap(),
            kind: OutputKind::Source,
            source_path: RelPath::parse(path).unwrap(),
            transform: None,
            url: None,
            content: Fingerprint::of(b""),
        };
        let outputs: Vec<Output> = paths.iter().map(output).collect();
        primary(&links(None, patterns), &outputs).map(|output| output.path.to_string())
    }

    #[test]
    fn the_primary_output_is_the_first_patterns_shallowest_first_path() {
        let usual = ["index.html", "*.html"];
        assert_eq!(found(&usual, &["a.html", "d/index.html"]).as_deref(), Some("d/index.html"), "the pattern first");
        assert_eq!(found(&usual, &["a/b/index.html", "z/index.html"]).as_deref(), Some("z/index.html"), "then depth");
        assert_eq!(found(&usual, &["z.html", "b.html", "a/a.html"]).as_deref(), Some("b.html"), "then the path");
        assert_eq!(found(&usual, &["a/b.html", "a-b/a.html"]).as_deref(), Some("a-b/a.html"), "by its bytes");
        assert_eq!(found(&usual, &["report.md"]), None);
        assert_eq!(found(&[], &["index.html"]), None);
        assert_eq!(found(&["d/*.md", "*"], &["a", "d/x/a.md", "d/b.md"]).as_deref(), Some("d/b.md"));
    }
}
