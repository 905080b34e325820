//! A number for what a load makes. Data that was kept is told from what would be loaded now by a number alone
//! (`SCHEMA` in `plimsoll-database`), which has to be raised when a load makes something else: tests hold
//! the fingerprint of each dataset to what it was.

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
