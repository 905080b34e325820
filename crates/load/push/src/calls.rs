//! Calls of gRPC to a receiver, each on a connection of its own: there are a few in a minute.

use crate::client::{Receiver, Tls, read};
use plimsoll_engine::tls::{Encryption, Trust, client};
use plimsoll_engine::transport::Dialer;
use plimsoll_protocols::grpc::caller::{CallError, Caller};
use plimsoll_web::Url;
use rustls::ALL_VERSIONS;
use rustls::pki_types::ServerName;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::sync::mpsc::{channel, sync_channel};
use std::time::{Duration, Instant};

/// The time that an address has before the next one is tried as well.
///
/// *Source: RFC 8305, section 5, the delay of connection attempts.*
const HEAD_START: Duration = Duration::from_millis(250);

/// The calls of one method of a receiver.
pub(crate) struct Calls {
    path: &'static str,
    /// Host and port, as in the URL.
    authority: String,
    /// A name, or an address without brackets.
    host: String,
    port: u16,
    metadata: Vec<(String, String)>,
    tls: Option<Encryption>,
}

impl Calls {
    /// # Errors
    /// A file in PEM cannot be read, or no certificate can have the name of the host.
    pub(crate) fn new(receiver: &Receiver, path: &'static str) -> Result<Calls, String> {
        let url = Url::parse(&receiver.url).map_err(|fault| fault.to_string())?;
        let (host, port) = (url.host().trim_matches(['[', ']']).to_owned(), url.port());
        let authority = format!("{}:{port}", url.host());
        let tls = receiver.url.starts_with("https:").then(|| encryption(&receiver.tls, &host)).transpose()?;
        // HTTP/2 has names in lower case only.
        let lower = receiver.headers.iter().map(|(name, value)| (name.to_ascii_lowercase(), value.clone()));
        Ok(Calls { path, authority, host, port, metadata: lower.collect(), tls })
    }

    /// Sends a message, and returns the answer.
    pub(crate) fn call(&self, message: &[u8], within: Duration) -> Result<Vec<u8>, CallError> {
        let until = Instant::now() + within;
        let (authority, metadata, tls) = (self.authority.clone(), self.metadata.clone(), self.tls.clone());
        let connect = move |address| {
            let dialer = Dialer { address, tls: tls.clone() };
            Caller::connect(&dialer, &authority, &metadata, until)
        };
        // A message is sent once only: the receiver may have taken it although the call fails.
        connect_first(&self.addresses(within)?, connect)?.call(self.path, message)
    }

    /// The addresses of the host, of which there is at least one. The system's resolver has no time-out of its own.
    fn addresses(&self, within: Duration) -> Result<Vec<SocketAddr>, CallError> {
        let (answer, answered) = sync_channel(1);
        let (host, port) = (self.host.clone(), self.port);
        std::thread::spawn(move || {
            answer.send((host.as_str(), port).to_socket_addrs().map(Iterator::collect::<Vec<_>>))
        });
        let unknown = |why: &str| CallError::Broken(format!("failed to look up {}: {why}", self.host));
        match answered.recv_timeout(within) {
            Ok(Ok(addresses)) if addresses.is_empty() => Err(unknown("it has no address")),
            Ok(Ok(addresses)) => Ok(addresses),
            Ok(Err(error)) => Err(unknown(&error.to_string())),
            Err(_) => Err(unknown("timeout")),
        }
    }
}

/// Connects to the address that is the first to take the connection. They are tried in their order, each a little
/// later than the one before: a host may have some at which nobody listens, such as `::1`, and some that do not answer,
/// which would take all the time. If none takes it, the error is that of the last one to fail.
fn connect_first<C: Send + 'static>(
    addresses: &[SocketAddr],
    connect: impl Fn(SocketAddr) -> Result<C, CallError> + Send + Sync + 'static,
) -> Result<C, CallError> {
    let connect = Arc::new(connect);
    let (outcome, outcomes) = channel();
    let mut failure = CallError::Broken("there is no address to connect to".to_owned());
    for address in addresses.iter().copied() {
        let (connect, outcome) = (Arc::clone(&connect), outcome.clone());
        // Nobody asks for the outcome once another one has connected.
        std::thread::spawn(move || outcome.send(connect(address)));
        match outcomes.recv_timeout(HEAD_START) {
            Ok(Ok(connected)) => return Ok(connected),
            Ok(Err(error)) => failure = error,
            // It is still under way.
            Err(_) => {}
        }
    }
    // With this sender gone, outcomes end with the last attempt.
    drop(outcome);
    for outcome in outcomes {
        match outcome {
            Ok(connected) => return Ok(connected),
            Err(error) => failure = error,
        }
    }
    Err(failure)
}

fn encryption(wanted: &Tls, host: &str) -> Result<Encryption, String> {
    let trust = match &wanted.authorities {
        _ if wanted.insecure => Trust::Anyone,
        Some(file) => Trust::File(file),
        None => Trust::System,
    };
    let text = |file| read(file).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    let identity = match (&wanted.certificate, &wanted.key) {
        (Some(certificate), Some(key)) => Some((text(certificate)?, text(key)?)),
        _ => None,
    };
    let identity = identity.as_ref().map(|(certificate, key)| (certificate.as_str(), key.as_str()));
    let name = ServerName::try_from(host.to_owned())
        .map_err(|_| format!("expected a host name or address to check the certificate against, found `{host}`"))?;
    Ok((Arc::new(client(trust, identity, &[b"h2"], ALL_VERSIONS)?), name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn an_address_at_which_nobody_listens_is_no_reason_to_give_up() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let open = listener.local_addr().expect("bound");
        // Nothing listens at port 0.
        let closed = SocketAddr::from(([127, 0, 0, 1], 0));
        let broken = |error: std::io::Error| CallError::Broken(error.to_string());
        let connect = move |address: SocketAddr| TcpStream::connect(address).map_err(broken);
        let stream = connect_first(&[closed, open, closed], connect).expect("the second address is open");
        assert_eq!(stream.peer_addr().expect("connected"), open);
        assert!(connect_first(&[closed], connect).is_err());
    }

    #[test]
    fn an_address_that_does_not_answer_leaves_time_for_the_others() {
        let [silent, open] = [1, 2].map(|port| SocketAddr::from(([127, 0, 0, 1], port)));
        let connect = move |address: SocketAddr| {
            if address == silent {
                std::thread::sleep(Duration::from_secs(60));
            }
            Ok(address)
        };
        let began = Instant::now();
        for addresses in [[silent, open], [open, silent]] {
            assert_eq!(connect_first(&addresses, connect).ok(), Some(open));
        }
        assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
    }
}
