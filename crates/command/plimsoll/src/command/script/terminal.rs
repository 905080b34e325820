//! What a person sees while a script runs: its console, and how far it is.

use crate::say;
use anyhow::Context;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use plimsoll_javascript::Level;
use std::fs::File;
use std::io::{IsTerminal, Write};
use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Where there is no bar, how far it is is told this often, as by k6; ticks do not come to the instant.
const TELL_EVERY: Duration = Duration::from_millis(950);

/// Standard error, shared by a bar and by lines that stay.
pub(super) struct Terminal {
    begun: Instant,
    bar: ProgressBar,
    /// Where the console of the script goes, if not there.
    console: Option<Mutex<File>>,
    /// When progress was told last; none where nobody wants to know.
    told: Option<Mutex<Instant>>,
}

impl Terminal {
    /// Opens what is needed.
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
            told: (!quiet).then(|| Mutex::new(Instant::now())),
        })
    }

    /// A line that stays.
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

    /// How far the run is: in a line, and from 0 to 1.
    pub(super) fn progress(&self, line: &str, part: f64) {
        let Some(Ok(mut told)) = self.told.as_ref().map(Mutex::lock) else { return };
        self.bar.set_position((part * 1000.0) as u64);
        self.bar.set_message(line.to_owned());
        if self.bar.is_hidden() && told.elapsed() >= TELL_EVERY {
            *told = Instant::now();
            say::note(line);
        }
    }

    /// Takes the bar away.
    pub(super) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}
