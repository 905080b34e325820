//! The report as JSON, for other programs: the whole analysis, in base units.
//!
//! The format is versioned. New fields keep the version; a changed or removed field raises it.

mod agents;
mod capacity;
mod database;
mod feedback;
mod soak;
mod storage;

use plimsoll_analysis::compare::{Comparison, POWER};
use plimsoll_analysis::estimate::{CONFIDENCE, Estimate, Interval};
use plimsoll_analysis::lengths::Lengths;
use plimsoll_analysis::turns::{InTurns, Influence, InfluenceKind};
use plimsoll_analysis::{Analysis, Cell, Input, OrReason};
use plimsoll_model::factor::Assignment;
use plimsoll_model::host::{Host, Version};
use plimsoll_model::measure::Effect;
use plimsoll_model::result::TrialResult;
use plimsoll_model::start::Start;
use serde::Serialize;
use serde_json::{Map, Value};

/// The version of the format.
const FORMAT: u32 = 2;

#[derive(Serialize)]
struct Report<'a> {
    format: u32,
    title: &'a str,
    question: &'a str,
    answer: Vec<String>,
    further_answers: Vec<String>,
    complete: bool,
    quick: bool,
    problems: &'a [String],
    confidence: f64,
    confidence_of_comparisons: f64,
    /// What to do next, where a verdict is open.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<NextStep<'a>>,
    conclusion: &'static str,
    passes_gate: bool,
    repeats: u32,
    looks: &'a [u32],
    seed: u64,
    variants: Vec<Value>,
    baseline: String,
    conditions: Vec<Value>,
    decide: Vec<Decide>,
    trials: Vec<Trial>,
    uncounted: Vec<ExcludedLoad<'a>>,
    estimates: Vec<EstimateRow>,
    comparisons: Vec<ComparisonRow>,
    noise_floors: Vec<ComparisonRow>,
    could_have_seen: Vec<SensitivityRow>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lengths: Option<LengthsRow>,
    #[serde(skip_serializing_if = "Option::is_none")]
    capacity: Option<capacity::Capacity<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    soak: Option<soak::Soak>,
    #[serde(skip_serializing_if = "Option::is_none")]
    feedback: Option<Vec<feedback::Row<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    storage: Option<storage::Storage<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    database: Option<database::Database<'a>>,
    findings: Vec<FindingRow<'a>>,
    protocol: &'a str,
    load: &'a str,
    workload: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    agents: Option<Vec<agents::Agent>>,
    host: &'a Host,
    versions: &'a [Version],
}

#[derive(Serialize)]
struct NextStep<'a> {
    repeats: Option<usize>,
    seconds: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<&'a str>,
    sentence: String,
    alternative: &'a str,
}

#[derive(Serialize)]
struct Decide {
    measure: String,
    margin: f64,
}

#[derive(Serialize)]
struct Trial {
    number: u32,
    block: u32,
    repeat: u32,
    attempt: u32,
    position: u32,
    variant: String,
    condition: Value,
    started_utc: String,
    validity: &'static str,
    reasons: Vec<String>,
    warnings: Vec<String>,
}

#[derive(Serialize)]
struct ExcludedLoad<'a> {
    trial: u32,
    what: &'a str,
    reasons: &'a [String],
}

#[derive(Serialize)]
struct EstimateRow {
    condition: usize,
    variant: String,
    measure: String,
    unit: plimsoll_model::measure::Unit,
    values: Vec<TrialValue>,
    n: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    centre: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mean: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sd: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    median: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    interval: Option<[f64; 2]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    no_interval: Option<String>,
}

#[derive(Serialize)]
struct TrialValue {
    trial: u32,
    value: f64,
}

#[derive(Serialize)]
struct ComparisonRow {
    condition: usize,
    variant: String,
    measure: String,
    effect: Effect,
    n: usize,
    value: Option<f64>,
    /// The two values that `value` is computed from: the baseline's and the variant's.
    #[serde(skip_serializing_if = "Option::is_none")]
    values: Option<[f64; 2]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    no_value: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    range: Option<[f64; 2]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    interval: Option<[f64; 2]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    no_interval: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ranked: Option<RankedRow>,
    #[serde(skip_serializing_if = "Option::is_none")]
    p: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    detectable: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    in_turns: Option<InTurnsRow>,
    #[serde(skip_serializing_if = "Option::is_none")]
    exploratory: Option<ExploratoryRow>,
    #[serde(skip_serializing_if = "Option::is_none")]
    verdict: Option<VerdictRow>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    dropped: Vec<DroppedRow>,
}

/// What the turns of a comparison show; standard deviations are those of log ratios.
#[derive(Serialize)]
struct InTurnsRow {
    sd_of_turns: Option<f64>,
    sd_of_starts: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    carry_over: Option<InfluenceRow>,
    #[serde(skip_serializing_if = "Option::is_none")]
    interference: Option<InfluenceRow>,
}

/// By how much more a slice of the baseline reads right after, or beside, one of the variant, as a ratio.
#[derive(Serialize)]
struct InfluenceRow {
    value: f64,
    interval: Option<[f64; 2]>,
    starts: usize,
}

