//! Random histories of one destination, against a model of the contract: what is published, what hands do there, runs
//! that are killed or fail, and the runs after them. `PROPTEST_CASES` sets how many.
#![allow(clippy::unwrap_used)]
// A method as it is does not fit where any lifetime must do.
#![allow(clippy::redundant_closure_for_method_calls)]

mod check;
mod hands;
mod known;
mod model;
mod place;
mod play;
mod steps;

// Shared with the fault sweep, which uses more of it.
#[allow(dead_code)]
#[path = "../storage/memory.rs"]
mod memory;
#[path = "../storage/mortal.rs"]
mod mortal;

use proptest::prelude::*;
use proptest::test_runner::{Config, FileFailurePersistence};

use place::{Disk, Objects};
use steps::history;

fn config(cases: u32) -> Config {
    let usual = Config::default();
    let cases = if std::env::var_os("PROPTEST_CASES").is_some() { usual.cases } else { cases };
    // Seeds of histories that failed once are kept beside this file.
    let failure_persistence: Option<Box<dyn proptest::test_runner::FailurePersistence>> =
        Some(Box::new(FileFailurePersistence::WithSource("regressions")));
    Config { cases, failure_persistence, max_shrink_iters: 20_000, ..usual }
}

proptest! {
    #![proptest_config(config(300))]

    #[test]
    fn histories_on_disk_go_as_the_contract_says(history in history()) {
        play::play(&history, &Disk::new());
    }

    #[test]
    fn histories_in_memory_go_as_the_contract_says(history in history()) {
        play::play(&history, &Objects::default());
    }
}
