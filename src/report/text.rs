//! Text that people read.

use std::fmt::Write;

/// How many lines of a list are shown.
pub(super) const SHOWN: usize = 20;

/// A result that can be shown as text.
pub trait Text {
    /// Writes it to `out`; `verbose` shows lists in full.
    fn text(&self, out: &mut String, verbose: bool);
}

/// `1 file`, `2 files`.
pub(super) fn count(n: usize, what: &str) -> String {
    if n == 1 { format!("1 {what}") } else { format!("{n} {what}s") }
}

/// A size in bytes as people read it, in powers of 1,024.
pub(super) fn size(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    // Tenths, in whole numbers, so that nothing is lost on the way.
    let mut unit = 0;
    let mut whole = bytes;
    while whole >= 1024 * 1024 {
        whole /= 1024;
        unit += 1;
    }
    let mut tenths = (whole * 10 + 512) / 1024;
    if tenths >= 10_240 && unit + 1 < UNITS.len() {
        tenths = 10;
        unit += 1;
    }
    format!("{}.{} {}", tenths / 10, tenths % 10, UNITS[unit])
}

/// An indented list, cut after 20 lines unless `all`.
pub(super) fn list(out: &mut String, lines: Vec<String>, all: bool) {
    let shown = if all || lines.len() <= SHOWN { lines.len() } else { SHOWN };
    let rest = lines.len() - shown;
    for line in lines.into_iter().take(shown) {
        let _ = writeln!(out, "    {line}");
    }
    if rest > 0 {
        let _ = writeln!(out, "    … and {rest} more (-v shows all)");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_read_well() {
        for (bytes, text) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.0 KiB"),
            (49_357, "48.2 KiB"),
            (1024 * 1024 - 1, "1.0 MiB"),
            (3 << 30, "3.0 GiB"),
            (u64::MAX, "16.0 EiB"),
        ] {
            assert_eq!(size(bytes), text);
        }
    }

    #[test]
    fn long_lists_are_cut_with_a_count() {
        let lines = || (0..23).map(|n| n.to_string()).collect::<Vec<_>>();
        let (mut cut, mut all) = (String::new(), String::new());
        list(&mut cut, lines(), false);
        list(&mut all, lines(), true);
        assert!(cut.ends_with("    19\n    … and 3 more (-v shows all)\n"));
        assert_eq!(all.lines().count(), 23);
    }
}
