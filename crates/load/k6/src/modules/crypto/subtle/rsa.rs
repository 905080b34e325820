//! RSA (RFC 8017): encryption with OAEP, signatures with PSS and PKCS #1.

use super::fault::Fault;
use super::hash_name::{HashName, by_hash};
use ::rsa::pkcs8::{DecodePrivateKey, DecodePublicKey, EncodePrivateKey, EncodePublicKey};
use ::rsa::traits::{PrivateKeyParts, PublicKeyParts};
use ::rsa::{BoxedUint, Oaep, Pkcs1v15Sign, PrivateKey, Pss, PublicKey};
use getrandom::SysRng;

/// The bits that a modulus may have.
const BITS: std::ops::RangeInclusive<usize> = 1024..=8192;

/// The numbers of a private key as big-endian bytes, in the order of JSON Web Keys: `n`, `e`, `d`, `p`, `q`, `dp`, `dq`,
/// `qi`.
pub(super) type Numbers = [Vec<u8>; 8];

/// A new key. `exponent` is big-endian.
pub(super) fn generate(bits: usize, exponent: &[u8]) -> Result<PrivateKey, Fault> {
    if !BITS.contains(&bits) {
        let (least, most) = (BITS.start(), BITS.end());
        return Err(Fault::operation(format!("expected a `modulusLength` of {least} to {most} bits, found {bits}")));
    }
    let key = PrivateKey::new_with_exp(&mut SysRng, bits, number(exponent)?);
    key.map_err(|why| Fault::operation(format!("failed to make a key for RSA: {why}")))
}

fn number(bytes: &[u8]) -> Result<BoxedUint, Fault> {
    let bits = u32::try_from(bytes.len() * 8).unwrap_or(u32::MAX);
    BoxedUint::from_be_slice(bytes, bits).map_err(|_| Fault::data("expected a number of RSA, found too long a one"))
}

/// Without zeros at the beginning.
fn shortest(bytes: &[u8]) -> Vec<u8> {
    let first = bytes.iter().position(|byte| *byte != 0).unwrap_or(bytes.len());
    bytes[first..].to_vec()
}

fn no_key<E>(_: E) -> Fault {
    Fault::data("expected a key for RSA")
}

pub(super) fn private_from_pkcs8(der: &[u8]) -> Result<PrivateKey, Fault> {
    PrivateKey::from_pkcs8_der(der).map_err(no_key)
}

pub(super) fn private_to_pkcs8(key: &PrivateKey) -> Result<Vec<u8>, Fault> {
    Ok(key.to_pkcs8_der().map_err(no_key)?.as_bytes().to_vec())
}

pub(super) fn public_from_spki(der: &[u8]) -> Result<PublicKey, Fault> {
    PublicKey::from_public_key_der(der).map_err(no_key)
}

pub(super) fn public_to_spki(key: &PublicKey) -> Result<Vec<u8>, Fault> {
    Ok(key.to_public_key_der().map_err(no_key)?.as_bytes().to_vec())
}

pub(super) fn public_from_numbers(n: &[u8], e: &[u8]) -> Result<PublicKey, Fault> {
    PublicKey::new(number(n)?, number(e)?).map_err(no_key)
}

/// `n` and `e`.
pub(super) fn public_numbers(key: &PublicKey) -> [Vec<u8>; 2] {
    [shortest(&key.n_bytes()), shortest(&key.e_bytes())]
}

/// A private key from `n`, `e`, `d`, `p` and `q`, from which the other numbers follow.
pub(super) fn private_from_numbers([n, e, d, p, q]: [&[u8]; 5]) -> Result<PrivateKey, Fault> {
    let primes = vec![number(p)?, number(q)?];
    PrivateKey::from_components(number(n)?, number(e)?, number(d)?, primes).map_err(no_key)
}

pub(super) fn private_numbers(key: &PrivateKey) -> Result<Numbers, Fault> {
    let of = |number: &BoxedUint| shortest(&number.to_be_bytes());
    let missing = || Fault::operation("the key has no primes");
    let [p, q] = key.primes() else { return Err(missing()) };
    let (dp, dq) = (key.dp().ok_or_else(missing)?, key.dq().ok_or_else(missing)?);
    let qi = key.crt_coefficient().ok_or_else(missing)?;
    let [n, e] = public_numbers(key.as_public_key());
    Ok([n, e, of(key.d()), of(p.as_ref()), of(q.as_ref()), of(dp), of(dq), of(&qi)])
}

pub(super) fn encrypt(key: &PublicKey, hash: HashName, label: &[u8], data: &[u8]) -> Result<Vec<u8>, Fault> {
    let sealed = by_hash!(hash, Digest => key.encrypt(&mut SysRng, Oaep::<Digest>::new_with_label(label), data));
    sealed.map_err(|_| Fault::operation("the data is too long for the key"))
}

pub(super) fn decrypt(key: &PrivateKey, hash: HashName, label: &[u8], data: &[u8]) -> Result<Vec<u8>, Fault> {
    let plain = by_hash!(hash, Digest => key.decrypt(Oaep::<Digest>::new_with_label(label), data));
    plain.map_err(|_| Fault::operation("the data cannot be decrypted: another key, hash or label has encrypted it"))
}

pub(super) fn sign_pss(key: &PrivateKey, hash: HashName, salt: usize, data: &[u8]) -> Result<Vec<u8>, Fault> {
    let digest = hash.digest(data);
    let signed = by_hash!(hash, Digest => key.sign_with_rng(&mut SysRng, Pss::<Digest>::new_with_salt(salt), &digest));
    signed.map_err(|_| Fault::operation("the key is too short for this hash and salt"))
}

pub(super) fn verify_pss(key: &PublicKey, hash: HashName, salt: usize, data: &[u8], signature: &[u8]) -> bool {
    let digest = hash.digest(data);
    by_hash!(hash, Digest => key.verify(Pss::<Digest>::new_with_salt(salt), &digest, signature)).is_ok()
}

pub(super) fn sign_pkcs1(key: &PrivateKey, hash: HashName, data: &[u8]) -> Result<Vec<u8>, Fault> {
    let digest = hash.digest(data);
    let signed = by_hash!(hash, Digest => key.sign(Pkcs1v15Sign::new::<Digest>(), &digest));
    signed.map_err(|_| Fault::operation("the key is too short for this hash"))
}

pub(super) fn verify_pkcs1(key: &PublicKey, hash: HashName, data: &[u8], signature: &[u8]) -> bool {
    let digest = hash.digest(data);
    by_hash!(hash, Digest => key.verify(Pkcs1v15Sign::new::<Digest>(), &digest, signature)).is_ok()
}
