//! HPACK (RFC 7541) for a client that sends the same few headers. The encoder puts them into the dynamic
//! table once and then sends indices. The decoder is complete.

use super::huffman;
use plimsoll_engine::protocol::Violation;
use std::collections::VecDeque;

/// The size of both dynamic tables unless the peer says otherwise (RFC 9113, 6.5.2).
const DEFAULT_TABLE_SIZE: usize = 4096;

/// The size of a table entry beside its text (RFC 7541, 4.1).
const ENTRY_OVERHEAD: usize = 32;

/// The static table (RFC 7541, appendix A), from index 1 on.
const STATIC: [(&str, &str); 61] = [
    (":authority", ""),
    (":method", "GET"),
    (":method", "POST"),
    (":path", "/"),
    (":path", "/index.html"),
    (":scheme", "http"),
    (":scheme", "https"),
    (":status", "200"),
    (":status", "204"),
    (":status", "206"),
    (":status", "304"),
    (":status", "400"),
    (":status", "404"),
    (":status", "500"),
    ("accept-charset", ""),
    ("accept-encoding", "gzip, deflate"),
    ("accept-language", ""),
    ("accept-ranges", ""),
    ("accept", ""),
    ("access-control-allow-origin", ""),
    ("age", ""),
    ("allow", ""),
    ("authorization", ""),
    ("cache-control", ""),
    ("content-disposition", ""),
    ("content-encoding", ""),
    ("content-language", ""),
    ("content-length", ""),
    ("content-location", ""),
    ("content-range", ""),
    ("content-type", ""),
    ("cookie", ""),
    ("date", ""),
    ("etag", ""),
    ("expect", ""),
    ("expires", ""),
    ("from", ""),
    ("host", ""),
    ("if-match", ""),
    ("if-modified-since", ""),
    ("if-none-match", ""),
    ("if-range", ""),
    ("if-unmodified-since", ""),
    ("last-modified", ""),
    ("link", ""),
    ("location", ""),
    ("max-forwards", ""),
    ("proxy-authenticate", ""),
    ("proxy-authorization", ""),
    ("range", ""),
    ("referer", ""),
    ("refresh", ""),
    ("retry-after", ""),
    ("server", ""),
    ("set-cookie", ""),
    ("strict-transport-security", ""),
    ("transfer-encoding", ""),
    ("user-agent", ""),
    ("vary", ""),
    ("via", ""),
    ("www-authenticate", ""),
];

/// A header field: name and value.
pub type Field = (String, String);

/// The size of a field, as tables and lists of fields are counted (RFC 7541, 4.1; RFC 9113, 6.5.2).
pub(super) fn size(name: &[u8], value: &[u8]) -> usize {
    name.len() + value.len() + ENTRY_OVERHEAD
}

/// The sending side. Fields are identified by their index in a list that all connections share.
#[derive(Debug)]
pub(super) struct Encoder {
    /// The indexes of the fields in the peer's dynamic table, oldest first.
    table: Vec<usize>,
    used: usize,
    limit: usize,
    announce: bool,
}

impl Default for Encoder {
    fn default() -> Self {
        Encoder { table: Vec::new(), used: 0, limit: DEFAULT_TABLE_SIZE, announce: false }
    }
}

impl Encoder {
    /// Limits the peer's table to `limit` bytes from now on.
    pub(super) fn set_limit(&mut self, limit: usize) {
        let limit = limit.min(DEFAULT_TABLE_SIZE);
        if limit != self.limit {
            *self = Encoder { limit, announce: true, ..Encoder::default() };
        }
    }

    /// Writes the header block of `numbers`, which are indices into `fields`.
    pub(super) fn encode(&mut self, fields: &[Field], numbers: &[usize], out: &mut Vec<u8>) {
        if std::mem::take(&mut self.announce) {
            // A size of zero comes first: it empties the table on both sides.
            integer(0x20, 5, 0, out);
            integer(0x20, 5, self.limit, out);
        }
        for &number in numbers {
            self.encode_field(fields, number, out);
        }
    }

    /// Writes fields that differ each time and so do not go into the table.
    pub(crate) fn encode_unindexed(fields: &[Field], out: &mut Vec<u8>) {
        for (name, value) in fields {
            match STATIC.iter().position(|(known, _)| known == name) {
                Some(index) => integer(0x00, 4, index + 1, out),
                None => {
                    integer(0x00, 4, 0, out);
                    string(name, out);
                }
            }
            string(value, out);
        }
    }

