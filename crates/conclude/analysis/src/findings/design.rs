//! Findings about the design of the study.

use super::{Context, Finding, Severity};
use crate::capacity::show_value;
use crate::durability::weaknesses_in;
use crate::estimate::MIN_REPEATS;
use crate::measure::MIN_VALUES_BEYOND;
use crate::numbers::Cell;
use crate::quantity::{grouped, margin};
use crate::verdict::Outcome;
use crate::words;
use plimsoll_model::measure::Effect;
use std::collections::BTreeMap;

pub(super) fn findings(context: &Context<'_>) -> Vec<Finding> {
    [
        too_few_repeats(context),
        given_time(context),
        wide_spread(context),
        too_few_requests(context),
        durability(context),
        quick(context),
        loopback(context),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn too_few_repeats(context: &Context<'_>) -> Option<Finding> {
    let repeats = context.input.plan.repeats;
    if context.input.plan.describes() && (repeats as usize) < MIN_REPEATS {
        return Some(Finding {
            severity: Severity::Caution,
            topic: "too few repeats",
            sentence: format!(
                "With {} nobody knows how far another run would be from these values: an interval takes at least \
                 {MIN_REPEATS}, better 5.",
                words::counted(repeats as usize, "repeat")
            ),
            evidence: Vec::new(),
        });
    }
    ((repeats as usize) < MIN_REPEATS && context.input.plan.variants.len() > 1).then(|| Finding {
        severity: Severity::Problem,
        topic: "too few repeats",
        sentence: format!(
            "With {} no difference can be told from chance: a verdict takes at least {MIN_REPEATS}, better 5.",
            words::counted(repeats as usize, "repeat")
        ),
        evidence: Vec::new(),
    })
}

/// The number of repeats follows from a time, and not from the results.
fn given_time(context: &Context<'_>) -> Option<Finding> {
    let plan = &context.input.plan;
    let time = words::span(plan.given_time?);
    Some(Finding {
        severity: Severity::Note,
        topic: "time",
        sentence: format!(
            "The run was given {time} under load, and {} fit into that. The number was fixed before the first start, so \
             results had no part in when the run ended.",
            words::counted(plan.repeats as usize, "repeat")
        ),
        evidence: Vec::new(),
    })
}

/// A spread between repeats above the margin, where no verdict could be reached.
fn wide_spread(context: &Context<'_>) -> Option<Finding> {
    let headline = crate::catalogue::headline(&context.input.facts);
    // The margin of a ratio is a share, and so is the spread. That of a difference is an amount.
    let shown = |spread: f64| margin(spread, &headline.measure);
    let mut wide: Vec<(f64, String)> = Vec::new();
    for cell in context.analysis.cells.iter().filter(|cell| undecided(context, cell)) {
        let estimate = cell.estimates.iter().find(|estimate| estimate.measure == headline.measure);
        let summary = estimate.and_then(|estimate| estimate.summary.as_ref().ok());
        let spread = summary.and_then(|summary| match headline.measure.effect() {
            Effect::Ratio => summary.relative_sd(),
            Effect::Difference => summary.sd,
        });
        if let (Some(spread), Some(summary)) = (spread.filter(|spread| *spread > headline.margin), summary) {
            let value = |value: f64| show_value(context.input, value, &headline.measure);
            let text = format!(
                "{}, {}: ± {} around {} (from {} to {}, n = {})",
                context.variant(cell.variant),
                context.condition(cell.condition),
                shown(spread),
                value(summary.centre),
                value(summary.min),
                value(summary.max),
                summary.n
            );
            wide.push((spread, text));
        }
    }
    wide.sort_by(|one, other| other.0.total_cmp(&one.0));
    let (most, _) = wide.first()?;
    Some(Finding {
        severity: Severity::Caution,
        topic: "wide spread",
        sentence: format!(
            "Repeats of the same variant differ by up to ± {} in {}, more than the margin of {}: a difference that matters \
             can hide in that. A quiet machine, {} and more repeats help.",
            shown(*most),
            words::measure(&headline.measure),
            shown(headline.margin),
            context.longer()
        ),
        evidence: wide.into_iter().map(|(_, text)| text).collect(),
    })
}

/// True if a comparison that includes the cell is not decided.
fn undecided(context: &Context<'_>, cell: &Cell) -> bool {
    let measure = crate::catalogue::headline(&context.input.facts).measure;
    context.analysis.comparisons.iter().any(|one| {
        one.measure == measure
            && one.condition == cell.condition
            && (cell.variant == 0 || cell.variant == one.variant)
            && one.verdict.as_ref().is_some_and(|verdict| verdict.outcome == Outcome::Inconclusive)
    })
}

/// The percentiles that were withheld.
fn too_few_requests(context: &Context<'_>) -> Option<Finding> {
    let mut evidence = Vec::new();
    for measure in &context.analysis.measures {
        let short: Vec<(u32, u64, u64)> = context
            .counted()
            .filter_map(|reader| {
                let (needed, found) = reader.shortage(measure)?;
                Some((reader.trial().number(), needed, found))
            })
            .collect();
        let Some((_, needed, least)) = short.iter().min_by_key(|(_, _, found)| *found) else { continue };
        let trials: Vec<u32> = short.iter().map(|(trial, ..)| *trial).collect();
        let (needed, least) = (grouped(*needed as f64), grouped(*least as f64));
        let measure = words::measure(measure);
        let had = if trials.len() > 1 { "had as few as" } else { "had" };
        evidence
            .push(format!("{measure} takes {needed} values, and {} {had} {least}", context.list_of_trials(&trials)));
    }
    let unit = context.load_unit();
    let longer = match unit {
        _ if context.input.plan.searches() => "Longer loads",
        "trial" => "Longer trials",
        _ => "Starts with more turns",
    };
    (!evidence.is_empty()).then(|| Finding {
        severity: Severity::Caution,
        topic: "too few requests",
        sentence: format!(
            "Some percentiles are not given, because they would rest on too few values: fewer than {MIN_VALUES_BEYOND:.0} in a {unit} \
             lie beyond them. Where some {unit}s of a variant under a condition lack one, it is not taken from the \
             others alone, nor compared: those with few requests are the slow ones. {longer} have more."
        ),
        evidence,
    })
}

/// Settings in the commands of the systems that trade durability for speed.
fn durability(context: &Context<'_>) -> Option<Finding> {
    let mut settings: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (variant, commands) in context.input.facts.commands.iter().enumerate() {
        let commands = commands.iter().filter(|command| !starts_database(context, command));
        for (written, weakness) in commands.flat_map(|command| weaknesses_in(command)) {
            let text = format!("{written}: {} ({})", weakness.risk, weakness.source);
            let variants = settings.entry(text).or_default();
            let name = context.variant(variant);
            if !variants.contains(&name) {
                variants.push(name);
            }
        }
    }
    (!settings.is_empty()).then(|| Finding {
        severity: Severity::Caution,
        topic: "durability",
        sentence: format!(
            "{} speed with safety: these are not the numbers of a system that keeps what it has acknowledged. Measure with \
             the safe settings as well: what safety costs may differ between variants.",
            if settings.len() == 1 { "A setting buys".to_owned() } else { format!("{} settings buy", settings.len()) }
        ),
        evidence: settings.into_iter().map(|(text, variants)| format!("{}: {text}", variants.join(", "))).collect(),
    })
}

/// True if the command starts a database: its settings in force have a finding of their own.
fn starts_database(context: &Context<'_>, command: &str) -> bool {
    let name = command.split(':').next().unwrap_or_default();
    context.analysis.database.as_ref().is_some_and(|report| report.databases.iter().any(|database| database == name))
}

fn quick(context: &Context<'_>) -> Option<Finding> {
    context.input.facts.quick.then(|| Finding {
        severity: Severity::Problem,
        topic: "a first look",
        sentence:
            "This is a first look, with no more levels, repeats and seconds than it takes for one: it shows where to \
                   look, and decides nothing."
                .to_owned(),
        evidence: Vec::new(),
    })
}

/// Load over the loopback. Storage has a finding of its own: each of its back ends may or may not
/// be on this machine.
fn loopback(context: &Context<'_>) -> Option<Finding> {
    (context.input.facts.loopback && context.analysis.storage.is_none()).then(|| Finding {
        severity: Severity::Note,
        topic: "loopback",
        sentence: "Generator and system share one machine, and no network lies between them: durations are shorter than \
                   users elsewhere would see, and the two compete for memory and, unless they are bound apart, processors."
            .to_owned(),
        evidence: Vec::new(),
    })
}
