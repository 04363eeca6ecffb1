//! Words of a script line: separated by blanks, quoted where they hold some.

use std::iter::Peekable;
use std::str::Chars;

/// Splits `line` into words. `'…'` is taken as it stands; elsewhere `\n`, `\t`, `\xNN` and a backslash before any other
/// character stand for one byte or character.
pub(crate) fn split(line: &str) -> Result<Vec<Vec<u8>>, String> {
    let mut words = Vec::new();
    let mut chars = line.chars().peekable();
    loop {
        while chars.next_if(|c| c.is_whitespace()).is_some() {}
        if chars.peek().is_none() {
            return Ok(words);
        }
        words.push(word(&mut chars)?);
    }
}

fn word(chars: &mut Peekable<Chars>) -> Result<Vec<u8>, String> {
    let mut word = Vec::new();
    let mut quote = None;
    loop {
        match (chars.next(), quote) {
            (None, None) => return Ok(word),
            (None, Some(_)) => return Err("a quote is not closed".to_owned()),
            (Some(c), Some(open)) if c == open => quote = None,
            (Some(c @ ('\'' | '"')), None) => quote = Some(c),
            (Some(c), None) if c.is_whitespace() => return Ok(word),
            (Some('\\'), None | Some('"')) => escaped(chars, &mut word)?,
            (Some(c), _) => push(&mut word, c),
        }
    }
}

/// `text` with its escapes resolved, blanks kept.
pub(crate) fn unescape(text: &str) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if c == '\\' {
            escaped(&mut chars, &mut bytes)?;
        } else {
            push(&mut bytes, c);
        }
    }
    Ok(bytes)
}

fn escaped(chars: &mut Peekable<Chars>, into: &mut Vec<u8>) -> Result<(), String> {
    match chars.next() {
        Some('n') => into.push(b'\n'),
        Some('t') => into.push(b'\t'),
        Some('x') => {
            let digits: String = chars.by_ref().take(2).collect();
            let byte = u8::from_str_radix(&digits, 16).map_err(|_| format!("\\x{digits} is not a byte"))?;
            into.push(byte);
        }
        Some(c) => push(into, c),
        None => return Err("a backslash at the end".to_owned()),
    }
    Ok(())
}

fn push(into: &mut Vec<u8>, c: char) {
    into.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_quotes_and_escapes() {
        let words = |line| split(line).map(|w| w.iter().map(|w| String::from_utf8_lossy(w).into_owned()).collect());
        assert_eq!(words(" a  'b c' \"d\\ne\" f\\ g ''"), Ok(vec!["a", "b c", "d\ne", "f g", ""].map_owned()));
        assert_eq!(split("a\\xffb").unwrap(), [b"a\xffb"]);
        assert!(split("'a").is_err());
        assert!(split("\\xg1").is_err());
        assert!(split("a\\").is_err());
        assert_eq!(unescape("a  b\\n").unwrap(), b"a  b\n");
    }

    trait MapOwned {
        fn map_owned(self) -> Vec<String>;
    }
    impl MapOwned for Vec<&str> {
        fn map_owned(self) -> Vec<String> {
            self.into_iter().map(str::to_owned).collect()
        }
    }
}
