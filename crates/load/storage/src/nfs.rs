//! Objects behind NFSv3, by a client of our own: no mount, so no right to mount is needed, and no
//! page cache on this side.
//!
//! Each user has a connection with one request under way. There is no read-ahead, no write-behind and no
//! concurrency of requests, as a kernel would have: the server and the network are what is measured.

mod client;
mod session;
mod stream;

#[cfg(test)]
mod tests;

use super::{Cleaning, Content, Session, Store, user_folder};
use client::{Client, Limits, ListPosition};
use nfs3_client::nfs3_types::nfs3::nfs_fh3;
use plimsoll_engine::blocking::{Call, Failure};
use plimsoll_model::record::ErrorKind;
use plimsoll_model::storage::{Mode, Nfs, Storage, StorageFacts};
use session::NfsSession;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The most bytes of one request or reply, whatever the server allows: the limit of the Linux client. A
/// user needs up to three times this in memory.
const LONGEST: u32 = 4 << 20;

/// The smallest page of a listing to request. A server may always send less.
const SHORTEST_PAGE: u32 = 64 << 10;

/// An export of an NFSv3 server.
#[derive(Debug)]
pub(crate) struct NfsStore {
    nfs: Nfs,
    address: SocketAddr,
    timeout: Duration,
    options: TransferOptions,
    place: OnceLock<TrialFolder>,
}

/// How objects are written and read.
#[derive(Clone, Debug)]
struct TransferOptions {
    content: Arc<Content>,
    mode: Mode,
    overwrite: bool,
    verify: bool,
    block: u64,
}

/// The folder of a trial on the server.
#[derive(Clone, Debug)]
struct TrialFolder {
    /// The file service.
    server: SocketAddr,
    /// The exported folder.
    export: nfs_fh3,
    /// The trial's own folder in it.
    folder: nfs_fh3,
    name: String,
    /// The limits of one request or reply.
    limits: Limits,
    /// The free space in bytes when the folder was made.
    free_space: u64,
}

impl NfsStore {
    /// A client of the server at `address`, whose port does not matter. Nothing is sent yet.
    ///
    /// # Errors
    /// The mode needs a page cache, which such a client does not have.
    pub(crate) fn new(
        storage: &Storage,
        nfs: &Nfs,
        address: SocketAddr,
        timeout: Duration,
        content: Arc<Content>,
    ) -> Result<NfsStore, String> {
        if storage.mode == Mode::Direct {
            return Err("mode `direct` goes past a page cache, and an NFS client without a mount has none: \
                 use `app`, `durable` or `cold`, or a directory on a mount of the export"
                .to_owned());
        }
        let options = TransferOptions {
            content,
            mode: storage.mode,
            overwrite: storage.overwrite,
            verify: storage.verify,
            block: storage.block,
        };
        Ok(NfsStore { nfs: nfs.clone(), address, timeout, options, place: OnceLock::new() })
    }

    /// The URL of something in the export.
    fn url(&self, name: &str) -> String {
        format!("nfs://{}{}/{name}", self.nfs.host, self.nfs.export.trim_end_matches('/'))
    }
}

impl Store for NfsStore {
    fn prepare(&self) -> Result<(), Failure> {
        let call = self.call();
        let (mut client, export) = Client::mount(self.address.ip(), &self.nfs, &call)?;
        let limits = self.limits(client.limits(&export, &call)?);
        let free_space = client.free_space(&export, &call)?;
        let name = unique_name();
        let folder = client.make_folder(&export, &name, &call)?;
        let place = TrialFolder { server: client.server(), export, folder, name, limits, free_space };
        self.place.set(place).map_err(|_| Failure::new(ErrorKind::Io, "a trial is prepared once"))
    }

    fn session(&self, user: u32) -> Result<Box<dyn Session>, Failure> {
        let place = self.place.get().ok_or_else(|| Failure::new(ErrorKind::Io, "the trial was not prepared"))?;
        let call = self.call();
        let mut client = Client::of(place.server, &call);
        let folder = client.make_folder(&place.folder, &user_folder(user), &call)?;
        Ok(Box::new(NfsSession { client, folder, options: self.options.clone(), limits: place.limits }))
    }

