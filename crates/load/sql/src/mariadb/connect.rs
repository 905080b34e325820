//! How a session with MariaDB or MySQL begins: what both can do, who is there, and is it he.

use super::packet::{self, Reader};
use super::rsa::PublicKey;
use super::{Abilities, capability};
use crate::SqlError;
use crate::wire::Wire;
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

/// What a server says first.
pub(super) struct Greeting {
    pub(super) version: String,
    /// What it knows the session by.
    pub(super) thread: u32,
    pub(super) abilities: Abilities,
    /// What the password is mixed with.
    nonce: Vec<u8>,
    method: String,
}

/// Begins a session; gives what the server said, with what both can do.
pub(super) fn connect(wire: &mut Wire, endpoint: &Endpoint) -> Result<Greeting, SqlError> {
    wire.begin();
    let (number, content) = packet::next(wire)?;
    let greeting = Greeting::read(wire.input(), content)?;
    let mut out = Vec::new();
    packet::begin(&mut out);
    let abilities = greeting.respond(endpoint, &mut out)?;
    packet::send(wire, number.wrapping_add(1), &mut out)?;
    let offers_tls = greeting.abilities.can(capability::TLS) && matches!(endpoint.address, Address::Tcp { .. });
    match authenticate(wire, endpoint, &greeting) {
        Err(error) if error.code == ACCESS_DENIED && offers_tls => Err(perhaps_for_want_of_tls(error)),
        done => done.map(|()| Greeting { abilities, ..greeting }),
    }
}

/// MariaDB does not say that it wants TLS: it denies access.
fn perhaps_for_want_of_tls(error: SqlError) -> SqlError {
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
        let version = String::from_utf8_lossy(reader.terminated()).into_owned();
        let thread = reader.u32()?;
        let mut nonce = reader.bytes(8)?.to_vec();
        reader.u8()?;
        let low = u64::from(reader.u16()?);
        let mut greeting =
            Greeting { version, thread, abilities: Abilities(low), nonce: Vec::new(), method: NATIVE.to_owned() };
        if reader.left() > 0 {
            reader.bytes(3)?;
            let high = u64::from(reader.u16()?);
            let length = usize::from(reader.u8()?);
            reader.bytes(6)?;
            let extended = u64::from(reader.u32()?);
            // MySQL has nothing there, and says so by a bit that MariaDB does not set.
            let extended = if low & capability::MYSQL == 0 { extended } else { 0 };
            greeting.abilities = Abilities(low | high << 16 | extended << 32);
            nonce.extend_from_slice(reader.bytes(length.saturating_sub(8).max(13).min(reader.left()))?);
            let method = reader.terminated();
            if !method.is_empty() {
                greeting.method = String::from_utf8_lossy(method).into_owned();
            }
        }
        nonce.truncate(20);
        greeting.nonce = nonce;
        Ok(greeting)
    }

    /// Writes who is there; gives what both can do.
    fn respond(&self, endpoint: &Endpoint, out: &mut Vec<u8>) -> Result<Abilities, SqlError> {
        let abilities = Abilities(capability::WANTED & self.abilities.0);
        if !abilities.can(capability::PROTOCOL_41 | capability::SECURE_CONNECTION) {
            return Err(SqlError::protocol("the server is older than MySQL 4.1"));
        }
        let flags = abilities.0.to_le_bytes();
        out.extend_from_slice(&flags[..4]);
        out.extend_from_slice(&(1_u32 << 30).to_le_bytes());
        out.push(COLLATION);
        out.extend_from_slice(&[0; 19]);
        out.extend_from_slice(&flags[4..]);
        out.extend_from_slice(endpoint.user.as_bytes());
        out.push(0);
        let proof = proof(&self.method, endpoint, &self.nonce).unwrap_or_default();
        out.push(proof.len() as u8);
        out.extend_from_slice(&proof);
        out.extend_from_slice(endpoint.database.as_bytes());
        out.push(0);
        if abilities.can(capability::PLUGIN_AUTH) {
            out.extend_from_slice(self.method.as_bytes());
            out.push(0);
        }
        Ok(abilities)
    }
}

