//! The connection to NATS, which carries all messages.

use async_nats::jetstream::object_store::{Config, ObjectStore};
use async_nats::jetstream::stream::StorageType;
use async_nats::{Client, ConnectOptions, ServerAddr};
use percent_encoding::percent_decode_str;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, ToSocketAddrs, UdpSocket};
use std::path::PathBuf;
use std::time::Duration;

/// A broker that no longer answers is noticed after twice this time.
const PING_EVERY: Duration = Duration::from_secs(1);

/// The pause before another attempt to reach a broker that is gone.
const RETRY_AFTER: Duration = Duration::from_millis(200);

/// The longest that an attempt to connect may take.
const CONNECT_WITHIN: Duration = Duration::from_secs(5);

/// The addresses of the broker, and the login there.
#[derive(Clone, Debug, Default)]
pub struct Broker {
    /// Addresses of its servers, such as `nats://10.0.0.5:4222`, with commas between them; `tls://` asks for TLS, and
    /// `user:password@` or `token@` before the host logs in.
    pub url: String,
    /// A file with credentials: a JWT and its key, as `nsc` writes it.
    pub credentials: Option<PathBuf>,
    /// A PEM file with the authorities to trust; the system's without it.
    pub ca: Option<PathBuf>,
    /// PEM files with a certificate of our own and its key.
    pub certificate: Option<(PathBuf, PathBuf)>,
}

/// The broker cannot be reached, or will not have us.
#[derive(Debug, thiserror::Error)]
#[error("failed to connect to NATS at {url}: {why}")]
pub struct BrokerError {
    /// The address, without user and password.
    pub url: String,
    /// The reason in words.
    pub why: String,
}

impl Broker {
    /// Connects; `name` is what the broker shows of the connection.
    pub(crate) async fn connect(&self, name: &str) -> Result<Client, BrokerError> {
        let failed = |why: String| BrokerError { url: self.shown(), why };
        let mut options = ConnectOptions::new()
            .name(name)
            .ping_interval(PING_EVERY)
            .connection_timeout(CONNECT_WITHIN)
            .reconnect_delay_callback(|_| RETRY_AFTER);
        if let Some(file) = &self.credentials {
            let read = options.credentials_file(file).await;
            options = read.map_err(|error| failed(format!("credentials in {}: {error}", file.display())))?;
        }
        if let Some(file) = &self.ca {
            options = options.add_root_certificates(file.clone());
        }
        if let Some((certificate, key)) = &self.certificate {
            options = options.add_client_certificate(certificate.clone(), key.clone());
        }
        let servers: Result<Vec<ServerAddr>, _> = self.url.split(',').map(|url| url.trim().parse()).collect();
        let servers =
            servers.map_err(|error| failed(format!("expected addresses such as nats://host:4222: {error}")))?;
        // The client looks at the login of an address only where it is told.
        let decoded = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
        match servers.iter().find_map(|server| Some((decoded(server.username()?), server.password().map(decoded)))) {
            Some((user, Some(password))) => options = options.user_and_password(user, password),
            Some((token, None)) => options = options.token(token),
            None => {}
        }
        options.connect(servers).await.map_err(|error| failed(error.to_string()))
    }

    /// The address of this host from which the broker is reached.
    pub(crate) fn own_address(&self) -> io::Result<IpAddr> {
        let first = self.url.split(',').next().unwrap_or_default().trim();
        let broker: ServerAddr = first.parse()?;
        let found = (broker.host(), broker.port()).to_socket_addrs()?.next();
        let found = found.ok_or_else(|| io::Error::other(format!("`{}` has no address", broker.host())))?;
        let unspecified: IpAddr =
            if found.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
        // Nothing is sent: the kernel only says which of its addresses it would send from.
        let socket = UdpSocket::bind((unspecified, 0))?;
        socket.connect(found)?;
        Ok(socket.local_addr()?.ip())
    }

    /// The addresses without user and password.
    #[must_use]
    pub fn shown(&self) -> String {
        let without = |url: &str| match url.split_once("://") {
            Some((scheme, rest)) => format!("{scheme}://{}", rest.rsplit_once('@').map_or(rest, |(_, host)| host)),
            None => url.rsplit_once('@').map_or(url, |(_, host)| host).to_owned(),
        };
        self.url.split(',').map(str::trim).map(without).collect::<Vec<_>>().join(",")
    }
}

/// Makes the bucket for the files of a run, in the broker's memory: they are needed as long as the run.
pub(crate) async fn make_bucket(client: &Client, bucket: &str) -> Result<ObjectStore, String> {
    let config = Config { bucket: bucket.to_owned(), storage: StorageType::Memory, ..Config::default() };
    let made = async_nats::jetstream::new(client.clone()).create_object_store(config).await;
    made.map_err(|error| {
        format!(
            "the broker keeps no files for the agents: {error}; they go through JetStream's object store: start \
             `nats-server` with `-js`, and let the account use JetStream"
        )
    })
}

/// Removes it.
pub(crate) async fn remove_bucket(client: &Client, bucket: &str) {
    // A bucket that stays takes memory until the broker restarts, and does no other harm.
    let _ = async_nats::jetstream::new(client.clone()).delete_object_store(bucket).await;
}

/// The bucket that the coordinator has made.
pub(crate) async fn find_bucket(client: &Client, bucket: &str) -> Result<ObjectStore, String> {
    let found = async_nats::jetstream::new(client.clone()).get_object_store(bucket).await;
    found.map_err(|error| format!("the files of the workload cannot be had from the broker: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_not_shown() {
        for (url, shown) in [
            ("nats://10.0.0.5:4222", "nats://10.0.0.5:4222"),
            ("nats://me:p@ss@10.0.0.5:4222, tls://token@b", "nats://10.0.0.5:4222,tls://b"),
            ("me:secret@host", "host"),
        ] {
            assert_eq!(Broker { url: url.to_owned(), ..Broker::default() }.shown(), shown);
        }
    }
}
