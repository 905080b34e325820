//! The option `hosts`: addresses that override the resolution of names.

use std::net::{IpAddr, SocketAddr};

/// Addresses of hosts, by name or by name and port.
#[derive(Debug, Default)]
pub(super) struct Hosts(Vec<(String, IpAddr, Option<u16>)>);

impl Hosts {
    /// Reads the option: `("example.org", "127.0.0.1")`, `("*.example.org:443", "127.0.0.1:8443")`.
    ///
    /// # Errors
    /// An entry is not an address.
    pub(super) fn read(option: &[(String, String)]) -> Result<Hosts, String> {
        let read = |(name, address): &(String, String)| {
            let with_port = address.parse::<SocketAddr>().map(|address| (address.ip(), Some(address.port())));
            let (ip, port) = with_port.or_else(|_| address.parse().map(|ip| (ip, None))).map_err(|_| {
                format!("option `hosts.{name}`: expected an address such as `127.0.0.1` or `127.0.0.1:80`, found `{address}`")
            })?;
            Ok((name.to_ascii_lowercase(), ip, port))
        };
        option.iter().map(read).collect::<Result<_, _>>().map(Hosts)
    }

    /// The address of a host, if the option has one. A literal name takes precedence over a pattern, and one with a port over one
    /// without.
    pub(super) fn get(&self, host: &str, port: u16) -> Option<SocketAddr> {
        let named = format!("{host}:{port}");
        let exact = |wanted: &str| self.0.iter().find(|(name, ..)| name == wanted);
        let matching = |wanted: &str| {
            self.0.iter().find(|(name, ..)| name.strip_prefix('*').is_some_and(|tail| wanted.ends_with(tail)))
        };
        let found = exact(&named).or_else(|| exact(host)).or_else(|| matching(&named)).or_else(|| matching(host));
        let (_, ip, other) = found?;
        Some(SocketAddr::new(*ip, other.unwrap_or(port)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(option: &[(&str, &str)]) -> Result<Hosts, String> {
        let owned: Vec<_> = option.iter().map(|(name, to)| ((*name).to_owned(), (*to).to_owned())).collect();
        Hosts::read(&owned)
    }

    #[test]
    fn names_stand_for_addresses() {
        let hosts = hosts(&[
            ("*.example.org", "127.0.0.3"),
            ("a.example.org", "127.0.0.1"),
            ("b.example.org:443", "127.0.0.2:8443"),
            ("c.example.org", "127.0.0.4"),
            ("c.example.org:443", "127.0.0.5"),
            ("six", "[::1]:81"),
        ])
        .expect("addresses");
        let found = |host, port| hosts.get(host, port).map(|address| address.to_string());
        assert_eq!(found("a.example.org", 80).as_deref(), Some("127.0.0.1:80"));
        assert_eq!(found("b.example.org", 443).as_deref(), Some("127.0.0.2:8443"));
        assert_eq!(found("b.example.org", 80).as_deref(), Some("127.0.0.3:80"));
        let of_c = [80, 443].map(|port| found("c.example.org", port));
        assert_eq!(of_c.map(Option::unwrap_or_default), ["127.0.0.4:80", "127.0.0.5:443"]);
        assert_eq!(found("six", 80).as_deref(), Some("[::1]:81"));
        assert_eq!((found("example.org", 80), found("other", 80)), (None, None));
    }

    #[test]
    fn what_is_no_address_is_named() {
        let fault = hosts(&[("a", "b")]).expect_err("it is none");
        assert!(fault.contains("hosts.a") && fault.contains("found `b`"), "{fault}");
    }
}
