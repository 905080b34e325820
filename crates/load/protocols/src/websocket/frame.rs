//! Frames of WebSocket (RFC 6455, section 5.2).

use super::Violation;

/// The longest payload of a control frame.
pub(super) const LARGEST_CONTROL: usize = 125;

/// Bytes of the header of a control frame that we send: with its mask.
pub(super) const OWN_CONTROL_HEADER: usize = 6;

/// Types of frames. Those from `CLOSE` on are control frames.
pub(super) mod opcode {
    pub(crate) const CONTINUATION: u8 = 0;
    pub(crate) const TEXT: u8 = 1;
    pub(crate) const BINARY: u8 = 2;
    pub(crate) const CLOSE: u8 = 8;
    pub(crate) const PING: u8 = 9;
    pub(crate) const PONG: u8 = 10;
}

const LAST: u8 = 0x80;
const COMPRESSED: u8 = 0x40;
const RESERVED: u8 = 0x30;
const MASKED: u8 = 0x80;

/// The header of a frame from a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) is_last: bool,
    /// The bit RSV1, which RFC 7692 uses for compression.
    pub(super) compressed: bool,
    pub(super) opcode: u8,
    /// Bytes of the payload.
    pub(super) length: u64,
    /// Bytes of the header itself.
    pub(super) size: usize,
}

impl Header {
    /// Reads the header at the start of `bytes`; `None` if it is incomplete.
    pub(super) fn read(bytes: &[u8]) -> Result<Option<Header>, Violation> {
        let Some(([first, second], rest)) = bytes.split_first_chunk() else { return Ok(None) };
        let opcode = first & 0x0f;
        if first & RESERVED != 0 || matches!(opcode, 3..=7 | 11..) {
            return Err(Violation::new(format!(
                "expected a frame of WebSocket, found one that begins with {first:#04x}"
            )));
        }
        if second & MASKED != 0 {
            return Err(Violation::new("expected frames without a mask from the server, found a masked one"));
        }
        let (length, longer) = match second {
            126 => (rest.first_chunk().map(|bytes| u64::from(u16::from_be_bytes(*bytes))), 2),
            127 => (rest.first_chunk().map(|bytes| u64::from_be_bytes(*bytes)), 8),
            short => (Some(u64::from(*short)), 0),
        };
        Ok(length.map(|length| Header {
            is_last: first & LAST != 0,
            compressed: first & COMPRESSED != 0,
            opcode,
            length,
            size: 2 + longer,
        }))
    }
}

/// A frame to send: a whole message, or a control frame.
#[derive(Debug)]
pub(super) struct Frame<'a> {
    pub(super) opcode: u8,
    pub(super) compressed: bool,
    pub(super) payload: &'a [u8],
}

impl Frame<'_> {
    /// Writes the frame with a mask, as clients must.
    pub(super) fn write(&self, mask: [u8; 4], out: &mut Vec<u8>) {
        let length = self.payload.len();
        out.push(LAST | if self.compressed { COMPRESSED } else { 0 } | self.opcode);
        match length {
            0..=125 => out.push(MASKED | length as u8),
            126..=0xffff => {
                out.push(MASKED | 126);
                out.extend_from_slice(&(length as u16).to_be_bytes());
            }
            _ => {
                out.push(MASKED | 127);
                out.extend_from_slice(&(length as u64).to_be_bytes());
            }
        }
        out.extend_from_slice(&mask);
        let start = out.len();
        out.extend_from_slice(self.payload);
        for four in out[start..].chunks_mut(4) {
            four.iter_mut().zip(mask).for_each(|(byte, mask)| *byte ^= mask);
        }
    }
}
