//! The key of an instance's role, from its metadata service: `IMDSv2` only, whose session token keeps forged requests
//! out (Amazon EC2 User Guide, "Use the Instance Metadata Service").

use std::time::Duration;

use ureq::http::Request;
use url::{Host, Url};

use super::answer::{self, Refusal, ask, for_good, word};
use super::world::World;
use super::{Key, Web, no_key};
use crate::error::{Code, Error, Result};
use crate::http::{Failed, Http, pause, varied};

const SOURCE: &str = "the instance's role";
const ENDPOINT: &str = "AWS_EC2_METADATA_SERVICE_ENDPOINT";
const ROLES: &str = "/latest/meta-data/iam/security-credentials/";
/// Seconds that the session has to last: three requests.
const SESSION: &str = "60";
/// On a host that is no instance nothing answers, and no more is to be waited for it.
const TIMEOUT: Duration = Duration::from_secs(1);
const TRIES: u32 = 2;

/// What became of asking.
pub(super) enum Found {
    /// The key of the role.
    Key(Key),
    /// There is no such service, or the instance has no role: why.
    Nothing(String),
}

/// One session with the service.
struct Service<'a> {
    http: Http,
    base: &'a str,
}

/// The key of the instance's role. No service is no error unless its endpoint is configured.
pub(super) fn find(world: &World, web: &Web<'_>) -> Result<Found> {
    if world.is_true("AWS_EC2_METADATA_DISABLED") {
        return Ok(Found::Nothing("instance metadata is disabled by AWS_EC2_METADATA_DISABLED".to_owned()));
    }
    let cure = format!("set {ENDPOINT} to the service, or unset it; AWS_EC2_METADATA_DISABLED=true leaves it out");
    let endpoint = world.text(ENDPOINT).map_err(|what| no_key(SOURCE, what, cure.clone()))?;
    let base = endpoint.unwrap_or(&world.metadata).trim().trim_end_matches('/');
    if !Url::parse(base).is_ok_and(|url| url.host().is_some_and(|host| host != Host::Domain(""))) {
        return Err(no_key(SOURCE, format!("${ENDPOINT} is no address"), cure));
    }
    let service = Service { http: Http::nearby(TIMEOUT, TIMEOUT), base };
    let mut tried = 0;
    loop {
        tried += 1;
        web.cancel.check()?;
        let failed = match service.key() {
            Ok(key) => return Ok(Found::Key(key)),
            Err(Missing::Role) => return Ok(Found::Nothing(format!("the instance ({base}) has no role"))),
            Err(Missing::Service(why)) if tried >= TRIES && endpoint.is_none() => return Ok(Found::Nothing(why)),
            Err(Missing::Service(why)) => Failed::ForNow(Error::new(Code::AuthFailed, why), None),
            Err(Missing::Key(failed)) => failed,
        };
        match failed {
            Failed::ForNow(..) if tried < TRIES => pause(web.cancel, varied(TIMEOUT / 10))?,
            Failed::ForNow(error, _) | Failed::ForGood(error) => return Err(no_key(SOURCE, error, cure)),
        }
    }
}

/// What there is none of.
enum Missing {
    Service(String),
    Role,
    Key(Failed),
}

impl Service<'_> {
    fn key(&self) -> std::result::Result<Key, Missing> {
        let session = self.session()?;
        let role = match self.get(&session, ROLES) {
            Err(Refusal::Status(404, _)) => return Err(Missing::Role),
            role => role.map_err(|refusal| self.failed(ROLES, refusal))?,
        };
        let Some(role) = role.lines().next().map(str::trim).filter(|role| !role.is_empty()) else {
            return Err(Missing::Role);
        };
        let role = word(role).ok_or_else(|| self.failed(ROLES, for_good(self.base, "the answer is no role's name")))?;
        let path = format!("{ROLES}{role}");
        let text = self.get(&session, &path);
        let key = text.and_then(|text| answer::key(&format!("{}{path}", self.base), &text));
        key.map_err(|refusal| self.failed(&path, refusal))
    }

    /// The token of a session. What gives none is no metadata service, one that is turned off, or one that is out of
    /// reach for containers (its answers make one hop only).
    fn session(&self) -> std::result::Result<String, Missing> {
        let path = "/latest/api/token";
        let place = format!("{}{path}", self.base);
        let request = Request::put(&place).header("x-aws-ec2-metadata-token-ttl-seconds", SESSION).body(());
        let request = request.map_err(|_| for_good(&place, "it is no address"));
        let token = request.and_then(|request| ask(&self.http, &place, request)).map_err(|refusal| match refusal {
            Refusal::Status(500.., _) => self.failed(path, refusal),
            refusal => match refusal.failed(&place) {
                Failed::ForNow(error, _) | Failed::ForGood(error) => Missing::Service(error.message),
            },
        })?;
        let token = token.trim();
        if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(self.failed(path, for_good(&place, "the answer is no token")));
        }
        Ok(token.to_owned())
    }

    fn get(&self, session: &str, path: &str) -> std::result::Result<String, Refusal> {
        let place = format!("{}{path}", self.base);
        let request = Request::get(&place).header("x-aws-ec2-metadata-token", session).body(());
        ask(&self.http, &place, request.map_err(|_| for_good(&place, "it is no address"))?)
    }

    fn failed(&self, path: &str, refusal: Refusal) -> Missing {
        let failed = match refusal {
            // The session's token was forgotten; the next try has another.
            Refusal::Status(401, _) => {
                let message = format!("{}{path}: the server answers 401", self.base);
                Failed::ForNow(Error::new(Code::AuthFailed, message), None)
            }
            refusal => refusal.failed(&format!("{}{path}", self.base)),
        };
        Missing::Key(failed)
    }
}
