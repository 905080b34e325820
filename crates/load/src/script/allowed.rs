//! To which hosts a script may send: its own machine, and those that a person has listed.

use std::net::IpAddr;

/// Hosts that a script may send to, besides this machine's loopback.
#[derive(Clone, Debug)]
pub struct Allowed {
    hosts: Vec<String>,
    remedy: &'static str,
}

impl Allowed {
    /// The loopback, and these hosts: names or addresses. `remedy` says how a person adds one, as a fragment: "name it
    /// with `--allow`".
    #[must_use]
    pub fn loopback_and(hosts: &[String], remedy: &'static str) -> Allowed {
        Allowed { hosts: hosts.to_vec(), remedy }
    }

    /// Whether `host`, which has this address, may be sent to.
    pub(super) fn check(&self, host: &str, address: IpAddr) -> Result<(), String> {
        let plain = host.trim_matches(['[', ']']);
        if address.to_canonical().is_loopback() || self.lists(plain) || self.lists(&address.to_string()) {
            return Ok(());
        }
        Err(format!(
            "the host `{plain}` is not this machine's loopback, and a script sends elsewhere only where that is allowed: \
             {}, if it is yours to load",
            self.remedy
        ))
    }

    fn lists(&self, name: &str) -> bool {
        self.hosts.iter().any(|host| host.eq_ignore_ascii_case(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_loopback_and_what_is_listed_may_be_sent_to() {
        let allowed = Allowed::loopback_and(&["Example.org".to_owned(), "192.0.2.7".to_owned()], "name it");
        let address = |text: &str| text.parse::<IpAddr>().expect("an address");
        for (host, at) in [
            ("localhost", "127.0.0.1"),
            ("[::1]", "::1"),
            ("mapped", "::ffff:127.0.0.1"),
            ("example.org", "192.0.2.1"),
            ("other.example", "192.0.2.7"),
        ] {
            assert_eq!(allowed.check(host, address(at)), Ok(()), "{host}");
        }
        for (host, at) in [("localhost", "192.0.2.1"), ("sub.example.org", "192.0.2.1"), ("10.0.0.1", "10.0.0.1")] {
            let refused = allowed.check(host, address(at)).expect_err(host);
            assert!(refused.contains(host) && refused.contains("name it"), "{refused}");
        }
    }
}
