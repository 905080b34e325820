//! Names a script's requests after the systems of a study, because the ports of these differ between trials.

use plimsoll_model::script::Script;
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};

/// The systems of a study: their names by address.
#[derive(Clone, Debug, Default)]
pub(super) struct Systems(BTreeMap<SocketAddr, String>);

/// The beginnings of a system's URLs.
const SCHEMES: [&str; 4] = ["http://", "https://", "ws://", "wss://"];

/// The names of this machine in URLs of systems.
const HERE: [&str; 3] = ["127.0.0.1", "localhost", "[::1]"];

impl Systems {
    /// The systems that a script may load.
    pub(super) fn of(script: &Script) -> Systems {
        Systems(script.systems.clone())
    }

    /// The recorded name of a request that a script names `name`: `http://127.0.0.1:31361/cart` becomes `web/cart` if
    /// `web` has that address. `resolve` gives the address of another host, if that is known.
    pub(super) fn named(&self, name: &str, resolve: impl FnMut(&str, u16) -> Option<SocketAddr>) -> String {
        self.of_a_system(name, resolve).unwrap_or_else(|| name.to_owned())
    }

    fn of_a_system(&self, name: &str, mut resolve: impl FnMut(&str, u16) -> Option<SocketAddr>) -> Option<String> {
        let after = SCHEMES.iter().find_map(|scheme| name.strip_prefix(scheme)).unwrap_or(name);
        let end = after.find(['/', '?', '#']).unwrap_or(after.len());
        let (authority, rest) = after.split_at(end);
        let host_and_port = authority.rsplit_once('@').map_or(authority, |(_, address)| address);
        let (host, port) = host_and_port.rsplit_once(':')?;
        let (host, port) = (host.to_ascii_lowercase(), port.parse().ok()?);
        let address = if HERE.contains(&host.as_str()) {
            SocketAddr::from((Ipv4Addr::LOCALHOST, port))
        } else {
            resolve(&host, port)?
        };
        self.0.get(&address).map(|system| format!("{system}{rest}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::IpAddr;

    #[test]
    fn requests_are_named_by_the_system_that_they_go_to() {
        let address = |text: &str| text.parse::<SocketAddr>().expect("an address");
        let systems = [("127.0.0.1:31361", "web"), ("10.0.0.7:31361", "shop"), ("[fd00::7]:31361", "chat")];
        let systems = Systems(BTreeMap::from(systems.map(|(at, name)| (address(at), name.to_owned()))));
        let resolve = |host: &str, port| {
            let ip: Option<IpAddr> = match host {
                "shop.test" => Some([10, 0, 0, 7].into()),
                "example.com" => Some([10, 0, 0, 8].into()),
                other => other.trim_matches(['[', ']']).parse().ok(),
            };
            Some(SocketAddr::new(ip?, port))
        };
        for (name, expected) in [
            ("http://127.0.0.1:31361/cart?page=2", "web/cart?page=2"),
            ("http://127.0.0.1:31361", "web"),
            ("https://user:****@localhost:31361/", "web/"),
            ("ws://[::1]:31361/chat", "web/chat"),
            ("127.0.0.1:31361/shop.Cart/Add", "web/shop.Cart/Add"),
            ("http://127.0.0.1:3136/cart", "http://127.0.0.1:3136/cart"),
            ("http://10.0.0.7:31361/cart", "shop/cart"),
            ("ws://[fd00::7]:31361/chat", "chat/chat"),
            ("http://Shop.test:31361/cart", "shop/cart"),
            ("http://10.0.0.8:31361/cart", "http://10.0.0.8:31361/cart"),
            ("http://example.com:31361/cart", "http://example.com:31361/cart"),
            ("http://unknown.test:31361/cart", "http://unknown.test:31361/cart"),
            ("http://127.0.0.1/31361", "http://127.0.0.1/31361"),
            ("cart", "cart"),
        ] {
            assert_eq!(systems.named(name, resolve), expected);
        }
    }
}
