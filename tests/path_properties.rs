//! The path rules against rules stated another way, on paths that break them often.

use std::collections::BTreeSet;

use distributor::path::{BundlePath, RelPath, ancestors, escape, fold, folded, nested, plain};
use proptest::prelude::*;
use unicode_normalization::UnicodeNormalization;

/// Whether `path` keeps the rules of distributor-bundle(5), read off the page and not off the code.
fn keeps_the_rules(path: &str) -> bool {
    let segments: Vec<&str> = path.split('/').collect();
    let allowed = |c: char| c != '\\' && !('\u{0}'..='\u{1f}').contains(&c) && !('\u{7f}'..='\u{9f}').contains(&c);
    let segment = |s: &&str| {
        let bytes = s.as_bytes();
        (1..=255).contains(&bytes.len()) && bytes != b"." && bytes != b".." && !bytes.starts_with(b".distributor")
    };
    path.len() <= 1024 && path.chars().all(allowed) && segments.iter().all(segment) && path != "manifest.json"
}

/// A segment that is now and then odd, long or forbidden.
fn segment() -> impl Strategy<Value = String> {
    let odd = prop::sample::select(vec![
        "",
        ".",
        "..",
        "...",
        ".distributor",
        ".distributor.json",
        ".distribut",
        "manifest.json",
        "a\\b",
        "a\0",
        "\u{7f}",
        "\u{80}",
        "\u{9f}",
        "\u{a0}",
        "\n",
        " ",
        "ü",
        "u\u{308}",
        "ß",
        "SS",
        "ſ",
        "ς",
        "K",
        "\u{202e}",
        "~",
        "-rf",
    ]);
    let long = prop::sample::select(vec![254_usize, 255, 256]).prop_map(|length| "x".repeat(length));
    prop_oneof![6 => "[a-cA-C]{1,2}", 3 => odd.prop_map(str::to_owned), 1 => long, 1 => "\\PC{0,4}", 1 => ".{0,3}"]
}

fn path() -> impl Strategy<Value = String> {
    let joined = prop::collection::vec(segment(), 0..7).prop_map(|segments| segments.join("/"));
    // Around the greatest length, of short segments.
    let long = (1021_usize..1028).prop_map(|length| "ab/".repeat(length)[..length].to_owned());
    let long = long.prop_map(|path| if path.ends_with('/') { path[1..].to_owned() + "x" } else { path });
    prop_oneof![20 => joined, 2 => long, 1 => Just("manifest.json".to_owned())]
}

/// Paths that keep the rules, of few letters, so that they meet.
fn paths() -> impl Strategy<Value = Vec<String>> {
    let segment = prop::sample::select(vec!["a", "A", "b", "a-", "ab", "ß", "ss", "SS", "é", "e\u{301}", "É"]);
    let path = prop::collection::vec(segment, 1..4).prop_map(|segments| segments.join("/"));
    prop::collection::btree_set(path, 0..8).prop_map(|paths| paths.into_iter().collect())
}

/// Whether `dir` is a directory above `path`.
fn is_above(dir: &str, path: &str) -> bool {
    let (dir, path): (Vec<_>, Vec<_>) = (dir.split('/').collect(), path.split('/').collect());
    dir.len() < path.len() && path.starts_with(&dir)
}

