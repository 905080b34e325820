//! Compares the numbers of two bundles, and decides on the changes.

use super::differences::{is_same, place};
use super::{Basis, Change, ComparedRun, Floor, Row, describe_one_system};
use crate::catalogue::margin;
use crate::compare::{Comparison, Exploratory, FALSE_DISCOVERIES, Reference, resolution, with_each_copy};
use crate::decide::{self, ComparisonToDecide, Evidence, both, decide, doubt};
use crate::effect::{additive_margin, natural, natural_interval};
use crate::estimate::{MIN_REPEATS, too_few};
use crate::measure::TrialReader;
use crate::reason::OrReason;
use crate::verdict::{Verdict, of_decision};
use plimsoll_model::factor::Assignment;
use plimsoll_model::measure::{Effect, Measure};
use plimsoll_model::study::FloorRule;
use plimsoll_statistics::{benjamini_hochberg, mean};

/// Both bundles, and the mode of their comparison.
pub(super) struct RunPair<'a> {
    pub(super) first: &'a ComparedRun<'a>,
    pub(super) second: &'a ComparedRun<'a>,
    /// True if the baseline is the same in both.
    pub(super) pinned: bool,
    pub(super) basis: Basis,
    /// True if no known fact differs: then the baseline's own change is judged too.
    pub(super) nothing_differs: bool,
    pub(super) alpha: f64,
}

/// A row before its verdict, with the evidence for it.
struct DraftRow {
    row: Row,
    /// The numbers that its verdict follows from; of the baseline always its values.
    basis: Basis,
    evidence: Option<Evidence>,
    floor: Option<Evidence>,
    /// As in [`decide::Floor`].
    with_each_copy: Option<[Evidence; 2]>,
}

/// A cell in one of the bundles: indices into its plan.
#[derive(Clone, Copy)]
struct Cell {
    condition: usize,
    variant: usize,
}

