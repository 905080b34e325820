//! `[store.NAME]`: where objects are kept.

use crate::document::{Fault, Faults, FromToml, Node, Schemas, Span, one_of, table};
use crate::table::named_tables::{NamedTable, NamedTables};
use crate::table::target::{Address, TlsTable, host_and_port};
use crate::value::{
    Literal, PartSize, Problem, Retries, Scalar, Scope, Size, Templated, Text, keyword, resolve_optional,
};
use plimsoll_model::factor::Level;
use plimsoll_model::storage::{BucketStyle, Credentials, NFS_PORT, Nfs, NfsPorts, S3, Store, Upload};
use serde_json::{Value, json};

table! {
    /// A directory of this machine, or of a network file system that is mounted here.
    struct DirectoryTable {
        /// The directory, relative to the study's folder; made if it is missing.
        directory: Templated<Text>,
    }
}

table! {
    /// The export of an NFSv3 server, by a client of Plimsoll's own.
    struct NfsTable {
        /// nfs://HOST[:PORT]/EXPORT. With a port, NFS and mount service are both there; without, the portmapper is asked.
        nfs: Templated<NfsAddress>,
    }
}

table! {
    /// A bucket behind the API of S3.
    struct S3Table {
        /// The server: http://HOST[:PORT] or https://HOST[:PORT].
        s3: Templated<S3Address>,
        /// The bucket, which must be there.
        bucket: Templated<Bucket>,
        /// The region that requests are signed for. Default: "us-east-1".
        region: Option<Templated<Text>>,
        /// Where the bucket's name stands in requests: "path" or "virtual host". Default: "path".
        style: Option<Templated<BucketStyle>>,
        /// What requests are signed with: keys of Plimsoll's "environment", keys "generated" for a server that the study starts, or "none". Default: "environment".
        credentials: Option<Literal<CredentialsFrom>>,
        /// How objects are written: "single", "multipart serial" or "multipart parallel N". Default: "single".
        upload: Option<Templated<Upload>>,
        /// Bytes of a part of a multipart upload. Default: "16MiB".
        part_size: Option<Templated<PartSize>>,
        /// Bytes of one GET. Default: whole objects.
        range: Option<Templated<Size>>,
        /// Whether signatures cover what is sent. Default: false.
        signed_payload: Option<Templated<bool>>,
        /// How often a request is sent again after a status of 500 and above or a lost connection. Default: 0.
        retries: Option<Templated<Retries>>,
        /// How the server is checked. Default: by the system's authorities, if it is https://.
        tls: Option<TlsTable>,
    }
}

const REGION: &str = "us-east-1";
const PART_SIZE: u64 = 16 << 20;

/// A store, by where it is.
#[derive(Clone, Debug)]
pub(crate) enum StoreTable {
    /// `directory`.
    Directory(DirectoryTable),
    /// `nfs`.
    Nfs(NfsTable),
    /// `s3`.
    S3(Box<S3Table>),
}

/// The keys that say where a store is. Each has exactly one.
const PLACES: [&str; 3] = ["directory", "nfs", "s3"];

impl StoreTable {
    /// The store for the trial that `scope` stands for.
    pub(crate) fn resolve(&self, name: &str, scope: &Scope<'_>, faults: &mut Faults) -> Option<Store> {
        match self {
            StoreTable::Directory(table) => {
                Some(Store::Directory(scope.dir.join(table.directory.resolve(scope, faults)?.0)))
            }
            StoreTable::Nfs(table) => Some(Store::Nfs(table.nfs.resolve(scope, faults)?.0)),
            StoreTable::S3(table) => Some(Store::S3(Box::new(table.resolve(name, scope, faults)?))),
        }
    }

    /// Where it is said where the store is.
    pub(crate) fn target_span(&self) -> &Span {
        match self {
            StoreTable::Directory(table) => &table.directory.span,
            StoreTable::Nfs(table) => &table.nfs.span,
            StoreTable::S3(table) => &table.s3.span,
        }
    }

    /// Whether it has a key pair that is made for each run.
    pub(crate) fn is_keyed(&self) -> bool {
        matches!(self, StoreTable::S3(table) if matches!(table.credentials_from(), CredentialsFrom::Generated))
    }
}

