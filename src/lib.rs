//! distributor publishes bundles of files to where people read them, and never loses or clobbers what it does not own.
//!
//! Data walks one way: a [`source`] is searched for a [`bundle`], [`plan`] compares it with the [`state`] of a
//! destination, [`publish`] carries the plan out on a [`storage`], and [`report`] says what happened. The programs in
//! [`commands`] wire this to a [`config`] and a [`host`].

pub mod bundle;
pub mod cli;
pub mod commands;
pub mod config;
pub mod digest;
pub mod entry;
pub mod error;
pub mod host;
pub mod http;
pub mod id;
pub mod journal;
mod json;
pub mod maintain;
pub mod names;
pub mod path;
pub mod plan;
pub mod pool;
pub mod publish;
pub mod report;
pub mod secrets;
pub mod source;
pub mod state;
pub mod storage;
pub mod suggest;
pub mod timestamp;
pub mod transform;
