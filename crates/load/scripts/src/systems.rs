//! Names a script's requests after the systems of a study, because the ports of these differ between trials.

use std::collections::BTreeMap;

/// The ports of systems on this machine, with their names.
#[derive(Clone, Debug, Default)]
pub(super) struct Systems(pub(super) BTreeMap<u16, String>);

/// The beginnings of a system's URLs.
const SCHEMES: [&str; 4] = ["http://", "https://", "ws://", "wss://"];

/// The names of this machine in URLs of systems.
const HERE: [&str; 3] = ["127.0.0.1", "localhost", "[::1]"];

impl Systems {
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
        let system = self.0.get(&port.parse().ok()?).filter(|_| HERE.contains(&host))?;
        Some(format!("{system}{rest}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_named_by_the_system_that_they_go_to() {
        let systems = Systems(BTreeMap::from([(31361, "web".to_owned())]));
        for (name, expected) in [
            ("http://127.0.0.1:31361/cart?page=2", "web/cart?page=2"),
            ("http://127.0.0.1:31361", "web"),
            ("https://user:****@localhost:31361/", "web/"),
            ("ws://[::1]:31361/chat", "web/chat"),
            ("127.0.0.1:31361/shop.Cart/Add", "web/shop.Cart/Add"),
            ("http://127.0.0.1:3136/cart", "http://127.0.0.1:3136/cart"),
            ("http://example.com:31361/cart", "http://example.com:31361/cart"),
            ("http://127.0.0.1/31361", "http://127.0.0.1/31361"),
            ("cart", "cart"),
        ] {
            assert_eq!(systems.named(name), expected);
        }
    }
}
