//! Responses of the server. Objects are compared with what was written as they arrive; texts are kept and
//! parsed.

use super::bucket::Bucket;
use super::request::{Body, Request, Span};
use crate::Content;
use plimsoll_engine::blocking::Failure;
use plimsoll_model::record::ErrorKind;
use plimsoll_protocols::http::response::Sink;
use roxmltree::{Document, Node};
use std::sync::Arc;
use std::time::Duration;

/// The most bytes of an error text to keep.
const LONGEST_ERROR: usize = 64 << 10;

/// The most bytes of another text to keep: a page of a list has up to 1000 keys.
const LONGEST_TEXT: usize = 8 << 20;

/// The length from which words of a message are signatures and tokens, which people do not read.
const LONGEST_WORD: usize = 60;

/// The most words of a message to keep.
const MOST_WORDS: usize = 60;

/// A response, as far as it has arrived.
pub(super) struct Response {
    is_post: bool,
    pub(super) status: u16,
    pub(super) etag: Option<String>,
    retry_after: Option<Duration>,
    is_range: bool,
    text: Vec<u8>,
    object: Option<ObjectCheck>,
}

/// Compares an object with its expected content as it arrives.
struct ObjectCheck {
    content: Arc<Content>,
    span: Span,
    verify: bool,
    received: u64,
    difference: Option<u64>,
}

/// The failure of an attempt, and whether to retry.
#[derive(Debug)]
pub(super) struct AttemptError {
    pub(super) failure: Failure,
    pub(super) retry: Retry,
}

/// When to retry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Retry {
    Never,
    Soon,
    /// After the time that the server asks for.
    After(Duration),
}

impl From<Failure> for AttemptError {
    fn from(failure: Failure) -> AttemptError {
        let retry = if failure.kind == ErrorKind::Closed { Retry::Soon } else { Retry::Never };
        AttemptError { failure, retry }
    }
}

impl Response {
    pub(super) fn to(request: &Request<'_>, bucket: &Bucket) -> Response {
        let span = match request.body {
            Body::Whole(span) | Body::Range(span) => Some(span),
            _ => None,
        };
        let check = |span| ObjectCheck {
            content: Arc::clone(&bucket.content),
            span,
            verify: bucket.verify,
            received: 0,
            difference: None,
        };
        Response {
            is_post: request.method == "POST",
            status: 0,
            etag: None,
            retry_after: None,
            is_range: matches!(request.body, Body::Range(_)),
            text: Vec::new(),
            object: span.map(check),
        }
    }

    fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// Fails as soon as the object cannot be right any more.
    pub(super) fn check(&self) -> Result<(), Failure> {
        let Some(object) = &self.object else { return Ok(()) };
        if let Some(at) = object.difference {
            return Err(Failure::new(
                ErrorKind::Check,
                format!("what came differs from what was written at byte {at}"),
            ));
        }
        if object.received > object.span.length {
            return Err(object.wrong_length("more"));
        }
        Ok(())
    }

    /// Checks the complete response.
    pub(super) fn into_result(self) -> Result<Response, AttemptError> {
        if !self.is_success() || self.is_error_despite_success() {
            return Err(self.refused());
        }
        if self.is_range && self.status != 206 {
            let found = format!("expected a part of the object (status 206), found status {}", self.status);
            return Err(Failure::new(ErrorKind::Check, found).into());
        }
        self.check()?;
        match &self.object {
            Some(object) if object.received < object.span.length => {
                Err(object.wrong_length(&object.received.to_string()).into())
            }
            _ => Ok(self),
        }
    }

    /// True for a failed completion of an upload: the server may send its status as 200 before it fails.
    fn is_error_despite_success(&self) -> bool {
        self.is_post && self.with_root(|root| root.tag_name().name() == "Error").unwrap_or(false)
    }

    fn refused(&self) -> AttemptError {
        let error = self.with_root(|root| (text_of(root, "Code"), text_of(root, "Message")));
        let (code, message) = error.unwrap_or_default();
        let code = code.unwrap_or_default();
        let mut found = format!("expected success, found status {}", self.status);
        if !code.is_empty() {
            found +=
                &format!(", {}: {}", readable(&code), readable(&message.unwrap_or_default()).trim_end_matches('.'));
        }
        if let Some(wait) = self.retry_after {
            found += &format!("; the server asks to wait {} s", wait.as_secs());
        }
        if let Some(advice) = advice(self.status, &code) {
            found += &format!("; {advice}");
        }
        AttemptError { failure: Failure::new(kind(self.status, &code), found), retry: self.retry() }
    }

    fn retry(&self) -> Retry {
        match (self.status, self.retry_after) {
            (429 | 500.., Some(wait)) => Retry::After(wait),
            // An error in a response with status 200 is the server's.
            (429 | 500.. | 200, None) => Retry::Soon,
            _ => Retry::Never,
        }
    }

    /// The failure of a connection that ended too early.
    pub(super) fn incomplete(&self) -> Failure {
        let found = match &self.object {
            _ if self.status == 0 => "the connection ended before an answer came".to_owned(),
            Some(object) if self.is_success() => {
                format!("the connection ended after {} of {} bytes", object.received, object.span.length)
            }
            _ => "the connection ended inside the answer".to_owned(),
        };
        Failure::new(ErrorKind::Closed, found)
    }

    /// The id of a new multipart upload.
    pub(super) fn upload_id(&self) -> Result<String, Failure> {
        let id = self.with_root(|root| text_of(root, "UploadId")).flatten();
        id.ok_or_else(|| Failure::new(ErrorKind::Protocol, "expected the id of an upload, found none"))
    }

