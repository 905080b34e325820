//! `plimsoll plan`: every trial in order and the total time, nothing started.

use super::study;
use crate::exit::{Exit, Failure};
use crate::progress::time;
use crate::say;
use plimsoll_model::trial::Plan;
use std::fmt::Write as _;
use std::path::Path;

pub(super) fn plan(path: &Path, quick: bool) -> Result<Exit, Failure> {
    let mut source = study::read(path)?;
    if quick {
        source.study = plimsoll_study::quick(source.study);
    }
    let plan = study::plan(&source.study);
    say::result(describe(&source.study.title, &plan).trim_end())?;
    Ok(Exit::Fine)
}

/// The plan as a table of trials, and what it takes.
pub(super) fn describe(title: &str, plan: &Plan) -> String {
    let mut text = format!("{title}\n\n");
    let variants: Vec<String> = plan.variants.iter().map(ToString::to_string).collect();
    let _ = writeln!(text, "variants    {} (the first is the baseline)", variants.join(" | "));
    let _ = writeln!(text, "conditions  {}", plan.conditions.len());
    let _ = writeln!(text, "repeats     {}", plan.repeats);
    let _ = writeln!(text, "seed        {}\n", plan.seed);
    let width = |texts: &[String], least: usize| texts.iter().map(|text| text.chars().count()).fold(least, usize::max);
    let labels: Vec<String> = plan.variants.iter().map(plimsoll_model::factor::Assignment::label).collect();
    let conditions: Vec<String> = plan.conditions.iter().map(ToString::to_string).collect();
    let (variant_width, condition_width) = (width(&labels, 7), width(&conditions, 9));
    let _ = writeln!(
        text,
        "{:>5}  {:>5}  {:>6}  {:variant_width$}  {:condition_width$}  load",
        "trial", "block", "repeat", "variant", "condition"
    );
    for trial in &plan.trials {
        let length = plan.lengths[trial.condition];
        let line = format!(
            "{:>5}  {:>5}  {:>6}  {:variant_width$}  {:condition_width$}  {} + {}",
            trial.number,
            trial.block,
            trial.repeat,
            labels[trial.variant],
            conditions[trial.condition],
            time(length.warmup),
            time(length.measure)
        );
        let _ = writeln!(text, "{}", line.trim_end());
    }
    let _ = writeln!(
        text,
        "\n{} trials, {} under load (warm-up + measure; starting and stopping systems comes on top)",
        plan.trials.len(),
        time(plan.time_under_load())
    );
    text
}
