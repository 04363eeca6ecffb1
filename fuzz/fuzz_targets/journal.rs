//! Any bytes as a journal: what is written is read back to the same text, and nothing that it makes lies elsewhere.

#![no_main]

use distributor::journal::{Journal, Operation, Phase};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    match Journal::parse(bytes) {
        Err(fault) => assert!(!fault.is_empty(), "an error says what is wrong"),
        Ok(journal) => {
            assert!(journal.phase == Phase::Staging || journal.target.is_some());
            assert!(!journal.stage.contains(['/', '.']));
            for operation in &journal.operations {
                if let Operation::MakeDir { path } = operation {
                    assert!(!path.starts_with('/') && path.split('/').all(|segment| segment != ".."));
                }
            }
            assert!(journal.created().count() <= journal.written().count());
            let json = journal.to_json();
            let again = Journal::parse(&json).expect("what is written is read");
            assert!(again.to_json() == json && again.operations == journal.operations);
        }
    }
});
