//! Signatures of requests: AWS Signature Version 4, in headers.
//!
//! It is our own code, a page over `hmac` and `sha2`. The official `aws-sigv4` brings tokio into the
//! generator, and needs a newer compiler than Plimsoll does. `rusty-s3` signs only URLs, which cannot cover
//! the body.

use hmac::{Hmac, KeyInit, Mac};
use plimsoll_model::storage::Secret;
use sha2::{Digest, Sha256};
use std::fmt::Write;

/// Replaces the hash of the body if the signature does not cover it.
pub(super) const UNSIGNED: &str = "UNSIGNED-PAYLOAD";

/// Signs requests with a pair of keys.
#[derive(Debug)]
pub(super) struct Signer {
    pub(super) access_key: String,
    pub(super) secret: Secret,
    /// The session token of temporary keys.
    pub(super) token: Option<Secret>,
    pub(super) region: String,
}

/// The signed parts of a request beside its headers.
pub(super) struct Signed<'a> {
    pub(super) method: &'a str,
    /// As it is sent: encoded.
    pub(super) path: &'a str,
    /// As it is sent: encoded, and sorted by name.
    pub(super) query: &'a str,
    /// [`hash`] of the body, or [`UNSIGNED`].
    pub(super) payload: &'a str,
    /// The instant, as `20130524T000000Z`.
    pub(super) time: &'a str,
}

impl Signer {
    /// Adds the headers of the signature to those of a request, whose names are in lower case.
    pub(super) fn sign(&self, request: &Signed<'_>, headers: &mut Vec<(&'static str, String)>) {
        headers.push(("x-amz-content-sha256", request.payload.to_owned()));
        headers.push(("x-amz-date", request.time.to_owned()));
        if let Some(token) = &self.token {
            headers.push(("x-amz-security-token", token.0.clone()));
        }
        headers.sort_unstable();
        let names = headers.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(";");
        let scope = format!("{}/{}/s3/aws4_request", day(request.time), self.region);
        let canonical = hash(canonical(request, headers, &names).as_bytes());
        let text = format!("AWS4-HMAC-SHA256\n{}\n{scope}\n{canonical}", request.time);
        let signature = hex(&keyed(&self.key(request.time), &text));
        let access_key = &self.access_key;
        headers.push((
            "authorization",
            format!("AWS4-HMAC-SHA256 Credential={access_key}/{scope},SignedHeaders={names},Signature={signature}"),
        ));
    }

    /// The key of one day, region and service.
    fn key(&self, time: &str) -> Vec<u8> {
        let start = format!("AWS4{}", self.secret.0).into_bytes();
        [day(time), &self.region, "s3", "aws4_request"].iter().fold(start, |key, text| keyed(&key, text))
    }
}

fn day(time: &str) -> &str {
    &time[..8]
}

/// The canonical form of a request, which client and server sign.
fn canonical(request: &Signed<'_>, headers: &[(&str, String)], names: &str) -> String {
    let Signed { method, path, query, payload, .. } = request;
    let headers: String = headers.iter().map(|(name, value)| format!("{name}:{value}\n")).collect();
    format!("{method}\n{path}\n{query}\n{headers}\n{names}\n{payload}")
}

fn keyed(key: &[u8], text: &str) -> Vec<u8> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("a key may have any length");
    mac.update(text.as_bytes());
    mac.finalize().into_bytes().to_vec()
}

/// The SHA-256 of `bytes`, in hexadecimal digits.
pub(super) fn hash(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// Bytes as hexadecimal digits.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The signature of a request of AWS's own examples, with their keys and their instant.
    fn signature(method: &str, path: &str, query: &str, headers: &[(&'static str, &str)], body: &[u8]) -> String {
        let signer = Signer {
            access_key: "AKIAIOSFODNN7EXAMPLE".to_owned(),
            secret: Secret("wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY".to_owned()),
            token: None,
            region: "us-east-1".to_owned(),
        };
        let mut headers: Vec<_> = headers.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        headers.push(("host", "examplebucket.s3.amazonaws.com".to_owned()));
        let request = Signed { method, path, query, payload: &hash(body), time: "20130524T000000Z" };
        signer.sign(&request, &mut headers);
        let (_, authorization) = headers.pop().expect("signing adds a header");
        let (start, signature) = authorization.split_once("Signature=").expect("the signature stands last");
        assert!(
            start.starts_with("AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request,")
        );
        signature.to_owned()
    }

    /// Amazon S3 API Reference, "Authenticating Requests: Using the Authorization Header",
    /// examples of a transfer in a single chunk.
    #[test]
    fn signatures_are_those_of_the_published_examples() {
        let range = signature("GET", "/test.txt", "", &[("range", "bytes=0-9")], b"");
        assert_eq!(range, "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
        let put = [("date", "Fri, 24 May 2013 00:00:00 GMT"), ("x-amz-storage-class", "REDUCED_REDUNDANCY")];
        let put = signature("PUT", "/test%24file.text", "", &put, b"Welcome to Amazon S3.");
        assert_eq!(put, "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd");
        let without_value = signature("GET", "/", "lifecycle=", &[], b"");
        assert_eq!(without_value, "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543");
        let list = signature("GET", "/", "max-keys=2&prefix=J", &[], b"");
        assert_eq!(list, "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7");
    }

    #[test]
    fn the_token_of_lent_keys_is_sent_and_signed() {
        let signer = Signer {
            access_key: "key".to_owned(),
            secret: Secret("secret".to_owned()),
            token: Some(Secret("token".to_owned())),
            region: "eu-west-1".to_owned(),
        };
        let mut headers = vec![("host", "localhost".to_owned())];
        let request = Signed { method: "GET", path: "/", query: "", payload: UNSIGNED, time: "20260102T030405Z" };
        signer.sign(&request, &mut headers);
        assert!(headers.contains(&("x-amz-security-token", "token".to_owned())));
        let (_, authorization) = headers.last().expect("signing adds headers");
        assert!(authorization.contains("SignedHeaders=host;x-amz-content-sha256;x-amz-date;x-amz-security-token,"));
        assert!(!format!("{signer:?}").contains("token\""), "{signer:?}");
    }
}
