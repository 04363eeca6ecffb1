//! The chain itself: which source decides, and how long its key is kept.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant, SystemTime};

use time::OffsetDateTime;

use super::instance::Found;
use super::world::World;
use super::{Key, Web, container, environment, instance, no_key, profile, web_identity};
use crate::error::{Code, Error, Result};
use crate::host::Cancel;
use crate::http::Http;

/// How long before its end a key is renewed: the next one is there by then (Amazon EC2 User Guide, "Retrieve security
/// credentials from instance metadata": five minutes before).
const EARLY: time::Duration = time::Duration::minutes(5);

/// For how long what a source said counts: neither one that fails nor one that has no newer key is asked for every
/// request.
const PAUSE: Duration = Duration::from_secs(10);

/// The AWS default chain, asked at the first request.
pub(super) struct Chain {
    pub(super) world: World,
    state: Mutex<State>,
    /// Held by the one thread that asks.
    asking: Mutex<()>,
    pub(super) pause: Duration,
}

#[derive(Default)]
struct State {
    key: Option<Arc<Key>>,
    /// When the sources were asked last.
    asked: Option<Instant>,
    /// What they said then, where it was no key.
    error: Option<Error>,
}

/// What there is now.
enum Held {
    /// A key that is good.
    Good(Arc<Key>),
    /// One that is good, and soon will not be.
    Due(Arc<Key>),
    /// None, and it is too early to ask again.
    Failed(Error),
    Nothing,
}

impl Chain {
    pub(super) fn new(world: World) -> Chain {
        Chain { world, state: Mutex::default(), asking: Mutex::default(), pause: PAUSE }
    }

    pub(super) fn get(&self, http: &Http, cancel: &Cancel) -> Result<Arc<Key>> {
        let web = Web { http, cancel };
        match self.held() {
            Held::Good(key) => Ok(key),
            Held::Failed(error) => Err(error),
            Held::Due(key) => {
                // One asks; the others go on with the key they have.
                let _asking = match self.asking.try_lock() {
                    Ok(guard) => guard,
                    Err(TryLockError::Poisoned(guard)) => guard.into_inner(),
                    Err(TryLockError::WouldBlock) => return Ok(key),
                };
                match self.held() {
                    Held::Good(newer) => Ok(newer),
                    // An error is none as long as this key is good.
                    _ => Ok(self.ask(&web).unwrap_or(key)),
                }
            }
            Held::Nothing => {
                let _asking = lock(&self.asking);
                match self.held() {
                    Held::Good(key) | Held::Due(key) => Ok(key),
                    Held::Failed(error) => Err(error),
                    Held::Nothing => self.ask(&web),
                }
            }
        }
    }

    /// Forgets the key that a server refused, unless there is another one by now. Whether to go on.
    pub(super) fn renew(&self, refused: &Arc<Key>) -> bool {
        let mut state = lock(&self.state);
        state.key = state.key.take().filter(|key| !Arc::ptr_eq(key, refused));
        // The environment will not change.
        state.key.is_some() || !environment::is_configured(&self.world)
    }

    fn held(&self) -> Held {
        let state = lock(&self.state);
        let now = OffsetDateTime::from(SystemTime::now());
        let recent = state.asked.is_some_and(|asked| asked.elapsed() < self.pause);
        let left = |key: &Key| key.expires.map_or(time::Duration::MAX, |end| end - now);
        match (&state.key, &state.error) {
            (Some(key), _) if left(key) > EARLY || (recent && left(key).is_positive()) => Held::Good(Arc::clone(key)),
            (Some(key), _) if left(key).is_positive() => Held::Due(Arc::clone(key)),
            (_, Some(error)) if recent => Held::Failed(error.clone()),
            _ => Held::Nothing,
        }
    }

    /// Asks the sources. For who holds `asking`.
    fn ask(&self, web: &Web<'_>) -> Result<Arc<Key>> {
        let found = first(&self.world, web).and_then(|key| match key.expires {
            Some(end) if end <= OffsetDateTime::from(SystemTime::now()) => Err(no_key(
                "the chain",
                "the one it gives has ended already",
                "set this host's clock, or renew the role",
            )),
            _ => Ok(Arc::new(key)),
        });
        let mut state = lock(&self.state);
        state.asked = Some(Instant::now());
        state.error = found.as_ref().err().cloned();
        if let Ok(key) = &found {
            state.key = Some(Arc::clone(key));
        }
        found
    }
}

/// The key of the first source that is configured.
fn first(world: &World, web: &Web<'_>) -> Result<Key> {
    if let Some(key) = environment::find(world)? {
        return Ok(key);
    }
    if let Some(key) = profile::find(world)? {
        return Ok(key);
    }
    if let Some(key) = web_identity::find(world, web)? {
        return Ok(key);
    }
    if let Some(key) = container::find(world, web)? {
        return Ok(key);
    }
    match instance::find(world, web)? {
        Found::Key(key) => Ok(key),
        Found::Nothing(why) => Err(none(world, &why)),
    }
}

fn none(world: &World, why: &dyn std::fmt::Display) -> Error {
    let message = match world.text("AWS_PROFILE") {
        Ok(Some(profile)) => format!("profile {profile:?} has no key, and there are no other credentials; {why}"),
        _ => format!("there are no credentials; {why}"),
    };
    Error::new(Code::AuthFailed, message).hint(
        "name variables in access_key_id_env and secret_access_key_env, or set up one of the sources that \
         distributor.yml(5) lists under \"Keys of the AWS default chain\"",
    )
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
