//! The certainty of a study: its noise floor, its sensitivity, and the rules of its decisions.

use crate::page::facts::{Fact, fact};
use plimsoll_analysis::compare::{Comparison, FALSE_DISCOVERIES, POWER, Reference, notation};
use plimsoll_analysis::decide::Doubt;
use plimsoll_analysis::effect::shown;
use plimsoll_analysis::estimate::Interval;
use plimsoll_analysis::quantity::{Notation, confidence, margin, percent};
use plimsoll_analysis::sensitivity::Sensitivity;
use plimsoll_analysis::turns::Influence;
use plimsoll_analysis::{Analysis, Input, decisions, words};
use plimsoll_model::measure::{Direction, Measure};
use plimsoll_model::study::FloorRule;

/// The gate, which asks for proof that nothing is worse by the margin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Gate {
    /// Nobody asked for it, so a report does not speak of it.
    #[default]
    NotAsked,
    /// `--gate`.
    Asked,
}

/// All facts about the certainty of the verdicts.
pub(crate) fn how_sure(input: &Input, analysis: &Analysis, asked: Gate) -> Vec<Fact> {
    if input.plan.block_size() < 2 {
        return Vec::new();
    }
    let facts = [
        ("Noise floor", noise_floor(input, analysis)),
        ("Could have seen", could_have_seen(analysis)),
        ("Turns", turns(analysis)),
        (if input.plan.design.is_side_by_side() { "Interference" } else { "Carry-over" }, influence(input, analysis)),
        ("Several comparisons", several(analysis)),
        ("Looks", looks(input, analysis)),
        ("Gate", if asked == Gate::Asked { gate(input, analysis) } else { String::new() }),
        ("Beside what decides", exploratory(analysis)),
    ];
    let said = facts.into_iter().filter(|(_, value)| !value.is_empty());
    said.map(|(name, value)| fact(name, crate::text::unbroken(&value))).collect()
}

/// A noise floor under a condition.
pub(crate) struct FloorRow {
    pub(crate) condition: String,
    pub(crate) measure: String,
    pub(crate) change: String,
    pub(crate) interval: String,
    pub(crate) n: usize,
    pub(crate) margin: String,
    pub(crate) doubt: &'static str,
}

/// The noise floor under each condition, in each measure that decides.
pub(crate) fn floors(input: &Input, analysis: &Analysis) -> Vec<FloorRow> {
    let notation = notation(&analysis.floors);
    let row = |one: &Comparison| FloorRow {
        condition: words::condition_in(&input.plan, one.condition),
        measure: words::measure(&one.measure),
        change: one.change(notation).unwrap_or_else(|_| "–".to_owned()),
        interval: crate::text::interval(one, notation),
        n: one.pairs.len(),
        margin: margin(margin_of(input, one), &one.measure),
        doubt: match (
            one.contrast.as_ref().map(|contrast| contrast.interval.is_ok()),
            one.doubt(&input.plan, margin_of(input, one)),
        ) {
            (_, Some(Doubt::NotZero)) => "in doubt: the baseline differs from itself",
            (_, Some(Doubt::Wide)) => "in doubt: wider than the margin",
            (Ok(true), None) => "holds",
            _ => "unknown",
        },
    };
    analysis.floors.iter().map(row).collect()
}

fn margin_of(input: &Input, comparison: &Comparison) -> f64 {
    let decides = |one: &&plimsoll_model::study::Decision| one.measure == comparison.measure;
    decisions(&input.facts).iter().find(decides).map_or(0.0, |decision| decision.margin)
}

/// The noise floor in words; empty where it says nothing.
pub(crate) fn noise_floor(input: &Input, analysis: &Analysis) -> String {
    if input.plan.block_size() < 2 {
        return String::new();
    }
    if analysis.floors.is_empty() {
        return "not measured: the study has no duplicate of its baseline, so what the machine does to two equal systems is \
                unknown"
            .to_owned();
    }
    let known = known_floors(analysis);
    let doubtful = known.iter().filter(|one| one.doubt(&input.plan, margin_of(input, one)).is_some()).count();
    let is_any_wider = known.iter().any(|one| one.is_wider_than(margin_of(input, one)));
    let of = |measure: &Measure| Some(format!("{} in {}", floor_reach(analysis, measure)?, words::measure(measure)));
    let reaches: Vec<String> = decisions(&input.facts).iter().filter_map(|decision| of(&decision.measure)).collect();
    if reaches.is_empty() {
        return "unknown: too little of the baseline's duplicate counts".to_owned();
    }
    let held = match doubtful {
        0 if is_any_wider => format!(
            "{} zero, and no half of {} is wider than {:.3} margins. In turns that is narrow enough: one copy of the \
             baseline against the other varies as many times as much as a variant against the mean of both",
            if known.len() == 1 { "it includes" } else { "each includes" },
            if known.len() == 1 { "it" } else { "one" },
            Reference::of(&input.plan).widest_floor()
        ),
        0 if known.len() == 1 => "it includes zero, and no half of it is wider than the margin".to_owned(),
        0 => "each includes zero, and no half of one is wider than the margin".to_owned(),
        some if some == known.len() => {
            "wider than the margin, or excluding a change of zero, everywhere: two equal systems differ as much here"
                .to_owned()
        }
        some => {
            format!("wider than the margin, or excluding a change of zero, in {some} of {} comparisons", known.len())
        }
    };
    let rule = match (input.facts.floor_rule, doubtful) {
        (_, 0) => String::new(),
        (FloorRule::Strict, _) => "; no verdict stands there".to_owned(),
        (FloorRule::Beyond, _) => format!("; {} stand", analysis.stands_over_floor("it")),
    };
    let intervals = if known.len() == 1 { "interval" } else { "intervals" };
    format!(
        "the baseline against its own duplicate reaches {} ({} {intervals}): {held}{rule}",
        reaches.join(", and "),
        confidence(analysis.alpha)
    )
}

