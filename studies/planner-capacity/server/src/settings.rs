//! The settings of the service, from the environment, and the errors that end it.

use std::env::VarError;
use tokio_postgres::Config;

const MAX_CONNECTIONS: usize = 10;

/// Why the command ends without having done what it was asked for.
#[derive(Debug)]
pub(crate) enum Failure {
    /// An argument or a variable is missing or wrong.
    Setting(String),
    /// Something else, with settings that may be right.
    Run(String),
}

impl Failure {
    /// The status that the command ends with.
    pub(crate) fn status(&self) -> u8 {
        match self {
            Failure::Setting(_) => 2,
            Failure::Run(_) => 1,
        }
    }

    /// The reason, in a line.
    pub(crate) fn reason(&self) -> &str {
        match self {
            Failure::Setting(reason) | Failure::Run(reason) => reason,
        }
    }
}

/// The database, from `DATABASE_URL`.
///
/// # Errors
/// When the variable is missing or wrong.
pub(crate) fn database() -> Result<Config, Failure> {
    const EXPECTED: &str = "expected postgres://USER:PASSWORD@HOST:PORT/DATABASE";
    let url = variable("DATABASE_URL")?;
    let url = url.ok_or_else(|| Failure::Setting(format!("DATABASE_URL is not set: {EXPECTED}")))?;
    // The reason names the part that is wrong, and not the password.
    let wrong =
        |reason: String| Failure::Setting(format!("DATABASE_URL is no address of a database: {reason}; {EXPECTED}"));
    let config: Config = url.parse().map_err(|error| wrong(crate::error::chain(&error)))?;
    if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
        return Err(wrong("it has no host".to_owned()));
    }
    Ok(config)
}

/// The size of the pool, from `MAX_CONNECTIONS`.
///
/// # Errors
/// When the variable is no number above 0.
pub(crate) fn max_connections() -> Result<usize, Failure> {
    let Some(text) = variable("MAX_CONNECTIONS")? else { return Ok(MAX_CONNECTIONS) };
    match text.parse() {
        Ok(number) if number > 0 => Ok(number),
        _ => Err(Failure::Setting(format!("MAX_CONNECTIONS is `{text}`: expected a number above 0"))),
    }
}

/// The secret that signs tokens, from `SECRET_KEY`. Without it, the secret is a random one: tokens end with the process.
///
/// # Errors
/// When the variable is no text, or the system has no random numbers.
pub(crate) fn secret() -> Result<Vec<u8>, Failure> {
    if let Some(secret) = variable("SECRET_KEY")? {
        return Ok(secret.into_bytes());
    }
    let mut secret = vec![0; 32];
    getrandom::fill(&mut secret).map_err(|error| Failure::Run(format!("no secret for tokens: {error}")))?;
    Ok(secret)
}

/// A variable of the environment. An empty one counts as not set.
fn variable(name: &str) -> Result<Option<String>, Failure> {
    match std::env::var(name) {
        Ok(value) => Ok(Some(value).filter(|value| !value.is_empty())),
        Err(VarError::NotPresent) => Ok(None),
        Err(VarError::NotUnicode(_)) => Err(Failure::Setting(format!("{name} is no text"))),
    }
}
