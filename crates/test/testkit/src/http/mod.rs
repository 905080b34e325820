//! An HTTP/1.1 server with configurable behaviour, within the protocol or in violation of it.
//!
//! | wanted | written |
//! | --- | --- |
//! | n bytes at once | `Behaviour::at_once(Reply::of_size(n))` |
//! | a fixed delay | `Behaviour::after(delay, reply)` |
//! | a stall of 1 s that begins 2 s after the first request | `Behaviour::stalling(at, length, reply)` |
//! | a slow start | `Behaviour::settling(slow, settled, after, reply)` |
//! | durations that grow without end | `Behaviour::slowing(from, more, reply)` |
//! | an M/M/1 queue | `Behaviour::queue(Service::Exponential { mean, seed }, reply)` |
//! | never more than r replies per second | `Behaviour::saturating_at(r, reply)` |
//! | no reply at all | `Behaviour::never()` |
//! | a status, headers, a chunked or close-delimited body, 1xx first, a body cut short, a trickle | [`Reply`] |
//!
//! [`Stateful`] is another server, which insists on tokens, cookies and the order of steps.
//!
//! Requests may have a body with `Content-Length`. Pipelined requests are answered one after the
//! other.

mod behaviour;
mod connection;
mod queue;
mod reply;
mod stateful;

pub use behaviour::{Behaviour, Service};
pub use queue::Sojourn;
pub use reply::Reply;
pub use stateful::{SessionRecord, Stateful};

use crate::record::Record;
use crate::running::{Running, accept};
use crate::tls::{Identity, LOOPBACK_NAMES};
use connection::SharedState;
use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::net::{TcpListener, TcpStream};

/// A running server, on one thread of its own. Dropping it closes its port and connections.
#[derive(Debug)]
pub struct Server {
    running: Running,
    shared: Arc<SharedState>,
    ca_pem: Option<String>,
}

impl Server {
    /// A server with the same behaviour on every path.
    ///
    /// # Errors
    /// When no port or thread is to be had.
    pub fn start(behaviour: Behaviour) -> io::Result<Server> {
        Server::builder(behaviour).start()
    }

    /// A server with the behaviour `otherwise` on every path without one of its own.
    #[must_use]
    pub fn builder(otherwise: Behaviour) -> Builder {
        Builder { otherwise, paths: BTreeMap::new(), names: Vec::new() }
    }

    /// The address that it listens on: a free port of `127.0.0.1`.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.running.address()
    }

    /// The record of its requests.
    #[must_use]
    pub fn record(&self) -> &Record {
        &self.shared.record
    }

    /// The sojourn of each request, in the order of arrival. A test compares the measurements of a generator with
    /// them. The first million are kept.
    #[must_use]
    pub fn sojourns(&self) -> Vec<Sojourn> {
        self.shared.sojourns()
    }

    /// The certificate of the authority that vouches for the server; none without TLS.
    #[must_use]
    pub fn ca_pem(&self) -> Option<&str> {
        self.ca_pem.as_deref()
    }
}

/// A server to be started.
#[derive(Clone, Debug)]
pub struct Builder {
    otherwise: Behaviour,
    paths: BTreeMap<String, Behaviour>,
    names: Vec<String>,
}

impl Builder {
    /// Sets the behaviour of `path`, which is compared without its query.
    #[must_use]
    pub fn at(mut self, path: &str, behaviour: Behaviour) -> Builder {
        self.paths.insert(path.to_owned(), behaviour);
        self
    }

    /// Speaks TLS, with a certificate for `localhost` and `127.0.0.1`.
    #[must_use]
    pub fn tls(self) -> Builder {
        self.tls_for(&LOOPBACK_NAMES)
    }

    /// Speaks TLS, with a certificate for `names`.
    #[must_use]
    pub fn tls_for(mut self, names: &[&str]) -> Builder {
        self.names = names.iter().map(|&name| name.to_owned()).collect();
        self
    }

    /// Starts it.
    ///
    /// # Errors
    /// When no port or thread is to be had, or the names fit no certificate.
    pub fn start(self) -> io::Result<Server> {
        let identity = match self.names.as_slice() {
            [] => None,
            names => Some(Identity::for_names(names, &[b"http/1.1"])?),
        };
        let ca_pem = identity.as_ref().map(|identity| identity.ca_pem.clone());
        let shared = Arc::new(SharedState::new(self.otherwise, self.paths));
        let served = Arc::clone(&shared);
        let running = Running::start("http-server", 1, |listener| serve(listener, identity, served))?;
        Ok(Server { running, shared, ca_pem })
    }
}

async fn serve(listener: TcpListener, identity: Option<Identity>, shared: Arc<SharedState>) {
    loop {
        // An accept fails if the peer has gone, or no descriptor is left; try the next connection.
        let Ok(stream) = accept(&listener).await else {
            tokio::task::yield_now().await;
            continue;
        };
        tokio::spawn(serve_connection(stream, identity.clone(), Arc::clone(&shared)));
    }
}

/// Serves a connection to its end, and ignores errors of the client.
async fn serve_connection(stream: TcpStream, identity: Option<Identity>, shared: Arc<SharedState>) {
    let number = shared.record.connected();
    let _ended = match identity {
        None => connection::serve(stream, number, &shared).await,
        Some(identity) => match identity.acceptor.accept(stream).await {
            Ok(stream) => connection::serve(stream, number, &shared).await,
            Err(error) => {
                shared.record.refuse();
                Err(error)
            }
        },
    };
}
