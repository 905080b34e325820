//! Drawings as PNG.

use crate::drawing::Drawing;
use crate::raster::Canvas;
use flate2::write::ZlibEncoder;
use flate2::{Compression, Crc};
use std::io::Write;

const SIGNATURE: &[u8] = b"\x89PNG\r\n\x1a\n";

/// Eight bits a channel, RGB, deflate, filters by row, not interlaced.
const FORMAT: [u8; 5] = [8, 2, 0, 0, 0];

/// The filter of every row: the difference from the row above, which is small in a chart.
const UP: u8 = 2;

/// `drawing` as a PNG of two pixels for each of its units, on white.
#[must_use]
pub fn png(drawing: &Drawing) -> Vec<u8> {
    encode(&Canvas::paint(drawing))
}

fn encode(canvas: &Canvas) -> Vec<u8> {
    let mut header = Vec::new();
    header.extend(canvas.width.to_be_bytes());
    header.extend(canvas.height.to_be_bytes());
    header.extend(FORMAT);
    let mut file = SIGNATURE.to_vec();
    put_chunk(&mut file, *b"IHDR", &header);
    put_chunk(&mut file, *b"IDAT", &deflate(canvas));
    put_chunk(&mut file, *b"IEND", &[]);
    file
}

fn deflate(canvas: &Canvas) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    let mut above = vec![0; canvas.row_length()];
    for row in canvas.rows() {
        let mut filtered = vec![UP];
        filtered.extend(row.iter().zip(&above).map(|(byte, above)| byte.wrapping_sub(*above)));
        encoder.write_all(&filtered).expect("writing to a vector does not fail");
        above.copy_from_slice(row);
    }
    encoder.finish().expect("writing to a vector does not fail")
}

/// Appends a chunk: its length, kind, content, and the CRC of the last two.
fn put_chunk(file: &mut Vec<u8>, kind: [u8; 4], content: &[u8]) {
    let length = u32::try_from(content.len()).expect("a chart has less than 4 GiB");
    let mut crc = Crc::new();
    crc.update(&kind);
    crc.update(content);
    file.extend(length.to_be_bytes());
    file.extend(kind);
    file.extend(content);
    file.extend(crc.sum().to_be_bytes());
}
