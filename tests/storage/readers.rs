//! A reader who follows links while versions of a site are published, one after the other.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use distributor::storage::Storage;

use crate::mortal::End;
use crate::scene::Scene;
use crate::sweep::{OnDisk, strike};

const VERSIONS: usize = 100;
/// The new assets of each page of a version.
const ASSETS: usize = 8;

/// Version `n`: the index links to a page that keeps its name and to one that only this version has, and each of the
/// three shows assets that only this version has.
fn publish(scene: &Scene, n: usize) {
    let assets = |page: &str| (0..ASSETS).map(move |at| format!("assets/{page}-{at}-{n}.png")).collect::<Vec<_>>();
    let shown = |page: &str, up: &str| assets(page).iter().map(|path| format!("![]({up}{path})\n")).collect::<String>();
    let links = format!("[guide](guide/start.md), [news](news/{n}.md), [style](assets/style-{n}.css)\n");
    let mut files = vec![
        ("index.md".to_owned(), shown("index", "") + &links),
        ("guide/start.md".to_owned(), shown("guide", "../")),
        (format!("news/{n}.md"), shown("news", "../")),
        (format!("assets/style-{n}.css"), format!("assets/style-{n}.css")),
    ];
    files.extend(["index", "guide", "news"].into_iter().flat_map(assets).map(|path| (path.clone(), path)));
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    scene.bundle("site", &files, &format!("2026-06-01T{:02}:{:02}:00Z", n / 60, n % 60));
    scene.publish("site", "w", &scene.local_at("out-w")).unwrap_or_else(|error| panic!("version {n}: {error}"));
}

#[derive(Default)]
struct Reader {
    out: PathBuf,
    /// The versions of the index that were met.
    versions: BTreeSet<String>,
    /// How many links led somewhere.
    followed: usize,
}

impl Reader {
    /// Reads the page `path` and all that it links to; false where there is none.
    fn visit(&mut self, path: &str) -> bool {
        let Some(page) = read(&self.out.join(path)) else { return false };
        for target in targets(path, &page) {
            let found = match read(&self.out.join(&target)) {
                Some(_) if Path::new(&target).extension().is_some_and(|extension| extension == "html") => {
                    self.visit(&target)
                }
                Some(text) => text == target,
                None => false,
            };
            if !found {
                // Not a fault where the page has been replaced since it was read: then what it named may be gone.
                assert_ne!(read(&self.out.join(path)), Some(page), "{path} stands, and {target} does not");
                return true;
            }
            self.followed += 1;
            let style = target.strip_prefix("assets/style-").and_then(|name| name.strip_suffix(".css"));
            self.versions.extend(style.map(str::to_owned));
        }
        true
    }
}

fn read(path: &Path) -> Option<String> {
    match std::fs::read_to_string(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        text => Some(text.unwrap_or_else(|error| panic!("{}: {error}", path.display()))),
    }
}

/// What the page at `path` links to and shows, from the root of the site.
fn targets(path: &str, page: &str) -> Vec<String> {
    let dir = path.rsplit_once('/').map_or(String::new(), |(dir, _)| format!("{dir}/"));
    let quoted = page.split([' ', '<']).filter_map(|word| word.strip_prefix("href=\"").or(word.strip_prefix("src=\"")));
    quoted
        .filter_map(|rest| rest.split('"').next())
        .map(|target| target.strip_prefix("../").map_or_else(|| format!("{dir}{target}"), str::to_owned))
        .collect()
}

#[test]
fn a_reader_never_meets_a_page_whose_assets_are_missing() {
    let scene = Scene::new();
    let (done, passes) = (AtomicBool::new(false), AtomicUsize::new(0));
    let mut reader = Reader { out: scene.dir.path().join("out-w"), ..Reader::default() };
    publish(&scene, 0);
    let reader = std::thread::scope(|scope| {
        let reading = scope.spawn(|| {
            while !done.load(Ordering::SeqCst) {
                assert!(reader.visit("index.html"), "there always is an index");
                passes.fetch_add(1, Ordering::SeqCst);
            }
            reader
        });
        for n in 1..VERSIONS {
            publish(&scene, n);
            // One pass may have begun before; the next one meets this version, on however busy a machine.
            let met = passes.load(Ordering::SeqCst) + 2;
            while passes.load(Ordering::SeqCst) < met && !reading.is_finished() {
                std::thread::yield_now();
            }
        }
        done.store(true, Ordering::SeqCst);
        reading.join().unwrap()
    });
    assert!(reader.versions.len() >= VERSIONS - 1, "{:?}", reader.versions);
    assert!(reader.followed >= (VERSIONS - 1) * (3 * ASSETS + 3), "{} links", reader.followed);
}

#[test]
fn pruning_takes_pages_before_what_they_name() {
    let scene = Scene::new();
    scene.publish("old", "d", &scene.local()).unwrap();
    let place = OnDisk(&scene);
    let mut removed = Vec::new();
    let prune =
        |target: &dyn Storage| scene.upkeep(("d", false), target, |upkeep, warnings| upkeep.prune(false, warnings));
    strike(
        &place,
        &[End::KilledBefore],
        |target| prune(target).map(drop),
        |what| {
            removed.extend(what.split_once(", remove ").map(|(_, path)| path.to_owned()));
        },
    );
    assert_eq!(removed, ["index.html", "drop/x.txt", "turn"]);
}
