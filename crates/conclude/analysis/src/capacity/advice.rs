//! What follows from a search for the capacity: which variant to take and what it costs, what to plan for, and what to watch.

use super::{CapacityCell, CapacityReport, Found, ResourceUse};
use crate::answer::Sentence;
use crate::compare::{Comparison, Contrast};
use crate::effect::{ends, shown};
use crate::estimate::CONFIDENCE;
use crate::input::Input;
use crate::quantity::{confidence, grouped, percent};
use crate::verdict::Outcome;
use crate::words;
use plimsoll_model::measure::{Direction, Measure, Series, Statistic};

/// A change of CPU or memory below this is not told.
const MATERIAL: f64 = 0.05;

/// The share of what counts as used up from which on a resource is worth watching.
const WATCH_FROM: f64 = 0.7;

/// Sentences that follow from the capacity of each variant under each condition, with their evidence.
pub(super) fn advice(input: &Input, report: &CapacityReport, comparisons: &[Comparison]) -> Vec<Sentence> {
    let (cells, noun) = (&report.cells, report.noun());
    let of_capacity = comparisons.iter().filter(|comparison| comparison.measure == report.measure);
    let choices = of_capacity.filter_map(|comparison| choice(input, comparison, comparisons, noun));
    let plans = cells.iter().filter_map(|cell| plan_for(input, cell, noun));
    let watched = cells.iter().filter_map(|cell| watch(input, cell, noun));
    choices.chain(plans).chain(watched).collect()
}

