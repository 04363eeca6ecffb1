//! Any bytes as a path: what is read keeps the rules, stated here another way; nothing panics.

#![no_main]

use distributor::path::{RelPath, ancestors, escape, fold, folded, nested};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let shown = escape(bytes);
    assert!(!shown.chars().any(char::is_control));
    let Ok(text) = std::str::from_utf8(bytes) else {
        assert!(RelPath::from_bytes(bytes).is_err());
        return;
    };
    assert!(RelPath::parse(text).is_ok() == keeps_the_rules(text));
    let folded_once = fold(text);
    assert!(fold(&folded_once) == folded_once, "folding is done after one time");
    assert!(ancestors(text).all(|dir| text.starts_with(dir)));

    let mut paths: Vec<RelPath> = text.split('\n').filter_map(|line| RelPath::parse(line).ok()).collect();
    paths.sort_unstable();
    paths.dedup();
    for clash in nested(&paths) {
        assert!(clash.second.starts_with(&format!("{}/", clash.first)));
    }
    for clash in folded(&paths) {
        let (first, second) = (fold(clash.first), fold(clash.second));
        assert!(first == second || second.starts_with(&format!("{first}/")));
    }
});

fn keeps_the_rules(path: &str) -> bool {
    let control = |c: char| matches!(c as u32, 0..=0x1f | 0x7f..=0x9f);
    let segment = |s: &str| !matches!(s, "" | "." | "..") && s.len() < 256 && !s.starts_with(".distributor");
    path.len() < 1025
        && path != "manifest.json"
        && !path.contains(['\\', '\0'])
        && !path.contains(control)
        && path.split('/').all(segment)
}
