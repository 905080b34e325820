//! Whole study files: what they become, and what is said about those that are wrong.

mod docs;
mod faults;
mod flow;
mod no_effect;
mod properties;
mod sql;
mod storage;
mod study;

use plimsoll_study::{Diagnostic, Study, read};
use std::path::Path;

/// A study without faults, for tests to take apart.
const GRPC: &str = include_str!("grpc.toml");

fn read_text(text: &str) -> (Option<Study>, Vec<Diagnostic>) {
    read("study.toml", text, None, Path::new("/study"), &[0, 1, 2, 3])
}

/// The study that `text` holds, which must be without faults.
fn study(text: &str) -> Study {
    let (study, diagnostics) = read_text(text);
    let lines: Vec<String> = diagnostics.iter().map(ToString::to_string).collect();
    assert!(lines.is_empty(), "{}", lines.join("\n"));
    study.expect("a study without faults")
}

/// All faults and warnings of a text, with their help.
fn faults_of(text: &str) -> String {
    let line = |fault: Diagnostic| format!("{} ({})", fault.message, fault.help.unwrap_or_default());
    read_text(text).1.into_iter().map(line).collect::<Vec<_>>().join("\n")
}
