//! The console of scripts in a study, which keeps the first lines that they write.

use super::{Console, LineSource};
use plimsoll_javascript::Level;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How often the same text is kept: after a few iterations it is known.
const MOST_OF_A_TEXT: u32 = 10;

/// How many different texts are counted; any other counts as new each time.
const MOST_TEXTS: usize = 10_000;

/// Bytes that are kept in all.
const MOST_BYTES: usize = 1 << 20;

/// The console of all users, of one load or of several.
#[derive(Default)]
pub(super) struct KeptConsole(Arc<Mutex<ConsoleLog>>);

/// The lines so far.
#[derive(Default)]
struct ConsoleLog {
    /// Kept lines that were not taken yet.
    untaken: Vec<KeptLine>,
    /// The last line, which says how much was left out.
    last: Option<String>,
    /// How often each text was written, by its hash.
    known: HashMap<u64, u32>,
    /// Bytes kept so far.
    bytes: usize,
    counts: LineCounts,
}

/// A line that was kept.
pub(super) struct KeptLine {
    pub(super) source: LineSource,
    pub(super) level: Level,
    pub(super) text: String,
}

/// How many lines were written to a console.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct LineCounts {
    pub(super) lines: u64,
    /// Those of them that were not kept.
    pub(super) left_out: u64,
}

impl KeptConsole {
    /// The sink of the lines, for all threads.
    pub(super) fn console(&self) -> Console {
        let log = Arc::clone(&self.0);
        Arc::new(move |source, level, text| open(&log).add(source, level, text))
    }

    /// The lines that were kept since the last call, each with its end; none where there are none.
    pub(super) fn take(&self) -> Option<String> {
        let mut log = open(&self.0);
        let lines = log.untaken.drain(..).map(|line| format!("{} {}\n", word(line.level), line.text));
        let mut text: String = lines.collect();
        text.extend(log.last.take());
        Some(text).filter(|lines| !lines.is_empty())
    }

    /// The same lines one by one.
    pub(super) fn take_lines(&self) -> Vec<KeptLine> {
        std::mem::take(&mut open(&self.0).untaken)
    }

    /// Ends a load: adds a last line that says how much of it was left out, and counts anew.
    pub(super) fn end_load(&self) -> LineCounts {
        open(&self.0).end()
    }
}

fn open(log: &Mutex<ConsoleLog>) -> MutexGuard<'_, ConsoleLog> {
    log.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ConsoleLog {
    fn add(&mut self, source: LineSource, level: Level, text: &str) {
        self.counts.lines += 1;
        let bytes = word(level).len() + text.len() + 2;
        if self.bytes + bytes > MOST_BYTES || self.times(level, text) > MOST_OF_A_TEXT {
            self.counts.left_out += 1;
        } else {
            self.bytes += bytes;
            self.untaken.push(KeptLine { source, level, text: text.to_owned() });
        }
    }

    /// How often a line was written, this time included.
    fn times(&mut self, level: Level, text: &str) -> u32 {
        let mut hasher = DefaultHasher::new();
        (word(level), text).hash(&mut hasher);
        if self.known.len() >= MOST_TEXTS && !self.known.contains_key(&hasher.finish()) {
            return 1;
        }
        let times = self.known.entry(hasher.finish()).or_default();
        *times += 1;
        *times
    }

    fn end(&mut self) -> LineCounts {
        if self.counts.left_out > 0 {
            let (left_out, bytes) = (self.counts.left_out, MOST_BYTES >> 20);
            self.last = Some(format!(
                "… {left_out} lines more are not kept: at most {MOST_OF_A_TEXT} of one text, and {bytes} MiB in all\n"
            ));
        }
        std::mem::take(&mut self.counts)
    }
}

/// The name of a level.
pub(super) fn word(level: Level) -> &'static str {
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

    /// The lines that the console keeps of these.
    fn kept(lines: impl IntoIterator<Item = String>) -> (LineCounts, Option<String>) {
        let kept = KeptConsole::default();
        let console = kept.console();
        lines.into_iter().for_each(|line| console(LineSource::Script, Level::Info, &line));
        (kept.end_load(), kept.take())
    }

    #[test]
    fn a_silent_script_has_no_lines() {
        assert_eq!(kept([]), (LineCounts::default(), None));
    }

    #[test]
    fn lines_are_taken_once() {
        let kept = KeptConsole::default();
        let console = kept.console();
        console(LineSource::Script, Level::Warn, "one");
        assert_eq!(kept.take().as_deref(), Some("warn one\n"));
        assert_eq!(kept.take(), None);
        console(LineSource::Script, Level::Debug, "two");
        assert_eq!(kept.take().as_deref(), Some("debug two\n"));
    }

    #[test]
    fn the_same_text_is_kept_a_few_times_and_others_beside_it() {
        let (written, text) = kept((0..1000).map(|_| "again".to_owned()).chain(["once".to_owned()]));
        assert_eq!(written, LineCounts { lines: 1001, left_out: 990 });
        let text = text.expect("lines");
        assert_eq!(text.matches("info again\n").count(), 10);
        assert!(text.contains("info once\n… 990 lines more are not kept: "), "{text}");
    }

    #[test]
    fn there_is_an_end_to_what_is_kept() {
        let long = "x".repeat(1000);
        let (written, text) = kept((0..20_000).map(|number| format!("{number} {long}")));
        let text = text.expect("lines");
        assert!(text.len() <= MOST_BYTES + 200 && text.len() > MOST_BYTES - 2000, "{} bytes", text.len());
        assert_eq!(text.lines().count() as u64, written.lines - written.left_out + 1);
    }
}
