//! The text of `legacy`: groups with their checks, then all metrics in one list.

use super::lines::Widths;
use super::text::check_lines;
use super::{Summary, mark};
use crate::checks::last_name;
use std::fmt::Write;

pub(super) fn text(summary: &Summary<'_>) -> String {
    let mut out = String::from("\n");
    group(summary, "", 5, &mut out);
    let rows = summary.rows();
    let widths = Widths::of(summary, &rows);
    for row in &rows {
        let line = widths.line(summary, row);
        let judged = row.judged(summary);
        // The mark of a part stands where its indentation would.
        let (indent, line) = match (judged.is_empty(), row.tags()) {
            (true, _) => (5, line.as_str()),
            (false, None) => (3, line.as_str()),
            (false, Some(_)) => (5, line.trim_start()),
        };
        let mark = match judged.as_slice() {
            [] => String::new(),
            all => format!("{} ", mark(all.iter().all(|(_, judged)| judged.holds))),
        };
        let _ = writeln!(out, "{:indent$}{mark}{line}", "");
    }
    out
}

fn group(summary: &Summary<'_>, path: &str, indent: usize, out: &mut String) {
    let before = out.len();
    summary.checks.of(path).iter().for_each(|check| check_lines(check, indent, 1, out));
    if out.len() > before {
        out.push('\n');
    }
    for inner in summary.checks.groups_in(path) {
        let _ = write!(out, "{:indent$}█ {}\n\n", "", last_name(inner));
        group(summary, inner, indent + 2, out);
    }
}
