//! The storage interface and what is built on it: the promises of every backend, and publications that die at any call.
#![allow(clippy::unwrap_used)]
// A method as it is does not fit where any lifetime must do.
#![allow(clippy::redundant_closure_for_method_calls)]

mod buckets;
mod conformance;
mod counts;
mod crossed;
mod faults;
mod fetched;
mod large;
mod lost;
mod marks;
mod memory;
mod mortal;
mod nth;
mod objects;
mod odd;
mod races;
mod readers;
mod repeated;
mod scene;
#[path = "../servers/mod.rs"]
mod servers;
mod shared;
mod slow;
mod sweep;
mod told;
mod upkeep;
mod verbs;
