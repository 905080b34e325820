//! Text that nobody can guess: for passwords, keys, and names that no other run has.

use std::fs::File;
use std::io::{self, Read};

/// Letters and digits from the operating system's own source: not from the study's seed, which
/// everybody knows.
///
/// # Errors
/// The machine gives no random numbers.
pub fn random_text(length: usize) -> io::Result<String> {
    let mut bytes = vec![0_u8; length];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    // 32 of them, so that each is as likely as the others.
    let letters = b"ABCDEFGHJKLMNPQRSTUVWXYZ23456789";
    Ok(bytes.iter().map(|byte| char::from(letters[usize::from(byte % 32)])).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_texts_are_alike() {
        let texts = [random_text(40).unwrap(), random_text(40).unwrap()];
        assert_ne!(texts[0], texts[1]);
        assert!(texts.iter().all(|text| text.len() == 40 && text.chars().all(|c| c.is_ascii_alphanumeric())));
    }
}
