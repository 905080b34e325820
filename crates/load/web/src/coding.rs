//! Content codings: RFC 9110, section 8.4, with a limit on the decoded size.

use brotli_decompressor::Decompressor;
use flate2::Compression;
use flate2::bufread::{DeflateDecoder, GzEncoder, MultiGzDecoder, ZlibDecoder, ZlibEncoder};
use ruzstd::decoding::{FrameDecoder, StreamingDecoder};
use std::fmt;
use std::io::{self, Read};

/// A content coding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Coding {
    /// `gzip`: RFC 1952.
    Gzip,
    /// `deflate`: RFC 1951 inside of RFC 1950.
    Deflate,
    /// `br`: RFC 7932.
    Brotli,
    /// `zstd`: RFC 8878.
    Zstd,
}

/// Why a body cannot be decoded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CodingFault {
    /// An unknown coding.
    #[error("expected a body in `gzip`, `deflate`, `br` or `zstd`, found the content coding `{0}`")]
    Unknown(String),
    /// The decoded body exceeds the limit.
    #[error("expected at most {limit} bytes in a decoded body, found more ({coding})")]
    TooLarge {
        /// Its coding.
        coding: Coding,
        /// The limit in bytes.
        limit: usize,
    },
    /// The body is cut off, or in another coding.
    #[error("expected a body in `{coding}`, found something else: {why}")]
    Damaged {
        /// The expected coding.
        coding: Coding,
        /// The error of the decoder.
        why: String,
    },
}

impl Coding {
    /// All codings that can be decoded.
    pub const ALL: [Coding; 4] = [Coding::Gzip, Coding::Deflate, Coding::Brotli, Coding::Zstd];

    /// Its name in headers.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Coding::Gzip => "gzip",
            Coding::Deflate => "deflate",
            Coding::Brotli => "br",
            Coding::Zstd => "zstd",
        }
    }

    /// The coding of a name in upper or lower case; `x-gzip` is `gzip` (RFC 9110, section 8.4.1.3).
    #[must_use]
    pub fn named(name: &str) -> Option<Coding> {
        let name = if name.eq_ignore_ascii_case("x-gzip") { "gzip" } else { name };
        Coding::ALL.into_iter().find(|coding| coding.name().eq_ignore_ascii_case(name))
    }

    /// The codings of a header `Content-Encoding`, in the order in which they were applied.
    pub fn read_list(header: &str) -> Result<Vec<Coding>, CodingFault> {
        let names = header.split(',').map(|name| name.trim_matches([' ', '\t']));
        let named = names.filter(|name| !name.is_empty() && !name.eq_ignore_ascii_case("identity"));
        named.map(|name| Coding::named(name).ok_or_else(|| CodingFault::Unknown(name.to_owned()))).collect()
    }
}

impl fmt::Display for Coding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Decodes a body to which these codings were applied, one after the other. No intermediate result
/// has more than `limit` bytes. An empty body, such as that of a reply to HEAD, stays empty.
pub fn decode(body: Vec<u8>, applied: &[Coding], limit: usize) -> Result<Vec<u8>, CodingFault> {
    if body.is_empty() {
        return Ok(body);
    }
    applied.iter().rev().try_fold(body, |body, coding| decode_one(&body, *coding, limit))
}

fn decode_one(body: &[u8], coding: Coding, limit: usize) -> Result<Vec<u8>, CodingFault> {
    match coding {
        Coding::Gzip => read(MultiGzDecoder::new(body), coding, limit),
        Coding::Deflate if is_zlib(body) => read(ZlibDecoder::new(body), coding, limit),
        // Some servers omit the format of RFC 1950 (RFC 9110, section 8.4.1.2).
        Coding::Deflate => read(DeflateDecoder::new(body), coding, limit),
        Coding::Brotli => read(Decompressor::new(body, 4096), coding, limit),
        Coding::Zstd => read(ZstdFrames { rest: Some(body), frame: None }, coding, limit),
    }
}

/// The largest window of a frame in zstd, in bytes: what a coding of HTTP may have (RFC 9659).
const ZSTD_WINDOW: u64 = 8 << 20;

/// Frames of zstd, one after the other.
struct ZstdFrames<'a> {
    /// What comes after the present frame; none while there is one.
    rest: Option<&'a [u8]>,
    frame: Option<StreamingDecoder<&'a [u8], FrameDecoder>>,
}

