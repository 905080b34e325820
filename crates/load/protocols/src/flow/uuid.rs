//! UUIDs that users send: random ones, and those by which deliveries are known.

use memchr::memmem;
use std::fmt;

/// RFC 9562, section 5.4: 122 bits, version and variant.
pub(super) fn random_uuid(bits: u128) -> String {
    uuid_text(mixed(bits) & !(0xf << 76) & !(0b11 << 62) | 4 << 76 | 0b10 << 62)
}

/// The text of a UUID of these bits.
fn uuid_text(bits: u128) -> String {
    let hex = format!("{bits:032x}");
    [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-")
}

/// Two rounds of SplitMix64's finalizer over both halves, each combined with the other. Different inputs
/// stay different.
fn mixed(bits: u128) -> u128 {
    let mix = |z: u64| {
        let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    };
    let (mut high, mut low) = ((bits >> 64) as u64, bits as u64);
    for _ in 0..2 {
        low ^= mix(high.wrapping_add(0x9e37_79b9_7f4a_7c15));
        high ^= mix(low.wrapping_add(0x9e37_79b9_7f4a_7c15));
    }
    u128::from(high) << 64 | u128::from(low)
}

/// The bits of a number that count the requests of its user; those above are the user.
const REQUEST_BITS: u32 = 34;

/// The length of the text that all numbers of a run begin with, and of a number as a whole.
const PREFIX: usize = 19;
const TEXT: usize = 36;

/// The number of what a request carries, different for each in all users and runs. Its text is a UUID (RFC 9562, version
/// 4), whose first half tells the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MessageNumber {
    run: u64,
    number: u64,
}

impl MessageNumber {
    /// The number of what this request of a user carries, in the run that began at this time.
    pub(super) fn new(run: u64, user: u64, request: u64) -> MessageNumber {
        let number = user << REQUEST_BITS | request & ((1 << REQUEST_BITS) - 1);
        MessageNumber { run, number: number & !(0b11 << 62) }
    }

    /// Different for each request of a run.
    pub(super) fn bits(self) -> u64 {
        self.number
    }
}

impl fmt::Display for MessageNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let high = self.run.wrapping_mul(0x9e37_79b9_7f4a_7c15) & !(0xf << 12) | 4 << 12;
        f.write_str(&uuid_text(u128::from(high) << 64 | u128::from(0b10_u64 << 62 | self.number)))
    }
}

/// Finds the numbers of a run in messages.
pub(super) struct NumberFinder {
    prefix: memmem::Finder<'static>,
}

impl NumberFinder {
    pub(super) fn new(run: u64) -> NumberFinder {
        let text = MessageNumber::new(run, 0, 0).to_string();
        NumberFinder { prefix: memmem::Finder::new(&text[..PREFIX]).into_owned() }
    }

    /// Each number in a message once, however often it stands there.
    pub(super) fn find(&self, message: &[u8]) -> Vec<u64> {
        let mut found = Vec::new();
        for at in self.prefix.find_iter(message) {
            if let Some(number) = message.get(at + PREFIX..at + TEXT).and_then(number)
                && !found.contains(&number)
            {
                found.push(number);
            }
        }
        found
    }
}

/// The number in the second half of a UUID: `xxxx-xxxxxxxxxxxx`.
fn number(text: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(text).ok()?;
    let (high, low) = text.split_once('-').filter(|(high, _)| high.len() == 4)?;
    let bits = u64::from_str_radix(high, 16).ok()? << 48 | u64::from_str_radix(low, 16).ok()?;
    Some(bits & !(0b11 << 62))
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUN: u64 = 1_795_700_000_123_456_789;

    fn number_of(user: u64, request: u64) -> MessageNumber {
        MessageNumber::new(RUN, user, request)
    }

    #[test]
    fn a_number_is_found_wherever_it_stands_and_once_in_a_message() {
        let finder = NumberFinder::new(RUN);
        for (user, request) in [(0, 0), (0, 1), (1, 0), ((1 << 28) - 1, (1 << 34) - 1), (20_000, 77)] {
            let text = number_of(user, request).to_string();
            assert!(
                text.len() == TEXT && text.as_bytes()[14] == b'4' && b"89ab".contains(&text.as_bytes()[19]),
                "{text}"
            );
            let message = format!(r#"{{"post":"{{\"pending\":\"{text}\"}}","again":"{text}"}}"#);
            assert_eq!(finder.find(message.as_bytes()), [number_of(user, request).number], "{message}");
        }
        let other_run = MessageNumber::new(RUN + 1, 3, 4).to_string();
        let own = number_of(3, 4).to_string();
        for message in [other_run.as_str(), &own[..35], &own[1..], "", &own.replace('-', "_")] {
            assert!(finder.find(message.as_bytes()).is_empty(), "{message}");
        }
    }
}
