//! One request: rendering, signing, and the bytes of its body.

use super::bucket::{Bucket, encoded_query};
use super::sign::{self, Signed, UNSIGNED};
use crate::{Content, Object};
use plimsoll_engine::blocking::{Call, Failure};
use sha2::{Digest, Sha256};
use std::fmt::Write;

/// A request.
pub(super) struct Request<'a> {
    pub(super) method: &'static str,
    /// The key of an object; empty for the bucket.
    pub(super) key: &'a str,
    /// Names and values, sorted.
    pub(super) query: &'a [(&'a str, &'a str)],
    pub(super) body: Body<'a>,
}

/// The body of a request, or the expected body of its response.
#[derive(Clone, Copy)]
pub(super) enum Body<'a> {
    /// No body; the response is text.
    Nothing,
    /// The request sends this text.
    Text(&'a str),
    /// The request sends these bytes of an object.
    Sent(Span),
    /// The response has these bytes, a whole object.
    Whole(Span),
    /// The response has these bytes, a requested range of an object.
    Range(Span),
}

/// A range of bytes of an object.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    /// The number of the object, which determines its content.
    pub(super) number: u64,
    pub(super) offset: u64,
    pub(super) length: u64,
}

impl Span {
    pub(super) fn whole(object: &Object) -> Span {
        Span { number: object.number, offset: 0, length: object.size }
    }

    /// Part `index` of an object that is cut into parts of `length` bytes; the last may be shorter.
    pub(super) fn part(object: &Object, length: u64, index: u64) -> Span {
        let offset = index * length;
        Span { number: object.number, offset, length: length.min(object.size - offset) }
    }

    /// The bytes after the first `done`, as far as one slice of the content reaches.
    pub(super) fn slice(self, content: &Content, done: u64) -> &[u8] {
        let left = usize::try_from(self.length - done).unwrap_or(usize::MAX);
        if left == 0 { &[] } else { content.slice(self.number, self.offset + done, left) }
    }
}

impl Request<'_> {
    /// True if the request begins a multipart upload.
    pub(super) fn begins_upload(&self) -> bool {
        self.method == "POST" && self.query == [("uploads", "")]
    }

    /// The hash of the body for the signature, or [`UNSIGNED`].
    pub(super) fn payload(&self, bucket: &Bucket, call: &Call) -> Result<String, Failure> {
        if bucket.signer.is_none() || !bucket.settings.signed_payload {
            return Ok(UNSIGNED.to_owned());
        }
        match self.body {
            Body::Nothing | Body::Whole(_) | Body::Range(_) => Ok(sign::hash(b"")),
            Body::Text(text) => Ok(sign::hash(text.as_bytes())),
            Body::Sent(span) => {
                let (mut hash, mut done) = (Sha256::new(), 0);
                while done < span.length {
                    call.go_on()?;
                    let slice = span.slice(&bucket.content, done);
                    hash.update(slice);
                    done += slice.len() as u64;
                }
                Ok(sign::hex(&hash.finalize()))
            }
        }
    }

    /// Renders the head, signed for the current time.
    pub(super) fn head(&self, bucket: &Bucket, payload: &str) -> String {
        let (path, query) = (bucket.path(self.key), encoded_query(self.query));
        let mut headers = vec![("host", bucket.host.clone())];
        if let Body::Range(Span { offset, length, .. }) = self.body {
            headers.push(("range", format!("bytes={offset}-{}", offset + length - 1)));
        }
        if let Some(signer) = &bucket.signer {
            let time = jiff::Timestamp::now().strftime("%Y%m%dT%H%M%SZ").to_string();
            let signed = Signed { method: self.method, path: &path, query: &query, payload, time: &time };
            signer.sign(&signed, &mut headers);
        }
        if let Some(length) = self.length() {
            headers.push(("content-length", length.to_string()));
        }
        let mark = if query.is_empty() { "" } else { "?" };
        let mut head = format!("{} {path}{mark}{query} HTTP/1.1\r\n", self.method);
        head += concat!("user-agent: plimsoll/", env!("CARGO_PKG_VERSION"), "\r\n");
        for (name, value) in headers {
            let _ = write!(head, "{name}: {value}\r\n");
        }
        head + "\r\n"
    }

    /// The value of `content-length`; none for requests without a body.
    fn length(&self) -> Option<u64> {
        match self.body {
            Body::Sent(span) => Some(span.length),
            Body::Text(text) => Some(text.len() as u64),
            Body::Nothing | Body::Whole(_) | Body::Range(_) => (self.method == "POST").then_some(0),
        }
    }
}
