//! A bucket, as all sessions of a trial share it: address, keys, and settings of transfers.

use super::sign::Signer;
use super::upload::parts;
use crate::Content;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use plimsoll_engine::tls::Encryption;
use plimsoll_model::storage::{BucketStyle, Credentials, Mode, S3, Secret, Storage, Upload};
use rustls::pki_types::ServerName;
use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

/// The smallest part that S3 accepts, except for the last.
const LEAST_PART: u64 = 5 << 20;

/// The most parts of an object.
const MOST_PARTS: u64 = 10_000;

/// The characters that are not encoded in paths and queries of signed requests. Paths also keep `/`.
const QUERY: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
const PATH: &AsciiSet = &QUERY.remove(b'/');

/// The bucket and settings that the sessions of a trial share.
pub(super) struct Bucket {
    pub(super) settings: S3,
    pub(super) address: SocketAddr,
    pub(super) tls: Option<Encryption>,
    pub(super) signer: Option<Signer>,
    pub(super) timeout: Duration,
    pub(super) content: Arc<Content>,
    pub(super) mode: Mode,
    pub(super) size: u64,
    pub(super) verify: bool,
    /// The prefix of the keys of all objects of the trial.
    pub(super) folder: String,
    /// The header `Host` of requests.
    pub(super) host: String,
    /// The prefix of the path of every request.
    base: String,
    /// Multipart uploads that are neither completed nor aborted: key and id.
    pub(super) open_uploads: Mutex<Vec<(String, String)>>,
    /// The keys of multipart uploads that may have begun, although no answer gave their ids.
    pub(super) unanswered_uploads: Mutex<BTreeSet<String>>,
}

impl Bucket {
    pub(super) fn new(
        storage: &Storage,
        s3: &S3,
        address: SocketAddr,
        tls: Option<Encryption>,
        timeout: Duration,
        content: Arc<Content>,
    ) -> Result<Bucket, String> {
        check(storage, s3)?;
        let authority = plimsoll_protocols::http::authority(&s3.endpoint);
        let (host, base) = match s3.style {
            BucketStyle::Path => (authority, format!("/{}", encoded_path(&s3.bucket))),
            BucketStyle::VirtualHost => (format!("{}.{authority}", s3.bucket), String::new()),
        };
        Ok(Bucket {
            address,
            tls: tls.map(|tls| for_bucket(s3, tls)).transpose()?,
            signer: signer(s3)?,
            timeout,
            content,
            mode: storage.mode,
            size: storage.size,
            verify: storage.verify,
            folder: unique_folder(),
            host,
            base,
            open_uploads: Mutex::default(),
            unanswered_uploads: Mutex::default(),
            settings: s3.clone(),
        })
    }

    /// Notes that a multipart upload may have begun, although no answer gave its id.
    pub(super) fn note_unanswered_upload(&self, key: &str) {
        let mut keys = self.unanswered_uploads.lock().expect("no thread panics while it notes an upload");
        keys.insert(key.to_owned());
    }

    /// The path of an object, encoded; that of the bucket where `key` is empty.
    pub(super) fn path(&self, key: &str) -> String {
        match (key, self.base.as_str()) {
            ("", "") => "/".to_owned(),
            ("", base) => base.to_owned(),
            (key, base) => format!("{base}/{}", encoded_path(key)),
        }
    }
}

fn encoded_path(text: &str) -> String {
    utf8_percent_encode(text, PATH).to_string()
}

/// Encodes names and values as the query of a URL.
pub(super) fn encoded_query(query: &[(&str, &str)]) -> String {
    debug_assert!(query.is_sorted(), "signatures cover the query sorted by name");
    let pairs = query.iter().map(|(name, value)| format!("{name}={}", utf8_percent_encode(value, QUERY)));
    pairs.collect::<Vec<_>>().join("&")
}

/// Refuses impossible settings, and those that every server would refuse only once the load has started.
fn check(storage: &Storage, s3: &S3) -> Result<(), String> {
    if storage.mode == Mode::Direct {
        return Err("mode `direct` goes past a page cache, and S3 has none on this side: use `app`".to_owned());
    }
    if s3.style == BucketStyle::VirtualHost && s3.endpoint.host.parse::<IpAddr>().is_ok() {
        return Err(format!(
            "expected a host name that the bucket's name can stand before, found the address {}; put the bucket into the path",
            s3.endpoint.host
        ));
    }
    if s3.upload == Upload::Single { Ok(()) } else { check_parts(storage.size, s3.part_size) }
}

