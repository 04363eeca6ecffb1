//! The small values: durations, sizes, modes, ids, names of variables, URLs. Pure; an error says what is wrong, and
//! never repeats a value that could be a secret.

use std::time::Duration;

/// A duration of whole numbers with the units `s`, `m`, `h`, `d` and `w`, like `30d` or `1h 30m`.
pub fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("{text:?} is not a duration like 30s, 15m, 24h, 30d or 2w");
    let mut digits = false;
    let mut units = 0;
    for c in text.chars() {
        match c {
            '0'..='9' => digits = true,
            's' | 'm' | 'h' | 'd' | 'w' if digits => (digits, units) = (false, units + 1),
            ' ' if !digits && units > 0 => {}
            _ => return Err(wrong()),
        }
    }
    if digits && units == 0 {
        return Err(format!("{text:?} has no unit (s, m, h, d or w)"));
    }
    if digits || units == 0 {
        return Err(wrong());
    }
    humantime::parse_duration(text).map_err(|_| format!("{text:?} is too long a duration"))
}

/// A size in bytes: a whole number, alone or with `KiB`, `MiB`, `GiB` or `TiB`.
pub(super) fn size(text: &str) -> Result<u64, String> {
    let wrong = || format!("{text:?} is not a size like 512MiB or 16GiB, or a number of bytes");
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let shift = match unit.trim_start() {
        "" | "B" => 0,
        "KiB" => 10,
        "MiB" => 20,
        "GiB" => 30,
        "TiB" => 40,
        _ => return Err(wrong()),
    };
    if number.is_empty() {
        return Err(wrong());
    }
    let number: Option<u64> = number.parse().ok();
    number.and_then(|n| n.checked_mul(1 << shift)).ok_or_else(|| format!("{text:?} is too large a size"))
}

/// Permission bits in octal digits, like `0644`.
pub(super) fn mode(text: &str) -> Result<u32, String> {
    let wrong = || format!("{text:?} is not a mode like \"0644\"");
    if !(3..=5).contains(&text.len()) || !text.bytes().all(|b| b.is_ascii_digit()) {
        return Err(wrong());
    }
    let mode = u32::from_str_radix(text, 8).map_err(|_| wrong())?;
    if mode > 0o777 {
        return Err(format!("{text:?} has bits beyond the permissions (at most \"0777\")"));
    }
    Ok(mode)
}

/// `text`, if it is `good`; else what is wrong with it.
pub(super) fn checked(good: bool, text: &str, wrong: &str) -> Result<String, String> {
    if good { Ok(text.to_owned()) } else { Err(format!("{text:?} {wrong}")) }
}

/// An absolute http or https URL without user, query and fragment; the scheme and host in lower case, a `/` at the end.
pub(super) fn url(text: &str) -> Result<String, &'static str> {
    if text.contains(|c: char| !c.is_ascii_graphic() || "\\\"<>^`{|}".contains(c)) {
        return Err("it holds a character that no URL may hold unescaped");
    }
    let (scheme, rest) = text.split_once("://").ok_or("it must be absolute, like https://example.com/")?;
    let scheme = scheme.to_ascii_lowercase();
    if scheme != "http" && scheme != "https" {
        return Err("its scheme must be http or https");
    }
    if rest.contains('?') {
        return Err("it must have no query (\"?\")");
    }
    if rest.contains('#') {
        return Err("it must have no fragment (\"#\")");
    }
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    if authority.contains('@') {
        return Err("it must name no user (\"@\")");
    }
    host(authority)?;
    if !escapes_are_whole(path) {
        return Err("a \"%\" in it is not followed by two hex digits");
    }
    let slash = if path.is_empty() || path.ends_with('/') { "" } else { "/" };
    Ok(format!("{scheme}://{}/{path}{slash}", authority.to_ascii_lowercase()))
}

fn host(authority: &str) -> Result<(), &'static str> {
    // The colons of an IPv6 address stand in brackets.
    let (name, port) = match authority.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, port)) if address.parse::<std::net::Ipv6Addr>().is_ok() => ("v6", port),
        Some(_) => return Err("its IPv6 address is not valid"),
        None => authority.split_at(authority.find(':').unwrap_or(authority.len())),
    };
    if name.is_empty() || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b".-_".contains(&b)) {
        return Err("it has no valid host name");
    }
    match port.strip_prefix(':') {
        None if port.is_empty() => Ok(()),
        Some(port) if port.bytes().all(|b| b.is_ascii_digit()) && port.parse::<u16>().is_ok_and(|p| p > 0) => Ok(()),
        _ => Err("its port is not one from 1 to 65535"),
    }
}

fn escapes_are_whole(path: &str) -> bool {
    let hex = |rest: &str| rest.bytes().take(2).filter(u8::is_ascii_hexdigit).count() == 2;
    path.split('%').skip(1).all(hex)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_whole_numbers_and_five_units() {
        for (text, seconds) in [
            ("30s", 30),
            ("15m", 900),
            ("24h", 86_400),
            ("30d", 2_592_000),
            ("2w", 1_209_600),
            ("1h 30m", 5400),
            ("1h30m", 5400),
            ("0s", 0),
        ] {
            assert_eq!(duration(text).unwrap().as_secs(), seconds, "{text}");
        }
        for text in [
            "",
            " ",
            "30",
            "30 ",
            "s",
            "1M",
            "1y",
            "10ms",
            "1.5h",
            "-1s",
            "1h30",
            "30days",
            " 1s",
            "1 s",
            "99999999999999999999s",
        ] {
            assert!(duration(text).is_err(), "{text:?}");
        }
        assert!(duration("99999999999999999w").unwrap_err().contains("too long"));
        assert!(duration("30").unwrap_err().contains("no unit"));
    }

    #[test]
    fn sizes_are_bytes_or_powers_of_1024() {
        for (text, bytes) in
            [("1", 1), ("1B", 1), ("2KiB", 2048), ("1MiB", 1 << 20), ("16GiB", 16 << 30), ("1 TiB", 1 << 40)]
        {
            assert_eq!(size(text).unwrap(), bytes, "{text}");
        }
        for text in ["", "GiB", "1GB", "1.5GiB", "-1", "1gib", "1G", "16777216TiB", "99999999999999999999", "1 KiB "] {
            assert!(size(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn modes_are_octal_permission_bits() {
        assert_eq!(mode("0644"), Ok(0o644));
        assert_eq!(mode("750"), Ok(0o750));
        assert_eq!(mode("0000"), Ok(0));
        for text in ["", "7", "0o644", "0888", "1777", "04755", "rw-r--r--", "+644"] {
            assert!(mode(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn urls_are_absolute_and_plain() {
        assert_eq!(url("https://Example.com").unwrap(), "https://example.com/");
        assert_eq!(url("HTTP://h:8080/a%20b/C").unwrap(), "http://h:8080/a%20b/C/");
        assert_eq!(url("http://[::1]:80/x/").unwrap(), "http://[::1]:80/x/");
        for text in [
            "",
            "example.com",
            "/a",
            "ftp://h/",
            "https://",
            "https:///a",
            "https://h/?q",
            "https://h/#f",
            "https://u:p@h/",
            "https://h:0/",
            "https://h:99999/",
            "https://h:/",
            "https://h:+1/",
            "https://h /",
            "https://[::z]/",
            "https://h/a%2",
            "https://h/a%zz",
            "https://h/a b",
            "https://ü/",
            "https://h/ü",
        ] {
            assert!(url(text).is_err(), "{text:?}");
        }
    }
}
