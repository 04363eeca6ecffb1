use super::*;
use crate::config::Template;

/// A page of a bundle with some Markdown files.
struct Scene {
    source: &'static str,
    raw_html: RawHtml,
    template: Option<&'static str>,
}

const SCENE: Scene = Scene { source: "docs/guide.md", raw_html: RawHtml::Escape, template: None };
const CONTENT: Scene = Scene { template: Some("{{content}}"), ..SCENE };
const SANITIZED: Scene = Scene { raw_html: RawHtml::Sanitize, ..CONTENT };

impl Scene {
    fn make(&self, markdown: &str) -> String {
        let template = self.template.map(|text| Template { path: "t.html".into(), text: text.to_owned() });
        let source_path = RelPath::parse(self.source).unwrap();
        let pages: Vec<(&str, RelPath)> =
            ["index.md", "docs/guide.md", "docs/other.md", "docs/a b/ü.markdown", "docs/100%.md"]
                .map(|path| (path, output_path(&RelPath::parse(path).unwrap()).unwrap()))
                .into();
        let page = Page {
            source_path: &source_path,
            output_path: &output_path(&source_path).unwrap(),
            created: &Timestamp::parse("2026-06-04T11:55:00.50+02:00").unwrap(),
            bundle_id: "example.docs",
            settings: &MarkdownToHtml { patterns: Vec::new(), raw_html: self.raw_html, template },
            output_of: &|path| pages.iter().find(|(source, _)| *source == path).map(|(_, output)| output),
        };
        String::from_utf8(render(markdown.as_bytes(), &page).unwrap()).unwrap()
    }
}

fn title(markdown: &str) -> String {
    Scene { template: Some("{{title}}"), ..SCENE }.make(markdown)
}

#[test]
fn a_title_is_that_of_front_matter_else_the_first_heading_else_the_file_s_name() {
    for (markdown, expected) in [
        ("---\ntitle: From \"front\" & matter\n---\n# Heading", "From &quot;front&quot; &amp; matter"),
        ("---\ntitle: [\n---\n# Heading", "Heading"),
        ("---\nauthor: x\n---\ntext", "guide"),
        ("text\n\n## *Some* `code` [link](x) &amp; ![image](y)\n\n# Later", "Some code link &amp; image"),
        ("Two\nlines\n===", "Two lines"),
        ("#\n\n# Next", "Next"),
        ("# A <b>bold</b> word", "A &lt;b&gt;bold&lt;/b&gt; word"),
        ("# Note[^1]\n\n[^1]: x", "Note"),
        ("    # code", "guide"),
        ("", "guide"),
    ] {
        assert_eq!(title(markdown), expected, "{markdown}");
    }
    let named = |source| Scene { source, template: Some("{{title}}"), ..SCENE }.make("");
    assert_eq!(named("a.b/read.me.md"), "read.me");
    assert_eq!(named(".md"), ".md");
    assert_eq!(Scene { template: Some("{{title}}"), ..SANITIZED }.make("# A <b>bold</b> word"), "A bold word");
}

#[test]
fn headings_have_the_anchors_that_github_gives_them() {
    let made = CONTENT.make("# What's *new*?\n\n# What's new?\n\n## `a_b` <i>c</i>\n\n### !?\n");
    assert_eq!(
        made,
        "<h1 id=\"whats-new\">What's <em>new</em>?</h1>\n<h1 id=\"whats-new-1\">What's new?</h1>\n\
         <h2 id=\"a_b-c\"><code>a_b</code> &lt;i&gt;c&lt;/i&gt;</h2>\n<h3>!?</h3>\n"
    );
    assert_eq!(CONTENT.make("# x {#y .z onclick=w}"), "<h1 id=\"x-y-z-onclickw\">x {#y .z onclick=w}</h1>\n");
}

