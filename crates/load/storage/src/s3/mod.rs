//! Objects in a bucket, by a client of our own for the API of S3.
//!
//! The client controls every byte and every request: no SDK retries, adds checksums or splits objects on its
//! own. Bytes go straight from [`Content`] to the socket; received bytes are compared with it as they arrive.

mod bucket;
mod client;
mod connection;
mod request;
mod response;
mod sign;
mod upload;

use super::{Cleaning, Content, Expected, Object, Session, Store, in_words, user_folder};
use bucket::Bucket;
use client::Client;
use plimsoll_engine::blocking::{Call, Failure};
use plimsoll_engine::tls::Encryption;
use plimsoll_model::record::ErrorKind;
use plimsoll_model::storage::{BucketStyle, Mode, S3, Storage, StorageFacts, Upload};
use request::{Body, Request, Span};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// A bucket, and the folder of one trial in it.
pub(crate) struct S3Store {
    bucket: Arc<Bucket>,
}

impl S3Store {
    /// The bucket of `s3` at `address`. `tls` is what [`plimsoll_engine::tls::configure`] makes of the
    /// endpoint; no request may take longer than `timeout`.
    ///
    /// # Errors
    /// The environment has no keys, or parts do not fit the size of objects.
    pub(crate) fn new(
        storage: &Storage,
        s3: &S3,
        address: SocketAddr,
        tls: Option<Encryption>,
        timeout: Duration,
        content: Arc<Content>,
    ) -> Result<S3Store, String> {
        Ok(S3Store { bucket: Arc::new(Bucket::new(storage, s3, address, tls, timeout, content)?) })
    }

    fn folder(&self) -> String {
        format!("{}/", self.bucket.folder)
    }
}

impl Store for S3Store {
    fn prepare(&self) -> Result<(), Failure> {
        let (folder, mut call) = (self.folder(), Call::untimed(self.bucket.timeout));
        let first = list_query(&folder, None, Some("1"));
        let answer = Client::new(&self.bucket).send(&list_request(&first), &mut call)?;
        match answer.page()?.0.first() {
            None => Ok(()),
            Some(key) => Err(Failure::new(ErrorKind::Io, format!("expected nothing below {folder}, found {key}"))),
        }
    }

    fn session(&self, user: u32) -> Result<Box<dyn Session>, Failure> {
        let bucket = Arc::clone(&self.bucket);
        let connections = match bucket.settings.upload {
            Upload::Single => 1,
            Upload::Multipart(at_once) => {
                u64::from(at_once.max(1)).min(upload::parts(bucket.size, bucket.settings.part_size))
            }
        };
        let clients = (0..connections).map(|_| Client::connected(&bucket)).collect::<Result<_, _>>()?;
        Ok(Box::new(S3Session { folder: self.folder() + &user_folder(user), bucket, clients }))
    }

    fn describe(&self, facts: &mut StorageFacts) {
        let Bucket { settings, folder, host, address, .. } = &*self.bucket;
        let scheme = if settings.endpoint.tls.is_some() { "https" } else { "http" };
        facts.kind = "S3".to_owned();
        facts.place = format!("{scheme}://{host}{}", self.bucket.path(folder));
        facts.on_this_machine = address.ip().is_loopback();
        facts.page_cache = false;
        facts.details = details(settings);
        if self.bucket.mode == Mode::Cold {
            facts.details.push("mode cold: nothing to drop on this side; the server's cache is as it is".to_owned());
        }
    }

    fn clean_up(&self, cleaning: &Cleaning) -> Vec<String> {
        let mut client = Client::new(&self.bucket);
        let mut left = self.abort_uploads(&mut client);
        left.extend(self.abort_unanswered_uploads(&mut client, cleaning));
        left.extend(self.delete_objects(&mut client, cleaning).unwrap_or_else(|failure| vec![failure.detail]));
        left
    }
}