/// Which of a variant and the baseline to take, and what that costs and saves.
fn choice(input: &Input, capacity: &Comparison, comparisons: &[Comparison], noun: &str) -> Option<Sentence> {
    let (verdict, contrast) = (capacity.verdict.as_ref()?, capacity.contrast.as_ref().ok()?);
    let (variant, baseline) = (input.plan.label(capacity.variant), input.plan.label(0));
    let place = words::conditions(&input.plan, &[capacity.condition]);
    let claim = match verdict.outcome {
        Outcome::Better => format!("Take {variant}{place}: it carries more {noun} than {baseline}"),
        Outcome::Worse => format!("Stay with {baseline}{place}: {variant} carries fewer {noun}"),
        Outcome::Equivalent => format!("Both will do{place}: {variant} carries as many {noun} as {baseline}"),
        Outcome::Inconclusive => format!("It is open whether {variant} carries more {noun} than {baseline}{place}"),
        Outcome::Void => return None,
    };
    let is_beside = |one: &&Comparison| (one.condition, one.variant) == (capacity.condition, capacity.variant);
    let are_several = comparisons.iter().any(|one| is_of_a_system(&one.measure, true));
    let uses: Vec<(&Comparison, &Contrast)> = comparisons
        .iter()
        .filter(is_beside)
        .filter(|one| is_of_a_system(&one.measure, are_several))
        .filter_map(|one| Some((one, one.contrast.as_ref().ok().filter(|contrast| is_clear(contrast))?)))
        .collect();
    let worse =
        |contrast: &Contrast, measure: &Measure| (contrast.value > 1.0) == (measure.direction() == Direction::Lower);
    let told = |costs: bool| -> Vec<String> {
        let wanted = uses.iter().filter(|(one, contrast)| worse(contrast, &one.measure) == costs);
        wanted
            .map(|(one, contrast)| {
                format!("{} {}", words::measure(&one.measure), with_interval(contrast, &one.measure))
            })
            .collect()
    };
    let part = |says: &str, told: Vec<String>| (!told.is_empty()).then(|| format!("{says} {}", told.join("; ")));
    let parts = [
        Some(with_interval(contrast, &capacity.measure)),
        part("each at its capacity, it costs", told(true)),
        part("each at its capacity, it saves", told(false)),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    // Without a cost or a saving it would only repeat the verdict.
    let is_open = verdict.outcome == Outcome::Inconclusive;
    let is_told = !is_open || parts.len() > 1;
    is_told.then(|| Sentence { outcome: None, claim, evidence: format!("({})", parts.join("; ")) })
}

/// True for the CPU and the memory of a single system: of one of several by its name, of the only one without.
fn is_of_a_system(measure: &Measure, are_several: bool) -> bool {
    match (&measure.series, measure.statistic) {
        (Series::Cpu(name), Statistic::Avg) | (Series::Memory(name), Statistic::Max) => name.is_some() == are_several,
        _ => false,
    }
}

/// True for a change of some size whose interval leaves out that there is none.
fn is_clear(contrast: &Contrast) -> bool {
    let leaves_out = contrast.interval.as_ref().is_ok_and(|interval| interval.low > 1.0 || interval.high < 1.0);
    leaves_out && contrast.value.ln().abs() >= (1.0 + MATERIAL).ln()
}

/// `+37 % (95 % interval +30 % to +44 %)`.
fn with_interval(contrast: &Contrast, measure: &Measure) -> String {
    let change = shown(contrast.value, measure);
    match contrast.interval {
        Ok(interval) => {
            let [low, high] = ends(interval, measure);
            format!("{change} ({} interval {low} to {high})", confidence(1.0 - CONFIDENCE))
        }
        Err(_) => change,
    }
}

/// The load to plan for: the lower end of the interval, or the longer load that passed where that is lower. Where each longer
/// load failed, fewer than the smallest of them.
fn plan_for(input: &Input, cell: &CapacityCell, noun: &str) -> Option<Sentence> {
    let Ok(Found::At(_, Ok(interval))) = &cell.found else { return None };
    let confirmed = cell.confirmed();
    if let Some(lowest) =
        cell.confirmations.iter().map(|one| one.level).reduce(f64::min).filter(|_| confirmed.is_none())
    {
        return Some(Sentence {
            outcome: None,
            claim: format!("Plan for fewer than {} {noun}{}", grouped(lowest.floor()), with(input, cell)),
            evidence: "(each longer load failed, the smallest at this level)".to_owned(),
        });
    }
    let level = confirmed.map_or(interval.low, |passed| passed.level.min(interval.low));
    let of_level = if level < interval.low.floor() {
        "below the interval of the capacity"
    } else {
        "the lower end of the interval of the capacity"
    };
    let longer = match confirmed {
        Some(passed) => format!("a load of {:.0} s at {} passed", passed.seconds, grouped(passed.level.round())),
        None if input.plan.is_stress() => "a search for the capacity would confirm it by a longer load".to_owned(),
        None => "no longer load confirmed it".to_owned(),
    };
    Some(Sentence {
        outcome: None,
        claim: format!("Plan for at most {} {noun}{}", grouped(level.floor()), with(input, cell)),
        evidence: format!("({of_level}; {longer})"),
    })
}

/// The resource to watch: the one that gave out first, with the load from which on most of it is in use.
fn watch(input: &Input, cell: &CapacityCell, noun: &str) -> Option<Sentence> {
    let first: &ResourceUse = cell.gave_out.as_ref()?.first()?;
    if first.resource.is_wait() {
        return None;
    }
    let (level, used) = first.levels.iter().find(|(_, used)| used.share() >= WATCH_FROM * first.resource.limit())?;
    Some(Sentence {
        outcome: None,
        claim: format!("Watch {}{}", first.resource, with(input, cell)),
        evidence: format!(
            "(what gave out first; at {} from {} {noun} on)",
            percent(used.share()),
            grouped(level.round())
        ),
    })
}

/// The variant and the condition: ` with connections = 30 at 10 users`.
fn with(input: &Input, cell: &CapacityCell) -> String {
    super::sentences::cell_in_words(input, cell, "with")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyse;
    use crate::capacity::{Confirmation, Demand, GaveOut, Grade, Resource, StartCapacity, Use};
    use crate::testing::{input, start};
    use plimsoll_model::objective::Objective;
    use plimsoll_statistics::Interval;

    fn contrast(value: f64) -> Contrast {
        let interval = Interval { low: value * 0.97, high: value * 1.03 };
        let (ranked, p, detectable) = (None, None, None);
        Contrast { value, n: 5, range: interval, interval: Ok(interval), ranked, p, detectable }
    }

    /// What is compared of new with old: the capacity, with this outcome, and what both use of the system `web`.
    fn comparisons(outcome: Outcome, of_capacity: f64, cpu: f64, memory: f64) -> Vec<Comparison> {
        let analysed = analyse(&input(5, |_| start(1.0)));
        let known = analysed.comparisons.iter().find(|one| one.verdict.is_some()).expect("a verdict");
        let of = |measure: &str, value: f64| Comparison {
            measure: measure.parse().expect("a measure"),
            contrast: Ok(contrast(value)),
            verdict: known.verdict.clone().map(|verdict| crate::verdict::Verdict { outcome, ..verdict }),
            ..known.clone()
        };
        vec![
            of("capacity.count", of_capacity),
            of("cpu:web.avg", cpu),
            of("cpu.avg", cpu),
            of("memory:web.max", memory),
        ]
    }

    /// A system that carries 400 users, whose machine is used up then.
    fn cell(variant: usize, confirmed_at: f64) -> CapacityCell {
        let used = |level: f64| (level, Use { used: 2.0 * level / 400.0, of: 2.0, saturation: None });
        let machine = ResourceUse {
            resource: Resource::Machine,
            levels: [100.0, 200.0, 300.0, 400.0].map(used).into(),
            at_most: Some(used(400.0)),
            demand: Some(Demand { of_iteration: 0.005, allows: 400.0 }),
            explains: true,
            grade: Grade::Explains,
            intervention: None,
        };
        CapacityCell {
            condition: 0,
            variant,
            starts: Vec::<StartCapacity>::new(),
            found: Ok(Found::At(400.0, Ok(Interval { low: 388.6, high: 412.0 }))),
            limits: Vec::new(),
            confirmations: vec![Confirmation { level: confirmed_at, seconds: 60.0, passed: true, reasons: Vec::new() }],
            levels: Vec::new(),
            of_first_start: Vec::new(),
            range: None,
            gave_out: Some(GaveOut { resources: vec![machine], parts: Vec::new(), at_a_time: None }),
        }
    }

    fn told(comparisons: &[Comparison], cells: Vec<CapacityCell>) -> Vec<String> {
        let input = input(5, |_| start(1.0));
        let objective = Objective { limits: Vec::new(), errors: 0.01, achieved: 0.99 };
        let measure = "capacity.count".parse().expect("a measure");
        let report = CapacityReport { objective, measure, cells, advice: Vec::new() };
        advice(&input, &report, comparisons).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_variant_that_carries_more_is_taken_with_what_it_costs() {
        let told = told(&comparisons(Outcome::Better, 1.37, 1.54, 0.58), vec![cell(1, 380.0)]);
        assert_eq!(
            told,
            [
                "Take new: it carries more users than old (+37.0 % (95 % interval +32.9 % to +41.1 %); each at its capacity, it \
                 costs mean CPU of web +54.0 % (95 % interval +49.4 % to +58.6 %); each at its capacity, it saves peak memory of \
                 web −42.0 % (95 % interval −43.7 % to −40.3 %)).",
                "Plan for at most 380 users with new (below the interval of the capacity; a load of 60 s at 380 passed).",
                "Watch the processors of the machine with new (what gave out first; at 75 % from 300 users on).",
            ]
        );
    }

    #[test]
    fn the_only_system_has_no_name_in_what_it_costs() {
        let mut comparisons = comparisons(Outcome::Better, 1.37, 1.54, 1.0);
        comparisons.retain(|one| !matches!(one.measure.series, Series::Cpu(Some(_)) | Series::Memory(Some(_))));
        let told = told(&comparisons, Vec::new());
        assert!(told[0].contains("each at its capacity, it costs mean CPU +54.0 % ("), "{told:?}");
    }

    #[test]
    fn a_load_that_a_longer_one_refuted_is_not_planned_for() {
        let failed = |level: f64| Confirmation { level, seconds: 60.0, passed: false, reasons: Vec::new() };
        let refuted = CapacityCell { confirmations: vec![failed(388.0), failed(376.0)], ..cell(1, 380.0) };
        let told = told(&[], vec![refuted]);
        assert_eq!(
            told[0],
            "Plan for fewer than 376 users with new (each longer load failed, the smallest at this level)."
        );
    }

    #[test]
    fn what_is_open_has_its_costs_told_all_the_same() {
        assert_eq!(told(&comparisons(Outcome::Inconclusive, 1.1, 1.0, 1.0), Vec::new()), Vec::<String>::new());
        let open = told(&comparisons(Outcome::Inconclusive, 1.1, 1.0, 2.4), Vec::new());
        assert!(open[0].starts_with("It is open whether new carries more users than old (+10.0 %"), "{open:?}");
        assert!(open[0].contains("it costs peak memory of web"), "{open:?}");
        let equal = told(&comparisons(Outcome::Equivalent, 1.0, 1.0, 1.3), Vec::new());
        assert!(equal[0].starts_with("Both will do: new carries as many users as old ("), "{equal:?}");
        assert!(equal[0].contains("it costs peak memory of web +30.0 %") && !equal[0].contains("CPU"), "{equal:?}");
        let worse = told(&comparisons(Outcome::Worse, 0.8, 1.0, 1.0), Vec::new());
        assert!(worse[0].starts_with("Stay with old: new carries fewer users (−20.0 %"), "{worse:?}");
    }
}
