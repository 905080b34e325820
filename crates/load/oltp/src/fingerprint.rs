//! A fingerprint of the data that a load makes.
//!
//! Kept data and data of the current version differ by a number alone (`SCHEMA` in `plimsoll-database`),
//! which must be raised whenever a load makes other data. Tests compare the fingerprint of each dataset
//! with the known one, so that nobody forgets.

/// FNV-1a, of 64 bits.
pub(crate) struct Fingerprint(u64);

impl Fingerprint {
    pub(crate) fn new() -> Fingerprint {
        Fingerprint(0xcbf2_9ce4_8422_2325)
    }

    pub(crate) fn add(&mut self, text: &str) {
        for byte in text.bytes().chain([0]) {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        }
    }

    #[track_caller]
    pub(crate) fn assert_is(&self, expected: u64) {
        let found = self.0;
        assert_eq!(
            found, expected,
            "raise `SCHEMA` in crates/run/database/src/data_folder.rs, and expect {found:#x} here"
        );
    }
}
