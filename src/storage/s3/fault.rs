//! What a server says when it refuses, and what that means.

use std::io::Read;
use std::time::{Duration, Instant};

use serde::Deserialize;

use super::client::{Address, Answer};
use crate::error::{Code, Error};

/// How much of an error's text is read.
const LIMIT: u64 = 64 * 1024;
/// For how long it is read.
const PATIENCE: Duration = Duration::from_secs(10);

/// An answer that is no good.
#[derive(Debug, Default)]
pub(super) struct Fault {
    pub(super) status: u16,
    /// The service's own code; empty where it gave none, as for HEAD.
    pub(super) code: String,
    message: String,
    /// The region that the bucket is in.
    region: Option<String>,
    pub(super) retry_after: Option<Duration>,
}

/// `Error` of the S3 REST API.
#[derive(Deserialize, Default)]
#[serde(rename_all = "PascalCase", default)]
struct Said {
    code: String,
    message: String,
    region: Option<String>,
}

impl Fault {
    pub(super) fn read(answer: &mut Answer) -> Fault {
        let body = text(answer);
        let mut fault = Fault::parse(answer.status, &body);
        let header = |name| answer.header(name).map(str::to_owned);
        fault.region = header("x-amz-bucket-region").or(fault.region);
        fault.retry_after = header("retry-after").and_then(|text| text.parse().ok()).map(Duration::from_secs);
        fault
    }

    /// What an error document says.
    pub(super) fn parse(status: u16, body: &[u8]) -> Fault {
        let text = String::from_utf8_lossy(body);
        let said: Said = quick_xml::de::from_str(&text).unwrap_or_default();
        Fault { status, code: said.code, message: said.message, region: said.region, retry_after: None }
    }

    /// What stands in an answer of 200 that is none, with the status that it would have had.
    pub(super) fn within(body: &[u8]) -> Fault {
        let fault = Fault::parse(200, body);
        let status = match fault.code.as_str() {
            "NoSuchUpload" | "NoSuchKey" | "NoSuchBucket" => 404,
            "PreconditionFailed" => 412,
            "NotImplemented" => 501,
            "SlowDown" | "ServiceUnavailable" => 503,
            "InternalError" => 500,
            "AccessDenied" => 403,
            _ => 400,
        };
        Fault { status, ..fault }
    }

    /// Whether the same request may succeed in a moment.
    pub(super) fn is_temporary(&self) -> bool {
        matches!(self.status, 408 | 429 | 500 | 502 | 503 | 504) || passes(&self.code)
    }

    /// Whether newer credentials may help.
    pub(super) fn is_expired(&self) -> bool {
        matches!(self.code.as_str(), "ExpiredToken" | "ExpiredTokenException" | "TokenRefreshRequired" | "InvalidToken")
    }

    /// Garage has one code for all that it does not let in; its words tell what is meant.
    fn is_of_unknown_key(&self) -> bool {
        self.code == "AccessDenied"
            && ["Invalid signature", "No such key"].iter().any(|said| self.message.contains(said))
    }

    fn kind(&self) -> Code {
        match (self.code.as_str(), self.status) {
            (
                "InvalidAccessKeyId"
                | "SignatureDoesNotMatch"
                | "RequestTimeTooSkewed"
                | "InvalidSecurity"
                | "MissingSecurityHeader"
                | "AuthorizationHeaderMalformed",
                _,
            ) => Code::AuthFailed,
            _ if self.is_expired() || self.is_of_unknown_key() => Code::AuthFailed,
            ("KeyTooLongError" | "KeyTooLong", _) => Code::PathTooLong,
            ("QuotaExceeded" | "InsufficientStorage" | "XMinioStorageFull", _) | (_, 507) => Code::NoSpace,
            (_, 401) => Code::AuthFailed,
            (_, 403) => Code::PermissionDenied,
            (_, 404) => Code::NotFound,
            (_, 412) => Code::PreconditionFailed,
            (_, 408 | 504) => Code::Timeout,
            (_, 429 | 500 | 502 | 503) => Code::Unreachable,
            _ => Code::StorageError,
        }
    }

    fn hint(&self, address: &Address) -> Option<String> {
        let hint = match self.code.as_str() {
            "InvalidAccessKeyId" => "check the access key id",
            "SignatureDoesNotMatch" => "check the secret access key, and the region",
            "RequestTimeTooSkewed" => "set this host's clock",
            _ if self.is_of_unknown_key() => "check the access key id and the secret access key",
            "NoSuchBucket" => "check the bucket, the endpoint and path_style; buckets are not made",
            "AccessDenied" | "AllAccessDisabled" => {
                "the key needs s3:ListBucket on the bucket and s3:GetObject, s3:PutObject, s3:DeleteObject below the prefix"
            }
            "InvalidStorageClass" => "give storage_class a class that the server knows; most are in capitals",
            "InvalidObjectState" => "it is archived: restore it first",
            _ if self.is_expired() => "get new credentials",
            _ if self.status == 403 && self.code.is_empty() => {
                "the key needs s3:ListBucket on the bucket, without which absent objects look forbidden"
            }
            _ if self.status == 405 || self.status == 501 => "the server does not know this request",
            _ if (300..400).contains(&self.status) => {
                return Some(format!("check the endpoint; the bucket may not be in {}", address.region));
            }
            _ => return None,
        };
        Some(hint.to_owned())
    }
}

/// What comes of an error's text, as far as it is read.
fn text(answer: &mut Answer) -> Vec<u8> {
    let (begun, mut text, mut some) = (Instant::now(), Vec::new(), [0; 4096]);
    let mut body = answer.body.as_reader().take(LIMIT);
    while begun.elapsed() < PATIENCE {
        match body.read(&mut some) {
            Ok(n) if n > 0 => text.extend_from_slice(&some[..n]),
            _ => break,
        }
    }
    text
}

/// Whether what has this code may be gone in a moment.
pub(super) fn passes(code: &str) -> bool {
    matches!(
        code,
        "SlowDown"
            | "InternalError"
            | "ServiceUnavailable"
            | "RequestTimeout"
            | "OperationAborted"
            | "ConditionalRequestConflict"
            | "Throttling"
            | "ThrottlingException"
    )
}

/// The error of a refusal.
pub(super) fn error(place: &str, address: &Address, fault: &Fault) -> Error {
    if let Some(region) = fault.region.as_ref().filter(|region| **region != address.region && fault.is_elsewhere()) {
        let message = format!("{place}: the bucket is in region {region}, and {} is configured", address.region);
        return Error::new(Code::StorageError, message)
            .hint(format!("set region: {region}, and an endpoint of that region where there is more than one"));
    }
    let said = match (fault.code.as_str(), fault.message.trim()) {
        ("", "") => format!("the server answers {}", fault.status),
        (code, "") => format!("{code} ({})", fault.status),
        ("", message) => format!("{message} ({})", fault.status),
        (code, message) => format!("{code} ({}): {}", fault.status, message.trim_end_matches('.')),
    };
    let error = Error::new(fault.kind(), format!("{place}: {said}"));
    match fault.hint(address) {
        Some(hint) => error.hint(hint),
        None => error,
    }
}

impl Fault {
    /// Whether it is about where the bucket is.
    fn is_elsewhere(&self) -> bool {
        (300..400).contains(&self.status)
            || matches!(
                self.code.as_str(),
                "PermanentRedirect"
                    | "TemporaryRedirect"
                    | "AuthorizationHeaderMalformed"
                    | "IllegalLocationConstraintException"
                    | "IncorrectEndpoint"
            )
            || self.code.is_empty() && self.status == 400
    }
}
