//! Results go to standard output, everything else to standard error. Whoever reads either may be
//! gone, as in `plimsoll plan study.toml | head`; a run does not end because of that.

use anyhow::anyhow;
use std::io::{ErrorKind, Write};

/// Prints a result. A reader that went away has read enough.
pub(crate) fn result(text: &str) -> anyhow::Result<()> {
    let mut stdout = anstream::stdout();
    match writeln!(stdout, "{text}").and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(anyhow!("failed to write to standard output: {error}"))
        }
        _ => Ok(()),
    }
}

/// Tells whoever started this program something, if they still listen.
pub(crate) fn note(text: &str) {
    let _ = writeln!(anstream::stderr(), "{text}");
}
