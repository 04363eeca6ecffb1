//! Looking up the names of servers, for no longer than a connection may take.

use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::thread;

use ureq::Error;
use ureq::config::Config;
use ureq::http::Uri;
use ureq::unversioned::resolver::{DefaultResolver, ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::NextTimeout;
use ureq::unversioned::transport::time::Duration;

/// Looks names up. The system's own way to do so can't be ended: it gets a thread that may be left behind, where the
/// name is not an address already. Where there is no thread to be had it takes as long as it takes.
#[derive(Debug)]
pub(super) struct Names;

impl Resolver for Names {
    fn resolve(&self, uri: &Uri, config: &Config, timeout: NextTimeout) -> Result<ResolvedSocketAddrs, Error> {
        let at_once = NextTimeout { after: Duration::NotHappening, ..timeout };
        let (tell, hear) = sync_channel(1);
        let look = {
            let (uri, config) = (uri.clone(), config.clone());
            move || drop(tell.send(DefaultResolver::default().resolve(&uri, &config, at_once)))
        };
        if is_address(uri) || thread::Builder::new().spawn(look).is_err() {
            return DefaultResolver::default().resolve(uri, config, at_once);
        }
        match hear.recv_timeout(*timeout.after) {
            Ok(found) => found,
            Err(RecvTimeoutError::Timeout) => Err(Error::Timeout(timeout.reason)),
            Err(RecvTimeoutError::Disconnected) => Err(Error::HostNotFound),
        }
    }
}

fn is_address(uri: &Uri) -> bool {
    let host = uri.host().unwrap_or_default();
    host.trim_start_matches('[').trim_end_matches(']').parse::<std::net::IpAddr>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_no_name() {
        let is = |text: &str| is_address(&text.parse().unwrap());
        assert!(is("http://127.0.0.1:9000/x") && is("https://[::1]/") && !is("http://localhost/") && !is("/x"));
    }
}