#[test]
fn front_matter_is_not_shown() {
    assert_eq!(CONTENT.make("\u{feff}---\r\ntitle: x\r\n---\r\ntext\r\n"), "<p>text</p>\n");
    assert_eq!(CONTENT.make("---\ntitle: x\n---\ntext"), "<p>text</p>\n");
    assert!(SCENE.make("---\ntitle: <x>\n---\n## Part").contains("<main>\n<h1>&lt;x&gt;</h1>\n<h2 id=\"part\">"));
    assert!(!SCENE.make("---\ntitle: x\n---\n# Part").contains("<h1>x"));
    assert!(SCENE.make("---\nlang: de-AT\n---\n").contains("<html lang=\"de-AT\">"));
    assert!(SCENE.make("---\nlang: <de>\n---\n").contains("<html lang=\"en\">"));
}

#[test]
fn links_to_markdown_follow_it_to_its_page() {
    for (target, expected) in [
        ("other.md", "other.html"),
        ("./other.md#part", "other.html#part"),
        ("other.md?a=b&c#part", "other.html?a=b&amp;c#part"),
        ("../index.md", "../index.html"),
        ("../docs/../docs/guide.md", "guide.html"),
        ("a%20b/%C3%BC.markdown", "a%20b/%C3%BC.html"),
        ("<a b/ü.markdown>", "a%20b/%C3%BC.html"),
        ("100%25.md", "100%25.html"),
        // What is not a file of the bundle, or not its Markdown, stays as it is.
        ("missing.md", "missing.md"),
        ("../../index.md", "../../index.md"),
        ("/docs/other.md", "/docs/other.md"),
        ("https://example.net/other.md", "https://example.net/other.md"),
        ("other.MD", "other.MD"),
        ("other.md/", "other.md/"),
        ("%FF.md", "%FF.md"),
        ("#part", "#part"),
        ("", ""),
    ] {
        for scene in [CONTENT, SANITIZED, Scene { raw_html: RawHtml::Allow, ..CONTENT }] {
            let made = scene
                .make(&format!("[x]({target})\n\n[y][]\n\n[y]: {}", if target.is_empty() { "<>" } else { target }));
            assert_eq!(made.matches(&format!("<a href=\"{expected}\">")).count(), 2, "{target}: {made}");
        }
    }
    let image = CONTENT.make("![x](other.md)");
    assert!(image.contains("src=\"other.md\""), "{image}");
    let root = Scene { source: "index.md", ..CONTENT }.make("[x](docs/other.md)");
    assert!(root.contains("href=\"docs/other.html\""), "{root}");
}

#[test]
fn a_target_that_is_not_allowed_loses_the_link_and_keeps_the_text() {
    for scene in [CONTENT, SANITIZED] {
        assert_eq!(scene.make("[a *b*](javascript:x) c"), "<p>a <em>b</em> c</p>\n");
        assert_eq!(scene.make("![a *b* `c`](javascript:x \"t\") d"), "<p>a b c d</p>\n");
        assert_eq!(scene.make("[![a](data:text/html,x)](vbscript:x)"), "<p>a</p>\n");
        assert_eq!(scene.make("<ftp://example.net>"), "<p>ftp://example.net</p>\n");
    }
    let allowed = Scene { raw_html: RawHtml::Allow, ..CONTENT };
    assert_eq!(allowed.make("[a](ftp://h/ 't')"), "<p><a href=\"ftp://h/\" title=\"t\">a</a></p>\n");
}

#[test]
fn raw_html_is_escaped_sanitised_or_allowed() {
    let text = "a <b onclick=x>b</b>\n\n<div>\n*c*\n</div>\n\n<script>d</script>\n";
    assert_eq!(
        CONTENT.make(text),
        "<p>a &lt;b onclick=x&gt;b&lt;/b&gt;</p>\n<p>&lt;div&gt;\n*c*\n&lt;/div&gt;</p>\n<p>&lt;script&gt;d&lt;/script&gt;</p>\n"
    );
    assert_eq!(SANITIZED.make(text), "<p>a <b>b</b></p>\n<div>\n*c*\n</div>\n\n");
    let allowed = Scene { raw_html: RawHtml::Allow, ..CONTENT };
    assert_eq!(allowed.make(text), "<p>a <b onclick=x>b</b></p>\n<div>\n*c*\n</div>\n<script>d</script>\n");
}

