//! `url` and `password_env` of a database that runs already.

use crate::table::target::host_and_port;
use crate::value::{Problem, Scalar};
use plimsoll_model::database::{Address, Endpoint, Engine};
use plimsoll_model::factor::Level;
use serde_json::{Value, json};

/// The name of a variable of the environment.
#[derive(Clone, Debug)]
pub(crate) struct Variable(pub(crate) String);

impl Scalar for Variable {
    const EXPECTED: &'static str = "the name of a variable of the environment";

    fn from_level(level: &Level) -> Result<Self, Problem> {
        let name = level.to_string();
        let starts = name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
        let plain = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        if starts && plain { Ok(Variable(name)) } else { Err(Problem::wrong::<Self>(level)) }
    }

    fn schema() -> Value {
        json!({ "type": "string", "pattern": "^[A-Za-z_][A-Za-z0-9_]*$" })
    }
}

/// Where a server is that runs already, and who connects.
#[derive(Clone, Debug)]
pub(crate) struct Url(pub(crate) Endpoint);

impl Scalar for Url {
    const EXPECTED: &'static str =
        "postgresql://, mariadb:// or mysql:// with USER@HOST:PORT/DATABASE, or with USER@/DATABASE?socket=/PATH";

    fn from_level(level: &Level) -> Result<Self, Problem> {
        let text = level.to_string();
        if has_password(&text) {
            let help = "put it into a variable of the environment, and name that: `password_env = \"NAME\"`";
            return Err(Problem::new("must not hold a password").help(help));
        }
        if let Some(option) = tls_option(&text) {
            let help = "leave it out; where the server wants TLS, connect by its UNIX socket: `?socket=/PATH`";
            let message = format!("must not ask for `{option}`: databases are spoken to without TLS");
            return Err(Problem::new(message).help(help));
        }
        endpoint(&text).map(Url).ok_or_else(|| Problem::wrong::<Self>(level))
    }

    fn schema() -> Value {
        json!({ "type": "string", "pattern": "^(postgres(ql)?|mysql|mariadb)://" })
    }
}

fn has_password(url: &str) -> bool {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let user = rest.rsplit_once('@').map(|(user, _)| user);
    user.is_some_and(|user| user.contains(':')) || rest.contains("password=")
}

/// What asks for encryption, however a client spells it.
fn tls_option(url: &str) -> Option<&str> {
    let (_, options) = url.split_once('?')?;
    let mut names = options.split('&').map(|option| option.split('=').next().unwrap_or(option));
    names.find(|name| ["ssl", "tls"].iter().any(|sign| name.to_ascii_lowercase().starts_with(sign)))
}

fn endpoint(text: &str) -> Option<Endpoint> {
    let (scheme, rest) = text.split_once("://")?;
    let (engine, port) = match scheme {
        "postgresql" | "postgres" => (Engine::Postgresql, 5432),
        "mariadb" => (Engine::Mariadb, 3306),
        "mysql" => (Engine::Mysql, 3306),
        _ => return None,
    };
    let (rest, socket) = match rest.split_once("?socket=") {
        Some((rest, socket)) => (rest, Some(socket)),
        None => (rest, None),
    };
    let (user, rest) = rest.split_once('@')?;
    let (place, database) = rest.split_once('/')?;
    let plain = |text: &str| !text.is_empty() && !text.contains(|c: char| " /?#@:%&".contains(c) || c.is_control());
    let address = match socket {
        Some(path) => (place.is_empty() && path.starts_with('/')).then(|| Address::Unix(path.into()))?,
        None => host_and_port(place, Some(port)).map(|(host, port)| Address::Tcp { host, port })?,
    };
    (plain(user) && plain(database)).then(|| Endpoint {
        engine,
        address,
        user: user.to_owned(),
        password: None,
        database: database.to_owned(),
    })
}
