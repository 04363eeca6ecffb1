//! Source bundles: a directory with a `manifest.json` and every file that it lists.
//!
//! Producers written in Rust can make one with [`Maker`]; [`verify`] checks one.

mod make;
mod manifest;
mod verify;

pub use crate::digest::Digest;
pub use make::Maker;
pub use manifest::{FileEntry, MAX_BYTES, MAX_FILES, MAX_SIZE, Manifest, SCHEMA_VERSION, content_digest};
pub use verify::{Unlisted, invalid_bundle, load, notes, read_file, unlisted, verify, verify_files};
pub(crate) use verify::{finding, is_of_the_file, pass_file};