/// The turns that a start should have.
#[derive(Serialize)]
struct LengthsRow {
    measure: String,
    sd_of_turns: f64,
    sd_of_starts: f64,
    seconds_of_start: f64,
    seconds_of_turn: f64,
    turns: u32,
    best_turns: u32,
    starts_with_best_turns: Option<usize>,
    share_of_time: f64,
}

#[derive(Serialize)]
struct RankedRow {
    value: f64,
    interval: Option<[f64; 2]>,
}

#[derive(Serialize)]
struct ExploratoryRow {
    adjusted_p: f64,
    stands_out: bool,
}

#[derive(Serialize)]
struct VerdictRow {
    outcome: String,
    material: Option<bool>,
    margin: f64,
    adjusted_p: Option<f64>,
    needed: Option<usize>,
    not_inferior: bool,
    reason: String,
}

/// The smallest changes that the study could have detected.
#[derive(Serialize)]
struct SensitivityRow {
    measure: String,
    effect: Effect,
    power: f64,
    least: f64,
    median: f64,
    most: f64,
}

#[derive(Serialize)]
struct DroppedRow {
    block: u32,
    reason: String,
}

#[derive(Serialize)]
struct FindingRow<'a> {
    gravity: &'a str,
    topic: &'a str,
    sentence: &'a str,
    evidence: &'a [String],
}

/// The report as JSON.
pub(crate) fn json(input: &Input, analysis: &Analysis) -> String {
    let facts = &input.facts;
    let decide = facts.decide.iter().map(|one| Decide { measure: one.measure.to_string(), margin: one.margin });
    let report = Report {
        format: FORMAT,
        title: &facts.title,
        question: &facts.question,
        answer: analysis.answer.headline.iter().map(ToString::to_string).collect(),
        further_answers: analysis.answer.further.iter().map(ToString::to_string).collect(),
        complete: input.complete,
        quick: facts.quick,
        problems: &input.problems,
        confidence: CONFIDENCE,
        confidence_of_comparisons: 1.0 - analysis.alpha,
        next: analysis.next.as_ref().map(|next| NextStep {
            repeats: next.repeats,
            seconds: next.time.map(|time| time.as_secs_f64()),
            command: next.command.as_deref(),
            sentence: next.to_string(),
            alternative: &next.alternative,
        }),
        conclusion: match analysis.conclusion() {
            plimsoll_analysis::Conclusion::Fine => "fine",
            plimsoll_analysis::Conclusion::Worse => "worse",
            plimsoll_analysis::Conclusion::Open => "open",
        },
        passes_gate: input.complete && analysis.passes_gate(),
        repeats: input.plan.repeats,
        looks: &input.plan.looks,
        seed: input.plan.seed,
        variants: input.plan.variants.iter().map(levels).collect(),
        baseline: input.plan.variants[0].label(),
        conditions: input.plan.conditions.iter().map(levels).collect(),
        decide: decide.collect(),
        trials: trials(input),
        uncounted: analysis
            .excluded
            .iter()
            .map(|one| ExcludedLoad { trial: one.trial, what: one.what, reasons: &one.reasons })
            .collect(),
        estimates: analysis.cells.iter().flat_map(|cell| estimates(input, cell)).collect(),
        comparisons: analysis.comparisons.iter().map(|one| comparison(input, one)).collect(),
        noise_floors: analysis.floors.iter().map(|one| comparison(input, one)).collect(),
        could_have_seen: analysis.sensitivities.iter().map(sensitivity).collect(),
        lengths: analysis.lengths.as_ref().map(lengths),
        capacity: analysis.capacity.as_ref().map(|report| capacity::capacity(input, report)),
        soak: analysis.soak.as_ref().map(|report| soak::soak(input, report)),
        feedback: analysis.feedback.as_ref().map(|report| feedback::feedback(input, report)),
        storage: analysis.storage.as_ref().map(|report| storage::storage(input, report)),
        database: analysis.database.as_ref().map(|report| database::database(input, report)),
        findings: findings(analysis),
        protocol: facts.protocol.name(),
        load: &facts.load,
        workload: &facts.workload,
        agents: agents::agents(input),
        host: &input.host,
        versions: &input.versions,
    };
    serde_json::to_string_pretty(&report).expect("every key is text") + "\n"
}

pub(crate) fn levels(assignment: &Assignment) -> Value {
    let pairs = assignment.0.iter().map(|(name, level)| {
        let level = serde_json::to_value(level).expect("a level is a plain value");
        (name.clone(), level)
    });
    Value::Object(pairs.collect::<Map<_, _>>())
}

fn trials(input: &Input) -> Vec<Trial> {
    let of = |trial: TrialResult<'_>| {
        let Start { number, block, repeat, attempt, position, .. } = *trial.identity();
        Trial {
            number,
            block,
            repeat,
            attempt,
            position,
            variant: input.plan.label(trial.variant()),
            condition: levels(&input.plan.conditions[trial.condition()]),
            started_utc: crate::text::utc(trial.start.summary.timing.started_unix_ms),
            validity: crate::text::validity(input, trial),
            reasons: trial.validity().reasons().to_vec(),
            warnings: trial.warnings().cloned().collect(),
        }
    };
    input.trials().map(of).collect()
}

