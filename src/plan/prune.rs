//! Which outputs retention lets go.

use std::cmp::Reverse;

use crate::config::Prune;
use crate::path::RelPath;
use crate::state::OutputRecord;
use crate::timestamp::Timestamp;

/// Why an output is pruned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PruneReason {
    /// It was last written longer ago than `older_than`.
    OlderThan,
    /// It is not among the `keep_latest` newest.
    KeepLatest,
}

impl PruneReason {
    /// The name that stands in reports.
    pub const fn as_str(self) -> &'static str {
        match self {
            PruneReason::OlderThan => "older_than",
            PruneReason::KeepLatest => "keep_latest",
        }
    }
}

/// An output that is to be pruned.
#[derive(Clone, Debug)]
pub struct Pruned {
    /// Its path.
    pub path: RelPath,
    /// When it was last written.
    pub updated_at: Timestamp,
    /// How many bytes it has.
    pub size: u64,
    /// Why it goes.
    pub reason: PruneReason,
}

/// The outputs that `policy` lets go at `now`, in byte order. They are ranked by when they were last written, the newest
/// first, equal ones by path. The first `keep_latest` stay; of the others all go, or those that are older than
/// `older_than`, to the nanosecond and not on the very instant.
pub fn prune<'a>(records: impl Iterator<Item = &'a OutputRecord>, policy: &Prune, now: &Timestamp) -> Vec<Pruned> {
    let mut ranked: Vec<&OutputRecord> = records.collect();
    ranked.sort_by_key(|record| (Reverse(&record.updated_at), &record.path));
    let kept = policy.keep_latest.map_or(0, |count| usize::try_from(count).unwrap_or(usize::MAX));
    let goes = |record: &OutputRecord| match (policy.older_than, policy.keep_latest) {
        (Some(age), _) => (now.instant() - record.updated_at.instant() > age).then_some(PruneReason::OlderThan),
        (None, Some(_)) => Some(PruneReason::KeepLatest),
        (None, None) => None,
    };
    let rest = ranked.into_iter().skip(kept);
    let pruned = |record: &OutputRecord| {
        let (path, updated_at) = (record.path.clone(), record.updated_at.clone());
        Some(Pruned { path, updated_at, size: record.size, reason: goes(record)? })
    };
    let mut all: Vec<Pruned> = rest.filter_map(pruned).collect();
    all.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    all
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::digest::Digest;
    use crate::state::OutputKind;

    const NOW: &str = "2026-06-10T00:00:00Z";

    fn record((path, updated_at): (&str, &str)) -> OutputRecord {
        let path = RelPath::parse(path).unwrap();
        let updated_at = Timestamp::parse(updated_at).unwrap();
        OutputRecord {
            source_path: path.clone(),
            path,
            kind: OutputKind::Source,
            transform: None,
            url: None,
            sha256: Digest::of(b""),
            size: 1,
            created_at: updated_at.clone(),
            updated_at,
            owner: 0,
            source: None,
        }
    }

    fn pruned(records: &[(&str, &str)], older_than: Option<u64>, keep_latest: Option<u64>) -> Vec<String> {
        let records: Vec<OutputRecord> = records.iter().copied().map(record).collect();
        let policy = Prune { enabled: true, older_than: older_than.map(Duration::from_secs), keep_latest };
        let all = prune(records.iter(), &policy, &Timestamp::parse(NOW).unwrap());
        all.into_iter().map(|pruned| pruned.path.to_string()).collect()
    }

    #[test]
    fn older_than_is_strict_in_every_zone() {
        let day = Some(86_400);
        for exactly in [
            "2026-06-09T00:00:00Z",
            "2026-06-09T14:00:00+14:00",
            "2026-06-08T12:00:00-12:00",
            "2026-06-09T00:00:00.000000000Z",
        ] {
            assert_eq!(pruned(&[("a", exactly)], day, None), [""; 0], "{exactly}");
        }
        for before in ["2026-06-08T23:59:59.999999999Z", "2026-06-09T13:59:59+14:00", "2026-06-08T11:59:59-12:00"] {
            assert_eq!(pruned(&[("a", before)], day, None), ["a"], "{before}");
        }
        assert_eq!(pruned(&[("a", "2027-01-01T00:00:00Z")], Some(1), None), [""; 0], "not from the future");
    }

    #[test]
    fn the_latest_are_kept_and_equal_ones_by_path() {
        let all = [
            ("d", "2026-06-01T00:00:00Z"),
            ("b", "2026-06-02T02:00:00+02:00"),
            ("a", "2026-06-02T00:00:00Z"),
            ("c", "2026-06-03T00:00:00Z"),
        ];
        assert_eq!(pruned(&all, None, Some(0)), ["a", "b", "c", "d"]);
        assert_eq!(pruned(&all, None, Some(1)), ["a", "b", "d"]);
        assert_eq!(pruned(&all, None, Some(2)), ["b", "d"], "c, then a before b");
        assert_eq!(pruned(&all, None, Some(u64::MAX)), [""; 0]);
    }

    #[test]
    fn with_both_the_latest_stay_whatever_their_age() {
        let all = [("a", "2026-01-01T00:00:00Z"), ("b", "2026-02-01T00:00:00Z"), ("c", "2026-06-09T12:00:00Z")];
        assert_eq!(pruned(&all, Some(86_400), Some(0)), ["a", "b"]);
        assert_eq!(pruned(&all, Some(86_400), Some(2)), ["a"]);
        assert_eq!(pruned(&all, Some(86_400), Some(3)), [""; 0]);
    }
}
