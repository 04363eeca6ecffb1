//! What an output is held against: lines with wildcards, and JSON values.

use serde_json::Value;

/// A line that stands for any number of lines.
const ANY_LINES: &str = "...";
/// Any run of characters within a line.
const ANY_TEXT: &str = "[..]";

/// Holds the lines of `got` against `expected`; the error shows both.
pub(crate) fn lines(what: &str, expected: &[String], got: &str) -> Result<(), String> {
    let got = split(got);
    let pattern: Vec<Option<&str>> = expected.iter().map(|line| (line != ANY_LINES).then_some(line.as_str())).collect();
    if glob(&pattern, &got, |expected, got| line(expected, got)) {
        return Ok(());
    }
    let odd = expected.iter().zip(&got).find(|(e, g)| e.as_str() != ANY_LINES && !line(e, g));
    let odd = odd.map_or(String::new(), |(e, g)| format!("\n  first differs:\n    {e}\n    {g}"));
    Err(format!("{what} differs{odd}\n  expected:{}\n  got:{}", block(expected), block(&got)))
}

/// The lines of an output, control characters shown as `\xNN`, a missing last line feed shown as a line.
pub(crate) fn split(output: &str) -> Vec<String> {
    let mut lines: Vec<String> = output.split('\n').map(|line| distributor::path::escape(line.as_bytes())).collect();
    match lines.pop() {
        Some(rest) if !rest.is_empty() => lines.extend([rest, "\\ no line feed at the end".to_owned()]),
        _ => {}
    }
    lines
}

/// Lines, indented, for a message.
pub(crate) fn block<S: AsRef<str>>(lines: &[S]) -> String {
    if lines.is_empty() {
        return " nothing".to_owned();
    }
    lines.iter().flat_map(|line| ["\n    ", line.as_ref()]).collect()
}

/// Whether one line is as `expected`, in which `[..]` stands for any text.
pub(crate) fn line(expected: &str, got: &str) -> bool {
    let mut pattern = Vec::new();
    for (at, part) in expected.split(ANY_TEXT).enumerate() {
        if at > 0 {
            pattern.push(None);
        }
        pattern.extend(part.chars().map(Some));
    }
    let got: Vec<char> = got.chars().collect();
    glob(&pattern, &got, |a, b| a == b)
}

/// Matches `items` against a pattern in which `None` stands for any run of them.
fn glob<P, T>(pattern: &[Option<P>], items: &[T], same: impl Fn(&P, &T) -> bool) -> bool {
    let (mut p, mut i) = (0, 0);
    let mut retry = None;
    loop {
        match pattern.get(p) {
            Some(None) => {
                retry = Some((p + 1, i));
                p += 1;
                continue;
            }
            Some(Some(one)) if i < items.len() && same(one, &items[i]) => {
                p += 1;
                i += 1;
                continue;
            }
            None if i == items.len() => return true,
            _ => {}
        }
        match retry {
            Some((after, at)) if at < items.len() => {
                retry = Some((after, at + 1));
                (p, i) = (after, at + 1);
            }
            _ => return false,
        }
    }
}

/// Holds what `pointer` finds in `document` against `expected`: a JSON value, whose text may hold `[..]`, `absent`, or
/// `length N`.
pub(crate) fn json(document: &Value, pointer: &str, expected: &str) -> Result<(), String> {
    let pointer = pointer.strip_prefix('.').map_or(pointer.to_owned(), |rest| format!("/{rest}"));
    let pointer = if pointer == "/" { "" } else { &pointer };
    let found = document.pointer(pointer);
    let holds = match (expected, found) {
        ("absent", found) => found.is_none(),
        (_, None) => false,
        (expected, Some(found)) => match expected.strip_prefix("length ") {
            Some(length) => length.parse().is_ok_and(|length: usize| size(found) == Some(length)),
            None => value(expected, found)?,
        },
    };
    if holds {
        return Ok(());
    }
    let got = found.map_or("nothing there".to_owned(), Value::to_string);
    Err(format!("{pointer} in the JSON\n  expected: {expected}\n  got: {got}"))
}

fn value(expected: &str, found: &Value) -> Result<bool, String> {
    let expected: Value = serde_json::from_str(expected).map_err(|error| format!("not a JSON value: {error}"))?;
    Ok(match (&expected, found) {
        (Value::String(expected), Value::String(found)) => line(expected, found),
        _ => expected == *found,
    })
}

fn size(value: &Value) -> Option<usize> {
    value.as_array().map(Vec::len).or_else(|| value.as_object().map(serde_json::Map::len))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holds(expected: &[&str], got: &str) -> bool {
        let expected: Vec<String> = expected.iter().map(|&line| line.to_owned()).collect();
        lines("stdout", &expected, got).is_ok()
    }

    #[test]
    fn lines_are_exact_but_for_wildcards() {
        assert!(holds(&["a", "", "b"], "a\n\nb\n"));
        assert!(!holds(&["a"], "a\nb\n"), "a line nobody expects");
        assert!(!holds(&["a", "b"], "a\n"), "a line that is missing");
        assert!(!holds(&["a"], "a"), "a missing line feed");
        assert!(holds(&["...", "b", "..."], "a\nb\n"));
        assert!(holds(&["..."], ""));
        assert!(!holds(&["...", "c"], "a\nb\n"));
        assert!(holds(&["...", "b", "c"], "b\nb\nc\n"), "a wildcard looks further");
        assert!(!holds(&["[..]..."], "x\n"), "dots within a line are dots");
        assert!(holds(&["a[..]c[..]"], "abcc\n"));
        assert!(!holds(&["a[..]c"], "abcb\n"));
        assert!(holds(&["\\x1b[1m"], "\u{1b}[1m\n"), "control characters are shown");
    }

    #[test]
    fn json_values_are_found_and_compared() {
        let document = serde_json::json!({"a": [{"b": null, "c": "d-1"}]});
        for (pointer, expected) in [
            ("/a/0/b", "null"),
            (".a/0/c", "\"d-1\""),
            ("/a/0/c", "\"d-[..]\""),
            ("/a/1", "absent"),
            ("/a", "length 1"),
            ("/a/0", "length 2"),
            (".", "{\"a\": [{\"c\": \"d-1\", \"b\": null}]}"),
        ] {
            assert_eq!(json(&document, pointer, expected), Ok(()), "{pointer}");
        }
        for (pointer, expected) in [
            ("/a/0/b", "absent"),
            ("/a/0/z", "null"),
            ("/a/0/c", "\"d\""),
            ("/a/0/c", "length 3"),
            ("/a/0/c", "d-1"),
            ("/a", "length 2"),
        ] {
            assert!(json(&document, pointer, expected).is_err(), "{pointer} = {expected}");
        }
    }
}
