//! Packets of MariaDB's protocol, and the values in them.

use crate::SqlError;
use crate::socket::Socket;
use plimsoll_model::record::ErrorKind;
use std::ops::Range;

/// Three bytes of length, and the sequence number.
pub(super) const HEADER: usize = 4;

/// The largest content of one packet; content of this length is continued in the next packet.
const MAX_PACKET: usize = 0xff_ff_ff;

/// The sequence number of the next packet, and the range of its content in the input.
#[inline]
pub(super) fn next(socket: &mut Socket) -> Result<(u8, Range<usize>), SqlError> {
    let [a, b, c, number] = socket.peek()?;
    let length = u32::from_le_bytes([a, b, c, 0]) as usize;
    if length == MAX_PACKET {
        return Err(SqlError::protocol("a row has more than 16 MB; ask for less at once"));
    }
    let start = socket.take(HEADER + length)?;
    Ok((number, start + HEADER..start + HEADER + length))
}

/// Begins a packet in `out`, which [`send`] sends.
#[inline]
pub(super) fn begin(out: &mut Vec<u8>) {
    out.clear();
    out.extend_from_slice(&[0; HEADER]);
}

/// Sends a packet that was written after [`begin`].
#[inline]
pub(super) fn send(socket: &mut Socket, number: u8, out: &mut [u8]) -> Result<(), SqlError> {
    let length = out.len() - HEADER;
    if length >= MAX_PACKET {
        return Err(SqlError::new(ErrorKind::Sql, "it has more than the 16 MB that go out at once"));
    }
    let [a, b, c, ..] = (length as u32).to_le_bytes();
    out[..HEADER].copy_from_slice(&[a, b, c, number]);
    socket.send(out)
}

/// Reads a packet's content from front to back.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    /// A reader of what lies at this place of the input.
    #[inline]
    pub(super) fn new(input: &'a [u8], content: Range<usize>) -> Reader<'a> {
        Reader { bytes: &input[..content.end], at: content.start }
    }

    /// The offset of the next byte in the input.
    #[inline]
    pub(super) fn at(&self) -> usize {
        self.at
    }

    #[inline]
    pub(super) fn left(&self) -> usize {
        self.bytes.len() - self.at
    }

    #[inline]
    pub(super) fn bytes(&mut self, length: usize) -> Result<&'a [u8], SqlError> {
        if length > self.left() {
            return Err(SqlError::protocol("a packet of MariaDB is cut short"));
        }
        let bytes = &self.bytes[self.at..self.at + length];
        self.at += length;
        Ok(bytes)
    }

    #[inline]
    fn array<const N: usize>(&mut self) -> Result<[u8; N], SqlError> {
        let mut array = [0; N];
        array.copy_from_slice(self.bytes(N)?);
        Ok(array)
    }

    #[inline]
    pub(super) fn u8(&mut self) -> Result<u8, SqlError> {
        self.array().map(|[byte]| byte)
    }

    #[inline]
    pub(super) fn u16(&mut self) -> Result<u16, SqlError> {
        self.array().map(u16::from_le_bytes)
    }

    #[inline]
    pub(super) fn u32(&mut self) -> Result<u32, SqlError> {
        self.array().map(u32::from_le_bytes)
    }

    /// A length-encoded integer of one to nine bytes; none for NULL.
    #[inline]
    pub(super) fn number_or_null(&mut self) -> Result<Option<u64>, SqlError> {
        Ok(Some(match self.u8()? {
            0xfb => return Ok(None),
            0xfc => self.u16()?.into(),
            0xfd => self.array().map(|[a, b, c]| u32::from_le_bytes([a, b, c, 0]))?.into(),
            0xfe => self.array().map(u64::from_le_bytes)?,
            small => small.into(),
        }))
    }

    #[inline]
    pub(super) fn number(&mut self) -> Result<u64, SqlError> {
        self.number_or_null()?.ok_or_else(|| SqlError::protocol("a number of MariaDB's is NULL"))
    }

    /// A length-encoded string; none for NULL.
    #[inline]
    pub(super) fn length_prefixed_or_null(&mut self) -> Result<Option<&'a [u8]>, SqlError> {
        match self.number_or_null()? {
            None => Ok(None),
            Some(length) => self.bytes(usize::try_from(length).unwrap_or(usize::MAX)).map(Some),
        }
    }

    pub(super) fn length_prefixed(&mut self) -> Result<&'a [u8], SqlError> {
        Ok(self.length_prefixed_or_null()?.unwrap_or_default())
    }

    /// Bytes up to a NUL, or to the end.
    pub(super) fn nul_terminated(&mut self) -> &'a [u8] {
        let rest = self.rest();
        let length = rest.iter().position(|byte| *byte == 0).unwrap_or(rest.len());
        self.at -= rest.len() - (length + 1).min(rest.len());
        &rest[..length]
    }

    pub(super) fn rest(&mut self) -> &'a [u8] {
        let rest = &self.bytes[self.at..];
        self.at = self.bytes.len();
        rest
    }
}

