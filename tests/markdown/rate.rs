//! How fast pages are made, for a release build: `cargo test --release --test markdown rate -- --ignored --nocapture`.

#![allow(clippy::print_stdout)]

use std::fs;
use std::path::Path;
use std::time::Instant;

use distributor::config::RawHtml;

use crate::scene::page;

#[test]
#[ignore = "it measures, and tells nothing of a debug build"]
fn rate() {
    let spec = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/commonmark/spec.txt");
    let spec = fs::read_to_string(spec).unwrap();
    let prose = "A paragraph of *plain* text with a [link](https://example.net/page) and `code` in it, \
                 as most files have them.\n\n- one\n- two\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n";
    for (what, text) in [
        ("specification", spec.repeat(50)),
        ("prose", prose.repeat(50_000)),
        ("one paragraph", "word ".repeat(2_000_000)),
    ] {
        for raw_html in [RawHtml::Escape, RawHtml::Allow, RawHtml::Sanitize] {
            let start = Instant::now();
            let made = page(&text, raw_html).len();
            // Bytes a microsecond are megabytes a second.
            let rate = text.len() as u128 / start.elapsed().as_micros().max(1);
            println!("{what}, {raw_html:?}: {rate} MB/s, {} MB to {} MB", text.len() / 1_000_000, made / 1_000_000);
        }
    }
}
