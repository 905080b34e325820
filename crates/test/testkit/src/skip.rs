//! Reports tests that could not run their checks.

use std::fmt::Display;
use std::io::{Write, stderr};

/// Prints `SKIPPED` and the reason, past the capture of test output, which would hide it. `./test` counts such
/// lines.
pub fn skipped(reason: impl Display) {
    let _ = writeln!(stderr(), "\nSKIPPED: {reason}");
}
