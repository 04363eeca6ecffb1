//! A key for a web identity: a token that an issuer put into a file is changed for a key of a role (AWS STS API Reference,
//! `AssumeRoleWithWebIdentity`). It is asked through our own client, as aws-creds has no TLS here.

use ureq::http::Request;
use url::form_urlencoded::Serializer;

use super::answer::{ask, for_good};
use super::sts;
use super::world::{World, read_token};
use super::{Key, Web, no_key};
use crate::error::{Code, Result};
use crate::http::retried;

const SOURCE: &str = "the web identity";
pub(super) const FILE: &str = "AWS_WEB_IDENTITY_TOKEN_FILE";
pub(super) const ROLE: &str = "AWS_ROLE_ARN";

/// The key of the role, where one is configured.
pub(super) fn find(world: &World, web: &Web<'_>) -> Result<Option<Key>> {
    // A role alone configures nothing: other tools read it too.
    let Some(file) = world.path(FILE) else { return Ok(None) };
    let prepare = || {
        let role = world.text(ROLE)?.ok_or_else(|| format!("${FILE} is set, and ${ROLE} is not"))?;
        let session = world.text("AWS_ROLE_SESSION_NAME")?.unwrap_or("distributor");
        Ok((endpoint(world)?, body(role, session, &read_token(&file)?)))
    };
    let cure = format!("set {ROLE} to the role, and {FILE} to a file with the token");
    let (endpoint, body) = prepare().map_err(|what: String| no_key(SOURCE, what, cure))?;
    let key = retried(web.cancel, |_| {
        let request = Request::post(&endpoint).header("content-type", "application/x-www-form-urlencoded");
        let request = request.body(&body).map_err(|_| for_good(&endpoint, "it is no address"));
        let text = request.and_then(|request| ask(web.http, &endpoint, request));
        text.and_then(|text| sts::key(&endpoint, &text)).map_err(|refusal| sts::failed(&endpoint, refusal))
    });
    match key {
        Err(error) if error.code == Code::Interrupted => Err(error),
        Err(error) => {
            let cure = format!("check {ROLE}, the file {FILE} names, and AWS_REGION or AWS_ENDPOINT_URL_STS");
            Err(no_key(SOURCE, &error, error.hint.clone().unwrap_or(cure)))
        }
        Ok(key) => Ok(Some(key)),
    }
}

/// Where the service is: that of the region, else the global one.
pub(super) fn endpoint(world: &World) -> std::result::Result<String, String> {
    if let Some(endpoint) = world.text("AWS_ENDPOINT_URL_STS")? {
        return Ok(endpoint.trim().to_owned());
    }
    let region = match world.text("AWS_REGION")? {
        Some(region) => Some(region),
        None => world.text("AWS_DEFAULT_REGION")?,
    };
    match region.map(str::trim) {
        None => Ok("https://sts.amazonaws.com/".to_owned()),
        // It becomes part of a host's name, where a token is sent.
        Some(region) if !region.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-') => {
            Err(format!("$AWS_REGION or $AWS_DEFAULT_REGION is {region:?}, which is no region"))
        }
        Some(region) if region.starts_with("cn-") => Ok(format!("https://sts.{region}.amazonaws.com.cn/")),
        Some(region) => Ok(format!("https://sts.{region}.amazonaws.com/")),
    }
}

fn body(role: &str, session: &str, token: &str) -> String {
    let mut form = Serializer::new(String::new());
    form.append_pair("Action", "AssumeRoleWithWebIdentity").append_pair("Version", "2011-06-15");
    form.append_pair("RoleArn", role.trim()).append_pair("RoleSessionName", session.trim());
    form.append_pair("WebIdentityToken", token).finish()
}