/// Writes a length-encoded string.
pub(super) fn write_length_prefixed(bytes: &[u8], out: &mut Vec<u8>) {
    match bytes.len() {
        length @ 0..=0xfa => out.push(length as u8),
        length @ 0xfb..=0xff_ff => {
            out.push(0xfc);
            out.extend_from_slice(&(length as u16).to_le_bytes());
        }
        length => {
            // Lengths beyond three bytes are refused when the packet is sent.
            out.push(0xfd);
            out.extend_from_slice(&(length as u32).to_le_bytes()[..3]);
        }
    }
    out.extend_from_slice(bytes);
}

/// The error of an ERR packet.
pub(super) fn error(input: &[u8], content: Range<usize>) -> SqlError {
    let mut reader = Reader::new(input, content);
    let (Ok(_), Ok(number)) = (reader.u8(), reader.u16()) else {
        return SqlError::protocol("an error packet of MariaDB is cut short");
    };
    let mut message = reader.rest();
    if let [b'#', _, _, _, _, _, rest @ ..] = message {
        message = rest;
    }
    SqlError::from_error_number(number, &String::from_utf8_lossy(message))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn texts_end_at_a_nul_or_at_the_end() {
        let bytes = b"ab\0\0cd";
        let mut reader = Reader::new(bytes, 0..bytes.len());
        assert_eq!(
            [reader.nul_terminated(), reader.nul_terminated(), reader.nul_terminated()],
            [&b"ab"[..], b"", b"cd"]
        );
        assert_eq!(reader.nul_terminated(), b"");
    }

    #[test]
    fn an_error_is_read_with_and_without_a_state() {
        let with = b"\xff\x26\x04#23000Duplicate entry";
        let without = b"\xff\x10\x04Too many connections";
        assert_eq!(error(with, 0..with.len()).detail, "Duplicate entry (error 1062)");
        assert_eq!(error(without, 0..without.len()).kind, ErrorKind::Connect);
        assert_eq!(error(b"\xff\x10", 0..2).kind, ErrorKind::Protocol);
    }

    proptest! {
        #[test]
        fn what_is_counted_comes_back(length in prop_oneof![0..600_usize, 65_000..66_000_usize, Just(1 << 20)]) {
            let text = vec![7; length];
            let mut out = vec![9];
            write_length_prefixed(&text, &mut out);
            let mut reader = Reader::new(&out, 1..out.len());
            prop_assert_eq!(reader.length_prefixed_or_null(), Ok(Some(text.as_slice())));
            prop_assert_eq!(reader.left(), 0);
        }

        #[test]
        fn no_packet_is_read_beyond_its_end(bytes in proptest::collection::vec(any::<u8>(), 0..20)) {
            let mut reader = Reader::new(&bytes, 0..bytes.len());
            while reader.left() > 0 && reader.length_prefixed_or_null().is_ok() {}
            prop_assert!(reader.at() <= bytes.len());
        }
    }
}
