//! The answer to the study's question: a sentence for each measure that decides and each variant.

use crate::compare::{Comparison, Ratio};
use crate::estimate::Interval;
use crate::quantity::{MULTIPLE, change, changes, multiple, percent, size_of_change};
use crate::verdict::Outcome;
use crate::{Input, words};
use plimsoll_model::measure::Measure;

/// What the study says to its question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// By the headline measure: for each variant a sentence for each outcome, the worst first.
    pub headline: Vec<String>,
    /// The same by the other measures that decide.
    pub further: Vec<String>,
}

impl Answer {
    /// The headline as a paragraph.
    #[must_use]
    pub fn paragraph(&self) -> String {
        self.headline.join(" ")
    }
}

pub(crate) fn answer(input: &Input, comparisons: &[Comparison]) -> Answer {
    let headline = crate::headline(&input.facts);
    let mut further: Vec<&Measure> = input.facts.decide.iter().map(|decision| &decision.measure).collect();
    further.retain(|measure| **measure != headline.measure);
    let sentences = |measure: &Measure| -> Vec<String> {
        (1..input.plan.variants.len()).flat_map(|variant| sentences_on(input, comparisons, variant, measure)).collect()
    };
    let mut first = sentences(&headline.measure);
    if first.is_empty() {
        first.push("There is one variant only, so nothing is compared.".to_owned());
    }
    Answer { headline: first, further: further.into_iter().flat_map(sentences).collect() }
}

fn sentences_on(input: &Input, comparisons: &[Comparison], variant: usize, measure: &Measure) -> Vec<String> {
    let of_variant: Vec<&Comparison> =
        comparisons.iter().filter(|one| one.variant == variant && &one.measure == measure).collect();
    let name = input.plan.variants[variant].label();
    let baseline = input.plan.variants[0].label();
    let mut sentences = Vec::new();
    for outcome in [Outcome::Worse, Outcome::Better, Outcome::Equivalent, Outcome::Inconclusive, Outcome::Void] {
        let group: Vec<&Comparison> = of_variant
            .iter()
            .copied()
            .filter(|one| one.verdict.as_ref().is_some_and(|verdict| verdict.outcome == outcome))
            .collect();
        if !group.is_empty() {
            let clause = clause(input, outcome, &group, (&name, &baseline));
            let start = if sentences.is_empty() {
                format!("By {}, ", words::measure(measure, &input.facts.protocol))
            } else {
                String::new()
            };
            sentences.push(format!("{}.", capitalised(&(start + &clause))));
        }
    }
    sentences
}

/// With a capital at the start, unless that is a name of the study's.
fn capitalised(sentence: &str) -> String {
    let ours = [("it is ", "It is "), ("nothing ", "Nothing ")];
    ours.into_iter()
        .find_map(|(small, large)| Some(format!("{large}{}", sentence.strip_prefix(small)?)))
        .unwrap_or_else(|| sentence.to_owned())
}

/// What can be said of the conditions that share an outcome.
fn clause(input: &Input, outcome: Outcome, group: &[&Comparison], (name, baseline): (&str, &str)) -> String {
    let indices: Vec<usize> = group.iter().map(|one| one.condition).collect();
    let place = words::conditions(&input.plan, &indices);
    let ratios: Vec<&Ratio> = group.iter().filter_map(|one| one.ratio.as_ref().ok()).collect();
    let verdict = group[0].verdict.as_ref().expect("a group is made of verdicts");
    match outcome {
        Outcome::Worse | Outcome::Better => {
            let more = ratios[0].value > 1.0;
            let (difference, evidence) = (difference(&group[0].measure, more, &ratios), evidence(&ratios));
            format!("{name} {difference} {baseline} {place} ({evidence})")
        }
        Outcome::Equivalent => {
            let margin = percent(verdict.margin);
            format!("{name} and {baseline} are equal within ±{margin} {place} ({})", evidence(&ratios))
        }
        Outcome::Inconclusive if ratios.iter().all(|ratio| ratio.interval.is_err()) => {
            format!("{name} against {baseline} is {} {place}, without a verdict: {}", sizes(&ratios), verdict.reason)
        }
        Outcome::Inconclusive => {
            format!("it is undecided {place} whether {name} and {baseline} differ ({})", evidence(&ratios))
        }
        Outcome::Void => format!("nothing can be said of {name} {place}: {}", verdict.reason),
    }
}

