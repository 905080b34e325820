//! Names of conditions, levels, measures and counts as they appear in sentences.

use crate::quantity::grouped;
use plimsoll_model::factor::{Assignment, Level};
use plimsoll_model::measure::{Measure, Series, Statistic};
use plimsoll_model::plan::Plan;
use plimsoll_model::start::Validity;
use plimsoll_model::study::StudyFacts;
use plimsoll_model::words::and_list;
use std::time::Duration;

/// A condition: `10 users`, or `10 users, connect = per user`; `all trials` without conditions.
#[must_use]
pub fn condition(assignment: &Assignment) -> String {
    if assignment.0.is_empty() {
        return "all trials".to_owned();
    }
    let levels: Vec<String> = assignment.0.iter().map(|(factor, level)| of_factor(factor, level)).collect();
    levels.join(", ")
}

/// The condition with this index: `10 users`. A study without conditions has one, which is `all trials`, or `all starts`
/// where variants take turns.
#[must_use]
pub fn condition_in(plan: &Plan, index: usize) -> String {
    let assignment = &plan.conditions[index];
    if assignment.0.is_empty() { format!("all {}s", unit(plan)) } else { condition(assignment) }
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
pub(crate) fn in_a_sentence(assignment: &Assignment) -> String {
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

/// The repeats under each condition, from the fewest to the most: `9 starts`, or `5 to 9 starts` where they differ.
#[must_use]
pub fn repeats((fewest, most): (usize, usize), noun: &str) -> String {
    let from = if fewest < most { format!("{fewest} to ") } else { String::new() };
    format!("{from}{}", counted(most, noun))
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

/// A measure as people say it: `item, median`, `requests, p95`, `iterations per second`.
#[must_use]
pub fn measure(measure: &Measure) -> String {
    let series = series(&measure.series);
    let amount = matches!(measure.series, Series::Cpu(_) | Series::Memory(_));
    let longest = if measure.is_timed() { ["shortest", "longest"] } else { ["least", "largest"] };
    match measure.statistic {
        Statistic::Max if amount => format!("peak {series}"),
        Statistic::Avg if amount => format!("mean {series}"),
        Statistic::Avg => format!("{series}, mean"),
        Statistic::Min => format!("{series}, {}", longest[0]),
        Statistic::Med => format!("{series}, median"),
        Statistic::Max => format!("{series}, {}", longest[1]),
        Statistic::Percentile(50.0) => format!("{series}, median"),
        Statistic::Percentile(p) if matches!(measure.series, Series::Exposed(_)) => {
            format!("{series}, p{p} by buckets")
        }
        Statistic::Percentile(p) => format!("{series}, p{p}"),
        Statistic::Count if measure.series == Series::Capacity => "capacity, users".to_owned(),
        Statistic::Rate if measure.series == Series::Capacity => "capacity, arrivals per second".to_owned(),
        Statistic::Count => format!("{series} in all"),
        Statistic::Rate if measure.series == Series::NewOrders => "new orders per minute (NOTPM)".to_owned(),
        Statistic::Rate => format!("{series} per second"),
        Statistic::Ratio => match &measure.series {
            Series::Checks(None) => "share of checks that held".to_owned(),
            Series::Checks(Some(name)) => format!("check {name}, share that held"),
            Series::Custom(..) => format!("{series}, share that is true"),
            _ => format!("share of {series}"),
        },
        Statistic::Total => series,
    }
}

/// A measure at the start of a sentence: with a capital letter, unless it starts with a name of the study's.
#[must_use]
pub fn measure_at_start(of: &Measure) -> String {
    at_start(&of.series, measure(of))
}

/// A series as a title: with a capital letter, unless it starts with a name of the study's.
#[must_use]
pub fn series_at_start(of: &Series) -> String {
    at_start(of, series(of))
}

fn at_start(series: &Series, text: String) -> String {
    let is_name = matches!(
        series,
        Series::RequestDuration(Some(_))
            | Series::ResponseTime(Some(_))
            | Series::FirstByte(Some(_))
            | Series::PartDuration(_, Some(_))
            | Series::Custom(..)
            | Series::Exposed(_)
    );
    let mut letters = text.chars();
    match letters.next() {
        Some(first) if !is_name => first.to_uppercase().chain(letters).collect(),
        _ => text,
    }
}

/// A series as people say it: `item`, `requests`, `write, sync`, `CPU of web`.
#[must_use]
pub fn series(series: &Series) -> String {
    let of = |what: &str, name: &Option<String>| match name {
        Some(name) => format!("{name}, {what}"),
        None => what.to_owned(),
    };
    match series {
        Series::IterationDuration | Series::Iterations => "iterations".to_owned(),
        Series::RequestDuration(None) | Series::Requests => "requests".to_owned(),
        Series::RequestDuration(Some(name)) | Series::Custom(_, name) | Series::Exposed(name) => name.clone(),
        Series::ResponseTime(name) => of("response time", name),
        Series::FirstByte(name) => of("first byte", name),
        Series::ConnectDuration => "connecting".to_owned(),
        Series::PartDuration(part, name) => of(part.name(), name),
        Series::Subrequests => "subrequests".to_owned(),
        Series::Deliveries => "deliveries".to_owned(),
        Series::LostDeliveries => "lost deliveries".to_owned(),
        Series::Capacity => "capacity".to_owned(),
        Series::ElapsedTime => "elapsed time".to_owned(),
        Series::NewOrders => "new orders".to_owned(),
        Series::DataReceived => "data received".to_owned(),
        Series::DataSent => "data sent".to_owned(),
        Series::Errors => "errors".to_owned(),
        Series::FailedIterations => "failed iterations".to_owned(),
        Series::Checks(None) => "checks".to_owned(),
        Series::Checks(Some(name)) => format!("check {name}"),
        Series::Cpu(None) => "CPU".to_owned(),
        Series::Cpu(Some(system)) => format!("CPU of {system}"),
        Series::Memory(None) => "memory".to_owned(),
        Series::Memory(Some(system)) => format!("memory of {system}"),
    }
}

/// What a plan replicates, in a word: a `trial`, or where a start has several loads a `start`.
#[must_use]
pub fn unit(plan: &Plan) -> &'static str {
    if plan.design.is_trials() && !plan.searches() { "trial" } else { "start" }
}

/// What a variant did on one start, in a word: a `trial`, a `measurement` of its capacity, or where variants take turns, its
/// `load` there.
#[must_use]
pub fn load_unit(plan: &Plan) -> &'static str {
    match plan.design.is_trials() {
        _ if plan.searches() => "measurement",
        true => "trial",
        false => "load",
    }
}

/// A length of time as people say it: `45 s`, `12 min`, `1 h 20 min`.
#[must_use]
pub fn span(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    let minutes = (seconds / 60.0).round() as u64;
    match seconds {
        seconds if seconds < 99.5 => format!("{seconds:.0} s"),
        _ if minutes < 100 => format!("{minutes} min"),
        _ if minutes < 600 && !minutes.is_multiple_of(60) => format!("{} h {} min", minutes / 60, minutes % 60),
        _ => format!("{} h", grouped((seconds / 3600.0).round())),
    }
}

/// The words around the size of a change: how a variant differs from the baseline.
pub(crate) fn verb(measure: &Measure, more: bool) -> (String, String) {
    let (verb, more_word, less_word) = match measure.series {
        Series::Iterations | Series::Requests => ("completes", "more", "fewer"),
        Series::Subrequests => ("sends", "more", "fewer"),
        Series::Deliveries => ("delivers", "more", "fewer"),
        Series::NewOrders => ("commits", "more", "fewer"),
        Series::Capacity => ("carries", "more", "fewer"),
        Series::DataReceived | Series::DataSent => ("moves", "more", "less"),
        Series::Errors | Series::FailedIterations | Series::LostDeliveries => ("has", "more", "fewer"),
        Series::Cpu(_) | Series::Memory(_) => ("uses", "more", "less"),
        Series::Checks(_) => ("passes", "more", "fewer"),
        Series::Custom(..) => ("has", "more", "less"),
        Series::Exposed(_) if !measure.is_timed() => ("has", "more", "less"),
        _ => return ("takes".to_owned(), if more { "longer" } else { "less time" }.to_owned()),
    };
    let noun = match &measure.series {
        Series::Cpu(_) => "CPU".to_owned(),
        Series::Memory(_) => "memory".to_owned(),
        Series::DataReceived | Series::DataSent => "data".to_owned(),
        Series::NewOrders => "new orders".to_owned(),
        Series::FailedIterations => "failed iterations".to_owned(),
        Series::Deliveries => "messages".to_owned(),
        Series::Capacity if measure.statistic == Statistic::Rate => "arrivals".to_owned(),
        Series::Capacity => "users".to_owned(),
        of => series(of),
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
            | Series::Deliveries
            | Series::LostDeliveries
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
            searches: Vec::new(),
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
    fn measures_read_as_people_say_them() {
        for (text, expected) in [
            ("request_duration:item.p50", "item, median"),
            ("request_duration:item.med", "item, median"),
            ("request_duration.p95", "Requests, p95"),
            ("iteration_duration.med", "Iterations, median"),
            ("iteration_duration.max", "Iterations, longest"),
            ("response_time:item.p99.9", "item, response time, p99.9"),
            ("sync_duration:write.med", "write, sync, median"),
            ("iterations.rate", "Iterations per second"),
            ("new_orders.rate", "New orders per minute (NOTPM)"),
            ("data_received.count", "Data received in all"),
            ("errors.ratio", "Share of errors"),
            ("failed_iterations.ratio", "Share of failed iterations"),
            ("checks:fine.ratio", "Check fine, share that held"),
            ("trend:waiting.p95", "waiting, p95"),
            ("gauge:queue.max", "queue, largest"),
            ("cpu:web.avg", "Mean CPU of web"),
            ("memory.max", "Peak memory"),
        ] {
            let of: Measure = text.parse().expect(text);
            assert_eq!(measure_at_start(&of), expected);
            assert!(measure(&of).eq_ignore_ascii_case(expected), "{text}");
        }
    }

    #[test]
    fn lengths_of_time_have_two_units_at_most() {
        for (seconds, expected) in [
            (0, "0 s"),
            (99, "99 s"),
            (100, "2 min"),
            (3_600, "60 min"),
            (4_800, "80 min"),
            (6_600, "1 h 50 min"),
            (7_200, "2 h"),
            (23_760, "6 h 36 min"),
            (40_000, "11 h"),
            (4_000_000, "1,111 h"),
        ] {
            assert_eq!(span(Duration::from_secs(seconds)), expected);
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
