//! The page around the content.

use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};

use super::{Page, escape};

const STYLE: &str = include_str!("page.css");

/// The built-in page. Its policy allows its own style, images, and nothing else. A title that is not in the content is
/// shown above it.
pub(super) fn built_in(title: &str, is_shown: bool, lang: &str, content: &str) -> String {
    let mut page = String::with_capacity(content.len() + STYLE.len() + 1024);
    page.push_str("<!doctype html>\n<html lang=\"");
    escape::text(&mut page, lang);
    page.push_str("\">\n<head>\n<meta charset=\"utf-8\">\n");
    let _ = writeln!(
        page,
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'sha256-{}'; img-src 'self' \
         http: https: data:; base-uri 'none'; form-action 'none'\">",
        base64(&Sha256::digest(STYLE))
    );
    page.push_str("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>");
    escape::text(&mut page, title);
    page.push_str("</title>\n<style>");
    page.push_str(STYLE);
    page.push_str("</style>\n</head>\n<body>\n<main>\n");
    if is_shown {
        page.push_str("<h1>");
        escape::text(&mut page, title);
        page.push_str("</h1>\n");
    }
    page.push_str(content);
    page.push_str("</main>\n</body>\n</html>\n");
    page
}

/// A template with its placeholders filled in; those in values stay what they are.
pub(super) fn fill(template: &str, page: &Page<'_>, title: &str, content: &str) -> String {
    let mut filled = String::with_capacity(template.len() + content.len());
    let mut rest = template;
    while let Some((before, name, after)) = placeholder(rest) {
        filled.push_str(before);
        match name {
            "content" => filled.push_str(content),
            "title" => escape::value(&mut filled, title),
            "source_path" => escape::value(&mut filled, page.source_path.as_str()),
            "created" => escape::value(&mut filled, &page.created.to_string()),
            "bundle_id" => escape::value(&mut filled, page.bundle_id),
            _ => filled.push_str(&rest[before.len()..rest.len() - after.len()]),
        }
        rest = after;
    }
    filled.push_str(rest);
    filled
}

/// The first placeholder of `text`: what stands before it, its name, what follows it.
fn placeholder(text: &str) -> Option<(&str, &str, &str)> {
    let opened = text.find("{{")?;
    let end = opened + text[opened..].find("}}")?;
    let start = text[..end].rfind("{{")?;
    Some((&text[..start], text[start + 2..end].trim(), &text[end + 2..]))
}

/// Base64 (RFC 4648, section 4).
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let bits = chunk.iter().fold(0_usize, |bits, byte| bits << 8 | usize::from(*byte)) << (8 * (3 - chunk.len()));
        for digit in 0..4 {
            let known = digit <= chunk.len();
            text.push(if known { char::from(DIGITS[bits >> (18 - 6 * digit) & 63]) } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    #[test]
    fn base64_is_that_of_the_rfc() {
        for (bytes, text) in [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")] {
            assert_eq!(super::base64(bytes.as_bytes()), text);
        }
    }
}
