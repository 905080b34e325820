//! What scripts left behind besides their numbers.

use super::{Context, Finding, Gravity, which};
use crate::quantity::grouped;

pub(super) fn findings(context: &Context<'_>) -> Vec<Finding> {
    console(context).into_iter().collect()
}

/// Where to look for what scripts wrote to their console: it may say why something went wrong.
fn console(context: &Context<'_>) -> Option<Finding> {
    let written = |reader: &super::Reader<'_>| reader.load().summary.work.script().map_or(0, |script| script.console);
    let wrote: Vec<(u32, u64)> = context
        .readers
        .iter()
        .map(|reader| (reader.trial().number(), written(reader)))
        .filter(|(_, lines)| *lines > 0)
        .collect();
    let (first, _) = wrote.first()?;
    let trials: Vec<u32> = wrote.iter().map(|(trial, _)| *trial).collect();
    let lines: u64 = wrote.iter().map(|(_, lines)| lines).sum();
    Some(Finding {
        gravity: Gravity::Note,
        topic: "console",
        sentence: format!(
            "The script wrote to its console in {} ({} lines): the first of it is in the bundle, for trial {first} in \
             `trials/{first:04}/console.log`.",
            which(&trials),
            grouped(lines as f64)
        ),
        evidence: Vec::new(),
    })
}
