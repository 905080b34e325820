//! Keeps the output of a command from filling the disk: its beginning and its end are kept.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::fd::{AsFd, AsRawFd};

/// Output that is kept whole from its beginning, in bytes.
const BEGINNING: u64 = 32 * 1024 * 1024;
/// The file may grow to this size before the part behind the beginning is left out.
const LARGEST: u64 = 64 * 1024 * 1024;
/// The last bytes of what is left out are kept all the same: an error message shows them.
const END: u64 = 64 * 1024;

/// The file of a command's standard output and error, to which everybody appends.
pub struct BoundedOutput {
    file: File,
    beginning: u64,
    largest: u64,
    end: u64,
    /// Bytes of the command that were left out until now.
    left_out: u64,
    /// Bytes of the line about that in the file.
    notice: u64,
}

impl BoundedOutput {
    /// The standard output of this process, which it shares with the command.
    pub(super) fn of_standard_output() -> io::Result<BoundedOutput> {
        Ok(BoundedOutput::of(File::from(io::stdout().as_fd().try_clone_to_owned()?)))
    }

    /// A file that was opened for appending.
    #[must_use]
    pub fn of(file: File) -> BoundedOutput {
        BoundedOutput { file, beginning: BEGINNING, largest: LARGEST, end: END, left_out: 0, notice: 0 }
    }

    /// Leaves out the middle of the output if it has grown too long. What is written in this instant may be lost too:
    /// nobody can hold the command back.
    ///
    /// # Errors
    /// The disk.
    pub fn bound(&mut self) -> io::Result<()> {
        let about = self.file.metadata()?;
        if !about.is_file() || about.len() <= self.largest {
            return Ok(());
        }
        let end = self.read_end(about.len())?;
        self.left_out += about.len() - self.beginning - self.notice - self.end;
        let notice = format!("\n[Plimsoll: {} bytes of output are left out here]\n", self.left_out);
        self.notice = notice.len() as u64;
        // What is appended from now on goes behind the new end.
        self.file.set_len(self.beginning)?;
        self.file.write_all(&[notice.as_bytes(), &end].concat())
    }

    /// The last bytes before `length`. The file that is shared is open for writing only.
    fn read_end(&self, length: u64) -> io::Result<Vec<u8>> {
        let mut readable = File::open(format!("/proc/self/fd/{}", self.file.as_raw_fd()))?;
        readable.seek(SeekFrom::Start(length - self.end))?;
        let mut end = Vec::new();
        readable.take(self.end).read_to_end(&mut end)?;
        Ok(end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::OpenOptions;

    #[test]
    fn the_beginning_and_the_end_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("output.log");
        let mut command = OpenOptions::new().create(true).append(true).open(&path).unwrap();
        let file = command.try_clone().unwrap();
        let mut output = BoundedOutput { file, beginning: 10, largest: 100, end: 5, left_out: 0, notice: 0 };
        let content = || std::fs::read_to_string(&path).unwrap();
        let notice = |left_out| format!("\n[Plimsoll: {left_out} bytes of output are left out here]\n");

        command.write_all(&[b'a'; 100]).unwrap();
        output.bound().unwrap();
        assert_eq!(content(), "a".repeat(100), "so much it may have");

        command.write_all(b"12345").unwrap();
        output.bound().unwrap();
        let once = format!("{}{}12345", "a".repeat(10), notice(90));
        assert_eq!(content(), once);

        let more = "b".repeat(95);
        command.write_all(format!("{more}67890").as_bytes()).unwrap();
        output.bound().unwrap();
        assert_eq!(content(), format!("{}{}67890", "a".repeat(10), notice(90 + 5 + 95)));
    }
}
