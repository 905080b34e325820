//! The console of scripts in a study: the first of what they write is kept in a file.

use super::Console;
use plimsoll_javascript::Level;
use std::collections::HashMap;
use std::fs::File;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How often the same text is kept: what each iteration says is known after a few of them.
const MOST_OF_A_TEXT: u32 = 10;

/// How many different texts are told apart; any other is new each time.
const MOST_TEXTS: usize = 10_000;

/// Bytes that are kept in all.
const MOST_BYTES: usize = 1 << 20;

/// A file for the console of all users of a trial, which is there from the first line on.
pub(super) struct ConsoleFile(Arc<Mutex<ConsoleLog>>);

/// The state of the file.
struct ConsoleLog {
    path: PathBuf,
    file: io::Result<Option<BufWriter<File>>>,
    /// How often each text was written, by its hash.
    known: HashMap<u64, u32>,
    bytes: usize,
    written: LineCounts,
}

/// How many lines were written to a console.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct LineCounts {
    pub(super) lines: u64,
    /// Those of them that were not kept.
    pub(super) left_out: u64,
}

impl ConsoleFile {
    /// A console whose lines go to a file of this path.
    pub(super) fn at(path: PathBuf) -> ConsoleFile {
        let (known, written) = (HashMap::new(), LineCounts::default());
        ConsoleFile(Arc::new(Mutex::new(ConsoleLog { path, file: Ok(None), known, bytes: 0, written })))
    }

    /// What takes the lines, from whatever thread.
    pub(super) fn console(&self) -> Console {
        let log = Arc::clone(&self.0);
        Arc::new(move |level, text| open(&log).note(level, text))
    }

    /// Ends the file, with how much it leaves out.
    ///
    /// # Errors
    /// The disk does not take it.
    pub(super) fn finish(&self) -> Result<LineCounts, String> {
        let mut log = open(&self.0);
        log.end().map_err(|error| format!("failed to write `{}`: {error}", log.path.display()))?;
        Ok(log.written)
    }
}

fn open(log: &Mutex<ConsoleLog>) -> MutexGuard<'_, ConsoleLog> {
    log.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ConsoleLog {
    fn note(&mut self, level: Level, text: &str) {
        self.written.lines += 1;
        let line = format!("{} {text}\n", word(level));
        if self.bytes + line.len() > MOST_BYTES || self.times(&line) > MOST_OF_A_TEXT {
            self.written.left_out += 1;
        } else {
            self.bytes += line.len();
            self.write(&line);
        }
    }

    /// How often a line was written, this time included.
    fn times(&mut self, line: &str) -> u32 {
        let mut hasher = DefaultHasher::new();
        line.hash(&mut hasher);
        if self.known.len() >= MOST_TEXTS && !self.known.contains_key(&hasher.finish()) {
            return 1;
        }
        let times = self.known.entry(hasher.finish()).or_default();
        *times += 1;
        *times
    }

    /// Writes a line, unless the disk has refused one before.
    fn write(&mut self, line: &str) {
        let Ok(file) = &mut self.file else { return };
        let written = match file {
            Some(file) => file.write_all(line.as_bytes()),
            None => {
                File::create(&self.path).and_then(|made| file.insert(BufWriter::new(made)).write_all(line.as_bytes()))
            }
        };
        if let Err(error) = written {
            self.file = Err(error);
        }
    }

    fn end(&mut self) -> io::Result<()> {
        if self.written.left_out > 0 {
            let (left_out, bytes) = (self.written.left_out, MOST_BYTES >> 20);
            self.write(&format!(
                "… {left_out} lines more are not kept: at most {MOST_OF_A_TEXT} of one text, and {bytes} MiB in all\n"
            ));
        }
        let file = std::mem::replace(&mut self.file, Ok(None))?;
        file.map_or(Ok(()), |mut file| file.flush())
    }
}

fn word(level: Level) -> &'static str {
    match level {
        Level::Debug => "debug",
        Level::Info => "info",
        Level::Warn => "warn",
        Level::Error => "error",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is kept of these lines, in a file.
    fn kept(lines: impl IntoIterator<Item = String>) -> (LineCounts, Option<String>) {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("console.log");
        let kept = ConsoleFile::at(path.clone());
        let console = kept.console();
        lines.into_iter().for_each(|line| console(Level::Info, &line));
        (kept.finish().expect("there is room"), std::fs::read_to_string(path).ok())
    }

    #[test]
    fn a_silent_script_leaves_no_file() {
        assert_eq!(kept([]), (LineCounts::default(), None));
    }

    #[test]
    fn the_same_text_is_kept_a_few_times_and_others_beside_it() {
        let (written, text) = kept((0..1000).map(|_| "again".to_owned()).chain(["once".to_owned()]));
        assert_eq!(written, LineCounts { lines: 1001, left_out: 990 });
        let text = text.expect("a file");
        assert_eq!(text.matches("info again\n").count(), 10);
        assert!(text.contains("info once\n… 990 lines more are not kept: "), "{text}");
    }

    #[test]
    fn the_file_has_an_end() {
        let long = "x".repeat(1000);
        let (written, text) = kept((0..20_000).map(|number| format!("{number} {long}")));
        let text = text.expect("a file");
        assert!(text.len() <= MOST_BYTES + 200 && text.len() > MOST_BYTES - 2000, "{} bytes", text.len());
        assert_eq!(text.lines().count() as u64, written.lines - written.left_out + 1);
    }

    #[test]
    fn a_disk_that_does_not_take_it_is_told() {
        let folder = tempfile::tempdir().expect("a folder");
        let kept = ConsoleFile::at(folder.path().join("no such folder/console.log"));
        kept.console()(Level::Warn, "lost");
        assert!(kept.finish().expect_err("no folder").contains("console.log"));
    }
}