impl S3Table {
    fn resolve(&self, name: &str, scope: &Scope<'_>, faults: &mut Faults) -> Option<S3> {
        let address = self.s3.resolve(scope, faults);
        let tls = resolve_optional(self.tls.as_ref(), |tls| tls.resolve(scope, faults));
        let bucket = self.bucket.resolve(scope, faults);
        let region = resolve_optional(self.region.as_ref(), |region| region.resolve(scope, faults));
        let style = resolve_optional(self.style.as_ref(), |style| style.resolve(scope, faults));
        let upload = resolve_optional(self.upload.as_ref(), |upload| upload.resolve(scope, faults));
        let part_size = resolve_optional(self.part_size.as_ref(), |size| size.resolve(scope, faults));
        let range = resolve_optional(self.range.as_ref(), |range| range.resolve(scope, faults));
        let signed_payload = resolve_optional(self.signed_payload.as_ref(), |signed| signed.resolve(scope, faults));
        let retries = resolve_optional(self.retries.as_ref(), |retries| retries.resolve(scope, faults));
        let credentials = self.credentials(name, scope, faults);
        Some(S3 {
            endpoint: address?.0.target(tls?, &self.s3.span, &format!("store.{name}"), faults)?,
            bucket: bucket?.0,
            region: region?.map_or_else(|| REGION.to_owned(), |region| region.0),
            style: style?.unwrap_or(BucketStyle::Path),
            credentials: credentials?,
            upload: upload?.unwrap_or(Upload::Single),
            part_size: part_size?.map_or(PART_SIZE, |size| size.0),
            range: range?.map(|range| range.0),
            signed_payload: signed_payload?.unwrap_or(false),
            retries: retries?.map_or(0, Retries::u32),
        })
    }

    fn credentials_from(&self) -> CredentialsFrom {
        self.credentials.as_ref().map_or(CredentialsFrom::Environment, |from| from.value)
    }

    fn credentials(&self, name: &str, scope: &Scope<'_>, faults: &mut Faults) -> Option<Credentials> {
        match self.credentials_from() {
            CredentialsFrom::Nowhere => Some(Credentials::Anonymous),
            CredentialsFrom::Environment => Some(Credentials::Environment),
            CredentialsFrom::Generated => {
                let pair = scope.bindings.keys.get(name);
                if pair.is_none() {
                    faults.add(Fault::error(&self.place, format!("no keys were generated for store `{name}`")));
                }
                pair.cloned().map(Credentials::Generated)
            }
        }
    }

    /// Parts are those of multipart uploads.
    fn check_parts(&self, faults: &mut Faults) {
        let single = self.upload.as_ref().is_none_or(|upload| upload.fixed() == Some(&Upload::Single));
        if let Some(part_size) = self.part_size.as_ref().filter(|_| single) {
            let fault = Fault::error(&part_size.span, format!("`{}` is about multipart uploads", part_size.path));
            faults.add(fault.help("add `upload = \"multipart parallel 4\"`, or leave it out"));
        }
    }
}

impl FromToml for StoreTable {
    fn from_toml(node: &Node<'_>, faults: &mut Faults) -> Option<Self> {
        let table = node.table(faults)?;
        let given: Vec<&str> = PLACES.into_iter().filter(|key| table.get(key).is_some()).collect();
        match given.as_slice() {
            ["directory"] => return DirectoryTable::from_toml(node, faults).map(StoreTable::Directory),
            ["nfs"] => return NfsTable::from_toml(node, faults).map(StoreTable::Nfs),
            ["s3"] => {
                let table = S3Table::from_toml(node, faults)?;
                table.check_parts(faults);
                return Some(StoreTable::S3(Box::new(table)));
            }
            [_, second, ..] => {
                let place = table.get(second).map_or(0..0, Node::place);
                let fault = Fault::error(&place, format!("{} is at two places", node.name()));
                faults.add(fault.help(format!("keep one of {}", one_of(PLACES))));
            }
            _ => {
                let misspelt = table.refuse_unknown_keys(&[&PLACES[..2], S3Table::KEYS].concat(), faults);
                if !misspelt.iter().any(|key| PLACES.contains(key)) {
                    let fault = Fault::error(&node.place(), format!("{} does not say where it is", node.name()));
                    faults.add(fault.help(format!("add one of {}", one_of(PLACES))));
                }
            }
        }
        None
    }

