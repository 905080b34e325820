//! Shows the summary of a run: by the script's `handleSummary`, or in k6's form.

use super::settle::Settled;
use super::writable_folders::WritableFolders;
use crate::arguments::{Flags, Shown};
use crate::say;
use plimsoll_generator::script::{LineSource, Run, RunOutcome, call_alone};
use plimsoll_javascript::Level;
use plimsoll_k6_run::metrics::Aggregation;
use plimsoll_k6_run::options::TREND_STATS;
use plimsoll_k6_run::summary::{Mode, Output, Summary};
use serde_json::Value;
use std::io::{ErrorKind, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long `handleSummary` may take.
const PATIENCE: Duration = Duration::from_secs(120);

const HANDLER: &str = "handleSummary";

/// The destinations that are no files.
pub(super) const STDOUT: &str = "stdout";
pub(super) const STDERR: &str = "stderr";

/// Shows the summary, writes the requested files, and returns the names of metrics with a failed threshold. A file that
/// cannot be written is reported; the others are still written, and the result of the run does not change, as in k6.
pub(super) fn show<'a>(flags: &Flags, settled: &'a Settled, run: &Run<'a>, ran: &'a RunOutcome) -> Vec<&'a str> {
    let stats: &[Aggregation] = settled.options.summary_trend_stats.as_deref().unwrap_or(&TREND_STATS);
    let summary = Summary {
        registry: run.plan.registry.as_ref(),
        sinks: &ran.sinks,
        elapsed: ran.elapsed,
        limits: &settled.limits,
        checks: &ran.checks,
        trend_stats: stats,
        time_unit: settled.options.summary_time_unit,
    };
    let setup_data: Option<Value> = ran.setup_data.as_deref().and_then(|data| serde_json::from_str(data).ok());
    if let Some(mode) = mode(flags) {
        let output = Output { is_terminal: std::io::stdout().is_terminal(), no_color: flags.no_color };
        let of_script = handled(run, &summary, setup_data.clone(), output);
        let mut texts =
            of_script.map(|texts| WritableFolders::new(&flags.allow_write).retain(texts)).unwrap_or_else(|| {
                let text = summary.text(mode);
                vec![(STDOUT.into(), if flags.no_color { text } else { coloured(&text) })]
            });
        if let Some(file) = &flags.summary_export {
            texts.push((file.clone(), format!("{:#}", summary.export(setup_data))));
        }
        for (to, text) in &texts {
            if let Err(error) = write(to, &run.plan.secrets.masked(text)) {
                say::note(&format!("failed to write {}: {error}", to.display()));
            }
        }
    }
    summary.crossed()
}

/// How much is shown; none for nothing.
fn mode(flags: &Flags) -> Option<Mode> {
    match flags.summary_mode.unwrap_or(Shown::Compact) {
        Shown::Disabled => None,
        _ if flags.no_summary => None,
        Shown::Compact => Some(Mode::Compact),
        Shown::Full => Some(Mode::Full),
        Shown::Legacy => Some(Mode::Legacy),
    }
}

/// Calls `handleSummary` of the script, and returns its texts with their destinations. None if the script has no such
/// function, if that returns nothing, or if it failed, which is reported.
fn handled(
    run: &Run<'_>,
    summary: &Summary<'_>,
    setup_data: Option<Value>,
    output: Output,
) -> Option<Vec<(PathBuf, String)>> {
    if !run.program.exports().iter().any(|export| export == HANDLER) {
        return None;
    }
    let data = summary.data(setup_data, output).to_string();
    let given = call_alone(run, HANDLER, vec![data], PATIENCE).map_err(|why| why.render());
    let texts = given.and_then(|json| texts(json.as_deref()));
    let report = |why: String| (run.console)(LineSource::Run, Level::Error, &format!("`{HANDLER}` failed: {why}"));
    texts.map_err(report).ok().flatten()
}

fn texts(json: Option<&str>) -> Result<Option<Vec<(PathBuf, String)>>, String> {
    let given = match json.and_then(|json| serde_json::from_str(json).ok()) {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::Object(given)) => given,
        Some(other) => return Err(format!("expected it to return an object of texts, found `{other}`")),
    };
    let text = |(to, text): (String, Value)| match text {
        Value::String(text) => Ok((to.into(), text)),
        other => Err(format!("expected a text for `{to}`, found `{other}`")),
    };
    given.into_iter().map(text).collect::<Result<_, _>>().map(Some)
}

fn write(to: &Path, text: &str) -> std::io::Result<()> {
    match to.to_str() {
        Some(STDOUT) => print(text),
        Some(STDERR) => std::io::stderr().write_all(text.as_bytes()),
        _ => std::fs::write(to, text),
    }
}

/// A summary with colours, if a person sees it.
fn coloured(text: &str) -> String {
    if anstream::AutoStream::choice(&std::io::stdout()) == anstream::ColorChoice::Never {
        return text.to_owned();
    }
    const GREEN: &str = "\x1b[32m";
    const RED: &str = "\x1b[31m";
    const BOLD: &str = "\x1b[1m";
    let line = |line: &str| match line.trim_start().chars().next() {
        Some('✓') => line.replacen('✓', &format!("{GREEN}✓\x1b[0m"), 1),
        Some('✗') => line.replacen('✗', &format!("{RED}✗\x1b[0m"), 1),
        Some('█') => format!("{BOLD}{}\x1b[0m\n", line.trim_end_matches('\n')),
        _ => line.to_owned(),
    };
    text.split_inclusive('\n').map(line).collect()
}

/// Prints a text as it is. A closed pipe is no error.
fn print(text: &str) -> std::io::Result<()> {
    let mut stdout = std::io::stdout();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        done => done,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summaries_of_scripts_are_texts_by_where_they_go() {
        let two = texts(Some(r#"{ "stdout": "a", "out.txt": "b" }"#)).expect("two texts");
        assert_eq!(two.map(|two| two.len()), Some(2));
        for nothing in [None, Some("null")] {
            assert_eq!(texts(nothing), Ok(None));
        }
        for (json, why) in [(Some("5"), "`5`"), (Some(r#"{ "stdout": 5 }"#), "for `stdout`")] {
            let refused = texts(json).expect_err("no texts");
            assert!(refused.contains(why), "{refused}");
        }
    }
}
