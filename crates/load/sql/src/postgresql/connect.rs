//! How a session with PostgreSQL begins: who is there, and is it he.

use super::messages::{encoded, error, malformed, next, parsed};
use crate::wire::Wire;
use crate::{Session, SqlError};
use bytes::BytesMut;
use fallible_iterator::FallibleIterator;
use plimsoll_model::database::{Address, Endpoint};
use plimsoll_model::record::ErrorKind;
use postgres_protocol::authentication::md5_hash;
use postgres_protocol::authentication::sasl::{ChannelBinding, SCRAM_SHA_256, ScramSha256};
use postgres_protocol::message::backend::{ERROR_RESPONSE_TAG, Message};
use postgres_protocol::message::frontend;

/// Begins a session; gives the server's version, and what it knows the session by.
pub(super) fn connect(wire: &mut Wire, endpoint: &Endpoint) -> Result<(String, Option<Session>), SqlError> {
    wire.begin();
    send(wire, |out| {
        let parameters = [
            ("user", endpoint.user.as_str()),
            ("database", &endpoint.database),
            ("client_encoding", "UTF8"),
            ("DateStyle", "ISO"),
            ("application_name", "plimsoll"),
        ];
        frontend::startup_message(parameters, out)
    })?;
    let mut version = String::new();
    let mut session = None;
    let mut scram = None;
    loop {
        match message(wire)? {
            Message::ReadyForQuery(_) => return Ok((version, session)),
            Message::BackendKeyData(body) => {
                session = Some(Session::Process { number: body.process_id(), key: body.secret_key() });
            }
            Message::ParameterStatus(status) if status.name().is_ok_and(|name| name == "server_version") => {
                let full = status.value().map_err(malformed)?;
                version = full.split_whitespace().next().unwrap_or_default().to_owned();
            }
            Message::AuthenticationSaslContinue(body) => {
                let scram: &mut ScramSha256 = scram.as_mut().ok_or_else(out_of_turn)?;
                scram.update(body.data()).map_err(untrusted)?;
                send(wire, |out| frontend::sasl_response(scram.message(), out))?;
            }
            Message::AuthenticationSaslFinal(body) => {
                scram.as_mut().ok_or_else(out_of_turn)?.finish(body.data()).map_err(untrusted)?;
            }
            Message::AuthenticationSasl(body) => {
                let mut mechanisms = body.mechanisms();
                if !mechanisms.any(|name| Ok(name == SCRAM_SHA_256)).map_err(malformed)? {
                    return Err(unknown("SASL without SCRAM-SHA-256"));
                }
                let new = ScramSha256::new(password(endpoint)?, ChannelBinding::unsupported());
                send(wire, |out| frontend::sasl_initial_response(SCRAM_SHA_256, new.message(), out))?;
                scram = Some(new);
            }
            Message::AuthenticationMd5Password(body) => {
                let hash = md5_hash(endpoint.user.as_bytes(), password(endpoint)?, body.salt());
                send(wire, |out| frontend::password_message(hash.as_bytes(), out))?;
            }
            Message::AuthenticationCleartextPassword => {
                let password = in_clear(endpoint)?;
                send(wire, |out| frontend::password_message(password, out))?;
            }
            Message::AuthenticationGss | Message::AuthenticationSspi => return Err(unknown("Kerberos")),
            _ => {}
        }
    }
}

fn message(wire: &mut Wire) -> Result<Message, SqlError> {
    let (tag, body) = next(wire)?;
    match tag {
        ERROR_RESPONSE_TAG => Err(error(wire.input(), body)?.0),
        _ => parsed(wire.input(), body),
    }
}

fn send(wire: &mut Wire, write: impl FnOnce(&mut BytesMut) -> std::io::Result<()>) -> Result<(), SqlError> {
    let mut out = BytesMut::new();
    encoded(write(&mut out))?;
    wire.send(&out)
}

fn password(endpoint: &Endpoint) -> Result<&[u8], SqlError> {
    let password = endpoint.password.as_ref().map(|password| password.0.as_bytes());
    password.ok_or_else(|| SqlError::new(ErrorKind::Denied, "the server wants a password, and none is given"))
}

/// The password as it is, which nobody else can read on a UNIX socket.
fn in_clear(endpoint: &Endpoint) -> Result<&[u8], SqlError> {
    match endpoint.address {
        Address::Unix(_) => password(endpoint),
        Address::Tcp { .. } => Err(SqlError::in_clear("the method `password`", "`scram-sha-256`")),
    }
}

fn unknown(method: &str) -> SqlError {
    let detail = format!("the server wants to authenticate by {method}, which is not spoken here; allow a password");
    SqlError::new(ErrorKind::Denied, detail)
}

fn out_of_turn() -> SqlError {
    SqlError::protocol("a message of SCRAM comes out of turn")
}

#[allow(clippy::needless_pass_by_value, reason = "for map_err")]
fn untrusted(error: std::io::Error) -> SqlError {
    SqlError::new(ErrorKind::Denied, format!("authentication by SCRAM fails: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_model::database::Engine;
    use plimsoll_model::storage::Secret;

    #[test]
    fn a_password_does_not_go_over_a_network_as_it_is() {
        let endpoint = |address| Endpoint {
            engine: Engine::Postgresql,
            address,
            user: "me".to_owned(),
            password: Some(Secret("secret".to_owned())),
            database: "shop".to_owned(),
        };
        let error = in_clear(&endpoint(Address::Tcp { host: "127.0.0.1".to_owned(), port: 5432 })).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Denied);
        assert!(!error.detail.contains("secret"));
        assert_eq!(in_clear(&endpoint(Address::Unix("/run/socket".into()))).unwrap(), b"secret");
    }
}
