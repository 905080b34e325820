//! Storage as a workload: where objects are kept, what users do with them, and facts about the back end after a trial.

use crate::target::Target;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::Range;
use std::path::PathBuf;

/// What the users of a trial do with objects, with every placeholder filled in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Storage {
    /// The name of the back end in the study.
    pub name: String,
    /// Where objects are kept.
    pub store: Store,
    /// How caches and durability are handled.
    pub mode: Mode,
    /// Whether making an object durable also syncs the directory that contains its name. False only in mode
    /// [`Mode::Durable`], and only where objects are files of a directory.
    #[serde(default = "directory_is_synced")]
    pub sync_directory: bool,
    /// What objects hold.
    pub payload: Payload,
    /// Bytes of an object.
    pub size: u64,
    /// Bytes that one call writes or reads.
    pub block: u64,
    /// Objects that each user keeps: a new one takes the place of its oldest.
    pub objects: u32,
    /// Whether a new object overwrites the oldest, under its name. Otherwise the oldest is deleted first, untimed, and
    /// the new one has a new name.
    pub overwrite: bool,
    /// Whether every read is compared with what was written, byte by byte.
    pub verify: bool,
    /// What an iteration does: one of these, drawn by weight. Never empty.
    pub actions: Vec<Action>,
    /// The steps of all actions, one after the other. Never empty.
    pub steps: Vec<StorageStep>,
}

/// The default for bundles that were written before this could be turned off.
fn directory_is_synced() -> bool {
    true
}

/// The words of reports for [`Mode::Durable`] without syncing the directory.
pub const FILE_ALONE: &str = "durable, directory not synced";

impl Storage {
    /// Whether the directory that has an object's name is synced.
    #[must_use]
    pub fn syncs_directory(&self) -> bool {
        self.mode == Mode::Durable && self.sync_directory
    }

    /// How caches and durability are handled, in the words of reports.
    #[must_use]
    pub fn mode_in_words(&self) -> &'static str {
        if self.sync_directory { self.mode.name() } else { FILE_ALONE }
    }
}

/// One kind of iteration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Action {
    /// How often it is drawn, beside the other weights.
    pub weight: u32,
    /// Its steps, as indices into [`Storage::steps`]; never empty.
    pub steps: Range<usize>,
}

/// One timed operation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StorageStep {
    /// Name in the results.
    pub name: String,
    /// What is done.
    pub operation: Operation,
}

/// What is done with an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Operation {
    /// A whole object is written.
    Write,
    /// A whole object is read: the one that the iteration wrote. Without a write before it, it is one of the user's
    /// objects, which are all written before the load starts.
    Read,
    /// The names of the user's objects are listed.
    List,
    /// The object that the iteration wrote is deleted. Without a write before it, it is the user's oldest object.
    Delete,
}

impl Operation {
    /// All of them, in the order of reports.
    pub const ALL: [Operation; 4] = [Operation::Write, Operation::Read, Operation::List, Operation::Delete];

    /// The name in studies and reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Operation::Write => "write",
            Operation::Read => "read",
            Operation::List => "list",
            Operation::Delete => "delete",
        }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Where objects are kept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Store {
    /// A directory: of this machine, or of a network file system that is mounted here.
    Directory(PathBuf),
    /// The export of an NFSv3 server, by a client of our own: no mount, and no page cache on this
    /// side.
    Nfs(Nfs),
    /// A bucket behind the API of S3.
    S3(Box<S3>),
}

impl Store {
    /// The server that Plimsoll itself speaks to; none for a directory.
    #[must_use]
    pub fn target(&self) -> Option<Target> {
        match self {
            Store::Directory(_) => None,
            Store::Nfs(nfs) => {
                Some(Target { host: nfs.host.clone(), port: nfs.ports.nfs.unwrap_or(NFS_PORT), tls: None })
            }
            Store::S3(s3) => Some(s3.endpoint.clone()),
        }
    }
}

/// The port of NFS if neither study nor portmapper names another.
pub const NFS_PORT: u16 = 2049;

/// An export of an NFSv3 server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Nfs {
    /// Host name or address.
    pub host: String,
    /// Its ports.
    pub ports: NfsPorts,
    /// The path that is mounted, starting with `/`.
    pub export: String,
}

/// The ports of an NFS server; the portmapper is asked for those that are not known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NfsPorts {
    /// Of the file service.
    pub nfs: Option<u16>,
    /// Of the mount service.
    pub mount: Option<u16>,
}

/// A bucket, and how objects go in and out of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct S3 {
    /// The server.
    pub endpoint: Target,
    /// The bucket's name.
    pub bucket: String,
    /// The region that requests are signed for.
    pub region: String,
    /// Where requests carry the bucket's name.
    pub style: BucketStyle,
    /// What requests are signed with.
    pub credentials: Credentials,
    /// How objects are written.
    pub upload: Upload,
    /// Bytes of a part, in multipart uploads.
    pub part_size: u64,
    /// Bytes of one GET; whole objects in one request when there is none.
    pub range: Option<u64>,
    /// Whether signatures cover the SHA-256 of the payload.
    pub signed_payload: bool,
    /// How often a request is sent again after a status of 500 and above or a lost connection.
    /// Each attempt counts as a request, and a wait that the server asks for is part of the
    /// operation.
    pub retries: u32,
}

