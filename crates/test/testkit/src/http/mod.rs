//! An HTTP/1.1 server that does what it is told, by the rules or against them.
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
pub use stateful::{Account, Stateful};

use crate::record::Record;
use crate::running::{Running, accept};
use crate::tls::{Identity, LOOPBACK_NAMES};
use connection::Site;
use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::net::{TcpListener, TcpStream};

/// A server under way, on one thread of its own. Dropping it closes its port and connections.
#[derive(Debug)]
pub struct Server {
    running: Running,
    site: Arc<Site>,
    ca_pem: Option<String>,
}

impl Server {
    /// A server that does the same on every path.
    ///
    /// # Errors
    /// When no port or thread is to be had.
    pub fn start(behaviour: Behaviour) -> io::Result<Server> {
        Server::builder(behaviour).start()
    }

    /// A server that does `otherwise` on every path that is not given one of its own.
    #[must_use]
    pub fn builder(otherwise: Behaviour) -> Builder {
        Builder { otherwise, paths: BTreeMap::new(), names: Vec::new() }
    }

    /// Where it listens: a free port of `127.0.0.1`.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.running.address()
    }

    /// What it has seen.
    #[must_use]
    pub fn record(&self) -> &Record {
        &self.site.record
    }

    /// How long each request stayed, in the order of arrival: the server's own account, to which
    /// a generator's measurements are held. The first million are kept.
    #[must_use]
    pub fn sojourns(&self) -> Vec<Sojourn> {
        self.site.sojourns()
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
    /// Does `behaviour` on `path`, which is compared without its query.
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
        let site = Arc::new(Site::new(self.otherwise, self.paths));
        let served = Arc::clone(&site);
        let running = Running::start("http-server", 1, |listener| serve(listener, identity, served))?;
        Ok(Server { running, site, ca_pem })
    }
}

async fn serve(listener: TcpListener, identity: Option<Identity>, site: Arc<Site>) {
    loop {
        // An accept fails when the peer has gone already, or no descriptor is left: the next may do better.
        let Ok(stream) = accept(&listener).await else {
            tokio::task::yield_now().await;
            continue;
        };
        tokio::spawn(greet(stream, identity.clone(), Arc::clone(&site)));
    }
}

/// Serves a connection to its end. How it ends is the client's affair.
async fn greet(stream: TcpStream, identity: Option<Identity>, site: Arc<Site>) {
    let number = site.record.connected();
    let _ended = match identity {
        None => connection::serve(stream, number, &site).await,
        Some(identity) => match identity.acceptor.accept(stream).await {
            Ok(stream) => connection::serve(stream, number, &site).await,
            Err(error) => {
                site.record.refuse();
                Err(error)
            }
        },
    };
}
