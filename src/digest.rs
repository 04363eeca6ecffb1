//! SHA-256 digests: written `sha256:` and 64 lower-case hex digits.

use std::fmt;
use std::io::{self, Read};

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest as _, Sha256};

use crate::json;

/// A SHA-256 digest (FIPS 180-4).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest([u8; 32]);

const PREFIX: &str = "sha256:";

impl Digest {
    /// Reads `sha256:` and 64 lower-case hex digits.
    pub fn parse(text: &str) -> Option<Digest> {
        let hex: &[u8; 64] = text.strip_prefix(PREFIX)?.as_bytes().try_into().ok()?;
        let (mut bytes, mut wrong) = ([0; 32], 0);
        for (byte, pair) in bytes.iter_mut().zip(hex.as_chunks::<2>().0) {
            let (high, low) = (NIBBLES[usize::from(pair[0])], NIBBLES[usize::from(pair[1])]);
            wrong |= high | low;
            *byte = high << 4 | low & 15;
        }
        (wrong & NO_DIGIT == 0).then_some(Digest(bytes))
    }

    /// The digest of `bytes`.
    pub fn of(bytes: &[u8]) -> Digest {
        let mut hasher = Hasher::default();
        hasher.update(bytes);
        hasher.finish()
    }

    /// The 64 hex digits alone, as `sha256sum` prints them.
    pub fn hex(&self) -> String {
        self.hex_digits().map(char::from).iter().collect()
    }

    /// The same as ASCII.
    pub fn hex_digits(&self) -> [u8; 64] {
        let mut digits = [0; 64];
        for (pair, byte) in digits.as_chunks_mut::<2>().0.iter_mut().zip(self.0) {
            *pair = [DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]];
        }
        digits
    }
}

const DIGITS: &[u8; 16] = b"0123456789abcdef";

/// What marks a byte that is no lower-case hex digit.
const NO_DIGIT: u8 = 0x80;

/// The value of every hex digit.
const NIBBLES: [u8; 256] = {
    let mut table = [NO_DIGIT; 256];
    let mut value = 0;
    while value < 16 {
        table[DIGITS[value as usize] as usize] = value;
        value += 1;
    }
    table
};

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{}", self.hex())
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Digest, D::Error> {
        json::from_text(deserializer, |text| Digest::parse(text).ok_or_else(|| not_a_digest(text)))
    }
}

/// What tells whether bytes are the right ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fingerprint {
    /// How many they are.
    pub size: u64,
    /// Their SHA-256.
    pub sha256: Digest,
}

impl Fingerprint {
    /// Of `bytes`.
    pub fn of(bytes: &[u8]) -> Fingerprint {
        Fingerprint { size: bytes.len() as u64, sha256: Digest::of(bytes) }
    }
}

/// What is said of text that is no digest.
pub(crate) fn not_a_digest(text: &str) -> String {
    format!("{text:?} is not \"sha256:\" and 64 lower-case hex digits")
}

/// A SHA-256 computation under way.
#[derive(Clone, Default)]
pub struct Hasher(Sha256);

impl Hasher {
    /// Takes more bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The digest of all bytes taken.
    pub fn finish(self) -> Digest {
        Digest(self.0.finalize().into())
    }
}

/// How many bytes are read at once.
const BUFFER: usize = 128 * 1024;

/// Passes the bytes of `from` to `each` and returns what they are. Stops once more than `most`
/// bytes came: the caller knows then that they are too many.
pub fn pass(from: &mut dyn Read, most: u64, mut each: impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<Fingerprint> {
    // A small file takes a small buffer; one byte more than expected, so that its end is seen by the same read.
    let mut buffer = vec![0; usize::try_from(most.saturating_add(1)).unwrap_or(BUFFER).min(BUFFER)];
    let (mut hasher, mut total) = (Hasher::default(), 0);
    loop {
        match from.read(&mut buffer) {
            Ok(0) => return Ok(Fingerprint { size: total, sha256: hasher.finish() }),
            Ok(n) => {
                total += n as u64;
                hasher.update(&buffer[..n]);
                each(&buffer[..n])?;
                if total > most {
                    return Ok(Fingerprint { size: total, sha256: hasher.finish() });
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_empty_digest_is_the_published_one() {
        let text = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(Digest::of(b"").to_string(), text);
        assert_eq!(Digest::parse(text), Some(Digest::of(b"")));
    }

    #[test]
    fn only_one_way_to_write_a_digest() {
        let good = Digest::of(b"x").to_string();
        for bad in [
            good.to_uppercase(),
            good[7..].to_owned(),
            good[..70].to_owned(),
            good.clone() + "0",
            good.replace("sha256", "sha512"),
        ] {
            assert_eq!(Digest::parse(&bad), None, "{bad}");
        }
    }
}
