//! Bits that are derived from a secret: PBKDF2 (RFC 8018) and HKDF (RFC 5869).

use super::fault::Fault;
use super::hash_name::{HashName, by_hash};

/// The most rounds of PBKDF2, over all hashes of the result together: nothing can interrupt them, and so many take a few seconds.
const MOST_ROUNDS: u64 = 10_000_000;

pub(super) fn pbkdf2(
    hash: HashName,
    password: &[u8],
    salt: &[u8],
    rounds: u32,
    length: usize,
) -> Result<Vec<u8>, Fault> {
    if rounds == 0 {
        return Err(Fault::operation("expected at least 1 as `iterations`, found 0"));
    }
    let hashes = length.div_ceil(by_hash!(hash, Digest => <Digest as sha2::Digest>::output_size())).max(1) as u64;
    if u64::from(rounds) * hashes > MOST_ROUNDS {
        let most = MOST_ROUNDS / hashes;
        return Err(Fault::operation(format!(
            "expected at most {most} as `iterations` for {length} bytes, found {rounds}"
        )));
    }
    let mut bits = vec![0; length];
    by_hash!(hash, Digest => pbkdf2::pbkdf2_hmac::<Digest>(password, salt, rounds, &mut bits));
    Ok(bits)
}

pub(super) fn hkdf(hash: HashName, secret: &[u8], salt: &[u8], info: &[u8], length: usize) -> Result<Vec<u8>, Fault> {
    let mut bits = vec![0; length];
    let expanded = by_hash!(hash, Digest => hkdf::Hkdf::<Digest>::new(Some(salt), secret).expand(info, &mut bits));
    expanded.map_err(|_| Fault::operation(format!("HKDF gives at most 255 hashes, not {length} bytes")))?;
    Ok(bits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hex::hex;

    /// RFC 6070, test cases 1 and 2.
    #[test]
    fn pbkdf2_is_that_of_its_standard() {
        let derived =
            |rounds, length| hex(&pbkdf2(HashName::Sha1, b"password", b"salt", rounds, length).expect("it fits"));
        assert_eq!(derived(1, 20), "0c60c80f961f0e71f3a9b524af6012062fe037a6");
        assert_eq!(derived(2, 20), "ea6c014dc72d6f8ccd1ed92ace1d41f0d8de8957");
        assert_eq!(derived(2, 4), "ea6c014d");
        assert!(pbkdf2(HashName::Sha1, b"", b"", 0, 1).is_err());
        let too_many = pbkdf2(HashName::Sha256, b"", b"", 4_000_000_000, 64).expect_err("too many rounds");
        assert!(format!("{too_many:?}").contains("at most 5000000 as `iterations` for 64 bytes"), "{too_many:?}");
    }

    /// RFC 5869, test case 1.
    #[test]
    fn hkdf_is_that_of_its_standard() {
        let salt: Vec<u8> = (0..=0x0c).collect();
        let info: Vec<u8> = (0xf0..=0xf9).collect();
        let derived = hkdf(HashName::Sha256, &[0x0b; 22], &salt, &info, 42).expect("it fits");
        assert_eq!(
            hex(&derived),
            "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865"
        );
        assert!(hkdf(HashName::Sha256, b"", b"", b"", 255 * 32 + 1).is_err());
    }
}
