//! Counts lines in the output of a system that say that something waited, as they are written.

use regex::bytes::Regex;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::PathBuf;

/// Bytes that are read of an output at a time. What a system writes beyond that is counted later.
const MOST_AT_A_TIME: usize = 16 << 20;

/// Of a longer line only the end is searched.
const LONGEST_LINE: usize = 64 << 10;

/// Lines to be counted in the output of a system.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Waits {
    /// The file of its output.
    pub output: PathBuf,
    /// The place in the file at which the system began to write.
    pub from: u64,
    /// The names of waits, each with the regular expression of the lines that tell of them.
    pub patterns: Vec<(String, String)>,
}

/// A count of lines that goes on where it stopped.
#[derive(Debug)]
pub(crate) struct WaitCounter {
    reader: BufReader<File>,
    /// The beginning of a line that is not complete yet.
    line: Vec<u8>,
    patterns: Vec<(String, Regex)>,
}

impl WaitCounter {
    /// Opens the output, to count the lines that become complete from now on.
    ///
    /// # Errors
    /// It cannot be read, or a pattern is no regular expression.
    pub(crate) fn open(waits: &Waits) -> io::Result<WaitCounter> {
        let file = File::open(&waits.output)?;
        let compile = |(name, pattern): &(String, String)| Ok((name.clone(), Regex::new(pattern)?));
        let patterns = waits.patterns.iter().map(compile).collect::<Result<_, regex::Error>>();
        let mut counter = WaitCounter {
            reader: BufReader::new(file),
            line: Vec::new(),
            patterns: patterns.map_err(io::Error::other)?,
        };
        counter.pass_over(waits.from)?;
        Ok(counter)
    }

    /// Goes to the end of what was written since `from`. Of a line that is not complete yet, the beginning is kept.
    fn pass_over(&mut self, from: u64) -> io::Result<()> {
        let end = self.reader.seek(SeekFrom::End(0))?;
        // `from` is behind the end where the warden has left out the middle of a long output since.
        let start = end.saturating_sub(LONGEST_LINE as u64).max(from).min(end);
        self.reader.seek(SeekFrom::Start(start))?;
        self.reader.by_ref().take(end - start).read_to_end(&mut self.line)?;
        if let Some(newline) = self.line.iter().rposition(|byte| *byte == b'\n') {
            self.line.drain(..=newline);
        }
        Ok(())
    }

    /// Goes on at the end of an output whose middle was left out behind the reader's back. What was written since the last
    /// look, and what was written to a line that was not complete then, is not counted: it may be gone.
    fn follow_cut(&mut self) -> io::Result<()> {
        let length = self.reader.get_ref().metadata()?.len();
        if length < self.reader.stream_position()? {
            self.reader.seek(SeekFrom::End(0))?;
            self.line.clear();
        }
        Ok(())
    }

    /// The lines of each pattern since the last call, with its name. What cannot be read counts later, or never.
    pub(crate) fn take(&mut self) -> Vec<(String, u64)> {
        let mut counts = vec![0; self.patterns.len()];
        let mut read = 0;
        // A failure shows when the output is read.
        let _ = self.follow_cut();
        while read < MOST_AT_A_TIME {
            let Ok(bytes) = self.reader.fill_buf() else { break };
            if bytes.is_empty() {
                break;
            }
            let end = bytes.iter().position(|byte| *byte == b'\n');
            let used = end.map_or(bytes.len(), |end| end + 1);
            self.line.extend_from_slice(&bytes[..used]);
            self.reader.consume(used);
            read += used;
            let excess = self.line.len().saturating_sub(LONGEST_LINE);
            self.line.drain(..excess);
            if end.is_some() {
                let matches = self.patterns.iter().map(|(_, pattern)| pattern.is_match(&self.line));
                counts.iter_mut().zip(matches).for_each(|(count, matches)| *count += u64::from(matches));
                self.line.clear();
            }
        }
        self.patterns.iter().map(|(name, _)| name.clone()).zip(counts).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::OpenOptions;
    use std::io::Write;

    /// An output to which a system appends, with what it has written by now, and the count of slow reads in it.
    fn slow_reads(folder: &tempfile::TempDir, written: &[u8]) -> (File, WaitCounter) {
        let output = folder.path().join("output");
        let mut file = OpenOptions::new().create(true).append(true).open(&output).unwrap();
        file.write_all(written).unwrap();
        let patterns = vec![("disk".to_owned(), "^slow read".to_owned())];
        (file, WaitCounter::open(&Waits { output, from: 0, patterns }).unwrap())
    }

    #[test]
    fn lines_from_before_the_first_look_do_not_count() {
        let folder = tempfile::tempdir().unwrap();
        let (mut file, mut counter) = slow_reads(&folder, b"slow read\nslow read\nslow re");
        assert_eq!(counter.take(), [("disk".to_owned(), 0)]);
        file.write_all(b"ad\nslow read\n").unwrap();
        assert_eq!(counter.take(), [("disk".to_owned(), 2)]);
    }

    #[test]
    fn counting_goes_on_after_the_output_was_cut() {
        let folder = tempfile::tempdir().unwrap();
        let (mut file, mut counter) = slow_reads(&folder, &b"quick read\n".repeat(10));
        file.write_all(b"slow read\nslow re").unwrap();
        assert_eq!(counter.take(), [("disk".to_owned(), 1)]);
        file.set_len(20).unwrap(); // as the warden does
        file.write_all(b"\nslow read\n").unwrap();
        assert_eq!(counter.take(), [("disk".to_owned(), 0)], "it is not known what was counted before");
        file.write_all(b"slow read\nslow read\n").unwrap();
        assert_eq!(counter.take(), [("disk".to_owned(), 2)]);
    }

    #[test]
    fn lines_count_once_and_only_when_they_are_complete() {
        let folder = tempfile::tempdir().unwrap();
        let output = folder.path().join("output");
        let mut file = File::create(&output).unwrap();
        file.write_all(b"waiting for a connection (an earlier start)\n").unwrap();
        let from = file.metadata().unwrap().len();
        let pattern = |name: &str, text: &str| (name.to_owned(), text.to_owned());
        let patterns = vec![pattern("pool", "waiting for a connection"), pattern("disk", "^slow (read|write)")];
        let mut counter = WaitCounter::open(&Waits { output, from, patterns }).unwrap();
        let mut counted = |text: &[u8]| {
            file.write_all(text).unwrap();
            counter.take().into_iter().map(|(_, count)| count).collect::<Vec<u64>>()
        };
        assert_eq!(counted(b""), [0, 0]);
        assert_eq!(
            counted(b"INFO waiting for a connection\nslow read\nslow write\nvery slow write\nwaiting for"),
            [1, 2]
        );
        assert_eq!(counted(b" a connection"), [0, 0]);
        assert_eq!(counted(b"\n"), [1, 0]);
        let mut long = vec![b'x'; 3 * LONGEST_LINE];
        long.extend_from_slice(b"waiting for a connection\n\xff\xfe\n");
        assert_eq!(counted(&long), [1, 0]);
    }

    #[test]
    fn an_output_that_is_not_there_and_a_bad_pattern_are_errors() {
        let folder = tempfile::tempdir().unwrap();
        let waits = Waits { output: folder.path().join("none"), ..Waits::default() };
        assert!(WaitCounter::open(&waits).is_err());
        File::create(&waits.output).unwrap();
        let patterns = vec![("pool".to_owned(), "(".to_owned())];
        assert!(WaitCounter::open(&Waits { patterns, ..waits }).is_err());
    }
}
