//! Publishers at the same place at the same time, and readers who look while they publish.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};

use distributor::storage::Storage;

use crate::memory::Memory;
use crate::scene::{NEW, OLD, Scene, tree};

const ROUNDS: usize = 100;

#[test]
fn two_runs_at_once_leave_the_newer_bundle_whole() {
    let scene = Scene::new();
    for round in 0..ROUNDS {
        let _ = std::fs::remove_dir_all(scene.dir.path().join("out"));
        std::thread::scope(|scope| {
            for name in ["old", "new"] {
                let scene = &scene;
                scope.spawn(move || {
                    scene.publish(name, "d", &scene.local()).unwrap_or_else(|e| panic!("round {round}, {name}: {e}"));
                });
            }
        });
        let left = tree(&scene.dir.path().join("out"));
        let names: BTreeSet<&str> =
            left.keys().map(String::as_str).filter(|name| *name != ".distributor.json").collect();
        assert_eq!(names, NEW.iter().map(|(path, _)| *path).collect(), "round {round}");
        assert!(NEW.iter().all(|(path, text)| left[*path] == text.as_bytes()), "round {round}");
    }
}

#[test]
fn eight_runs_at_once_in_memory_leave_the_newer_bundle_whole() {
    let scene = Scene::new();
    for round in 0..ROUNDS {
        let memory = Memory::default();
        std::thread::scope(|scope| {
            for at in 0..8 {
                let (scene, memory) = (&scene, &memory);
                let name = if at % 2 == 0 { "old" } else { "new" };
                scope.spawn(move || scene.publish(name, "d", memory as &dyn Storage).unwrap());
            }
        });
        let objects = memory.objects();
        assert_eq!(objects.len(), NEW.len() + 1, "round {round}: {:?}", objects.keys());
        assert!(NEW.iter().all(|(path, text)| objects[*path].bytes == text.as_bytes()), "round {round}");
    }
}

#[test]
fn a_reader_never_sees_half_a_file() {
    let scene = Scene::new();
    let texts: BTreeSet<&[u8]> = OLD.iter().chain(NEW).map(|(_, text)| text.as_bytes()).collect();
    let (done, out) = (AtomicBool::new(false), scene.dir.path().join("out"));
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut seen = 0_usize;
            while !done.load(Ordering::SeqCst) {
                for (path, _) in OLD.iter().chain(NEW) {
                    if let Ok(bytes) = std::fs::read(out.join(path)) {
                        assert!(texts.contains(bytes.as_slice()), "{path}: {}", bytes.escape_ascii());
                        seen += 1;
                    }
                }
            }
            seen
        });
        for _ in 0..ROUNDS {
            for name in ["old", "new"] {
                scene.publish(name, "d", &scene.local()).unwrap();
            }
            std::fs::remove_dir_all(&out).unwrap();
        }
        done.store(true, Ordering::SeqCst);
        assert!(reader.join().unwrap() > 0);
    });
}
