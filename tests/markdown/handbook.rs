//! The example bundle with Markdown: its pages, as a destination would have them, in target/tmp/handbook/.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use distributor::config::{MarkdownToHtml, RawHtml};
use distributor::path::RelPath;
use distributor::timestamp::Timestamp;
use distributor::transform::markdown::{Page, output_path, render};

use crate::tree::parse;
use crate::vet::faults;

fn bundle() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/bundles/handbook")
}

/// The files of the bundle, as its manifest lists them.
fn files() -> Vec<String> {
    let manifest: serde_json::Value =
        serde_json::from_slice(&fs::read(bundle().join("manifest.json")).unwrap()).unwrap();
    let files = manifest["files"].as_array().unwrap();
    files.iter().map(|file| file["path"].as_str().unwrap().to_owned()).collect()
}

/// Every page by its path, and all paths.
fn publish() -> (BTreeMap<String, String>, BTreeSet<String>) {
    let is_markdown = |path: &&String| path.rsplit_once('.').is_some_and(|(_, end)| end == "md");
    let outputs: BTreeMap<String, RelPath> = files()
        .iter()
        .filter(is_markdown)
        .map(|path| (path.clone(), output_path(&RelPath::parse(path).unwrap()).unwrap()))
        .collect();
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("handbook");
    let mut paths: BTreeSet<String> = files().into_iter().collect();
    for path in &paths {
        fs::create_dir_all(target.join(path).parent().unwrap()).unwrap();
        fs::copy(bundle().join(path), target.join(path)).unwrap();
    }
    let mut pages = BTreeMap::new();
    for (source, output) in &outputs {
        let page = Page {
            source_path: &RelPath::parse(source).unwrap(),
            output_path: output,
            created: &Timestamp::parse("2026-06-04T11:55:00Z").unwrap(),
            bundle_id: "handbook.example",
            settings: &MarkdownToHtml { patterns: Vec::new(), raw_html: RawHtml::Escape, template: None },
            output_of: &|path| outputs.get(path),
        };
        let page = String::from_utf8(render(&fs::read(bundle().join(source)).unwrap(), &page).unwrap()).unwrap();
        fs::write(target.join(output.as_str()), &page).unwrap();
        pages.insert(output.as_str().to_owned(), page);
    }
    paths.extend(pages.keys().cloned());
    (pages, paths)
}

/// The path that a relative URL leads to from a page, and its fragment.
fn resolve(page: &str, url: &str) -> (String, Option<String>) {
    let (path, fragment) = url.split_once('#').map_or((url, None), |(path, id)| (path, Some(id.to_owned())));
    if path.is_empty() {
        return (page.to_owned(), fragment);
    }
    let mut segments: Vec<&str> = page.split('/').collect();
    segments.pop();
    for segment in path.split('/') {
        match segment {
            ".." => assert!(segments.pop().is_some(), "{url} leads out of the bundle"),
            segment => segments.push(segment),
        }
    }
    (segments.join("/"), fragment)
}

#[test]
fn the_example_bundle_is_valid() {
    let output =
        Command::new(env!("CARGO_BIN_EXE_distributor-validate")).arg(bundle()).arg("--strict").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

#[test]
fn every_link_of_the_example_leads_somewhere() {
    let (pages, paths) = publish();
    assert_eq!(pages.len(), 3);
    let mut links = 0;
    for (path, page) in &pages {
        assert_eq!(faults(page, RawHtml::Escape), [""; 0], "{path}");
        for element in parse(page).elements {
            let Some(url) = element.attributes.get("href").or(element.attributes.get("src")) else { continue };
            if url.starts_with("https:") {
                continue;
            }
            links += 1;
            let (target, fragment) = resolve(path, url);
            assert!(paths.contains(&target), "{path}: {url} leads to {target}");
            if let Some(id) = fragment {
                assert!(pages[&target].contains(&format!(" id=\"{id}\"")), "{path}: {url}");
            }
            assert!(!target.ends_with("md"), "{path}: {url} leads to Markdown");
        }
    }
    assert!(links >= 12, "{links}");
}
