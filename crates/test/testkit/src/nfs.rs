//! An NFSv3 server over a directory, which needs no mount and no privileges.
//!
//! Tests can make it refuse requests for data, or never reply to them. They can read and damage its files in the
//! directory itself.

use nfs3_server::fs_util::{file_setattr, metadata_to_fattr3, path_setattr};
use nfs3_server::nfs3_types::nfs3::{
    FSINFO3resok, createverf3, fattr3, filename3, nfspath3, nfstime3, post_op_attr, sattr3, stable_how,
};
use nfs3_server::tcp::{NFSTcp, NFSTcpListener};
use nfs3_server::vfs::{
    DirEntryPlus, FileHandleU64, NextResult, NfsFileSystem, NfsReadFileSystem, ReadDirPlusIterator,
};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use tokio::runtime::{Builder, Runtime};

pub use nfs3_server::nfs3_types::nfs3::nfsstat3 as Status;

/// The default limit of a read or write, in bytes.
const TRANSFER: u32 = 1 << 20;

/// A running server. It exports the directory as `/`, and has the mount service on the same port. Dropping it closes its port and connections.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    state: Arc<ServerState>,
    _runtime: Runtime,
}

/// The reply to requests to create, write, read or commit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReplyMode {
    /// Does what is requested.
    #[default]
    Normal,
    /// Refuses with this status.
    Refuse(Status),
    /// Never replies.
    Never,
}

/// The state that tests can change and read while the server runs.
#[derive(Debug, Default)]
struct ServerState {
    reply_mode: Mutex<ReplyMode>,
    commits: AtomicU64,
}

impl Server {
    /// A server of this directory, on a free port of `127.0.0.1`.
    ///
    /// # Errors
    /// When no port or thread is to be had.
    pub fn start(directory: &Path) -> io::Result<Server> {
        Server::with_transfers_of(TRANSFER, directory)
    }

    /// A server that reads and writes at most this many bytes at once.
    ///
    /// # Errors
    /// When no port or thread is to be had.
    pub fn with_transfers_of(bytes: u32, directory: &Path) -> io::Result<Server> {
        let state = Arc::<ServerState>::default();
        let root = directory.to_owned();
        let mirror = Mirror { transfer: bytes, paths: Mutex::new(vec![root]), state: Arc::clone(&state) };
        let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        let listener = runtime.block_on(NFSTcpListener::bind("127.0.0.1:0", mirror))?;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, listener.get_listen_port()));
        runtime.spawn(async move { listener.handle_forever().await });
        Ok(Server { address, state, _runtime: runtime })
    }

    /// The address that it listens on.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The number of commits so far.
    #[must_use]
    pub fn commits(&self) -> u64 {
        self.state.commits.load(Ordering::Relaxed)
    }

    /// Sets the reply to requests from now on.
    pub fn set_reply_mode(&self, mode: ReplyMode) {
        *self.state.reply_mode.lock().expect("nothing panics while it holds the lock") = mode;
    }
}

impl ServerState {
    async fn check_reply_mode(&self) -> Result<(), Status> {
        let mode = *self.reply_mode.lock().expect("nothing panics while it holds the lock");
        match mode {
            ReplyMode::Normal => Ok(()),
            ReplyMode::Refuse(status) => Err(status),
            ReplyMode::Never => std::future::pending().await,
        }
    }
}

/// The directory as a file system. A handle is the index of a path in `paths`, plus one: zero is
/// reserved.
#[derive(Debug)]
struct Mirror {
    transfer: u32,
    paths: Mutex<Vec<PathBuf>>,
    state: Arc<ServerState>,
}

impl Mirror {
    fn path(&self, handle: &FileHandleU64) -> Result<PathBuf, Status> {
        let paths = self.paths.lock().expect("nothing panics while it holds the paths");
        paths.get(handle.as_u64() as usize - 1).cloned().ok_or(Status::NFS3ERR_BADHANDLE)
    }

