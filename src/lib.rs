//! distributor publishes bundles of files to where people read them, and never loses or clobbers what it does not own.

pub mod cli;
pub mod config;
pub mod error;
pub mod host;
pub mod path;
pub mod pool;
pub mod secrets;
pub mod suggest;
pub mod timestamp;
