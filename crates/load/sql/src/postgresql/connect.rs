//! Start-up and authentication of a session with PostgreSQL.

use super::messages::{encoded, error, malformed, next, parsed};
use crate::socket::Socket;
use crate::{SessionId, SqlError};
use bytes::BytesMut;
use fallible_iterator::FallibleIterator;
use plimsoll_model::database::{Address, Endpoint};
use plimsoll_model::record::ErrorKind;
use postgres_protocol::authentication::md5_hash;
use postgres_protocol::authentication::sasl::{ChannelBinding, SCRAM_SHA_256, ScramSha256};
use postgres_protocol::message::backend::{ERROR_RESPONSE_TAG, Message};
use postgres_protocol::message::frontend;

/// Begins a session; returns the server's version, and the identity of the session.
pub(super) fn connect(socket: &mut Socket, endpoint: &Endpoint) -> Result<(String, Option<SessionId>), SqlError> {
    socket.begin();
    send(socket, |out| {
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
        match message(socket)? {
            Message::ReadyForQuery(_) => return Ok((version, session)),
            Message::BackendKeyData(body) => {
                session = Some(SessionId::Process { number: body.process_id(), key: body.secret_key() });
            }
            Message::ParameterStatus(status) if status.name().is_ok_and(|name| name == "server_version") => {
                let full = status.value().map_err(malformed)?;
                version = full.split_whitespace().next().unwrap_or_default().to_owned();
            }
            Message::AuthenticationSaslContinue(body) => {
                let scram: &mut ScramSha256 = scram.as_mut().ok_or_else(unexpected_scram)?;
                scram.update(body.data()).map_err(scram_failed)?;
                send(socket, |out| frontend::sasl_response(scram.message(), out))?;
            }
            Message::AuthenticationSaslFinal(body) => {
                scram.as_mut().ok_or_else(unexpected_scram)?.finish(body.data()).map_err(scram_failed)?;
            }
            Message::AuthenticationSasl(body) => {
                let mut mechanisms = body.mechanisms();
                if !mechanisms.any(|name| Ok(name == SCRAM_SHA_256)).map_err(malformed)? {
                    return Err(unsupported("SASL without SCRAM-SHA-256"));
                }
                let new = ScramSha256::new(password(endpoint)?, ChannelBinding::unsupported());
                send(socket, |out| frontend::sasl_initial_response(SCRAM_SHA_256, new.message(), out))?;
                scram = Some(new);
            }
            Message::AuthenticationMd5Password(body) => {
                let hash = md5_hash(endpoint.user.as_bytes(), password(endpoint)?, body.salt());
                send(socket, |out| frontend::password_message(hash.as_bytes(), out))?;
            }
            Message::AuthenticationCleartextPassword => {
                let password = cleartext_password(endpoint)?;
                send(socket, |out| frontend::password_message(password, out))?;
            }
            Message::AuthenticationGss | Message::AuthenticationSspi => return Err(unsupported("Kerberos")),
            _ => {}
        }
    }
}

fn message(socket: &mut Socket) -> Result<Message, SqlError> {
    let (tag, body) = next(socket)?;
    match tag {
        ERROR_RESPONSE_TAG => Err(error(socket.input(), body)?.0),
        _ => parsed(socket.input(), body),
    }
}

fn send(socket: &mut Socket, write: impl FnOnce(&mut BytesMut) -> std::io::Result<()>) -> Result<(), SqlError> {
    let mut out = BytesMut::new();
    encoded(write(&mut out))?;
    socket.send(&out)
}

fn password(endpoint: &Endpoint) -> Result<&[u8], SqlError> {
    let password = endpoint.password.as_ref().map(|password| password.0.as_bytes());
    password.ok_or_else(|| SqlError::new(ErrorKind::Denied, "the server wants a password, and none is given"))
}

/// The password in clear text, which is sent by UNIX socket only.
fn cleartext_password(endpoint: &Endpoint) -> Result<&[u8], SqlError> {
    match endpoint.address {
        Address::Unix(_) => password(endpoint),
        Address::Tcp { .. } => Err(SqlError::cleartext_password("the method `password`", "`scram-sha-256`")),
    }
}

fn unsupported(method: &str) -> SqlError {
    let detail = format!("the server wants to authenticate by {method}, which is not spoken here; allow a password");
    SqlError::new(ErrorKind::Denied, detail)
}

fn unexpected_scram() -> SqlError {
    SqlError::protocol("a message of SCRAM comes out of turn")
}

#[allow(clippy::needless_pass_by_value, reason = "for map_err")]
fn scram_failed(error: std::io::Error) -> SqlError {
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
        let error =
            cleartext_password(&endpoint(Address::Tcp { host: "127.0.0.1".to_owned(), port: 5432 })).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Denied);
        assert!(!error.detail.contains("secret"));
        assert_eq!(cleartext_password(&endpoint(Address::Unix("/run/socket".into()))).unwrap(), b"secret");
    }
}
