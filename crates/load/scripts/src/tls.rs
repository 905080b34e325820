//! TLS of scripts. Every connection makes a full handshake, as connections of different clients do.

use super::client_session::{ClientTls, ConnectionRequest};
use plimsoll_engine::tls::{Trust, client};
use plimsoll_k6_run::options::TlsVersions;
use rustls::client::Resumption;
use rustls::version::TLS12;
use rustls::{ALL_VERSIONS, ClientConfig, SupportedProtocolVersion};
use std::sync::Arc;

/// How connections are encrypted, or why they cannot be.
pub(super) type Configuration = Result<Arc<ClientConfig>, String>;

/// The configurations of a run.
pub(super) struct TlsConfigurations {
    insecure: bool,
    versions: Vec<&'static SupportedProtocolVersion>,
    http: Configuration,
    http2: Configuration,
}

impl TlsConfigurations {
    /// Makes the configurations. Call this before the load begins, because reading the system's authorities takes a
    /// while.
    pub(super) fn new(insecure: bool, offered: Option<TlsVersions>) -> TlsConfigurations {
        let is_offered = |version: &&SupportedProtocolVersion| match offered {
            None => true,
            Some(range) if version.version == TLS12.version => range.has_1_2(),
            Some(range) => range.has_1_3(),
        };
        let versions: Vec<_> = ALL_VERSIONS.iter().copied().filter(is_offered).collect();
        let trust = if insecure { Trust::Anyone } else { Trust::System };
        let http = client(trust, None, &[b"http/1.1"], &versions).map(unlinked);
        let http2 = http.clone().map(|config| {
            let mut config = ClientConfig::clone(&config);
            config.alpn_protocols = vec![b"h2".to_vec()];
            Arc::new(config)
        });
        TlsConfigurations { insecure, versions, http, http2 }
    }

    /// The configuration for HTTP requests.
    pub(super) fn http(&self) -> &Configuration {
        &self.http
    }

    /// The configuration of a session's connection.
    pub(super) fn configuration(&self, wants: &ConnectionRequest) -> Configuration {
        match &wants.tls {
            Some(own) => self.own(own, wants.alpn),
            None if wants.alpn.contains(&&b"h2"[..]) => self.http2.clone(),
            None => self.http.clone(),
        }
    }

    fn own(&self, own: &ClientTls, alpn: &[&[u8]]) -> Configuration {
        let trust = match own.authorities.as_slice() {
            _ if self.insecure => Trust::Anyone,
            [] => Trust::System,
            texts => Trust::Texts(texts),
        };
        let identity = own.identity.as_ref().map(|(certificate, key)| (certificate.as_str(), key.as_str()));
        client(trust, identity, alpn, &self.versions).map(unlinked)
    }
}

/// Turns off the resumption of TLS sessions, because users are different clients.
fn unlinked(mut config: ClientConfig) -> Arc<ClientConfig> {
    config.resumption = Resumption::disabled();
    Arc::new(config)
}