impl RunPair<'_> {
    /// The rows of the measures that decide, and those of all others.
    pub(super) fn rows(&self, shared: &[(Assignment, Assignment)]) -> (Vec<Row>, Vec<Row>) {
        let in_both = |measure: &&Measure| self.second.analysis.measures.contains(measure);
        let measures = self.first.analysis.measures.iter().filter(in_both);
        let (deciding, others): (Vec<&Measure>, Vec<&Measure>) = measures.partition(|one| self.margin(one).is_some());
        let all = |measures: Vec<&Measure>| -> Vec<DraftRow> {
            let cells = |measure| {
                shared.iter().filter_map(move |(variant, condition)| self.draft_row(measure, variant, condition))
            };
            measures.into_iter().flat_map(cells).collect()
        };
        let (mut deciding, mut others) = (all(deciding), all(others));
        self.judge(&mut deciding);
        explore(&mut others, self.basis);
        let rows = |drafts: Vec<DraftRow>| drafts.into_iter().map(|drafts| drafts.row).collect();
        (rows(deciding), rows(others))
    }

    fn margin(&self, measure: &Measure) -> Option<f64> {
        margin(&self.first.input.facts, measure)
    }

    fn runs(&self) -> [&ComparedRun<'_>; 2] {
        [self.first, self.second]
    }

    /// The row of a cell before its verdict; none if one of the bundles lacks the cell.
    fn draft_row(&self, measure: &Measure, variant: &Assignment, condition: &Assignment) -> Option<DraftRow> {
        let mut cells = [Cell { condition: 0, variant: 0 }; 2];
        for (cell, run) in cells.iter_mut().zip(self.runs()) {
            let plan = &run.input.plan;
            *cell = Cell { condition: place(&plan.conditions, condition)?, variant: place(&plan.variants, variant)? };
        }
        let [first, second] = [0, 1].map(|run| values(self.runs()[run], cells[run], measure));
        let resolution = resolution(measure, self.fewest_requests(measure, cells));
        let (change, evidence) = self.change(measure, &first, &second, resolution);
        let baseline = |run: &ComparedRun<'_>| is_same(&run.input.plan.variants[0], variant);
        let is_baseline =
            baseline(self.first) && baseline(self.second) && !describe_one_system(self.first, self.second);
        let shows_ratio = self.pinned && !is_baseline;
        let against_baseline = shows_ratio.then(|| self.against_baseline(measure, cells, resolution));
        let (against_baseline, to_baseline) = against_baseline.unzip();
        // The baseline has no ratio to itself.
        let basis = if is_baseline { Basis::Values } else { self.basis };
        let judged = match basis {
            Basis::Values => evidence,
            Basis::RatiosToBaseline => to_baseline.flatten(),
        };
        let row = Row {
            measure: measure.clone(),
            condition: condition.clone(),
            variant: variant.clone(),
            is_baseline,
            values: [first, second].map(Result::unwrap_or_default),
            change,
            against_baseline,
            verdict: None,
            exploratory: None,
        };
        let floor = self.floor(measure, cells, resolution, basis);
        let with_each_copy = match basis {
            Basis::Values => None,
            Basis::RatiosToBaseline => self.with_each_copy(measure, cells, resolution),
        };
        Some(DraftRow { row, basis, evidence: judged, floor, with_each_copy })
    }

    /// Welch's test of the values of both bundles.
    fn change(
        &self,
        measure: &Measure,
        first: &OrReason<Vec<f64>>,
        second: &OrReason<Vec<f64>>,
        resolution: f64,
    ) -> (OrReason<Change>, Option<Evidence>) {
        let additive = |run: usize, values: &OrReason<Vec<f64>>| {
            let name = &self.runs()[run].name;
            let values = values.as_ref().map_err(|reason| format!("{name} has no value: {reason}"))?;
            additive(measure.effect(), values).map_err(|reason| format!("{reason} in {name}"))
        };
        match additive(0, first).and_then(|first| Ok((first, additive(1, second)?))) {
            Ok((first, second)) => self.unpaired(measure, &first, &second, resolution),
            Err(reason) => (Err(reason), None),
        }
    }

    /// Welch's test of the differences to the baseline inside each bundle.
    fn against_baseline(
        &self,
        measure: &Measure,
        cells: [Cell; 2],
        resolution: f64,
    ) -> (OrReason<Change>, Option<Evidence>) {
        let differences = |run: usize| {
            let cell = cells[run];
            let comparison = self.runs()[run].analysis.comparison(cell.condition, cell.variant, measure);
            let name = &self.runs()[run].name;
            match comparison.map(|comparison| (comparison, &comparison.contrast)) {
                None => Err(format!("{name} does not compare it with the baseline")),
                Some((_, Err(reason))) => Err(format!("{name}: {reason}")),
                Some((comparison, Ok(_))) => Ok(of_pairs(comparison)),
            }
        };
        match differences(0).and_then(|first| Ok((first, differences(1)?))) {
            Ok((first, second)) => self.unpaired(measure, &first, &second, resolution),
            Err(reason) => (Err(reason), None),
        }
    }

    fn unpaired(
        &self,
        measure: &Measure,
        first: &[f64],
        second: &[f64],
        resolution: f64,
    ) -> (OrReason<Change>, Option<Evidence>) {
        let (Some(one), Some(other)) = (mean(first), mean(second)) else {
            return (Err("a value is no finite number".to_owned()), None);
        };
        let evidence = Evidence::unpaired(second, first, resolution);
        let n = [first.len(), second.len()];
        let enough = evidence.as_ref().filter(|evidence| evidence.n >= MIN_REPEATS);
        let effect = measure.effect();
        let change = Change {
            value: natural(effect, other - one),
            n,
            interval: match enough {
                Some(evidence) => Ok(natural_interval(effect, evidence.test.interval(1.0 - self.alpha))),
                None => Err(too_few(n[0].min(n[1]))),
            },
            p: enough.map(|evidence| evidence.test.p_two_sided(0.0)),
        };
        (Ok(change), evidence)
    }

    /// The change of the ratio to the baseline alone, and to its duplicate alone.
    fn with_each_copy(&self, measure: &Measure, cells: [Cell; 2], resolution: f64) -> Option<[Evidence; 2]> {
        let of_run = |run: usize| {
            let ComparedRun { input, analysis, .. } = self.runs()[run];
            let cell = cells[run];
            let comparison = analysis.comparison(cell.condition, cell.variant, measure)?;
            Some(with_each_copy(&input.plan, comparison, self.floor_of(run, cell, measure)?))
        };
        let (first, second) = (of_run(0)?, of_run(1)?);
        both([0, 1].map(|copy| Evidence::unpaired(&second[copy], &first[copy], resolution)))
    }

    /// The noise floor of a bundle in a cell.
    fn floor_of(&self, run: usize, cell: Cell, measure: &Measure) -> Option<&Comparison> {
        let mut floors = self.runs()[run].analysis.floors.iter();
        floors.find(|floor| floor.condition == cell.condition && &floor.measure == measure)
    }

    /// The noise floor. For values: the floor inside one of the bundles, the one in more doubt. For
    /// ratios to the baseline: the change of the duplicate's ratio between the bundles.
    fn floor(&self, measure: &Measure, cells: [Cell; 2], resolution: f64, basis: Basis) -> Option<Evidence> {
        let margin = additive_margin(measure.effect(), self.margin(measure)?);
        let floors = [0, 1].map(|run| self.floor_of(run, cells[run], measure).map(of_pairs));
        if basis == Basis::RatiosToBaseline {
            let [Some(first), Some(second)] = floors else { return None };
            return Evidence::unpaired(&second, &first, resolution);
        }
        let evidence = floors.into_iter().flatten().filter_map(|one| Evidence::paired(&one, resolution, self.alpha));
        let rank = |evidence: &Evidence| {
            let in_doubt = doubt(evidence, margin, self.alpha).is_some();
            (in_doubt, evidence.test.interval(1.0 - self.alpha).half_width())
        };
        evidence.max_by(|one, other| {
            let (one, other) = (rank(one), rank(other));
            one.0.cmp(&other.0).then(one.1.total_cmp(&other.1))
        })
    }

    /// The smallest number of requests of a trial in these cells.
    fn fewest_requests(&self, measure: &Measure, cells: [Cell; 2]) -> f64 {
        let of_cell = |run: usize| {
            let readers = self.runs()[run].input.trials().map(TrialReader::new);
            readers
                .filter(move |reader| reader.is_of(cells[run].condition, cells[run].variant) && reader.counts())
                .map(|reader| reader.denominator(&measure.series) as f64)
        };
        of_cell(0).chain(of_cell(1)).fold(f64::INFINITY, f64::min)
    }

    /// Sets the verdicts on the measures that decide: one family over all measures, conditions and
    /// variants.
    fn judge(&self, drafts: &mut [DraftRow]) {
        let is_judged =
            |drafts: &&mut DraftRow| self.basis == Basis::Values || self.nothing_differs || !drafts.row.is_baseline;
        let judged: Vec<&mut DraftRow> = drafts.iter_mut().filter(is_judged).collect();
        // The milder rule applies if both studies declared it.
        let milder = self.runs().iter().all(|run| run.input.facts.floor_rule == FloorRule::Beyond);
        let rule = if milder { FloorRule::Beyond } else { FloorRule::Strict };
        // Values are those of one variant against one.
        let widest_of_ratios = self
            .runs()
            .map(|run| Reference::of(&run.input.plan).widest_floor())
            .into_iter()
            .fold(f64::INFINITY, f64::min);
        let floor = |drafts: &DraftRow| {
            let by_values = drafts.basis == Basis::Values;
            let widest_in_margins = if by_values { 1.0 } else { widest_of_ratios };
            let with_each_copy = drafts.with_each_copy.clone();
            drafts.floor.clone().map(|evidence| decide::Floor { evidence, rule, widest_in_margins, with_each_copy })
        };
        let to_decide: Vec<ComparisonToDecide> = judged
            .iter()
            .map(|drafts| ComparisonToDecide {
                evidence: drafts.evidence.clone(),
                margin: additive_margin(
                    drafts.row.measure.effect(),
                    self.margin(&drafts.row.measure).unwrap_or_default(),
                ),
                floor: floor(drafts),
                influence: None,
                hidden_by: None,
            })
            .collect();
        for (drafts, decision) in judged.into_iter().zip(decide(&to_decide, self.alpha)) {
            let margin = self.margin(&drafts.row.measure).unwrap_or_default();
            drafts.row.verdict = Some(match drafts.row.judged(self.basis) {
                Ok(change) => of_decision(&drafts.row.measure, change.n[0].min(change.n[1]), &decision, margin),
                Err(reason) => Verdict::void(margin, reason.clone()),
            });
        }
    }

    /// The noise floors of a bundle in the measures that decide.
    pub(super) fn floors_of(&self, run: &ComparedRun<'_>) -> Vec<Floor> {
        let floor = |comparison: &Comparison| Floor {
            measure: comparison.measure.clone(),
            condition: run.input.plan.conditions[comparison.condition].clone(),
            interval: comparison.contrast.as_ref().ok().and_then(|contrast| contrast.interval.as_ref().ok()).copied(),
        };
        run.analysis.floors.iter().map(floor).collect()
    }
}