    fn encode_field(&mut self, fields: &[Field], number: usize, out: &mut Vec<u8>) {
        let (name, value) = (fields[number].0.as_str(), fields[number].1.as_str());
        if let Some(index) = STATIC.iter().position(|field| *field == (name, value)) {
            integer(0x80, 7, index + 1, out);
        } else if let Some(place) = self.table.iter().position(|known| *known == number) {
            integer(0x80, 7, STATIC.len() + self.table.len() - place, out);
        } else {
            let size = size(name.as_bytes(), value.as_bytes());
            let fits = self.used + size <= self.limit;
            let (pattern, prefix) = if fits { (0x40, 6) } else { (0x00, 4) };
            let index = STATIC.iter().position(|(known, _)| *known == name).map_or(0, |index| index + 1);
            integer(pattern, prefix, index, out);
            if index == 0 {
                string(name, out);
            }
            string(value, out);
            if fits {
                self.table.push(number);
                self.used += size;
            }
        }
    }
}

fn string(text: &str, out: &mut Vec<u8>) {
    integer(0x00, 7, text.len(), out);
    out.extend_from_slice(text.as_bytes());
}

/// An integer with a prefix of `bits` bits (RFC 7541, 5.1).
fn integer(pattern: u8, bits: u32, value: usize, out: &mut Vec<u8>) {
    let most = (1 << bits) - 1;
    if value < most {
        out.push(pattern | value as u8);
        return;
    }
    out.push(pattern | most as u8);
    let mut rest = value - most;
    while rest >= 128 {
        out.push(rest as u8 | 128);
        rest >>= 7;
    }
    out.push(rest as u8);
}

/// A name and a value in the receiving side's table.
type Entry = (Box<[u8]>, Box<[u8]>);

/// The receiving side.
#[derive(Debug)]
pub(super) struct Decoder {
    /// Newest first.
    table: VecDeque<Entry>,
    used: usize,
    limit: usize,
    name: Vec<u8>,
    value: Vec<u8>,
}

impl Default for Decoder {
    fn default() -> Self {
        Decoder { table: VecDeque::new(), used: 0, limit: DEFAULT_TABLE_SIZE, name: Vec::new(), value: Vec::new() }
    }
}

impl Decoder {
    /// Decodes a complete header block. Calls `field` with each name and value, up to its first error.
    pub(super) fn decode(
        &mut self,
        block: &[u8],
        mut field: impl FnMut(&[u8], &[u8]) -> Result<(), Violation>,
    ) -> Result<(), Violation> {
        let mut input = Input(block);
        while let Some(&first) = input.0.first() {
            match first {
                0x80.. => {
                    let index = input.integer(7)?;
                    let (name, value) = self.entry(index)?;
                    field(name, value)?;
                }
                0x40.. => {
                    self.literal(&mut input, 6)?;
                    field(&self.name, &self.value)?;
                    self.insert();
                }
                0x20.. => {
                    let limit = input.integer(5)?;
                    if limit > DEFAULT_TABLE_SIZE {
                        return Err(Violation::new(format!("expected a header table of 4096 bytes, found {limit}")));
                    }
                    self.limit = limit;
                    self.evict(0);
                }
                _ => {
                    self.literal(&mut input, 4)?;
                    field(&self.name, &self.value)?;
                }
            }
        }
        Ok(())
    }

    fn entry(&self, index: usize) -> Result<(&[u8], &[u8]), Violation> {
        let unknown = || Violation::new(format!("expected an index of a known header, found {index}"));
        let index = index.checked_sub(1).ok_or_else(unknown)?;
        if let Some((name, value)) = STATIC.get(index) {
            return Ok((name.as_bytes(), value.as_bytes()));
        }
        let (name, value) = self.table.get(index - STATIC.len()).ok_or_else(unknown)?;
        Ok((name, value))
    }

    fn literal(&mut self, input: &mut Input<'_>, prefix: u32) -> Result<(), Violation> {
        let index = input.integer(prefix)?;
        let mut name = std::mem::take(&mut self.name);
        name.clear();
        match index {
            0 => input.string(&mut name)?,
            _ => name.extend_from_slice(self.entry(index)?.0),
        }
        self.name = name;
        self.value.clear();
        input.string(&mut self.value)
    }

