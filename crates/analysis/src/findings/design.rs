//! What the study's own design leaves open.

use super::{Context, Finding, Gravity, named};
use crate::estimate::{LEAST, Summary};
use crate::quantity::{grouped, percent, show};
use crate::verdict::Outcome;
use crate::{Cell, words};
use plimsoll_model::measure::{Measure, Statistic};

/// Exchanges that must lie beyond a percentile for it to mean something: so many make p99 take
/// 1,000 exchanges, and p95 200.
const BEYOND: f64 = 10.0;

pub(super) fn findings(context: &Context<'_>) -> Vec<Finding> {
    [too_few_repeats(context), wide_spread(context), too_few_requests(context), quick(context), loopback(context)]
        .into_iter()
        .flatten()
        .collect()
}

fn too_few_repeats(context: &Context<'_>) -> Option<Finding> {
    let repeats = context.input.plan.repeats;
    ((repeats as usize) < LEAST && context.input.plan.variants.len() > 1).then(|| Finding {
        gravity: Gravity::Problem,
        topic: "too few repeats",
        sentence: format!(
            "With {} no difference can be told from chance: a verdict takes at least {LEAST}, better 5.",
            words::counted(repeats as usize, "repeat")
        ),
        evidence: Vec::new(),
    })
}

/// Repeats that differ among themselves by more than what matters between variants, where no
/// verdict could be reached.
fn wide_spread(context: &Context<'_>) -> Option<Finding> {
    let headline = crate::headline(&context.input.facts);
    let mut wide: Vec<(f64, String)> = Vec::new();
    for cell in context.analysis.cells.iter().filter(|cell| undecided(context, cell)) {
        let estimate = cell.estimates.iter().find(|estimate| estimate.measure == headline.measure);
        let summary = estimate.and_then(|estimate| estimate.summary.as_ref().ok());
        let spread = summary.and_then(Summary::relative_sd).filter(|spread| *spread > headline.margin);
        if let (Some(spread), Some(summary)) = (spread, summary) {
            let unit = headline.measure.unit();
            let text = format!(
                "{}, {}: ± {} around {} (from {} to {}, n = {})",
                context.variant(cell.variant),
                context.condition(cell.condition),
                percent(spread),
                show(summary.centre, unit),
                show(summary.min, unit),
                show(summary.max, unit),
                summary.n
            );
            wide.push((spread, text));
        }
    }
    wide.sort_by(|one, other| other.0.total_cmp(&one.0));
    let (most, _) = wide.first()?;
    Some(Finding {
        gravity: Gravity::Caution,
        topic: "wide spread",
        sentence: format!(
            "Repeats of the same variant differ by up to ± {} in {}, more than the margin of {}: a difference that matters \
             can hide in that. A quiet machine, longer trials and more repeats help.",
            percent(*most),
            words::measure(&headline.measure, &context.input.facts.protocol),
            percent(headline.margin)
        ),
        evidence: wide.into_iter().map(|(_, text)| text).collect(),
    })
}

/// Whether a comparison that the cell is part of leaves the question open.
fn undecided(context: &Context<'_>, cell: &Cell) -> bool {
    let measure = crate::headline(&context.input.facts).measure;
    context.analysis.comparisons.iter().any(|one| {
        one.measure == measure
            && one.condition == cell.condition
            && (cell.variant == 0 || cell.variant == one.variant)
            && one.verdict.as_ref().is_some_and(|verdict| verdict.outcome == Outcome::Inconclusive)
    })
}

fn too_few_requests(context: &Context<'_>) -> Option<Finding> {
    let mut evidence = Vec::new();
    for measure in &context.analysis.measures {
        let Some(needed) = needed(measure) else { continue };
        let short: Vec<(u32, u64)> = context
            .counted()
            .filter_map(|reader| {
                let size = reader.sample_size(&measure.series).filter(|size| *size > 0)?;
                ((size as f64) < needed).then_some((reader.trial().number, size))
            })
            .collect();
        if let Some(least) = short.iter().map(|(_, size)| *size).min() {
            let trials: Vec<u32> = short.iter().map(|(trial, _)| *trial).collect();
            let which = if trials.len() > 6 { format!("{} trials", trials.len()) } else { named(&trials) };
            let least = grouped(least as f64);
            let measure = words::measure(measure, &context.input.facts.protocol);
            evidence.push(format!("{measure} takes {} and had as few as {least} in {which}", grouped(needed)));
        }
    }
    (!evidence.is_empty()).then(|| Finding {
        gravity: Gravity::Caution,
        topic: "too few requests",
        sentence: format!(
            "Some percentiles rest on too few values: fewer than {BEYOND:.0} in a trial lie beyond them."
        ),
        evidence,
    })
}

/// How many values a percentile takes.
fn needed(measure: &Measure) -> Option<f64> {
    match measure.statistic {
        Statistic::Percentile(p) => Some((BEYOND / (1.0 - p.max(100.0 - p) / 100.0)).round()),
        _ => None,
    }
}

fn quick(context: &Context<'_>) -> Option<Finding> {
    context.input.facts.quick.then(|| Finding {
        gravity: Gravity::Problem,
        topic: "a first look",
        sentence:
            "This is a first look with fewer levels, repeats and seconds than the study asks for: it shows where to \
                   look, and decides nothing."
                .to_owned(),
        evidence: Vec::new(),
    })
}

fn loopback(context: &Context<'_>) -> Option<Finding> {
    context.input.facts.loopback.then(|| Finding {
        gravity: Gravity::Note,
        topic: "loopback",
        sentence: "Generator and system share one machine, and no network lies between them: durations are shorter than \
                   users elsewhere would see, and the two compete for memory and, unless they are bound apart, processors."
            .to_owned(),
        evidence: Vec::new(),
    })
}
