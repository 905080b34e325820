//! Creates the back end that a study describes.

use super::{Content, DirectoryStore, NfsStore, S3Store, StorageUsers, Store};
use plimsoll_engine::blocking::Failure;
use plimsoll_engine::tls::{self, Encryption};
use plimsoll_model::record::ErrorKind;
use plimsoll_model::storage::{Payload, S3, Storage, Store as StoreSpec};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// A storage workload whose settings were checked.
pub struct CompiledStorage {
    storage: Storage,
    address: Option<SocketAddr>,
    timeout: Duration,
}

impl CompiledStorage {
    /// Checks the workload without any IO.
    pub fn new(
        storage: &Storage,
        address: Option<SocketAddr>,
        timeout: Duration,
    ) -> Result<CompiledStorage, Vec<String>> {
        let compiled = CompiledStorage { storage: storage.clone(), address, timeout };
        compiled.store(Content::new(Payload::Zeros, storage.block, 0)).map(|_| compiled)
    }

    /// Prepares the back end, and returns the workload for the users of a load.
    pub fn users(&self, seed: u64, users: u64) -> Result<Arc<StorageUsers>, Failure> {
        let storage = &self.storage;
        let content = Content::of(storage, seed);
        let store = self.store(content).map_err(|faults| Failure::new(ErrorKind::Io, faults.join("\n")))?;
        let made = StorageUsers::new(storage.clone(), Arc::clone(&store), self.timeout);
        made.prepare()?;
        match store.free_space().filter(|free| *free < self.needed(users)) {
            None => Ok(Arc::new(made)),
            Some(free) => {
                made.finish();
                Err(self.too_small(free, users))
            }
        }
    }

    fn store(&self, content: Content) -> Result<Arc<dyn Store>, Vec<String>> {
        let content = Arc::new(content);
        let address = || self.address.ok_or_else(|| vec!["the back end has no address".to_owned()]);
        Ok(match &self.storage.store {
            StoreSpec::Directory(path) => {
                Arc::new(DirectoryStore::new(&self.storage, path.clone(), content).map_err(one)?)
            }
            StoreSpec::Nfs(nfs) => {
                Arc::new(NfsStore::new(&self.storage, nfs, address()?, self.timeout, content).map_err(one)?)
            }
            StoreSpec::S3(s3) => {
                let tls = encryption(s3).map_err(one)?;
                Arc::new(S3Store::new(&self.storage, s3, address()?, tls, self.timeout, content).map_err(one)?)
            }
        })
    }

    /// The most bytes that all users together have at once.
    fn needed(&self, users: u64) -> u64 {
        self.storage.size.saturating_mul(self.storage.objects.into()).saturating_mul(users)
    }

    fn too_small(&self, free: u64, users: u64) -> Failure {
        let Storage { name, size, objects, .. } = &self.storage;
        let needed = self.needed(users);
        let detail = format!(
            "expected room for {needed} bytes in `{name}` ({users} users, each with {objects} objects of {size} bytes), \
             found {free}; use fewer users, fewer objects or smaller ones"
        );
        Failure::new(ErrorKind::Space, detail)
    }
}

fn encryption(s3: &S3) -> Result<Option<Encryption>, String> {
    let tls = s3.endpoint.tls.as_ref().map(|tls| tls::configure(&s3.endpoint, tls, &[b"http/1.1"]));
    tls.transpose()
}

fn one(fault: String) -> Vec<String> {
    vec![fault]
}
