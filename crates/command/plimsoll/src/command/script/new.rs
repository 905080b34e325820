//! `plimsoll script new`: writes a script to start from.

use super::exit::{Exit, Failure};
use crate::arguments::{NewScript, Template};
use crate::say;
use anyhow::Context;
use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};

/// Writes the script, unless the file is there already.
pub(super) fn new(wanted: &NewScript) -> Result<Exit, Failure> {
    let NewScript { file, force, template } = wanted;
    let text = match template {
        Template::Minimal => include_str!("templates/minimal.js"),
        Template::Protocol => include_str!("templates/protocol.js"),
    };
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).create_new(!force);
    let mut opened = match options.open(file) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            let why = format!("{} is there already: take another name, or overwrite it with `--force`", file.display());
            return Err(Failure::new(Exit::Failed, why));
        }
        opened => opened.with_context(|| format!("failed to create {}", file.display()))?,
    };
    opened.write_all(text.as_bytes()).with_context(|| format!("failed to write {}", file.display()))?;
    say::result(&format!("wrote {0}; run it with `plimsoll script run {0}`", file.display()))?;
    Ok(Exit::Fine)
}
