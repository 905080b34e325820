//! HTTP/2 frames (RFC 9113, section 4): their headers, and writing them.

/// Length of a frame's header.
pub(super) const HEADER: usize = 9;

/// The largest payload that a peer may send: the default, which our settings do not change.
pub(super) const LARGEST_PAYLOAD: usize = 16_384;

/// What a peer may name as its largest payload (RFC 9113, 6.5.2).
pub(super) const PAYLOAD_LIMITS: std::ops::RangeInclusive<usize> = 16_384..=16_777_215;

/// The first bytes of a client (RFC 9113, 3.4).
pub(super) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Frame types.
pub(super) mod kind {
    pub(crate) const DATA: u8 = 0;
    pub(crate) const HEADERS: u8 = 1;
    pub(crate) const RST_STREAM: u8 = 3;
    pub(crate) const SETTINGS: u8 = 4;
    pub(crate) const PUSH_PROMISE: u8 = 5;
    pub(crate) const PING: u8 = 6;
    pub(crate) const GOAWAY: u8 = 7;
    pub(crate) const WINDOW_UPDATE: u8 = 8;
    pub(crate) const CONTINUATION: u8 = 9;
}

/// Flags.
pub(super) mod flag {
    /// On DATA and HEADERS.
    pub(crate) const END_STREAM: u8 = 0x1;
    /// On SETTINGS and PING.
    pub(crate) const ACK: u8 = 0x1;
    pub(crate) const END_HEADERS: u8 = 0x4;
    pub(crate) const PADDED: u8 = 0x8;
    pub(crate) const PRIORITY: u8 = 0x20;
}

/// Settings.
pub(super) mod setting {
    pub(crate) const HEADER_TABLE_SIZE: u16 = 1;
    pub(crate) const ENABLE_PUSH: u16 = 2;
    pub(crate) const MAX_CONCURRENT_STREAMS: u16 = 3;
    pub(crate) const INITIAL_WINDOW_SIZE: u16 = 4;
    pub(crate) const MAX_FRAME_SIZE: u16 = 5;
}

/// Error codes (RFC 9113, section 7).
pub(super) mod error {
    pub(crate) const NO_ERROR: u32 = 0;
    pub(crate) const REFUSED_STREAM: u32 = 7;
    pub(crate) const CANCEL: u32 = 8;
    pub(crate) const ENHANCE_YOUR_CALM: u32 = 11;
    pub(crate) const INADEQUATE_SECURITY: u32 = 12;
    pub(crate) const HTTP_1_1_REQUIRED: u32 = 13;

    /// Their names, in the order of their numbers.
    const NAMES: [&str; 14] = [
        "NO_ERROR",
        "PROTOCOL_ERROR",
        "INTERNAL_ERROR",
        "FLOW_CONTROL_ERROR",
        "SETTINGS_TIMEOUT",
        "STREAM_CLOSED",
        "FRAME_SIZE_ERROR",
        "REFUSED_STREAM",
        "CANCEL",
        "COMPRESSION_ERROR",
        "CONNECT_ERROR",
        "ENHANCE_YOUR_CALM",
        "INADEQUATE_SECURITY",
        "HTTP_1_1_REQUIRED",
    ];

    /// The name of a code, or its number.
    pub(crate) fn name(code: u32) -> String {
        NAMES.get(code as usize).map_or_else(|| code.to_string(), |name| (*name).to_owned())
    }
}

/// The header of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) length: usize,
    pub(super) kind: u8,
    pub(super) flags: u8,
    pub(super) stream: u32,
}

impl Header {
    /// Reads the header at the start of `bytes`; `None` if it is incomplete.
    pub(super) fn read(bytes: &[u8]) -> Option<Header> {
        let bytes: &[u8; HEADER] = bytes.first_chunk()?;
        Some(Header {
            length: u32::from_be_bytes([0, bytes[0], bytes[1], bytes[2]]) as usize,
            kind: bytes[3],
            flags: bytes[4],
            stream: number(&bytes[5..]) & 0x7fff_ffff,
        })
    }

    pub(super) fn has(self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// Writes the header.
    pub(super) fn write(self, out: &mut Vec<u8>) {
        out.extend_from_slice(&(self.length as u32).to_be_bytes()[1..]);
        out.extend_from_slice(&[self.kind, self.flags]);
        out.extend_from_slice(&self.stream.to_be_bytes());
    }
}

/// Writes a whole frame.
pub(super) fn write(kind: u8, flags: u8, stream: u32, payload: &[u8], out: &mut Vec<u8>) {
    Header { length: payload.len(), kind, flags, stream }.write(out);
    out.extend_from_slice(payload);
}

/// The big-endian number in the first four of at least four bytes.
pub(super) fn number(bytes: &[u8]) -> u32 {
    u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_reads_back_as_written() {
        let header = Header { length: 0x01_02_03, kind: kind::DATA, flags: flag::END_STREAM, stream: 0x7fff_fffd };
        let mut out = Vec::new();
        header.write(&mut out);
        assert_eq!(out.len(), HEADER);
        assert_eq!(Header::read(&out), Some(header));
        assert_eq!(Header::read(&out[..8]), None);
    }
}