/// Marks the comparisons that stand out among those that do not decide.
fn explore(drafts: &mut [DraftRow], basis: Basis) {
    let p = |drafts: &DraftRow| drafts.row.judged(basis).as_ref().ok().and_then(|change| change.p);
    let adjusted = benjamini_hochberg(&drafts.iter().filter_map(p).collect::<Vec<f64>>());
    for (drafts, adjusted_p) in drafts.iter_mut().filter(|drafts| p(drafts).is_some()).zip(adjusted) {
        drafts.row.exploratory = Some(Exploratory { adjusted_p, stands_out: adjusted_p <= FALSE_DISCOVERIES });
    }
}

/// The values of the trials of a cell; never empty.
fn values(run: &ComparedRun<'_>, cell: Cell, measure: &Measure) -> OrReason<Vec<f64>> {
    let estimate = run.analysis.estimate(cell.condition, cell.variant, measure).ok_or("it was not measured")?;
    estimate.summary.as_ref().map_err(Clone::clone)?;
    Ok(estimate.values.iter().map(|one| one.value).collect())
}

/// Values on the additive scale of [`decide`](crate::decide).
fn additive(effect: Effect, values: &[f64]) -> OrReason<Vec<f64>> {
    match effect {
        Effect::Difference => Ok(values.to_vec()),
        Effect::Ratio => {
            let without = values.iter().find(|value| **value <= 0.0 || !value.is_finite());
            match without {
                Some(value) => Err(format!("a trial gave {value}, which has no ratio,")),
                None => Ok(values.iter().map(|value| value.ln()).collect()),
            }
        }
    }
}

/// The differences of pairs on the additive scale.
fn of_pairs(comparison: &Comparison) -> Vec<f64> {
    comparison.pairs.iter().map(|pair| pair.difference(comparison.measure.effect())).collect()
}
