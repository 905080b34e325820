//! Digest authentication: RFC 7616, with the quality of protection `auth` or none.

use crate::hex::hex;
use md5::Md5;
use sha2::Sha256;
use sha2::digest::Digest;
use std::fmt::Write;

/// A request that needs a login.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Login<'a> {
    pub(crate) user: &'a str,
    pub(crate) password: &'a str,
    pub(crate) method: &'a str,
    /// Path and query.
    pub(crate) target: &'a str,
}

/// The challenge of a server.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Challenge {
    realm: String,
    nonce: String,
    opaque: Option<String>,
    algorithm: Option<String>,
    /// True if the quality of protection `auth` is offered.
    offers_auth: bool,
}

impl Challenge {
    /// Reads the value of `WWW-Authenticate`; None for other schemes and unknown hashes.
    pub(crate) fn read(header: &str) -> Option<Challenge> {
        let (scheme, parameters) = header.trim().split_once(' ')?;
        let mut challenge = Challenge::default();
        for (name, value) in scheme.eq_ignore_ascii_case("digest").then(|| parameters_of(parameters))? {
            match name.to_ascii_lowercase().as_str() {
                "realm" => challenge.realm = value,
                "nonce" => challenge.nonce = value,
                "opaque" => challenge.opaque = Some(value),
                "algorithm" => challenge.algorithm = Some(value),
                "qop" => challenge.offers_auth = value.split(',').any(|quality| quality.trim() == "auth"),
                _ => {}
            }
        }
        challenge.hash()?;
        Some(challenge)
    }

    fn hash(&self) -> Option<fn(&str) -> String> {
        match self.algorithm.as_deref().unwrap_or("MD5").to_ascii_uppercase().trim_end_matches("-SESS") {
            "MD5" => Some(hex_of::<Md5>),
            "SHA-256" => Some(hex_of::<Sha256>),
            _ => None,
        }
    }

    fn is_of_session(&self) -> bool {
        self.algorithm.as_deref().is_some_and(|name| name.to_ascii_lowercase().ends_with("-sess"))
    }

    /// The value of `Authorization` that answers it. `cnonce` is the client's nonce.
    pub(crate) fn response(&self, login: Login<'_>, cnonce: &str) -> Option<String> {
        let hash = self.hash()?;
        let Login { user, password, method, target } = login;
        let Challenge { realm, nonce, .. } = self;
        let secret = hash(&format!("{user}:{realm}:{password}"));
        let secret = if self.is_of_session() { hash(&format!("{secret}:{nonce}:{cnonce}")) } else { secret };
        let request = hash(&format!("{method}:{target}"));
        let response = match self.offers_auth {
            true => hash(&format!("{secret}:{nonce}:00000001:{cnonce}:auth:{request}")),
            false => hash(&format!("{secret}:{nonce}:{request}")),
        };
        let mut value = format!("Digest username={}, realm={}, nonce={}", quoted(user), quoted(realm), quoted(nonce));
        let _ = write!(value, ", uri={}, response=\"{response}\"", quoted(target));
        if let Some(algorithm) = &self.algorithm {
            let _ = write!(value, ", algorithm={algorithm}");
        }
        if let Some(opaque) = &self.opaque {
            let _ = write!(value, ", opaque={}", quoted(opaque));
        }
        if self.offers_auth {
            let _ = write!(value, ", qop=auth, nc=00000001, cnonce=\"{cnonce}\"");
        }
        Some(value)
    }
}

fn hex_of<D: Digest>(text: &str) -> String {
    hex(&D::digest(text))
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// `name=value, name="quoted \"value\""`.
fn parameters_of(text: &str) -> Vec<(String, String)> {
    let mut parameters = Vec::new();
    let mut rest = text.trim_start_matches([' ', ',']);
    while let Some((name, behind)) = rest.split_once('=') {
        let (value, behind) = value_of(behind.trim_start());
        parameters.push((name.trim().to_owned(), value));
        rest = behind.trim_start_matches([' ', ',']);
    }
    parameters
}

/// A value, and the text behind it.
fn value_of(text: &str) -> (String, &str) {
    let Some(inner) = text.strip_prefix('"') else {
        let end = text.find(',').unwrap_or(text.len());
        return (text[..end].trim().to_owned(), &text[end..]);
    };
    let (mut value, mut chars) = (String::new(), inner.char_indices());
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return (value, &inner[at + 1..]),
            '\\' => value.extend(chars.next().map(|(_, c)| c)),
            c => value.push(c),
        }
    }
    (value, "")
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOGIN: Login<'_> =
        Login { user: "Mufasa", password: "Circle of Life", method: "GET", target: "/dir/index.html" };

    fn response(challenge: &str, login: Login<'_>, cnonce: &str) -> String {
        let challenge = Challenge::read(challenge).expect("a challenge");
        let value = challenge.response(login, cnonce).expect("a known algorithm");
        let (_, response) = value.split_once("response=\"").expect("a response");
        response[..response.find('"').expect("an end")].to_owned()
    }

    /// RFC 7616, section 3.9.1.
    #[test]
    fn the_examples_of_the_standard_are_answered() {
        let common = "realm=\"http-auth@example.org\", qop=\"auth, auth-int\", \
            nonce=\"7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v\", opaque=\"FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS\"";
        let cnonce = "f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ";
        for (algorithm, expected) in [
            ("MD5", "8ca523f5e9506fed4657c9700eebdbec"),
            ("SHA-256", "753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1"),
        ] {
            let challenge = format!("Digest {common}, algorithm={algorithm}");
            assert_eq!(response(&challenge, LOGIN, cnonce), expected, "{algorithm}");
        }
    }

    /// RFC 2069, with its erratum 749.
    #[test]
    fn a_challenge_without_quality_of_protection_is_answered() {
        let challenge = "Digest realm=\"testrealm@host.com\", nonce=\"dcd98b7102dd2f0e8b11d0f600bfb0c093\", \
            opaque=\"5ccc069c403ebaf9f0171e9517f40e41\"";
        let login = Login { password: "CircleOfLife", ..LOGIN };
        assert_eq!(response(challenge, login, ""), "1949323746fe6a43ef61f9606e7febea");
        let value = Challenge::read(challenge).and_then(|it| it.response(login, "c")).expect("a known algorithm");
        assert!(!value.contains("qop") && value.contains("opaque=\"5ccc069c403ebaf9f0171e9517f40e41\""), "{value}");
    }

    #[test]
    fn other_challenges_are_ignored() {
        for header in ["Basic realm=\"x\"", "Digest", "Digest realm=\"x\", algorithm=SHA-512-256", "Negotiate abc"] {
            assert_eq!(Challenge::read(header), None, "{header}");
        }
        let odd = Challenge::read("digest Realm=\"a \\\"b\\\", c\" , nonce=n,qop=auth").expect("a challenge");
        assert_eq!((odd.realm.as_str(), odd.nonce.as_str(), odd.offers_auth), ("a \"b\", c", "n", true));
    }
}