    fn path_in(&self, folder: &FileHandleU64, name: &filename3<'_>) -> Result<PathBuf, Status> {
        Ok(self.path(folder)?.join(OsStr::from_bytes(name.as_ref())))
    }

    /// The handle and attributes of a path.
    fn found(&self, path: PathBuf) -> Result<(FileHandleU64, fattr3), Status> {
        let attributes = fs::symlink_metadata(&path).map_err(status)?;
        let mut paths = self.paths.lock().expect("nothing panics while it holds the paths");
        let place = paths.iter().position(|known| *known == path).unwrap_or_else(|| {
            paths.push(path);
            paths.len() - 1
        });
        let id = place as u64 + 1;
        Ok((id.into(), metadata_to_fattr3(id, &attributes)))
    }
}

impl NfsReadFileSystem for Mirror {
    type Handle = FileHandleU64;

    fn root_dir(&self) -> FileHandleU64 {
        1.into()
    }

    async fn lookup(&self, folder: &FileHandleU64, name: &filename3<'_>) -> Result<FileHandleU64, Status> {
        Ok(self.found(self.path_in(folder, name)?)?.0)
    }

    async fn getattr(&self, handle: &FileHandleU64) -> Result<fattr3, Status> {
        Ok(self.found(self.path(handle)?)?.1)
    }

    async fn read(&self, handle: &FileHandleU64, offset: u64, count: u32) -> Result<(Vec<u8>, bool), Status> {
        self.state.check_reply_mode().await?;
        let file = File::open(self.path(handle)?).map_err(status)?;
        let left = file.metadata().map_err(status)?.len().saturating_sub(offset);
        let mut bytes = vec![0; left.min(count.min(self.transfer).into()) as usize];
        file.read_exact_at(&mut bytes, offset).map_err(status)?;
        let is_last = bytes.len() as u64 == left;
        Ok((bytes, is_last))
    }

    async fn readdirplus(
        &self,
        folder: &FileHandleU64,
        cookie: u64,
    ) -> Result<impl ReadDirPlusIterator<FileHandleU64>, Status> {
        let listing = fs::read_dir(self.path(folder)?).map_err(status)?;
        let mut paths = listing.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<PathBuf>>>().map_err(status)?;
        paths.sort();
        let entries = (1..).zip(paths).skip(cookie as usize);
        let entries: Vec<_> = entries.map(|(cookie, path)| self.entry(cookie, path)).collect::<Result<_, _>>()?;
        Ok(Entries(entries.into_iter()))
    }

    async fn readlink(&self, _link: &FileHandleU64) -> Result<nfspath3<'_>, Status> {
        Err(Status::NFS3ERR_NOTSUPP)
    }

    async fn fsinfo(&self, _root: &FileHandleU64) -> Result<FSINFO3resok, Status> {
        Ok(FSINFO3resok {
            obj_attributes: post_op_attr::None,
            rtmax: self.transfer,
            rtpref: self.transfer,
            rtmult: 1,
            wtmax: self.transfer,
            wtpref: self.transfer,
            wtmult: 1,
            dtpref: self.transfer,
            maxfilesize: i64::MAX as u64,
            time_delta: nfstime3 { seconds: 0, nseconds: 1 },
            properties: 0,
        })
    }
}

impl Mirror {
    fn entry(&self, cookie: u64, path: PathBuf) -> Result<DirEntryPlus<FileHandleU64>, Status> {
        let name = path.file_name().expect("what is in a directory has a name").as_bytes().to_vec().into();
        let (handle, attributes) = self.found(path)?;
        let fileid = handle.as_u64();
        Ok(DirEntryPlus { fileid, name, cookie, name_attributes: Some(attributes), name_handle: Some(handle) })
    }
}

/// The rest of a listing.
struct Entries(std::vec::IntoIter<DirEntryPlus<FileHandleU64>>);

impl ReadDirPlusIterator<FileHandleU64> for Entries {
    async fn next(&mut self) -> NextResult<DirEntryPlus<FileHandleU64>> {
        self.0.next().map_or(NextResult::Eof, NextResult::Ok)
    }
}

