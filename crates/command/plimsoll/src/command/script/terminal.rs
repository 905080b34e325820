//! The terminal while a script runs: log lines, of which the script's console is a part, and the progress.

use crate::arguments::{LogFormat, LogOutput};
use crate::printable::printable;
use crate::say;
use anyhow::Context;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use jiff::Timestamp;
use plimsoll_javascript::Level;
use plimsoll_k6::secrets::Secrets;
use serde_json::json;
use std::fs::File;
use std::io::{IsTerminal, Write};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// How often progress is printed if there is no bar: every second as in k6, with a margin because ticks are not exact.
const TELL_EVERY: Duration = Duration::from_millis(950);

/// Standard error, shared by a progress bar and permanent lines, and the other places to which log lines may go. None of
/// them shows a secret that the script has read.
pub(super) struct Terminal {
    begun: Instant,
    bar: ProgressBar,
    log: Destination,
    format: LogFormat,
    /// The file for the script's console, if it does not go where other log lines go.
    console: Option<Destination>,
    secrets: Arc<Secrets>,
    /// When progress was last printed; none if it is not to be printed.
    last_progress: Option<Mutex<Instant>>,
}

/// Where log lines go, and how.
pub(super) struct LogSettings<'a> {
    pub(super) output: &'a LogOutput,
    pub(super) format: LogFormat,
    /// A file for the script's console.
    pub(super) console: Option<&'a Path>,
    pub(super) secrets: &'a Arc<Secrets>,
}

/// A place for log lines.
enum Destination {
    Stderr,
    Stdout,
    Nowhere,
    File { file: Mutex<File>, least: Level },
}

impl Destination {
    fn open(output: &LogOutput) -> anyhow::Result<Destination> {
        Ok(match output {
            LogOutput::Stderr => Destination::Stderr,
            LogOutput::Stdout => Destination::Stdout,
            LogOutput::Nowhere => Destination::Nowhere,
            LogOutput::File { path, least } => Destination::file(path, *least)?,
        })
    }

    /// A file, which keeps the lines that it has, as with k6.
    fn file(path: &Path, least: Level) -> anyhow::Result<Destination> {
        let file = File::options().append(true).create(true).open(path);
        let file = file.with_context(|| format!("failed to open {}", path.display()))?;
        Ok(Destination::File { file: Mutex::new(file), least })
    }
}

impl Terminal {
    /// Opens the terminal, and the files for log lines.
    pub(super) fn open(quiet: bool, settings: &LogSettings<'_>) -> anyhow::Result<Terminal> {
        let LogSettings { output, format, console, secrets } = *settings;
        let seen = !quiet && std::io::stderr().is_terminal();
        let target = if seen { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(Some(1000), target);
        let style = ProgressStyle::with_template("{bar:20.cyan/dim} {msg}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        Ok(Terminal {
            begun: Instant::now(),
            bar,
            log: Destination::open(output)?,
            format,
            console: console.map(|path| Destination::file(path, Level::Debug)).transpose()?,
            secrets: Arc::clone(secrets),
            last_progress: (!quiet).then(|| Mutex::new(Instant::now())),
        })
    }

    /// Writes a line of the script's console.
    pub(super) fn console(&self, level: Level, line: &str) {
        self.write(self.console.as_ref().unwrap_or(&self.log), level, line, true);
    }

    /// Writes a line of Plimsoll's own.
    pub(super) fn log(&self, level: Level, line: &str) {
        self.write(&self.log, level, line, false);
    }

    fn write(&self, to: &Destination, level: Level, line: &str, is_console: bool) {
        let line = self.formatted(level, &self.secrets.masked(line), is_console);
        match to {
            Destination::Stderr => self.bar.suspend(|| say::note(&line)),
            Destination::Stdout => self.bar.suspend(|| drop(say::result(&line))),
            Destination::File { file, least } if level >= *least => {
                if let Ok(mut file) = file.lock() {
                    // A disk that is full does not end a run.
                    let _ = writeln!(file, "{line}");
                }
            }
            Destination::File { .. } | Destination::Nowhere => {}
        }
    }

    /// A log line as k6 writes it.
    fn formatted(&self, level: Level, line: &str, is_console: bool) -> String {
        let (short, long) = match level {
            Level::Debug => ("DEBU", "debug"),
            Level::Info => ("INFO", "info"),
            Level::Warn => ("WARN", "warning"),
            Level::Error => ("ERRO", "error"),
        };
        match self.format {
            LogFormat::Text => format!("{short}[{:04}] {line}", self.begun.elapsed().as_secs()),
            LogFormat::Raw => line.to_owned(),
            LogFormat::Json => {
                let mut object = json!({ "level": long, "msg": line, "time": format!("{:.0}", Timestamp::now()) });
                if is_console {
                    object["source"] = "console".into();
                }
                object.to_string()
            }
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