fn known_floors(analysis: &Analysis) -> Vec<&Comparison> {
    let is_known = |one: &&Comparison| one.contrast.as_ref().is_ok_and(|contrast| contrast.interval.is_ok());
    analysis.floors.iter().filter(is_known).collect()
}

/// How far the intervals of the noise floor reach in a measure, over all conditions: `−3.3 % to +3.4 %`. None where none
/// is known.
pub(crate) fn floor_reach(analysis: &Analysis, measure: &Measure) -> Option<String> {
    let of_measure: Vec<&Comparison> =
        known_floors(analysis).into_iter().filter(|one| &one.measure == measure).collect();
    let intervals = of_measure.iter().filter_map(|one| one.contrast.as_ref().ok()?.interval.clone().ok());
    let low = intervals.clone().map(|interval| interval.low).reduce(f64::min)?;
    let high = intervals.map(|interval| interval.high).reduce(f64::max)?;
    let [low, high] = of_measure.first()?.ends(Interval { low, high }, Notation::of([low, high]));
    Some(format!("{low} to {high}"))
}

fn could_have_seen(analysis: &Analysis) -> String {
    let of = |one: &Sensitivity| {
        let value = |value| shown(value, &one.measure).trim_start_matches('+').to_owned();
        let measure = words::measure(&one.measure);
        if one.comparisons == 1 || value(one.least) == value(one.most) {
            format!("{} in {measure}", value(one.median))
        } else {
            format!("{} to {} (median {}) in {measure}", value(one.least), value(one.most), value(one.median))
        }
    };
    let detectable_changes: Vec<String> = analysis.sensitivities.iter().map(of).collect();
    if detectable_changes.is_empty() {
        return String::new();
    }
    format!(
        "changes from {}, with a chance of {} by the interval alone",
        detectable_changes.join(", and from "),
        percent(POWER)
    )
}

/// How much turns and starts differ, and other lengths where those would take half the time.
fn turns(analysis: &Analysis) -> String {
    let Some(lengths) = &analysis.lengths else { return String::new() };
    // A standard deviation of logarithms is a factor.
    let sd = |of: f64| percent(of.exp_m1());
    let levels = lengths.levels;
    let differ = format!(
        "in {} the ratios of turns differ by {}, starts add {} (standard deviations)",
        words::measure(&lengths.measure),
        sd(levels.sd_of_turns()),
        sd(levels.sd_of_starts())
    );
    if !lengths.worth_a_change() {
        return differ;
    }
    let starts = lengths.starts.map_or(String::new(), |starts| format!(" and {}", words::counted(starts, "start")));
    format!(
        "{differ}; {} a start{starts} instead of {} would give intervals as wide in {} of the time",
        words::counted(lengths.best as usize, "turn"),
        lengths.turns,
        percent(lengths.time)
    )
}

/// The most variants and conditions whose influence is named one by one.
const INFLUENCES: usize = 4;

