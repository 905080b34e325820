//! The study file.

use super::text;
use std::path::Path;

/// Reads the input as a study, with every fault.
pub(super) fn study(input: &[u8]) {
    let text = text(input);
    let (study, diagnostics) = plimsoll_study::read("study.toml", &text, None, Path::new("/nonexistent"), &[0, 1]);
    let errors = diagnostics.iter().any(|found| found.severity == plimsoll_study::Severity::Error);
    assert_eq!(study.is_none(), errors, "there is a study if and only if nothing is an error");
    diagnostics.iter().for_each(|diagnostic| drop(diagnostic.to_string()));
}
