//! Handshake and authentication of a session with MariaDB or MySQL.

use super::packet::{self, Reader};
use super::rsa::PublicKey;
use super::{Capabilities, capability};
use crate::SqlError;
use crate::socket::Socket;
use plimsoll_model::database::{Address, Endpoint};
use plimsoll_model::record::ErrorKind;
use sha1::Sha1;
use sha2::{Digest, Sha256};

/// `utf8mb4_general_ci`.
const COLLATION: u8 = 45;

const NATIVE: &str = "mysql_native_password";
const CACHING_SHA2: &str = "caching_sha2_password";

/// Asks for the key of a server.
const SEND_KEY: u8 = 2;

/// The number of the error.
const ACCESS_DENIED: &str = "1045";

/// The initial handshake packet of the server.
pub(super) struct Greeting {
    pub(super) version: String,
    /// The connection id, by which the session can be cancelled.
    pub(super) thread: u32,
    pub(super) capabilities: Capabilities,
    /// The challenge that the password is hashed with.
    nonce: Vec<u8>,
    method: String,
}

/// Begins a session; returns the greeting with the capabilities that both sides share.
pub(super) fn connect(socket: &mut Socket, endpoint: &Endpoint) -> Result<Greeting, SqlError> {
    socket.begin();
    let (number, content) = packet::next(socket)?;
    let greeting = Greeting::read(socket.input(), content)?;
    let mut out = Vec::new();
    packet::begin(&mut out);
    let capabilities = greeting.write_response(endpoint, &mut out)?;
    packet::send(socket, number.wrapping_add(1), &mut out)?;
    let offers_tls = greeting.capabilities.has(capability::TLS) && matches!(endpoint.address, Address::Tcp { .. });
    match authenticate(socket, endpoint, &greeting) {
        Err(error) if error.code == ACCESS_DENIED && offers_tls => Err(advise_unix_socket(error)),
        done => done.map(|()| Greeting { capabilities, ..greeting }),
    }
}

/// Adds advice about TLS to a denied access: MariaDB does not say that it requires TLS.
fn advise_unix_socket(error: SqlError) -> SqlError {
    let advice = "if the user must come by TLS, which is not spoken here, connect by the server's UNIX socket";
    SqlError { detail: format!("{}; {advice}", error.detail), ..error }
}

impl Greeting {
    fn read(input: &[u8], content: std::ops::Range<usize>) -> Result<Greeting, SqlError> {
        let mut reader = Reader::new(input, content.clone());
        match reader.u8()? {
            10 => {}
            0xff => return Err(packet::error(input, content)),
            other => return Err(SqlError::protocol(format!("it speaks version {other} of MySQL's protocol, not 10"))),
        }
        let version = String::from_utf8_lossy(reader.nul_terminated()).into_owned();
        let thread = reader.u32()?;
        let mut nonce = reader.bytes(8)?.to_vec();
        reader.u8()?;
        let low = u64::from(reader.u16()?);
        let mut greeting =
            Greeting { version, thread, capabilities: Capabilities(low), nonce: Vec::new(), method: NATIVE.to_owned() };
        if reader.left() > 0 {
            reader.bytes(3)?;
            let high = u64::from(reader.u16()?);
            let length = usize::from(reader.u8()?);
            reader.bytes(6)?;
            let extended = u64::from(reader.u32()?);
            // MySQL has nothing there, and says so by a bit that MariaDB does not set.
            let extended = if low & capability::MYSQL == 0 { extended } else { 0 };
            greeting.capabilities = Capabilities(low | high << 16 | extended << 32);
            nonce.extend_from_slice(reader.bytes(length.saturating_sub(8).max(13).min(reader.left()))?);
            let method = reader.nul_terminated();
            if !method.is_empty() {
                greeting.method = String::from_utf8_lossy(method).into_owned();
            }
        }
        nonce.truncate(20);
        greeting.nonce = nonce;
        Ok(greeting)
    }

    /// Writes the handshake response; returns the shared capabilities.
    fn write_response(&self, endpoint: &Endpoint, out: &mut Vec<u8>) -> Result<Capabilities, SqlError> {
        let capabilities = Capabilities(capability::WANTED & self.capabilities.0);
        if !capabilities.has(capability::PROTOCOL_41 | capability::SECURE_CONNECTION) {
            return Err(SqlError::protocol("the server is older than MySQL 4.1"));
        }
        let flags = capabilities.0.to_le_bytes();
        out.extend_from_slice(&flags[..4]);
        out.extend_from_slice(&(1_u32 << 30).to_le_bytes());
        out.push(COLLATION);
        out.extend_from_slice(&[0; 19]);
        out.extend_from_slice(&flags[4..]);
        out.extend_from_slice(endpoint.user.as_bytes());
        out.push(0);
        let auth_response = auth_response(&self.method, endpoint, &self.nonce).unwrap_or_default();
        out.push(auth_response.len() as u8);
        out.extend_from_slice(&auth_response);
        out.extend_from_slice(endpoint.database.as_bytes());
        out.push(0);
        if capabilities.has(capability::PLUGIN_AUTH) {
            out.extend_from_slice(self.method.as_bytes());
            out.push(0);
        }
        Ok(capabilities)
    }
}

