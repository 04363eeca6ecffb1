//! Any bytes as a configuration: read, or refused with at least one problem; nothing panics.

#![no_main]

use std::io;
use std::path::Path;

use distributor::config::{World, parse};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let read = |path: &Path| match path.file_name() {
        Some(name) if name == "template.html" => Ok(b"{{title}} {{content}}".to_vec()),
        _ => Err(io::Error::from(io::ErrorKind::NotFound)),
    };
    let world = World { home: Some(Path::new("/home/user")), state_directory: None, read: &read };
    match parse(bytes, Path::new("/etc/distributor/distributor.yml"), &world) {
        Err(problems) => assert!(!problems.is_empty()),
        Ok((config, _)) => {
            for pipeline in &config.pipelines {
                assert!(!pipeline.destinations.is_empty());
            }
        }
    }
});
