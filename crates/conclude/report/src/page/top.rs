//! The top of a report: how it was measured, the comparisons that decide, and what could overturn the answer.

use super::measured_time;
use crate::chart::{Deciding, Group, Row};
use crate::{figures, text};
use plimsoll_analysis::compare::{Comparison, notation};
use plimsoll_analysis::finding::{Finding, Severity};
use plimsoll_analysis::quantity::{margin, show};
use plimsoll_analysis::verdict::{Outcome, Verdict};
use plimsoll_analysis::words::{self, counted, filled, span};
use plimsoll_analysis::{Analysis, Input, decisions};
use plimsoll_drawing::Paint;
use plimsoll_model::measure::{Effect, Unit};
use plimsoll_model::study::Decision;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// A comparison that decides.
pub(crate) struct DecidingRow {
    /// The measure, on the first of its rows.
    pub(crate) measure: String,
    pub(crate) margin: String,
    pub(crate) condition: String,
    pub(crate) variant: String,
    /// The two values that the change is computed from.
    pub(crate) baseline: String,
    pub(crate) value: String,
    pub(crate) change: String,
    pub(crate) interval: String,
    pub(crate) n: usize,
    pub(crate) verdict: String,
    /// True if a difference may be smaller than the margin.
    pub(crate) uncertain: bool,
}

/// A finding in a line.
pub(crate) struct Brief {
    pub(crate) severity: &'static str,
    pub(crate) topic: &'static str,
    pub(crate) sentence: String,
}

/// The comparisons that decide, by measure, in the order in which the study names them.
pub(crate) fn deciding(input: &Input, analysis: &Analysis) -> Vec<DecidingRow> {
    let of = |decision: Decision| {
        let of_measure: Vec<&Comparison> =
            analysis.comparisons.iter().filter(|one| one.measure == decision.measure).collect();
        let notation = notation(of_measure.iter().copied());
        let row = |(index, one): (usize, &&Comparison)| {
            let [baseline, value] = values(one);
            let verdict = one.verdict.as_ref();
            DecidingRow {
                measure: if index == 0 { words::measure(&one.measure) } else { String::new() },
                margin: margin(decision.margin, &one.measure),
                condition: words::condition_in(&input.plan, one.condition),
                variant: input.plan.label(one.variant),
                baseline,
                value,
                change: one.change(notation).unwrap_or_else(|_| "–".to_owned()),
                interval: text::interval(one, notation),
                n: one.pairs.len(),
                verdict: verdict.map(|verdict| verdict.outcome.to_string()).unwrap_or_default(),
                uncertain: verdict.is_some_and(|verdict| verdict.material == Some(false)),
            }
        };
        of_measure.iter().enumerate().map(row).collect::<Vec<DecidingRow>>()
    };
    decisions(&input.facts).into_iter().flat_map(of).collect()
}

/// The values that the change of a comparison is computed from, the baseline's first.
pub(crate) fn values(comparison: &Comparison) -> [String; 2] {
    match comparison.values() {
        Some(values) => values.map(|value| shown_beside_a_change(value, comparison.measure.unit())),
        None => ["–", "–"].map(str::to_owned),
    }
}

/// A value beside the change that is computed from it. A mean of counts need not be whole.
pub(crate) fn shown_beside_a_change(value: f64, unit: Unit) -> String {
    match unit {
        Unit::Count if value.fract() != 0.0 => show(value, Unit::Number),
        unit => show(value, unit),
    }
}

/// The most rows of the chart at the top; beyond them it shows the first measure alone.
const MAX_ROWS: usize = 24;

/// The chart at the top: the changes in the measures that decide and are compared like the first of them. None where
/// nothing is compared, or there is no value to draw.
pub(crate) fn chart(input: &Input, analysis: &Analysis) -> Option<Deciding> {
    if input.plan.variants.len() < 2 {
        return None;
    }
    let decisions = decisions(&input.facts);
    let effect = decisions.first()?.measure.effect();
    let unit = decisions.first()?.measure.unit();
    let alike =
        |one: &&Decision| one.measure.effect() == effect && (effect == Effect::Ratio || one.measure.unit() == unit);
    let mut groups: Vec<Group> =
        decisions.iter().filter(alike).map(|decision| group(input, analysis, decision)).collect();
    if groups.iter().map(|group| group.rows.len()).sum::<usize>() > MAX_ROWS {
        groups.truncate(1);
    }
    groups.retain(|group| group.rows.iter().any(|row| row.value.is_some()));
    let names: Vec<String> = input.plan.variants.iter().map(plimsoll_model::factor::Assignment::label).collect();
    let against = if names.len() == 2 { names[1].as_str() } else { "the other variants" };
    let title = format!("{against} against {}", names.first()?);
    (!groups.is_empty()).then_some(Deciding { title, effect, unit, groups })
}

