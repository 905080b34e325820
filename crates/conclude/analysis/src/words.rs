//! Names of conditions, levels, measures and counts as they appear in sentences.

use crate::quantity::grouped;
use plimsoll_model::factor::{Assignment, Level};
use plimsoll_model::measure::{Measure, Series, Statistic};
use plimsoll_model::start::{Plan, Validity};
use plimsoll_model::study::StudyFacts;
use plimsoll_model::words::and_list;

/// A condition: `10 users`, or `10 users, connect = per user`; `all trials` without conditions.
#[must_use]
pub fn condition(assignment: &Assignment) -> String {
    if assignment.0.is_empty() {
        return "all trials".to_owned();
    }
    let levels: Vec<String> = assignment.0.iter().map(|(factor, level)| of_factor(factor, level)).collect();
    levels.join(", ")
}

/// The conditions with these indices, after a space: by a level that they have in common and no
/// other condition has, by name if they are few, otherwise as a number out of all. Empty where
/// there is only one condition: a sentence covers all trials then.
#[must_use]
pub fn conditions(plan: &Plan, indices: &[usize]) -> String {
    if plan.conditions.len() == 1 { String::new() } else { format!(" {}", among_several(plan, indices)) }
}

fn among_several(plan: &Plan, indices: &[usize]) -> String {
    let all = plan.conditions.len();
    if indices.len() == all {
        return if all == 2 { "under both conditions".to_owned() } else { format!("under all {all} conditions") };
    }
    let names = levels_in_common(plan, indices)
        .unwrap_or_else(|| indices.iter().map(|index| in_a_sentence(&plan.conditions[*index])).collect());
    match names.as_slice() {
        [one] => format!("at {one}"),
        [one, other] => format!("at {one} and at {other}"),
        names if names.len() < indices.len() => format!("at {}", names.join(", at ")),
        _ => format!("under {} of {all} conditions", indices.len()),
    }
}

/// The levels of one factor that select exactly these conditions.
fn levels_in_common(plan: &Plan, indices: &[usize]) -> Option<Vec<String>> {
    let factors = &plan.conditions.first()?.0;
    factors.iter().filter(|_| factors.len() > 1).find_map(|(factor, _)| {
        let mut levels: Vec<&Level> = Vec::new();
        for level in indices.iter().filter_map(|index| plan.conditions[*index].get(factor)) {
            if !levels.contains(&level) {
                levels.push(level);
            }
        }
        let picked = plan.conditions.iter().filter(|one| one.get(factor).is_some_and(|level| levels.contains(&level)));
        (picked.count() == indices.len()).then(|| levels.into_iter().map(|level| of_factor(factor, level)).collect())
    })
}

/// A condition without commas, which the sentence itself uses: `10 users (connect = per user)`.
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

/// The study's text with its `{placeholders}` filled in by the levels of factors and the names of
/// systems.
#[must_use]
pub fn filled(text: &str, facts: &StudyFacts) -> String {
    let mut filled = text.to_owned();
    for factor in &facts.factors {
        filled = filled.replace(&format!("{{{}}}", factor.name), &levels(&factor.levels));
    }
    for system in &facts.systems {
        filled = filled.replace(&format!("{{{system}.address}}"), &format!("the system {system}"));
    }
    filled
}

/// `10, 100 and 1,000` for numbers; words are listed side by side.
fn levels(levels: &[Level]) -> String {
    let shown: Vec<String> = levels
        .iter()
        .map(|level| match level {
            Level::Integer(number) => grouped(*number as f64),
            level => level.to_string(),
        })
        .collect();
    let in_words = levels.iter().any(|level| matches!(level, Level::Text(_)));
    if in_words { shown.join(", ") } else { and_list(&shown) }
}