impl S3Store {
    fn abort_uploads(&self, client: &mut Client) -> Vec<String> {
        let open =
            std::mem::take(&mut *self.bucket.open_uploads.lock().expect("no thread panics while it notes an upload"));
        let aborted =
            open.iter().map(|(key, id)| upload::abort(client, key, id, &mut Call::untimed(self.bucket.timeout)));
        aborted.filter_map(Result::err).map(|failure| format!("an unfinished upload: {}", failure.detail)).collect()
    }

    /// Aborts uploads that may have begun without an answer: only a list has their ids. After a failure it looks for no
    /// more of them, because a server that is gone, or cannot list uploads, would fail each of the requests.
    fn abort_unanswered_uploads(&self, client: &mut Client, cleaning: &Cleaning) -> Option<String> {
        let noted = &self.bucket.unanswered_uploads;
        let keys = std::mem::take(&mut *noted.lock().expect("no thread panics while it notes an upload"));
        let abort = |key: &String| upload::abort_all(client, key, self.bucket.timeout).err();
        let failure = keys.iter().take_while(|_| cleaning.goes_on()).find_map(abort)?;
        Some(format!("perhaps unfinished uploads below {}: {}", self.folder(), failure.detail))
    }

    /// Deletes all objects in the trial's folder, then checks that none is left.
    fn delete_objects(&self, client: &mut Client, cleaning: &Cleaning) -> Result<Vec<String>, Failure> {
        let mut left = Vec::new();
        for key in self.keys(client, cleaning)? {
            if !cleaning.goes_on() {
                return Ok(left);
            }
            match client.send(&delete_request(&key), &mut Call::untimed(self.bucket.timeout)) {
                // A server that is gone gets no further requests.
                Err(gone) if matches!(gone.kind, ErrorKind::Connect | ErrorKind::Timeout) => return Err(gone),
                result => left.extend(result.err().map(|failure| failure.detail)),
            }
        }
        let still_there = self.keys(client, cleaning)?;
        if still_there.len() > left.len() {
            left.push(format!("{} objects below {} in spite of their deletion", still_there.len(), self.folder()));
        }
        Ok(left)
    }

    /// All keys in the trial's folder. Each page of the listing has the time of a call.
    fn keys(&self, client: &mut Client, cleaning: &Cleaning) -> Result<Vec<String>, Failure> {
        let (mut all, mut next) = (Vec::new(), None);
        loop {
            let call = &mut Call::untimed(self.bucket.timeout);
            let (keys, following) = page(client, &self.folder(), next.as_deref(), call)?;
            all.extend(keys);
            if following.is_none() || !cleaning.goes_on() {
                return Ok(all);
            }
            next = following;
        }
    }
}

/// The keys and connections of one user.
struct S3Session {
    bucket: Arc<Bucket>,
    /// The prefix of the user's keys.
    folder: String,
    /// A client for each concurrent part. The first also sends all other requests.
    clients: Vec<Client>,
}

impl S3Session {
    fn key(&self, object: &Object) -> String {
        format!("{}/{}", self.folder, object.name)
    }
}

impl Session for S3Session {
    fn write(&mut self, object: &Object, call: &mut Call) -> Result<(), Failure> {
        let key = self.key(object);
        if self.bucket.settings.upload != Upload::Single {
            return upload::write(&self.bucket, &mut self.clients, &key, object, call);
        }
        let body = Body::Sent(Span::whole(object));
        self.clients[0].send(&Request { method: "PUT", key: &key, query: &[], body }, call)?;
        Ok(())
    }

    fn read(&mut self, object: &Object, call: &mut Call) -> Result<(), Failure> {
        let key = self.key(object);
        let bodies: Vec<_> = match self.bucket.settings.range {
            Some(range) if object.size > 0 => {
                let ranges = 0..upload::parts(object.size, range);
                ranges.map(|index| Body::Range(Span::part(object, range.max(1), index))).collect()
            }
            _ => vec![Body::Whole(Span::whole(object))],
        };
        for body in bodies {
            self.clients[0].send(&Request { method: "GET", key: &key, query: &[], body }, call)?;
        }
        Ok(())
    }

