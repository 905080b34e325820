//! Compression of messages by `permessage-deflate` (RFC 7692, section 7.2), without context takeover.

use super::{Violation, too_large};
use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};

/// The end of a flushed block, which is not sent.
const TAIL: [u8; 4] = [0, 0, 0xff, 0xff];

/// Compresses a message.
pub(super) fn compress(message: &[u8]) -> Vec<u8> {
    let mut deflate = Compress::new(Compression::fast(), false);
    let mut out = Vec::with_capacity(message.len() / 2 + 64);
    loop {
        let rest = &message[deflate.total_in() as usize..];
        // Compressing into memory cannot fail.
        let _ = deflate.compress_vec(rest, &mut out, FlushCompress::Sync);
        if deflate.total_in() as usize == message.len() && out.len() < out.capacity() {
            break;
        }
        out.reserve(out.capacity());
    }
    out.truncate(out.len() - TAIL.len());
    out
}

/// Decompresses a message of at most `largest` bytes.
pub(super) fn decompress(message: &[u8], largest: usize) -> Result<Vec<u8>, Violation> {
    let mut inflate = Decompress::new(false);
    let input = [message, &TAIL].concat();
    let mut out = Vec::with_capacity(2 * input.len());
    loop {
        let rest = &input[inflate.total_in() as usize..];
        let status = inflate.decompress_vec(rest, &mut out, FlushDecompress::Sync);
        let status = status.map_err(|_| Violation::new("expected a compressed message, found something else"))?;
        if out.len() > largest {
            return Err(too_large(largest));
        }
        if status == Status::StreamEnd || (inflate.total_in() as usize == input.len() && out.len() < out.capacity()) {
            return Ok(out);
        }
        out.reserve(out.capacity());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 7692, section 7.2.3: one block, without compression, and two blocks.
    #[test]
    fn the_messages_of_the_rfc_are_understood() {
        let cases: [&[u8]; 3] = [
            &[0xf2, 0x48, 0xcd, 0xc9, 0xc9, 0x07, 0x00],
            &[0x00, 0x05, 0x00, 0xfa, 0xff, 0x48, 0x65, 0x6c, 0x6c, 0x6f, 0x00],
            &[0xf2, 0x48, 0x05, 0x00, 0x00, 0x00, 0xff, 0xff, 0xca, 0xc9, 0xc9, 0x07, 0x00],
        ];
        for message in cases {
            assert_eq!(decompress(message, 100).expect("a message"), b"Hello", "{message:x?}");
        }
    }

    #[test]
    fn what_is_compressed_is_read_back() {
        let noise: Vec<u8> = (0..100_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        for message in [&b""[..], b"Hello", &[7; 1_000_000], &noise] {
            let compressed = compress(message);
            assert_eq!(decompress(&compressed, 2_000_000).expect("a message"), message, "of {} bytes", message.len());
        }
        assert!(compress(&[7; 1_000_000]).len() < 10_000);
    }

    #[test]
    fn what_grows_too_large_or_is_none_is_refused() {
        assert!(decompress(&compress(&[7; 1_000_000]), 10_000).is_err());
        assert!(decompress(&[0xff, 0xff, 0xff], 100).is_err());
    }
}
