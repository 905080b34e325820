//! The text formats in which systems expose their metrics.

use super::text;
use plimsoll_telemetry::exposition::{Fault, Line, lines};

/// The lines up to an end of a line are the first of all, whatever comes behind it. A fault is at a line that is there, and
/// nothing follows it.
pub(crate) fn exposition(input: &[u8]) {
    let text = text(input);
    let all: Vec<Result<Line<'_>, Fault>> = lines(&text).collect();
    let half = text.as_bytes()[..text.len() / 2].iter().rposition(|byte| *byte == b'\n');
    let half = half.map_or("", |end| &text[..=end]);
    let ends_within = half.lines().any(|line| line == "# EOF");
    for (one, whole) in lines(half).zip(&all).filter(|_| !ends_within) {
        assert!(same(&one, whole), "{one:?} and {whole:?}");
    }
    let faults = all.iter().filter_map(|line| line.as_ref().err());
    assert!(faults.clone().count() <= 1);
    for fault in faults {
        assert!(fault.line >= 1 && fault.line <= text.split('\n').count(), "{fault}");
        assert!(all.last().is_some_and(Result::is_err), "{fault}");
    }
}

/// Equality in which a value that is no number equals itself.
fn same(one: &Result<Line<'_>, Fault>, other: &Result<Line<'_>, Fault>) -> bool {
    match (one, other) {
        (Ok(Line::Sample(one)), Ok(Line::Sample(other))) => {
            (&one.name, &one.labels, one.value.to_bits()) == (&other.name, &other.labels, other.value.to_bits())
        }
        _ => one == other,
    }
}