/// A measure: `p95 of iteration_duration`, `iterations per second`.
#[must_use]
pub fn measure(measure: &Measure) -> String {
    let series = match &measure.series {
        Series::Cpu(None) => "CPU".to_owned(),
        Series::Cpu(Some(system)) => format!("CPU of {system}"),
        Series::Memory(Some(system)) => format!("memory of {system}"),
        other => other.to_string(),
    };
    match measure.statistic {
        Statistic::Max if matches!(measure.series, Series::Cpu(_) | Series::Memory(_)) => format!("peak {series}"),
        Statistic::Avg => format!("mean {series}"),
        Statistic::Min => format!("least {series}"),
        Statistic::Med => format!("median {series}"),
        Statistic::Max => format!("largest {series}"),
        Statistic::Percentile(p) => format!("p{p} of {series}"),
        Statistic::Count => format!("{series} in all"),
        Statistic::Rate if measure.series == Series::NewOrders => "new orders per minute (NOTPM)".to_owned(),
        Statistic::Rate => format!("{series} per second"),
        Statistic::Ratio => match &measure.series {
            Series::FailedIterations => "share of failed iterations".to_owned(),
            Series::Checks(_) => format!("share of {series} that held"),
            Series::Custom(..) => format!("share of {series} that is true"),
            _ => format!("share of {series}"),
        },
    }
}

/// The words around the size of a change: how a variant differs from the baseline.
pub(crate) fn verb(measure: &Measure, more: bool) -> (String, String) {
    let (verb, more_word, less_word) = match measure.series {
        Series::Iterations | Series::Requests => ("completes", "more", "fewer"),
        Series::Subrequests => ("sends", "more", "fewer"),
        Series::NewOrders => ("commits", "more", "fewer"),
        Series::DataReceived | Series::DataSent => ("moves", "more", "less"),
        Series::Errors | Series::FailedIterations => ("has", "more", "fewer"),
        Series::Cpu(_) | Series::Memory(_) => ("uses", "more", "less"),
        Series::Checks(_) => ("passes", "more", "fewer"),
        Series::Custom(..) => ("has", "more", "less"),
        _ => return ("takes".to_owned(), if more { "longer" } else { "less time" }.to_owned()),
    };
    let noun = match &measure.series {
        Series::Cpu(_) => "CPU".to_owned(),
        Series::Memory(_) => "memory".to_owned(),
        Series::DataReceived | Series::DataSent => "data".to_owned(),
        Series::NewOrders => "new orders".to_owned(),
        Series::FailedIterations => "failed iterations".to_owned(),
        series => series.to_string(),
    };
    let rate = match (measure.statistic, &measure.series) {
        (Statistic::Rate, Series::NewOrders) => " per minute",
        (Statistic::Rate, _) => " per second",
        _ => "",
    };
    (verb.to_owned(), format!("{} {noun}{rate}", if more { more_word } else { less_word }))
}

/// The words around a multiple: `takes` … times as `long`.
pub(crate) fn verb_of_multiple(measure: &Measure) -> (String, String) {
    let (verb, what) = verb(measure, true);
    let what = match (what.strip_prefix("more "), &measure.series) {
        (None, _) => "long".to_owned(),
        (
            Some(noun),
            Series::Iterations
            | Series::Requests
            | Series::Subrequests
            | Series::NewOrders
            | Series::Errors
            | Series::FailedIterations,
        ) => {
            format!("many {noun}")
        }
        (Some(noun), _) => format!("much {noun}"),
    };
    (verb, what)
}

/// The validity of a trial in a word.
#[must_use]
pub fn validity(validity: &Validity) -> &'static str {
    match validity {
        Validity::Valid => "valid",
        Validity::Void(_) => "void",
        Validity::Failed(_) => "failed",
    }
}

