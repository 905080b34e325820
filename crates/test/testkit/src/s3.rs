//! An S3 server over a directory: `s3s-fs`, which checks signatures and knows nothing of Plimsoll.

use crate::running::{Running, accept};
use crate::tls::{Identity, LOOPBACK_NAMES};
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use s3s::auth::SimpleAuth;
use s3s::service::{S3Service, S3ServiceBuilder};
use s3s_fs::FileSystem;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;

/// The access key that the server knows.
pub const ACCESS_KEY: &str = "testkit-access";

/// Its secret.
pub const SECRET_KEY: &str = "testkit-secret-0123456789";

/// A running server. Dropping it closes its port and connections.
#[derive(Debug)]
pub struct Server {
    running: Running,
    ca_pem: Option<String>,
}

impl Server {
    /// Serves the folders in `directory` as buckets.
    ///
    /// # Errors
    /// When the directory cannot be read, or no port or thread is to be had.
    pub fn start(directory: &Path) -> io::Result<Server> {
        Server::start_with(directory, None)
    }

    /// The same with TLS, and a certificate for `localhost` and `127.0.0.1`.
    ///
    /// # Errors
    /// As for [`Server::start`].
    pub fn start_tls(directory: &Path) -> io::Result<Server> {
        let names = LOOPBACK_NAMES.map(str::to_owned);
        Server::start_with(directory, Some(Identity::for_names(&names, &[b"http/1.1"])?))
    }

    fn start_with(directory: &Path, identity: Option<Identity>) -> io::Result<Server> {
        let files = FileSystem::new(directory).map_err(|error| io::Error::other(format!("{error:?}")))?;
        let mut builder = S3ServiceBuilder::new(files);
        builder.set_auth(SimpleAuth::from_single(ACCESS_KEY, SECRET_KEY));
        let service = builder.build();
        let ca_pem = identity.as_ref().map(|identity| identity.ca_pem.clone());
        let running = Running::start("s3-server", 2, |listener| serve(listener, identity, service))?;
        Ok(Server { running, ca_pem })
    }

    /// The address that it listens on: a free port of `127.0.0.1`.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.running.address()
    }

    /// The certificate of the authority that vouches for the server; none without TLS.
    #[must_use]
    pub fn ca_pem(&self) -> Option<&str> {
        self.ca_pem.as_deref()
    }
}

async fn serve(listener: TcpListener, identity: Option<Identity>, service: S3Service) {
    loop {
        let Ok(stream) = accept(&listener).await else {
            tokio::task::yield_now().await;
            continue;
        };
        let (identity, service) = (identity.clone(), service.clone());
        tokio::spawn(async move {
            match identity {
                None => answer(stream, service).await,
                Some(identity) => {
                    if let Ok(stream) = identity.acceptor.accept(stream).await {
                        answer(stream, service).await;
                    }
                }
            }
        });
    }
}

/// Serves a connection to its end, and ignores errors of the client.
async fn answer(stream: impl AsyncRead + AsyncWrite + Unpin + 'static, service: S3Service) {
    let _ended = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}
