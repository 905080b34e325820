//! `target` and `tls`: where requests go.

use crate::document::{Fault, Faults, Span, table};
use crate::value::{Literal, Problem, Scalar, Scope, Templated, Text, resolve_optional};
use plimsoll_model::factor::Level;
use plimsoll_model::workload::{Target, Tls};
use serde_json::{Value, json};
use std::net::{IpAddr, Ipv6Addr};

table! {
    /// Encryption with TLS, and how the server is checked.
    struct TlsTable {
        /// PEM file with the authorities to trust. Default: the system's.
        ca: Option<Templated<Text>>,
        /// The name that the certificate must carry. Default: the target's host.
        server_name: Option<Templated<Text>>,
        /// Accept any certificate. Default: false.
        insecure: Option<Literal<bool>>,
    }
}

impl TlsTable {
    pub(crate) fn resolve(&self, scope: &Scope<'_>, faults: &mut Faults) -> Option<Tls> {
        let ca = resolve_optional(self.ca.as_ref(), |ca| ca.resolve(scope, faults));
        let server_name = resolve_optional(self.server_name.as_ref(), |name| name.resolve(scope, faults));
        Some(Tls {
            ca: ca?.map(|ca| scope.dir.join(ca.0)),
            server_name: server_name?.map(|name| name.0),
            insecure: self.insecure.as_ref().is_some_and(|insecure| insecure.value),
        })
    }
}

/// Where requests go, as a study writes it: `HOST:PORT`, `http://HOST[:PORT]`, `https://HOST[:PORT]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    pub(crate) host: String,
    pub(crate) port: u16,
    /// What the scheme says about encryption; `None` without a scheme.
    pub(crate) encrypted: Option<bool>,
}

impl Address {
    /// The target, encrypted where its scheme or `tls` say so. The address stands at `span`, in the
    /// table of the name `table`.
    pub(crate) fn target(self, tls: Option<Tls>, span: &Span, table: &str, faults: &mut Faults) -> Option<Target> {
        let Address { host, port, encrypted } = self;
        if encrypted == Some(false) && tls.is_some() {
            let fault = Fault::error(span, format!("`{table}.tls` is given, but the target is `http://`"));
            faults.add(fault.help("write `https://`, or leave `tls` out"));
            return None;
        }
        let default = || Tls { ca: None, server_name: None, insecure: false };
        Some(Target { host, port, tls: tls.or_else(|| (encrypted == Some(true)).then(default)) })
    }
}

impl Scalar for Address {
    const EXPECTED: &'static str = "HOST:PORT, or http:// or https:// with a host";

    fn from_level(level: &Level) -> Result<Self, Problem> {
        let Level::Text(text) = level else { return Err(Problem::wrong::<Self>(level)) };
        let (encrypted, rest) = match text.split_once("://") {
            Some(("http", rest)) => (Some(false), rest),
            Some(("https", rest)) => (Some(true), rest),
            Some(_) => return Err(Problem::wrong::<Self>(level)),
            None => (None, text.as_str()),
        };
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        if rest.contains('/') {
            let problem = Problem::new(format!("must be a host without a path, not \"{text}\""));
            return Err(problem.help("write the path in the steps, as in `{ get = \"/path\" }`"));
        }
        let default_port = encrypted.map(|encrypted| if encrypted { 443 } else { 80 });
        let (host, port) = host_and_port(rest, default_port).ok_or_else(|| Problem::wrong::<Self>(level))?;
        Ok(Address { host, port, encrypted })
    }

    fn schema() -> Value {
        json!({ "type": "string" })
    }
}

/// Whether `host` is this machine by its very name: `localhost` or a loopback address.
pub(crate) fn is_loopback(host: &str) -> bool {
    host.eq_ignore_ascii_case("localhost") || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// True if an address or a URL names this port: `127.0.0.1:8080`, `http://127.0.0.1:8080/health`.
pub(crate) fn names_port(address: &str, port: u16) -> bool {
    let after = address.split(&format!(":{port}")).nth(1);
    after.is_some_and(|rest| !rest.starts_with(|next: char| next.is_ascii_digit()))
}

pub(crate) fn is_host_and_port(text: &str) -> bool {
    host_and_port(text, None).is_some()
}

/// Splits `host:port`, `[::1]:port`, or a host alone where there is a default port.
pub(crate) fn host_and_port(text: &str, default_port: Option<u16>) -> Option<(String, u16)> {
    if let Some(rest) = text.strip_prefix('[') {
        let (host, after) = rest.split_once(']')?;
        host.parse::<Ipv6Addr>().ok()?;
        return Some((host.to_owned(), port(after.strip_prefix(':'), default_port, after)?));
    }
    let (host, port_text) = match text.rsplit_once(':') {
        Some((host, port)) => (host, Some(port)),
        None => (text, None),
    };
    is_host(host).then_some(())?;
    Some((host.to_owned(), port(port_text, default_port, "")?))
}

/// The port of `text`; without one the default, if nothing else follows the host.
fn port(text: Option<&str>, default: Option<u16>, rest: &str) -> Option<u16> {
    match text {
        Some(text) => text.parse().ok().filter(|port| *port > 0),
        None => default.filter(|_| rest.is_empty()),
    }
}

fn is_host(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(text: &str) -> Option<(String, u16, Option<bool>)> {
        let address = Address::from_level(&Level::Text(text.to_owned())).ok()?;
        Some((address.host, address.port, address.encrypted))
    }

    #[test]
    fn targets_are_addresses_or_urls_without_a_path() {
        let is = |host: &str, port, encrypted| Some((host.to_owned(), port, encrypted));
        assert_eq!(read("127.0.0.1:8080"), is("127.0.0.1", 8080, None));
        assert_eq!(read("http://example.org"), is("example.org", 80, Some(false)));
        assert_eq!(read("https://example.org/"), is("example.org", 443, Some(true)));
        assert_eq!(read("https://[::1]:8443"), is("::1", 8443, Some(true)));
        assert_eq!(read("[::1]:1"), is("::1", 1, None));
        for wrong in ["", "host", "host:0", "host:70000", ":80", "ftp://a", "http://a/b", "a b:1", "::1:80", "[::1]x"] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn this_machine_is_known_by_name() {
        for (host, own) in
            [("localhost", true), ("127.3.2.1", true), ("::1", true), ("10.0.0.1", false), ("a.b", false)]
        {
            assert_eq!(is_loopback(host), own, "{host}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "(http://)?[\\[\\]:/a0.é]{0,10}") {
            let _ = read(&text);
        }
    }
}