/// The validity of a trial as a verb: `is void`, `failed`.
pub(crate) fn validity_verb(validity: &Validity) -> &'static str {
    match validity {
        Validity::Valid => "counts",
        Validity::Void(_) => "is void",
        Validity::Failed(_) => "failed",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_model::factor::{Factor, Role};

    #[test]
    fn conditions_read_as_people_say_them() {
        let users = |count| ("users".to_owned(), Level::Integer(count));
        let connect = ("connect".to_owned(), Level::Text("per user".to_owned()));
        assert_eq!(condition(&Assignment(vec![users(1000), connect])), "1,000 users, connect = per user");
        assert_eq!(condition(&Assignment(vec![users(1)])), "1 user");
        assert_eq!(condition(&Assignment(vec![])), "all trials");
    }

    #[test]
    fn conditions_are_named_by_what_they_have_in_common() {
        let condition = |users, connect: &str| {
            let connect = ("connect".to_owned(), Level::Text(connect.to_owned()));
            Assignment(vec![("users".to_owned(), Level::Integer(users)), connect])
        };
        let conditions_of = |conditions| Plan {
            design: plimsoll_model::start::Design::Trials,
            seed: 1,
            repeats: 1,
            variants: Vec::new(),
            conditions,
            starts: Vec::new(),
            lengths: Vec::new(),
            with_duplicate: false,
            given_time: None,
            spare_blocks: 0,
            looks: Vec::new(),
        };
        let grid = [10, 100, 1000].map(|users| [condition(users, "kept"), condition(users, "new")]).concat();
        let plan = conditions_of(grid);
        for (indices, expected) in [
            (&[0, 1, 2, 3, 4, 5][..], "under all 6 conditions"),
            (&[4, 5], "at 1,000 users"),
            (&[0, 2, 4], "at connect = kept"),
            (&[0, 1, 4, 5], "at 10 users and at 1,000 users"),
            (&[0, 3], "at 10 users (connect = kept) and at 100 users (connect = new)"),
            (&[0, 3, 5], "under 3 of 6 conditions"),
        ] {
            assert_eq!(conditions(&plan, indices), format!(" {expected}"));
        }
        assert_eq!(conditions(&conditions_of(vec![Assignment::default()]), &[0]), "");
    }

    #[test]
    fn placeholders_are_told_as_what_stands_in_them() {
        let mut facts = crate::testing::input(1, |_| crate::testing::start(1.0)).facts;
        let factor = |name: &str, levels: Vec<Level>| Factor { name: name.to_owned(), levels, role: Role::Condition };
        facts.factors = vec![
            factor("users", [10, 100, 1000].map(Level::Integer).into()),
            factor("connect", ["per user", "every iteration"].map(|level| Level::Text(level.to_owned())).into()),
        ];
        for (text, expected) in [
            ("closed loop, {users} users", "closed loop, 10, 100 and 1,000 users"),
            ("connections: {connect}", "connections: per user, every iteration"),
            ("HTTP to {web.address}, {unknown}", "HTTP to the system web, {unknown}"),
        ] {
            assert_eq!(filled(text, &facts), expected);
        }
    }

    #[test]
    fn a_multiple_has_its_own_words() {
        let words_of = |text: &str| verb_of_multiple(&text.parse().expect("a measure")).1;
        assert_eq!(words_of("iteration_duration.p95"), "long");
        assert_eq!(words_of("iterations.rate"), "many iterations per second");
        assert_eq!(words_of("memory.max"), "much memory");
    }

    #[test]
    fn a_difference_has_its_own_verb() {
        let verb_of = |text: &str, more| verb(&text.parse().expect("a measure"), more);
        assert_eq!(verb_of("iteration_duration.p95", true), ("takes".to_owned(), "longer".to_owned()));
        assert_eq!(
            verb_of("iterations.rate", false),
            ("completes".to_owned(), "fewer iterations per second".to_owned())
        );
        assert_eq!(verb_of("new_orders.rate", true), ("commits".to_owned(), "more new orders per minute".to_owned()));
        assert_eq!(verb_of("cpu.avg", true), ("uses".to_owned(), "more CPU".to_owned()));
    }
}
