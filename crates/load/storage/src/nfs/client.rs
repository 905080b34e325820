//! The NFSv3 requests (RFC 1813) that objects need, one at a time, and the failures for their errors.

use super::stream::{BlockingStream, Dialer, poll_ready};
use nfs3_client::nfs3_types::mount::{dirpath, mountstat3};
use nfs3_client::nfs3_types::nfs3::{
    COMMIT3args, CREATE3args, FSINFO3args, FSSTAT3args, LOOKUP3args, MKDIR3args, Nfs3Option, Nfs3Result, READ3args,
    READDIR3args, REMOVE3args, RMDIR3args, WRITE3args, cookie3, cookieverf3, createhow3, diropargs3, nfs_fh3, nfsstat3,
    post_op_fh3, sattr3, stable_how, writeverf3,
};
use nfs3_client::nfs3_types::rpc::{auth_unix, opaque_auth};
use nfs3_client::nfs3_types::xdr_codec::Opaque;
use nfs3_client::{ConnectError, MountError, Nfs3Client, Nfs3ConnectionBuilder, PortmapError, RpcError};
use plimsoll_engine::blocking::{Call, Failure};
use plimsoll_model::record::ErrorKind;
use plimsoll_model::storage::Nfs;
use std::fmt::Arguments;
use std::net::{IpAddr, SocketAddr};

/// A connection to the file service. After an error the next request reconnects.
#[derive(Debug)]
pub(super) struct Client {
    dialer: Dialer,
    server: SocketAddr,
    rpc: Option<Nfs3Client<BlockingStream>>,
}

/// The handle of a file. NFSv3 knows no open files.
#[derive(Clone, Debug)]
pub(super) struct File<'a> {
    pub(super) handle: nfs_fh3,
    /// The name for error messages.
    pub(super) name: &'a str,
}

/// The most bytes that a server sends or accepts in one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Limits {
    pub(super) read: u32,
    pub(super) write: u32,
    /// The preferred size of a page of a listing.
    pub(super) page: u32,
}

/// A position in a listing.
pub(super) type ListPosition = (cookie3, cookieverf3);

/// The result of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Written {
    pub(super) count: u32,
    /// The verifier of a server that has not yet made them durable.
    pub(super) uncommitted: Option<writeverf3>,
}

impl Client {
    /// Mounts the export. Returns a client of the file service, and the handle of the exported folder.
    pub(super) fn mount(ip: IpAddr, nfs: &Nfs, call: &Call) -> Result<(Client, nfs_fh3), Failure> {
        let dialer = Dialer::new(call);
        let mut builder = Nfs3ConnectionBuilder::new(dialer.clone(), ip.to_string(), &nfs.export)
            .connect_from_privileged_port(false) // `Dialer` tries that itself, for all connections
            .credential(credential());
        if let Some(port) = nfs.ports.nfs {
            builder = builder.nfs3_port(port);
        }
        if let Some(port) = nfs.ports.mount {
            builder = builder.mount_port(port);
        }
        let mut connection = poll_ready(builder.mount()).map_err(|error| not_mounted(nfs, error))?;
        let (root, server) = (connection.root_nfs_fh3(), SocketAddr::new(ip, connection.nfs3_port));
        // Remove our entry from the server's list of mounts, as nobody would do it later. The list is only
        // for people; the handle stays valid.
        let path = dirpath(Opaque::owned(nfs.export.clone().into_bytes()));
        let _ = poll_ready(connection.mount_client.umnt(path));
        Ok((Client { dialer, server, rpc: Some(connection.into_nfs3_client()) }, root))
    }

    /// A client of the file service at this address. The first request connects.
    pub(super) fn of(server: SocketAddr, call: &Call) -> Client {
        Client { dialer: Dialer::new(call), server, rpc: None }
    }

    /// The file service.
    pub(super) fn server(&self) -> SocketAddr {
        self.server
    }

    pub(super) fn limits(&mut self, folder: &nfs_fh3, call: &Call) -> Result<Limits, Failure> {
        let request = FSINFO3args { fsroot: folder.clone() };
        let limits =
            self.request(call, format_args!("FSINFO of the export"), async |rpc| rpc.fsinfo(&request).await)?;
        Ok(Limits { read: limits.rtmax, write: limits.wtmax, page: limits.dtpref })
    }

    /// The free space for this user, in bytes.
    pub(super) fn free_space(&mut self, folder: &nfs_fh3, call: &Call) -> Result<u64, Failure> {
        let request = FSSTAT3args { fsroot: folder.clone() };
        Ok(self.request(call, format_args!("FSSTAT of the export"), async |rpc| rpc.fsstat(&request).await)?.abytes)
    }

