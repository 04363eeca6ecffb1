//! How many attributes a tag of raw HTML has: what an HTML parser does grows with their square.

/// The most attributes of one tag.
pub(super) const MAX_ATTRIBUTES: usize = 500;

/// Where in a tag a parser is.
#[derive(Clone, Copy)]
enum At {
    Tag,
    BeforeName,
    Name,
    AfterName,
    BeforeValue,
    Value,
    DoubleQuoted,
    SingleQuoted,
}

const ALL: [At; 8] =
    [At::Tag, At::BeforeName, At::Name, At::AfterName, At::BeforeValue, At::Value, At::DoubleQuoted, At::SingleQuoted];

/// Whether a tag in `html` may have more attributes than are taken. Never says no where one has: all that may begin a tag
/// is followed at once, whether it stands in a text, a comment or the value of another tag's attribute, and of those that
/// are at the same place the one with the most attributes.
pub(super) fn are_too_many(html: &str) -> bool {
    let mut most = [None; ALL.len()];
    let mut before = [0; 2];
    for byte in html.bytes() {
        let mut next = [None; ALL.len()];
        for (at, count) in ALL.into_iter().zip(most) {
            let (Some(count), Some(to)) = (count, follow(at, byte)) else { continue };
            let begins = matches!((at, to), (At::BeforeName | At::AfterName, At::Name));
            let count = count + usize::from(begins);
            if count > MAX_ATTRIBUTES {
                return true;
            }
            next[to as usize] = next[to as usize].max(Some(count));
        }
        if byte.is_ascii_alphabetic() && (before[1] == b'<' || before == *b"</") {
            next[At::Tag as usize] = next[At::Tag as usize].max(Some(0));
        }
        most = next;
        before = [before[1], byte];
    }
    false
}

/// Where a parser is after `byte`; none where the tag ends.
fn follow(at: At, byte: u8) -> Option<At> {
    let space = byte.is_ascii_whitespace();
    Some(match at {
        At::DoubleQuoted if byte == b'"' => At::BeforeName,
        At::SingleQuoted if byte == b'\'' => At::BeforeName,
        At::DoubleQuoted | At::SingleQuoted => at,
        _ if byte == b'>' => return None,
        At::BeforeValue if byte == b'"' => At::DoubleQuoted,
        At::BeforeValue if byte == b'\'' => At::SingleQuoted,
        At::BeforeValue if space => at,
        At::Value if space => At::BeforeName,
        At::BeforeValue | At::Value => At::Value,
        At::Name | At::AfterName if byte == b'=' => At::BeforeValue,
        At::Name | At::AfterName if space => At::AfterName,
        _ if space || byte == b'/' => At::BeforeName,
        At::Tag => at,
        At::BeforeName | At::Name | At::AfterName => At::Name,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tag(before: &str, attribute: impl Fn(usize) -> String, count: usize) -> String {
        (0..count).map(attribute).fold(format!("{before}<a"), |tag, attribute| tag + &attribute) + ">"
    }

    #[test]
    fn the_attributes_of_a_tag_are_counted_however_they_are_written() {
        let ways: [fn(usize) -> String; 8] = [
            |n| format!(" a{n}"),
            |n| format!("/a{n}"),
            |n| format!("\n a{n} = x"),
            |n| format!(" a{n}=\">\""),
            |n| format!(" a{n}='>'b{n}=\"/ c\""),
            |n| format!(" a{n}=x/y=z"),
            |n| format!(" a{n}=<b"),
            |n| format!("/=a{n}"),
        ];
        for (nth, way) in ways.into_iter().enumerate() {
            for before in ["", "<", "<b ", "<b a='", "<b a=\"<i x='", "<!--", "<a<"] {
                assert!(are_too_many(&tag(before, way, MAX_ATTRIBUTES + 1)), "{nth}, {before}");
            }
            assert!(!are_too_many(&tag("", way, MAX_ATTRIBUTES / 2)), "{nth}");
        }
        assert!(!are_too_many(&tag("", |n| format!(" a{n}"), MAX_ATTRIBUTES)));
        assert!(are_too_many(&tag("", |n| format!(" a{n}"), MAX_ATTRIBUTES + 1).replace("<a", "</a")));
    }

    #[test]
    fn what_is_no_attribute_is_not_counted() {
        let image = format!("<img alt='a > b' src=\"data:image/png;base64,{}\">", "ab/c+".repeat(10_000));
        for html in [
            image,
            "1 < 2, 3 <= 4 and so on ".repeat(1000),
            "<p>a text with words</p><br/>".repeat(1000),
            format!("<!-- {} -->", "words ".repeat(1000)),
        ] {
            assert!(!are_too_many(&html), "{}", &html[..40]);
        }
    }
}
