//! A prefix of an S3 bucket. There is no rename: a PUT is a commit, nothing can be finished without the source, and what
//! was cut short is published again by its owner.

mod client;
mod credentials;
mod fault;
mod hand;
mod lease;
mod list;
mod lock;
mod multipart;
mod own;
mod payload;
mod put;
mod read;
mod remove;
mod small;
mod xml;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use url::Url;

pub use credentials::{Key, Keys};
pub use multipart::Parts;

pub use crate::http::{Authorities, Proxies};

use self::client::{Address, Client};
use self::lease::Bond;
use self::own::Own;
use crate::digest::Fingerprint;
use crate::error::{Code, Error, Result};
use crate::host::{Cancel, Holder};
use crate::http::{self, Http};
use crate::names::LOCK;
use crate::path::{BundlePath, RawPath, RelPath};
use crate::storage::{
    Above, Commit, Entry, Expected, Guard, Job, Met, Opened, Recovery, Scope, Small, Stage, StageError, Storage,
};

/// `Cache-Control` of a new object, by its path.
pub type CacheControl = Box<dyn Fn(&RelPath) -> Option<String> + Send + Sync>;

/// A bucket, and how it is spoken to.
pub struct Settings {
    /// The server; AWS's of the region where there is none.
    pub endpoint: Option<String>,
    /// The bucket.
    pub bucket: String,
    /// The region.
    pub region: String,
    /// Whether the bucket stands in the path, not in the host's name.
    pub path_style: bool,
    /// The class of new objects.
    pub storage_class: Option<String>,
    /// `Cache-Control` of a new object, by its path.
    pub cache_control: CacheControl,
    /// How many requests at the same time.
    pub concurrency: usize,
    /// How large outputs are sent.
    pub parts: Parts,
    /// How long a connection may take.
    pub connect_timeout: Duration,
    /// How long nothing may move.
    pub timeout: Duration,
    /// Whom to trust, in place of the authorities that are built in.
    pub authorities: Option<Authorities>,
    /// What stands before servers.
    pub proxies: Proxies,
    /// What requests are signed with.
    pub keys: Keys,
    /// This process, as it stands in locks.
    pub holder: Holder,
    /// What ends waiting.
    pub cancel: Cancel,
}

/// What of [`Settings`] is looked at later.
struct Kept {
    storage_class: Option<String>,
    cache_control: CacheControl,
    concurrency: usize,
    parts: Parts,
    holder: Holder,
}

/// What was done for a job before the commit point.
#[derive(Clone)]
enum Held {
    /// Its bytes were read; their MD5.
    Md5(String),
    /// Its parts are there.
    Upload(multipart::Upload),
}

/// A prefix of a bucket.
#[derive(Clone)]
pub struct S3 {
    client: Arc<Client>,
    settings: Arc<Kept>,
    /// The place, with `/` at its end unless it is the bucket.
    prefix: String,
    own: Arc<Mutex<Own>>,
    /// The state as it was read last without the lock.
    glimpsed: Arc<Mutex<Option<Small>>>,
    held: Arc<Mutex<BTreeMap<(String, usize), Held>>>,
    /// Held by who adds to the note of the uploads of a stage.
    noting: Arc<Mutex<()>>,
    /// Whether the server has said that it knows no conditions.
    unconditional: Arc<AtomicBool>,
}

impl fmt::Debug for S3 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.describe())
    }
}

impl S3 {
    /// The place `prefix` of a bucket. Nothing is asked of the server yet.
    pub fn new(settings: Settings, prefix: &str) -> Result<S3> {
        let address = address(&settings)?;
        let http = Http::new(&http::Settings {
            connect_timeout: settings.connect_timeout,
            timeout: settings.timeout,
            connections: settings.concurrency + 2,
            authorities: settings.authorities,
            proxies: settings.proxies,
        });
        let client = Client {
            http,
            address,
            keys: settings.keys,
            used: Mutex::default(),
            cancel: settings.cancel,
            bond: Bond::default(),
        };
        let settings = Kept {
            storage_class: settings.storage_class,
            cache_control: settings.cache_control,
            concurrency: settings.concurrency,
            parts: settings.parts,
            holder: settings.holder,
        };
        let prefix = if prefix.is_empty() { String::new() } else { format!("{prefix}/") };
        Ok(S3 {
            client: Arc::new(client),
            settings: Arc::new(settings),
            prefix,
            own: Arc::default(),
            glimpsed: Arc::default(),
            held: Arc::default(),
            noting: Arc::default(),
            unconditional: Arc::default(),
        })
    }

    /// Another place of the same bucket.
    fn with_prefix(&self, prefix: String) -> S3 {
        S3 { prefix, own: Arc::default(), glimpsed: Arc::default(), held: Arc::default(), ..self.clone() }
    }
}

