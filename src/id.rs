//! Ids of sources, pipelines, destinations and tokens.

/// The rule, for messages.
pub const RULE: &str = "1 to 128 of A-Z a-z 0-9 . _ -, a letter or digit first";

/// Whether `text` keeps the rule of ids.
pub fn is_id(text: &str) -> bool {
    text.len() <= 128
        && text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_keep_their_rule() {
        assert!(is_id("a") && is_id("0.x-Y_z") && is_id(&"x".repeat(128)));
        for text in ["", ".a", "-a", "_a", "a b", "a/b", "ü", &"x".repeat(129)] {
            assert!(!is_id(text), "{text:?}");
        }
    }
}
