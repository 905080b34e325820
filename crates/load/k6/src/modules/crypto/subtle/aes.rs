//! AES in the modes CBC, CTR and GCM, with keys of 128, 192 or 256 bits.

use super::fault::Fault;
use aes::{Aes128, Aes192, Aes256};
use aes_gcm::AesGcm;
use aes_gcm::aead::consts::U12;
use aes_gcm::aead::{Aead, Payload};
use cbc::cipher::block_padding::Pkcs7;
use cbc::cipher::{BlockModeDecrypt, BlockModeEncrypt, KeyInit, KeyIvInit, StreamCipher};

/// A mode of AES.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    Cbc,
    Ctr,
    Gcm,
}

/// The parameters of GCM.
pub(super) struct Gcm<'a> {
    pub(super) iv: &'a [u8],
    pub(super) additional: &'a [u8],
    /// Bytes of the tag.
    pub(super) tag: usize,
}

/// Bytes of a whole tag of GCM.
const TAG: usize = 16;

/// Calls a function for the cipher that a key is for.
macro_rules! by_key {
    ($key:expr, $cipher:ident => $body:expr) => {
        match $key.len() {
            16 => {
                type $cipher = Aes128;
                $body
            }
            24 => {
                type $cipher = Aes192;
                $body
            }
            _ => {
                type $cipher = Aes256;
                $body
            }
        }
    };
}

/// True if a key may have so many bytes.
pub(super) fn is_key_length(bytes: usize) -> bool {
    [16, 24, 32].contains(&bytes)
}

pub(super) fn encrypt_cbc(key: &[u8], iv: &[u8], data: &[u8]) -> Result<Vec<u8>, Fault> {
    let wrong = |_| Fault::operation(format!("expected an `iv` of 16 bytes, found {}", iv.len()));
    by_key!(key, Aes => {
        let cipher = cbc::Encryptor::<Aes>::new_from_slices(key, iv).map_err(wrong)?;
        Ok(cipher.encrypt_padded_vec::<Pkcs7>(data))
    })
}

pub(super) fn decrypt_cbc(key: &[u8], iv: &[u8], data: &[u8]) -> Result<Vec<u8>, Fault> {
    let wrong = |_| Fault::operation(format!("expected an `iv` of 16 bytes, found {}", iv.len()));
    by_key!(key, Aes => {
        let cipher = cbc::Decryptor::<Aes>::new_from_slices(key, iv).map_err(wrong)?;
        let plain = cipher.decrypt_padded_vec::<Pkcs7>(data);
        plain.map_err(|_| Fault::operation("the data cannot be decrypted: another key or `iv` has encrypted it"))
    })
}

/// Encrypts or decrypts, which is the same.
pub(super) fn apply_ctr(key: &[u8], counter: &[u8], data: &[u8]) -> Result<Vec<u8>, Fault> {
    let wrong = |_| Fault::operation(format!("expected a `counter` of 16 bytes, found {}", counter.len()));
    let mut data = data.to_vec();
    by_key!(key, Aes => ctr::Ctr128BE::<Aes>::new_from_slices(key, counter).map_err(wrong)?.apply_keystream(&mut data));
    Ok(data)
}

pub(super) fn encrypt_gcm(key: &[u8], gcm: &Gcm<'_>, data: &[u8]) -> Result<Vec<u8>, Fault> {
    let mut encrypted = seal(key, gcm, data)?;
    encrypted.truncate(data.len() + gcm.tag);
    Ok(encrypted)
}

pub(super) fn decrypt_gcm(key: &[u8], gcm: &Gcm<'_>, data: &[u8]) -> Result<Vec<u8>, Fault> {
    let wrong = || Fault::operation("the data cannot be decrypted: another key, `iv` or text has encrypted it");
    let (encrypted, tag) = data.split_at_checked(data.len().saturating_sub(gcm.tag)).ok_or_else(wrong)?;
    if tag.len() < gcm.tag {
        return Err(wrong());
    }
    // The cipher is its own reverse. Tags may be shortened, so it is a whole one that is computed and compared.
    let mut plain = seal(key, gcm, encrypted)?;
    plain.truncate(encrypted.len());
    let right = seal(key, gcm, &plain)?;
    if right[encrypted.len()..][..gcm.tag] == *tag { Ok(plain) } else { Err(wrong()) }
}

