//! Any bytes as a Markdown file: a page, or the place of the first byte that is not UTF-8; nothing panics, the same bytes
//! come out twice, and no script gets past where raw HTML is escaped.

#![no_main]

use distributor::config::{MarkdownToHtml, RawHtml};
use distributor::path::RelPath;
use distributor::timestamp::Timestamp;
use distributor::transform::markdown::{Page, render};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let path = |text: &str| RelPath::parse(text).expect("a path");
    let (source, output, other) = (path("a/b.md"), path("a/b.html"), path("c.html"));
    let created = Timestamp::parse("2026-06-04T11:55:00Z").expect("a time");
    for raw_html in [RawHtml::Escape, RawHtml::Sanitize, RawHtml::Allow] {
        let page = Page {
            source_path: &source,
            output_path: &output,
            created: &created,
            bundle_id: "x",
            settings: &MarkdownToHtml { patterns: Vec::new(), raw_html, template: None },
            output_of: &|path| (path == "c.md").then_some(&other),
        };
        let Ok(made) = render(bytes, &page) else {
            assert!(std::str::from_utf8(bytes).is_err());
            return;
        };
        assert_eq!(render(bytes, &page).as_ref(), Ok(&made));
        let text = String::from_utf8(made).expect("UTF-8");
        // What was sanitised may say so in a text or an attribute.
        assert!(raw_html != RawHtml::Escape || !text.contains("<script") && !text.contains("href=\"javascript:"));
        assert!(text.ends_with("</main>\n</body>\n</html>\n"));
    }
});
