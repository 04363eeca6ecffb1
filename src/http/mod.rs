//! HTTP, set up once: time-outs on every wait and on all of them together, no redirects, keep-alive, and when to try
//! again.

mod authorities;
mod names;
mod proxies;

use std::sync::Arc;
use std::time::{Duration, Instant};

use ureq::config::ConfigBuilder;
use ureq::http::{Request, Response, Uri};
use ureq::tls::{RootCerts, TlsConfig};
use ureq::typestate::AgentScope;
use ureq::unversioned::transport::DefaultConnector;
use ureq::{Agent, AsSendBody, Body};

pub use authorities::Authorities;
pub use proxies::Proxies;

use self::names::Names;
use crate::error::{self, Code, Error};
use crate::host::Cancel;

/// How many times a request is tried at most.
const TRIES: u32 = 6;
/// How many of them may end by waiting in vain.
const SILENT_TRIES: u32 = 2;
/// The first pause between two tries, at most; each further one may be twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// The longest pause, whatever the server asks for.
const LONGEST_PAUSE: Duration = Duration::from_secs(20);
/// How many times as long as nothing may move a whole exchange may take.
const WHOLE: u32 = 10;
/// How long a pause goes on before a signal is looked for.
const SLICE: Duration = Duration::from_millis(50);

/// What a client is set up with.
#[derive(Clone, Debug)]
pub struct Settings {
    /// How long a connection may take.
    pub connect_timeout: Duration,
    /// How long nothing may move.
    pub timeout: Duration,
    /// How many connections are kept for the next request.
    pub connections: usize,
    /// Whom to trust, in place of the authorities that are built in.
    pub authorities: Option<Authorities>,
    /// What stands before servers.
    pub proxies: Proxies,
}

/// A client: connections that are kept and used again.
#[derive(Clone, Debug)]
pub struct Http {
    agent: Agent,
    proxies: Proxies,
    /// How long an exchange may take in all, however slowly bytes come.
    whole: Option<Duration>,
}

impl Http {
    /// A client.
    pub fn new(settings: &Settings) -> Http {
        let mut tls = TlsConfig::builder();
        if let Some(Authorities(certificates)) = &settings.authorities {
            tls = tls.root_certs(RootCerts::Specific(Arc::clone(certificates)));
        }
        let whole = settings.timeout.saturating_mul(WHOLE);
        let config = config(settings).timeout_recv_response(Some(whole)).tls_config(tls.build());
        Http { agent: agent(config), proxies: settings.proxies.clone(), whole: Some(whole) }
    }

    /// The same for exchanges of objects: once an answer has begun, their bytes may take as long as they move.
    #[must_use]
    pub fn patient(&self) -> Http {
        Http { whole: None, ..self.clone() }
    }

    /// A client for servers of this host and its link: no proxy stands before them, and each exchange ends within
    /// `timeout`, however slowly bytes come.
    pub fn nearby(connect_timeout: Duration, timeout: Duration) -> Http {
        let proxies = Proxies::default();
        let settings =
            Settings { connect_timeout, timeout, connections: 1, authorities: None, proxies: proxies.clone() };
        Http { agent: agent(config(&settings)), proxies, whole: Some(timeout) }
    }

    /// Sends a request once.
    pub fn send(&self, request: Request<impl AsSendBody>) -> Result<Response<Body>, ureq::Error> {
        let proxy = self.proxies.before(request.uri()).cloned();
        self.agent.run(self.agent.configure_request(request).proxy(proxy).timeout_global(self.whole).build())
    }

    /// The server of a URL and the proxy before it, for messages.
    pub fn route(&self, url: &str) -> String {
        let Ok(uri) = url.parse::<Uri>() else { return url.to_owned() };
        let server = uri.authority().map(ToString::to_string).unwrap_or_default();
        match self.proxies.before(&uri) {
            Some(proxy) => format!("{server} through the proxy {}:{}", proxy.host(), proxy.port()),
            None => server,
        }
    }
}

fn agent(config: ConfigBuilder<AgentScope>) -> Agent {
    Agent::with_parts(config.build(), DefaultConnector::default(), Names)
}

/// What all clients have in common.
fn config(settings: &Settings) -> ConfigBuilder<AgentScope> {
    Agent::config_builder()
        .http_status_as_error(false)
        .max_redirects(0)
        .max_redirects_will_error(false)
        .proxy(None)
        .timeout_resolve(Some(settings.connect_timeout))
        .timeout_connect(Some(settings.connect_timeout))
        .timeout_per_read(Some(settings.timeout))
        .timeout_per_write(Some(settings.timeout))
        .max_idle_connections(settings.connections)
        .max_idle_connections_per_host(settings.connections)
        .user_agent(concat!("distributor/", env!("CARGO_PKG_VERSION")))
}

/// How a try ended that did not give an answer.
pub enum Failed {
    /// Trying again would change nothing.
    ForGood(Error),
    /// What failed may pass; the server may have said when.
    ForNow(Error, Option<Duration>),
}

impl Failed {
    /// With another cure.
    #[must_use]
    pub fn hint(self, hint: &str) -> Failed {
        match self {
            Failed::ForGood(error) => Failed::ForGood(error.hint(hint)),
            Failed::ForNow(error, after) => Failed::ForNow(error.hint(hint), after),
        }
    }

