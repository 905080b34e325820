//! The values of the one system of a study that compares nothing.

use crate::analysis::Analysis;
use crate::answer::{Answer, Sentence};
use crate::capacity::show_value;
use crate::catalogue::{decisions, headline};
use crate::estimate::{CONFIDENCE, Estimate};
use crate::input::Input;
use crate::numbers::Cell;
use crate::quantity::confidence;
use crate::words;
use plimsoll_model::measure::{Measure, Series, Statistic, Unit};

/// A measure of the system under a condition.
#[derive(Clone, Debug, PartialEq)]
pub struct DescribedValue {
    /// Index into the plan's conditions.
    pub condition: usize,
    /// True if the study names the measure, in `[decide]` or `[report]`, or it is the default of `[decide]`; otherwise
    /// it stands beside those.
    pub named: bool,
    /// True if the measure is one of `[decide]`.
    pub decides: bool,
    /// The measure over the trials.
    pub estimate: Estimate,
}

/// The values, by measure and then by condition; empty where variants are compared. Measures beside those that the study
/// names are left out where no trial has a value.
pub(crate) fn described(input: &Input, cells: &[Cell]) -> Vec<DescribedValue> {
    if !input.plan.describes() {
        return Vec::new();
    }
    let deciding: Vec<Measure> = decisions(&input.facts).into_iter().map(|decision| decision.measure).collect();
    let mut measures: Vec<(Measure, bool)> = Vec::new();
    let named = deciding.iter().chain(&input.facts.report.measures).map(|measure| (measure.clone(), true));
    for (measure, named) in named.chain(beside(input).map(|measure| (measure, false))) {
        if !measures.iter().any(|(known, _)| is_same(known, &measure)) {
            measures.push((measure, named));
        }
    }
    let of = |(measure, named): (Measure, bool)| {
        let decides = deciding.contains(&measure);
        let values: Vec<DescribedValue> = cells
            .iter()
            .filter_map(|cell| {
                let estimate = cell.estimates.iter().find(|estimate| estimate.measure == measure)?.clone();
                Some(DescribedValue { condition: cell.condition, named, decides, estimate })
            })
            .collect();
        let shown = named || values.iter().any(|value| value.estimate.summary.is_ok());
        if shown { values } else { Vec::new() }
    };
    measures.into_iter().flat_map(of).collect()
}

/// True if both have the same value: `med` is `p50` by another name.
fn is_same(one: &Measure, other: &Measure) -> bool {
    let statistic = |measure: &Measure| match measure.statistic {
        Statistic::Med => Statistic::Percentile(50.0),
        statistic => statistic,
    };
    one.series == other.series && statistic(one) == statistic(other)
}

/// What one wants to know of a system under load beside the measures that the study names, the most wanted first: the
/// percentiles are those of the headline, or of iterations where that is no duration.
fn beside(input: &Input) -> impl Iterator<Item = Measure> {
    let headline = headline(&input.facts).measure;
    let is_duration = headline.unit() == Unit::Seconds && headline.series != Series::ElapsedTime;
    let series = if is_duration { headline.series } else { Series::IterationDuration };
    [
        Measure::new(series.clone(), Statistic::Med),
        Measure::new(Series::Iterations, Statistic::Rate),
        Measure::new(Series::Errors, Statistic::Ratio),
        Measure::new(series.clone(), Statistic::Percentile(95.0)),
        Measure::new(series, Statistic::Percentile(99.0)),
        Measure::new(Series::Cpu(None), Statistic::Avg),
        Measure::new(Series::Memory(None), Statistic::Max),
    ]
    .into_iter()
}

/// The answer of a study that compares nothing: a sentence for each measure of `[decide]`.
pub(crate) fn answer(input: &Input, described: &[DescribedValue]) -> Answer {
    let sentence = |measure: &Measure| {
        let values: Vec<&DescribedValue> = described.iter().filter(|one| one.estimate.measure == *measure).collect();
        sentence(input, measure, &values)
    };
    let mut sentences = decisions(&input.facts).into_iter().map(|decision| sentence(&decision.measure));
    Answer { headline: sentences.next().into_iter().collect(), further: sentences.collect() }
}

/// The most conditions that a sentence names one by one.
const NAMED: usize = 3;

/// `Iterations, p95: 12.3 ms (95 % interval 12.1 ms to 12.6 ms, n = 5)`.
fn sentence(input: &Input, measure: &Measure, values: &[&DescribedValue]) -> Sentence {
    let known: Vec<(f64, usize, String)> = values
        .iter()
        .filter_map(|value| {
            let summary = value.estimate.summary.as_ref().ok()?;
            let place = words::conditions(&input.plan, &[value.condition]);
            Some((summary.centre, summary.n, format!("{}{place}", show_value(input, summary.centre, measure))))
        })
        .collect();
    let name = words::measure_at_start(measure);
    let claim = |what: String| format!("{name}: {what}");
    let least = known.iter().min_by(|one, other| one.0.total_cmp(&other.0));
    let most = known.iter().max_by(|one, other| one.0.total_cmp(&other.0));
    let (Some(least), Some(most)) = (least, most) else {
        let reason = values.iter().find_map(|value| value.estimate.summary.as_ref().err());
        let reason = reason.cloned().unwrap_or_else(|| "it was not measured".to_owned());
        return Sentence { outcome: None, claim: claim("no value".to_owned()), evidence: format!(": {reason}") };
    };
    let what = match known.len() {
        count if count <= NAMED => known.iter().map(|(.., text)| text.as_str()).collect::<Vec<_>>().join(", "),
        _ => format!("from {} to {}", least.2, most.2),
    };
    let missing = match values.len() - known.len() {
        0 => String::new(),
        missing => format!("; no value under {}", words::counted(missing, "condition")),
    };
    let (fewest, largest) = known.iter().fold((usize::MAX, 0), |(low, high), one| (low.min(one.1), high.max(one.1)));
    let n = if fewest == largest { format!("n = {largest}") } else { format!("n = {fewest} to {largest}") };
    let evidence = match values {
        [one] => format!("({}, {n})", interval(input, &one.estimate)),
        _ => format!("({n} under each{missing})"),
    };
    Sentence { outcome: None, claim: claim(what), evidence }
}

