//! Measures how much of a file is in the page cache, and drops it from there.
//!
//! The system calls for that are missing in rustix, or are unsafe functions, so this module has unsafe code.

use plimsoll_model::storage::Residency;
use rustix::fs::{Advice, fadvise, fsync};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::Duration;

/// The number of attempts to drop pages before the rest counts as staying.
const ATTEMPTS: u32 = 5;

/// The pause between two attempts. Pages that others write or read are free again soon.
const PAUSE: Duration = Duration::from_millis(20);

/// The number of `cachestat` (Linux 6.5), the same on all architectures that Rust's standard
/// library knows.
const CACHESTAT: libc::c_long = 451;

/// The bytes that are mapped at once for `mincore`.
const WINDOW: u64 = 1 << 30;

/// Measures how much of the file's first `size` bytes is in the page cache. A zero of `cachestat` is no
/// proof: on overlayfs it counts a file that never has pages, instead of the one below it.
pub(super) fn residency(file: BorrowedFd<'_>, size: u64) -> io::Result<Residency> {
    let pages = size.div_ceil(rustix::param::page_size() as u64);
    let cached = match cachestat(file) {
        Ok(0) => mincore(file, size)?,
        Err(error) if is_missing(&error) => mincore(file, size)?,
        counted => counted?,
    };
    Ok(Residency { pages, cached: cached.min(pages) })
}

/// Syncs the file, drops it from the page cache, and returns how much of it is still there.
pub(super) fn drop_from_cache(file: BorrowedFd<'_>, size: u64) -> io::Result<Residency> {
    fsync(file)?;
    let mut attempt = 1;
    loop {
        fadvise(file, 0, None, Advice::DontNeed)?;
        let left = residency(file, size)?;
        if left.cached == 0 || attempt == ATTEMPTS {
            return Ok(left);
        }
        attempt += 1;
        std::thread::sleep(PAUSE);
    }
}

/// True if `cachestat` failed because the kernel, a sandbox or the file system does not have it.
fn is_missing(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOSYS | libc::EPERM | libc::EOPNOTSUPP))
}

/// Pages of the whole file in the page cache.
#[expect(unsafe_code, reason = "rustix has no `cachestat`")]
fn cachestat(file: BorrowedFd<'_>) -> io::Result<u64> {
    // `struct cachestat_range`: offset and length, of which zero means to the end.
    let range = [0_u64; 2];
    // `struct cachestat`: cached, dirty, under writeback, evicted, recently evicted.
    let mut counts = [0_u64; 5];
    let no_flags: libc::c_uint = 0;
    // SAFETY: both pointers lead to memory that is alive during the call and has the size and
    // alignment of the structures named above; the kernel reads the first and writes the second.
    let status = unsafe { libc::syscall(CACHESTAT, file.as_raw_fd(), range.as_ptr(), counts.as_mut_ptr(), no_flags) };
    if status == 0 { Ok(counts[0]) } else { Err(io::Error::last_os_error()) }
}

/// Pages of the file's first `size` bytes in the page cache, on any kernel.
fn mincore(file: BorrowedFd<'_>, size: u64) -> io::Result<u64> {
    let mut cached = 0;
    for offset in (0..size).step_by(WINDOW as usize) {
        cached += mincore_of_window(file, offset, WINDOW.min(size - offset) as usize)?;
    }
    Ok(cached)
}

/// Counts cached pages of `length` bytes, more than zero, from `offset` on, a multiple of the page size.
#[expect(unsafe_code, reason = "mapping a file is unsafe, and `mincore` wants a mapping")]
fn mincore_of_window(file: BorrowedFd<'_>, offset: u64, length: usize) -> io::Result<u64> {
    let mut states = vec![0_u8; length.div_ceil(rustix::param::page_size())];
    // SAFETY: the kernel chooses where the mapping goes, so it replaces nothing; nobody reads or
    // writes through it, so it does not matter what becomes of the file; `states` has a byte for
    // each page that `mincore` is asked about; the mapping is undone once, with its own length.
    let looked = unsafe {
        let offset = offset as libc::off_t;
        let start =
            libc::mmap(std::ptr::null_mut(), length, libc::PROT_READ, libc::MAP_PRIVATE, file.as_raw_fd(), offset);
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let status = libc::mincore(start, length, states.as_mut_ptr());
        let looked = if status == 0 { Ok(()) } else { Err(io::Error::last_os_error()) };
        libc::munmap(start, length);
        looked
    };
    looked.map(|()| states.iter().filter(|state| **state & 1 == 1).count() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mount;
    use plimsoll_testkit::skipped;
    use std::fs;
    use std::os::fd::AsFd;
    use tempfile::NamedTempFile;

    /// Whole pages and a bit, so that the last page is counted too.
    const SIZE: usize = 1_000_001;
    const PAGES: u64 = 245;

    /// A file that was just written; nothing, said aloud, on file systems that are `unfit`.
    fn written(unfit: &[&str]) -> Option<NamedTempFile> {
        let file = NamedTempFile::new().unwrap();
        fs::write(file.path(), vec![7; SIZE]).unwrap();
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
        let kind = mount::file_system(&mounts, &file.path().canonicalize().unwrap())?.kind;
        if unfit.contains(&kind.as_str()) || rustix::param::page_size() != 4096 {
            skipped(format_args!("needs pages of 4096 bytes and another file system than {kind}"));
            return None;
        }
        Some(file)
    }

    #[test]
    fn a_file_just_written_is_cached_and_one_dropped_is_not() {
        let Some(written) = written(&["tmpfs", "ramfs"]) else { return };
        let file = written.as_file().as_fd();
        let look = || (residency(file, SIZE as u64).unwrap().cached, mincore(file, SIZE as u64).unwrap());
        assert_eq!(look(), (PAGES, PAGES));
        assert_eq!(drop_from_cache(file, SIZE as u64).unwrap(), Residency { pages: PAGES, cached: 0 });
        assert_eq!(look(), (0, 0));
        fs::read(written.path()).unwrap();
        assert_eq!(look(), (PAGES, PAGES));
    }

    #[test]
    fn cachestat_counts_as_mincore_does() {
        let Some(written) = written(&["tmpfs", "ramfs", "overlay"]) else { return };
        let file = written.as_file().as_fd();
        match cachestat(file) {
            Err(error) if is_missing(&error) => return skipped(format_args!("no cachestat here: {error}")),
            counted => assert_eq!(counted.unwrap(), PAGES),
        }
        drop_from_cache(file, SIZE as u64).unwrap();
        assert_eq!(cachestat(file).unwrap(), 0);
    }

    #[test]
    fn an_empty_file_has_no_pages() {
        let file = NamedTempFile::new().unwrap();
        assert_eq!(residency(file.as_file().as_fd(), 0).unwrap(), Residency::default());
        assert_eq!(mincore(file.as_file().as_fd(), 0).unwrap(), 0);
    }
}