impl Read for ZstdFrames<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            if let Some(rest) = self.rest.take_if(|rest| !rest.is_empty()) {
                let frame = StreamingDecoder::new_with_max_window_size(rest, ZSTD_WINDOW).map_err(io::Error::other)?;
                self.frame = Some(frame);
            }
            let Some(frame) = &mut self.frame else { return Ok(0) };
            let taken = frame.read(into)?;
            if taken > 0 || into.is_empty() {
                return Ok(taken);
            }
            self.rest = self.frame.take().map(StreamingDecoder::into_inner);
        }
    }
}

/// RFC 1950, section 2.2: the method is 8, and the first two bytes are a multiple of 31.
fn is_zlib(body: &[u8]) -> bool {
    matches!(body, [cmf, flags, ..] if cmf & 0x0f == 8 && u16::from_be_bytes([*cmf, *flags]) % 31 == 0)
}

/// The room for a decoded body at first, in bytes.
const FIRST: usize = 8 * 1024;

fn read(mut decoder: impl Read, coding: Coding, limit: usize) -> Result<Vec<u8>, CodingFault> {
    let mut out = Vec::new();
    // What is kept doubles, but never takes more than the limit and a byte.
    while out.len() <= limit {
        let more = out.len().max(FIRST).min(limit.saturating_add(1) - out.len());
        out.reserve_exact(more);
        let taken = decoder.by_ref().take(more as u64).read_to_end(&mut out);
        if taken.map_err(|error| CodingFault::Damaged { coding, why: error.to_string() })? < more {
            return Ok(out);
        }
    }
    Err(CodingFault::TooLarge { coding, limit })
}