    fn json_schema(schemas: &mut Schemas) -> Value {
        json!({ "anyOf": [
            DirectoryTable::json_schema(schemas),
            NfsTable::json_schema(schemas),
            <S3Table>::json_schema(schemas),
        ] })
    }
}

impl NamedTable for StoreTable {
    const KIND: &'static str = "store";
    const IDENTIFYING_KEYS: &'static [&'static str] = &PLACES;
    const CONTENT: &'static str = "where it is";
    const RESERVED_NAMES: &'static [&'static str] = &[];
}

/// All stores.
pub(crate) type Stores = NamedTables<StoreTable>;

impl Stores {
    /// Those that have a key pair, or may have one: nothing is known of a store that is wrong.
    pub(crate) fn keyed(&self) -> Vec<&str> {
        let keyed = self.0.iter().filter(|(.., table)| table.as_ref().is_none_or(StoreTable::is_keyed));
        keyed.map(|(name, ..)| name.as_str()).collect()
    }
}

/// `nfs://HOST[:PORT]/EXPORT`.
#[derive(Clone, Debug)]
pub(crate) struct NfsAddress(Nfs);

impl Scalar for NfsAddress {
    const EXPECTED: &'static str = "nfs://HOST[:PORT]/EXPORT";

    fn from_level(level: &Level) -> Result<Self, Problem> {
        nfs(&level.to_string()).map(NfsAddress).ok_or_else(|| Problem::wrong::<Self>(level))
    }

    fn schema() -> Value {
        json!({ "type": "string", "pattern": "^nfs://" })
    }
}

fn nfs(text: &str) -> Option<Nfs> {
    let rest = text.strip_prefix("nfs://")?;
    let (place, export) = rest.split_at(rest.find('/')?);
    let (host, port) = host_and_port(place, Some(NFS_PORT))?;
    // A port that is not written is for the portmapper to tell.
    let port = host_and_port(place, None).map(|_| port);
    let plain = !export.chars().any(char::is_control);
    plain.then(|| Nfs { host, ports: NfsPorts { nfs: port, mount: port }, export: export.to_owned() })
}

/// `http://HOST[:PORT]` or `https://HOST[:PORT]`.
#[derive(Clone, Debug)]
pub(crate) struct S3Address(Address);

impl Scalar for S3Address {
    const EXPECTED: &'static str = "http:// or https:// with a host, and without a path";

    fn from_level(level: &Level) -> Result<Self, Problem> {
        let address = Address::from_level(level).ok().filter(|address| address.encrypted.is_some());
        address.map(S3Address).ok_or_else(|| Problem::wrong::<Self>(level))
    }

    fn schema() -> Value {
        json!({ "type": "string", "pattern": "^https?://" })
    }
}

/// The name of a bucket.
#[derive(Clone, Debug)]
pub(crate) struct Bucket(String);

impl Scalar for Bucket {
    const EXPECTED: &'static str = "the name of a bucket: letters, digits, `.`, `-` and `_`";

    fn from_level(level: &Level) -> Result<Self, Problem> {
        let name = level.to_string();
        let may = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
        let fine = name.starts_with(|first: char| first.is_ascii_alphanumeric()) && name.chars().all(may);
        if fine { Ok(Bucket(name)) } else { Err(Problem::wrong::<Self>(level)) }
    }

    fn schema() -> Value {
        json!({ "type": "string", "pattern": "^[A-Za-z0-9][A-Za-z0-9._-]*$" })
    }
}

/// Where the keys come from that requests are signed with.
#[derive(Clone, Copy, Debug)]
pub(crate) enum CredentialsFrom {
    /// Plimsoll's environment.
    Environment,
    /// They are made for each run.
    Generated,
    /// Nothing is signed.
    Nowhere,
}

impl Scalar for CredentialsFrom {
    const EXPECTED: &'static str = "\"environment\", \"generated\" or \"none\"";

    fn from_level(level: &Level) -> Result<Self, Problem> {
        let words = [
            ("environment", CredentialsFrom::Environment),
            ("generated", CredentialsFrom::Generated),
            ("none", CredentialsFrom::Nowhere),
        ];
        let help = "keys never stand in a study: put them into AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY of the \
                    environment that Plimsoll runs in";
        keyword(level, &words).map_err(|problem| problem.help(help))
    }

    fn schema() -> Value {
        json!({ "enum": ["environment", "generated", "none"] })
    }
}

