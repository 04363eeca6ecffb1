//! The state file `.distributor.json`: what is managed at a destination. Pure: bytes in, values out, and back.

mod json;
mod record;
mod shared;
mod single;

pub use record::{Mode, OutputKind, OutputRecord, Owner, SourceIdentity, State};

/// The largest state file, in bytes.
pub const MAX_BYTES: u64 = 128 * 1024 * 1024;