    pub(super) fn look_up<'a>(&mut self, folder: &nfs_fh3, name: &'a str, call: &Call) -> Result<File<'a>, Failure> {
        let request = LOOKUP3args { what: place(folder, name) };
        let found = self.request(call, format_args!("LOOKUP {name}"), async |rpc| rpc.lookup(&request).await)?;
        Ok(File { handle: found.object, name })
    }

    /// Makes a file that must not exist before.
    pub(super) fn create<'a>(&mut self, folder: &nfs_fh3, name: &'a str, call: &Call) -> Result<File<'a>, Failure> {
        self.create_as(createhow3::GUARDED(with_mode(0o644)), folder, name, call)
    }

    /// Makes a file, or truncates an existing one.
    pub(super) fn truncate<'a>(&mut self, folder: &nfs_fh3, name: &'a str, call: &Call) -> Result<File<'a>, Failure> {
        let empty = sattr3 { size: Nfs3Option::Some(0), ..with_mode(0o644) };
        self.create_as(createhow3::UNCHECKED(empty), folder, name, call)
    }

    fn create_as<'a>(
        &mut self,
        how: createhow3,
        folder: &nfs_fh3,
        name: &'a str,
        call: &Call,
    ) -> Result<File<'a>, Failure> {
        let request = CREATE3args { where_: place(folder, name), how };
        let made = self.request(call, format_args!("CREATE {name}"), async |rpc| rpc.create(&request).await)?;
        self.handle_of(made.obj, folder, name, call)
    }

    /// Makes a folder that must not exist before.
    pub(super) fn make_folder(&mut self, folder: &nfs_fh3, name: &str, call: &Call) -> Result<nfs_fh3, Failure> {
        let request = MKDIR3args { where_: place(folder, name), attributes: with_mode(0o755) };
        let made = self.request(call, format_args!("MKDIR {name}"), async |rpc| rpc.mkdir(&request).await)?;
        Ok(self.handle_of(made.obj, folder, name, call)?.handle)
    }

    /// The handle of a new file or folder. A server may leave it out of its reply.
    fn handle_of<'a>(
        &mut self,
        made: post_op_fh3,
        folder: &nfs_fh3,
        name: &'a str,
        call: &Call,
    ) -> Result<File<'a>, Failure> {
        match made {
            Nfs3Option::Some(handle) => Ok(File { handle, name }),
            Nfs3Option::None => self.look_up(folder, name, call),
        }
    }

    /// Writes some or all of `bytes`, as UNSTABLE.
    pub(super) fn write(
        &mut self,
        file: &File<'_>,
        offset: u64,
        bytes: &[u8],
        call: &Call,
    ) -> Result<Written, Failure> {
        let count = u32::try_from(bytes.len()).expect("a write is no longer than the server's limit");
        let request = WRITE3args {
            file: file.handle.clone(),
            offset,
            count,
            stable: stable_how::UNSTABLE,
            data: Opaque::borrowed(bytes),
        };
        let doing = format_args!("WRITE {} at byte {offset}", file.name);
        let written = self.request(call, doing, async |rpc| rpc.write(&request).await)?;
        if !(1..=count).contains(&written.count) {
            let detail = format!("failed to {doing}: of {count} bytes the server says to have taken {}", written.count);
            return Err(Failure::new(ErrorKind::Protocol, detail));
        }
        let uncommitted = (written.committed == stable_how::UNSTABLE).then_some(written.verf);
        Ok(Written { count: written.count, uncommitted })
    }

    /// Commits the whole file. A verifier that differs from that of the writes means that the server lost
    /// them.
    pub(super) fn commit(&mut self, file: &File<'_>, call: &Call) -> Result<writeverf3, Failure> {
        let request = COMMIT3args { file: file.handle.clone(), offset: 0, count: 0 };
        Ok(self.request(call, format_args!("COMMIT {}", file.name), async |rpc| rpc.commit(&request).await)?.verf)
    }

    /// Reads at most `count` bytes. Returns also whether they are the last.
    pub(super) fn read(
        &mut self,
        file: &File<'_>,
        offset: u64,
        count: u32,
        call: &Call,
    ) -> Result<(Opaque<'static>, bool), Failure> {
        let request = READ3args { file: file.handle.clone(), offset, count };
        let doing = format_args!("READ {} at byte {offset}", file.name);
        let answer = self.request(call, doing, async |rpc| rpc.read(&request).await)?;
        Ok((answer.data, answer.eof))
    }

    /// Reads a page of the names in a folder, and the position of the next page.
    pub(super) fn names(
        &mut self,
        folder: &nfs_fh3,
        (cookie, cookieverf): ListPosition,
        longest: u32,
        call: &Call,
    ) -> Result<(Vec<String>, Option<ListPosition>), Failure> {
        let request = READDIR3args { dir: folder.clone(), cookie, cookieverf, count: longest };
        let page = self.request(call, format_args!("READDIR"), async |rpc| rpc.readdir(&request).await)?;
        let entries = page.reply.entries.into_inner();
        let next = entries.last().filter(|_| !page.reply.eof).map(|last| (last.cookie, page.cookieverf));
        let names = entries.iter().map(|entry| String::from_utf8_lossy(entry.name.as_ref()).into_owned());
        Ok((names.filter(|name| name != "." && name != "..").collect(), next))
    }

    pub(super) fn remove(&mut self, folder: &nfs_fh3, name: &str, call: &Call) -> Result<(), Failure> {
        let request = REMOVE3args { object: place(folder, name) };
        self.request(call, format_args!("REMOVE {name}"), async |rpc| rpc.remove(&request).await).map(drop)
    }

    /// Removes a folder that is empty.
    pub(super) fn remove_folder(&mut self, folder: &nfs_fh3, name: &str, call: &Call) -> Result<(), Failure> {
        let request = RMDIR3args { object: place(folder, name) };
        self.request(call, format_args!("RMDIR {name}"), async |rpc| rpc.rmdir(&request).await).map(drop)
    }

    /// Sends one request and waits for its reply.
    fn request<T, E>(
        &mut self,
        call: &Call,
        doing: Arguments<'_>,
        request: impl AsyncFnOnce(&mut Nfs3Client<BlockingStream>) -> Result<Nfs3Result<T, E>, RpcError>,
    ) -> Result<T, Failure> {
        self.dialer.set_call(call);
        let mut rpc = self.rpc.take().map_or_else(|| self.connect(), Ok)?;
        match poll_ready(request(&mut rpc)) {
            Ok(answer) => {
                self.rpc = Some(rpc);
                match answer {
                    Nfs3Result::Ok(value) => Ok(value),
                    Nfs3Result::Err((status, _)) => Err(refused(doing, status)),
                }
            }
            // The next reply on this connection could be the one to this request, so close it.
            Err(error) => Err(broken(&doing.to_string(), &error)),
        }
    }

    fn connect(&self) -> Result<Nfs3Client<BlockingStream>, Failure> {
        let wire = self.dialer.connect_to(self.server).map_err(|error| Failure::io("reach the NFS server", &error))?;
        Ok(Nfs3Client::new_with_auth(wire, credential(), opaque_auth::default()))
    }
}

