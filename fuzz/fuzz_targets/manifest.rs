//! Any bytes as a manifest: what is read keeps the rules, and reads back as itself.

#![no_main]

use distributor::bundle::{Manifest, content_digest};
use distributor::id::is_id;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    match Manifest::parse(bytes) {
        Err(error) => assert!(!error.detail.is_empty(), "an error says what is wrong"),
        Ok(manifest) => {
            assert!(is_id(&manifest.id));
            assert!((1..=100_000).contains(&manifest.files.len()));
            assert!(manifest.digest == content_digest(&manifest.files));
            let mut paths: Vec<&str> = manifest.files.iter().map(|file| file.path.as_str()).collect();
            paths.sort_unstable();
            assert!(paths.windows(2).all(|pair| pair[0] != pair[1]), "a path stands once");
            for path in &paths {
                let above = |other: &&str| path.starts_with(&format!("{other}/"));
                assert!(paths.len() > 1_000 || !paths.iter().any(above), "no path is a directory of another");
            }
            let again = Manifest::parse(manifest.to_json().as_bytes()).expect("what is written is read");
            assert!(again.matches(&manifest) && manifest.matches(&again));
        }
    }
});
