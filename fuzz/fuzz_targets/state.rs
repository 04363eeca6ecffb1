//! Any bytes as a state: what is read keeps the rules, and what is written is read back to the same text.

#![no_main]

use std::collections::BTreeSet;

use distributor::state::{Mode, State};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    match State::parse(bytes) {
        Err(fault) => assert!(!fault.is_empty(), "an error says what is wrong"),
        Ok(state) => {
            assert!(state.mode == Mode::SharedRoot || state.owners.len() == 1);
            assert!(state.outputs.iter().all(|output| output.owner < state.owners.len()), "every output has its owner");
            assert!(state.by_path().len() == state.outputs.len(), "a path stands once");
            let owners: BTreeSet<_> = state.owners.iter().map(|o| (&o.pipeline_id, &o.destination_id)).collect();
            assert!(owners.len() == state.owners.len(), "an owner stands once");
            let json = state.into_json();
            let again = State::parse(json.as_bytes()).expect("what is written is read");
            assert!(again.into_json() == json);
        }
    }
});
