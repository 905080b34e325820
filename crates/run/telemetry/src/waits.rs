//! Counts lines in the output of a system that say that something waited, as they are written.

use regex::bytes::Regex;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Seek, SeekFrom};
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
    /// Opens the output.
    ///
    /// # Errors
    /// It cannot be read, or a pattern is no regular expression.
    pub(crate) fn open(waits: &Waits) -> io::Result<WaitCounter> {
        let mut file = File::open(&waits.output)?;
        file.seek(SeekFrom::Start(waits.from))?;
        let compile = |(name, pattern): &(String, String)| Ok((name.clone(), Regex::new(pattern)?));
        let patterns = waits.patterns.iter().map(compile).collect::<Result<_, regex::Error>>();
        Ok(WaitCounter {
            reader: BufReader::new(file),
            line: Vec::new(),
            patterns: patterns.map_err(io::Error::other)?,
        })
    }

    /// The lines of each pattern since the last call, with its name. What cannot be read counts later, or never.
    pub(crate) fn take(&mut self) -> Vec<(String, u64)> {
        let mut counts = vec![0; self.patterns.len()];
        let mut read = 0;
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
    use std::io::Write;

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