fn estimates(input: &Input, cell: &Cell) -> Vec<EstimateRow> {
    cell.estimates.iter().map(|estimate| estimate_row(input, cell, estimate)).collect()
}

fn estimate_row(input: &Input, cell: &Cell, estimate: &Estimate) -> EstimateRow {
    let summary = estimate.summary.as_ref().ok();
    let (interval, no_interval) = ends(&estimate.interval);
    EstimateRow {
        condition: cell.condition,
        variant: input.plan.label(cell.variant),
        measure: estimate.measure.to_string(),
        unit: estimate.measure.unit(),
        values: estimate.values.iter().map(|one| TrialValue { trial: one.trial, value: one.value }).collect(),
        n: estimate.values.len(),
        centre: summary.map(|summary| summary.centre),
        mean: summary.map(|summary| summary.mean),
        sd: summary.and_then(|summary| summary.sd),
        median: summary.map(|summary| summary.median),
        interval,
        no_interval,
    }
}

fn comparison(input: &Input, one: &Comparison) -> ComparisonRow {
    let contrast = one.contrast.as_ref().ok();
    let (interval, no_interval) = contrast.map_or((None, None), |contrast| ends(&contrast.interval));
    ComparisonRow {
        condition: one.condition,
        variant: input.plan.label(one.variant),
        measure: one.measure.to_string(),
        effect: one.measure.effect(),
        n: one.pairs.len(),
        value: contrast.map(|contrast| contrast.value),
        values: one.values(),
        no_value: one.contrast.as_ref().err().cloned(),
        range: contrast.map(|contrast| [contrast.range.low, contrast.range.high]),
        interval,
        no_interval,
        ranked: contrast.and_then(|contrast| contrast.ranked).map(|ranked| RankedRow {
            value: ranked.value,
            interval: ranked.interval.map(|interval| [interval.low, interval.high]),
        }),
        p: contrast.and_then(|contrast| contrast.p),
        detectable: contrast.and_then(|contrast| contrast.detectable),
        in_turns: one.in_turns.as_ref().map(in_turns),
        exploratory: one
            .exploratory
            .map(|one| ExploratoryRow { adjusted_p: one.adjusted_p, stands_out: one.stands_out }),
        verdict: one.verdict.as_ref().map(|verdict| VerdictRow {
            outcome: verdict.outcome.to_string(),
            material: verdict.material,
            margin: verdict.margin,
            adjusted_p: verdict.adjusted_p,
            needed: verdict.needed,
            not_inferior: verdict.not_inferior,
            reason: verdict.reason.clone(),
        }),
        dropped: one
            .dropped
            .iter()
            .map(|dropped| DroppedRow { block: dropped.block, reason: dropped.reason.clone() })
            .collect(),
    }
}

fn in_turns(one: &InTurns) -> InTurnsRow {
    let influence = |kind| one.influence.filter(|influence| influence.kind == kind).map(influence_row);
    InTurnsRow {
        sd_of_turns: one.levels.map(|levels| levels.sd_of_turns()),
        sd_of_starts: one.levels.map(|levels| levels.sd_of_starts()),
        carry_over: influence(InfluenceKind::CarryOver),
        interference: influence(InfluenceKind::Interference),
    }
}

fn influence_row(influence: Influence) -> InfluenceRow {
    InfluenceRow {
        value: influence.value.exp(),
        interval: influence.interval.map(|interval| [interval.low.exp(), interval.high.exp()]),
        starts: influence.starts,
    }
}

fn lengths(one: &Lengths) -> LengthsRow {
    LengthsRow {
        measure: one.measure.to_string(),
        sd_of_turns: one.levels.sd_of_turns(),
        sd_of_starts: one.levels.sd_of_starts(),
        seconds_of_start: one.costs.start,
        seconds_of_turn: one.costs.turn,
        turns: one.turns,
        best_turns: one.best,
        starts_with_best_turns: one.starts,
        share_of_time: one.time,
    }
}

fn sensitivity(one: &plimsoll_analysis::sensitivity::Sensitivity) -> SensitivityRow {
    SensitivityRow {
        measure: one.measure.to_string(),
        effect: one.measure.effect(),
        power: POWER,
        least: one.least,
        median: one.median,
        most: one.most,
    }
}

fn ends(interval: &OrReason<Interval>) -> (Option<[f64; 2]>, Option<String>) {
    match interval {
        Ok(interval) => (Some([interval.low, interval.high]), None),
        Err(reason) => (None, Some(reason.clone())),
    }
}

fn findings(analysis: &Analysis) -> Vec<FindingRow<'_>> {
    analysis
        .findings
        .iter()
        .map(|finding| FindingRow {
            gravity: finding.severity.name(),
            topic: finding.topic,
            sentence: &finding.sentence,
            evidence: &finding.evidence,
        })
        .collect()
}
