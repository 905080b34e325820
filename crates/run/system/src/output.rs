//! The output of a system: its file, a search in it, and its last lines for error messages.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// Lines shown in an error message.
const LINES: usize = 20;
/// Bytes looked at for them.
const TAIL_BYTES: u64 = 16 * 1024;
/// Characters shown of a line.
const LINE_CHARS: usize = 300;

/// The last lines that a command wrote, to be printed at the end of an error message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LastOutput {
    /// At most 20, oldest first.
    pub lines: Vec<String>,
    /// The file with all of it, if there is one.
    pub file: Option<PathBuf>,
}

impl LastOutput {
    /// The last lines of a text.
    pub(crate) fn of(written: &str, file: Option<PathBuf>) -> LastOutput {
        let lines: Vec<&str> = written.trim_end().lines().collect();
        let shown = &lines[lines.len().saturating_sub(LINES)..];
        LastOutput { lines: shown.iter().map(|line| line.chars().take(LINE_CHARS).collect()).collect(), file }
    }
}

impl fmt::Display for LastOutput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = self.file.as_ref().map(|file| format!(" (all of it in {})", file.display())).unwrap_or_default();
        if self.lines.is_empty() {
            return f.write_str("it wrote nothing");
        }
        write!(f, "its last output{file}:")?;
        self.lines.iter().try_for_each(|line| write!(f, "\n    {line}"))
    }
}

/// The file of a command's standard output and error, from where this command began. Earlier output in the
/// same file belongs to other commands.
#[derive(Clone, Debug)]
pub(crate) struct Output {
    path: PathBuf,
    from: u64,
}

impl Output {
    /// Opens `path` to append to it, and makes it with its folder if need be.
    pub(crate) fn open(path: &Path) -> io::Result<(Output, File)> {
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        let from = file.metadata()?.len();
        Ok((Output { path: path.to_owned(), from }, file))
    }

    /// The file, and where in it this command began to write.
    pub(crate) fn place(&self) -> (&Path, u64) {
        (&self.path, self.from)
    }

    /// The last lines. None if the file cannot be read, which must not hide the error that needs them.
    pub(crate) fn last(&self) -> LastOutput {
        LastOutput::of(&self.tail().unwrap_or_default(), Some(self.path.clone()))
    }

    /// A search for lines, which continues where it stopped.
    pub(crate) fn search(&self) -> io::Result<LineSearch> {
        let mut file = File::open(&self.path)?;
        file.seek(SeekFrom::Start(self.from))?;
        Ok(LineSearch { reader: BufReader::new(file), from: self.from, line: Vec::new() })
    }

    fn tail(&self) -> io::Result<String> {
        let mut file = File::open(&self.path)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(begin(self.from, length).max(length.saturating_sub(TAIL_BYTES))))?;
        let mut bytes = Vec::new();
        file.take(TAIL_BYTES).read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

/// Where the output of a command begins in its file. The warden leaves out the middle of a file that grew too long, and
/// maybe that place with it.
fn begin(from: u64, length: u64) -> u64 {
    if from <= length { from } else { 0 }
}

/// Reads a growing file line by line.
#[derive(Debug)]
pub(crate) struct LineSearch {
    reader: BufReader<File>,
    /// Where the search began.
    from: u64,
    line: Vec<u8>,
}

impl LineSearch {
    /// True if a line with `text` was written since the last call. An incomplete line counts too.
    pub(crate) fn found(&mut self, text: &str) -> io::Result<bool> {
        let length = self.reader.get_ref().metadata()?.len();
        if self.reader.stream_position()? > length {
            self.reader.seek(SeekFrom::Start(begin(self.from, length)))?;
            self.line.clear();
        }
        while self.reader.read_until(b'\n', &mut self.line)? > 0 {
            if String::from_utf8_lossy(&self.line).contains(text) {
                return Ok(true);
            }
            if self.line.ends_with(b"\n") {
                self.line.clear();
            }
        }
        Ok(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn the_last_twenty_lines_are_shown_and_the_file_is_named() {
        let written: Vec<String> = (1..=30).map(|number| format!("line {number}")).collect();
        let last = LastOutput::of(&written.join("\n"), Some(PathBuf::from("out.log")));
        assert_eq!(last.lines.len(), 20);
        let shown = last.to_string();
        assert!(shown.starts_with("its last output (all of it in out.log):\n    line 11\n"), "{shown}");
        assert!(shown.ends_with("\n    line 30"), "{shown}");
        assert_eq!(LastOutput::of(" \n", None).to_string(), "it wrote nothing");
    }

    #[test]
    fn a_line_is_found_though_it_comes_in_pieces_and_earlier_output_is_not_searched() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deeper/out.log");
        Output::open(&path).unwrap().1.write_all(b"ready (of the trial before)\n").unwrap();
        let (output, mut file) = Output::open(&path).unwrap();
        let mut search = output.search().unwrap();
        assert!(!search.found("ready").unwrap());
        file.write_all(b"not yet\nnow re").unwrap();
        assert!(!search.found("ready").unwrap());
        file.write_all(b"ady").unwrap();
        assert!(search.found("ready").unwrap());
        assert_eq!(output.last().lines, ["not yet", "now ready"]);

        file.set_len(3).unwrap();
        file.write_all(b" steady\n").unwrap();
        assert!(search.found("steady").unwrap(), "though the file is shorter than before");
        assert_eq!(output.last().lines, ["rea steady"], "of which it is not known whose output it is");
    }
}
