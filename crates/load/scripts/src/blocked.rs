//! The options `blockHostnames` and `blacklistIPs`: where a script itself will not send to.

use super::exchange::Fault;
use ipnet::IpNet;
use plimsoll_k6::operations::HttpFaultKind;
use plimsoll_model::record::ErrorKind;
use std::net::IpAddr;

/// Hosts and addresses to which no connection is made.
#[derive(Debug, Default)]
pub(super) struct Blocked {
    /// In small letters: `example.org`, or `*.example.org` for all names that end in `.example.org`.
    hosts: Vec<String>,
    ranges: Vec<IpNet>,
}

impl Blocked {
    /// Reads the two options: patterns of hosts such as `*.example.org`, and ranges such as `10.0.0.0/8`.
    ///
    /// # Errors
    /// An entry is no pattern, or no range of addresses.
    pub(super) fn read(hosts: &[String], ranges: &[String]) -> Result<Blocked, String> {
        let host = |pattern: &String| match pattern.rfind('*') {
            None | Some(0) if !pattern.is_empty() => Ok(pattern.to_ascii_lowercase()),
            _ => Err(format!(
                "option `blockHostnames`: expected a host such as `example.org`, maybe with `*` at its beginning, found \
                 `{pattern}`"
            )),
        };
        let range = |text: &String| {
            text.parse().map_err(|_| {
                format!("option `blacklistIPs`: expected a range of addresses such as `10.0.0.0/8`, found `{text}`")
            })
        };
        Ok(Blocked {
            hosts: hosts.iter().map(host).collect::<Result<_, _>>()?,
            ranges: ranges.iter().map(range).collect::<Result<_, _>>()?,
        })
    }

    /// Fails if the option blocks this name. An address is no name.
    pub(super) fn check_host(&self, host: &str) -> Result<(), Fault> {
        if self.hosts.is_empty() || host.trim_matches(['[', ']']).parse::<IpAddr>().is_ok() {
            return Ok(());
        }
        let name = host.to_ascii_lowercase();
        let matches = |pattern: &&String| match pattern.strip_prefix('*') {
            Some(end) => name.ends_with(end),
            None => name == **pattern,
        };
        match self.hosts.iter().find(matches) {
            Some(pattern) => {
                let detail = format!("the host `{host}` is blocked by `{pattern}` of the option `blockHostnames`");
                Err(Fault::new(ErrorKind::Connect, HttpFaultKind::HostNotAllowed, detail))
            }
            None => Ok(()),
        }
    }

    /// Fails if the option blocks this address.
    pub(super) fn check_address(&self, address: IpAddr) -> Result<(), Fault> {
        match self.ranges.iter().find(|range| range.contains(&address.to_canonical())) {
            Some(range) => {
                let detail = format!("the address {address} is blocked by `{range}` of the option `blacklistIPs`");
                Err(Fault::new(ErrorKind::Connect, HttpFaultKind::AddressNotAllowed, detail))
            }
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocked(hosts: &[&str], ranges: &[&str]) -> Result<Blocked, String> {
        let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        Blocked::read(&owned(hosts), &owned(ranges))
    }

    #[test]
    fn hosts_and_addresses_are_blocked() {
        let blocked = blocked(&["Example.org", "*.test"], &["10.0.0.0/8", "::1/128"]).expect("patterns and ranges");
        for (host, is_blocked) in [
            ("example.ORG", true),
            ("www.example.org", false),
            ("a.b.test", true),
            ("test", false),
            ("10.0.0.1", false),
        ] {
            assert_eq!(blocked.check_host(host).is_err(), is_blocked, "{host}");
        }
        for (address, is_blocked) in
            [("10.1.2.3", true), ("::ffff:10.1.2.3", true), ("11.0.0.1", false), ("::1", true), ("::2", false)]
        {
            let address = address.parse().expect("an address");
            assert_eq!(blocked.check_address(address).is_err(), is_blocked, "{address}");
        }
        let everything = Blocked::read(&["*".to_owned()], &[]).expect("a pattern");
        assert!(everything.check_host("localhost").is_err() && everything.check_host("127.0.0.1").is_ok());
    }

    #[test]
    fn what_is_no_pattern_or_range_is_named() {
        for (hosts, ranges, expected) in [
            (&["a.*.org"][..], &[][..], "found `a.*.org`"),
            (&[""], &[], "found ``"),
            (&[], &["10.0.0.1"], "found `10.0.0.1`"),
            (&[], &["10.0.0.0/33"], "found `10.0.0.0/33`"),
        ] {
            let fault = blocked(hosts, ranges).expect_err(expected);
            assert!(fault.contains(expected), "{fault}");
        }
    }
}
