//! Proxies, as `$HTTPS_PROXY` and its relatives name them.

use percent_encoding::percent_decode_str;
use ureq::http::Uri;
use ureq::{Proxy, ProxyProtocol};
use url::Url;

use crate::error::{Code, Error, Result};
use crate::host::Host;

/// Which proxy stands before a server.
#[derive(Clone, Debug, Default)]
pub struct Proxies {
    http: Option<Proxy>,
    https: Option<Proxy>,
}

impl Proxies {
    /// Those of the environment: for each scheme the first variable of its own, then `ALL_PROXY`, each in capitals or not.
    pub fn of(host: &Host) -> Result<Proxies> {
        let proxy = |own: &[&str]| {
            let all = own.iter().chain(&["ALL_PROXY", "all_proxy"]);
            let set = all.into_iter().find_map(|name| Some((*name, host.var(name)?.to_str().unwrap_or_default())));
            set.map(|(name, value)| named(host, name, value)).transpose()
        };
        Ok(Proxies { http: proxy(&["HTTP_PROXY", "http_proxy"])?, https: proxy(&["HTTPS_PROXY", "https_proxy"])? })
    }

    /// The one before the server of `uri`.
    pub(super) fn before(&self, uri: &Uri) -> Option<&Proxy> {
        let proxy = if uri.scheme_str() == Some("https") { &self.https } else { &self.http };
        proxy.as_ref().filter(|proxy| !proxy.is_no_proxy(uri))
    }
}

fn named(host: &Host, name: &str, value: &str) -> Result<Proxy> {
    // It may hold a password: it is not said.
    let fail = || {
        Error::new(Code::InvalidConfig, format!("${name} names no proxy that can be used"))
            .hint("write it as http://proxy.example.com:3128, or unset it; servers without proxy stand in NO_PROXY")
    };
    let with_scheme = if value.contains("://") { value.to_owned() } else { format!("http://{value}") };
    let url = Url::parse(&with_scheme).map_err(|_| fail())?;
    let protocol = match url.scheme() {
        "http" => ProxyProtocol::Http,
        "https" => ProxyProtocol::Https,
        _ => return Err(fail()),
    };
    let decoded = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
    let mut proxy = Proxy::builder(protocol).host(url.host_str().ok_or_else(fail)?);
    if let Some(port) = url.port() {
        proxy = proxy.port(port);
    }
    if !url.username().is_empty() {
        proxy = proxy.username(&decoded(url.username())).password(&decoded(url.password().unwrap_or_default()));
    }
    let without = ["NO_PROXY", "no_proxy"].iter().find_map(|name| host.var(name)?.to_str());
    for entry in without.unwrap_or_default().split(',').map(str::trim).filter(|entry| !entry.is_empty()) {
        proxy = proxy.no_proxy(entry);
        // A domain stands for what is below it, too.
        if !entry.contains('*') && !entry.starts_with('.') {
            proxy = proxy.no_proxy(&format!(".{entry}"));
        }
    }
    proxy.build().map_err(|_| fail())
}
