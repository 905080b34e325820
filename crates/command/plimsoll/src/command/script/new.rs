//! `plimsoll script new`: writes a script to start from.

use super::exit::{Exit, Failure};
use crate::arguments::{NewScript, Template};
use crate::command::init::write_new;
use crate::say;
use plimsoll_model::shell;
use std::fs;
use std::io::ErrorKind;

/// Writes the script, unless the file is there already.
pub(super) fn new(wanted: &NewScript) -> Result<Exit, Failure> {
    let NewScript { file, force, template } = wanted;
    let text = match template {
        Template::Minimal => include_str!("templates/minimal.js"),
        Template::Protocol => include_str!("templates/protocol.js"),
    };
    let shown = file.display();
    let written = if *force { fs::write(file, text) } else { write_new(file, text) };
    written.map_err(|error| {
        let why = match error.kind() {
            ErrorKind::AlreadyExists => {
                format!("{shown} is there already: take another name, or overwrite it with `--force`")
            }
            _ => format!("failed to write {shown}: {error}"),
        };
        Failure::new(Exit::Failed, why)
    })?;
    say::result(&format!("wrote {shown}; run it with `plimsoll script run {}`", shell::word(&shown)))?;
    Ok(Exit::Fine)
}
