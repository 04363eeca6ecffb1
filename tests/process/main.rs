//! The programs as processes: signals, streams, statuses, permissions, failures.
// clippy.toml lets tests unwrap, but not the helpers that they share.
#![allow(clippy::unwrap_used)]

mod failures;
mod permissions;
mod programs;
mod scene;
mod signals;
mod slow;
mod streams;
