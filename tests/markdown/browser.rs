//! Hostile pages in a real browser: no script runs, and nothing is fetched but images that the page itself shows.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::net::SocketAddr;
use std::process::{Command, Stdio};

use distributor::config::RawHtml;
use serde::Deserialize;

use crate::hostile::files;
use crate::scene::{SAFE, page};
use crate::server::Server;

/// What the harness tells.
#[derive(Debug, Deserialize)]
struct Found {
    opened: usize,
    /// The pages that a script ran in.
    hits: BTreeSet<String>,
    /// Links that a browser would follow to where it should not.
    links: Vec<String>,
    /// Pages that changed their title.
    titles: Vec<String>,
    /// Pages that went elsewhere.
    moved: Vec<String>,
    /// Where the images in all pages are.
    images: BTreeSet<String>,
}

struct Outcome {
    found: Found,
    /// What was fetched that is neither a page nor an image.
    fetched: Vec<String>,
}

fn chromium() -> Command {
    let mut command = Command::new("chromium");
    command.args([
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-default-apps",
        "--disable-sync",
        "--no-first-run",
    ]);
    command.stdin(Stdio::null()).stderr(Stdio::null());
    command
}

/// Whether the browser works here; where it does not, the test is skipped, aloud.
fn can() -> bool {
    let works = chromium().args(["--dump-dom", "data:text/html,works"]).output();
    let works = works.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).contains("works"));
    assert!(works || std::env::var_os("DISTRIBUTOR_TEST_NO_SKIP").is_none(), "this test needs chromium");
    if !works {
        let _ = std::io::stdout().write_all(b"SKIPPED: it needs chromium\n");
    }
    works
}

/// Opens all pages. Every host leads to the server.
fn open(address: SocketAddr) {
    let profile = tempfile::tempdir().unwrap();
    let status = chromium()
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .arg(format!("--host-resolver-rules=MAP * {address}"))
        .args(["--virtual-time-budget=600000", "--dump-dom", &format!("http://{address}/")])
        .env("HOME", profile.path())
        .stdout(Stdio::null())
        .status()
        .unwrap();
    assert!(status.success(), "{status}");
}

fn outcome(raw_html: RawHtml, with_policy: bool) -> Outcome {
    let mut documents = BTreeMap::new();
    for (name, markdown) in files() {
        let page = page(&markdown, raw_html);
        let policy = page.lines().find(|line| line.contains("Content-Security-Policy")).unwrap().to_owned();
        documents.insert(format!("/page/{name}"), if with_policy { page } else { page.replacen(&policy, "", 1) });
    }
    let pages: BTreeSet<String> = documents.keys().cloned().collect();
    let harness = include_str!("harness.html").replace("PAGES", &serde_json::to_string(&pages).unwrap());
    documents.insert("/".to_owned(), harness);
    let server = Server::start(documents);
    open(server.address);
    let seen = server.seen();
    let found: Found = serde_json::from_str(&seen.done.expect("the harness ends")).unwrap();
    assert_eq!(found.opened, pages.len());
    let root = format!("http://{}", server.address);
    let own = |url: &String| {
        url.strip_prefix(&root).is_some_and(|path| pages.contains(path) || ["/", "/favicon.ico"].contains(&path))
    };
    // The browser itself asks its maker for updates; the pages know only this server and hosts called example.
    let of_pages = |url: &String| url.starts_with(&root) || url.contains("example");
    let fetched =
        seen.urls.into_iter().filter(|url| of_pages(url) && !own(url) && !found.images.contains(url)).collect();
    Outcome { found, fetched }
}

#[test]
fn no_script_runs_and_nothing_is_fetched_but_images() {
    if !can() {
        return;
    }
    for raw_html in SAFE {
        // Without the policy, the page alone must hold.
        for with_policy in [true, false] {
            let Outcome { found, fetched } = outcome(raw_html, with_policy);
            let what = format!("{raw_html:?}, policy {with_policy}");
            assert!(found.hits.is_empty(), "{what}: scripts ran in {:?}", found.hits);
            assert!(found.links.is_empty(), "{what}: {:?}", found.links);
            assert!(found.titles.is_empty() && found.moved.is_empty(), "{what}: {found:?}");
            assert!(fetched.is_empty(), "{what}: fetched {fetched:?}");
        }
    }
}

#[test]
fn the_same_files_do_harm_where_nothing_is_done_about_them() {
    if !can() {
        return;
    }
    let Outcome { found, fetched } = outcome(RawHtml::Allow, false);
    assert!(found.hits.len() >= 30, "scripts ran in {} pages: {:?}", found.hits.len(), found.hits);
    assert!(!found.links.is_empty() && !found.moved.is_empty());
    assert!(fetched.iter().filter(|url| url.contains("/canary/")).count() >= 10, "{fetched:?}");
    // And with all raw HTML let in, the policy keeps scripts out.
    let Outcome { found, .. } = outcome(RawHtml::Allow, true);
    assert!(found.hits.is_empty(), "scripts ran in {:?}", found.hits);
}