proptest! {
    #[test]
    fn exactly_the_paths_that_keep_the_rules_are_read(text in path()) {
        let parsed = RelPath::parse(&text);
        prop_assert_eq!(parsed.is_ok(), keeps_the_rules(&text), "{:?}: {:?}", text, parsed);
        prop_assert_eq!(RelPath::from_bytes(text.as_bytes()), RelPath::parse(&text));
    }

    #[test]
    fn what_was_read_is_written_as_it_was(text in path()) {
        if let Ok(path) = RelPath::parse(&text) {
            prop_assert_eq!(path.as_str(), &text);
            prop_assert_eq!(path.to_string(), text.clone());
            let json = serde_json::to_string(&path).unwrap();
            prop_assert_eq!(serde_json::from_str::<RelPath>(&json).unwrap(), path.clone());
            prop_assert_eq!(BundlePath::from(path.clone()).to_string(), text.clone());
            let rejoined = path.parent().map_or(path.file_name().to_owned(), |dir| format!("{dir}/{}", path.file_name()));
            prop_assert_eq!(rejoined, text);
        }
    }

    #[test]
    fn paths_that_are_read_never_lead_out(text in path()) {
        if let Ok(path) = RelPath::parse(&text) {
            let mut parts = std::path::Path::new(path.as_str()).components();
            prop_assert!(parts.all(|part| matches!(part, std::path::Component::Normal(_))));
        }
    }

    #[test]
    fn paths_are_ordered_by_their_bytes(a in path(), b in path()) {
        if let (Ok(a), Ok(b)) = (RelPath::parse(&a), RelPath::parse(&b)) {
            prop_assert_eq!(a.cmp(&b), a.as_str().as_bytes().cmp(b.as_str().as_bytes()));
        }
    }

    #[test]
    fn ancestors_are_all_directories_above(text in path()) {
        let segments: Vec<&str> = text.split('/').collect();
        let expected: Vec<String> = (1..segments.len()).rev().map(|n| segments[..n].join("/")).collect();
        prop_assert_eq!(ancestors(&text).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn nested_finds_what_brute_force_finds(paths in paths()) {
        let found: BTreeSet<&str> = nested(&paths).iter().map(|clash| clash.second).collect();
        let expected: BTreeSet<&str> = paths
            .iter()
            .filter(|path| paths.iter().any(|dir| is_above(dir, path)))
            .map(String::as_str)
            .collect();
        prop_assert_eq!(found, expected);
        for clash in nested(&paths) {
            prop_assert!(is_above(clash.first, clash.second), "{:?}", clash);
        }
    }

    #[test]
    fn folded_finds_a_clash_just_where_brute_force_finds_one(paths in paths()) {
        let clashes = folded(&paths);
        // Paths that are nested as they stand are another fault.
        let clash = |a: &String, b: &String| {
            let (x, y) = (fold(a), fold(b));
            a != b && (x == y || (is_above(&x, &y) && !is_above(a, b)))
        };
        let any = paths.iter().any(|a| paths.iter().any(|b| clash(a, b)));
        prop_assert_eq!(any, !clashes.is_empty(), "{:?}", clashes);
        for found in clashes {
            prop_assert!(clash(&found.first.to_owned(), &found.second.to_owned()), "{:?}", found);
        }
    }

    #[test]
    fn folding_twice_is_folding_once(text in "\\PC{0,12}") {
        prop_assert_eq!(fold(&fold(&text)), fold(&text));
        prop_assert_eq!(fold(&text.to_lowercase()), fold(&fold(&text.to_lowercase())));
    }

    #[test]
    fn folding_forgets_the_unicode_form(text in "[\\u{300}-\\u{3ff}\\u{1e00}-\\u{1fff}a-z]{0,8}") {
        let (composed, decomposed): (String, String) = (text.nfc().collect(), text.nfd().collect());
        prop_assert_eq!(fold(&composed), fold(&decomposed));
    }

    #[test]
    fn folding_forgets_case(text in "[a-zA-Zàéîõüñçß/]{0,12}") {
        prop_assert_eq!(fold(&text.to_uppercase()), fold(&text));
    }

    #[test]
    fn escaped_bytes_are_one_printable_line(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
        let escaped = escape(&bytes);
        prop_assert!(!escaped.chars().any(char::is_control), "{:?}", escaped);
        let plain = std::str::from_utf8(&bytes).is_ok_and(|text| !text.chars().any(char::is_control));
        prop_assert!(!plain || escaped.as_bytes() == bytes);
    }

    #[test]
    fn plain_text_is_what_it_shows(
        text in "[a-z\u{1b}\u{85}\u{61c}\u{200d}-\u{200f}\u{2027}-\u{202f}\u{2065}-\u{206a}\u{feff}]{0,12}",
    ) {
        let hidden = |c: char| {
            c.is_control()
                || matches!(c as u32, 0x61c | 0x200e | 0x200f | 0x2028..=0x202e | 0x2066..=0x2069 | 0xfeff)
        };
        let shown = plain(&text);
        prop_assert!(!shown.contains(hidden), "{:?}", shown);
        prop_assert_eq!(shown.matches("\\x").count(), text.chars().filter(|c| hidden(*c)).map(char::len_utf8).sum::<usize>());
        prop_assert!(text.contains(hidden) || shown == text);
    }
}
