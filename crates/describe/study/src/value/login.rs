//! How systems log in to a database: what `{NAME.url}` and its parts stand for.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use plimsoll_model::database::Engine;
use plimsoll_model::factor::Level;
use plimsoll_model::storage::Secret;
use std::collections::BTreeMap;

/// What a system needs to log in to a database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Login {
    /// The kind of server, which determines the scheme of its URL.
    pub(crate) engine: Engine,
    /// Host name or address.
    pub(crate) host: String,
    /// Port.
    pub(crate) port: u16,
    /// The database in it.
    pub(crate) database: String,
    /// The user.
    pub(crate) user: String,
    /// The user's password, if there is one.
    pub(crate) password: Option<Secret>,
}

/// Where no database is known.
pub(crate) static NO_LOGINS: BTreeMap<String, Login> = BTreeMap::new();

/// The parts of a login: `{NAME.url}`, …
pub(crate) const LOGIN: [&str; 7] = ["url", "host", "port", "address", "name", "user", "password"];

/// The parts that hold a password.
pub(crate) const SECRET_OF_LOGIN: [&str; 2] = ["url", "password"];

impl Login {
    /// The value of a part; none for any other name.
    pub(crate) fn part(&self, part: &str) -> Option<Level> {
        let password = || self.password.as_ref().map(|password| password.0.clone()).unwrap_or_default();
        Some(Level::Text(match part {
            "url" => self.url(),
            "host" => self.host.clone(),
            "port" => return Some(Level::Integer(self.port.into())),
            "address" => self.address(),
            "name" => self.database.clone(),
            "user" => self.user.clone(),
            "password" => password(),
            _ => return None,
        }))
    }

    /// `postgresql://USER:PASSWORD@HOST:PORT/DATABASE`. Clients of MariaDB take `mysql://` as well.
    pub(crate) fn url(&self) -> String {
        let scheme = match self.engine {
            Engine::Postgresql => "postgresql",
            Engine::Mariadb | Engine::Mysql => "mysql",
        };
        let password = self.password.as_ref().map(|password| format!(":{}", encoded(&password.0))).unwrap_or_default();
        let (user, database) = (encoded(&self.user), encoded(&self.database));
        format!("{scheme}://{user}{password}@{}/{database}", self.address())
    }

    fn address(&self) -> String {
        let Login { host, port, .. } = self;
        if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
    }
}

/// The text as a part of a URL: all but letters, digits and `-_.~` are encoded.
fn encoded(text: &str) -> String {
    const KEPT: AsciiSet = NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');
    utf8_percent_encode(text, &KEPT).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_has_its_value() {
        let login = Login {
            engine: Engine::Mariadb,
            host: "::1".to_owned(),
            port: 3306,
            database: "shop".to_owned(),
            user: "an n".to_owned(),
            password: Some(Secret("p@ss/1".to_owned())),
        };
        let text = |part: &str| login.part(part).map(|value| value.to_string());
        let parts = LOGIN.map(|part| text(part).unwrap());
        let url = "mysql://an%20n:p%40ss%2F1@[::1]:3306/shop";
        assert_eq!(parts, [url, "::1", "3306", "[::1]:3306", "shop", "an n", "p@ss/1"]);
        assert_eq!(text("access_key"), None);
        let open = Login { engine: Engine::Postgresql, host: "127.0.0.1".to_owned(), password: None, ..login };
        let text = |part: &str| open.part(part).unwrap().to_string();
        assert_eq!((text("url").as_str(), text("password").as_str()), ("postgresql://an%20n@127.0.0.1:3306/shop", ""));
    }
}