/// The interval of a value in words, or why there is none.
fn interval(input: &Input, estimate: &Estimate) -> String {
    let show = |value: f64| show_value(input, value, &estimate.measure);
    match &estimate.interval {
        Ok(interval) => {
            format!("{} interval {} to {}", confidence(1.0 - CONFIDENCE), show(interval.low), show(interval.high))
        }
        Err(reason) => format!("no interval: {reason}"),
    }
}

impl Analysis {
    /// True if the study compares nothing, and a measure of `[decide]` has no value under a condition, nor a bound where it
    /// is the capacity.
    pub(crate) fn lacks_a_value(&self) -> bool {
        let is_known = |value: &DescribedValue| match &self.capacity {
            Some(report) if value.estimate.measure == report.measure => {
                report.cells.iter().any(|cell| cell.condition == value.condition && cell.is_known())
            }
            _ => value.estimate.summary.is_ok(),
        };
        self.described.iter().any(|value| value.decides && !is_known(value))
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{input, start};
    use crate::{Conclusion, Input, analyse};
    use plimsoll_model::factor::{Assignment, Level};
    use plimsoll_model::start::Validity;

    /// One system under so many conditions, in turn; its durations grow with the trial's number.
    fn one_system(repeats: u32, conditions: usize) -> Input {
        let mut input = input(repeats, |number| start(1.0 + f64::from(number) / 100.0));
        input.plan.variants = vec![Assignment::default()];
        let users = |users: usize| Assignment(vec![("users".to_owned(), Level::Integer(users as i64))]);
        if conditions > 1 {
            input.plan.conditions = (1..=conditions).map(users).collect();
            input.plan.lengths = vec![input.plan.lengths[0]; conditions];
        }
        for (index, place) in input.plan.starts.iter_mut().enumerate() {
            (place.variants, place.condition) = (vec![0], index % conditions);
            (place.block, place.repeat) = (index as u32 + 1, (index / conditions) as u32 + 1);
        }
        for (result, place) in input.starts.iter_mut().zip(&input.plan.starts) {
            *result = crate::testing::placed(result.clone(), place);
        }
        input
    }

    #[test]
    fn the_values_of_one_system_have_intervals_and_no_verdict() {
        let analysis = analyse(&one_system(3, 1));
        assert!(analysis.comparisons.is_empty() && analysis.floors.is_empty() && analysis.sensitivities.is_empty());
        assert_eq!((analysis.verdicts().count(), analysis.conclusion()), (0, Conclusion::Fine));
        let names: Vec<String> = analysis.described.iter().map(|one| one.estimate.measure.to_string()).collect();
        assert_eq!(names[..3], ["iteration_duration.p95", "iterations.rate", "iteration_duration.med"]);
        assert!(
            names.contains(&"iteration_duration.p99".to_owned()) && !names.contains(&"cpu.avg".to_owned()),
            "{names:?}"
        );
        let value = &analysis.described[0];
        let (summary, interval) =
            (value.estimate.summary.as_ref().expect("values"), value.estimate.interval.as_ref().expect("six trials"));
        assert_eq!((value.condition, value.named, value.decides, summary.n), (0, true, true, 6));
        assert!(interval.low < summary.centre && summary.centre < interval.high, "{value:?}");
        let said = analysis.answer.paragraph();
        assert!(said.starts_with("Iterations, p95: 98.") && said.contains("ms (95 % interval "), "{said}");
        assert!(said.ends_with(" ms, n = 6)."), "{said}");
    }

    #[test]
    fn few_conditions_are_named_and_many_are_told_by_their_ends() {
        let said = analyse(&one_system(3, 2)).answer.paragraph();
        assert!(said.contains(" ms at 1 user, ") && said.ends_with(" ms at 2 users (n = 3 under each)."), "{said}");
        let said = analyse(&one_system(6, 4)).answer.paragraph();
        assert!(
            said.contains(": from ") && said.contains(" ms at 1 user to ") && said.contains("at 4 users"),
            "{said}"
        );
    }

    #[test]
    fn a_condition_without_a_value_leaves_the_answer_open() {
        let mut input = one_system(3, 2);
        for result in input.starts.iter_mut().filter(|result| result.summary.start.condition == 1) {
            result.summary.validity = Validity::Void(vec!["the generator was the limit".to_owned()]);
        }
        let analysis = analyse(&input);
        assert_eq!(analysis.conclusion(), Conclusion::Open);
        let said = analysis.answer.paragraph();
        assert!(said.contains("no value under 1 condition"), "{said}");
        input.starts.clear();
        let said = analyse(&input).answer.paragraph();
        assert_eq!(said, "Iterations, p95: no value: no trial counts.");
    }

    #[test]
    fn where_variants_are_compared_nothing_is_described() {
        assert_eq!(analyse(&input(3, |_| start(1.0))).described, []);
    }
}
