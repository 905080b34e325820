//! The hashes of `crypto.subtle`.

use super::super::hash;
use super::fault::Fault;

/// A hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HashName {
    Sha1,
    Sha256,
    Sha384,
    Sha512,
}

/// Calls a function for the type of a hash.
macro_rules! by_hash {
    ($hash:expr, $digest:ident => $body:expr) => {
        match $hash {
            $crate::modules::crypto::subtle::hash_name::HashName::Sha1 => {
                type $digest = sha1::Sha1;
                $body
            }
            $crate::modules::crypto::subtle::hash_name::HashName::Sha256 => {
                type $digest = sha2::Sha256;
                $body
            }
            $crate::modules::crypto::subtle::hash_name::HashName::Sha384 => {
                type $digest = sha2::Sha384;
                $body
            }
            $crate::modules::crypto::subtle::hash_name::HashName::Sha512 => {
                type $digest = sha2::Sha512;
                $body
            }
        }
    };
}
pub(super) use by_hash;

impl HashName {
    /// All of them, with their names in `crypto.subtle` and in `k6/crypto`.
    const ALL: [(HashName, &str, &str); 4] = [
        (HashName::Sha1, "SHA-1", "sha1"),
        (HashName::Sha256, "SHA-256", "sha256"),
        (HashName::Sha384, "SHA-384", "sha384"),
        (HashName::Sha512, "SHA-512", "sha512"),
    ];

    /// The hash of a name.
    pub(super) fn parse(name: &str) -> Result<HashName, Fault> {
        let found = HashName::ALL.into_iter().find(|(_, web, _)| web.eq_ignore_ascii_case(name));
        found.map(|(hash, ..)| hash).ok_or_else(|| {
            Fault::unsupported(format!("expected the hash SHA-1, SHA-256, SHA-384 or SHA-512, found `{name}`"))
        })
    }

    /// `SHA-256`
    pub(super) fn name(self) -> &'static str {
        HashName::ALL[self as usize].1
    }

    /// Bytes of a block, which is how long a new key for HMAC is.
    pub(super) fn block(self) -> usize {
        match self {
            HashName::Sha1 | HashName::Sha256 => 64,
            HashName::Sha384 | HashName::Sha512 => 128,
        }
    }

    pub(super) fn digest(self, data: &[u8]) -> Vec<u8> {
        let mut hash = hash::hash(HashName::ALL[self as usize].2).expect("each has its name there");
        hash.update(data);
        hash.value()
    }

    pub(super) fn hmac(self, secret: &[u8], data: &[u8]) -> Vec<u8> {
        let mut hash = hash::hmac(HashName::ALL[self as usize].2, secret).expect("each has its name there");
        hash.update(data);
        hash.value()
    }
}
