//! JSON Web Keys: RFC 7517 and RFC 7518.

use super::aes::Mode;
use super::elliptic::{self, Curve};
use super::fault::Fault;
use super::key::{Algorithm, CryptoKey, EllipticScheme, Family, Material, RsaScheme};
use super::rsa;
use crate::modules::encoding;
use serde_json::{Map, Value, json};

/// The numbers of a private key for RSA, in the order of [`rsa::Numbers`].
const RSA_NUMBERS: [&str; 8] = ["n", "e", "d", "p", "q", "dp", "dq", "qi"];

/// Reads the key of a JSON Web Key, whose curve is `curve` if it has one.
pub(super) fn read(jwk: &Map<String, Value>, family: Family, curve: Option<Curve>) -> Result<Material, Fault> {
    match (family, curve) {
        (Family::Rsa(_), _) => {
            must_be(jwk, "kty", "RSA")?;
            if !jwk.contains_key("d") {
                return rsa::public_from_numbers(&number(jwk, "n")?, &number(jwk, "e")?).map(Material::RsaPublic);
            }
            let numbers = ["n", "e", "d", "p", "q"].map(|name| number(jwk, name));
            let [n, e, d, p, q] = numbers;
            let (n, e, d, p, q) = (n?, e?, d?, p?, q?);
            rsa::private_from_numbers([&n, &e, &d, &p, &q]).map(|key| Material::RsaPrivate(Box::new(key)))
        }
        (Family::Elliptic(_), Some(curve)) => {
            must_be(jwk, "kty", "EC")?;
            must_be(jwk, "crv", curve.name())?;
            let point = [vec![4], coordinate(jwk, "x", curve)?, coordinate(jwk, "y", curve)?].concat();
            let public = elliptic::public_key(curve, &point)?;
            if !jwk.contains_key("d") {
                return Ok(Material::CurvePublic(public));
            }
            let private = coordinate(jwk, "d", curve)?;
            if elliptic::public_of(curve, &private)? != public {
                return Err(Fault::data("expected `x` and `y` of a JSON Web Key to be the public key of `d`"));
            }
            Ok(Material::CurvePrivate(private))
        }
        _ => {
            must_be(jwk, "kty", "oct")?;
            Ok(Material::Secret(number(jwk, "k")?))
        }
    }
}

fn must_be(jwk: &Map<String, Value>, name: &str, value: &str) -> Result<(), Fault> {
    match jwk.get(name).and_then(Value::as_str) {
        Some(found) if found == value => Ok(()),
        found => {
            let found = found.map_or("nothing".to_owned(), |found| format!("`{found}`"));
            Err(Fault::data(format!("expected `{value}` as `{name}` of a JSON Web Key, found {found}")))
        }
    }
}

fn number(jwk: &Map<String, Value>, name: &str) -> Result<Vec<u8>, Fault> {
    let wrong = || Fault::data(format!("expected base64url as `{name}` of a JSON Web Key"));
    let text = jwk.get(name).and_then(Value::as_str).ok_or_else(wrong)?;
    encoding::decode(text.as_bytes(), "rawurl").map_err(|_| wrong())
}

/// A number that is as long as the curve has it.
fn coordinate(jwk: &Map<String, Value>, name: &str, curve: Curve) -> Result<Vec<u8>, Fault> {
    let number = number(jwk, name)?;
    if number.len() == curve.bytes() {
        return Ok(number);
    }
    let (expected, found) = (curve.bytes(), number.len());
    Err(Fault::data(format!("expected `{name}` of a JSON Web Key to have {expected} bytes, found {found}")))
}

/// A key as a JSON Web Key.
pub(super) fn write(key: &CryptoKey) -> Result<Value, Fault> {
    let text = |bytes: &[u8]| Value::from(encoding::encode(bytes, "rawurl"));
    let mut jwk = Map::new();
    match (&key.material, key.algorithm) {
        (Material::Secret(secret), _) => {
            jwk.insert("kty".into(), "oct".into());
            jwk.insert("k".into(), text(secret));
        }
        (Material::RsaPublic(key), _) => {
            jwk.insert("kty".into(), "RSA".into());
            for (name, number) in RSA_NUMBERS.iter().zip(rsa::public_numbers(key)) {
                jwk.insert((*name).into(), text(&number));
            }
        }
        (Material::RsaPrivate(key), _) => {
            jwk.insert("kty".into(), "RSA".into());
            for (name, number) in RSA_NUMBERS.iter().zip(rsa::private_numbers(key)?) {
                jwk.insert((*name).into(), text(&number));
            }
        }
        (Material::CurvePublic(_) | Material::CurvePrivate(_), Algorithm::Elliptic(_, curve)) => {
            let public = match &key.material {
                Material::CurvePrivate(private) => {
                    jwk.insert("d".into(), text(private));
                    elliptic::public_of(curve, private)?
                }
                Material::CurvePublic(public) => public.clone(),
                _ => Vec::new(),
            };
            jwk.insert("kty".into(), "EC".into());
            jwk.insert("crv".into(), curve.name().into());
            jwk.insert("x".into(), text(&public[1..=curve.bytes()]));
            jwk.insert("y".into(), text(&public[1 + curve.bytes()..]));
        }
        _ => return Err(Fault::access("the key has no form as a JSON Web Key")),
    }
    if let Some(name) = algorithm_of(key) {
        jwk.insert("alg".into(), name.into());
    }
    jwk.insert("ext".into(), key.extractable.into());
    jwk.insert("key_ops".into(), json!(key.usages));
    Ok(Value::Object(jwk))
}

/// The name of its algorithm there (RFC 7518); none if there is none.
fn algorithm_of(key: &CryptoKey) -> Option<String> {
    let bits = |hash: super::hash_name::HashName| hash.name().trim_start_matches("SHA-");
    match (key.algorithm, &key.material) {
        (Algorithm::Hmac(hash), _) => Some(format!("HS{}", bits(hash))),
        (Algorithm::Aes(mode), Material::Secret(secret)) => {
            let mode = match mode {
                Mode::Cbc => "CBC",
                Mode::Ctr => "CTR",
                Mode::Gcm => "GCM",
            };
            Some(format!("A{}{mode}", secret.len() * 8))
        }
        (Algorithm::Rsa(RsaScheme::Pkcs1, hash), _) => Some(format!("RS{}", bits(hash))),
        (Algorithm::Rsa(RsaScheme::Pss, hash), _) => Some(format!("PS{}", bits(hash))),
        (Algorithm::Rsa(RsaScheme::Oaep, hash), _) if bits(hash) == "1" => Some("RSA-OAEP".to_owned()),
        (Algorithm::Rsa(RsaScheme::Oaep, hash), _) => Some(format!("RSA-OAEP-{}", bits(hash))),
        (Algorithm::Elliptic(EllipticScheme::Ecdsa, curve), _) => Some(match curve {
            Curve::P256 => "ES256".to_owned(),
            Curve::P384 => "ES384".to_owned(),
            Curve::P521 => "ES512".to_owned(),
        }),
        _ => None,
    }
}