#[test]
fn elements_that_span_blocks_are_sanitised_as_a_whole() {
    let made = SANITIZED.make("<details>\n<summary>More</summary>\n\n# Part\n\n- [x] done\n\n</details>\n\nafter");
    assert_eq!(
        made,
        "<details>\n<summary>More</summary>\n<h1 id=\"part\">Part</h1>\n<ul>\n\
         <li><input type=checkbox disabled checked> done</li>\n</ul>\n</details>\n<p>after</p>\n"
    );
}

#[test]
fn sanitising_keeps_what_markdown_made() {
    let text = "# One\n\n| a | b |\n|:-:|--:|\n| 1 | 2 |\n\n- [ ] open\n- [x] done\n\nnote[^n] ~~gone~~\n\n```rust\nx\n```\n\n\
                3. three\n\n[up](#one) [note](#fn:1)\n\n[^n]: text\n";
    let plain = |html: String| html.replace(" />", ">").replace("=\"\"", "");
    assert_eq!(plain(SANITIZED.make(&format!("<hr>\n\n{text}"))), format!("<hr>\n{}", plain(CONTENT.make(text))));
    assert_eq!(SANITIZED.make(text), CONTENT.make(text), "there is no HTML to sanitise");
}

#[test]
fn raw_html_takes_no_id_of_ours_and_may_be_linked_to() {
    let made = SANITIZED.make("# Top\n\n<a id=\"top\"></a><a name=x class=y>z</a> [x](#x) [top](#top) <input name=q>");
    assert_eq!(
        made,
        "<h1 id=\"top\">Top</h1>\n<p><a id=\"user-content-top\"></a><a name=\"user-content-x\">z</a> \
         <a href=\"#user-content-x\">x</a> <a href=\"#top\">top</a> </p>\n"
    );
}

#[test]
fn footnotes_are_numbered_as_they_are_referred_to() {
    let made = CONTENT.make("a[^B] b[^a] c[^b]\n\n[^a]: *A*\n[^b]: B\n\n    more\n[^c]: nobody's\n\n# fn:1\n");
    assert_eq!(
        made,
        "<p>a<sup><a id=\"fnref:1\" href=\"#fn:1\">1</a></sup> b<sup><a id=\"fnref:2\" href=\"#fn:2\">2</a></sup> \
         c<sup><a id=\"fnref:1:2\" href=\"#fn:1\">1</a></sup></p>\n<h1 id=\"fn1\">fn:1</h1>\n\
         <section class=\"footnotes\" role=\"doc-endnotes\">\n<ol>\n<li id=\"fn:1\">\n<p>B</p>\n<p>more \
         <a href=\"#fnref:1\" role=\"doc-backlink\">↩\u{fe0e}</a> <a href=\"#fnref:1:2\" role=\"doc-backlink\">↩\u{fe0e}\
         <sup>2</sup></a></p>\n</li>\n<li id=\"fn:2\">\n<p><em>A</em> <a href=\"#fnref:2\" role=\"doc-backlink\">↩\u{fe0e}</a>\
         </p>\n</li>\n<li id=\"fn:3\">\n<p>nobody's</p>\n</li>\n</ol>\n</section>\n"
    );
    assert_eq!(CONTENT.make("a[^x]"), "<p>a[^x]</p>\n");
}

