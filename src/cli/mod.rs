//! Command lines: what a program takes stands once, in a table; parsing, help and the documentation tests read it.

mod flags;
mod parse;
mod programs;

pub use flags::*;
pub use parse::{Parsed, parse, usage};
pub use programs::*;

/// An exit status and what it means, for every program.
pub const EXIT_STATUS: &[(&str, &str)] = &[
    ("0", "done; skipped and nothing to do count as done; a dry run that found no error"),
    ("1", "it ran, and something failed: a destination, a bundle, a validation"),
    ("2", "it did not start: usage, configuration, secrets"),
    ("3", "busy: all that failed is locked, another command holds the destination"),
    ("4", "changes are pending: only with --dry-run --detailed-exitcode"),
    ("130", "interrupted by SIGINT"),
    ("143", "interrupted by SIGTERM"),
];

/// The status of a program that ran and found something failed.
pub const FAILED: u8 = 1;
/// The status of a program that did not start.
pub const NOT_STARTED: u8 = 2;

/// The status of a program of which all that failed is that somebody else holds the destination.
pub const BUSY: u8 = 3;

/// The status of a dry run that was asked whether anything would change, and it would.
pub const PENDING: u8 = 4;

/// The status after a signal.
pub fn signalled(signal: u8) -> u8 {
    128 + signal
}
