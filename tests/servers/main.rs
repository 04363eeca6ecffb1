//! The servers that the tests of S3 run against, and what stands between: they must be what those tests take them for.
#![allow(clippy::unwrap_used)]

#[path = "mod.rs"]
mod servers;

mod buckets;
mod faults;
mod signatures;
mod starts;
mod traffic;
