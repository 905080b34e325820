//! The study's nouns as they stand in sentences.

use crate::quantity::grouped;
use plimsoll_model::factor::{Assignment, Level};
use plimsoll_model::measure::{Measure, Series, Statistic};
use plimsoll_model::trial::{Plan, Validity};

/// A condition: `10 users`, or `10 users, connect = per user`; `all trials` without conditions.
#[must_use]
pub fn condition(assignment: &Assignment) -> String {
    if assignment.0.is_empty() {
        return "all trials".to_owned();
    }
    let levels: Vec<String> = assignment.0.iter().map(|(factor, level)| of_factor(factor, level)).collect();
    levels.join(", ")
}

/// The conditions with these indices: all by name if they are few, otherwise how many of all.
#[must_use]
pub fn conditions(plan: &Plan, indices: &[usize]) -> String {
    let all = plan.conditions.len();
    let names: Vec<String> = indices.iter().map(|index| in_a_sentence(&plan.conditions[*index])).collect();
    match names.as_slice() {
        _ if all == 1 => "in all trials".to_owned(),
        names if names.len() == all => format!("under all {all} conditions"),
        [one] => format!("at {one}"),
        [one, other] => format!("at {one} and at {other}"),
        [one, two, three] => format!("at {one}, at {two} and at {three}"),
        names => format!("under {} of {all} conditions", names.len()),
    }
}

/// A condition without commas, which a sentence needs for itself: `10 users (connect = per user)`.
fn in_a_sentence(assignment: &Assignment) -> String {
    match condition(assignment).split_once(", ") {
        Some((first, rest)) => format!("{first} ({rest})"),
        None => condition(assignment),
    }
}

/// `1 trial`, `2 trials`.
#[must_use]
pub fn counted(count: usize, noun: &str) -> String {
    format!("{} {noun}{}", grouped(count as f64), if count == 1 { "" } else { "s" })
}

/// One level of a factor: `10 users` where the factor's name is a plural, `size = 10` elsewhere.
#[must_use]
pub fn of_factor(factor: &str, level: &Level) -> String {
    match level {
        Level::Integer(1) if factor.ends_with('s') => format!("1 {}", &factor[..factor.len() - 1]),
        Level::Integer(number) if factor.ends_with('s') => format!("{} {factor}", grouped(*number as f64)),
        _ => format!("{factor} = {level}"),
    }
}

/// A measure: `p95 of iteration_duration`, `iterations per second`.
#[must_use]
pub fn measure(measure: &Measure) -> String {
    let series = &measure.series;
    match measure.statistic {
        Statistic::Avg => format!("mean {series}"),
        Statistic::Min => format!("least {series}"),
        Statistic::Med => format!("median {series}"),
        Statistic::Max => format!("largest {series}"),
        Statistic::Percentile(p) => format!("p{p} of {series}"),
        Statistic::Count => format!("{series} in all"),
        Statistic::Rate => format!("{series} per second"),
        Statistic::Ratio => format!("share of {series}"),
    }
}

/// How a variant differs from the baseline, around the size of the change.
pub(crate) fn verb(measure: &Measure, more: bool) -> (String, String) {
    let (verb, more_word, less_word) = match measure.series {
        Series::Iterations | Series::Requests => ("completes", "more", "fewer"),
        Series::DataReceived | Series::DataSent => ("moves", "more", "less"),
        Series::Errors => ("has", "more", "fewer"),
        Series::Cpu(_) | Series::Memory(_) => ("uses", "more", "less"),
        _ => return ("takes".to_owned(), if more { "longer" } else { "less time" }.to_owned()),
    };
    let noun = match &measure.series {
        Series::Cpu(_) => "CPU".to_owned(),
        Series::Memory(_) => "memory".to_owned(),
        Series::DataReceived | Series::DataSent => "data".to_owned(),
        series => series.to_string(),
    };
    let rate = if measure.statistic == Statistic::Rate { " per second" } else { "" };
    (verb.to_owned(), format!("{} {noun}{rate}", if more { more_word } else { less_word }))
}

/// Whether a trial counts, in a word.
#[must_use]
pub fn validity(validity: &Validity) -> &'static str {
    match validity {
        Validity::Valid => "valid",
        Validity::Void(_) => "void",
        Validity::Failed(_) => "failed",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_read_as_people_say_them() {
        let users = |count| ("users".to_owned(), Level::Integer(count));
        let connect = ("connect".to_owned(), Level::Text("per user".to_owned()));
        assert_eq!(condition(&Assignment(vec![users(1000), connect])), "1,000 users, connect = per user");
        assert_eq!(condition(&Assignment(vec![users(1)])), "1 user");
        assert_eq!(condition(&Assignment(vec![])), "all trials");
    }

    #[test]
    fn a_difference_has_its_own_verb() {
        let verb_of = |text: &str, more| verb(&text.parse().expect("a measure"), more);
        assert_eq!(verb_of("iteration_duration.p95", true), ("takes".to_owned(), "longer".to_owned()));
        assert_eq!(
            verb_of("iterations.rate", false),
            ("completes".to_owned(), "fewer iterations per second".to_owned())
        );
        assert_eq!(verb_of("cpu.avg", true), ("uses".to_owned(), "more CPU".to_owned()));
    }
}
