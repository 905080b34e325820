//! Results go to standard output, everything else to standard error. The reader of either may be gone, as in `plimsoll
//! plan study.toml | head`; a run does not end because of that.

use crate::printable::printable;
use anyhow::anyhow;
use std::io::{ErrorKind, Write};

/// Prints a result. A closed pipe is no error.
pub(crate) fn result(text: &str) -> anyhow::Result<()> {
    let mut stdout = anstream::stdout();
    match writeln!(stdout, "{}", printable(text)).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(anyhow!("failed to write to standard output: {error}"))
        }
        _ => Ok(()),
    }
}

/// Prints a note on standard error, and ignores errors.
pub(crate) fn note(text: &str) {
    let _ = writeln!(anstream::stderr(), "{}", printable(text));
}
