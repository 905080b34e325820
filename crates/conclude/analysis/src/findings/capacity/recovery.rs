//! How long systems took to recover from loads under which requests failed.

use super::searches;
use crate::finding::{Finding, Severity};
use crate::findings::Context;
use crate::measure::TrialReader;
use crate::quantity::grouped;
use crate::words::counted;
use plimsoll_model::result::{LoadResult, RungResult};
use std::time::Duration;

/// The most lines of evidence.
const LINES: usize = 12;

/// The light loads after one under which requests failed.
struct Recovery {
    /// The level of that load.
    from: f64,
    /// For how long light loads were offered in vain.
    took: Duration,
    recovered: bool,
}

/// A light load did not meet the objective, although it had before.
pub(super) fn finding(context: &Context<'_>) -> Option<Finding> {
    let searching = context.readers.iter().filter(|_| context.input.plan.searches());
    let of_reader = |reader| {
        let recoveries = recoveries(TrialReader::load(reader));
        recoveries.map(move |recovery| (context.trial(reader), recovery))
    };
    let all: Vec<(String, Recovery)> = searching.flat_map(of_reader).collect();
    let count = all.len();
    let mut slow: Vec<(String, Recovery)> = all.into_iter().filter(|(_, one)| !one.took.is_zero()).collect();
    if slow.is_empty() {
        return None;
    }
    slow.sort_by_key(|(_, one)| std::cmp::Reverse(one.took));
    let stuck = slow.iter().filter(|(_, one)| !one.recovered).count();
    let line = |(trial, Recovery { from, took, recovered }): &(String, Recovery)| {
        let how = if *recovered { "more than" } else { "not within" };
        format!("{trial}: {how} {:.0} s after a load of {}", took.as_secs_f64(), grouped(from.round()))
    };
    let mut evidence: Vec<String> = slow.iter().take(LINES).map(line).collect();
    let more = slow.len().saturating_sub(LINES);
    if more > 0 {
        evidence.push(format!("{more} more, which took no longer"));
    }
    let ended = match stuck {
        0 => String::new(),
        _ => format!(
            " {} ended with it, because they did not recover in the time that they have (`load.recover`).",
            searches(stuck)
        ),
    };
    Some(Finding {
        severity: if stuck > 0 { Severity::Problem } else { Severity::Caution },
        topic: "recovery",
        sentence: format!(
            "After {} (of {count}) under which requests failed, light loads failed as well: the systems recover slowly from \
             what is too much for them.{ended}",
            counted(slow.len(), "load")
        ),
        evidence,
    })
}

fn recoveries(load: &LoadResult) -> impl Iterator<Item = Recovery> {
    let number = |one: &RungResult| one.summary.load.number;
    load.recoveries.chunk_by(move |one, next| number(next) == number(one) + 1).filter_map(move |light| {
        let from = load.rungs.iter().rfind(|rung| number(rung) < number(&light[0]))?;
        let in_vain = light.iter().filter(|one| !one.summary.has_recovered());
        let lengths = in_vain.map(|one| one.summary.load.lengths);
        Some(Recovery {
            from: from.rung.level,
            took: lengths.map(|lengths| lengths.warmup + lengths.measure).sum(),
            recovered: light.last()?.summary.has_recovered(),
        })
    })
}
