//! The terminal while a script runs: the script's console, and the progress.

use crate::printable::printable;
use crate::say;
use anyhow::Context;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use plimsoll_javascript::Level;
use std::fs::File;
use std::io::{IsTerminal, Write};
use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// How often progress is printed if there is no bar: every second as in k6, with a margin because ticks are not exact.
const TELL_EVERY: Duration = Duration::from_millis(950);

/// Standard error, shared by a progress bar and permanent lines.
pub(super) struct Terminal {
    begun: Instant,
    bar: ProgressBar,
    /// The file for the script's console, if it does not go to standard error.
    console: Option<Mutex<File>>,
    /// When progress was last printed; none if it is not to be printed.
    last_progress: Option<Mutex<Instant>>,
}

impl Terminal {
    /// Opens the terminal, and the file for the console if one is given.
    pub(super) fn open(quiet: bool, console: Option<&Path>) -> anyhow::Result<Terminal> {
        let create = |path: &Path| File::create(path).with_context(|| format!("failed to create {}", path.display()));
        let seen = !quiet && std::io::stderr().is_terminal();
        let target = if seen { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(Some(1000), target);
        let style = ProgressStyle::with_template("{bar:20.cyan/dim} {msg}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        Ok(Terminal {
            begun: Instant::now(),
            bar,
            console: console.map(create).transpose()?.map(Mutex::new),
            last_progress: (!quiet).then(|| Mutex::new(Instant::now())),
        })
    }

    /// Prints a permanent line.
    pub(super) fn note(&self, line: &str) {
        self.bar.suspend(|| say::note(line));
    }

    /// A line of the script's console, as k6 writes it.
    pub(super) fn console(&self, level: Level, line: &str) {
        let level = match level {
            Level::Debug => "DEBU",
            Level::Info => "INFO",
            Level::Warn => "WARN",
            Level::Error => "ERRO",
        };
        let line = format!("{level}[{:04}] {line}", self.begun.elapsed().as_secs());
        let Some(file) = &self.console else { return self.note(&line) };
        if let Ok(mut file) = file.lock() {
            // A disk that is full does not end a run.
            let _ = writeln!(file, "{line}");
        }
    }

    /// Shows the progress of the run, as a line and as a share from 0 to 1.
    pub(super) fn progress(&self, line: &str, part: f64) {
        let Some(Ok(mut last_progress)) = self.last_progress.as_ref().map(Mutex::lock) else { return };
        self.bar.set_position((part * 1000.0) as u64);
        self.bar.set_message(printable(line).into_owned());
        if self.bar.is_hidden() && last_progress.elapsed() >= TELL_EVERY {
            *last_progress = Instant::now();
            say::note(line);
        }
    }

    /// Removes the bar.
    pub(super) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}
