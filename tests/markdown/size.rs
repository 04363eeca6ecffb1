//! Files that are large or nested without end.

use std::time::{Duration, Instant};

use distributor::config::RawHtml;

use crate::scene::{ALL, SAFE, content, page};
use crate::vet::faults;

const SIZE: usize = 100_000;
/// Far more than is needed without optimisation, far less than what grows with the square of the size would take.
const MOST_TIME: Duration = Duration::from_secs(8);

/// `part` again and again, up to the size.
fn filled(part: &str, size: usize) -> String {
    part.repeat(size / part.len())
}

/// Lines that each stand in a deeper list than the one before.
fn staircase(item: &str, size: usize) -> String {
    let mut text = String::new();
    let mut indent = String::new();
    while text.len() < size {
        text += &format!("{indent}{item} x\n");
        indent += &" ".repeat(item.len() + 1);
    }
    text
}

fn numbered(part: &str, size: usize) -> String {
    (0..size / part.len()).map(|at| part.replace('N', &at.to_string())).collect()
}

fn nested(size: usize) -> Vec<(String, String)> {
    let parts = [
        "[",
        "![",
        "]",
        "[](",
        "[a](<",
        "[a][",
        "[^",
        ">",
        "> ",
        "*",
        "* ",
        "**",
        "*a ",
        "*a_ ",
        "**a *b ",
        "_",
        "~",
        "~~a ",
        "`",
        "`a ",
        "``` ",
        "~~~\n",
        "<",
        "<a",
        "</",
        "<!--",
        "<?",
        "<![CDATA[",
        "<a href=\"",
        "&",
        "&#",
        "\\",
        "|",
        "|\n|-\n",
        "a|",
        "- ",
        "1. ",
        "- 1. > ",
        "+ * - ",
        "- [ ] ",
        "#",
        "# a\n",
        "# \n",
        "a\n=\n",
        "\t",
        " ",
        "\n",
        "\r",
        "---\n",
        "[a]: b\n",
        "[a]: <\n",
        "[^a]: b\n",
        "[^a][^b]",
        "> [^a]: ",
        "(",
        "[a](b \"",
        "<b>",
        "<b>\n\n",
        "<div>\n",
        "<svg>",
        "<p>",
        "<b><p>",
        "<table>",
        "<table><tr><td>",
        "<a b=c>",
        "<ul><li>",
        "<dl><dt>",
        "<dd><li>",
        "<select>",
        "<template>",
        "<math><mi>",
        "<style>",
        "<!---->",
        "</b>",
        "<i></b>",
        "<b><i></b>",
        "<font><p>",
        "<nobr>",
        "<object><p>",
        "<frameset>",
        "<svg><style>",
        "<a></p>",
        "<button><p>",
    ];
    let mut nested: Vec<_> = parts.iter().map(|part| ((*part).to_owned(), filled(part, size))).collect();
    nested.extend(["-", "1.", ">"].map(|item| (format!("{item} in {item}"), staircase(item, size))));
    nested.extend(counted(size));
    nested
}

/// Parts that differ, and halves.
fn counted(size: usize) -> Vec<(String, String)> {
    let mut nested = Vec::new();
    for part in [
        "<b id=N>",
        "<p><b id=N>",
        "<font a=N></p>",
        "<a href=N>x",
        "<html N=x>\n\n",
        "# N\n",
        "[^N]\n\n[^N]: x\n\n",
        "[N]: x\n\n[N] ",
    ] {
        nested.push((part.to_owned(), numbered(part, size)));
    }
    let half = |text: String| text.chars().take(size / 2).collect::<String>();
    nested.push(("attributes".to_owned(), format!("<i{}>", numbered(" aN", size))));
    nested.push(("attributes in a block".to_owned(), format!("<div\n{}>", numbered("/aN='>'", size))));
    let many = half(numbered("<b id=N>", size)) + "\n\n" + &half(filled("<p>x", size));
    nested.push(("elements, then paragraphs".to_owned(), many));
    nested.push(("open and closed emphasis".to_owned(), "*a ".repeat(size / 6) + &"b* ".repeat(size / 6)));
    nested.push(("open and closed links".to_owned(), "[".repeat(size / 6) + &"](a)".repeat(size / 6)));
    nested.push(("open and closed images".to_owned(), "![".repeat(size / 6) + &"](a)".repeat(size / 6)));
    nested
}

#[test]
fn nothing_takes_long_or_grows_without_end() {
    for (what, markdown) in nested(SIZE) {
        for raw_html in ALL {
            let start = Instant::now();
            let page = page(&markdown, raw_html);
            let took = start.elapsed();
            assert!(took < MOST_TIME, "{what:?}, {raw_html:?}: {took:?}");
            assert!(page.len() < 12 * SIZE, "{what:?}, {raw_html:?}: {} bytes", page.len());
        }
    }
}

#[test]
fn nothing_that_is_nested_gives_more_than_is_allowed() {
    for (what, markdown) in nested(SIZE / 25) {
        for raw_html in SAFE {
            let faults = faults(&page(&markdown, raw_html), raw_html);
            assert!(faults.is_empty(), "{what:?}, {raw_html:?}: {:?}", &faults[..faults.len().min(5)]);
        }
    }
}

#[test]
fn raw_html_without_end_is_text() {
    let attributes = |count: usize| format!("<i{}>*text*</i>", numbered(" aNNN", 5 * count));
    assert!(content(&attributes(400), RawHtml::Sanitize).contains("<i><em>text</em></i>"));
    assert!(content(&attributes(600), RawHtml::Sanitize).contains("&gt;<em>text</em>&lt;/i&gt;"));
    let roots = |count: usize| numbered("<html N=x>\n\n", 12 * count) + "<b>*text*</b>";
    assert!(content(&roots(400), RawHtml::Sanitize).contains("<b><em>text</em></b>"));
    assert!(content(&roots(600), RawHtml::Sanitize).contains("&lt;b&gt;<em>text</em>&lt;/b&gt;"));
    let elements = |count: usize| "<br>".repeat(count);
    assert!(content(&elements(1000), RawHtml::Sanitize).contains("<br>"));
    assert!(!content(&elements(1_000_001), RawHtml::Sanitize).contains("<br>"));
}

#[test]
fn what_is_nested_too_deep_keeps_its_text() {
    let quotes = content(&format!("{}deep", "> ".repeat(1000)), RawHtml::Escape);
    assert!(quotes.contains("deep") && quotes.matches("<blockquote>").count() == 100);
    assert_eq!(quotes.matches("</blockquote>").count(), 100);
    let elements = |count: usize| format!("{}deep *text*", "<b>".repeat(count));
    assert!(content(&elements(200), RawHtml::Sanitize).contains("<b>deep <em>text</em></b>"));
    // More, and all raw HTML of the file is text.
    assert!(content(&elements(300), RawHtml::Sanitize).contains("&lt;b&gt;deep <em>text</em></p>"));
    // What is closed does not count, with or without end tags that may be left out.
    let many = "<p>a<table><tr><td>b<td>c</table>\n<ul><li>d<li>e</ul>\n<dl><dt>f<dd>g</dl><i>h</i><br>\n".repeat(1000);
    assert!(content(&many, RawHtml::Sanitize).contains("<i>h</i>"));
}
