//! Text made fit for HTML.

/// Writes `text` so that it reads as text, in an element as in a quoted attribute.
pub(super) fn text(out: &mut String, text: &str) {
    write(out, text, &TEXT, |out, byte| {
        out.push_str(match byte {
            b'&' => "&amp;",
            b'<' => "&lt;",
            b'>' => "&gt;",
            b'"' => "&quot;",
            // What HTML makes of it.
            _ => "\u{fffd}",
        });
    });
}

/// Writes a value of a template, which may stand between quotes of either kind.
pub(super) fn value(out: &mut String, value: &str) {
    for (at, part) in value.split('\'').enumerate() {
        if at > 0 {
            out.push_str("&#39;");
        }
        text(out, part);
    }
}

/// Writes `target` as the value of `href` or `src`: what a URL may not hold is percent-encoded.
pub(super) fn url(out: &mut String, target: &str) {
    write(out, target, &URL, |out, byte| match byte {
        b'&' => out.push_str("&amp;"),
        b'\'' => out.push_str("&#39;"),
        byte => {
            out.push('%');
            for nibble in [byte >> 4, byte & 15] {
                out.push(char::from(b"0123456789ABCDEF"[usize::from(nibble)]));
            }
        }
    });
}

/// Copies runs of bytes that `special` does not mark, and hands the others to `put`. Within a character that is not
/// ASCII, all bytes are marked or none.
fn write(out: &mut String, text: &str, special: &[bool; 256], put: impl Fn(&mut String, u8)) {
    let mut from = 0;
    for (at, byte) in text.bytes().enumerate() {
        if special[usize::from(byte)] {
            if from < at {
                out.push_str(&text[from..at]);
            }
            put(out, byte);
            from = at + 1;
        }
    }
    out.push_str(&text[from..]);
}

const TEXT: [bool; 256] = {
    let mut table = [false; 256];
    table[b'&' as usize] = true;
    table[b'<' as usize] = true;
    table[b'>' as usize] = true;
    table[b'"' as usize] = true;
    table[0] = true;
    table
};

const URL: [bool; 256] = {
    let kept = b"-_.+!*(),%#@?=;:/$~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    let mut table = [true; 256];
    let mut at = 0;
    while at < kept.len() {
        table[kept[at] as usize] = false;
        at += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    fn written(write: fn(&mut String, &str), text: &str) -> String {
        let mut out = String::new();
        write(&mut out, text);
        out
    }

    #[test]
    fn nothing_ends_a_text_or_an_attribute() {
        assert_eq!(written(super::text, "a<b>\"&amp;'\0ü"), "a&lt;b&gt;&quot;&amp;amp;'\u{fffd}ü");
        assert_eq!(written(super::value, "'a' & 'b'"), "&#39;a&#39; &amp; &#39;b&#39;");
    }

    #[test]
    fn urls_keep_what_they_are_made_of() {
        assert_eq!(written(super::url, "/a?b=c&d=%20#e"), "/a?b=c&amp;d=%20#e");
        assert_eq!(written(super::url, "a b\"'ü\\[\n"), "a%20b%22&#39;%C3%BC%5C%5B%0A");
    }
}