fn check_parts(size: u64, part: u64) -> Result<(), String> {
    let parts = parts(size, part);
    if parts > 1 && part < LEAST_PART {
        return Err(format!("expected parts of at least {LEAST_PART} bytes (5 MiB), as S3 demands, found {part}"));
    }
    if parts > MOST_PARTS {
        let fitting = size.div_ceil(MOST_PARTS);
        return Err(format!(
            "expected at most {MOST_PARTS} parts, found {parts} for {size} bytes; parts of {fitting} bytes or more would fit"
        ));
    }
    Ok(())
}

/// The encryption for the host name of requests, which the certificate must carry.
fn for_bucket(s3: &S3, (config, name): Encryption) -> Result<Encryption, String> {
    let is_given = s3.endpoint.tls.as_ref().is_some_and(|tls| tls.server_name.is_some());
    if s3.style == BucketStyle::Path || is_given {
        return Ok((config, name));
    }
    let name = format!("{}.{}", s3.bucket, s3.endpoint.host);
    let name = ServerName::try_from(name.clone())
        .map_err(|_| format!("expected a host name to check the certificate against, found `{name}`"))?;
    Ok((config, name))
}

fn signer(s3: &S3) -> Result<Option<Signer>, String> {
    let (access_key, secret, token) = match &s3.credentials {
        Credentials::Anonymous => return Ok(None),
        Credentials::Generated(pair) => (pair.access_key.clone(), pair.secret.clone(), None),
        Credentials::Environment => from_environment(|name| std::env::var(name).ok())?,
    };
    Ok(Some(Signer { access_key, secret, token, region: s3.region.clone() }))
}

fn from_environment(variable: impl Fn(&str) -> Option<String>) -> Result<(String, Secret, Option<Secret>), String> {
    let variable = |name| variable(name).filter(|value| !value.is_empty());
    match (variable("AWS_ACCESS_KEY_ID"), variable("AWS_SECRET_ACCESS_KEY")) {
        (Some(access_key), Some(secret)) => Ok((access_key, Secret(secret), variable("AWS_SESSION_TOKEN").map(Secret))),
        (access_key, secret) => {
            let missing = [("AWS_ACCESS_KEY_ID", access_key), ("AWS_SECRET_ACCESS_KEY", secret)];
            let missing: Vec<_> = missing.iter().filter(|(_, value)| value.is_none()).map(|(name, _)| *name).collect();
            Err(format!(
                "expected the keys for S3 in the environment, found no {}; set it, or choose other `credentials`",
                missing.join(" and no ")
            ))
        }
    }
}

/// A name that no other trial has.
fn unique_folder() -> String {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    format!("plimsoll-{:x}-{:x}", std::process::id(), now.as_nanos())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_from_the_environment_are_complete_or_their_variables_named() {
        let found = |set: &[&str]| {
            from_environment(|name| set.contains(&name).then(|| format!("value of {name}")))
                .map(|(access_key, secret, token)| (access_key, secret.0, token.map(|token| token.0)))
        };
        let both = ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"];
        let (access_key, secret, token) = found(&both).expect("both are there");
        assert_eq!((access_key.as_str(), token), ("value of AWS_ACCESS_KEY_ID", None));
        assert_eq!(secret, "value of AWS_SECRET_ACCESS_KEY");
        assert!(found(&[both[0], both[1], "AWS_SESSION_TOKEN"]).expect("all are there").2.is_some());
        let missing = found(&both[..1]).unwrap_err();
        assert!(missing.contains("no AWS_SECRET_ACCESS_KEY;") && !missing.contains("value"), "{missing}");
        assert!(found(&[]).unwrap_err().contains("no AWS_ACCESS_KEY_ID and no AWS_SECRET_ACCESS_KEY;"));
    }

    #[test]
    fn queries_and_paths_are_encoded_as_signatures_demand() {
        assert_eq!(encoded_query(&[("prefix", "a/b c"), ("uploads", "")]), "prefix=a%2Fb%20c&uploads=");
        assert_eq!(encoded_path("a/b c~1+é"), "a/b%20c~1%2B%C3%A9");
    }
}
