//! Where links and images may point, and how links between the Markdown files of a bundle follow them.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

use super::Page;

/// What points somewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A link.
    Link,
    /// An image.
    Image,
}

/// The schemes of links.
pub(super) const LINK_SCHEMES: &[&str] = &["http", "https", "mailto", "tel"];
/// The schemes of images; of `data:` only what [`IMAGE_DATA`] lists.
pub(super) const IMAGE_SCHEMES: &[&str] = &["http", "https", "data"];
/// The media types of images that stand in the page itself.
const IMAGE_DATA: &[&str] = &["image/png", "image/jpeg", "image/gif", "image/webp"];

/// Whether a target, its entities decoded, is one that is kept.
pub(super) fn is_allowed(kind: Kind, target: &str) -> bool {
    // A browser passes over tabs and line ends; what else is unseen is no part of a scheme.
    let mut seen = target.chars().filter(|c| !c.is_whitespace() && !c.is_control());
    let mut scheme = String::new();
    loop {
        match seen.next() {
            None | Some('/' | '?' | '#') => return true,
            Some(':') => break,
            Some(_) if scheme.len() > 32 => return false,
            Some(c) => scheme.extend(c.to_lowercase()),
        }
    }
    match kind {
        Kind::Link => LINK_SCHEMES.contains(&scheme.as_str()),
        Kind::Image if scheme == "data" => {
            let media: String = seen.take(32).take_while(|c| !";,".contains(*c)).collect();
            IMAGE_DATA.contains(&media.to_ascii_lowercase().as_str())
        }
        Kind::Image => IMAGE_SCHEMES.contains(&scheme.as_str()),
    }
}

/// What a segment of a path keeps in a URL.
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'~')
    .remove(b'!')
    .remove(b'$')
    .remove(b'(')
    .remove(b')')
    .remove(b'*')
    .remove(b'+')
    .remove(b',')
    .remove(b';')
    .remove(b'=')
    .remove(b'@');

/// The target of a link to another Markdown file of the bundle, where the destination publishes that file's page.
pub(super) fn follow(page: &Page<'_>, target: &str) -> Option<String> {
    let (path, rest) = target.split_at(target.find(['?', '#']).unwrap_or(target.len()));
    if path.is_empty() || path.starts_with('/') || path.contains(['\\', ':']) {
        return None;
    }
    let path = percent_decode_str(path).decode_utf8().ok()?;
    let output = (page.output_of)(&join(page.source_path.parent(), &path)?)?;
    Some(relative(page.output_path.parent(), output.as_str()) + rest)
}

/// `path` as seen from the directory `base`, below the root; none where it leads out of it.
fn join(base: Option<&str>, path: &str) -> Option<String> {
    let mut segments: Vec<&str> = base.map_or_else(Vec::new, |base| base.split('/').collect());
    for segment in path.split('/') {
        match segment {
            "." => {}
            ".." => {
                segments.pop()?;
            }
            segment => segments.push(segment),
        }
    }
    Some(segments.join("/"))
}

/// The URL of `path` relative to a page in the directory `base`.
fn relative(base: Option<&str>, path: &str) -> String {
    let base: Vec<&str> = base.map_or_else(Vec::new, |base| base.split('/').collect());
    let path: Vec<&str> = path.split('/').collect();
    let above = base.iter().zip(&path[..path.len() - 1]).take_while(|(a, b)| a == b).count();
    let up = std::iter::repeat_n("..".to_owned(), base.len() - above);
    let down = path[above..].iter().map(|segment| utf8_percent_encode(segment, SEGMENT).to_string());
    up.chain(down).collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_kept_by_allow_list() {
        for target in ["", "a", "a/b:c", "./x:y", "?a:b", "#a:b", "//h/x", "HTTPS://h", "mailto:a@b", "tel:1", "http:x"]
        {
            assert!(is_allowed(Kind::Link, target), "{target}");
        }
        let hostile = [
            "javascript:alert(1)",
            " javascript:alert(1)",
            "JaVa\tScr\nipt\0:x",
            "\u{1}javascript:x",
            "java\u{200b}script:x",
            "java\u{2028}script:x",
            "vbscript:x",
            "data:text/html,x",
            "data:image/png;base64,x",
            "file:///etc/passwd",
            "blob:x",
            "c:\\x",
            "ſftp:x",
            ":x",
            &("a".repeat(1 << 20) + ":x"),
        ];
        for target in hostile {
            assert!(!is_allowed(Kind::Link, target), "{target}");
        }
    }

    #[test]
    fn images_are_kept_by_allow_list() {
        for target in ["a.png", "https://h/a.png", "data:image/png;base64,x", "DATA:Image/GIF,x", "data: image/webp;x"]
        {
            assert!(is_allowed(Kind::Image, target), "{target}");
        }
        for target in
            ["data:image/svg+xml,x", "data:text/html,x", "data:", "data:image/pngx,", "mailto:a", "javascript:x"]
        {
            assert!(!is_allowed(Kind::Image, target), "{target}");
        }
    }

    #[test]
    fn paths_are_joined_and_told_apart() {
        assert_eq!(join(None, "a.md").as_deref(), Some("a.md"));
        assert_eq!(join(Some("a/b"), "../c/./d.md").as_deref(), Some("a/c/d.md"));
        assert_eq!(join(Some("a"), "../../x"), None);
        assert_eq!(relative(None, "a/b c.html"), "a/b%20c.html");
        assert_eq!(relative(Some("a"), "a/b.html"), "b.html");
        assert_eq!(relative(Some("a/b"), "a/c/d.html"), "../c/d.html");
        assert_eq!(relative(Some("a"), "a:b.html"), "../a%3Ab.html");
    }
}