fn group(input: &Input, analysis: &Analysis, decision: &Decision) -> Group {
    let forest = figures::forest(input, analysis, &decision.measure);
    let of_measure: Vec<&Comparison> =
        analysis.comparisons.iter().filter(|one| one.measure == decision.measure).collect();
    let notation = notation(of_measure.iter().copied());
    let one_condition = input.plan.conditions.len() == 1;
    let row = |(drawn, one): (crate::chart::ForestRow, &Comparison)| Row {
        label: if one_condition { input.plan.label(one.variant) } else { drawn.label },
        value: drawn.value,
        interval: drawn.interval,
        pairs: drawn.pairs,
        floor: drawn.floor,
        change: one.change(notation).unwrap_or_else(|_| "–".to_owned()),
        verdict: one.verdict.as_ref().map(|verdict| verdict.outcome.to_string()).unwrap_or_default(),
        paint: paint(one.verdict.as_ref()),
    };
    Group {
        title: words::measure_at_start(&decision.measure),
        direction: decision.measure.direction(),
        margin: forest.within_margin().unwrap_or_else(|| match decision.measure.effect() {
            Effect::Ratio => (1.0 / (1.0 + decision.margin), 1.0 + decision.margin),
            Effect::Difference => (-decision.margin, decision.margin),
        }),
        rows: forest.rows.clone().into_iter().zip(of_measure).map(row).collect(),
    }
}

fn paint(verdict: Option<&Verdict>) -> Paint {
    match verdict.map(|verdict| verdict.outcome) {
        Some(Outcome::Better) => Paint::Better,
        Some(Outcome::Worse) => Paint::Worse,
        Some(Outcome::Equivalent) => Paint::Equal,
        Some(Outcome::Inconclusive | Outcome::Void) | None => Paint::Open,
    }
}

/// What the marks of the chart mean.
pub(crate) fn caption(input: &Input, chart: &Deciding, confidence: &str) -> String {
    let unit = if input.plan.design.is_trials() { "pair of trials" } else { "start" };
    let floor = match (chart.has_floors(), chart.cuts_floors()) {
        (false, _) => "",
        (true, false) => " Grey bars: the noise floor, which is the baseline against its own duplicate.",
        (true, true) => {
            " Grey bars: the noise floor, which is the baseline against its own duplicate; it may go on beyond the edge."
        }
    };
    let beyond = match chart.pairs_beyond() {
        0 => String::new(),
        count => format!(" ({count} beyond the edge)"),
    };
    format!(
        "Large dots: the change, with its {confidence} interval; small dots: each {unit}{beyond}. Shaded: the margin, within which a \
         difference does not matter.{floor}"
    )
}