    /// The keys of a page of a list, and the token of the next page.
    pub(super) fn page(&self) -> Result<(Vec<String>, Option<String>), Failure> {
        let page = self.with_root(|root| {
            let contents = root.children().filter(|node| node.tag_name().name() == "Contents");
            let keys = contents.filter_map(|node| text_of(node, "Key")).collect();
            let is_cut = text_of(root, "IsTruncated").is_some_and(|text| text == "true");
            (keys, text_of(root, "NextContinuationToken").filter(|_| is_cut))
        });
        page.ok_or_else(|| Failure::new(ErrorKind::Protocol, "expected a list of objects as XML, found something else"))
    }

    /// The ids of the uploads of this key in a list of those whose keys begin with it. Keys come in order, this one
    /// first: the first page is enough.
    pub(super) fn ids_of_uploads(&self, key: &str) -> Result<Vec<String>, Failure> {
        let ids = self.with_root(|root| {
            let uploads = root.children().filter(|node| node.tag_name().name() == "Upload");
            let of_key = uploads.filter(|upload| text_of(*upload, "Key").as_deref() == Some(key));
            of_key.filter_map(|upload| text_of(upload, "UploadId")).collect()
        });
        ids.ok_or_else(|| Failure::new(ErrorKind::Protocol, "expected a list of uploads as XML, found something else"))
    }

    /// Calls `look` with the root of the XML; none if the text is no XML.
    fn with_root<T>(&self, look: impl FnOnce(Node<'_, '_>) -> T) -> Option<T> {
        let text = std::str::from_utf8(&self.text).ok()?.trim_start();
        Some(look(Document::parse(text).ok()?.root_element()))
    }
}

impl Sink for Response {
    fn head(&mut self, status: u16, headers: &[httparse::Header<'_>], _: &[u8]) {
        self.status = status;
        let value = |name: &str| {
            let header = headers.iter().find(|header| header.name.eq_ignore_ascii_case(name))?;
            std::str::from_utf8(header.value).ok()
        };
        self.etag = value("etag").map(str::to_owned);
        self.retry_after = value("retry-after").and_then(|text| text.trim().parse().ok()).map(Duration::from_secs);
    }

    fn body(&mut self, bytes: &[u8]) {
        let is_success = self.is_success();
        match &mut self.object {
            Some(object) if is_success => object.receive(bytes),
            _ => {
                let longest = if is_success { LONGEST_TEXT } else { LONGEST_ERROR };
                let space = longest.saturating_sub(self.text.len());
                self.text.extend_from_slice(&bytes[..bytes.len().min(space)]);
            }
        }
    }
}

impl ObjectCheck {
    fn receive(&mut self, bytes: &[u8]) {
        let Span { number, offset, length } = self.span;
        let expected = usize::try_from(length.saturating_sub(self.received)).unwrap_or(usize::MAX).min(bytes.len());
        if self.verify && self.difference.is_none() {
            self.difference = self.content.first_difference(number, offset + self.received, &bytes[..expected]);
        }
        self.received += bytes.len() as u64;
    }

    fn wrong_length(&self, found: &str) -> Failure {
        Failure::new(ErrorKind::Check, format!("expected {} bytes, found {found}", self.span.length))
    }
}

fn text_of(node: Node<'_, '_>, name: &str) -> Option<String> {
    node.children().find(|child| child.tag_name().name() == name)?.text().map(str::to_owned)
}

/// A server's text without long words and control characters.
fn readable(text: &str) -> String {
    let words = text.split_whitespace().map(|word| if word.len() > LONGEST_WORD { "…" } else { word });
    words.take(MOST_WORDS).collect::<Vec<_>>().join(" ").chars().filter(|char| !char.is_control()).collect()
}

fn kind(status: u16, code: &str) -> ErrorKind {
    match (status, code) {
        (507, _) => ErrorKind::Space,
        (_, code) if code.contains("Quota") || code.contains("StorageFull") => ErrorKind::Space,
        (401 | 403, _) | (_, "AuthorizationHeaderMalformed" | "XAdminUserNotFound") => ErrorKind::Denied,
        _ => ErrorKind::Status,
    }
}

fn advice(status: u16, code: &str) -> Option<&'static str> {
    Some(match code {
        "NoSuchBucket" => "create the bucket first, or name another",
        "InvalidAccessKeyId" | "XAdminUserNotFound" => "give an access key that the server knows",
        "SignatureDoesNotMatch" => "check the secret key and the region",
        "AuthorizationHeaderMalformed" => "check the region",
        "RequestTimeTooSkewed" => "set this machine's clock",
        "EntityTooLarge" => "write smaller objects, or upload them in parts",
        "EntityTooSmall" => "use larger parts",
        _ if status == 403 => "check the keys, and what they are allowed to do",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_server_says_is_kept_to_what_people_can_read() {
        let signature = "a1".repeat(32);
        assert_eq!(
            readable(&format!("The\n signature {signature} \u{1b}[1m is wrong")),
            "The signature … [1m is wrong"
        );
    }

    #[test]
    fn statuses_and_codes_become_kinds() {
        for (status, code, expected) in [
            (403, "AccessDenied", ErrorKind::Denied),
            (404, "NoSuchKey", ErrorKind::Status),
            (404, "XAdminUserNotFound", ErrorKind::Denied),
            (507, "", ErrorKind::Space),
            (403, "QuotaExceeded", ErrorKind::Space),
            (400, "EntityTooLarge", ErrorKind::Status),
            (500, "XMinioStorageFull", ErrorKind::Space),
        ] {
            assert_eq!(kind(status, code), expected, "{status} {code}");
        }
    }
}
