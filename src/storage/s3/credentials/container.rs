//! The key of a container's role: ECS, EKS Pod Identity, and what follows their protocol (AWS SDKs and Tools Reference
//! Guide, "Container credential provider").
//!
//! aws-creds has this source too. It is not used: it reads the environment of the process and not that of [`World`], has
//! no TLS here for an https address, bounds no answer, and its errors name neither the place nor the cure. Its rules for
//! addresses are kept.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use ureq::http::Request;
use ureq::http::header::{AUTHORIZATION, HeaderValue};
use url::{Host, Url};

use super::answer::{ask, for_good, key};
use super::world::{World, read_token};
use super::{Key, Web, no_key};
use crate::error::{Code, Result};
use crate::http::{Http, retried};

const SOURCE: &str = "the container's role";
const RELATIVE: &str = "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI";
const FULL: &str = "AWS_CONTAINER_CREDENTIALS_FULL_URI";
const TOKEN: &str = "AWS_CONTAINER_AUTHORIZATION_TOKEN";
const TOKEN_FILE: &str = "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE";

/// The agent of ECS.
const ECS: Ipv4Addr = Ipv4Addr::new(169, 254, 170, 2);
/// The agent of EKS Pod Identity.
const EKS: Ipv4Addr = Ipv4Addr::new(169, 254, 170, 23);
/// The same.
const EKS_V6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x23);

/// The key of the role, where one is configured.
pub(super) fn find(world: &World, web: &Web<'_>) -> Result<Option<Key>> {
    if !world.has(RELATIVE) && !world.has(FULL) {
        return Ok(None);
    }
    let prepare = || Ok((address(world)?, authorization(world)?));
    let cure = format!("{RELATIVE} and {FULL} are the platform's to set, with {TOKEN_FILE}: leave them as they were");
    let (url, token) = prepare().map_err(|what: String| no_key(SOURCE, what, cure))?;
    // Who knows the path has the key, where no token is asked for.
    let place = url.origin().ascii_serialization();
    let nearby = Http::nearby(Duration::from_secs(2), Duration::from_secs(10));
    let http = if url.scheme() == "https" { web.http } else { &nearby };
    let found = retried(web.cancel, |_| {
        let mut request = Request::get(url.as_str());
        if let Some(token) = &token {
            request = request.header(AUTHORIZATION, token);
        }
        let request = request.body(()).map_err(|_| for_good(&place, "it is no address"));
        let text = request.and_then(|request| ask(http, &place, request));
        text.and_then(|text| key(&place, &text)).map_err(|refusal| refusal.failed(&place))
    });
    match found {
        Err(error) if error.code == Code::Interrupted => Err(error),
        Err(error) => Err(no_key(SOURCE, error, "see that the container has a role, and that its agent answers")),
        Ok(key) => Ok(Some(key)),
    }
}

/// Where the agent is. The relative one decides, as with AWS.
pub(super) fn address(world: &World) -> std::result::Result<Url, String> {
    match (world.text(RELATIVE)?, world.text(FULL)?) {
        (Some(path), _) if !path.starts_with('/') => Err(format!("${RELATIVE} does not begin with /")),
        // Behind the host nothing can name another one.
        (Some(path), _) => Url::parse(&format!("http://{ECS}{path}")).map_err(|_| format!("${RELATIVE} is no path")),
        (None, Some(url)) => allowed(url).ok_or_else(|| {
            format!(
                "${FULL} is neither https nor http to this host or {ECS}, {EKS} or [{EKS_V6}]; a token may go there"
            )
        }),
        (None, None) => Err(format!("${FULL} is not set")),
    }
}

/// The address, if a token may be sent there: over TLS to all, in the clear only to where nobody listens.
pub(super) fn allowed(text: &str) -> Option<Url> {
    let mut url = Url::parse(text.trim()).ok()?;
    if !url.username().is_empty() || url.password().is_some() || url.fragment().is_some() {
        return None;
    }
    let near = match url.host()? {
        Host::Domain(name) => name == "localhost",
        Host::Ipv4(ip) => ip.is_loopback() || ip == ECS || ip == EKS,
        Host::Ipv6(ip) => ip.is_loopback() || ip == EKS_V6,
    };
    match url.scheme() {
        "https" => Some(url),
        "http" if near => {
            // The name could be given to another host.
            if url.host_str() == Some("localhost") {
                url.set_host(Some("127.0.0.1")).ok()?;
            }
            Some(url)
        }
        _ => None,
    }
}

/// `Authorization`, where there is one; its file goes before the variable.
fn authorization(world: &World) -> std::result::Result<Option<HeaderValue>, String> {
    let token = match world.path(TOKEN_FILE) {
        Some(file) => Some(read_token(&file)?),
        None => world.text(TOKEN)?.map(|token| token.trim().to_owned()),
    };
    let Some(token) = token else { return Ok(None) };
    let mut value = HeaderValue::from_str(&token).map_err(|_| format!("${TOKEN} is no header"))?;
    value.set_sensitive(true);
    Ok(Some(value))
}