#[test]
fn templates_are_filled_in_once() {
    let scene = Scene {
        template: Some(
            "<t a='{{ title }}'>{{title}}</t> {{source_path}} {{\tcreated\n}} {{bundle_id}} { {{content}} }} {{",
        ),
        ..SCENE
    };
    assert_eq!(
        scene.make("# It's {{content}} & \"{{ bundle_id }}\""),
        "<t a='It&#39;s {{content}} &amp; &quot;{{ bundle_id }}&quot;'>It&#39;s {{content}} &amp; &quot;{{ bundle_id }}&quot;\
         </t> docs/guide.md 2026-06-04T11:55:00.50+02:00 example.docs \
         { <h1 id=\"its-content---bundle_id-\">It's {{content}} &amp; &quot;{{ bundle_id }}&quot;</h1>\n }} {{"
    );
}

#[test]
fn a_page_is_whole_has_no_script_and_a_policy_for_its_style() {
    let page = SCENE.make("# Title\n");
    assert!(page.starts_with("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"));
    assert!(page.ends_with("<main>\n<h1 id=\"title\">Title</h1>\n</main>\n</body>\n</html>\n"));
    assert!(page.contains("<title>Title</title>") && page.contains("width=device-width") && !page.contains("<script"));
    assert!(page.contains("content=\"default-src 'none'; style-src 'sha256-"));
    let style = page.split_once("<style>").and_then(|(_, rest)| rest.split_once("</style>")).unwrap().0;
    for part in ["prefers-color-scheme: dark", "@media print", "overflow-x: auto", "max-width: 100%"] {
        assert!(style.contains(part), "{part}");
    }
    assert!(!style.contains("url(") && !style.contains("@import") && !style.contains('\r'));
    assert_eq!(page, SCENE.make("# Title\n"));
}

#[test]
fn what_is_not_utf_8_is_refused_with_its_place() {
    let page = Page {
        source_path: &RelPath::parse("a.md").unwrap(),
        output_path: &RelPath::parse("a.html").unwrap(),
        created: &Timestamp::parse("2026-06-04T11:55:00Z").unwrap(),
        bundle_id: "x",
        settings: &MarkdownToHtml { patterns: Vec::new(), raw_html: RawHtml::Escape, template: None },
        output_of: &|_| None,
    };
    assert_eq!(render(b"\xff", &page), Err(NotUtf8 { offset: 0 }));
    assert_eq!(render(b"abc\xc3\xbc\xc3(", &page), Err(NotUtf8 { offset: 5 }));
    assert_eq!(render(b"---\ntitle: \xe4\n---\n", &page), Err(NotUtf8 { offset: 11 }));
}

#[test]
fn a_page_is_called_after_its_file() {
    for (source, expected) in [
        ("report.md", "report.html"),
        ("a.b/c.d.markdown", "a.b/c.d.html"),
        ("README", "README.html"),
        ("a.b/README", "a.b/README.html"),
        (".md", ".md.html"),
        ("a.", "a.html"),
    ] {
        assert_eq!(output_path(&RelPath::parse(source).unwrap()).unwrap().as_str(), expected);
    }
    assert_eq!(output_path(&RelPath::parse(&"x".repeat(255)).unwrap()), Err(Fault::LongSegment));
}

#[test]
fn a_file_without_raw_html_is_the_same_page_sanitised() {
    let markdown = "# A & B\n\n- [x] *one*<br>\n\n[a](#b) ![i](i.png) \"q\"[^1]\n\n|a|\n|-|\n|b|\n\n[^1]: n\n";
    let plain = markdown.replace("<br>", "");
    assert_eq!(SANITIZED.make(&plain), CONTENT.make(&plain));
    assert_ne!(SANITIZED.make(markdown), CONTENT.make(markdown));
}

#[test]
fn a_footnote_leads_back_to_the_first_hundred_places() {
    let page = CONTENT.make(&format!("{}\n\n[^a]: note", "[^a]".repeat(1000)));
    assert_eq!(page.matches(" href=\"#fn:1\"").count(), 1000);
    assert_eq!(page.matches("<a id=\"fnref:1").count(), 100);
    assert_eq!(page.matches(" href=\"#fnref:1").count(), 100);
}
