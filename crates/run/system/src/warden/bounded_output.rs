//! Keeps the output of a command from filling the disk: its beginning and its end are kept.

use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::Errno;
use std::fs::{File, Metadata};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::{FileExt, MetadataExt};

/// Output that is kept whole from its beginning, in bytes.
const BEGINNING: u64 = 32 * 1024 * 1024;
/// The file may grow to this size before the part behind the beginning is left out.
const LARGEST: u64 = 64 * 1024 * 1024;
/// The last bytes of what is left out are kept all the same: an error message shows them.
const END: u64 = 64 * 1024;
/// The length of the line about what is left out, in bytes.
const NOTICE: u64 = 66;

/// The file of a command's standard output and error, to which everybody appends.
pub struct BoundedOutput {
    file: File,
    beginning: u64,
    largest: u64,
    end: u64,
    /// Bytes of the command that were left out until now.
    left_out: u64,
}

impl BoundedOutput {
    /// The standard output of this process, which it shares with the command.
    pub(super) fn of_standard_output() -> io::Result<BoundedOutput> {
        Ok(BoundedOutput::of(File::from(io::stdout().as_fd().try_clone_to_owned()?)))
    }

    /// A file that was opened for appending.
    #[must_use]
    pub fn of(file: File) -> BoundedOutput {
        BoundedOutput { file, beginning: BEGINNING, largest: LARGEST, end: END, left_out: 0 }
    }

    /// Leaves out the middle of the output if it has grown too long.
    ///
    /// Nobody can hold the command back, so it may write at the same time. File systems that can take out a range of a
    /// file (ext4, XFS) lose none of that. On the others, what is written in this instant is lost.
    ///
    /// # Errors
    /// The disk.
    pub fn bound(&mut self) -> io::Result<()> {
        let about = self.file.metadata()?;
        if !about.is_file() || about.len() <= self.largest {
            return Ok(());
        }
        match self.take_out_the_middle(&about) {
            Ok(taken_out) => self.overwrite_with_notice(taken_out),
            // Writing the end again works on every file system.
            Err(_) => self.write_the_end_again(about.len()),
        }
    }

    /// Takes whole blocks out of the file, and returns how many bytes.
    fn take_out_the_middle(&self, about: &Metadata) -> Result<u64, Errno> {
        let end_begins = (about.len() - self.end) / about.blksize() * about.blksize();
        // Blocks may be as large as all of it.
        let taken_out = end_begins.checked_sub(self.beginning).ok_or(Errno::INVAL)?;
        fallocate(&self.file, FallocateFlags::COLLAPSE_RANGE, self.beginning, taken_out)?;
        Ok(taken_out)
    }

    /// Writes the notice over the first bytes behind the beginning.
    fn overwrite_with_notice(&mut self, taken_out: u64) -> io::Result<()> {
        let notice = self.next_notice(taken_out + NOTICE);
        self.reopen()?.write_all_at(notice.as_bytes(), self.beginning)
    }

    /// Shortens the file to its beginning, and appends the notice and the end of what was there.
    fn write_the_end_again(&mut self, length: u64) -> io::Result<()> {
        let end = self.read_end(length)?;
        let notice = self.next_notice(length - self.beginning - self.end);
        // What is appended from now on goes behind the new end.
        self.file.set_len(self.beginning)?;
        self.file.write_all(&[notice.as_bytes(), &end].concat())
    }

    /// The line that stands for all that was left out, now that these bytes of the file were: those of the last notice
    /// among them.
    fn next_notice(&mut self, bytes: u64) -> String {
        let of_last_notice = if self.left_out == 0 { 0 } else { NOTICE };
        self.left_out += bytes - of_last_notice;
        notice(self.left_out)
    }

    /// The last bytes before `length`.
    fn read_end(&self, length: u64) -> io::Result<Vec<u8>> {
        let mut file = self.reopen()?;
        file.seek(SeekFrom::Start(length - self.end))?;
        let mut end = Vec::new();
        // Less, where the command itself shortens the file meanwhile.
        file.take(self.end).read_to_end(&mut end)?;
        Ok(end)
    }

    /// The file for reading, and for writing at any place of it: the one that is shared is for appending only.
    fn reopen(&self) -> io::Result<File> {
        File::options().read(true).write(true).open(format!("/proc/self/fd/{}", self.file.as_raw_fd()))
    }
}

/// A line of [`NOTICE`] bytes, whatever the number.
fn notice(left_out: u64) -> String {
    format!("\n[Plimsoll: {left_out:>18} bytes of output are left out here]\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::OpenOptions;
    use std::path::Path;

    const BLOCK: usize = 4096;

    /// A file whose first block and last 100 bytes are kept once it is larger than 20 blocks.
    fn small(path: &Path) -> BoundedOutput {
        let file = OpenOptions::new().create(true).append(true).open(path).unwrap();
        let largest = 20 * BLOCK as u64;
        BoundedOutput { file, beginning: BLOCK as u64, largest, end: 100, left_out: 0 }
    }

    fn read(path: &Path) -> String {
        std::fs::read_to_string(path).unwrap()
    }

    /// Checks what is kept of an output that begins with a block of a's, and returns how much of its end.
    fn end_kept(path: &Path, written: &str) -> usize {
        let kept = read(path);
        let (beginning, rest) = kept.split_at(BLOCK);
        let (told, end) = rest.split_at(NOTICE as usize);
        assert_eq!(beginning, "a".repeat(BLOCK));
        assert_eq!(told, notice((written.len() - BLOCK - end.len()) as u64));
        assert!(written.ends_with(end), "{end}");
        end.len()
    }

    #[test]
    fn a_notice_has_the_same_length_for_every_number() {
        for left_out in [0, 1, 10_u64.pow(18) - 1] {
            assert_eq!(notice(left_out).len() as u64, NOTICE);
        }
    }

    #[test]
    fn the_beginning_and_the_end_are_kept_and_each_byte_between_is_counted() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("output.log");
        let mut output = small(&path);
        let mut command = output.file.try_clone().unwrap();
        let mut written = "a".repeat(20 * BLOCK);
        command.write_all(written.as_bytes()).unwrap();
        output.bound().unwrap();
        assert_eq!(read(&path), written, "so much it may have");

        for more in ["12345".to_owned(), "b".repeat(19 * BLOCK) + "67890", "c".repeat(30 * BLOCK) + "the end"] {
            written += &more;
            command.write_all(more.as_bytes()).unwrap();
            output.bound().unwrap();
            let end = end_kept(&path, &written);
            assert!((100 - NOTICE as usize..BLOCK + 100).contains(&end), "{end}");
        }
    }

    #[test]
    fn a_file_system_that_takes_out_no_range_has_the_end_written_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("output.log");
        let mut output = small(&path);
        let mut command = output.file.try_clone().unwrap();
        let mut written = "a".repeat(BLOCK);
        command.write_all(written.as_bytes()).unwrap();
        for more in ["b".repeat(190) + "12345", "c".repeat(30) + "67890"] {
            written += &more;
            command.write_all(more.as_bytes()).unwrap();
            output.write_the_end_again(read(&path).len() as u64).unwrap();
            assert_eq!(end_kept(&path, &written), 100);
        }
    }
}
