//! The Huffman code of HPACK (RFC 7541, appendix B).
//!
//! The code is canonical: symbols sorted by length, then by value, have consecutive codes. So the table
//! is just the lengths, and decoding goes bit by bit. A table of states would be faster, but is not
//! needed: a repeated header is an index into the dynamic table, and is decoded once per connection.

use plimsoll_engine::protocol::Violation;

/// The length in bits of each symbol's code; the last is the end-of-string symbol.
const LENGTHS: [u8; 257] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28,
    28, 28, 28, 6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6, 5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12,
    10, 13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6, 15, 5, 6,
    5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5, 6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28, 20, 22, 20, 20, 22, 22,
    22, 23, 22, 23, 23, 23, 23, 23, 24, 23, 24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24, 22, 21, 20,
    22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23, 21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
    26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25, 19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28,
    27, 27, 27, 20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23, 26, 27, 26, 26, 27, 27, 27, 27, 27, 28,
    27, 27, 27, 27, 27, 26, 30,
];

const LONGEST: usize = 30;
const END_OF_STRING: u16 = 256;

/// Symbols by code, made from [`LENGTHS`] at compile time.
struct Codes {
    /// For each length, the first code and the number of codes.
    first: [u32; LONGEST + 1],
    count: [u32; LONGEST + 1],
    /// For each length, where its symbols begin in `symbols`.
    begin: [usize; LONGEST + 1],
    symbols: [u16; LENGTHS.len()],
}

static CODES: Codes = codes();

const fn codes() -> Codes {
    let mut codes = Codes {
        first: [0; LONGEST + 1],
        count: [0; LONGEST + 1],
        begin: [0; LONGEST + 1],
        symbols: [0; LENGTHS.len()],
    };
    let (mut length, mut next, mut code) = (1, 0, 0_u32);
    while length <= LONGEST {
        codes.first[length] = code;
        codes.begin[length] = next;
        let mut symbol = 0;
        while symbol < LENGTHS.len() {
            if LENGTHS[symbol] as usize == length {
                codes.symbols[next] = symbol as u16;
                codes.count[length] += 1;
                next += 1;
                code += 1;
            }
            symbol += 1;
        }
        code <<= 1;
        length += 1;
    }
    codes
}

/// Decodes a string, appending it to `text`.
pub(super) fn decode(bytes: &[u8], text: &mut Vec<u8>) -> Result<(), Violation> {
    let (mut code, mut length) = (0_u32, 0_usize);
    for bit in bytes.iter().flat_map(|byte| (0..8).rev().map(move |shift| u32::from(byte >> shift & 1))) {
        code = code << 1 | bit;
        length += 1;
        if length > LONGEST {
            return Err(Violation::new("expected a Huffman code of HPACK, found none that long"));
        }
        let offset = code.wrapping_sub(CODES.first[length]);
        if code >= CODES.first[length] && offset < CODES.count[length] {
            match CODES.symbols[CODES.begin[length] + offset as usize] {
                END_OF_STRING => return Err(Violation::new("expected no end-of-string symbol inside a header")),
                symbol => text.push(symbol as u8),
            }
            (code, length) = (0, 0);
        }
    }
    // The rest must be the beginning of the end-of-string code: up to seven ones.
    let padded = length < 8 && code == (1 << length) - 1;
    if padded { Ok(()) } else { Err(Violation::new("expected a header padded with ones, found other padding")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(bytes: &[u8]) -> Result<String, Violation> {
        let mut text = Vec::new();
        decode(bytes, &mut text).map(|()| String::from_utf8_lossy(&text).into_owned())
    }

    /// The encoded strings of RFC 7541, appendices C.4 and C.6.
    #[test]
    fn the_examples_of_the_rfc_decode() {
        let examples: [(&[u8], &str); 4] = [
            (&[0xf1, 0xe3, 0xc2, 0xe5, 0xf2, 0x3a, 0x6b, 0xa0, 0xab, 0x90, 0xf4, 0xff], "www.example.com"),
            (&[0xa8, 0xeb, 0x10, 0x64, 0x9c, 0xbf], "no-cache"),
            (&[0x64, 0x02], "302"),
            (&[0xae, 0xc3, 0x77, 0x1a, 0x4b], "private"),
        ];
        for (bytes, text) in examples {
            assert_eq!(decoded(bytes).as_deref(), Ok(text));
        }
    }

    #[test]
    fn bad_padding_and_the_end_of_string_are_refused() {
        assert!(decoded(&[0x00]).is_err(), "a zero, padded with zeros");
        assert!(decoded(&[0xff, 0xff]).is_err(), "more than seven bits of padding");
        assert!(decoded(&[0xff, 0xff, 0xff, 0xfc]).is_err(), "the end-of-string symbol itself");
    }
}
