//! Saying aloud that a test could not look at what it is for.

use std::fmt::Display;
use std::io::{Write, stderr};

/// Says so past the capture of test output, which would hide it: `./test` counts such lines.
pub fn skipped(reason: impl Display) {
    let _ = writeln!(stderr(), "\nSKIPPED: {reason}");
}