/// What slices leave to the next ones, or do to those beside them, in each measure that decides.
fn influence(input: &Input, analysis: &Analysis) -> String {
    if input.plan.design.is_trials() {
        return String::new();
    }
    if !input.plan.with_duplicate {
        return "not looked for: that takes a duplicate of the baseline".to_owned();
    }
    let decides = |one: &&Comparison| decisions(&input.facts).iter().any(|decision| decision.measure == one.measure);
    let known: Vec<(&Comparison, Influence)> = analysis
        .comparisons
        .iter()
        .filter(decides)
        .filter_map(|one| Some((one, one.in_turns.as_ref()?.influence.filter(|found| found.interval.is_some())?)))
        .collect();
    let one_condition = input.plan.conditions.len() == 1;
    let is_paired = input.plan.design.is_side_by_side();
    let near = if is_paired { "beside" } else { "after" };
    let line = |(one, found): &(&Comparison, Influence)| {
        let place =
            if one_condition { String::new() } else { words::condition(&input.plan.conditions[one.condition]) + ", " };
        let [low, high] = found.ends(&one.measure)?;
        let variant = input.plan.label(one.variant);
        Some(format!("{place}{near} {variant} {low} to {high} in {}", words::measure(&one.measure)))
    };
    let mut lines: Vec<String> = known.iter().take(INFLUENCES).filter_map(line).collect();
    if known.len() > INFLUENCES {
        lines.push(format!("{} more in report.json", known.len() - INFLUENCES));
    }
    if lines.is_empty() {
        return match is_paired {
            true => "unknown: too few starts have turns with values of all slices",
            false => {
                "unknown: too few starts have turns in which only one of the baseline and its duplicate follows the variant"
            }
        }
        .to_owned();
    }
    let differs = match is_paired {
        true => "beside the variant the baseline differs from what it is beside its duplicate",
        false => "right after a slice of the variant the baseline differs from its other slices",
    };
    format!("{differs} by: {} ({} intervals)", lines.join("; "), confidence(analysis.alpha))
}

fn several(analysis: &Analysis) -> String {
    let family = analysis.verdicts().filter(|verdict| verdict.adjusted_p.is_some()).count();
    if family < 2 {
        return String::new();
    }
    format!(
        "{family} comparisons decide; a variant is better or worse only where that holds after Holm's adjustment for all of \
         them"
    )
}

fn looks(input: &Input, analysis: &Analysis) -> String {
    let looks: Vec<String> = input.plan.looks.iter().map(u32::to_string).collect();
    if looks.is_empty() {
        return String::new();
    }
    let spared = match input.plan.fewest_repeats() < input.plan.repeats {
        true => ", and conditions ran no further once everything under them was decided for good",
        false => "",
    };
    format!(
        "the run could end after {} repeats, as declared before{spared}; so that this finds no more by chance, intervals are \
         those of {} (Pocock)",
        looks.join(", "),
        confidence(analysis.alpha)
    )
}

/// The most comparisons that are named one by one where the gate is not passed.
const NAMED: usize = 3;

/// Whether the study passes the gate, which demands proof that nothing is worse; if not, the
/// comparisons that fail it. A run that did not come to its end passes no gate.
#[must_use]
pub fn gate(input: &Input, analysis: &Analysis) -> String {
    let fails = |one: &&Comparison| one.verdict.as_ref().is_some_and(|verdict| !verdict.not_inferior);
    let failing: Vec<&Comparison> = analysis.comparisons.iter().filter(fails).collect();
    if !input.complete {
        return "not passed: the run did not come to its end; `plimsoll run --resume` goes on with it".to_owned();
    }
    if input.plan.variants.len() < 2 {
        return String::new();
    }
    if failing.is_empty() {
        return "passed: every variant is shown to be not worse than the baseline by the margin".to_owned();
    }
    let line = |one: &&Comparison| {
        let limit = margin(margin_of(input, one), &one.measure);
        let place = words::condition_in(&input.plan, one.condition);
        let measure = words::measure(&one.measure);
        let reach = match worse_end(one) {
            Some(_) if one.verdict.as_ref().is_some_and(|verdict| verdict.blocked_by_floor) => {
                "has a noise floor in doubt".to_owned()
            }
            Some(end) => {
                let verdict = one.verdict.as_ref();
                match (verdict.and_then(|one| one.gate_objection), verdict.and_then(|one| one.objection.as_ref())) {
                    (Some(why), _) => format!("reaches {end} at most, but {why}"),
                    (_, Some(why)) if one.is_inside(margin_of(input, one)) => format!("is open: {why}"),
                    _ => format!("may reach {end}, where the margin is {limit}"),
                }
            }
            None => "is not known".to_owned(),
        };
        format!("{}, {place}: {measure} {reach}", input.plan.label(one.variant))
    };
    let mut lines: Vec<String> = failing.iter().take(NAMED).map(line).collect();
    if failing.len() > NAMED {
        lines.push(format!("and {} more", failing.len() - NAMED));
    }
    format!("not passed: {}", lines.join("; "))
}

/// The end of the interval on the worse side.
fn worse_end(comparison: &Comparison) -> Option<String> {
    let interval = *comparison.contrast.as_ref().ok()?.interval.as_ref().ok()?;
    let [low, high] = comparison.ends(interval, comparison.notation());
    Some(match comparison.measure.direction() {
        Direction::Lower => high,
        Direction::Higher => low,
    })
}

fn exploratory(analysis: &Analysis) -> String {
    let all: Vec<_> = analysis.comparisons.iter().filter_map(|one| one.exploratory).collect();
    let standing = all.iter().filter(|one| one.stands_out).count();
    if all.is_empty() {
        return String::new();
    }
    format!(
        "{standing} of {} other comparisons stand out at a false discovery rate of {} (Benjamini and Hochberg): hints to \
         follow, not findings",
        all.len(),
        percent(FALSE_DISCOVERIES)
    )
}
