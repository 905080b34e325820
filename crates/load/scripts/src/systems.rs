//! Names a script's requests after the systems of a study, because the ports of these differ between trials.

use plimsoll_model::script::Script;
use std::collections::BTreeMap;

/// The systems of a study, and where requests to them go.
#[derive(Clone, Debug, Default)]
pub(super) struct Systems {
    /// Their names by port.
    ports: BTreeMap<u16, String>,
    /// Hosts besides the loopback that the script may reach. Those of systems that run on other hosts are among them.
    allowed: Vec<String>,
}

/// The beginnings of a system's URLs.
const SCHEMES: [&str; 4] = ["http://", "https://", "ws://", "wss://"];

/// The names of this machine in URLs of systems.
const HERE: [&str; 3] = ["127.0.0.1", "localhost", "[::1]"];

impl Systems {
    /// The systems that a script may load.
    pub(super) fn of(script: &Script) -> Systems {
        Systems { ports: script.systems.clone(), allowed: script.allowed.clone() }
    }

    /// The recorded name of a request that a script names `name`: `http://127.0.0.1:31361/cart` becomes `web/cart` if
    /// `web` has that port.
    pub(super) fn named(&self, name: &str) -> String {
        self.of_a_system(name).unwrap_or_else(|| name.to_owned())
    }

    fn of_a_system(&self, name: &str) -> Option<String> {
        let after = SCHEMES.iter().find_map(|scheme| name.strip_prefix(scheme)).unwrap_or(name);
        let end = after.find(['/', '?', '#']).unwrap_or(after.len());
        let (authority, rest) = after.split_at(end);
        let host_and_port = authority.rsplit_once('@').map_or(authority, |(_, address)| address);
        let (host, port) = host_and_port.rsplit_once(':')?;
        let system = self.ports.get(&port.parse().ok()?).filter(|_| self.may_have_systems(host))?;
        Some(format!("{system}{rest}"))
    }

    /// True for this machine, and for hosts that the script may reach.
    fn may_have_systems(&self, host: &str) -> bool {
        // URLs have brackets around addresses of IPv6, and lists of hosts have none.
        let plain = host.trim_matches(['[', ']']);
        HERE.contains(&host) || self.allowed.iter().any(|allowed| allowed.eq_ignore_ascii_case(plain))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_named_by_the_system_that_they_go_to() {
        let allowed = ["10.0.0.7", "fd00::7", "shop.test"].map(str::to_owned).into();
        let systems = Systems { ports: BTreeMap::from([(31361, "web".to_owned())]), allowed };
        for (name, expected) in [
            ("http://127.0.0.1:31361/cart?page=2", "web/cart?page=2"),
            ("http://127.0.0.1:31361", "web"),
            ("https://user:****@localhost:31361/", "web/"),
            ("ws://[::1]:31361/chat", "web/chat"),
            ("127.0.0.1:31361/shop.Cart/Add", "web/shop.Cart/Add"),
            ("http://127.0.0.1:3136/cart", "http://127.0.0.1:3136/cart"),
            ("http://10.0.0.7:31361/cart", "web/cart"),
            ("ws://[fd00::7]:31361/chat", "web/chat"),
            ("http://Shop.test:31361/cart", "web/cart"),
            ("http://10.0.0.8:31361/cart", "http://10.0.0.8:31361/cart"),
            ("http://example.com:31361/cart", "http://example.com:31361/cart"),
            ("http://127.0.0.1/31361", "http://127.0.0.1/31361"),
            ("cart", "cart"),
        ] {
            assert_eq!(systems.named(name), expected);
        }
    }
}