    /// What a request ended with that got no whole answer.
    pub fn of(place: &str, error: &ureq::Error) -> Failed {
        let says = |code, what: &dyn std::fmt::Display| Error::new(code, format!("{place}: {what}"));
        match error {
            ureq::Error::Timeout(_) => Failed::ForNow(says(Code::Timeout, &"the server does not answer in time"), None),
            ureq::Error::HostNotFound => Failed::ForNow(away(&says, &"there is no such host"), None),
            ureq::Error::Io(io) if is_certificate(io) => Failed::ForGood(untrusted(&says, io)),
            ureq::Error::Io(io) if io.kind() == std::io::ErrorKind::TimedOut => {
                Failed::ForNow(says(Code::Timeout, &"the server does not answer in time"), None)
            }
            ureq::Error::Io(io) => Failed::ForNow(away(&says, &error::words(io)), None),
            ureq::Error::ConnectionFailed | ureq::Error::Protocol(_) | ureq::Error::BodyStalled => {
                Failed::ForNow(away(&says, error), None)
            }
            ureq::Error::Rustls(_) | ureq::Error::Tls(_) => Failed::ForGood(untrusted(&says, error)),
            other => Failed::ForGood(says(Code::Unreachable, other)),
        }
    }
}

fn is_certificate(error: &std::io::Error) -> bool {
    error.kind() == std::io::ErrorKind::InvalidData
}

fn away(says: &dyn Fn(Code, &dyn std::fmt::Display) -> Error, what: &dyn std::fmt::Display) -> Error {
    says(Code::Unreachable, what).hint("check the address and the network, then run again")
}

fn untrusted(says: &dyn Fn(Code, &dyn std::fmt::Display) -> Error, what: &dyn std::fmt::Display) -> Error {
    let what = what.to_string();
    if what.contains("InvalidContentType") {
        return says(Code::Unreachable, &"it does not answer in TLS").hint("is it http, not https, that it speaks?");
    }
    let hint = if what.contains("not valid for name") {
        "write the endpoint with a name that its certificate is for"
    } else {
        "where the certificate is of an authority of your own, AWS_CA_BUNDLE has to name a file that holds that one"
    };
    says(Code::Unreachable, &what).hint(hint)
}

/// Whether no address was found for a server's name.
pub fn is_unknown_host(error: &ureq::Error) -> bool {
    match error {
        ureq::Error::HostNotFound => true,
        // The standard library has no kind for it.
        ureq::Error::Io(io) => io.to_string().starts_with("failed to lookup address information"),
        _ => false,
    }
}

/// Whether a connection ended as it does where a server is spoken to in another protocol than its own.
pub fn is_broken_off(error: &ureq::Error) -> bool {
    use std::io::ErrorKind::{ConnectionReset, UnexpectedEof};
    match error {
        ureq::Error::Io(io) => matches!(io.kind(), ConnectionReset | UnexpectedEof),
        ureq::Error::Protocol(_) => true,
        _ => false,
    }
}

/// Does `attempt` until it gives an answer, with pauses that grow, vary, and end when a signal comes. It is told how many
/// tries went before.
pub fn retried<T>(cancel: &Cancel, mut attempt: impl FnMut(u32) -> Result<T, Failed>) -> Result<T, Error> {
    let (mut tried, mut silent) = (0, 0);
    loop {
        cancel.check()?;
        let (error, after) = match attempt(tried) {
            Ok(answer) => return Ok(answer),
            Err(Failed::ForGood(error)) => return Err(error),
            Err(Failed::ForNow(error, after)) => (error, after),
        };
        silent += u32::from(error.code == Code::Timeout);
        if tried + 1 >= TRIES || silent >= SILENT_TRIES {
            return Err(error);
        }
        pause(cancel, after.unwrap_or_else(|| varied(FIRST_PAUSE * 2u32.pow(tried))))?;
        tried += 1;
    }
}

/// Between a half and the whole of `most`.
pub fn varied(most: Duration) -> Duration {
    use std::hash::{BuildHasher, RandomState};
    let chance = u32::from(RandomState::new().hash_one(0).to_be_bytes()[0]);
    most / 2 + most / 512 * chance
}

/// Waits, unless a signal comes.
pub fn pause(cancel: &Cancel, time: Duration) -> Result<(), Error> {
    let until = Instant::now() + time.min(LONGEST_PAUSE);
    loop {
        cancel.check()?;
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(());
        }
        std::thread::sleep(left.min(SLICE));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failing(code: Code) -> impl FnMut(u32) -> Result<u32, Failed> {
        move |_| Err(Failed::ForNow(Error::new(code, "no"), Some(Duration::ZERO)))
    }

    #[test]
    fn what_passes_is_tried_again_and_not_for_ever() {
        let cancel = Cancel::default();
        let third = |tried| if tried == 2 { Ok(tried) } else { failing(Code::Unreachable)(tried) };
        assert_eq!(retried(&cancel, third).unwrap(), 2);
        let mut tries = 0;
        let mut fails = failing(Code::Unreachable);
        let counted = |tried| {
            tries += 1;
            fails(tried)
        };
        assert_eq!(retried(&cancel, counted).unwrap_err().code, Code::Unreachable);
        assert_eq!(tries, TRIES);
    }

    #[test]
    fn silence_is_not_waited_for_often_and_what_is_final_not_at_all() {
        let cancel = Cancel::default();
        for (code, good, most) in [(Code::Timeout, false, SILENT_TRIES), (Code::AuthFailed, true, 1)] {
            let mut tries = 0;
            let attempt = |_| -> Result<(), Failed> {
                tries += 1;
                let error = Error::new(code, "no");
                Err(if good { Failed::ForGood(error) } else { Failed::ForNow(error, Some(Duration::ZERO)) })
            };
            assert_eq!(retried(&cancel, attempt).unwrap_err().code, code);
            assert_eq!(tries, most);
        }
    }

    #[test]
    fn a_signal_ends_a_pause() {
        let cancel = Cancel::default();
        cancel.raise(15);
        assert_eq!(pause(&cancel, Duration::from_secs(9)).unwrap_err().code, Code::Interrupted);
    }
}