/// The measurement in a sentence: design, n, load, machine and time.
pub(crate) fn measured(input: &Input) -> String {
    let plan = &input.plan;
    let ran = repeats_that_ran(input);
    let repeats = |unit| words::repeats(ran, unit);
    let under_each = if plan.conditions.len() > 1 { " under each condition" } else { "" };
    let with_duplicate = if plan.with_duplicate { " and a duplicate of the baseline" } else { "" };
    // A server that runs already, and storage, are the same from one trial to the next.
    let fresh = if input.facts.systems.is_empty() { "" } else { ", each on systems freshly started" };
    let how = match plan.design.turns() {
        _ if plan.searches() => format!(
            "Measured by {}: {}{under_each}{}",
            if plan.is_stress() { "stress tests" } else { "searches for the capacity" },
            repeats("start"),
            match (plan.describes(), plan.design.is_trials()) {
                (true, _) => String::new(),
                (false, true) => format!(" of each variant{with_duplicate}, in blocks in random order"),
                (false, false) => format!(" of all variants{with_duplicate}, whose loads alternate in random order"),
            }
        ),
        Some(turns) => format!(
            "Measured {}: {}{under_each}, on each {} of all variants{with_duplicate} in random order{}, slices of {}",
            if plan.design.is_side_by_side() { "side by side" } else { "in turns" },
            repeats("start"),
            counted(turns.count as usize, "turn"),
            if plan.design.is_side_by_side() { ", each at the same time as the baseline" } else { "" },
            length(turns.slice)
        ),
        None if plan.describes() => format!("Measured in {}{under_each}{fresh}", repeats("trial")),
        None => format!(
            "Measured in trials: {} of each variant{under_each}{with_duplicate}{fresh}, in blocks in random order",
            repeats(if plan.variants.len() > 1 { "repeat" } else { "trial" }),
        ),
    };
    let lengths: BTreeSet<Duration> = plan.lengths.iter().map(|length| length.measure).collect();
    let each = match (plan.design.turns(), lengths.iter().next()) {
        (_, Some(one)) if plan.searches() => format!(", {} for each load", length(*one)),
        (None, Some(one)) if lengths.len() == 1 => match measured_time::range(input) {
            Some((least, most)) => format!(", {} to {} each, {} at most", length(least), length(most), length(*one)),
            None => format!(", {} each", length(*one)),
        },
        _ => String::new(),
    };
    let load = filled(&input.facts.load, &input.facts);
    let load = if input.facts.loopback { format!("{load}, from the same machine") } else { load };
    let model = input.host.cpu_model.as_ref().map(|model| format!(" ({model})")).unwrap_or_default();
    let machine = format!("{}{model}", counted(input.host.processors, "processor"));
    let took: Duration = input.starts.iter().map(|one| Duration::from_nanos(one.summary.timing.took.0)).sum();
    let first = input.starts.iter().map(|one| one.summary.timing.started_unix_ms).min();
    let day = first.map(|first| format!(" on {}", &text::utc(first)[..10])).unwrap_or_default();
    text::unbroken(&format!("{how}{each}. Load: {load}. Machine: {machine}. It took {}{day}.", span(took)))
}

/// The fewest and the most repeats that ran of a variant under a condition, without those of blocks that ran again. Looks
/// leave some out, and so does an interruption.
fn repeats_that_ran(input: &Input) -> (usize, usize) {
    let plan = &input.plan;
    let all = (0..plan.conditions.len()).flat_map(|one| (0..plan.variants.len()).map(move |variant| (one, variant)));
    let mut ran: BTreeMap<(usize, usize), BTreeSet<u32>> = all.map(|cell| (cell, BTreeSet::new())).collect();
    for start in input.starts.iter().map(|one| &one.summary.start).filter(|start| !plan.is_superseded(start)) {
        for variant in &start.variants {
            // The duplicate of the baseline is none of them.
            if let Some(repeats) = ran.get_mut(&(start.condition, *variant)) {
                repeats.insert(start.repeat);
            }
        }
    }
    let counts = || ran.values().map(BTreeSet::len);
    (counts().min().unwrap_or(0), counts().max().unwrap_or(0))
}

/// `300 ms`, `20 s`.
fn length(time: Duration) -> String {
    show(time.as_secs_f64(), Unit::Seconds).replace(".00 ", " ").replace(".0 ", " ")
}

/// The findings that could overturn the answer, each in its first sentence.
pub(crate) fn briefs(analysis: &Analysis) -> Vec<Brief> {
    let severe = analysis.findings.iter().filter(|finding| finding.severity == Severity::Problem);
    severe.map(brief).collect()
}

pub(crate) fn brief(finding: &Finding) -> Brief {
    Brief {
        severity: finding.severity.name(),
        topic: finding.topic,
        sentence: text::unbroken(&first_sentence(&finding.sentence)),
    }
}