fn place<'a>(folder: &nfs_fh3, name: &'a str) -> diropargs3<'a> {
    diropargs3 { dir: folder.clone(), name: name.as_bytes().into() }
}

fn with_mode(mode: u32) -> sattr3 {
    sattr3 { mode: Nfs3Option::Some(mode), ..sattr3::default() }
}

/// The credential of this process, as the client of a kernel would send it.
fn credential() -> opaque_auth<'static> {
    /// The most groups that the protocol allows.
    const GROUPS: usize = 16;
    let groups = rustix::process::getgroups().unwrap_or_default();
    opaque_auth::auth_unix(&auth_unix {
        stamp: 0,
        machinename: Opaque::owned(rustix::system::uname().nodename().to_bytes().to_vec()),
        uid: rustix::process::geteuid().as_raw(),
        gid: rustix::process::getegid().as_raw(),
        gids: groups.iter().take(GROUPS).map(|group| group.as_raw()).collect(),
    })
}

/// The failure for an error status.
fn refused(doing: Arguments<'_>, status: nfsstat3) -> Failure {
    let (kind, hint) = match status {
        nfsstat3::NFS3ERR_NOSPC | nfsstat3::NFS3ERR_DQUOT | nfsstat3::NFS3ERR_FBIG => (ErrorKind::Space, String::new()),
        nfsstat3::NFS3ERR_ACCES | nfsstat3::NFS3ERR_PERM | nfsstat3::NFS3ERR_ROFS => {
            let user = rustix::process::geteuid().as_raw();
            (ErrorKind::Denied, format!(" to user {user}; let the server export a folder that this user may write"))
        }
        _ => (ErrorKind::Io, String::new()),
    };
    Failure::new(kind, format!("failed to {doing}: the server answered {status}{hint}"))
}

/// The failure for a missing or unreadable reply.
fn broken(doing: &str, error: &RpcError) -> Failure {
    match error {
        RpcError::Io(error) => Failure::io(doing, error),
        RpcError::Auth(_) => Failure::new(ErrorKind::Denied, format!("failed to {doing}: {error}")),
        _ => Failure::new(ErrorKind::Protocol, format!("failed to {doing}: {error}")),
    }
}

fn not_mounted(nfs: &Nfs, error: ConnectError) -> Failure {
    let Nfs { host, export, .. } = nfs;
    match error {
        ConnectError::Io(error) => Failure::io("reach the NFS server", &error),
        ConnectError::Portmap(PortmapError::Rpc(error)) => broken(&format!("ask the portmapper of {host}"), &error),
        ConnectError::Portmap(error) => {
            let detail = format!("failed to find NFSv3 on {host}: its portmapper answered: {error}; give its ports");
            Failure::new(ErrorKind::Connect, detail)
        }
        ConnectError::Mount(MountError::Rpc(error)) => broken(&format!("mount {export} of {host}"), &error),
        ConnectError::Mount(MountError::Denied(status)) => {
            let kind = match status {
                mountstat3::MNT3ERR_PERM | mountstat3::MNT3ERR_ACCES => ErrorKind::Denied,
                _ => ErrorKind::Io,
            };
            let detail = format!(
                "failed to mount {export} of {host}: the server answered {status}; \
                 `showmount --exports {host}` lists what it exports, and to whom"
            );
            Failure::new(kind, detail)
        }
    }
}
