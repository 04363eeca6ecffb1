//! RFC 3339 instants that remember how they were written.

use std::cmp::Ordering;
use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use time::format_description::well_known::Rfc3339;
use time::{Duration, OffsetDateTime, UtcOffset};

use crate::json;

const PLAIN: &str = "1970-01-01T00:00:00Z";

/// An instant, compared as one and printed as it was written.
#[derive(Clone, Debug)]
pub struct Timestamp {
    instant: OffsetDateTime,
    /// The text where it is not `YYYY-MM-DDTHH:MM:SSZ`, as states have it twice a record.
    text: Option<Box<str>>,
}

impl Timestamp {
    /// Reads an RFC 3339 date-time (section 5.6) with any offset and up to nine fractional digits.
    pub fn parse(text: &str) -> Result<Timestamp, String> {
        let wrong = || format!("{text:?} is not an RFC 3339 time like 2026-06-04T11:55:00Z");
        let fraction = text.split_once('.').map_or(0, |(_, rest)| rest.bytes().take_while(u8::is_ascii_digit).count());
        if fraction > 9 {
            return Err(format!("{text:?} has more than nine fractional digits"));
        }
        // The grammar of RFC 3339 has one letter between date and time; a space would not be it.
        if !matches!(text.as_bytes().get(10), Some(b'T' | b't')) {
            return Err(wrong());
        }
        let instant = OffsetDateTime::parse(text, &Rfc3339).map_err(|_| wrong())?;
        Ok(Timestamp::new(instant, text))
    }

    fn new(instant: OffsetDateTime, text: &str) -> Timestamp {
        // A leap second has a fraction here.
        let plain = text.len() == PLAIN.len() && text.ends_with('Z') && text.contains('T') && instant.nanosecond() == 0;
        Timestamp { instant, text: (!plain).then(|| text.into()) }
    }

    /// The instant, in UTC to the millisecond.
    pub fn from_instant(instant: OffsetDateTime) -> Timestamp {
        Timestamp::written(instant.replace_millisecond(instant.millisecond()).unwrap_or(instant))
    }

    /// The same without its fraction of a second: the form in which states and reports have times.
    #[must_use]
    pub fn to_second(&self) -> Timestamp {
        Timestamp::written(self.instant.replace_nanosecond(0).unwrap_or(self.instant))
    }

    fn written(instant: OffsetDateTime) -> Timestamp {
        let instant = instant.to_offset(UtcOffset::UTC);
        let text = instant.format(&Rfc3339).unwrap_or_else(|_| PLAIN.to_owned());
        Timestamp::new(instant, &text)
    }

    /// The instant.
    pub fn instant(&self) -> OffsetDateTime {
        self.instant
    }

    /// Whether it is the same instant, written the same.
    pub fn is_written_as(&self, other: &Timestamp) -> bool {
        self.instant == other.instant && self.text == other.text
    }

    /// Whether it lies more than a day ahead of `now`.
    pub fn is_far_ahead_of(&self, now: &Timestamp) -> bool {
        self.instant - now.instant > Duration::DAY
    }
}

impl PartialEq for Timestamp {
    fn eq(&self, other: &Timestamp) -> bool {
        self.instant == other.instant
    }
}

impl Eq for Timestamp {}

impl PartialOrd for Timestamp {
    fn partial_cmp(&self, other: &Timestamp) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Timestamp {
    fn cmp(&self, other: &Timestamp) -> Ordering {
        self.instant.cmp(&other.instant)
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(text) = &self.text {
            return f.write_str(text);
        }
        let (year, month, day) = (self.instant.year(), u8::from(self.instant.month()), self.instant.day());
        let (hour, minute, second) = self.instant.time().as_hms();
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Timestamp, D::Error> {
        json::from_text(deserializer, Timestamp::parse)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_are_one_instant_and_the_text_is_kept() {
        let a = Timestamp::parse("2026-06-04T11:55:00Z").unwrap();
        let b = Timestamp::parse("2026-06-04T13:55:00.000000000+02:00").unwrap();
        assert_eq!(a, b);
        assert_eq!(b.to_string(), "2026-06-04T13:55:00.000000000+02:00");
        assert!(Timestamp::parse("2026-06-04T11:55:00.000000001Z").unwrap() > a);
    }

    #[test]
    fn every_text_is_printed_as_it_was_read() {
        for text in [
            "2026-06-04T11:55:00Z",
            "0001-01-01T00:00:00Z",
            "9999-12-31T23:59:59Z",
            "2026-06-04t11:55:00Z",
            "2026-06-04T11:55:00z",
            "2026-06-04T11:55:00.0Z",
            "2016-12-31T23:59:60Z",
            "2026-06-04T11:55:00+00:00",
            "2026-06-04T11:55:00.123456789-12:00",
        ] {
            assert_eq!(Timestamp::parse(text).unwrap().to_string(), text);
        }
    }

    #[test]
    fn what_is_not_rfc_3339_is_refused() {
        for text in [
            "",
            "2026-06-04",
            "2026-06-04 11:55:00Z",
            "2026-06-04T11:55:00",
            "2026-06-04T11:55Z",
            "2026-13-04T11:55:00Z",
            "2026-02-30T11:55:00Z",
            "2026-06-04T25:00:00Z",
            "2026-06-04T11:55:00.Z",
            "2026-06-04T11:55:00.1234567890Z",
            "2026-06-04T11:55:00+24:00",
            " 2026-06-04T11:55:00Z",
            "20260604T115500Z",
        ] {
            assert!(Timestamp::parse(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_day_and_a_second_ahead_is_far() {
        let now = Timestamp::parse("2026-06-04T12:00:00Z").unwrap();
        assert!(!Timestamp::parse("2026-06-05T12:00:00Z").unwrap().is_far_ahead_of(&now));
        assert!(Timestamp::parse("2026-06-05T12:00:01Z").unwrap().is_far_ahead_of(&now));
    }
}
