//! The S3 backend on the servers that the tests start.

use std::cell::RefCell;
use std::time::Duration;

use distributor::host::{Cancel, Holder};
use distributor::storage::s3::{Key, Keys, Parts, Proxies, Settings};
use distributor::storage::{S3, Storage};

use crate::scene::{NEW, Scene};
use crate::servers::{self, ACCESS_KEY, Place, SECRET_KEY};
use crate::shared;
use crate::sweep::{self, Tree};
use crate::upkeep::{Act, finishes};

/// The backend on `place`, as a process of its own would have it.
pub(crate) fn s3(place: &Place) -> S3 {
    s3_through(place, &format!("http://{}", place.server.address))
}

/// The same by way of another address.
pub(crate) fn s3_through(place: &Place, endpoint: &str) -> S3 {
    s3_with(place, endpoint, |_| ())
}

/// The same, set up in another way than most are.
pub(crate) fn s3_with(place: &Place, endpoint: &str, change: impl FnOnce(&mut Settings)) -> S3 {
    let mut settings = Settings {
        endpoint: Some(endpoint.to_owned()),
        bucket: place.bucket.to_owned(),
        region: place.server.region.to_owned(),
        path_style: true,
        storage_class: None,
        cache_control: Box::new(|_| None),
        concurrency: 16,
        parts: Parts::default(),
        connect_timeout: Duration::from_secs(5),
        timeout: Duration::from_secs(20),
        authorities: None,
        proxies: Proxies::default(),
        keys: keys(ACCESS_KEY, SECRET_KEY),
        holder: Holder::this_process(),
        cancel: Cancel::default(),
    };
    change(&mut settings);
    S3::new(settings, place.prefix.trim_end_matches('/')).unwrap()
}

/// A key that lasts for ever.
pub(crate) fn keys(id: &str, secret: &str) -> Keys {
    Keys::given(Key { id: id.into(), secret: secret.into(), session_token: None, expires: None })
}

const TOKEN: &str = "x-amz-meta-distributor-token";

/// A place in a bucket. Put back to how it was it is another prefix, which is quicker than to clear one.
struct InBucket(RefCell<Place>);

impl InBucket {
    fn of(server: &'static servers::Server) -> InBucket {
        InBucket(RefCell::new(server.place("sweep")))
    }
}

impl sweep::Place for InBucket {
    fn storage(&self) -> Box<dyn Storage> {
        Box::new(s3(&self.0.borrow()))
    }

    fn tree(&self) -> Tree {
        self.0.borrow().tree()
    }

    fn save(&self) -> Box<dyn Fn() + '_> {
        let place = self.0.borrow().clone();
        let saved: Vec<_> = place.keys().into_iter().map(|key| (place.get(&key).unwrap(), key)).collect();
        Box::new(move || {
            let fresh = place.server.place("sweep");
            for (object, key) in &saved {
                let token: Vec<_> = object.header(TOKEN).map(|token| (TOKEN, token)).into_iter().collect();
                fresh.put_with(key, &object.bytes, &token);
            }
            self.0.replace(fresh);
        })
    }
}

#[test]
fn a_new_publication_converges_in_a_bucket() {
    for server in servers::all() {
        sweep::converges(&Scene::new(), &InBucket::of(server), true);
    }
}

#[test]
fn a_replacement_converges_in_a_bucket() {
    for server in servers::all() {
        let (scene, place) = (Scene::new(), InBucket::of(server));
        scene.publish("old", "d", sweep::Place::storage(&place).as_ref()).unwrap();
        sweep::converges(&scene, &place, false);
    }
}

#[test]
fn runs_at_once_in_a_bucket_leave_the_newer_bundle_whole() {
    let mut scene = Scene::new();
    scene.holder = Holder::this_process();
    for server in servers::all() {
        for round in 0..10 {
            let place = server.place("races");
            std::thread::scope(|scope| {
                for at in 0..4 {
                    let (scene, target) = (&scene, s3(&place));
                    let name = if at % 2 == 0 { "old" } else { "new" };
                    scope.spawn(move || scene.publish(name, "d", &target).unwrap());
                }
            });
            let tree = place.tree();
            assert_eq!(tree.len(), NEW.len() + 1, "round {round}: {:?}", tree.keys());
            assert!(sweep::is(&tree, NEW), "round {round}: {:?}", tree.keys());
        }
    }
}

#[test]
fn two_owners_at_once_in_a_bucket_are_both_recorded() {
    let mut scene = Scene::new();
    scene.holder = Holder::this_process();
    for server in servers::all() {
        let place = RefCell::new(server.place("shared"));
        let clear = || {
            place.replace(server.place("shared"));
            Box::new(s3(&place.borrow())) as Box<dyn Storage>
        };
        // moto takes a hundred times as long for a request as a store does.
        let rounds = if server.name == "moto" { 10 } else { shared::ROUNDS };
        shared::at_once(&scene, (2, rounds), clear, || place.borrow().tree());
    }
}

#[test]
fn a_killed_pruning_is_finished_in_a_bucket() {
    for server in servers::all() {
        let (scene, place) = (Scene::new(), InBucket::of(server));
        scene.publish("old", "d", sweep::Place::storage(&place).as_ref()).unwrap();
        for next in [Act::Publish("new", "d"), Act::Prune("d")] {
            finishes(&scene, &place, Act::Prune("d"), next);
        }
    }
}

#[test]
fn odd_names_go_there_and_back() {
    let names =
        ["a b", "a+b", "100%", "%41", "c#d", "e?f=g&h", "ü/ß", "日本/語", "🎈", "'q\"", "(x)", "a;b,c", "~t", "=", "@"];
    for server in servers::all() {
        let place = server.place("odd names");
        let (storage, jobs) = (s3(&place), names.map(|name| distributor::path::RelPath::parse(name).unwrap()));
        let stage = distributor::storage::Stage("1".to_owned());
        let job = |path| distributor::storage::Job {
            path,
            expected: Some(distributor::digest::Fingerprint::of(path.as_str().as_bytes())),
            body: distributor::storage::Body::Bytes(path.as_str().as_bytes()),
        };
        let jobs_of: Vec<_> = jobs.iter().map(job).collect();
        let staged = storage.stage_all(&stage, 0, &jobs_of, &Cancel::default());
        assert!(staged.iter().all(Result::is_ok));
        let commits: Vec<_> = jobs
            .iter()
            .enumerate()
            .map(|(job, path)| distributor::storage::Commit { job, path, replace: false })
            .collect();
        storage.commit_all(&stage, &jobs_of, &commits).unwrap();
        let mut listed = Vec::new();
        storage
            .list(distributor::storage::Scope::Destination, &mut |entry| {
                listed.push(entry.path.unwrap().as_str().to_owned());
                Ok(())
            })
            .unwrap();
        let mut sorted = names.map(str::to_owned).to_vec();
        sorted.sort_unstable();
        assert_eq!((&listed, place.keys()), (&sorted, sorted.clone()));
        assert!(storage.exist_many(&jobs.iter().collect::<Vec<_>>()).unwrap().into_iter().all(|there| there));
        for path in &jobs {
            let mut bytes = Vec::new();
            storage.read(path).unwrap().body.read_to_end(&mut bytes).unwrap();
            assert_eq!(bytes, path.as_str().as_bytes());
        }
        let raw: Vec<distributor::path::RawPath> = names.iter().map(|name| (*name).into()).collect();
        assert!(storage.remove_many(&raw.iter().collect::<Vec<_>>()).into_iter().all(|removed| removed.is_ok()));
        assert_eq!(place.keys(), Vec::<String>::new());
    }
}
