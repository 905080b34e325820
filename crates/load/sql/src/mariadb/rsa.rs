//! Encrypts a password for the server: RSA with OAEP, SHA-1 and no label (RFC 8017, section
//! 7.1.1), as `caching_sha2_password` takes it by TCP without TLS.

use crate::SqlError;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use num_bigint::BigUint;
use plimsoll_model::record::ErrorKind;
use sha1::{Digest, Sha1};

/// Bytes of a hash.
const HASH: usize = 20;

/// Kinds of elements of DER.
mod kind {
    pub(super) const INTEGER: u8 = 0x02;
    pub(super) const BITS: u8 = 0x03;
    pub(super) const SEQUENCE: u8 = 0x30;
}

/// The public key of a server.
pub(super) struct PublicKey {
    modulus: BigUint,
    exponent: BigUint,
}

impl PublicKey {
    /// Reads what a server sends: a PEM text of a `SubjectPublicKeyInfo`.
    pub(super) fn read(pem: &[u8]) -> Result<PublicKey, SqlError> {
        parse(pem).ok_or_else(|| SqlError::protocol("expected a public key of RSA in PEM, found something else"))
    }

    /// Encrypts a message. `seed` is random, and used once.
    pub(super) fn encrypt(&self, message: &[u8], seed: [u8; HASH]) -> Result<Vec<u8>, SqlError> {
        let length = self.modulus.bits().div_ceil(8) as usize;
        let Some(zeros) = length.checked_sub(2 * HASH + 2 + message.len()) else {
            return Err(SqlError::new(ErrorKind::Denied, "the password is too long for the server's key"));
        };
        let mut block = [&Sha1::digest(b"")[..], &vec![0; zeros], &[1], message].concat();
        mask(&mut block, &seed);
        let mut seed = seed;
        mask(&mut seed, &block);
        let padded = BigUint::from_bytes_be(&[&[0], &seed[..], &block].concat());
        let encrypted = padded.modpow(&self.exponent, &self.modulus).to_bytes_be();
        Ok([vec![0; length - encrypted.len()], encrypted].concat())
    }
}

/// XORs `text` with the mask that MGF1 derives from `seed`.
fn mask(text: &mut [u8], seed: &[u8]) {
    for (part, number) in text.chunks_mut(HASH).zip(0_u32..) {
        let hash = Sha1::new().chain_update(seed).chain_update(number.to_be_bytes()).finalize();
        part.iter_mut().zip(hash).for_each(|(byte, other)| *byte ^= other);
    }
}

fn parse(pem: &[u8]) -> Option<PublicKey> {
    let lines = std::str::from_utf8(pem).ok()?.lines().filter(|line| !line.starts_with("-----"));
    let der = BASE64_STANDARD.decode(lines.collect::<String>()).ok()?;
    let mut info = element(&mut der.as_slice(), kind::SEQUENCE)?;
    let _algorithm = element(&mut info, kind::SEQUENCE)?;
    let mut bits = element(&mut info, kind::BITS)?.strip_prefix(&[0])?;
    let mut key = element(&mut bits, kind::SEQUENCE)?;
    let mut number = || element(&mut key, kind::INTEGER).map(BigUint::from_bytes_be);
    Some(PublicKey { modulus: number()?, exponent: number()? })
}

/// The content of the next DER element; none if it is of another kind.
fn element<'a>(input: &mut &'a [u8], kind: u8) -> Option<&'a [u8]> {
    let (&[found, first], rest) = input.split_first_chunk()?;
    let (length, rest) = match first {
        0..0x80 => (first.into(), rest),
        _ => {
            let (bytes, rest) = rest.split_at_checked((first & 0x7f).into())?;
            (bytes.iter().try_fold(0_usize, |length, byte| Some(length.checked_mul(256)? + usize::from(*byte)))?, rest)
        }
    };
    let (content, rest) = rest.split_at_checked(length)?;
    *input = rest;
    (found == kind).then_some(content)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PEM: &[u8] = b"-----BEGIN PUBLIC KEY-----\n\
        MIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQDWPSe82SeOCv0J0AA0IZWebgVf\n\
        iA3K0qsRl9ZxjHS7f3RkdPYGc77gszMKunQGYciffpn75jF2xS0rsBHXf9bpR5f/\n\
        NTWMurzvUgmfx4lL45TeFu1d8sGH8zQiJpZqbQTbAWZquqsAHH/tjmhMwY0Y7iWY\n\
        DE8Vb7i/RDs8Ji+U7QIDAQAB\n-----END PUBLIC KEY-----\n";

    /// Its private exponent.
    const PRIVATE: &[u8] = b"a08ff2e1412ab8f51951aa570cbb02e45af6a1f358cae27a9d53dbbefc125c979846d5b5b17e3bd731d6963ac94\
        c232af6062f27b00cf043b4a7e26c6cc2fdf035c9ea615f9ba4a79fd42e849f1460b60f580459ba1c11881fb170a791b2d42affc21f8f2833\
        52c3d32fa24d25b42cc100f4977d03e7cfd66c82402539f2e5e1";

    /// Undoes it as section 7.1.2 says.
    fn decrypt(encrypted: &[u8], key: &PublicKey) -> Vec<u8> {
        let private = BigUint::parse_bytes(PRIVATE, 16).unwrap();
        let padded = BigUint::from_bytes_be(encrypted).modpow(&private, &key.modulus).to_bytes_be();
        let (seed, block) = padded.split_at(padded.len() - (128 - 1 - HASH));
        let (mut seed, mut block) = ([vec![0; HASH - seed.len()], seed.to_vec()].concat(), block.to_vec());
        mask(&mut seed, &block);
        mask(&mut block, &seed);
        let rest = block.strip_prefix(&Sha1::digest(b"")[..]).expect("the hash of no label");
        let message = rest.iter().position(|byte| *byte == 1).expect("the end of the zeros");
        rest[message + 1..].to_vec()
    }

    #[test]
    fn who_has_the_private_key_reads_it() {
        let key = PublicKey::read(PEM).unwrap();
        for (message, seed) in [(&b""[..], [0; HASH]), (b"correct horse\0", [7; HASH]), (&[0xff; 86], [0xff; HASH])] {
            let encrypted = key.encrypt(message, seed).unwrap();
            assert_eq!(encrypted.len(), 128);
            assert_eq!(decrypt(&encrypted, &key), message);
        }
    }

    #[test]
    fn what_has_no_room_is_refused() {
        let key = PublicKey::read(PEM).unwrap();
        assert!(key.encrypt(&[1; 87], [0; HASH]).unwrap_err().detail.contains("too long"));
    }

    #[test]
    fn what_is_no_key_is_refused() {
        for text in [&b""[..], b"\xff", b"-----BEGIN PUBLIC KEY-----\nMIGfMA0GCSqG\n", b"MAA="] {
            assert!(PublicKey::read(text).is_err());
        }
    }

    proptest! {
        #[test]
        fn no_element_is_read_beyond_its_end(bytes in proptest::collection::vec(any::<u8>(), 0..20)) {
            let mut rest = bytes.as_slice();
            while element(&mut rest, kind::SEQUENCE).is_some() {}
            prop_assert!(rest.len() <= bytes.len());
        }
    }
}
