//! The examples of the `CommonMark` specification.

use std::fs;
use std::path::Path;

use distributor::config::RawHtml;

use crate::scene::{SAFE, content, page};
use crate::vet::faults;

struct Example {
    number: usize,
    markdown: String,
    html: String,
}

fn examples() -> Vec<Example> {
    let spec = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/commonmark/spec.txt");
    let spec = fs::read_to_string(spec).unwrap();
    let fence = "`".repeat(32);
    let (begin, end) = (format!("\n{fence} example\n"), format!("\n{fence}\n"));
    let read = |(at, part): (usize, &str)| {
        let (example, _) = part.split_once(&end).unwrap();
        let example = format!("\n{example}\n").replace('→', "\t");
        let (markdown, html) = example.split_once("\n.\n").unwrap();
        Example { number: at + 1, markdown: format!("{}\n", &markdown[1..]), html: html.to_owned() }
    };
    spec.split(&begin).skip(1).enumerate().map(read).collect()
}

/// Without the ids of headings.
fn plain(html: &str) -> String {
    let mut plain = String::new();
    let mut rest = html;
    while let Some(at) = rest.find(" id=\"") {
        let tag = &rest[..at];
        let is_heading = tag.len() >= 3 && tag[tag.len() - 3..].starts_with("<h");
        let end = at + 5 + rest[at + 5..].find('"').unwrap() + 1;
        plain += if is_heading { &rest[..at] } else { &rest[..end] };
        rest = &rest[end..];
    }
    plain + rest
}

/// Examples that give something else, with the reason.
const DIFFERENT: &[(usize, &str)] =
    &[(96, "a block between two lines of dashes at the very start is front matter"), (98, "so is an empty one")];

#[test]
fn every_example_gives_the_html_of_the_specification() {
    let examples = examples();
    assert_eq!(examples.len(), 652);
    let mut failed = Vec::new();
    for Example { number, markdown, html } in &examples {
        let made = plain(&content(markdown, RawHtml::Allow));
        if (made == *html) == DIFFERENT.iter().any(|(different, _)| different == number) {
            failed.push(format!("{number}\n{markdown}\n--- expected\n{html}\n--- made\n{made}"));
        }
        // With a line before them, they are no front matter.
        let made = plain(&content(&format!("\n{markdown}"), RawHtml::Allow));
        if made != *html {
            failed.push(format!("{number} after an empty line\n--- made\n{made}"));
        }
    }
    assert!(failed.is_empty(), "{} examples differ\n{}", failed.len(), failed.join("\n=====\n"));
}

#[test]
fn no_example_gives_more_than_is_allowed() {
    for Example { number, markdown, .. } in &examples() {
        for raw_html in SAFE {
            assert_eq!(faults(&page(markdown, raw_html), raw_html), [""; 0], "{number}, {raw_html:?}\n{markdown}");
        }
    }
}
