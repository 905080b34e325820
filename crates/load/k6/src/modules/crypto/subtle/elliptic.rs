//! Elliptic curves: ECDSA (FIPS 186-5) and ECDH on the curves of NIST.
//!
//! Keys are kept as bytes: a private key as its scalar, a public one as an uncompressed point (SEC 1, section 2.3.3).

use super::fault::Fault;

/// A curve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Curve {
    P256,
    P384,
    P521,
}

/// Calls a function for the library of a curve.
macro_rules! on_curve {
    ($curve:expr, $library:ident => $body:expr) => {
        match $curve {
            Curve::P256 => {
                use p256 as $library;
                $body
            }
            Curve::P384 => {
                use p384 as $library;
                $body
            }
            Curve::P521 => {
                use p521 as $library;
                $body
            }
        }
    };
}

impl Curve {
    pub(super) fn parse(name: &str) -> Result<Curve, Fault> {
        match name {
            "P-256" => Ok(Curve::P256),
            "P-384" => Ok(Curve::P384),
            "P-521" => Ok(Curve::P521),
            _ => Err(Fault::unsupported(format!("expected the curve P-256, P-384 or P-521, found `{name}`"))),
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Curve::P256 => "P-256",
            Curve::P384 => "P-384",
            Curve::P521 => "P-521",
        }
    }

    /// Bytes of a coordinate, and of a scalar.
    pub(super) fn bytes(self) -> usize {
        match self {
            Curve::P256 => 32,
            Curve::P384 => 48,
            Curve::P521 => 66,
        }
    }
}

fn no_private_key() -> Fault {
    Fault::data("expected a private key of the curve")
}

fn no_public_key() -> Fault {
    Fault::data("expected a public key of the curve: a point on it")
}

/// A new private key.
pub(super) fn generate(curve: Curve) -> Vec<u8> {
    use p256::elliptic_curve::Generate;
    on_curve!(curve, library => library::SecretKey::generate().to_bytes().to_vec())
}

/// The public key of a private one.
pub(super) fn public_of(curve: Curve, private: &[u8]) -> Result<Vec<u8>, Fault> {
    on_curve!(curve, library => {
        let key = library::SecretKey::from_slice(private).map_err(|_| no_private_key())?;
        Ok(key.public_key().to_sec1_bytes().to_vec())
    })
}

/// A public key from a point in any form of SEC 1.
pub(super) fn public_key(curve: Curve, point: &[u8]) -> Result<Vec<u8>, Fault> {
    on_curve!(curve, library => {
        let key = library::PublicKey::from_sec1_bytes(point).map_err(|_| no_public_key())?;
        Ok(key.to_sec1_bytes().to_vec())
    })
}

/// A private key from PKCS #8 (RFC 5958).
pub(super) fn private_from_pkcs8(curve: Curve, der: &[u8]) -> Result<Vec<u8>, Fault> {
    use p256::pkcs8::DecodePrivateKey;
    on_curve!(curve, library => {
        let key = library::SecretKey::from_pkcs8_der(der);
        Ok(key.map_err(|_| no_private_key())?.to_bytes().to_vec())
    })
}

pub(super) fn private_to_pkcs8(curve: Curve, private: &[u8]) -> Result<Vec<u8>, Fault> {
    use p256::pkcs8::EncodePrivateKey;
    on_curve!(curve, library => {
        let key = library::SecretKey::from_slice(private).map_err(|_| no_private_key())?;
        Ok(key.to_pkcs8_der().map_err(|_| no_private_key())?.as_bytes().to_vec())
    })
}

/// A public key from a SubjectPublicKeyInfo (RFC 5280).
pub(super) fn public_from_spki(curve: Curve, der: &[u8]) -> Result<Vec<u8>, Fault> {
    use p256::pkcs8::DecodePublicKey;
    on_curve!(curve, library => {
        let key = library::PublicKey::from_public_key_der(der);
        Ok(key.map_err(|_| no_public_key())?.to_sec1_bytes().to_vec())
    })
}

pub(super) fn public_to_spki(curve: Curve, public: &[u8]) -> Result<Vec<u8>, Fault> {
    use p256::pkcs8::EncodePublicKey;
    on_curve!(curve, library => {
        let key = library::PublicKey::from_sec1_bytes(public).map_err(|_| no_public_key())?;
        Ok(key.to_public_key_der().map_err(|_| no_public_key())?.as_bytes().to_vec())
    })
}

/// A hash as the libraries take it, who refuse one that is less than half as long as a scalar: the same number with zeros
/// before it.
fn padded(curve: Curve, hash: &[u8]) -> Vec<u8> {
    let missing = curve.bytes().div_ceil(2).saturating_sub(hash.len());
    [vec![0; missing], hash.to_vec()].concat()
}

/// The signature of a hash: two numbers, one after the other.
pub(super) fn sign(curve: Curve, private: &[u8], hash: &[u8]) -> Result<Vec<u8>, Fault> {
    use p256::ecdsa::signature::hazmat::PrehashSigner;
    let failed = || Fault::operation("a hash of this length cannot be signed on this curve");
    on_curve!(curve, library => {
        let key = library::ecdsa::SigningKey::from_slice(private).map_err(|_| no_private_key())?;
        let signature: library::ecdsa::Signature = key.sign_prehash(&padded(curve, hash)).map_err(|_| failed())?;
        Ok(signature.to_bytes().to_vec())
    })
}

/// True if a signature is that of a hash.
pub(super) fn verify(curve: Curve, public: &[u8], hash: &[u8], signature: &[u8]) -> Result<bool, Fault> {
    use p256::ecdsa::signature::hazmat::PrehashVerifier;
    on_curve!(curve, library => {
        let key = library::ecdsa::VerifyingKey::from_sec1_bytes(public).map_err(|_| no_public_key())?;
        let signature = library::ecdsa::Signature::from_slice(signature);
        Ok(signature.is_ok_and(|signature| key.verify_prehash(&padded(curve, hash), &signature).is_ok()))
    })
}

