//! `plimsoll audit`: lints a table of results that someone else made.

use crate::exit::{Exit, Failure};
use crate::say;
use anyhow::{Context, anyhow};
use plimsoll_audit::Severity;
use plimsoll_model::shell;
use std::io::Read;
use std::path::Path;
use std::string::FromUtf8Error;

/// Reads the table from standard input.
const STANDARD_INPUT: &str = "-";

pub(super) fn audit(path: &Path, as_json: bool) -> Result<Exit, Failure> {
    let (name, text) = read(path)?;
    let audit = plimsoll_audit::audit(&text).map_err(|faults| {
        let plural = if faults.len() == 1 { "" } else { "s" };
        let listed: Vec<String> = faults.iter().map(|fault| format!("{name}: {fault}")).collect();
        anyhow!("{}\n{name}: {} error{plural}; nothing was audited", listed.join("\n"), faults.len())
    })?;
    let report = if as_json { plimsoll_audit::json } else { plimsoll_audit::terminal };
    say::result(report(&name, &audit).trim_end())?;
    Ok(if audit.count(Severity::Problem) > 0 { Exit::Worse } else { Exit::Fine })
}

/// The name of the table and its text.
fn read(path: &Path) -> Result<(String, String), Failure> {
    let name = path.display().to_string();
    if path.is_dir() {
        return Err(anyhow!(
            "expected a table of results as CSV, found the folder {name}; the report of a bundle has findings of its own: \
             `plimsoll report {}`",
            shell::word(&name)
        )
        .into());
    }
    let bytes = if name == STANDARD_INPUT {
        let mut bytes = Vec::new();
        std::io::stdin().read_to_end(&mut bytes).context("failed to read standard input")?;
        bytes
    } else {
        std::fs::read(path).with_context(|| format!("failed to read the table {name}"))?
    };
    let name = if name == STANDARD_INPUT { "standard input".to_owned() } else { name };
    let text = String::from_utf8(bytes).map_err(|error| no_text(&name, &error))?;
    Ok((name, text))
}

/// The error for bytes that are not text, with what to do.
fn no_text(name: &str, error: &FromUtf8Error) -> anyhow::Error {
    let bytes = error.as_bytes();
    let at = error.utf8_error().valid_up_to();
    let line = 1 + bytes[..at].iter().filter(|byte| **byte == b'\n').count();
    let found = match bytes {
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => "UTF-16".to_owned(),
        [b'P', b'K', 3, 4, ..] => "a spreadsheet or an archive".to_owned(),
        _ => format!("the byte 0x{:02X} in line {line}", bytes[at]),
    };
    anyhow!(
        "expected {name} to be UTF-8 text, found {found}; save or export the table as CSV in UTF-8, or take out what is no \
         plain text"
    )
}
