//! The origins of URLs: scheme, host and port, with the address and the encryption for connections to them.

use super::connection::ConnectionId;
use super::exchange::Fault;
use super::tls::Configuration;
use plimsoll_engine::tls::Encryption;
use plimsoll_k6::operations::HttpFaultKind;
use plimsoll_model::record::ErrorKind;
use plimsoll_web::Url;
use rustls::pki_types::ServerName;
use std::collections::HashMap;
use std::net::SocketAddr;

/// An origin, as its number on this thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OriginId(u32);

/// The origins that users of this thread have used.
#[derive(Default)]
pub(super) struct Origins {
    origins: Vec<Origin>,
    numbers: HashMap<(bool, String, u16), OriginId>,
    /// The origin of the last request, which is most often that of the next one too.
    last: Option<OriginId>,
}

/// Scheme, host and port.
pub(super) struct Origin {
    pub(super) is_secure: bool,
    pub(super) host: String,
    pub(super) port: u16,
    /// Its address, once that is resolved and allowed.
    pub(super) address: Option<SocketAddr>,
    /// Connections that wait for the address.
    pub(super) waiting: Vec<ConnectionId>,
}

impl Origin {
    fn is_of(&self, url: &Url) -> bool {
        (self.is_secure, self.host.as_str(), self.port) == (url.scheme().is_secure(), url.host(), url.port())
    }

    /// The encryption of connections to it, if any.
    pub(super) fn encryption(&self, configuration: &Configuration) -> Result<Option<Encryption>, Fault> {
        if !self.is_secure {
            return Ok(None);
        }
        let fault = |detail: String| Fault::new(ErrorKind::Tls, HttpFaultKind::Tls, detail);
        let configuration = configuration.clone().map_err(fault)?;
        let name = ServerName::try_from(self.host.trim_matches(['[', ']']).to_owned())
            .map_err(|_| fault(format!("`{}` cannot stand in a certificate", self.host)))?;
        Ok(Some((configuration, name)))
    }
}

impl Origins {
    /// The origin of a URL.
    pub(super) fn of(&mut self, url: &Url) -> OriginId {
        if let Some(last) = self.last.filter(|last| self.get(*last).is_of(url)) {
            return last;
        }
        let key = (url.scheme().is_secure(), url.host().to_owned(), url.port());
        let id = match self.numbers.get(&key) {
            Some(id) => *id,
            None => self.add(key),
        };
        self.last = Some(id);
        id
    }

    fn add(&mut self, key: (bool, String, u16)) -> OriginId {
        let id = OriginId(self.origins.len() as u32);
        let (is_secure, host, port) = key.clone();
        self.origins.push(Origin { is_secure, host, port, address: None, waiting: Vec::new() });
        self.numbers.insert(key, id);
        id
    }

    pub(super) fn get(&self, OriginId(id): OriginId) -> &Origin {
        &self.origins[id as usize]
    }

    pub(super) fn get_mut(&mut self, OriginId(id): OriginId) -> &mut Origin {
        &mut self.origins[id as usize]
    }

    /// The origins of a host.
    pub(super) fn of_host(&self, host: &str) -> Vec<OriginId> {
        let ids = (0..self.origins.len() as u32).map(OriginId);
        ids.filter(|id| self.get(*id).host == host).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_of_one_server_have_one_origin() {
        let mut origins = Origins::default();
        let mut of = |text: &str| origins.of(&Url::parse(text).expect("a URL"));
        let first = of("http://localhost/a");
        assert_eq!(first, of("http://LOCALHOST:80/b?c"));
        assert_eq!(first, of("ws://localhost/"));
        for other in ["https://localhost/", "http://localhost:8080/", "http://127.0.0.1/"] {
            assert_ne!(first, of(other), "{other}");
        }
        assert_eq!(first, of("http://localhost/"));
        assert_eq!(origins.of_host("localhost").len(), 3);
    }
}
