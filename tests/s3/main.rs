//! The programs on servers of S3, as an operator has them: configurations, runs, reports, and what lies there then.
// clippy.toml lets tests unwrap, but not the helpers that they share.
#![allow(clippy::unwrap_used)]

mod failures;
mod guides;
mod https;
mod killed;
mod limits;
mod runs;
mod scene;
#[path = "../servers/mod.rs"]
mod servers;
mod signals;
mod sources;
mod stood;
mod upkeep;
