//! The server of `plimsoll demo` for tests: a service that counts, with configurable faults, a second service with
//! streams in every direction, and the one that takes metrics of OpenTelemetry.

mod call;
mod talk;

pub use plimsoll_demo::Mode;

use crate::record::Record;
use crate::running::{Running, accept};
use crate::tls::{Identity, LOOPBACK_NAMES};
use bytes::Bytes;
use call::Service;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};

/// The text of `talk.proto`, the second service of the server.
pub const TALK: &str = include_str!("../../proto/talk.proto");

/// A running counter. Dropping it closes its port and connections.
#[derive(Debug)]
pub struct Counter {
    running: Running,
    record: Arc<Record>,
    ca_pem: Option<String>,
}

impl Counter {
    /// A counter that replies at once, on one thread.
    ///
    /// # Errors
    /// When no port or thread is to be had.
    pub fn start(mode: Mode) -> io::Result<Counter> {
        Counter::builder(mode).start()
    }

    /// A counter with other settings.
    #[must_use]
    pub fn builder(mode: Mode) -> Builder {
        let settings = Settings { reply_mode: ReplyMode::AtOnce, max_concurrent_streams: None, goaway_after: None };
        Builder { mode, workers: 1, settings, tls: None }
    }

    /// The address that it listens on: a free port of `127.0.0.1`.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.running.address()
    }

    /// The record of its calls: metadata as headers, framed messages as bodies. Reflection counts too.
    #[must_use]
    pub fn record(&self) -> &Record {
        &self.record
    }

    /// The certificate of the authority that vouches for the server; none without TLS.
    #[must_use]
    pub fn ca_pem(&self) -> Option<&str> {
        self.ca_pem.as_deref()
    }
}

/// The reply of the counter to valid calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReplyMode {
    /// Replies as fast as it can.
    AtOnce,
    /// Counts, then replies this long after the call was read.
    After(Duration),
    /// Reads the call, counts, and never replies.
    Never,
    /// Reads the call, counts, and resets its stream with this HTTP/2 error.
    Reset(u32),
    /// Replies with trailers only, which carry this status, and does not count.
    Refuse {
        /// Status code of gRPC.
        code: u16,
        /// Message, plain ASCII.
        message: String,
    },
}

/// A counter to be started.
#[derive(Clone, Debug)]
pub struct Builder {
    mode: Mode,
    workers: usize,
    settings: Settings,
    tls: Option<Signer>,
}

/// Who signs a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signer {
    /// An authority that nobody else knows.
    Authority,
    /// The certificate itself, which claims to be an authority.
    Itself,
}

/// The settings of a counter.
#[derive(Clone, Debug)]
struct Settings {
    reply_mode: ReplyMode,
    max_concurrent_streams: Option<u32>,
    goaway_after: Option<u64>,
}

impl Builder {
    /// Sets the number of threads.
    #[must_use]
    pub fn workers(mut self, workers: usize) -> Builder {
        self.workers = workers;
        self
    }

    /// Sets the reply to calls.
    #[must_use]
    pub fn reply_mode(mut self, reply_mode: ReplyMode) -> Builder {
        self.settings.reply_mode = reply_mode;
        self
    }

    /// Announces this limit of concurrent calls on a connection.
    #[must_use]
    pub fn max_concurrent_streams(mut self, most: u32) -> Builder {
        self.settings.max_concurrent_streams = Some(most);
        self
    }

    /// Asks the client to leave (GOAWAY) after this many calls on a connection. Calls that arrive
    /// before the client can know still get a reply.
    #[must_use]
    pub fn goaway_after(mut self, calls: u64) -> Builder {
        self.settings.goaway_after = Some(calls);
        self
    }

    /// Speaks TLS with ALPN `h2`, with a certificate for `localhost` and `127.0.0.1`.
    #[must_use]
    pub fn tls(self) -> Builder {
        self.tls_signed_by(Signer::Authority)
    }

    /// Speaks TLS with a certificate that this signer has signed.
    #[must_use]
    pub fn tls_signed_by(mut self, signer: Signer) -> Builder {
        self.tls = Some(signer);
        self
    }

    /// Starts it.
    ///
    /// # Errors
    /// When no port or thread is to be had.
    pub fn start(self) -> io::Result<Counter> {
        let names = LOOPBACK_NAMES.map(str::to_owned);
        let identity = match self.tls {
            None => None,
            Some(Signer::Authority) => Some(Identity::for_names(&names, &[b"h2"])?),
            Some(Signer::Itself) => Some(Identity::signed_by_itself(&names, &[b"h2"])?),
        };
        let ca_pem = identity.as_ref().map(|identity| identity.ca_pem.clone());
        let record = Arc::new(Record::keeping(Record::KEPT));
        let kept = Arc::clone(&record);
        let running = Running::start("grpc-counter", self.workers, move |listener| {
            accept_all(listener, identity, self.mode, self.settings, kept)
        })?;
        Ok(Counter { running, record, ca_pem })
    }
}

async fn accept_all(
    listener: TcpListener,
    identity: Option<Identity>,
    mode: Mode,
    settings: Settings,
    record: Arc<Record>,
) {
    let service = Arc::new(Service::new(mode, settings, record));
    loop {
        // An accept fails if the peer has gone, or no descriptor is left; try the next connection.
        let Ok(stream) = accept(&listener).await else {
            tokio::task::yield_now().await;
            continue;
        };
        tokio::spawn(serve_connection(stream, identity.clone(), Arc::clone(&service)));
    }
}

/// Serves a connection to its end, and ignores errors of the client.
async fn serve_connection(stream: TcpStream, identity: Option<Identity>, service: Arc<Service>) {
    let number = service.record.connected();
    let ended = match identity {
        None => converse(stream, number, Arc::clone(&service)).await,
        Some(identity) => match identity.acceptor.accept(stream).await {
            Ok(stream) => converse(stream, number, Arc::clone(&service)).await,
            Err(_) => Err(Refused),
        },
    };
    if let Err(Refused) = ended {
        service.record.refuse();
    }
}

/// The error of an invalid handshake.
struct Refused;

async fn converse<S>(stream: S, number: u64, service: Arc<Service>) -> Result<(), Refused>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut builder = h2::server::Builder::new();
    builder.data_frame_budget(plimsoll_demo::SMALL_FRAMES);
    if let Some(most) = service.settings.max_concurrent_streams {
        builder.max_concurrent_streams(most);
    }
    let mut connection = builder.handshake::<_, Bytes>(stream).await.map_err(|_| Refused)?;
    let mut calls = 0;
    while let Some(Ok((request, respond))) = connection.accept().await {
        tokio::spawn(call::answer(Arc::clone(&service), number, request, respond));
        calls += 1;
        if service.settings.goaway_after == Some(calls) {
            connection.graceful_shutdown();
        }
    }
    Ok(())
}
