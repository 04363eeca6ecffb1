//! What holds for any file.

use distributor::config::MarkdownToHtml;
use distributor::path::RelPath;
use distributor::timestamp::Timestamp;
use distributor::transform::markdown::{Page, output_path, render};
use proptest::prelude::*;

use crate::scene::{ALL, SAFE, page};
use crate::vet::faults;

/// What Markdown and HTML are made of.
const PARTS: &[&str] = &[
    "a",
    "word",
    " ",
    "  ",
    "\t",
    "\n",
    "\n\n",
    "\r\n",
    "    ",
    "#",
    "# ",
    "===",
    "---",
    "***",
    "- ",
    "* ",
    "1. ",
    "> ",
    "```",
    "~~~",
    "`",
    "*",
    "**",
    "_",
    "~~",
    "[",
    "]",
    "(",
    ")",
    "![",
    "](",
    "[^",
    "]: ",
    "[ ] ",
    "[x] ",
    "|",
    "|:-:|--|",
    "\\",
    "&",
    "&amp;",
    "&#106;",
    "&colon;",
    "<",
    ">",
    "</",
    "/>",
    "<!--",
    "-->",
    "<?",
    "<![CDATA[",
    "\"",
    "'",
    "=",
    "{",
    "}",
    "{{title}}",
    "javascript:",
    "data:image/png,",
    "http://h/",
    "//",
    "<script>",
    "</script>",
    "<style>",
    "<b>",
    "</b>",
    "<div title=\"",
    "<a href='",
    "<img src=x onerror=y>",
    "<svg>",
    "<math>",
    "<table>",
    "<td>",
    "<p>",
    "<ul>",
    "<li>",
    "<select>",
    "<template>",
    "<textarea>",
    "<title>",
    "<h1 id=a>",
    "<input>",
    "<form>",
    "title: ",
    "\0",
    "\u{1}",
    "\u{7f}",
    "\u{85}",
    "\u{a0}",
    "\u{feff}",
    "\u{2028}",
    "\u{202e}",
    "ü",
    "e\u{301}",
    "🚀",
    "ſ",
];

fn markdown() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => prop::collection::vec(prop::sample::select(PARTS), 0..60).prop_map(|parts| parts.concat()),
        1 => ".{0,200}",
        1 => any::<String>(),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_gives_a_whole_page_with_nothing_that_is_not_allowed(markdown in markdown()) {
        for raw_html in SAFE {
            let page = page(&markdown, raw_html);
            prop_assert_eq!(faults(&page, raw_html), [""; 0], "{:?}", raw_html);
        }
    }

    #[test]
    fn any_bytes_give_a_page_or_the_place_of_the_first_wrong_one(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        for raw_html in ALL {
            let source = RelPath::parse("a.md").unwrap();
            let page = Page {
                source_path: &source,
                output_path: &output_path(&source).unwrap(),
                created: &Timestamp::parse("2026-06-04T11:55:00Z").unwrap(),
                bundle_id: "x",
                settings: &MarkdownToHtml { patterns: Vec::new(), raw_html, template: None },
                output_of: &|_| None,
            };
            match (render(&bytes, &page), std::str::from_utf8(&bytes)) {
                (Ok(first), Ok(_)) => prop_assert_eq!(first, render(&bytes, &page).unwrap()),
                (Err(error), Err(expected)) => prop_assert_eq!(error.offset, expected.valid_up_to()),
                (made, _) => prop_assert!(false, "{:?}", made.map(|bytes| bytes.len())),
            }
        }
    }

    #[test]
    fn any_name_gives_a_name_that_ends_in_html(path in "[a-z./]{1,20}") {
        if let Ok(path) = RelPath::parse(&path) {
            let output = output_path(&path).unwrap();
            prop_assert!(output.file_name().rsplit_once('.').is_some_and(|(stem, end)| !stem.is_empty() && end == "html"));
            prop_assert_eq!(output.parent(), path.parent());
        }
    }
}
