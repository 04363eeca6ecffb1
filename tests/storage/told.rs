//! What an operator is told of locks and of publications that were cut short.

use std::io::Write;
use std::sync::{Arc, Mutex};

use distributor::commands;
use distributor::error::{Code, Warning};
use distributor::host::{Host, Stream};
use distributor::storage::Storage;

use crate::mortal::{End, Fate, Mortal};
use crate::scene::{Scene, Wish};

fn codes(warnings: &[Warning]) -> Vec<Code> {
    warnings.iter().map(|warning| warning.code).collect()
}

/// Dies right after the commit point.
fn cut_short(scene: &Scene) {
    for at in 1.. {
        let _ = std::fs::remove_dir_all(scene.dir.path().join("out"));
        let fate = Fate::new(at, End::KilledAfter);
        let _ = scene.publish("new", "d", &Mortal { inner: Box::new(scene.local()), fate: Arc::clone(&fate) });
        assert!(fate.struck(), "it never came to commit");
        if fate.chosen.lock().unwrap().starts_with("commit ") {
            return;
        }
    }
}

#[test]
fn a_publication_that_was_cut_short_is_told_before_and_after_it_is_finished() {
    let scene = Scene::new();
    cut_short(&scene);
    let looked =
        scene.look(Wish { bundle: "new", destination: "d", force: false, again: false }, &scene.local()).unwrap();
    assert_eq!(codes(&looked.warnings), [Code::RecoveryPending]);
    let guard = scene.local().lock(b"", &|_| Ok(())).unwrap();
    let looked =
        scene.look(Wish { bundle: "new", destination: "d", force: false, again: false }, &scene.local()).unwrap();
    assert_eq!(codes(&looked.warnings), [Code::PublicationInProgress]);
    drop(guard);
    let published = scene.publish("new", "d", &scene.local()).unwrap();
    assert_eq!(codes(&published.warnings), [Code::RecoveredPublication]);
    assert!(codes(&scene.publish("new", "d", &scene.local()).unwrap().warnings).is_empty());
}

#[derive(Clone, Default)]
struct Captured(Arc<Mutex<Vec<u8>>>);

impl Write for Captured {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_destination_that_is_held_gives_status_3() {
    let scene = Scene::new();
    std::fs::rename(scene.dir.path().join("in/old"), scene.dir.path().join("old")).unwrap();
    let config = "pipelines: [{id: p, source: {backend: local, path: in}, destinations: [\
                  {id: d, backend: local, path: out, path_mapping: fixed}]}]\n";
    std::fs::write(scene.dir.path().join("site.yml"), config).unwrap();
    let run = || {
        let out = Captured::default();
        let host = Host {
            args: ["-c", "site.yml", "--lock-timeout", "0", "--format", "json"].map(Into::into).to_vec(),
            stdout: Stream::new(out.clone(), false),
            ..Host::fixed(scene.dir.path(), &[])
        };
        let status = commands::run::main(&host);
        let json: serde_json::Value = serde_json::from_slice(&out.0.lock().unwrap()).unwrap();
        (status, json["pipelines"][0]["destinations"][0]["error"]["code"].clone())
    };
    let guard = scene.local().lock(b"", &|_| Ok(())).unwrap();
    assert_eq!(run(), (3, "locked".into()));
    guard.release(false).unwrap();
    assert_eq!(run(), (0, serde_json::Value::Null));
}