/// The secret that two parties share (SEC 1, section 3.3.1).
pub(super) fn shared_secret(curve: Curve, private: &[u8], public: &[u8]) -> Result<Vec<u8>, Fault> {
    on_curve!(curve, library => {
        let private = library::SecretKey::from_slice(private).map_err(|_| no_private_key())?;
        let public = library::PublicKey::from_sec1_bytes(public).map_err(|_| no_public_key())?;
        Ok(private.diffie_hellman(&public).raw_secret_bytes().to_vec())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hex::hex;

    const CURVES: [Curve; 3] = [Curve::P256, Curve::P384, Curve::P521];

    fn bytes(hex: &str) -> Vec<u8> {
        (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).expect("hexadecimal")).collect()
    }

    /// RFC 6979, section A.2.5, the message `sample` with SHA-256.
    #[test]
    fn signatures_are_those_of_the_standard() {
        let private = bytes("c9afa9d845ba75166b5c215767b1d6934e50c3db36e89b127b8a622b120f6721");
        let hash = super::super::hash_name::HashName::Sha256.digest(b"sample");
        let signature = sign(Curve::P256, &private, &hash).expect("a signature");
        assert!(hex(&signature).starts_with("efd48b2aacb6a8fd1140dd9cd45e81d69d2c877b56aaf991c34d0ea84eaf3716"));
        let public = public_of(Curve::P256, &private).expect("a key");
        assert!(hex(&public).starts_with("0460fed4ba255a9d31c961eb74c6356d68c049b8923b61fa6ce669622e60f29fb6"));
        assert!(verify(Curve::P256, &public, &hash, &signature).expect("a key"));
    }

    /// The hash of SHA-1 is short for this curve. OpenSSL has made the signature.
    #[test]
    fn short_hashes_are_verified_too() {
        let public = bytes(concat!(
            "0400322409a31efd3fef4a8a705c69d52ec501fa155737c0577cd4436a272ed6ed562d8743e639f72b9f244999a09db701e1",
            "190e0ad6c6fe390c1c39a7ba7d9f5b23890045cec9cf8f7f719431b1975efb9980b633a0560874f0815b48e188f298570543",
            "f554af01399d0cf3e733a83e5940415d287f2f7e8bf6547dc057ea0554a849ba47",
        ));
        let signature = bytes(concat!(
            "0089690d4a035bff22961e7abaa259565c4bcfb7fd95eab2059870d21e3785f85d9c13ac020997a1eb748438c6eacb0f81fe",
            "0bb3db419e49641ce599a7360cafef7101ecd35f018aa70695b2b1c58cd4f89bc28ff1f07f24f3d579bc1a6b3f3e0df5767b",
            "228aae7bdba2e195c13b5d41ca5b073bb276cb02f3c2a8e0c6a7bb6568c77e56",
        ));
        let hash = super::super::hash_name::HashName::Sha1.digest(b"sample");
        assert_eq!(verify(Curve::P521, &public, &hash, &signature), Ok(true));
        let (private, other) = (generate(Curve::P521), super::super::hash_name::HashName::Sha1.digest(b"other"));
        let signature = sign(Curve::P521, &private, &hash).expect("a signature");
        let public = public_of(Curve::P521, &private).expect("a key");
        assert_eq!(verify(Curve::P521, &public, &hash, &signature), Ok(true));
        assert_eq!(verify(Curve::P521, &public, &other, &signature), Ok(false));
    }

    #[test]
    fn what_one_key_signs_only_its_public_key_verifies() {
        for curve in CURVES {
            let (one, other) = (generate(curve), generate(curve));
            let public = |private: &[u8]| public_of(curve, private).expect("a key");
            let signature = sign(curve, &one, &[7; 64]).expect("a signature");
            assert_eq!(signature.len(), 2 * curve.bytes());
            assert_eq!(verify(curve, &public(&one), &[7; 64], &signature), Ok(true));
            assert_eq!(verify(curve, &public(&other), &[7; 64], &signature), Ok(false));
            assert_eq!(verify(curve, &public(&one), &[8; 64], &signature), Ok(false));
            assert_eq!(verify(curve, &public(&one), &[7; 64], &[0; 3]), Ok(false));
        }
    }

    #[test]
    fn two_parties_share_a_secret() {
        for curve in CURVES {
            let (one, other) = (generate(curve), generate(curve));
            let shared = |private: &[u8], public: &[u8]| {
                shared_secret(curve, private, &public_of(curve, public).expect("a key")).expect("a secret")
            };
            assert_eq!(shared(&one, &other), shared(&other, &one));
            assert_eq!(shared(&one, &other).len(), curve.bytes());
        }
    }

    #[test]
    fn keys_read_back_from_every_format() {
        for curve in CURVES {
            let private = generate(curve);
            let public = public_of(curve, &private).expect("a key");
            let pkcs8 = private_to_pkcs8(curve, &private).expect("a key");
            let spki = public_to_spki(curve, &public).expect("a key");
            assert_eq!(private_from_pkcs8(curve, &pkcs8), Ok(private));
            assert_eq!((public_from_spki(curve, &spki), public_key(curve, &public)), (Ok(public.clone()), Ok(public)));
            for wrong in [&pkcs8[1..], &spki, b""] {
                assert!(private_from_pkcs8(curve, wrong).is_err());
            }
            assert!(public_from_spki(curve, &pkcs8).is_err() && public_key(curve, &spki).is_err());
        }
    }
}