impl NfsFileSystem for Mirror {
    async fn setattr(&self, handle: &FileHandleU64, attributes: sattr3) -> Result<fattr3, Status> {
        path_setattr(&self.path(handle)?, &attributes).await?;
        self.getattr(handle).await
    }

    async fn write(
        &self,
        handle: &FileHandleU64,
        offset: u64,
        bytes: &[u8],
        _stable: stable_how,
    ) -> Result<(fattr3, stable_how), Status> {
        self.state.check_reply_mode().await?;
        let file = File::options().write(true).open(self.path(handle)?).map_err(status)?;
        file.write_all_at(bytes, offset).map_err(status)?;
        Ok((self.getattr(handle).await?, stable_how::UNSTABLE))
    }

    async fn create(
        &self,
        folder: &FileHandleU64,
        name: &filename3<'_>,
        attributes: sattr3,
    ) -> Result<(FileHandleU64, fattr3), Status> {
        self.state.check_reply_mode().await?;
        let path = self.path_in(folder, name)?;
        let file = File::options().write(true).create(true).truncate(false).open(&path).map_err(status)?;
        file_setattr(&file, &attributes).await?;
        self.found(path)
    }

    async fn create_exclusive(
        &self,
        _folder: &FileHandleU64,
        _name: &filename3<'_>,
        _verifier: createverf3,
    ) -> Result<FileHandleU64, Status> {
        Err(Status::NFS3ERR_NOTSUPP)
    }

    async fn mkdir(&self, folder: &FileHandleU64, name: &filename3<'_>) -> Result<(FileHandleU64, fattr3), Status> {
        let path = self.path_in(folder, name)?;
        fs::create_dir(&path).map_err(status)?;
        self.found(path)
    }

    async fn remove(&self, folder: &FileHandleU64, name: &filename3<'_>) -> Result<(), Status> {
        let path = self.path_in(folder, name)?;
        let is_folder = fs::symlink_metadata(&path).map_err(status)?.is_dir();
        let removed = if is_folder { fs::remove_dir(path) } else { fs::remove_file(path) };
        removed.map_err(status)
    }

    async fn rename<'a>(
        &self,
        _from_folder: &FileHandleU64,
        _from: &filename3<'a>,
        _to_folder: &FileHandleU64,
        _to: &filename3<'a>,
    ) -> Result<(), Status> {
        Err(Status::NFS3ERR_NOTSUPP)
    }

    async fn symlink<'a>(
        &self,
        _folder: &FileHandleU64,
        _name: &filename3<'a>,
        _target: &nfspath3<'a>,
        _attributes: &sattr3,
    ) -> Result<(FileHandleU64, fattr3), Status> {
        Err(Status::NFS3ERR_NOTSUPP)
    }

    async fn commit(&self, handle: &FileHandleU64, _offset: u64, _count: u32) -> Result<(), Status> {
        self.state.check_reply_mode().await?;
        File::open(self.path(handle)?).and_then(|file| file.sync_all()).map_err(status)?;
        self.state.commits.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}

#[expect(clippy::needless_pass_by_value, reason = "it is what `map_err` hands over")]
fn status(error: io::Error) -> Status {
    match error.kind() {
        io::ErrorKind::NotFound => Status::NFS3ERR_NOENT,
        io::ErrorKind::AlreadyExists => Status::NFS3ERR_EXIST,
        io::ErrorKind::PermissionDenied => Status::NFS3ERR_ACCES,
        io::ErrorKind::NotADirectory => Status::NFS3ERR_NOTDIR,
        io::ErrorKind::IsADirectory => Status::NFS3ERR_ISDIR,
        io::ErrorKind::DirectoryNotEmpty => Status::NFS3ERR_NOTEMPTY,
        io::ErrorKind::StorageFull => Status::NFS3ERR_NOSPC,
        io::ErrorKind::ReadOnlyFilesystem => Status::NFS3ERR_ROFS,
        _ => Status::NFS3ERR_IO,
    }
}