/// Answers the server's authentication requests until it accepts or refuses.
fn authenticate(socket: &mut Socket, endpoint: &Endpoint, greeting: &Greeting) -> Result<(), SqlError> {
    let (mut method, mut nonce) = (greeting.method.clone(), greeting.nonce.clone());
    let mut out = Vec::new();
    loop {
        let (number, content) = packet::next(socket)?;
        let mut reader = Reader::new(socket.input(), content.clone());
        packet::begin(&mut out);
        match reader.u8()? {
            0x00 => return Ok(()),
            0xff => return Err(packet::error(socket.input(), content)),
            0xfe => {
                method = String::from_utf8_lossy(reader.nul_terminated()).into_owned();
                let sent = reader.rest();
                nonce = sent.strip_suffix(b"\0").unwrap_or(sent).to_vec();
                out.extend_from_slice(&auth_response(&method, endpoint, &nonce)?);
            }
            0x01 if method == CACHING_SHA2 => match reader.rest() {
                // Fast authentication succeeded: the server has the hash in its cache.
                [3] => continue,
                _ if !socket.is_local() => return Err(SqlError::cleartext_password(CACHING_SHA2, NATIVE)),
                [4] if matches!(endpoint.address, Address::Unix(_)) => out.extend_from_slice(&nul_terminated(endpoint)),
                [4] => out.push(SEND_KEY),
                key => out.extend_from_slice(&encrypted_password(key, endpoint, &nonce)?),
            },
            other => return Err(SqlError::protocol(format!("an answer {other} to the authentication"))),
        }
        packet::send(socket, number.wrapping_add(1), &mut out)?;
    }
}

/// The response to the server's challenge, which proves that the client knows the password.
fn auth_response(method: &str, endpoint: &Endpoint, nonce: &[u8]) -> Result<Vec<u8>, SqlError> {
    let password = endpoint.password.as_ref().map_or("", |password| &password.0).as_bytes();
    match method {
        _ if password.is_empty() => Ok(Vec::new()),
        NATIVE => {
            let once = Sha1::digest(password);
            let mixed = Sha1::new().chain_update(nonce).chain_update(Sha1::digest(once)).finalize();
            Ok(xor(&once, &mixed))
        }
        CACHING_SHA2 => {
            let once = Sha256::digest(password);
            let mixed = Sha256::new().chain_update(Sha256::digest(once)).chain_update(nonce).finalize();
            Ok(xor(&once, &mixed))
        }
        _ => Err(SqlError::new(
            ErrorKind::Denied,
            format!(
                "the user is to authenticate by `{method}`, which is not spoken here; use {NATIVE} or {CACHING_SHA2}"
            ),
        )),
    }
}

fn xor(left: &[u8], right: &[u8]) -> Vec<u8> {
    left.iter().zip(right).map(|(left, right)| left ^ right).collect()
}

/// The password in clear text with a NUL.
fn nul_terminated(endpoint: &Endpoint) -> Vec<u8> {
    let password = endpoint.password.as_ref().map_or("", |password| &password.0);
    [password.as_bytes(), b"\0"].concat()
}

/// Encrypts the password with the key that the server has just sent. Over a network, an attacker in between
/// could send a key of his own.
fn encrypted_password(key: &[u8], endpoint: &Endpoint, nonce: &[u8]) -> Result<Vec<u8>, SqlError> {
    let mut seed = [0; 20];
    getrandom::fill(&mut seed).map_err(|error| SqlError::new(ErrorKind::Connect, error.to_string()))?;
    let mixed: Vec<u8> = nul_terminated(endpoint).iter().zip(nonce.iter().cycle()).map(|(a, b)| a ^ b).collect();
    PublicKey::read(key)?.encrypt(&mixed, seed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_model::database::Engine;
    use plimsoll_model::storage::Secret;

    fn endpoint(password: Option<&str>) -> Endpoint {
        Endpoint {
            engine: Engine::Mariadb,
            address: Address::Tcp { host: "localhost".to_owned(), port: 1 },
            user: "a".to_owned(),
            password: password.map(|password| Secret(password.to_owned())),
            database: "b".to_owned(),
        }
    }

    #[test]
    fn without_a_password_there_is_nothing_to_prove() {
        for password in [None, Some("")] {
            assert_eq!(auth_response(NATIVE, &endpoint(password), &[1; 20]), Ok(Vec::new()));
        }
    }

    /// The server stores `SHA1(SHA1(password))`, and recovers `SHA1(password)` from the response.
    #[test]
    fn a_server_can_check_the_proof() {
        let nonce = [7; 20];
        let stored = Sha1::digest(Sha1::digest(b"secret"));
        let auth_response = auth_response(NATIVE, &endpoint(Some("secret")), &nonce).unwrap();
        let mixed = Sha1::new().chain_update(nonce).chain_update(stored).finalize();
        assert_eq!(Sha1::digest(xor(&auth_response, &mixed)), stored);
    }

    #[test]
    fn an_unknown_method_is_named() {
        let error = auth_response("client_ed25519", &endpoint(Some("secret")), &[]).unwrap_err();
        assert!(error.detail.contains("client_ed25519") && !error.detail.contains("secret"), "{}", error.detail);
    }
}