/// Encodes a body; `None` for codings that can only be decoded here.
#[must_use]
pub fn encode(body: &[u8], coding: Coding) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    let read = match coding {
        Coding::Gzip => GzEncoder::new(body, Compression::default()).read_to_end(&mut out),
        Coding::Deflate => ZlibEncoder::new(body, Compression::default()).read_to_end(&mut out),
        Coding::Brotli | Coding::Zstd => return None,
    };
    read.ok().map(|_| out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::bufread::DeflateEncoder;
    use proptest::prelude::*;

    const TEXT: &[u8] = b"the same text, and the same text again";

    /// The text, as the reference encoder writes it.
    const BROTLI: [u8; 22] = [
        0x1b, 0x25, 0x00, 0x18, 0xa5, 0x41, 0xca, 0xe8, 0xf0, 0xe4, 0x21, 0x8b, 0x80, 0x93, 0x90, 0xb0, 0x88, 0xa0,
        0x2d, 0x0f, 0x50, 0x1c,
    ];

    const ZSTD: [u8; 40] = [
        0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x68, 0xfd, 0x00, 0x00, 0xc8, 0x74, 0x68, 0x65, 0x20, 0x73, 0x61, 0x6d, 0x65,
        0x20, 0x74, 0x65, 0x78, 0x74, 0x2c, 0x20, 0x61, 0x6e, 0x64, 0x20, 0x20, 0x61, 0x67, 0x61, 0x69, 0x6e, 0x01,
        0x00, 0xed, 0x98, 0x61,
    ];

    fn decoded(body: &[u8], codings: &str, limit: usize) -> Result<Vec<u8>, CodingFault> {
        decode(body.to_vec(), &Coding::read_list(codings)?, limit)
    }

    fn encoded(body: &[u8], coding: Coding) -> Vec<u8> {
        encode(body, coding).expect("gzip and deflate can be encoded")
    }

    #[test]
    fn headers_name_codings() {
        let list = |header| Coding::read_list(header);
        assert_eq!(list("gzip, BR"), Ok(vec![Coding::Gzip, Coding::Brotli]));
        assert_eq!(list("x-gzip ,deflate,, identity"), Ok(vec![Coding::Gzip, Coding::Deflate]));
        assert_eq!(list(""), Ok(vec![]));
        assert_eq!(list("gzip, zstd"), Ok(vec![Coding::Gzip, Coding::Zstd]));
        assert_eq!(list("gzip, compress"), Err(CodingFault::Unknown("compress".to_owned())));
    }

    #[test]
    fn each_coding_is_undone() {
        let body = TEXT;
        let (gzip, zlib) = (encoded(body, Coding::Gzip), encoded(body, Coding::Deflate));
        assert_eq!(decoded(&gzip, "gzip", 100).as_deref(), Ok(body));
        assert_eq!(decoded(&[gzip.clone(), gzip].concat(), "gzip", 100), Ok(body.repeat(2)), "two members");
        assert_eq!(decoded(&zlib, "deflate", 100).as_deref(), Ok(body));
        let mut bare = Vec::new();
        DeflateEncoder::new(body, Compression::default()).read_to_end(&mut bare).expect("memory can be read");
        assert_eq!(decoded(&bare, "deflate", 100).as_deref(), Ok(body));
        assert_eq!(decoded(&BROTLI, "br", 100).as_deref(), Ok(TEXT));
        assert_eq!(decoded(&ZSTD, "zstd", 100).as_deref(), Ok(TEXT));
        assert_eq!(decoded(&[ZSTD, ZSTD].concat(), "zstd", 100), Ok(TEXT.repeat(2)), "two frames");
        assert_eq!([Coding::Brotli, Coding::Zstd].map(|coding| encode(body, coding)), [None, None]);
    }

    #[test]
    fn the_last_coding_is_undone_first() {
        let twice = encoded(&encoded(b"body", Coding::Deflate), Coding::Gzip);
        assert_eq!(decoded(&twice, "deflate, gzip", 100).as_deref(), Ok(b"body".as_slice()));
        assert!(decoded(&twice, "gzip, deflate", 100).is_err());
    }

    #[test]
    fn a_body_that_is_not_coded_as_it_says_is_a_fault() {
        let gzip = encoded(b"body", Coding::Gzip);
        for (body, coding) in [
            (&gzip[..gzip.len() - 1], "gzip"),
            (b"plain".as_slice(), "gzip"),
            (b"plain", "deflate"),
            (b"plain", "br"),
            (&BROTLI[..12], "br"),
            (b"plain", "zstd"),
            (&ZSTD[..12], "zstd"),
        ] {
            let found = decoded(body, coding, 100);
            assert!(matches!(found, Err(CodingFault::Damaged { .. })), "{coding}: {found:?}");
        }
        assert_eq!(decoded(b"", "gzip", 0).as_deref(), Ok([].as_slice()), "a reply to HEAD");
    }

    #[test]
    fn a_bomb_is_refused() {
        let zeros = vec![0; 10 << 20];
        for coding in [Coding::Gzip, Coding::Deflate] {
            let bomb = encoded(&zeros, coding);
            assert_eq!(decode(bomb, &[coding], 1000), Err(CodingFault::TooLarge { coding, limit: 1000 }));
        }
        for (coding, body) in [(Coding::Brotli, BROTLI.to_vec()), (Coding::Zstd, ZSTD.to_vec())] {
            assert_eq!(decode(body, &[coding], 30), Err(CodingFault::TooLarge { coding, limit: 30 }));
        }
    }

    #[test]
    fn a_decoded_body_takes_no_more_memory_than_its_limit() {
        for length in [0, 1, FIRST - 1, FIRST, FIRST + 1, 100_000, 1 << 20] {
            let body = vec![7; length];
            for limit in [length, length + 1, length + length / 3] {
                let found =
                    decode(encoded(&body, Coding::Gzip), &[Coding::Gzip], limit).expect("it is within the limit");
                assert!(found == body && found.capacity() <= limit + 1, "{length} of {limit}: {}", found.capacity());
            }
        }
    }

    proptest! {
        #[test]
        fn decoding_never_exceeds_its_bound(
            body in prop::collection::vec(any::<u8>(), 0..300),
            repeats in 1_usize..40,
            gzip in any::<bool>(),
            limit in 0_usize..4000,
        ) {
            let coding = if gzip { Coding::Gzip } else { Coding::Deflate };
            let body = body.repeat(repeats);
            match decode(encoded(&body, coding), &[coding], limit) {
                Ok(found) => prop_assert!(found.len() <= limit && found == body),
                Err(fault) => {
                    prop_assert!(body.len() > limit);
                    prop_assert_eq!(fault, CodingFault::TooLarge { coding, limit });
                }
            }
        }

        #[test]
        fn no_bytes_break_a_decoder(body in prop::collection::vec(any::<u8>(), 0..200)) {
            for coding in Coding::ALL {
                if let Ok(found) = decode(body.clone(), &[coding], 1000) {
                    prop_assert!(found.len() <= 1000);
                }
            }
        }
    }
}
