//! Verdicts on comparisons: what decides as one family, what is explored as another, and what may hide a difference.

use super::condition::DraftComparison;
use super::{Comparison, Exploratory, Reference, with_each_copy};
use crate::decide::{ComparisonToDecide, Decision, Evidence, Floor, HiddenBy, both, decide};
use crate::effect::additive_margin;
use crate::estimate::MIN_REPEATS;
use crate::idle_work::{self, IDLE_WORK};
use crate::input::Input;
use crate::order;
use crate::verdict::{self, Circumstances};
use crate::words;
use plimsoll_model::measure::{Measure, Series, Statistic};
use plimsoll_model::result::{StartResult, StartSummary, TrialResult};
use plimsoll_model::start::Validity;
use plimsoll_statistics::benjamini_hochberg;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// The false discovery rate of the comparisons that stand out.
pub const FALSE_DISCOVERIES: f64 = 0.1;

/// What may hide a difference of a variant from the baseline. Where both need processors that they or the generator
/// share, at the same time or between their slices, one slows the other down, which draws their values towards one
/// another.
pub(crate) fn hidden_by(input: &Input, condition: usize, variant: usize) -> Option<HiddenBy> {
    let is_counted = |start: &&StartResult| start.summary.start.condition == condition && start.validity().counts();
    let starts: Vec<&StartResult> = input.starts.iter().filter(is_counted).collect();
    if input.plan.design.is_trials() || starts.iter().all(|start| have_own_processors(input, start, variant)) {
        return None;
    }
    if input.plan.design.is_side_by_side() {
        return Some(HiddenBy::SharedProcessors);
    }
    let between_slices = |variant| idle_work::between_slices(starts.iter().copied(), variant);
    let (variant, baseline) = (between_slices(variant)?, between_slices(0)?);
    ((variant - baseline).abs() >= IDLE_WORK).then_some(HiddenBy::IdleWork { variant, baseline })
}

/// True if the baseline, the variant and the generator were bound to processors of which none is another's.
fn have_own_processors(input: &Input, start: &StartResult, variant: usize) -> bool {
    let of = |variant| start.summary.systems.iter().find(|one| one.variant == variant)?.processors.as_ref();
    let all = [of(0), of(variant), input.facts.generator.cpus.as_ref()].into_iter().collect::<Option<Vec<_>>>();
    let all: Option<Vec<usize>> = all.map(|all| all.into_iter().flat_map(|one| one.0.iter().copied()).collect());
    all.is_some_and(|all| all.iter().collect::<BTreeSet<_>>().len() == all.len())
}

/// Sets the verdicts on the measures that decide: one family over all conditions, variants and
/// measures.
pub(super) fn judge(input: &Input, drafts: &mut [DraftComparison], floors: &[DraftComparison], alpha: f64) {
    let rule = input.facts.floor_rule;
    let to_decide = |one: &DraftComparison| {
        let effect = one.comparison.measure.effect();
        let same = |floor: &&DraftComparison| {
            (floor.comparison.condition, &floor.comparison.measure)
                == (one.comparison.condition, &one.comparison.measure)
        };
        let floor = |floor: &DraftComparison| {
            let with_each_copy = with_each_copy(&input.plan, &one.comparison, &floor.comparison)
                .map(|differences| Evidence::paired(&differences, one.resolution, alpha));
            Some(Floor {
                evidence: floor.evidence.clone()?,
                rule,
                widest_in_margins: Reference::of(&input.plan).widest_floor(),
                with_each_copy: both(with_each_copy),
            })
        };
        Some(ComparisonToDecide {
            evidence: one.evidence.clone(),
            margin: additive_margin(effect, one.margin?),
            floor: floors.iter().find(same).and_then(floor),
            influence: one.comparison.in_turns.as_ref().and_then(|turns| turns.influence),
            hidden_by: hidden_by(input, one.comparison.condition, one.comparison.variant),
        })
    };
    let to_decide: Vec<ComparisonToDecide> = drafts.iter().filter_map(to_decide).collect();
    let decisions: Vec<Decision> = decide(&to_decide, alpha);
    let per_repeat = time_per_repeat(input);
    let decisive = drafts.iter_mut().filter_map(|one| Some((one.margin?, &mut one.comparison)));
    for ((margin, comparison), decision) in decisive.zip(&decisions) {
        let circumstances = Circumstances {
            why_void: why_void(input, comparison),
            losses: losses(input, comparison),
            per_repeat,
            repeats: repeats_of_both(input, comparison),
        };
        let n = comparison.contrast.as_ref().map(|contrast| contrast.n).map_err(Clone::clone);
        comparison.verdict = Some(verdict::verdict(&comparison.measure, n, decision, margin, &circumstances));
    }
}