/// The text up to the end of its first sentence, or of its first clause where a colon or semicolon ends one.
fn first_sentence(text: &str) -> String {
    let is_outside = |end: &usize| text[..*end].matches('(').count() == text[..*end].matches(')').count();
    let first = |end: &str| text.match_indices(end).map(|(place, _)| place).find(is_outside);
    // A colon or semicolon near the start has said nothing yet.
    let clause = ["; ", ": "].into_iter().filter_map(first).filter(|end| *end > 30);
    let end = clause.chain(first(". ")).min();
    match end {
        Some(end) => format!("{}.", &text[..end]),
        None => text.to_owned(),
    }
}

/// What to do next, where a verdict is open.
pub(crate) fn next(analysis: &Analysis) -> Option<String> {
    let next = text::unbroken(&analysis.next.as_ref()?.to_string());
    let mut letters = next.chars();
    let first = letters.next()?;
    Some(first.to_uppercase().chain(letters).collect())
}

/// The design in a word or two, with its n and time, for places that have no room: `turns, 5 starts, 3 min`.
pub(crate) fn in_short(input: &Input) -> String {
    let ran = repeats_that_ran(input);
    let repeats = |unit| words::repeats(ran, unit);
    let took: Duration = input.starts.iter().map(|one| Duration::from_nanos(one.summary.timing.took.0)).sum();
    let design = match input.plan.design.turns() {
        _ if input.plan.is_stress() => format!("{} of a stress test", repeats("start")),
        _ if input.plan.searches() => format!("{} of a search", repeats("start")),
        Some(turns) => format!(
            "{} of {}{}",
            repeats("start"),
            counted(turns.count as usize, "turn"),
            if input.plan.design.is_side_by_side() { " side by side" } else { "" }
        ),
        None => format!("{} in trials", repeats("repeat")),
    };
    format!("{design}, {}", span(took))
}

/// What the problems and cautions are about, the problems first.
pub(crate) fn topics(analysis: &Analysis) -> Option<String> {
    let of = |severity: Severity| analysis.findings.iter().filter(move |finding| finding.severity == severity);
    let mut topics: Vec<&str> = Vec::new();
    for finding in of(Severity::Problem).chain(of(Severity::Caution)) {
        if !topics.contains(&finding.topic) {
            topics.push(finding.topic);
        }
    }
    (!topics.is_empty()).then(|| topics.join("; "))
}

/// The lines about what else was found, for a terminal: the topics of the cautions, and what other programs used.
pub(crate) fn cautions(analysis: &Analysis) -> Vec<String> {
    let cautions: Vec<&Finding> =
        analysis.findings.iter().filter(|finding| finding.severity == Severity::Caution).collect();
    let others = cautions.iter().filter(|one| one.topic == "the host").flat_map(|one| one.evidence.first());
    let said = analysis.next.as_ref().map(|next| next.alternative.as_str()).unwrap_or_default();
    let is_new = |line: &&String| line.starts_with("other programs") && !said.contains(line.as_str());
    let mut lines: Vec<String> = others.filter(is_new).cloned().collect();
    let topics: BTreeSet<&str> = cautions.iter().map(|finding| finding.topic).collect();
    if !topics.is_empty() {
        lines.push(format!("see the report: {}", topics.into_iter().collect::<Vec<&str>>().join("; ")));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_brief_is_one_short_sentence() {
        for (text, expected) in [
            (
                "Of 30 trials, 17 do not count. In comparisons their partners are left out too.",
                "Of 30 trials, 17 do not count.",
            ),
            (
                "The same system differs from itself as well (orders per minute, 1 thread: +1 % to +4 %). More follows.",
                "The same system differs from itself as well (orders per minute, 1 thread: +1 % to +4 %).",
            ),
            ("This is a first look, and decides nothing.", "This is a first look, and decides nothing."),
            (
                "After some trials a condition on the data did not hold: the database lost work.",
                "After some trials a condition on the data did not hold.",
            ),
            ("Short: it goes on, and has no second sentence.", "Short: it goes on, and has no second sentence."),
        ] {
            assert_eq!(first_sentence(text), expected);
        }
    }

    #[test]
    fn values_beside_a_change_are_those_that_it_is_computed_from() {
        for (value, unit, expected) in
            [(1.5, Unit::Count, "1.50"), (8.0, Unit::Count, "8"), (1.5, Unit::PerSecond, "1.50 /s")]
        {
            assert_eq!(shown_beside_a_change(value, unit), expected);
        }
    }
}