impl Scalar for BucketStyle {
    const EXPECTED: &'static str = "\"path\" or \"virtual host\"";

    fn from_level(level: &Level) -> Result<Self, Problem> {
        keyword(level, &[("path", BucketStyle::Path), ("virtual host", BucketStyle::VirtualHost)])
    }

    fn schema() -> Value {
        json!({ "enum": ["path", "virtual host"] })
    }
}

/// The most parts that are under way at once: each takes a connection and a thread.
const MOST_PARALLEL: u32 = 1000;

impl Scalar for Upload {
    const EXPECTED: &'static str = "\"single\", \"multipart serial\" or \"multipart parallel N\"";

    fn from_level(level: &Level) -> Result<Self, Problem> {
        if let Ok(upload) = keyword(level, &[("single", Upload::Single), ("multipart serial", Upload::Multipart(1))]) {
            return Ok(upload);
        }
        let text = level.to_string();
        let count = text.strip_prefix("multipart parallel ").and_then(|count| count.trim().parse().ok());
        let count = count.filter(|count| (1..=MOST_PARALLEL).contains(count));
        count.map(Upload::Multipart).ok_or_else(|| Problem::wrong::<Self>(level))
    }

    fn schema() -> Value {
        json!({ "type": "string", "pattern": "^(single|multipart serial|multipart parallel [1-9][0-9]*)$" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::testing::{faults_of, no_faults, read_table};
    use crate::value::{Bindings, NO_LOGINS};
    use plimsoll_model::factor::Assignment;
    use plimsoll_model::storage::{KeyPair, Secret};
    use plimsoll_model::workload::{Target, Tls};
    use std::path::Path;

    fn pair() -> KeyPair {
        KeyPair { access_key: "who".to_owned(), secret: Secret("proof".to_owned()) }
    }

    fn resolve(text: &str, faults: &mut Faults) -> Option<Store> {
        let bindings = Bindings {
            ports: [("nfsd".to_owned(), 111)].into(),
            keys: [("shelf".to_owned(), pair())].into(),
            ..Bindings::default()
        };
        let assignment = Assignment(vec![("n".to_owned(), Level::Integer(4))]);
        let scope = Scope {
            assignment: &assignment,
            bindings: &bindings,
            not_running: &[],
            elsewhere: &[],
            logins: &NO_LOGINS,
            is_trusted: false,
            system: None,
            dir: Path::new("/study"),
            processors: &[0],
            of_generator: None,
        };
        read_table::<StoreTable>(text).resolve("shelf", &scope, faults)
    }

    fn resolved(text: &str) -> Store {
        resolve(text, &mut no_faults()).expect(text)
    }

    fn bucket(text: &str) -> S3 {
        let Store::S3(s3) = resolved(text) else { panic!("a bucket") };
        *s3
    }

    #[test]
    fn a_directory_is_relative_to_the_study() {
        assert_eq!(resolved("directory = 'data/{n}'"), Store::Directory("/study/data/4".into()));
        assert_eq!(resolved("directory = '/mnt/efs'"), Store::Directory("/mnt/efs".into()));
    }

    #[test]
    fn an_export_has_one_port_or_the_portmappers() {
        let nfs = |host: &str, port, export: &str| {
            let ports = NfsPorts { nfs: port, mount: port };
            Store::Nfs(Nfs { host: host.to_owned(), ports, export: export.to_owned() })
        };
        assert_eq!(resolved("nfs = 'nfs://127.0.0.1:{nfsd.port}/'"), nfs("127.0.0.1", Some(111), "/"));
        assert_eq!(resolved("nfs = 'nfs://files.example.org/a/b c'"), nfs("files.example.org", None, "/a/b c"));
        assert_eq!(resolved("nfs = 'nfs://[::1]:2049/x'"), nfs("::1", Some(2049), "/x"));
    }

    #[test]
    fn a_bucket_has_defaults() {
        let target = |port, tls| Target { host: "localhost".to_owned(), port, tls };
        let expected = S3 {
            endpoint: target(80, None),
            bucket: "box".to_owned(),
            region: "us-east-1".to_owned(),
            style: BucketStyle::Path,
            credentials: Credentials::Environment,
            upload: Upload::Single,
            part_size: 16 << 20,
            range: None,
            signed_payload: false,
            retries: 0,
        };
        assert_eq!(bucket("s3 = 'http://localhost'\nbucket = 'box'"), expected);
        let tls = Tls { ca: None, server_name: None, insecure: false };
        let encrypted = S3 { endpoint: target(443, Some(tls)), ..expected };
        assert_eq!(bucket("s3 = 'https://localhost/'\nbucket = 'box'"), encrypted);
    }

    #[test]
    fn every_key_of_a_bucket_is_resolved() {
        let s3 = bucket(
            "s3 = 'https://localhost:9000'\nbucket = 'box-{n}'\nregion = 'eu'\nstyle = 'virtual host'\n\
             credentials = 'generated'\nupload = 'multipart parallel {n}'\npart_size = '8MiB'\nrange = '1MB'\n\
             signed_payload = true\nretries = 3\ntls = { ca = 'ca.pem', insecure = true }",
        );
        let tls = Tls { ca: Some("/study/ca.pem".into()), server_name: None, insecure: true };
        let expected = S3 {
            endpoint: Target { host: "localhost".to_owned(), port: 9000, tls: Some(tls) },
            bucket: "box-4".to_owned(),
            region: "eu".to_owned(),
            style: BucketStyle::VirtualHost,
            credentials: Credentials::Generated(pair()),
            upload: Upload::Multipart(4),
            part_size: 8 << 20,
            range: Some(1_000_000),
            signed_payload: true,
            retries: 3,
        };
        assert_eq!(s3, expected);
        let serial = bucket("s3 = 'http://a'\nbucket = 'b'\nupload = 'multipart serial'\ncredentials = 'none'");
        assert_eq!((serial.upload, serial.credentials), (Upload::Multipart(1), Credentials::Anonymous));
    }

    #[test]
    fn wrong_stores_are_named_when_read() {
        for (text, what) in [
            ("", "does not say where it is; add one of `directory`, `nfs` or `s3`"),
            ("diretory = 'x'", "did you mean `directory`?"),
            ("directory = 'x'\nnfs = 'nfs://a/'", "is at two places"),
            ("directory = 'x'\nbucket = 'b'", "`bucket` belongs in [store.NAME] with `s3`"),
            ("nfs = 'nfs://host'", "nfs://HOST[:PORT]/EXPORT"),
            ("nfs = 'nfs://host:0/'", "nfs://HOST[:PORT]/EXPORT"),
            ("nfs = 'host:/export'", "nfs://HOST[:PORT]/EXPORT"),
            ("s3 = 'http://a'", "`bucket` is missing"),
            ("s3 = 'a:80'\nbucket = 'b'", "http:// or https://"),
            ("s3 = 'http://a/b'\nbucket = 'b'", "without a path"),
            ("s3 = 'http://a'\nbucket = 'a/b'", "the name of a bucket"),
            ("s3 = 'http://a'\nbucket = 'b'\ncredentials = 'AKIA'", "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"),
            ("s3 = 'http://a'\nbucket = 'b'\nstyle = 'dns'", "virtual host"),
            ("s3 = 'http://a'\nbucket = 'b'\nupload = 'multipart'", "multipart serial"),
            ("s3 = 'http://a'\nbucket = 'b'\nupload = 'multipart parallel 0'", "multipart parallel N"),
            ("s3 = 'http://a'\nbucket = 'b'\npart_size = '8MiB'", "is about multipart uploads"),
            (
                "s3 = 'http://a'\nbucket = 'b'\nupload = 'multipart serial'\npart_size = '5MB'",
                "must be at least 5MiB, not 5MB",
            ),
            ("s3 = 'http://a'\nbucket = 'b'\nretries = -1", "at least 0"),
        ] {
            let faults = faults_of::<StoreTable>(text);
            assert!(matches!(faults.as_slice(), [fault] if fault.contains(what)), "{text}: {faults:?}");
        }
    }

    #[test]
    fn encryption_is_that_of_the_scheme() {
        let mut faults = no_faults();
        assert_eq!(resolve("s3 = 'http://a'\nbucket = 'b'\ntls = {}", &mut faults), None);
        let faults: Vec<String> = faults.into_diagnostics().iter().map(ToString::to_string).collect();
        assert!(faults[0].contains("`store.shelf.tls` is given, but the target is `http://`"), "{faults:?}");
    }
}