    fn insert(&mut self) {
        let size = size(&self.name, &self.value);
        self.evict(size);
        if size <= self.limit {
            self.table.push_front((self.name.as_slice().into(), self.value.as_slice().into()));
            self.used += size;
        }
    }

    /// Evicts entries until one of this size fits.
    fn evict(&mut self, size_needed: usize) {
        while self.used + size_needed > self.limit
            && let Some((name, value)) = self.table.pop_back()
        {
            self.used -= size(&name, &value);
        }
    }
}

/// The rest of a header block.
struct Input<'a>(&'a [u8]);

impl Input<'_> {
    fn byte(&mut self) -> Result<u8, Violation> {
        let (first, rest) = self.0.split_first().ok_or_else(incomplete_block)?;
        self.0 = rest;
        Ok(*first)
    }

    fn integer(&mut self, bits: u32) -> Result<usize, Violation> {
        let most = (1 << bits) - 1;
        let mut value = usize::from(self.byte()?) & most;
        if value < most {
            return Ok(value);
        }
        // Four more bytes reach 2²⁸, far beyond any valid index or length.
        for shift in [0, 7, 14, 21] {
            let byte = usize::from(self.byte()?);
            value += (byte & 127) << shift;
            if byte < 128 {
                return Ok(value);
            }
        }
        Err(Violation::new("expected an integer of at most 28 bits in a header block"))
    }

    fn string(&mut self, text: &mut Vec<u8>) -> Result<(), Violation> {
        let coded = self.0.first().ok_or_else(incomplete_block)? & 0x80 != 0;
        let length = self.integer(7)?;
        if length > self.0.len() {
            return Err(incomplete_block());
        }
        let (bytes, rest) = self.0.split_at(length);
        self.0 = rest;
        if coded {
            return huffman::decode(bytes, text);
        }
        text.extend_from_slice(bytes);
        Ok(())
    }
}