    fn free_space(&self) -> Option<u64> {
        self.place.get().map(|place| place.free_space)
    }

    fn describe(&self, facts: &mut StorageFacts) {
        facts.kind = "NFSv3 client".to_owned();
        facts.on_this_machine = self.address.ip().is_loopback();
        facts.page_cache = false;
        facts.place = self.url("");
        facts.details.push("user-space client: no kernel mount, no page cache on this side".to_owned());
        if let Some(TrialFolder { name, limits: Limits { read, write, .. }, .. }) = self.place.get() {
            facts.place = self.url(name);
            facts.details.push(format!("one request at a time; reads of {read}, writes of {write} bytes"));
        }
        let remark = match self.options.mode {
            Mode::Durable => "mode durable: as the server says; what it calls FILE_SYNC at once is not committed again",
            Mode::Cold => "mode cold: nothing to drop on this side; the server's cache is as it is",
            Mode::App | Mode::Direct => return,
        };
        facts.details.push(remark.to_owned());
    }

    fn clean_up(&self, cleaning: &Cleaning) -> Vec<String> {
        let Some(place) = self.place.get() else { return Vec::new() };
        let removed = self.remove_trial(place, cleaning);
        removed.err().map(|failure| format!("{}: {}", self.url(&place.name), failure.detail)).into_iter().collect()
    }
}

impl NfsStore {
    /// The limits of one request or reply, for a server with these limits.
    fn limits(&self, server: Limits) -> Limits {
        let longest = u32::try_from(self.options.block).unwrap_or(LONGEST).clamp(1, LONGEST);
        Limits {
            read: server.read.clamp(1, longest),
            write: server.write.clamp(1, longest),
            page: server.page.clamp(SHORTEST_PAGE, LONGEST),
        }
    }

    /// Removes the folders of all users, then that of the trial.
    fn remove_trial(&self, place: &TrialFolder, cleaning: &Cleaning) -> Result<(), Failure> {
        let client = &mut Client::of(place.server, &self.call());
        self.empty(client, place, &place.folder, |client, user| {
            let folder = client.look_up(&place.folder, user, &self.call())?.handle;
            self.empty(client, place, &folder, |client, object| {
                client.remove(&folder, object, &self.call())?;
                let given_up = || Failure::new(ErrorKind::Timeout, "given up");
                cleaning.goes_on().then_some(()).ok_or_else(given_up)
            })?;
            client.remove_folder(&place.folder, user, &self.call())
        })?;
        client.remove_folder(&place.export, &place.name, &self.call())
    }

    /// Removes all entries of a folder. It requests only first pages of listings: a position in a listing may
    /// not survive a removal.
    fn empty(
        &self,
        client: &mut Client,
        place: &TrialFolder,
        folder: &nfs_fh3,
        mut remove: impl FnMut(&mut Client, &str) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        loop {
            let (names, _) = client.names(folder, ListPosition::default(), place.limits.page, &self.call())?;
            if names.is_empty() {
                return Ok(());
            }
            each(&names, |name| remove(client, name))?;
        }
    }

    /// A call outside the load, which may take the whole timeout.
    fn call(&self) -> Call {
        Call::untimed(self.timeout)
    }
}

/// Calls `remove` for each name. Continues after failures, unless the server is gone, and returns the first
/// failure.
fn each(names: &[String], mut remove: impl FnMut(&str) -> Result<(), Failure>) -> Result<(), Failure> {
    let mut all = Ok(());
    for name in names {
        let removed = remove(name);
        if removed.as_ref().is_err_and(|failure| !matches!(failure.kind, ErrorKind::Denied | ErrorKind::Io)) {
            return removed;
        }
        all = all.and(removed);
    }
    all
}

/// A name that no other trial has.
fn unique_name() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    format!("plimsoll-{:x}-{:x}", std::process::id(), now.as_nanos())
}