    fn list(&mut self, expected: &Expected, call: &mut Call) -> Result<(), Failure> {
        let (folder, mut found) = (format!("{}/", self.folder), 0);
        list(&mut self.clients[0], &folder, call, &mut |keys| found += keys.len())?;
        if expected.contains(&found) {
            return Ok(());
        }
        let expected = in_words(expected);
        Err(Failure::new(ErrorKind::Check, format!("expected {expected} objects below {folder}, found {found}")))
    }

    fn delete(&mut self, object: &Object, call: &mut Call) -> Result<(), Failure> {
        let key = self.key(object);
        self.clients[0].send(&delete_request(&key), call)?;
        Ok(())
    }
}

fn delete_request(key: &str) -> Request<'_> {
    Request { method: "DELETE", key, query: &[], body: Body::Nothing }
}

/// Lists the keys below `folder`, page by page.
fn list(client: &mut Client, folder: &str, call: &mut Call, take: &mut dyn FnMut(Vec<String>)) -> Result<(), Failure> {
    let mut next = None;
    loop {
        let (keys, following) = page(client, folder, next.as_deref(), call)?;
        take(keys);
        if following.is_none() {
            return Ok(());
        }
        next = following;
    }
}

/// A page of the keys below `folder`, and the token of the next one.
fn page(
    client: &mut Client,
    folder: &str,
    token: Option<&str>,
    call: &mut Call,
) -> Result<(Vec<String>, Option<String>), Failure> {
    client.send(&list_request(&list_query(folder, token, None)), call)?.page()
}

fn list_query<'a>(folder: &'a str, page: Option<&'a str>, most: Option<&'a str>) -> Vec<(&'a str, &'a str)> {
    let mut query = vec![("list-type", "2"), ("prefix", folder)];
    query.extend(page.map(|token| ("continuation-token", token)));
    query.extend(most.map(|most| ("max-keys", most)));
    query.sort_unstable();
    query
}

fn list_request<'a>(query: &'a [(&'a str, &'a str)]) -> Request<'a> {
    Request { method: "GET", key: "", query, body: Body::Nothing }
}

/// Describes how objects are transferred.
fn details(s3: &S3) -> Vec<String> {
    let upload = match s3.upload {
        Upload::Single => "written by one PUT".to_owned(),
        Upload::Multipart(1) => format!("written in parts of {}, one after the other", bytes(s3.part_size)),
        Upload::Multipart(at_once) => format!("written in parts of {}, {at_once} at a time", bytes(s3.part_size)),
    };
    let download = match s3.range {
        None => "read by one GET".to_owned(),
        Some(range) => format!("read in ranges of {}, one after the other", bytes(range)),
    };
    let style = match s3.style {
        BucketStyle::Path => "bucket in the path",
        BucketStyle::VirtualHost => "bucket in the host name",
    };
    let payload =
        if s3.signed_payload { "signatures cover what is sent" } else { "signatures do not cover what is sent" };
    let tls = if s3.endpoint.tls.is_some() { "TLS" } else { "no TLS" };
    let retries = match s3.retries {
        0 => "nothing is sent again after a failure".to_owned(),
        retries => format!("requests are sent again up to {retries} times after a failure of the server"),
    };
    [upload, download, style.to_owned(), payload.to_owned(), tls.to_owned(), retries].to_vec()
}

/// Formats bytes in the largest unit that divides them.
fn bytes(count: u64) -> String {
    let units = [(30, "GiB"), (20, "MiB"), (10, "KiB")];
    let fitting = units.into_iter().find(|(shift, _)| count > 0 && count.trailing_zeros() >= *shift);
    fitting.map_or_else(|| format!("{count} bytes"), |(shift, unit)| format!("{} {unit}", count >> shift))
}

#[cfg(test)]
mod tests;
