//! The server of `plimsoll demo` inside a test: a service that counts, with ways to misbehave, and a
//! second service with streams in every direction.

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

/// `talk.proto`: a service with streams in every direction, which the server has too.
pub const TALK: &str = include_str!("../../proto/talk.proto");

/// A counter under way. Dropping it closes its port and connections.
#[derive(Debug)]
pub struct Counter {
    running: Running,
    record: Arc<Record>,
    ca_pem: Option<String>,
}

impl Counter {
    /// A counter that answers at once, on one thread.
    ///
    /// # Errors
    /// When no port or thread is to be had.
    pub fn start(mode: Mode) -> io::Result<Counter> {
        Counter::builder(mode).start()
    }

    /// A counter with other habits.
    #[must_use]
    pub fn builder(mode: Mode) -> Builder {
        let habits = Habits { answer: Answer::AtOnce, max_concurrent_streams: None, goaway_after: None };
        Builder { mode, workers: 1, habits, tls: None }
    }

    /// Where it listens: a free port of `127.0.0.1`.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.running.address()
    }

    /// What it has seen: metadata as headers, framed messages as bodies. Reflection counts too.
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

/// What the counter does with a call that it could answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Answers as fast as it can.
    AtOnce,
    /// Counts, then answers this long after the call was read.
    After(Duration),
    /// Reads the call, counts, and never answers.
    Never,
    /// Reads the call, counts, and resets its stream with this error of HTTP/2.
    Reset(u32),
    /// Answers with headers alone that carry this status, and does not count.
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
    habits: Habits,
    tls: Option<Signer>,
}

/// Who signs a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signer {
    /// An authority that nobody else knows.
    Authority,
    /// Whoever it is for, who calls itself an authority.
    Itself,
}

/// How a counter treats its clients.
#[derive(Clone, Debug)]
struct Habits {
    answer: Answer,
    max_concurrent_streams: Option<u32>,
    goaway_after: Option<u64>,
}

impl Builder {
    /// With this many threads.
    #[must_use]
    pub fn workers(mut self, workers: usize) -> Builder {
        self.workers = workers;
        self
    }

    /// With another way to answer.
    #[must_use]
    pub fn answer(mut self, answer: Answer) -> Builder {
        self.habits.answer = answer;
        self
    }

    /// With this limit announced on the calls under way on one connection.
    #[must_use]
    pub fn max_concurrent_streams(mut self, most: u32) -> Builder {
        self.habits.max_concurrent_streams = Some(most);
        self
    }

    /// Asks the client to leave (GOAWAY) after this many calls on a connection. Calls that came
    /// before the client could know are still answered.
    #[must_use]
    pub fn goaway_after(mut self, calls: u64) -> Builder {
        self.habits.goaway_after = Some(calls);
        self
    }

    /// Speaks TLS with ALPN `h2`, with a certificate for `localhost` and `127.0.0.1`.
    #[must_use]
    pub fn tls(self) -> Builder {
        self.tls_signed_by(Signer::Authority)
    }

    /// Speaks TLS with such a certificate.
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
            accept_all(listener, identity, self.mode, self.habits, kept)
        })?;
        Ok(Counter { running, record, ca_pem })
    }
}

async fn accept_all(
    listener: TcpListener,
    identity: Option<Identity>,
    mode: Mode,
    habits: Habits,
    record: Arc<Record>,
) {
    let service = Arc::new(Service::new(mode, habits, record));
    loop {
        // An accept fails when the peer has gone already, or no descriptor is left: the next may do better.
        let Ok(stream) = accept(&listener).await else {
            tokio::task::yield_now().await;
            continue;
        };
        tokio::spawn(greet(stream, identity.clone(), Arc::clone(&service)));
    }
}

/// Serves a connection to its end. How it ends is the client's affair.
async fn greet(stream: TcpStream, identity: Option<Identity>, service: Arc<Service>) {
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

/// What came is no handshake.
struct Refused;

async fn converse<S>(stream: S, number: u64, service: Arc<Service>) -> Result<(), Refused>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut builder = h2::server::Builder::new();
    builder.data_frame_budget(plimsoll_demo::SMALL_FRAMES);
    if let Some(most) = service.habits.max_concurrent_streams {
        builder.max_concurrent_streams(most);
    }
    let mut connection = builder.handshake::<_, Bytes>(stream).await.map_err(|_| Refused)?;
    let mut calls = 0;
    while let Some(Ok((request, respond))) = connection.accept().await {
        tokio::spawn(call::answer(Arc::clone(&service), number, request, respond));
        calls += 1;
        if service.habits.goaway_after == Some(calls) {
            connection.graceful_shutdown();
        }
    }
    Ok(())
}
