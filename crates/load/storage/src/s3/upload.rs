//! Multipart uploads over several connections at once.

use super::bucket::Bucket;
use super::client::Client;
use super::request::{Body, Request, Span};
use crate::Object;
use plimsoll_engine::blocking::{Call, Failure};
use plimsoll_model::record::ErrorKind;
use std::fmt::Write;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// The number of a part, from 0, and its ETag.
type Tag = (u64, String);

/// An upload that has begun.
struct Upload<'a> {
    key: &'a str,
    id: &'a str,
    object: &'a Object,
    part_size: u64,
}

/// The number of parts of an object of `size` bytes. An empty object has one empty part.
pub(super) fn parts(size: u64, part_size: u64) -> u64 {
    size.div_ceil(part_size.max(1)).max(1)
}

/// Writes `object` in parts, each client sending one at a time. There is at least one client.
pub(super) fn write(
    bucket: &Bucket,
    clients: &mut [Client],
    key: &str,
    object: &Object,
    call: &mut Call,
) -> Result<(), Failure> {
    let begin = Request { method: "POST", key, query: &[("uploads", "")], body: Body::Nothing };
    let id = clients[0].send(&begin, call)?.upload_id().inspect_err(|_| bucket.note_unanswered_upload(key))?;
    let open = || bucket.open_uploads.lock().expect("no thread panics while it notes an upload");
    open().push((key.to_owned(), id.clone()));
    let upload = Upload { key, id: &id, object, part_size: bucket.settings.part_size.max(1) };
    let mut result = upload.send(clients, call);
    if let Ok(tags) = &result {
        result = upload.complete(&mut clients[0], tags, call).map(|()| Vec::new());
    }
    // An upload that cannot be aborted in time is aborted at the end of the trial.
    if result.is_ok() || abort(&mut clients[0], key, &id, call).is_ok() {
        open().retain(|(_, open)| *open != id);
    }
    result.map(|_| ())
}

/// Aborts an upload, with all its parts.
pub(super) fn abort(client: &mut Client, key: &str, id: &str, call: &mut Call) -> Result<(), Failure> {
    call.go_on()?;
    let request = Request { method: "DELETE", key, query: &[("uploadId", id)], body: Body::Nothing };
    match client.send(&request, call) {
        // The upload was completed, only the response was lost.
        Err(failure) if !failure.detail.contains("NoSuchUpload") => Err(failure),
        _ => Ok(()),
    }
}

/// Aborts all uploads of a key that the server knows of. Each request has `timeout`.
pub(super) fn abort_all(client: &mut Client, key: &str, timeout: Duration) -> Result<(), Failure> {
    let query = [("prefix", key), ("uploads", "")];
    let list = Request { method: "GET", key: "", query: &query, body: Body::Nothing };
    let ids = client.send(&list, &mut Call::untimed(timeout))?.ids_of_uploads(key)?;
    ids.iter().try_for_each(|id| abort(client, key, id, &mut Call::untimed(timeout)))
}

impl Upload<'_> {
    /// Sends all parts, and returns their tags in order.
    fn send(&self, clients: &mut [Client], call: &mut Call) -> Result<Vec<Tag>, Failure> {
        let (next, failed) = (AtomicU64::new(0), AtomicBool::new(false));
        let work = |client: &mut Client, mut call: Call| {
            let result = self.send_some(client, &next, &failed, &mut call);
            failed.fetch_or(result.is_err(), Ordering::Relaxed);
            (call, result)
        };
        let (first, others) = clients.split_first_mut().expect("there is at least one client");
        let outcomes: Vec<_> = std::thread::scope(|scope| {
            let start = |client| {
                let branch = call.branch();
                scope.spawn(|| work(client, branch))
            };
            let threads: Vec<_> = others.iter_mut().map(start).collect();
            let own = work(first, call.branch());
            let joined = threads.into_iter().map(|thread| thread.join().expect("sending a part does not panic"));
            std::iter::once(own).chain(joined).collect()
        });
        let absorb = |(branch, sent)| {
            call.absorb(branch);
            sent
        };
        let sent: Vec<Result<Vec<Tag>, Failure>> = outcomes.into_iter().map(absorb).collect();
        let mut tags = sent.into_iter().collect::<Result<Vec<_>, _>>()?.concat();
        tags.sort_unstable();
        Ok(tags)
    }

    /// Sends one part after the other until none is left, or another client has failed.
    fn send_some(
        &self,
        client: &mut Client,
        next: &AtomicU64,
        failed: &AtomicBool,
        call: &mut Call,
    ) -> Result<Vec<Tag>, Failure> {
        let (mut tags, parts) = (Vec::new(), parts(self.object.size, self.part_size));
        while !failed.load(Ordering::Relaxed) {
            let index = next.fetch_add(1, Ordering::Relaxed);
            if index >= parts {
                break;
            }
            tags.push((index, self.send_part(client, index, call)?));
        }
        Ok(tags)
    }

    fn send_part(&self, client: &mut Client, index: u64, call: &mut Call) -> Result<String, Failure> {
        let number = (index + 1).to_string();
        let query = [("partNumber", number.as_str()), ("uploadId", self.id)];
        let body = Body::Sent(Span::part(self.object, self.part_size, index));
        let answer = client.send(&Request { method: "PUT", key: self.key, query: &query, body }, call)?;
        let missing = || Failure::new(ErrorKind::Protocol, "expected the ETag of a part, found none");
        answer.etag.ok_or_else(missing)
    }

    fn complete(&self, client: &mut Client, tags: &[Tag], call: &mut Call) -> Result<(), Failure> {
        let mut text = "<CompleteMultipartUpload>".to_owned();
        for (index, tag) in tags {
            let number = index + 1;
            let _ = write!(text, "<Part><PartNumber>{number}</PartNumber><ETag>{tag}</ETag></Part>");
        }
        text += "</CompleteMultipartUpload>";
        let query = [("uploadId", self.id)];
        client.send(&Request { method: "POST", key: self.key, query: &query, body: Body::Text(&text) }, call)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_cover_the_object_once() {
        for (size, part_size, expected) in [(0, 5, 1), (1, 5, 1), (5, 5, 1), (6, 5, 2), (10, 5, 2), (11, 5, 3)] {
            assert_eq!(parts(size, part_size), expected, "{size}");
            let object = Object { name: String::new(), number: 0, size };
            let spans = (0..expected).map(|index| Span::part(&object, part_size, index));
            let end = spans.fold(0, |end, span| {
                assert_eq!(span.offset, end);
                end + span.length
            });
            assert_eq!(end, size);
        }
    }
}
