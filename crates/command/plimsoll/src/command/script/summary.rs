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
        let mut files =
            of_script.map(|files| WritableFolders::new(&flags.allow_write).retain(files)).unwrap_or_else(|| {
                let text = summary.text(mode);
                let text = if flags.no_color { text } else { coloured(&text) };
                vec![(STDOUT.into(), text.into_bytes())]
            });
        if let Some(file) = &flags.summary_export {
            files.push((file.clone(), format!("{:#}", summary.export(setup_data)).into_bytes()));
        }
        for (to, content) in &files {
            if let Err(error) = write(to, &run.plan.secrets.masked_bytes(content)) {
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

/// Calls `handleSummary` of the script, and returns what it writes with the destinations. None if the script has no
/// such function, if that returns nothing, or if it failed, which is reported.
fn handled(run: &Run<'_>, summary: &Summary<'_>, setup_data: Option<Value>, output: Output) -> Option<Written> {
    if !run.program.exports().iter().any(|export| export == HANDLER) {
        return None;
    }
    let data = summary.data(setup_data, output).to_string();
    let given = call_alone(run, HANDLER, vec![data], PATIENCE).map_err(|why| why.render());
    let files = given.and_then(|json| files(json.as_deref()));
    let report = |why: String| (run.console)(LineSource::Run, Level::Error, &format!("`{HANDLER}` failed: {why}"));
    files.map_err(report).ok().flatten()
}

/// What a script has written, with its destinations.
type Written = Vec<(PathBuf, Vec<u8>)>;

/// Reads what `handleSummary` returns: texts and, as in k6, buffers.
fn files(json: Option<&str>) -> Result<Option<Written>, String> {
    let given = match json.and_then(|json| serde_json::from_str(json).ok()) {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::Object(given)) => given,
        Some(other) => return Err(format!("expected it to return an object of texts, found `{other}`")),
    };
    let file = |(to, given): (String, Value)| match content(&given) {
        Some(content) => Ok((to.into(), content)),
        None => Err(format!("expected a text or an ArrayBuffer for `{to}`, found `{given}`")),
    };
    given.into_iter().map(file).collect::<Result<_, _>>().map(Some)
}

/// The bytes of a text or of a buffer, which `call_alone` returns as `{ "bytes": … }`; none for other values.
fn content(given: &Value) -> Option<Vec<u8>> {
    match given {
        Value::String(text) => Some(text.clone().into_bytes()),
        other => other.get("bytes")?.as_str()?.chars().map(|byte| u8::try_from(byte).ok()).collect(),
    }
}

fn write(to: &Path, content: &[u8]) -> std::io::Result<()> {
    match to.to_str() {
        Some(STDOUT) => print(content),
        Some(STDERR) => std::io::stderr().write_all(content),
        _ => std::fs::write(to, content),
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

/// Prints bytes as they are. A closed pipe is no error.
fn print(bytes: &[u8]) -> std::io::Result<()> {
    let mut stdout = std::io::stdout();
    match stdout.write_all(bytes).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        done => done,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summaries_of_scripts_are_texts_and_buffers_by_where_they_go() {
        let two = files(Some(r#"{ "stdout": "é", "out.bin": { "bytes": "\u0000é" } }"#)).expect("a text and a buffer");
        let of = |to: &str| two.iter().flatten().find(|(path, _)| path == Path::new(to)).map(|(_, bytes)| &bytes[..]);
        assert_eq!((of("stdout"), of("out.bin")), (Some("é".as_bytes()), Some(&[0, 0xe9][..])));
        for nothing in [None, Some("null")] {
            assert_eq!(files(nothing), Ok(None));
        }
        for (json, why) in [
            (Some("5"), "`5`"),
            (Some(r#"{ "stdout": 5 }"#), "for `stdout`"),
            (Some(r#"{ "stdout": { "bytes": "€" } }"#), "for `stdout`"),
        ] {
            let refused = files(json).expect_err("neither texts nor buffers");
            assert!(refused.contains(why), "{refused}");
        }
    }
}
