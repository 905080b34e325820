//! The hosts that a script may send to: its own machine, and those that the user of Plimsoll has listed.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

/// Hosts that a script may send to, besides this machine's loopback.
#[derive(Clone, Debug)]
pub struct Allowed {
    hosts: Vec<String>,
    remedy: &'static str,
    checked: Arc<CheckedHosts>,
}

/// The results of all checks, shared by all copies.
#[derive(Debug, Default)]
struct CheckedHosts {
    refused: Mutex<BTreeSet<String>>,
    /// True if any host was allowed.
    any_allowed: AtomicBool,
}

/// Hosts that a script tried to send to without being allowed to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Refused {
    /// Their names, or their addresses.
    pub hosts: Vec<String>,
    /// True if the script tried no host that is allowed.
    pub all: bool,
}

impl Allowed {
    /// Allows the loopback, and these hosts: names or addresses. `remedy` says how to add one, as a fragment: "name it
    /// with `--allow`".
    #[must_use]
    pub fn loopback_and(hosts: &[String], remedy: &'static str) -> Allowed {
        Allowed { hosts: hosts.to_vec(), remedy, checked: Arc::default() }
    }

    /// The hosts that were refused until now.
    #[must_use]
    pub fn refused(&self) -> Refused {
        let hosts: Vec<String> =
            self.checked.refused.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect();
        Refused { all: !hosts.is_empty() && !self.any_allowed(), hosts }
    }

    /// True if the script has tried a host that is allowed.
    pub(super) fn any_allowed(&self) -> bool {
        self.checked.any_allowed.load(Relaxed)
    }

    /// Fails if no address of `host` could be one that the script may send to: then the name must not be looked up
    /// either, since whoever answers would learn of it.
    pub(super) fn check_name(&self, host: &str) -> Result<(), String> {
        let may_match = host.eq_ignore_ascii_case("localhost")
            || self.lists(host)
            || self.hosts.iter().any(|listed| listed.parse::<IpAddr>().is_ok());
        if may_match { Ok(()) } else { Err(self.refuse(host, "no name of this machine's loopback")) }
    }

    /// Fails if the script may not send to `host`, which has this address.
    pub(super) fn check(&self, host: &str, address: IpAddr) -> Result<(), String> {
        let plain = host.trim_matches(['[', ']']);
        if address.to_canonical().is_loopback() || self.lists(plain) || self.lists(&address.to_string()) {
            self.checked.any_allowed.store(true, Relaxed);
            return Ok(());
        }
        Err(self.refuse(plain, "not this machine's loopback"))
    }

    /// The error for a host whose address could not be resolved, because of `why`. If the host is not listed, the error
    /// adds that it would be refused anyway.
    pub(super) fn unknown(&self, host: &str, why: String) -> String {
        if self.lists(host) { why } else { format!("{}; {why}", self.refuse(host, "none that is known here")) }
    }

    fn refuse(&self, host: &str, because: &str) -> String {
        self.checked.refused.lock().unwrap_or_else(PoisonError::into_inner).insert(host.to_owned());
        let remedy = self.remedy;
        format!(
            "the host `{host}` is {because}, and a script sends elsewhere only where that is allowed: {remedy}, if it is \
             yours to load"
        )
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

    #[test]
    fn only_names_that_may_turn_out_to_be_allowed_are_looked_up() {
        let may_look_up = |listed: &[&str], host: &str| {
            let listed: Vec<String> = listed.iter().map(|host| (*host).to_owned()).collect();
            Allowed::loopback_and(&listed, "name it").check_name(host).is_ok()
        };
        assert!(may_look_up(&[], "LOCALHOST") && may_look_up(&["Example.org"], "example.org"));
        assert!(may_look_up(&["192.0.2.7"], "example.org"), "its address may be listed");
        assert!(!may_look_up(&[], "example.org") && !may_look_up(&["example.org"], "www.example.org"));
        let allowed = Allowed::loopback_and(&[], "name it");
        let refused = allowed.check_name("other.example").expect_err("it is not listed");
        assert!(refused.contains("`other.example`") && refused.contains("name it"), "{refused}");
        assert_eq!(allowed.refused(), Refused { hosts: vec!["other.example".to_owned()], all: true });
    }

    #[test]
    fn hosts_that_were_refused_are_known_to_all_who_ask() {
        let allowed = Allowed::loopback_and(&["example.org".to_owned()], "name it");
        assert_eq!(allowed.refused(), Refused::default());
        let told = allowed.clone().unknown("other.example", "no such host".to_owned());
        assert!(told.contains("name it") && told.ends_with("; no such host"), "{told}");
        let refused = |all| Refused { hosts: vec!["other.example".to_owned()], all };
        assert_eq!(allowed.refused(), refused(true));
        assert_eq!(allowed.unknown("example.org", "no such host".to_owned()), "no such host");
        let loopback = "127.0.0.1".parse().expect("an address");
        assert_eq!((allowed.check("localhost", loopback), allowed.refused()), (Ok(()), refused(false)));
    }
}
