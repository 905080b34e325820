//! HMAC with SHA-256, as the library for tokens wants its cryptography. Its own would bring every other algorithm too.

use hmac::{Hmac, KeyInit, Mac};
use jsonwebtoken::crypto::{CryptoProvider, JwtSigner, JwtVerifier, KeyUtils};
use jsonwebtoken::errors::{ErrorKind, Result};
use jsonwebtoken::signature::{Error, Signer, Verifier};
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey};
use sha2::Sha256;

static PROVIDER: CryptoProvider = CryptoProvider {
    signer_factory: |algorithm, key| Ok(Box::new(Hs256::new(*algorithm, key.as_bytes())?)),
    verifier_factory: |algorithm, key| Ok(Box::new(Hs256::new(*algorithm, key.try_get_as_bytes()?)?)),
    // Of keys in JSON, which nobody sends.
    key_utils: KeyUtils::new_unimplemented(),
};

/// The two forms of a key for tokens.
pub(crate) fn keys(secret: &[u8]) -> (EncodingKey, DecodingKey) {
    // It fails when it is there already.
    let _ = PROVIDER.install_default();
    (EncodingKey::from_secret(secret), DecodingKey::from_secret(secret))
}

/// A key, before it has seen a message.
struct Hs256(Hmac<Sha256>);

impl Hs256 {
    fn new(algorithm: Algorithm, key: &[u8]) -> Result<Hs256> {
        if algorithm != Algorithm::HS256 {
            return Err(ErrorKind::UnsupportedAlgorithm.into());
        }
        Ok(Hs256(Hmac::new_from_slice(key).map_err(|_| ErrorKind::InvalidKeyFormat)?))
    }
}

impl Signer<Vec<u8>> for Hs256 {
    fn try_sign(&self, message: &[u8]) -> std::result::Result<Vec<u8>, Error> {
        Ok(self.0.clone().chain_update(message).finalize().into_bytes().to_vec())
    }
}

impl Verifier<Vec<u8>> for Hs256 {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> std::result::Result<(), Error> {
        self.0.clone().chain_update(message).verify_slice(signature).map_err(|_| Error::new())
    }
}

impl JwtSigner for Hs256 {
    fn algorithm(&self) -> Algorithm {
        Algorithm::HS256
    }
}

impl JwtVerifier for Hs256 {
    fn algorithm(&self) -> Algorithm {
        Algorithm::HS256
    }
}
