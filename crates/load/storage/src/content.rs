//! The content of objects, made once and used without copies.
//!
//! The seed determines a pool of bytes. Each block of each object is a slice of the pool; the numbers of
//! object and block determine where it starts. So blocks differ, nothing is made or copied while load runs,
//! and any bytes that are read can be compared with the expected ones.

use plimsoll_model::storage::{Mode, Payload, Storage};
use rand_pcg::rand_core::{Rng, SeedableRng};

/// The bytes of the pool beyond one block. They are few enough to stay in a processor's own cache, like the
/// one buffer of an application. They are more than the window of the compressors in file systems, which see
/// several blocks of an object at once.
const SPREAD: usize = 512 << 10;

/// The same for objects of one block. No compressor sees two of them, and a smaller pool stays in the cache
/// better while the kernel copies.
const SPREAD_OF_SINGLE_BLOCKS: usize = 128 << 10;

/// The alignment of slices for writing past the page cache.
pub(crate) const ALIGNMENT: usize = 4096;

/// The alignment of slices otherwise. It is so fine that pages of different blocks hardly ever repeat.
const FINE_ALIGNMENT: usize = 64;

/// The size of a group that begins with random bytes and ends with zeros.
const GROUP: usize = 512;

/// The content of all objects of a trial.
#[derive(Debug)]
pub(crate) struct Content {
    pool: AlignedBuffer,
    /// The size of a block: the bytes that are written at once.
    block: usize,
    /// Slices start at multiples of this.
    alignment: usize,
    seed: u64,
}

impl Content {
    /// The content of a storage workload.
    pub(crate) fn of(storage: &Storage, seed: u64) -> Content {
        let block = storage.block.min(storage.size.next_multiple_of(ALIGNMENT as u64));
        let (alignment, spread) = match storage.mode {
            Mode::Direct => (ALIGNMENT, SPREAD),
            _ if storage.size <= storage.block => (FINE_ALIGNMENT, SPREAD_OF_SINGLE_BLOCKS),
            _ => (FINE_ALIGNMENT, SPREAD),
        };
        Content { alignment, ..Content::with_spread(storage.payload, block, spread, seed) }
    }

    /// Content that is written in blocks of `block` bytes.
    pub(crate) fn new(payload: Payload, block: u64, seed: u64) -> Content {
        Content::with_spread(payload, block, SPREAD, seed)
    }

    fn with_spread(payload: Payload, block: u64, spread: usize, seed: u64) -> Content {
        let block = usize::try_from(block).expect("a block fits into memory").max(1);
        let mut pool = AlignedBuffer::new(block.next_multiple_of(ALIGNMENT) + spread);
        fill(pool.bytes_mut(), payload, seed);
        Content { pool, block, alignment: ALIGNMENT, seed }
    }

    /// The bytes of object `number` from `offset` on: at most `longest`, and at most up to the end of the
    /// block.
    pub(crate) fn slice(&self, number: u64, offset: u64, longest: usize) -> &[u8] {
        let block = self.block as u64;
        let (index, into) = (offset / block, (offset % block) as usize);
        let start = self.start_of(number, index) + into;
        &self.pool.bytes()[start..start + longest.min(self.block - into)]
    }

    /// The offset at which `found`, read from `offset` on in object `number`, differs from what was written.
    pub(crate) fn first_difference(&self, number: u64, offset: u64, found: &[u8]) -> Option<u64> {
        let mut done = 0;
        while done < found.len() {
            let at = offset + done as u64;
            let expected = self.slice(number, at, found.len() - done);
            let here = &found[done..done + expected.len()];
            if here != expected {
                let into = here.iter().zip(expected).position(|(found, expected)| found != expected);
                return into.map(|into| at + into as u64);
            }
            done += expected.len();
        }
        None
    }

    /// Where block `index` of object `number` begins in the pool.
    fn start_of(&self, number: u64, index: u64) -> usize {
        let places = (self.pool.bytes().len() - self.block) / self.alignment + 1;
        let drawn = mixed(self.seed ^ mixed(number) ^ mixed(index.wrapping_add(1 << 63)));
        (drawn % places as u64) as usize * self.alignment
    }
}