fn address(settings: &Settings) -> Result<Address> {
    let Settings { bucket, region, .. } = settings;
    let endpoint = settings.endpoint.clone().unwrap_or_else(|| aws_endpoint(region));
    let fail = || {
        let message = format!("endpoint {endpoint} gives no address for bucket {bucket}");
        Error::new(Code::InvalidConfig, message).hint("set path_style: true, or another endpoint")
    };
    let mut base = Url::parse(&endpoint).map_err(|_| fail())?;
    if settings.path_style || is_aws_with_dots(settings) {
        base.path_segments_mut().map_err(|()| fail())?.pop_if_empty().push(bucket).push("");
    } else {
        let host = format!("{bucket}.{}", base.host_str().ok_or_else(fail)?);
        base.set_host(Some(&host)).map_err(|_| fail())?;
        base.path_segments_mut().map_err(|()| fail())?.pop_if_empty().push("");
    }
    Ok(Address { base, bucket: bucket.clone(), region: region.clone() })
}

fn aws_endpoint(region: &str) -> String {
    let domain = if region.starts_with("cn-") { "amazonaws.com.cn" } else { "amazonaws.com" };
    format!("https://s3.{region}.{domain}")
}

/// AWS's certificate is for one label before its own: a bucket with a dot is addressed by path.
fn is_aws_with_dots(settings: &Settings) -> bool {
    settings.endpoint.is_none() && settings.bucket.contains('.')
}

impl Storage for S3 {
    fn describe(&self) -> String {
        self.client.place(self.prefix.trim_end_matches('/')).trim_end_matches('/').to_owned()
    }

    fn reads(&self) -> usize {
        self.settings.concurrency
    }

    fn recovery(&self) -> Recovery {
        Recovery::DirtyMark
    }

    fn at(&self, path: &BundlePath) -> Box<dyn Storage> {
        let below = path.below().map(|path| format!("{path}/")).unwrap_or_default();
        Box::new(self.with_prefix(format!("{}{below}", self.prefix)))
    }

    fn find(&self, marker: &str, visit: &mut dyn FnMut(&[u8], Met)) -> Result<()> {
        self.search(marker, visit)
    }

    fn list(&self, scope: Scope, visit: &mut dyn FnMut(Entry) -> Result<()>) -> Result<()> {
        self.walk(scope, visit)
    }

    fn exist_many(&self, paths: &[&RelPath]) -> Result<Vec<bool>> {
        self.are_there(paths)
    }

    fn above(&self, name: &str, limit: u64) -> Vec<Above> {
        self.states_above(name, limit)
    }

    fn read(&self, path: &RelPath) -> Result<Opened<'static>> {
        self.open(path)
    }

    fn get_small(&self, name: &str, limit: u64) -> Result<Option<Small>> {
        self.read_small(name, limit)
    }

    fn put_small(&self, name: &str, bytes: &[u8], expected: Expected<'_>) -> Result<()> {
        self.write_small(name, bytes, expected)
    }

    fn remove_small(&self, name: &str) -> Result<()> {
        self.delete_small(name)
    }

    fn own_names(&self, prefix: &str) -> Result<Vec<String>> {
        self.list_own(prefix)
    }

    /// A journal is only written under the lock, whose mark stays as long as it does: one request tells of all.
    fn disturbed(&self, _: &str) -> Result<bool> {
        Ok(self.head(&self.key(LOCK))?.is_some())
    }

    fn lock(&self, holder: &[u8], waiting: &dyn Fn(Duration) -> Result<()>) -> Result<Box<dyn Guard>> {
        self.acquire(holder, waiting)
    }

    fn is_locked(&self) -> Result<bool> {
        self.has_live_lock()
    }

    fn sweep_stages(&self, keep: &[Stage]) -> Result<()> {
        self.sweep(keep)
    }

    /// Nothing is there until parts are sent.
    fn open_stage(&self, _: &Stage) -> Result<()> {
        Ok(())
    }

    fn stage_all(
        &self,
        stage: &Stage,
        first: usize,
        jobs: &[Job<'_>],
        cancel: &Cancel,
    ) -> Vec<std::result::Result<Fingerprint, StageError>> {
        self.stage_jobs(stage, first, jobs, cancel)
    }

    /// What the server has answered for is durable.
    fn flush_stage(&self, _: &Stage, _: usize) -> Result<()> {
        Ok(())
    }

    fn staged(&self, _: &Stage, _: usize, _: u64) -> Result<Option<Vec<u8>>> {
        Ok(None)
    }

    fn commit_all(&self, stage: &Stage, jobs: &[Job<'_>], commits: &[Commit<'_>]) -> Result<()> {
        self.put_jobs(stage, jobs, commits)
    }

    fn remove_created(&self, stage: &Stage, paths: &[&RelPath]) -> Result<()> {
        self.take_back(stage, paths)
    }

    fn wrote(&self, stage: &Stage, paths: &[&RelPath]) -> Result<Vec<bool>> {
        self.are_of(stage, paths)
    }

    fn close_stage(&self, stage: &Stage) -> Result<()> {
        self.drop_stage(stage)
    }

    fn check_writable(&self, _: &[&[u8]]) -> Result<()> {
        Ok(())
    }

    fn make_dirs(&self, _: &[&str]) -> Result<()> {
        Ok(())
    }

    fn remove_many(&self, paths: &[&RawPath]) -> Vec<Result<()>> {
        self.delete_many(paths)
    }

    fn remove_empty_dirs(&self, _: &[&RawPath]) -> Result<()> {
        Ok(())
    }

    fn flush_dirs(&self, _: &[&[u8]]) -> Result<()> {
        Ok(())
    }
}