/// Encrypts, with a whole tag at the end.
fn seal(key: &[u8], gcm: &Gcm<'_>, data: &[u8]) -> Result<Vec<u8>, Fault> {
    let wrong = || Fault::operation(format!("expected an `iv` of 12 bytes, found {}", gcm.iv.len()));
    let nonce: [u8; 12] = gcm.iv.try_into().map_err(|_| wrong())?;
    let payload = Payload { msg: data, aad: gcm.additional };
    let sealed = by_key!(key, Aes => {
        let cipher = AesGcm::<Aes, U12>::new_from_slice(key).map_err(|_| Fault::operation("the key has no fitting length"))?;
        cipher.encrypt(&nonce.into(), payload)
    });
    let sealed = sealed.map_err(|_| Fault::operation("there is too much data for AES-GCM"))?;
    debug_assert_eq!(sealed.len(), data.len() + TAG);
    Ok(sealed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hex::hex;

    fn bytes(hex: &str) -> Vec<u8> {
        (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).expect("hexadecimal")).collect()
    }

    /// NIST SP 800-38A, sections F.2 and F.5, of which the first block is taken.
    #[test]
    fn cbc_and_ctr_are_those_of_the_standard() {
        let (plain, iv) = (bytes("6bc1bee22e409f96e93d7e117393172a"), bytes("000102030405060708090a0b0c0d0e0f"));
        let counter = bytes("f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff");
        for (key, cbc, ctr) in [
            (
                "2b7e151628aed2a6abf7158809cf4f3c",
                "7649abac8119b246cee98e9b12e9197d",
                "874d6191b620e3261bef6864990db6ce",
            ),
            (
                "8e73b0f7da0e6452c810f32b809079e562f8ead2522c6b7b",
                "4f021db243bc633d7178183a9fa071e8",
                "1abc932417521ca24f2b0459fe7e6e0b",
            ),
            (
                "603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4",
                "f58c4c04d6e5f1ba779eabfb5f7bfbd6",
                "601ec313775789a5b7a7f504bbf3d228",
            ),
        ] {
            let key = bytes(key);
            let encrypted = encrypt_cbc(&key, &iv, &plain).expect("it fits");
            assert_eq!((hex(&encrypted[..16]).as_str(), encrypted.len()), (cbc, 32));
            assert_eq!(decrypt_cbc(&key, &iv, &encrypted).expect("it is right"), plain);
            assert_eq!(hex(&apply_ctr(&key, &counter, &plain).expect("it fits")), ctr);
        }
        assert!(encrypt_cbc(&iv, &iv[1..], &plain).is_err() && apply_ctr(&iv, &iv[1..], &plain).is_err());
        assert!(decrypt_cbc(&iv, &iv, &plain).is_err());
    }

    /// Test case 4 of "The Galois/Counter Mode of Operation" (McGrew and Viega).
    #[test]
    fn gcm_is_that_of_its_paper_with_tags_of_any_length() {
        let key = bytes("feffe9928665731c6d6a8f9467308308");
        let (iv, additional) = (bytes("cafebabefacedbaddecaf888"), bytes("feedfacedeadbeeffeedfacedeadbeefabaddad2"));
        let plain = bytes(
            "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a721c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39",
        );
        for tag in [16, 14, 12] {
            let gcm = Gcm { iv: &iv, additional: &additional, tag };
            let encrypted = encrypt_gcm(&key, &gcm, &plain).expect("it fits");
            assert!(hex(&encrypted).starts_with("42831ec2217774244b7221b784d0d49ce3aa212f2c02a4e035c17e2329aca12e"));
            assert_eq!(hex(&encrypted[plain.len()..]), "5bc94fbc3221a5db94fae95ae7121a47"[..tag * 2]);
            assert_eq!(decrypt_gcm(&key, &gcm, &encrypted).expect("it is right"), plain);
            let mut damaged = encrypted;
            damaged[3] ^= 1;
            assert!(decrypt_gcm(&key, &gcm, &damaged).is_err() && decrypt_gcm(&key, &gcm, &damaged[..5]).is_err());
        }
    }
}
