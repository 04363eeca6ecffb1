//! The files of testdata/markdown/hostile/, told apart by what an HTML parser makes of their pages.

use std::fs;
use std::path::Path;

use crate::scene::{SAFE, page};
use crate::vet::faults;

/// Every file with its name.
pub(crate) fn files() -> Vec<(String, String)> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/markdown/hostile");
    let mut files: Vec<(String, String)> = fs::read_dir(dir)
        .unwrap()
        .map(|entry| {
            let path = entry.unwrap().path();
            (path.file_stem().unwrap().to_str().unwrap().to_owned(), fs::read_to_string(path).unwrap())
        })
        .collect();
    files.sort();
    files
}

#[test]
fn no_hostile_file_gives_a_page_with_more_than_is_allowed() {
    let files = files();
    assert!(files.len() >= 60, "{}", files.len());
    let mut found = Vec::new();
    for (name, markdown) in &files {
        for raw_html in SAFE {
            let page = page(markdown, raw_html);
            found.extend(faults(&page, raw_html).iter().map(|fault| format!("{name}, {raw_html:?}: {fault}")));
        }
    }
    assert!(found.is_empty(), "{} faults\n{}", found.len(), found.join("\n"));
}
