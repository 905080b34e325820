//! Findings about scripts.

use super::{Context, Finding, Severity};
use crate::quantity::grouped;
use crate::words;

pub(super) fn findings(context: &Context<'_>) -> Vec<Finding> {
    console(context).into_iter().collect()
}

/// Where to find the scripts' console output: it may explain a failure.
fn console(context: &Context<'_>) -> Option<Finding> {
    let written =
        |reader: &super::TrialReader<'_>| reader.load().summary.work.script().map_or(0, |script| script.console);
    let wrote: Vec<_> = context.readers.iter().filter(|reader| written(reader) > 0).collect();
    let first = wrote.first()?.trial();
    let trials: Vec<u32> = wrote.iter().map(|reader| reader.trial().number()).collect();
    let lines: u64 = wrote.iter().map(|reader| written(reader)).sum();
    let unit = words::unit(&context.input.plan);
    Some(Finding {
        severity: Severity::Note,
        topic: "console",
        sentence: format!(
            "The script wrote to its console in {} ({} lines): the first of it is in the bundle, for {unit} {} in \
             `{}/console.log`.",
            context.list_of_trials(&trials),
            grouped(lines as f64),
            first.number(),
            first.start.folder
        ),
        evidence: Vec::new(),
    })
}