/// Where requests carry the bucket's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BucketStyle {
    /// In the path: `https://host/bucket/key`.
    Path,
    /// In the host: `https://bucket.host/key`.
    VirtualHost,
}

/// How objects are written to S3.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Upload {
    /// One PUT.
    Single,
    /// A multipart upload whatever the size, with so many parts under way at once.
    Multipart(u32),
}

/// What requests to S3 are signed with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Credentials {
    /// Nothing.
    Anonymous,
    /// `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY` and, if set, `AWS_SESSION_TOKEN` of Plimsoll's
    /// environment.
    Environment,
    /// A pair that was made up for this run, for a server that the study starts.
    Generated(KeyPair),
}

/// An access key and its secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyPair {
    /// The public identifier of the signer.
    pub access_key: String,
    /// The secret key that signs.
    pub secret: Secret,
}

/// A text that is neither printed nor written to any file.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secret(pub String);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

impl Serialize for Secret {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str("…")
    }
}

impl<'de> Deserialize<'de> for Secret {
    /// Reads an empty text: the secret was never written.
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        serde::de::IgnoredAny::deserialize(deserializer).map(|_| Secret::default())
    }
}

/// How caches and durability are handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// As most applications do: nothing is synced, and reads come from wherever they come.
    App,
    /// A write ends when the object would survive a loss of power. The file is synced, and so is the directory that
    /// contains its new name, unless [`Storage::sync_directory`] is false.
    Durable,
    /// Before a read, the object is synced and dropped from the page cache, and its absence from the cache is checked.
    Cold,
    /// Past the page cache (`O_DIRECT`).
    Direct,
}

impl Mode {
    /// The name in studies and reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Mode::App => "app",
            Mode::Durable => "durable",
            Mode::Cold => "cold",
            Mode::Direct => "direct",
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The content of objects, which is derived from the seed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Payload {
    /// Zeros.
    Zeros,
    /// Random bytes, different in each object.
    Random,
    /// A mix of random bytes and zeros that a compressor shrinks by about this ratio, which is above 1.
    Compressible(f64),
}

impl fmt::Display for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Payload::Zeros => f.write_str("zeros"),
            Payload::Random => f.write_str("random"),
            Payload::Compressible(ratio) => write!(f, "compressible {ratio}"),
        }
    }
}

/// Facts about a back end after a trial, kept in the trial's summary.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StorageFacts {
    /// The name of the back end in the study.
    pub name: String,
    /// `directory`, `NFSv3 client` or `S3`.
    pub kind: String,
    /// Its path or address, without credentials.
    pub place: String,
    /// The file system that a directory lies on.
    pub file_system: Option<FileSystem>,
    /// Whether the storage behind it is on this machine: a local disk, or a server at a loopback address.
    pub on_this_machine: bool,
    /// Whether this machine has a page cache between users and storage.
    pub page_cache: bool,
    /// What was done about caches and durability, as [`Storage::mode_in_words`] says it.
    pub mode: String,
    /// What objects held, in words.
    pub payload: String,
    /// Bytes of an object.
    pub size: u64,
    /// Bytes that were written or read at once.
    pub block: u64,
    /// Particulars of the back end in words: how objects are uploaded, the largest read and write of a server.
    pub details: Vec<String>,
    /// The timed operations: name and what is done.
    pub steps: Vec<StorageStep>,
    /// How much of what was read was in the page cache when the read began; none without a page cache. Mode `cold`
    /// looks at every read, the others at one in eight.
    pub residency: Option<Residency>,
    /// The objects that could not be removed after the trial, with the reason.
    pub left_behind: Vec<String>,
}

/// The file system under a directory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileSystem {
    /// Its type: `ext4`, `nfs4`, `fuse.sshfs`.
    pub kind: String,
    /// What is mounted: a device, or `server:/export`.
    pub source: String,
    /// Options of the mount and of the file system, as the kernel lists them.
    pub options: String,
    /// Where it is mounted.
    pub mount_point: String,
    /// Whether it is a network file system.
    pub network: bool,
    /// The server of a network file system, as far as its source or options name it.
    pub server: Option<String>,
}

/// How much of what was read was in the page cache when the read began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Residency {
    /// Pages of the objects that were looked at.
    pub pages: u64,
    /// Those of them in the page cache.
    pub cached: u64,
}

impl Residency {
    /// The share in the page cache, 0 to 1; none where nothing was looked at.
    #[must_use]
    pub fn share(self) -> Option<f64> {
        (self.pages > 0).then(|| self.cached as f64 / self.pages as f64)
    }
}