/// The time that one more repeat takes, under all conditions: what those that ran took on average, from the start of
/// systems to their end, without attempts that did not count. None where nothing ran.
#[must_use]
pub fn time_per_repeat(input: &Input) -> Option<Duration> {
    let plan = &input.plan;
    let stand: Vec<&StartSummary> =
        input.starts.iter().map(|start| &start.summary).filter(|one| !plan.is_superseded(&one.start)).collect();
    // Looks may have spared repeats of some conditions, and an interruption has. What conditions with as many repeats
    // took is summed up before it is divided, so that nothing is rounded for each of them.
    let mut took_by_repeats: BTreeMap<u32, Duration> = BTreeMap::new();
    for condition in 0..plan.conditions.len() {
        let starts = || stand.iter().filter(|one| one.start.condition == condition);
        let repeats: BTreeSet<u32> = starts().map(|one| one.start.repeat).collect();
        let took: Duration = starts().map(|one| Duration::from_nanos(one.timing.took.0)).sum();
        *took_by_repeats.entry(repeats.len() as u32).or_default() += took;
    }
    let took: Duration = took_by_repeats.iter().map(|(repeats, took)| *took / (*repeats).max(1)).sum();
    (!took.is_zero()).then_some(took)
}

/// The repeats in which both the variant and the baseline were loaded, whether their values count or not.
fn repeats_of_both(input: &Input, comparison: &Comparison) -> usize {
    let repeats_of = |variant: usize| -> BTreeSet<u32> {
        let of_condition = input.trials().filter(|trial| trial.condition() == comparison.condition);
        of_condition.filter(|trial| trial.variant() == variant).map(|trial| trial.identity().repeat).collect()
    };
    repeats_of(0).intersection(&repeats_of(comparison.variant)).count()
}

/// What became of the trials of a comparison, where some do not count and fewer pairs are left than an interval takes:
/// `9 of 10 trials void, one pair left; an interval takes 3`.
fn losses(input: &Input, comparison: &Comparison) -> Option<String> {
    if comparison.pairs.len() >= MIN_REPEATS {
        return None;
    }
    let is_of = |variant: usize| variant == 0 || variant == comparison.variant;
    let planned = input.plan.starts.iter().filter(|start| start.condition == comparison.condition);
    let planned = planned.filter(|start| !input.plan.is_superseded(start));
    let all: usize = planned.map(|start| start.variants.iter().filter(|variant| is_of(**variant)).count()).sum();
    let ran = input.trials().filter(|trial| {
        trial.condition() == comparison.condition
            && is_of(trial.variant())
            && !input.plan.is_superseded(trial.identity())
    });
    let ran: Vec<TrialResult<'_>> = ran.collect();
    let counting = |variant: usize| -> BTreeSet<u32> {
        let of_variant = ran.iter().filter(|trial| trial.variant() == variant && trial.counts());
        of_variant.map(|trial| trial.identity().block).collect()
    };
    // Where both count and yet make no pair, it is for lack of values, which has its own reason.
    if counting(0).intersection(&counting(comparison.variant)).count() > comparison.pairs.len() {
        return None;
    }
    let validities: Vec<Validity> = ran.iter().map(TrialResult::validity).collect();
    let count = |is: fn(&Validity) -> bool| validities.iter().filter(|validity| is(validity)).count();
    let counts = [
        (count(|validity| matches!(validity, Validity::Void(_))), "void"),
        (count(|validity| matches!(validity, Validity::Failed(_))), "failed"),
        (all.saturating_sub(validities.len()), "did not run"),
    ];
    let mut lost = counts.into_iter().filter(|(count, _)| *count > 0);
    let (first, what) = lost.next()?;
    let further: String = lost.map(|(count, what)| format!(" and {count} {what}")).collect();
    let unit = words::load_unit(&input.plan);
    let what = format!("{first} of {all} {unit}s {what}{further}");
    let left = match comparison.pairs.len() {
        0 => "no pair".to_owned(),
        1 => "one pair".to_owned(),
        several => format!("{several} pairs"),
    };
    Some(format!("{what}, {left} left; an interval takes {MIN_REPEATS}"))
}

/// The reason why there can be no verdict, whatever the numbers are.
fn why_void(input: &Input, comparison: &Comparison) -> Option<&'static str> {
    if !input.declared {
        Some("what the study declared was changed after the run, and with it margins or order")
    } else if order::sequential(input, comparison.condition, comparison.variant) {
        Some(
            "all trials of one variant ran before those of the other, so a machine that changed cannot be told from a \
             difference",
        )
    } else {
        None
    }
}

/// Marks the comparisons that stand out among those that do not decide, as one family.
pub(super) fn explore(drafts: &mut [DraftComparison]) {
    // In windows of equal length a count says the same as its rate.
    let is_rate_again = |measure: &Measure| {
        let has_no_rate = matches!(measure.series, Series::Errors | Series::FailedIterations | Series::LostDeliveries);
        measure.statistic == Statistic::Count && !has_no_rate
    };
    let p = |one: &DraftComparison| {
        let explored = one.margin.is_none() && !is_rate_again(&one.comparison.measure);
        one.comparison.contrast.as_ref().ok()?.p.filter(|_| explored)
    };
    let adjusted = benjamini_hochberg(&drafts.iter().filter_map(p).collect::<Vec<f64>>());
    for (one, adjusted_p) in drafts.iter_mut().filter(|one| p(one).is_some()).zip(adjusted) {
        one.comparison.exploratory = Some(Exploratory { adjusted_p, stands_out: adjusted_p <= FALSE_DISCOVERIES });
    }
}
