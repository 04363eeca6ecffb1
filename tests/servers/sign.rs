//! AWS Signature Version 4, written for the tests alone, so that the product's is checked against another one.

use sha2::{Digest, Sha256};
use time::OffsetDateTime;
use time::macros::format_description;

use super::http::Message;
use super::{ACCESS_KEY, SECRET_KEY, Server};

/// Signs a request whose path and query are encoded, and the query is sorted, as the signature wants them.
pub(crate) fn sign(request: &mut Message, server: &Server, now: OffsetDateTime) {
    let time = now.format(format_description!("[year][month][day]T[hour][minute][second]Z")).unwrap();
    let (date, region) = (&time[..8], server.region);
    let payload = hex(&Sha256::digest(&request.body));
    request.set("x-amz-date", &time);
    request.set("x-amz-content-sha256", &payload);

    let mut fields: Vec<(String, &str)> =
        request.fields.iter().map(|(name, value)| (name.to_ascii_lowercase(), value.as_str())).collect();
    fields.sort();
    let signed: Vec<&str> = fields.iter().map(|(name, _)| name.as_str()).collect();
    let signed = signed.join(";");
    let fields: String = fields.iter().map(|(name, value)| format!("{name}:{value}\n")).collect();
    let (path, query) = request.target().split_once('?').unwrap_or((request.target(), ""));
    let canonical = format!("{}\n{path}\n{query}\n{fields}\n{signed}\n{payload}", request.method());

    let scope = format!("{date}/{region}/s3/aws4_request");
    let text = format!("AWS4-HMAC-SHA256\n{time}\n{scope}\n{}", hex(&Sha256::digest(canonical)));
    let secret = format!("AWS4{SECRET_KEY}").into_bytes();
    let key = [date, region, "s3", "aws4_request"].iter().fold(secret, |key, part| hmac(&key, part.as_bytes()));
    let signature = hex(&hmac(&key, text.as_bytes()));
    let credential = format!("{ACCESS_KEY}/{scope}");
    request.set(
        "Authorization",
        &format!("AWS4-HMAC-SHA256 Credential={credential}, SignedHeaders={signed}, Signature={signature}"),
    );
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// HMAC with SHA-256.
pub(crate) fn hmac(key: &[u8], text: &[u8]) -> Vec<u8> {
    let mut block = [0; 64];
    let short = if key.len() > block.len() { Sha256::digest(key).to_vec() } else { key.to_vec() };
    block[..short.len()].copy_from_slice(&short);
    let inner = Sha256::new().chain_update(block.map(|byte| byte ^ 0x36)).chain_update(text).finalize();
    Sha256::new().chain_update(block.map(|byte| byte ^ 0x5c)).chain_update(inner).finalize().to_vec()
}
