//! Findings about the conduct of the study: order, noise floor, repeated blocks, confounded
//! factors.

use super::{Context, Finding, Severity};
use crate::catalogue::margin as margin_of;
use crate::compare::{Comparison, hidden_by};
use crate::decide::{Doubt, HiddenBy};
use crate::input::Input;
use crate::numbers::Cell;
use crate::quantity::{confidence, margin, show, significant};
use crate::verdict::Outcome;
use crate::{order, words};
use plimsoll_model::measure::{Measure, Series, Statistic, Unit};
use plimsoll_model::result::{StartResult, StartSummary};
use plimsoll_model::study::FloorRule;
use plimsoll_model::workload::Protocol;
use std::collections::BTreeMap;
use std::time::Duration;

pub(super) fn findings(context: &Context<'_>) -> Vec<Finding> {
    [
        sequential(context),
        apart(context),
        noise_floor(context),
        floor_beneath_differences(context),
        no_noise_floor(context),
        influence(context),
        idle_work(context),
        settling(context),
        run_again(context),
        several_factors(context),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Variants whose trials all ran before, or all after, those of the baseline.
fn sequential(context: &Context<'_>) -> Option<Finding> {
    let plan = &context.input.plan;
    let evidence: Vec<String> = (0..plan.conditions.len())
        .flat_map(|condition| (1..plan.variants.len()).map(move |variant| (condition, variant)))
        .filter(|(condition, variant)| order::sequential(context.input, *condition, *variant))
        .map(|(condition, variant)| {
            format!(
                "{}: all trials of {} ran before, or after, those of {}",
                context.condition(condition),
                context.variant(variant),
                context.variant(0)
            )
        })
        .collect();
    (!evidence.is_empty()).then(|| Finding {
        severity: Severity::Problem,
        topic: "one variant after the other",
        sentence:
            "Variants did not take turns: whatever the machine did meanwhile looks like a difference between them. \
                   Such comparisons are void; run the variants in blocks, in random order."
                .to_owned(),
        evidence,
    })
}

/// The longest pause between trials of a repeat in which a machine is taken to be the same: ten minutes.
const LONGEST_PAUSE: Duration = Duration::from_secs(600);

/// Repeats whose trials ran far apart, because a run went on in the middle of one after it was interrupted.
fn apart(context: &Context<'_>) -> Option<Finding> {
    let plan = &context.input.plan;
    let mut blocks: BTreeMap<u32, Vec<&StartSummary>> = BTreeMap::new();
    for start in context.input.starts.iter().map(|start| &start.summary).filter(|one| !plan.is_superseded(&one.start)) {
        blocks.entry(start.start.block).or_default().push(start);
    }
    let unit = words::unit(plan);
    let (mut torn, mut evidence) = (0, Vec::new());
    for starts in blocks.values_mut() {
        starts.sort_by_key(|start| start.start.position);
        let pauses = starts.iter().zip(&starts[1..]).map(|(before, after)| (before, after, pause(before, after)));
        let long: Vec<_> = pauses.filter(|(.., pause)| *pause > LONGEST_PAUSE).collect();
        torn += usize::from(!long.is_empty());
        evidence.extend(long.into_iter().map(|(before, after, pause)| {
            let (condition, repeat) = (context.condition(before.start.condition), before.start.repeat);
            let [before, after] = [before, after].map(|one| one.start.number);
            format!("{condition}, repeat {repeat}: {} between {unit} {before} and {unit} {after}", words::span(pause))
        }));
    }
    (!evidence.is_empty()).then(|| Finding {
        severity: Severity::Caution,
        topic: "trials of a repeat far apart",
        sentence: format!(
            "The run was interrupted in the middle of {} and went on later: what changed on the machine meanwhile looks like a \
             difference between variants.",
            words::counted(torn, "repeat")
        ),
        evidence,
    })
}

/// The pause between two starts, from the end of the one to the begin of the other.
fn pause(before: &StartSummary, after: &StartSummary) -> Duration {
    let between = after.timing.started_unix_ms - before.timing.started_unix_ms;
    let took = Duration::from_nanos(before.timing.took.0);
    Duration::from_millis(u64::try_from(between).unwrap_or(0)).saturating_sub(took)
}

/// Noise floors in doubt.
fn noise_floor(context: &Context<'_>) -> Option<Finding> {
    let doubt = |floor: &Comparison| floor.doubt(&context.input.plan, margin_of(&context.input.facts, &floor.measure)?);
    let doubtful: Vec<(&Comparison, Doubt)> =
        context.analysis.floors.iter().filter_map(|floor| Some((floor, doubt(floor)?))).collect();
    let evidence = doubtful.iter().map(|(floor, doubt)| {
        let interval = floor.contrast.as_ref().ok().and_then(|contrast| contrast.interval.clone().ok());
        let reach = interval.map(|interval| floor.ends(interval, floor.notation()).join(" to ")).unwrap_or_default();
        let what = match doubt {
            Doubt::NotZero => "excludes a change of zero".to_owned(),
            Doubt::Wide => {
                let declared = margin_of(&context.input.facts, &floor.measure).unwrap_or_default();
                format!("is wider than the margin of {}", margin(declared, &floor.measure))
            }
        };
        format!(
            "{}, {}: {reach} (n = {}) {what}",
            words::measure(&floor.measure),
            context.condition(floor.condition),
            floor.pairs.len()
        )
    });
    (!doubtful.is_empty()).then(|| Finding {
        severity: Severity::Caution,
        topic: "noise floor",
        sentence: format!(
            "In {} of {} comparisons of the baseline with its own duplicate the machine is in doubt ({} \
             intervals): there, {}. By chance alone, one in twenty excludes a change of zero. A quiet machine, processors \
             of their own for system and generator, {} and more repeats help.{}",
            doubtful.len(),
            context.analysis.floors.len(),
            confidence(context.analysis.alpha),
            match context.input.facts.floor_rule {
                FloorRule::Strict => "no verdict stands".to_owned(),
                FloorRule::Beyond => format!("only {} stand", context.analysis.stands_over_floor("that")),
            },
            context.longer(),
            exceeds_floor(context)
        ),
        evidence: evidence.collect(),
    })
}

/// Differences that are shown where the baseline differs from itself as well. They lie wholly beyond that, so that they
/// stand; but it may be a part of their size.
fn floor_beneath_differences(context: &Context<'_>) -> Option<Finding> {
    let line = |one: &Comparison| {
        let is_shown = matches!(one.verdict.as_ref()?.outcome, Outcome::Worse | Outcome::Better);
        let mut floors = context.analysis.floors.iter();
        let floor = floors.find(|floor| (floor.condition, &floor.measure) == (one.condition, &one.measure))?;
        let margin = margin_of(&context.input.facts, &one.measure)?;
        let excludes_zero = floor.doubt(&context.input.plan, margin) == Some(Doubt::NotZero);
        let interval = *floor.contrast.as_ref().ok()?.interval.as_ref().ok()?;
        let ends = floor.ends(interval, floor.notation()).join(" to ");
        (is_shown && excludes_zero).then(|| {
            format!("{}, {}: the duplicate by {ends}", words::measure(&one.measure), context.condition(one.condition))
        })
    };
    let evidence: Vec<String> = context.analysis.comparisons.iter().filter_map(line).collect();
    let first = evidence.first()?.clone();
    Some(Finding {
        severity: Severity::Problem,
        topic: "a floor beneath a difference",
        sentence: format!(
            "Where a difference is shown, the same system differs from itself as well ({first}): the direction stands, but the \
             size may be off by as much."
        ),
        evidence,
    })
}

/// Differences that lie beyond the noise floor and have no verdict all the same.
fn exceeds_floor(context: &Context<'_>) -> String {
    match context.analysis.verdicts().filter(|verdict| verdict.exceeds_floor).count() {
        0 => String::new(),
        count => format!(
            " Of the variants' differences {count} without a verdict {} wholly beyond the floor: a study that declares \
             `noise_floor = \"beyond\"` lets such stand.",
            if count == 1 { "lies" } else { "lie" }
        ),
    }
}

fn no_noise_floor(context: &Context<'_>) -> Option<Finding> {
    let plan = &context.input.plan;
    let key = if has_duplicate_by_default(context.input) { " (`noise_floor = false`)" } else { "" };
    (plan.variants.len() > 1 && !plan.with_duplicate).then(|| Finding {
        severity: Severity::Caution,
        topic: "no noise floor",
        sentence: format!(
            "The study has no duplicate of its baseline{key}, so nothing shows what this machine makes of two equal systems."
        ),
        evidence: Vec::new(),
    })
}

/// True if a study of this kind has a duplicate unless it says otherwise. A second search, soak or control loop of the
/// baseline would take as long as that of a variant, and what another tool measured says nothing of it.
fn has_duplicate_by_default(input: &Input) -> bool {
    // Loads are judged by an objective in a search, a stress test and a control loop alone.
    input.is_measured() && !input.facts.soak && input.facts.objective.is_none()
}

/// Variants whose slices leave something to the next ones, or interfere with those beside them, in measures that decide.
fn influence(context: &Context<'_>) -> Option<Finding> {
    let is_paired = context.input.plan.design.is_side_by_side();
    let is_shown = |one: &&Comparison| {
        let margin = margin_of(&context.input.facts, &one.measure);
        margin.is_some_and(|margin| one.has_influence(margin))
    };
    let shown: Vec<&Comparison> = context.analysis.comparisons.iter().filter(is_shown).collect();
    let evidence = shown.iter().filter_map(|one| {
        let influence = one.in_turns.as_ref()?.influence?;
        Some(format!(
            "{}, {}, {} {}: {} (n = {} starts)",
            words::measure(&one.measure),
            context.condition(one.condition),
            if is_paired { "beside" } else { "after" },
            context.variant(one.variant),
            influence.ends(&one.measure)?.join(" to "),
            influence.starts
        ))
    });
    let settle = context.input.plan.design.turns()?.settle;
    let (comparisons, intervals) = (words::counted(shown.len(), "comparison"), confidence(context.analysis.alpha));
    (!shown.is_empty()).then(|| Finding {
        severity: Severity::Caution,
        topic: if is_paired { "interference" } else { "carry-over" },
        sentence: match is_paired {
            true => format!(
                "Variants interfere with the baseline beside them: in {comparisons} it differs from what it is beside its \
                 duplicate ({intervals} intervals). Only differences that lie wholly beyond that stand. `design = \
                 \"turns\"` loads one variant at a time."
            ),
            false => format!(
                "Slices leave something to the next ones: in {comparisons} the baseline and its duplicate differ by which of \
                 them came right after the variant ({intervals} intervals), so some of the variant's work is counted as \
                 theirs. Only differences that lie wholly beyond that stand. A longer `settle` under `[turns]` (now {}) \
                 gives it time to pass; where it lasts, `design = \"trials\"` keeps variants apart.",
                show(settle.as_secs_f64(), Unit::Seconds)
            ),
        },
        evidence: evidence.collect(),
    })
}

/// Variants that use the processors between their slices, more than the baseline or less.
fn idle_work(context: &Context<'_>) -> Option<Finding> {
    let plan = &context.input.plan;
    let of = |(condition, variant)| match hidden_by(context.input, condition, variant)? {
        HiddenBy::IdleWork { variant: of_variant, baseline } => Some(format!(
            "{}: {} uses {} processors, {} {}",
            context.condition(condition),
            context.variant(variant),
            significant(of_variant),
            context.variant(0),
            significant(baseline)
        )),
        HiddenBy::SharedProcessors => None,
    };
    let all =
        (0..plan.conditions.len()).flat_map(|condition| (1..plan.variants.len()).map(move |one| (condition, one)));
    let evidence: Vec<String> = all.filter_map(of).collect();
    (!evidence.is_empty()).then(|| Finding {
        severity: Severity::Problem,
        topic: "work between slices",
        sentence: "The systems of a variant use the processors while another one is loaded, and slow it down: what differs \
                   between them shows in part only, so none are called equivalent. `design = \"trials\"` keeps variants \
                   apart, and `cpus = \"own\"` gives each processors of its own."
            .to_owned(),
        evidence,
    })
}

/// Lengths that a study may give to `settle`, in seconds.
const SETTLE: [f64; 6] = [0.2, 0.5, 1.0, 2.0, 5.0, 10.0];

/// Slices before which users settle for less than an iteration takes: at their begin, the slow iterations are still under
/// way. Iterations of scripts may sleep; theirs is the time of a request.
fn settling(context: &Context<'_>) -> Option<Finding> {
    // Loads of a search have a warm-up each.
    let turns = context.input.plan.design.turns().filter(|_| !context.input.plan.searches());
    let settle = turns?.settle.as_secs_f64();
    let is_script = context.input.facts.protocol == Protocol::Script;
    let series = if is_script { Series::RequestDuration(None) } else { Series::IterationDuration };
    let measure = Measure::new(series, Statistic::Med);
    let median = |cell: &Cell| {
        let estimate = cell.estimates.iter().find(|estimate| estimate.measure == measure)?;
        Some(estimate.summary.as_ref().ok()?.centre).filter(|median| *median > settle)
    };
    let slow: Vec<(f64, &Cell)> =
        context.analysis.cells.iter().filter_map(|cell| Some((median(cell)?, cell))).collect();
    let longest = slow.iter().map(|(median, _)| *median).reduce(f64::max)?;
    let enough = SETTLE.into_iter().find(|length| *length >= 2.0 * longest);
    let remedy = match enough {
        Some(length) => format!("let `settle` under `[turns]` be {}", show(length, Unit::Seconds)),
        None => "use `design = \"trials\"`, which has no slices".to_owned(),
    };
    let evidence = slow.iter().map(|(median, cell)| {
        let (condition, variant) = (context.condition(cell.condition), context.variant(cell.variant));
        format!("{condition}, {variant}: {}", show(*median, Unit::Seconds))
    });
    Some(Finding {
        severity: Severity::Caution,
        topic: "settling",
        sentence: format!(
            "Users settle for {} before each slice, and {} take longer than that (median): at the begin of a slice the slow \
             ones are still under way, so that its durations may be too short, for all variants alike; {remedy}.",
            show(settle, Unit::Seconds),
            if is_script { "requests" } else { "iterations" }
        ),
        evidence: evidence.collect(),
    })
}

/// Blocks with more than one attempt.
fn run_again(context: &Context<'_>) -> Option<Finding> {
    let plan = &context.input.plan;
    let mut again: BTreeMap<u32, Vec<String>> = BTreeMap::new();
    for start in plan.starts.iter().filter(|start| plan.is_superseded(start)) {
        let why = again.entry(start.block).or_default();
        for trial in context.input.start(start.number).into_iter().flat_map(StartResult::trials) {
            let reasons = trial.validity().reasons().join("; ");
            if !reasons.is_empty() {
                why.push(format!(
                    "{} {} ({}): {reasons}",
                    words::unit(plan),
                    start.number,
                    plan.label(trial.variant())
                ));
            }
        }
    }
    (!again.is_empty()).then(|| Finding {
        severity: Severity::Note,
        topic: "blocks run again",
        sentence: format!(
            "{} {} run again as a whole, because a {} in {} did not count; nothing of the first attempts is part of the \
             results.",
            words::counted(again.len(), "block"),
            if again.len() == 1 { "was" } else { "were" },
            context.load_unit(),
            if again.len() == 1 { "it" } else { "each" }
        ),
        evidence: again.into_iter().map(|(block, why)| format!("block {block}: {}", why.join("; "))).collect(),
    })
}

/// Variants that differ from the baseline in more than one factor.
fn several_factors(context: &Context<'_>) -> Option<Finding> {
    let plan = &context.input.plan;
    let baseline = plan.variants.first()?;
    let differing = |variant: usize| -> Vec<String> {
        let levels = plan.variants[variant].0.iter();
        levels.filter(|(name, level)| baseline.get(name) != Some(level)).map(|(name, _)| name.clone()).collect()
    };
    let evidence: Vec<String> = (1..plan.variants.len())
        .map(|variant| (variant, differing(variant)))
        .filter(|(_, factors)| factors.len() > 1)
        .map(|(variant, factors)| format!("{}: {}", context.variant(variant), factors.join(" and ")))
        .collect();
    (!evidence.is_empty()).then(|| Finding {
        severity: Severity::Note,
        topic: "several factors at once",
        sentence:
            "Some variants differ from the baseline in more than one factor: what each of these does cannot be read \
                   from such a comparison alone."
                .to_owned(),
        evidence,
    })
}