/// A well-mixed function of 64 bits: the finaliser of SplitMix64 (Steele, Lea and Flood 2014).
fn mixed(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

fn fill(pool: &mut [u8], payload: Payload, seed: u64) {
    let share = match payload {
        Payload::Zeros => return,
        Payload::Random => 1.0,
        Payload::Compressible(ratio) => 1.0 / ratio.max(1.0),
    };
    let random = (GROUP as f64 * share).round() as usize;
    let mut generator = rand_pcg::Pcg64Mcg::seed_from_u64(seed);
    for group in pool.chunks_mut(GROUP) {
        let random = random.min(group.len());
        generator.fill_bytes(&mut group[..random]);
    }
}

/// Bytes that begin at a multiple of [`ALIGNMENT`] in memory.
#[derive(Debug)]
pub(crate) struct AlignedBuffer {
    memory: Vec<u8>,
    start: usize,
    length: usize,
}

impl AlignedBuffer {
    /// A buffer of `length` zeros.
    pub(crate) fn new(length: usize) -> AlignedBuffer {
        let memory = vec![0; length + ALIGNMENT];
        let start = memory.as_ptr().align_offset(ALIGNMENT);
        AlignedBuffer { memory, start, length }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.memory[self.start..self.start + self.length]
    }

    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.memory[self.start..self.start + self.length]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCK: u64 = 64 << 10;

    fn object(content: &Content, number: u64, size: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        while (bytes.len() as u64) < size {
            bytes.extend_from_slice(content.slice(number, bytes.len() as u64, size as usize - bytes.len()));
        }
        bytes
    }

    #[test]
    fn content_follows_from_seed_object_and_offset() {
        let (one, same, other) = (
            Content::new(Payload::Random, BLOCK, 1),
            Content::new(Payload::Random, BLOCK, 1),
            Content::new(Payload::Random, BLOCK, 2),
        );
        let whole = object(&one, 7, 200_000);
        assert_eq!(whole, object(&same, 7, 200_000));
        assert_ne!(whole, object(&one, 8, 200_000));
        assert_ne!(whole, object(&other, 7, 200_000));
        assert_ne!(whole[..BLOCK as usize], whole[BLOCK as usize..2 * BLOCK as usize], "blocks differ");
        assert_eq!(one.slice(7, 70_000, 10), &whole[70_000..70_010]);
    }

    #[test]
    fn a_byte_that_differs_is_found_wherever_it_is() {
        let content = Content::new(Payload::Random, BLOCK, 1);
        let whole = object(&content, 3, 150_000);
        assert_eq!(content.first_difference(3, 0, &whole), None);
        assert_eq!(content.first_difference(3, 1000, &whole[1000..140_000]), None);
        for at in [0, 1, 65_535, 65_536, 149_999] {
            let mut wrong = whole.clone();
            wrong[at] ^= 1;
            assert_eq!(content.first_difference(3, 0, &wrong), Some(at as u64), "{at}");
        }
        assert!(content.first_difference(4, 0, &whole).is_some(), "another object's bytes");
        assert!(content.first_difference(3, BLOCK, &whole).is_some(), "bytes of another place");
    }

    #[test]
    fn what_is_to_be_zero_is() {
        let content = Content::new(Payload::Zeros, BLOCK, 1);
        assert!(object(&content, 1, 100_000).iter().all(|byte| *byte == 0));
    }

    #[test]
    fn a_compressor_gets_about_the_ratio_that_was_asked_for() {
        for (payload, least, most) in [
            (Payload::Random, 0.98, 1.01),
            (Payload::Compressible(2.0), 1.8, 2.2),
            (Payload::Compressible(5.0), 4.3, 5.5),
        ] {
            let bytes = object(&Content::new(payload, 1 << 20, 1), 1, 8 << 20);
            let mut packed = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
            std::io::Write::write_all(&mut packed, &bytes).expect("memory");
            let ratio = bytes.len() as f64 / packed.finish().expect("memory").len() as f64;
            assert!((least..most).contains(&ratio), "{payload:?} gives {ratio}");
        }
    }

    #[test]
    fn small_objects_differ_too() {
        let storage = |mode| Storage { mode, ..small() };
        let content = Content::of(&storage(Mode::App), 1);
        let first = object(&content, 1, 100_000);
        assert_eq!((first.len(), content.first_difference(1, 0, &first)), (100_000, None));
        let alike = (2..100).filter(|number| object(&content, *number, 100_000) == first).count();
        assert_eq!(alike, 0);
        let direct = Content::of(&storage(Mode::Direct), 1);
        assert!((0..50).all(|number| direct.slice(number, 0, 1).as_ptr().align_offset(ALIGNMENT) == 0));
    }

    fn small() -> Storage {
        Storage {
            name: "local".to_owned(),
            store: plimsoll_model::storage::Store::Directory("/data".into()),
            mode: Mode::App,
            sync_directory: true,
            payload: Payload::Random,
            size: 100_000,
            block: 1 << 20,
            objects: 1,
            overwrite: false,
            verify: false,
            actions: Vec::new(),
            steps: Vec::new(),
        }
    }

    #[test]
    fn every_block_is_aligned() {
        let content = Content::new(Payload::Random, 1 << 20, 9);
        for index in 0..50 {
            let at = content.slice(1, index << 20, 1).as_ptr();
            assert_eq!(at.align_offset(ALIGNMENT), 0);
        }
    }
}
