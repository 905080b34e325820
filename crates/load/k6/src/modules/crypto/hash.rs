//! Hashes and HMACs by name.

use hmac::{Hmac, KeyInit};
use md4::Md4;
use md5::Md5;
use ripemd::Ripemd160;
use sha1::Sha1;
use sha2::digest::{FixedOutput, Update};
use sha2::{Sha256, Sha384, Sha512, Sha512_224, Sha512_256};

/// A hash or an HMAC that is being computed.
pub(crate) trait Hash {
    /// Adds bytes.
    fn update(&mut self, data: &[u8]);

    /// The value so far; more bytes may follow.
    fn value(&self) -> Vec<u8>;
}

impl<D: Update + FixedOutput + Clone> Hash for D {
    fn update(&mut self, data: &[u8]) {
        Update::update(self, data);
    }

    fn value(&self) -> Vec<u8> {
        self.clone().finalize_fixed().to_vec()
    }
}

/// Selects the algorithm by its name in k6.
macro_rules! by_name {
    ($name:expr, $make:ident) => {
        match $name {
            "md4" => $make!(Md4),
            "md5" => $make!(Md5),
            "sha1" => $make!(Sha1),
            "sha256" => $make!(Sha256),
            "sha384" => $make!(Sha384),
            "sha512" => $make!(Sha512),
            "sha512_224" => $make!(Sha512_224),
            "sha512_256" => $make!(Sha512_256),
            "ripemd160" => $make!(Ripemd160),
            _ => return None,
        }
    };
}

/// The names of all hashes.
pub(crate) const NAMES: [&str; 9] =
    ["md4", "md5", "sha1", "sha256", "sha384", "sha512", "sha512_224", "sha512_256", "ripemd160"];

/// The hash of this name.
pub(crate) fn hash(name: &str) -> Option<Box<dyn Hash>> {
    macro_rules! make {
        ($algorithm:ty) => {
            Box::new(<$algorithm>::default())
        };
    }
    Some(by_name!(name, make))
}

/// The HMAC with the hash of this name.
pub(crate) fn hmac(name: &str, key: &[u8]) -> Option<Box<dyn Hash>> {
    macro_rules! make {
        ($algorithm:ty) => {
            Box::new(Hmac::<$algorithm>::new_from_slice(key).expect("a key of any length will do"))
        };
    }
    Some(by_name!(name, make))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hex::hex;

    fn hashed(name: &str, text: &str) -> String {
        let mut hash = hash(name).expect("a known name");
        hash.update(text.as_bytes());
        hex(&hash.value())
    }

    /// RFC 1320, RFC 1321, FIPS 180-4 (with NIST's examples), and the page of RIPEMD-160: "abc".
    #[test]
    fn hashes_are_those_of_their_standards() {
        for (name, value) in [
            ("md4", "a448017aaf21d8525fc10ae87aa6729d"),
            ("md5", "900150983cd24fb0d6963f7d28e17f72"),
            ("sha1", "a9993e364706816aba3e25717850c26c9cd0d89d"),
            ("sha256", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
            (
                "sha384",
                "cb00753f45a35e8bb5a03d699ac65007272c32ab0eded1631a8b605a43ff5bed8086072ba1e7cc2358baeca134c825a7",
            ),
            (
                "sha512",
                "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a\
                 2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f",
            ),
            ("sha512_224", "4634270f707b6a54daae7530460842e20e37ed265ceee9a43e8924aa"),
            ("sha512_256", "53048e2681941ef99b2e29b76b4c7dabe4c2d0c634fc6d46e0e2f13107e7af23"),
            ("ripemd160", "8eb208f7e05d987a9b044a8e98c6b087f15a0bfc"),
        ] {
            assert_eq!(hashed(name, "abc"), value, "{name}");
        }
        assert_eq!(NAMES.map(|name| hash(name).is_some()), [true; 9]);
        assert!(hash("sha3").is_none());
    }

    /// RFC 2202 and RFC 4231, test case 2.
    #[test]
    fn hmacs_are_those_of_their_standards() {
        for (name, value) in [
            ("md5", "750c783e6ab0b503eaa86e310a5db738"),
            ("sha1", "effcdf6ae5eb2fa2d27416d5f184df9c259a7c79"),
            ("sha256", "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"),
            (
                "sha384",
                "af45d2e376484031617f78d2b58a6b1b9c7ef464f5a01b47e42ec3736322445e8e2240ca5e69e2c78b3239ecfab21649",
            ),
        ] {
            let mut hmac = hmac(name, b"Jefe").expect("a known name");
            hmac.update(b"what do ya want ");
            let early = hmac.value();
            hmac.update(b"for nothing?");
            assert_eq!(hex(&hmac.value()), value, "{name}");
            assert_ne!(hex(&early), value);
        }
        assert!(hmac("sha3", b"").is_none());
    }
}