fn incomplete_block() -> Violation {
    Violation::new("expected more of a header block, found its end")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn decoded(decoder: &mut Decoder, block: &[u8]) -> Result<Vec<Field>, Violation> {
        let mut fields = Vec::new();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        decoder.decode(block, |name, value| {
            fields.push((text(name), text(value)));
            Ok(())
        })?;
        Ok(fields)
    }

    fn field(name: &str, value: &str) -> Field {
        (name.to_owned(), value.to_owned())
    }

    /// RFC 7541, appendix C.3: three requests on one connection, without Huffman coding.
    #[test]
    fn the_requests_of_the_rfc_decode() {
        let mut decoder = Decoder::default();
        let first = b"\x82\x86\x84\x41\x0fwww.example.com";
        let expected = [
            field(":method", "GET"),
            field(":scheme", "http"),
            field(":path", "/"),
            field(":authority", "www.example.com"),
        ];
        assert_eq!(decoded(&mut decoder, first).expect("a block"), expected);
        let second = decoded(&mut decoder, b"\x82\x86\x84\xbe\x58\x08no-cache").expect("a block");
        assert_eq!(second[3..], [field(":authority", "www.example.com"), field("cache-control", "no-cache")]);
        let third = decoded(&mut decoder, b"\x82\x87\x85\xbf\x40\x0acustom-key\x0ccustom-value").expect("a block");
        assert_eq!(third[4], field("custom-key", "custom-value"));
        assert_eq!(decoder.used, 164, "the size that the RFC gives");
    }

    /// RFC 7541, appendix C.6: responses with Huffman coding and eviction from a table of 256.
    #[test]
    fn the_responses_of_the_rfc_decode() {
        let mut decoder = Decoder { limit: 256, ..Decoder::default() };
        let first = [
            0x48, 0x82, 0x64, 0x02, 0x58, 0x85, 0xae, 0xc3, 0x77, 0x1a, 0x4b, 0x61, 0x96, 0xd0, 0x7a, 0xbe, 0x94, 0x10,
            0x54, 0xd4, 0x44, 0xa8, 0x20, 0x05, 0x95, 0x04, 0x0b, 0x81, 0x66, 0xe0, 0x82, 0xa6, 0x2d, 0x1b, 0xff, 0x6e,
            0x91, 0x9d, 0x29, 0xad, 0x17, 0x18, 0x63, 0xc7, 0x8f, 0x0b, 0x97, 0xc8, 0xe9, 0xae, 0x82, 0xae, 0x43, 0xd3,
        ];
        let fields = decoded(&mut decoder, &first).expect("a block");
        assert_eq!(fields[2], field("date", "Mon, 21 Oct 2013 20:13:21 GMT"));
        assert_eq!(fields[3], field("location", "https://www.example.com"));
        let second = decoded(&mut decoder, &[0x48, 0x83, 0x64, 0x0e, 0xff, 0xc1, 0xc0, 0xbf]).expect("a block");
        assert_eq!(second[0], field(":status", "307"));
        assert_eq!(decoder.used, 222, "the size that the RFC gives after eviction");
    }

    #[test]
    fn repeated_fields_become_one_byte_each() {
        let fields = [field(":method", "POST"), field(":path", "/a.B/c"), field("te", "trailers"), field("x", "y")];
        let (mut encoder, mut decoder) = (Encoder::default(), Decoder::default());
        let mut blocks = Vec::new();
        for numbers in [vec![0, 1, 2], vec![0, 1, 2], vec![0, 1, 3, 2]] {
            let mut block = Vec::new();
            encoder.encode(&fields, &numbers, &mut block);
            let expected: Vec<Field> = numbers.iter().map(|number| fields[*number].clone()).collect();
            assert_eq!(decoded(&mut decoder, &block), Ok(expected));
            blocks.push(block);
        }
        assert_eq!(blocks[1].len(), 3);
    }

    #[test]
    fn unindexed_fields_leave_no_trace() {
        let fields = [field(":path", "/a.B/c"), field("x-request", "1"), field("authorization", "secret")];
        let (mut encoder, mut decoder) = (Encoder::default(), Decoder::default());
        for _ in 0..2 {
            let mut block = Vec::new();
            encoder.encode(&fields, &[0], &mut block);
            Encoder::encode_unindexed(&fields[1..], &mut block);
            assert_eq!(decoded(&mut decoder, &block), Ok(fields.to_vec()));
        }
        assert_eq!((encoder.table.len(), decoder.table.len()), (1, 1));
    }

    #[test]
    fn a_peer_with_a_small_table_is_obeyed() {
        let fields = [field("authorization", "secret"), field("other", "value")];
        let (mut encoder, mut decoder) = (Encoder::default(), Decoder::default());
        encoder.encode(&fields, &[0, 1], &mut Vec::new());
        encoder.set_limit(0);
        let mut block = Vec::new();
        encoder.encode(&fields, &[0, 1], &mut block);
        assert_eq!(decoded(&mut decoder, &block), Ok(fields.to_vec()));
        assert!(decoder.table.is_empty() && encoder.table.is_empty());
    }

    #[test]
    fn nonsense_is_refused() {
        for block in [&b"\x80"[..], b"\xff\xff\xff\xff\xff\xff", b"\xbe", b"\x40\x05ab", b"\x3f\xff\x7f", b"\x00"] {
            assert!(decoded(&mut Decoder::default(), block).is_err(), "{block:x?}");
        }
    }

    proptest! {
        #[test]
        fn what_is_encoded_decodes_to_itself(
            fields in prop::collection::vec(("[a-z-]{1,20}", "[ -~]{0,60}"), 1..30),
            blocks in prop::collection::vec(prop::collection::vec(any::<prop::sample::Index>(), 0..8), 1..20),
        ) {
            let (mut encoder, mut decoder) = (Encoder::default(), Decoder::default());
            for block in blocks {
                let numbers: Vec<usize> = block.iter().map(|index| index.index(fields.len())).collect();
                let mut bytes = Vec::new();
                encoder.encode(&fields, &numbers, &mut bytes);
                let expected: Vec<Field> = numbers.iter().map(|number| fields[*number].clone()).collect();
                prop_assert_eq!(decoded(&mut decoder, &bytes), Ok(expected));
            }
        }

        #[test]
        fn any_bytes_are_decoded_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = decoded(&mut Decoder::default(), &bytes);
        }
    }
}