/// Answers what the server asks until it is content.
fn authenticate(wire: &mut Wire, endpoint: &Endpoint, greeting: &Greeting) -> Result<(), SqlError> {
    let (mut method, mut nonce) = (greeting.method.clone(), greeting.nonce.clone());
    let mut out = Vec::new();
    loop {
        let (number, content) = packet::next(wire)?;
        let mut reader = Reader::new(wire.input(), content.clone());
        packet::begin(&mut out);
        match reader.u8()? {
            0x00 => return Ok(()),
            0xff => return Err(packet::error(wire.input(), content)),
            0xfe => {
                method = String::from_utf8_lossy(reader.terminated()).into_owned();
                let sent = reader.rest();
                nonce = sent.strip_suffix(b"\0").unwrap_or(sent).to_vec();
                out.extend_from_slice(&proof(&method, endpoint, &nonce)?);
            }
            0x01 if method == CACHING_SHA2 => match reader.rest() {
                // It knows the proof already.
                [3] => continue,
                _ if !wire.is_local() => return Err(SqlError::in_clear(CACHING_SHA2, NATIVE)),
                [4] if matches!(endpoint.address, Address::Unix(_)) => out.extend_from_slice(&terminated(endpoint)),
                [4] => out.push(SEND_KEY),
                key => out.extend_from_slice(&encrypted(key, endpoint, &nonce)?),
            },
            other => return Err(SqlError::protocol(format!("an answer {other} to the authentication"))),
        }
        packet::send(wire, number.wrapping_add(1), &mut out)?;
    }
}

/// What proves that one knows the password.
fn proof(method: &str, endpoint: &Endpoint, nonce: &[u8]) -> Result<Vec<u8>, SqlError> {
    let password = endpoint.password.as_ref().map_or("", |password| &password.0).as_bytes();
    match method {
        _ if password.is_empty() => Ok(Vec::new()),
        NATIVE => {
            let once = Sha1::digest(password);
            let mixed = Sha1::new().chain_update(nonce).chain_update(Sha1::digest(once)).finalize();
            Ok(exclusive_or(&once, &mixed))
        }
        CACHING_SHA2 => {
            let once = Sha256::digest(password);
            let mixed = Sha256::new().chain_update(Sha256::digest(once)).chain_update(nonce).finalize();
            Ok(exclusive_or(&once, &mixed))
        }
        _ => Err(SqlError::new(
            ErrorKind::Denied,
            format!(
                "the user is to authenticate by `{method}`, which is not spoken here; use {NATIVE} or {CACHING_SHA2}"
            ),
        )),
    }
}

fn exclusive_or(left: &[u8], right: &[u8]) -> Vec<u8> {
    left.iter().zip(right).map(|(left, right)| left ^ right).collect()
}

/// The password as it is, with a NUL.
fn terminated(endpoint: &Endpoint) -> Vec<u8> {
    let password = endpoint.password.as_ref().map_or("", |password| &password.0);
    [password.as_bytes(), b"\0"].concat()
}

/// The password as only the server can read it that has just sent this key. Elsewhere than on this
/// machine, whoever stood between could send his own.
fn encrypted(key: &[u8], endpoint: &Endpoint, nonce: &[u8]) -> Result<Vec<u8>, SqlError> {
    let mut seed = [0; 20];
    getrandom::fill(&mut seed).map_err(|error| SqlError::new(ErrorKind::Connect, error.to_string()))?;
    let mixed: Vec<u8> = terminated(endpoint).iter().zip(nonce.iter().cycle()).map(|(a, b)| a ^ b).collect();
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
            assert_eq!(proof(NATIVE, &endpoint(password), &[1; 20]), Ok(Vec::new()));
        }
    }

    /// The server, which knows `SHA1(SHA1(password))` alone, undoes the proof and hashes it.
    #[test]
    fn a_server_can_check_the_proof() {
        let nonce = [7; 20];
        let stored = Sha1::digest(Sha1::digest(b"secret"));
        let proof = proof(NATIVE, &endpoint(Some("secret")), &nonce).unwrap();
        let mixed = Sha1::new().chain_update(nonce).chain_update(stored).finalize();
        assert_eq!(Sha1::digest(exclusive_or(&proof, &mixed)), stored);
    }

    #[test]
    fn an_unknown_method_is_named() {
        let error = proof("client_ed25519", &endpoint(Some("secret")), &[]).unwrap_err();
        assert!(error.detail.contains("client_ed25519") && !error.detail.contains("secret"), "{}", error.detail);
    }
}
