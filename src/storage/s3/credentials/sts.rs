//! The answers of the token service.

use serde::Deserialize;

use super::Key;
use super::answer::{Refusal, for_good, word};
use super::web_identity::{FILE, ROLE};
use crate::error::{Code, Error};
use crate::http::Failed;
use crate::timestamp::Timestamp;

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Response {
    assume_role_with_web_identity_result: Outcome,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Outcome {
    credentials: Given,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Given {
    access_key_id: String,
    secret_access_key: String,
    session_token: String,
    expiration: String,
}

/// The key in an answer.
pub(super) fn key(place: &str, text: &str) -> std::result::Result<Key, Refusal> {
    let response: Response =
        quick_xml::de::from_str(text).map_err(|_| for_good(place, "the answer is not that of a key"))?;
    let given = response.assume_role_with_web_identity_result.credentials;
    let expires = Timestamp::parse(&given.expiration).map_err(|_| for_good(place, "the key's end is no time"))?;
    let key =
        Key::of(&given.access_key_id, &given.secret_access_key, Some(&given.session_token), Some(expires.instant()));
    key.map_err(|what| for_good(place, &what))
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Refused {
    error: Said,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Said {
    code: String,
}

/// What a refusal means ("Errors" of the action).
pub(super) fn failed(place: &str, refusal: Refusal) -> Failed {
    let Refusal::Status(status, text) = &refusal else { return refusal.failed(place) };
    let refused: Option<Refused> = quick_xml::de::from_str(text).ok();
    let Some(code) = refused.as_ref().and_then(|refused| word(&refused.error.code)) else {
        return refusal.failed(place);
    };
    let error = Error::new(Code::AuthFailed, format!("{place}: {code} ({status})"));
    let cure = match code {
        "AccessDenied" => format!("let the trust policy of the role in {ROLE} name the issuer and this identity"),
        "ExpiredTokenException" => format!("let the issuer write a new token into the file that {FILE} names"),
        "InvalidIdentityToken" => "make the issuer an identity provider of the account, for this audience".to_owned(),
        "RegionDisabledException" => "enable the service in the region, or set AWS_REGION to another one".to_owned(),
        _ if code.starts_with("Throttl") || code == "IDPCommunicationError" || *status >= 500 => {
            return Failed::ForNow(error, None);
        }
        _ => return Failed::ForGood(error),
    };
    Failed::ForGood(error.hint(cure))
}