/// `takes 3.1 % to 9.6 % longer than`, `takes 18 to 116 times as long as`.
fn difference(measure: &Measure, more: bool, ratios: &[&Ratio]) -> String {
    if ratios.iter().any(|ratio| ratio.value >= MULTIPLE) {
        let (verb, what) = words::verb_of_multiple(measure);
        return format!("{verb} {} times as {what} as", between(ratios, multiple));
    }
    let (verb, what) = words::verb(measure, more);
    format!("{verb} {} {what} than", between(ratios, size_of_change))
}

/// The smallest and the largest change, in one unit.
fn sizes(ratios: &[&Ratio]) -> String {
    if ratios.iter().any(|ratio| ratio.value >= MULTIPLE) {
        return between(ratios, |ratio| format!("×{}", multiple(ratio)));
    }
    between(ratios, change)
}

/// The smallest and the largest change, or the only one.
fn between(ratios: &[&Ratio], show: fn(f64) -> String) -> String {
    let mut values: Vec<f64> = ratios.iter().map(|ratio| ratio.value).collect();
    values.sort_by(|one, other| one.ln().abs().total_cmp(&other.ln().abs()));
    let (least, most) = (show(values[0]), show(values[values.len() - 1]));
    if least == most { least } else { format!("{least} to {most}") }
}

/// The interval of one ratio, or how far the intervals of several reach together.
fn evidence(ratios: &[&Ratio]) -> String {
    let intervals: Vec<Interval> = ratios.iter().filter_map(|ratio| ratio.interval.clone().ok()).collect();
    let low = intervals.iter().map(|interval| interval.low).fold(f64::INFINITY, f64::min);
    let high = intervals.iter().map(|interval| interval.high).fold(f64::NEG_INFINITY, f64::max);
    let (least, most) =
        ratios.iter().fold((usize::MAX, 0), |(least, most), ratio| (least.min(ratio.n), most.max(ratio.n)));
    let n = if least == most { format!("n = {most}") } else { format!("n = {least} to {most}") };
    let [low, high] = changes(low, high);
    let reach = format!("{low} to {high}");
    match ratios {
        [_] => format!("95 % interval {reach}, {n}"),
        _ => format!("95 % intervals within {reach}, {n}"),
    }
}

#[cfg(test)]
mod tests {
    use crate::analyse;
    use crate::testing::{input, trial};

    #[test]
    fn the_answer_names_the_difference_with_its_evidence() {
        let input = input(4, |number| {
            let noise = 1.0 + f64::from(number % 3) / 100.0;
            trial(if number % 2 == 1 { noise } else { 1.2 * noise })
        });
        let answer = analyse(&input).answer.paragraph();
        assert!(answer.starts_with("By p95 of iteration_duration, new takes "), "{answer}");
        assert!(answer.contains("longer than old in all trials (95 % interval +"), "{answer}");
        assert!(answer.contains("n = 4)"), "{answer}");
    }

    #[test]
    fn a_large_difference_reads_as_a_multiple() {
        let input = input(4, |number| {
            let noise = 1.0 + f64::from(number % 3) / 100.0;
            trial(if number % 2 == 1 { noise } else { 20.0 * noise })
        });
        let answer = analyse(&input).answer.paragraph();
        assert!(answer.contains(" times as long as old in all trials (95 % interval ×"), "{answer}");
        assert!(answer.starts_with("By p95 of iteration_duration, new takes "), "{answer}");
    }

    #[test]
    fn two_repeats_get_no_verdict() {
        let answer = analyse(&input(2, |number| trial(1.0 + f64::from(number) / 10.0))).answer.paragraph();
        assert!(answer.contains("without a verdict: 2 repeats give a range"), "{answer}");
    }
}
