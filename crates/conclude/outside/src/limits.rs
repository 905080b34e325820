//! What cannot be concluded from results of other tools, and what to do about it.

use crate::compare::{Compared, FEWEST_RUNS};
use crate::measure::title;
use crate::recorded::{Line, Run, Version};
use plimsoll_analysis::quantity::{percent, significant};
use plimsoll_analysis::words::counted;
use std::collections::BTreeSet;

/// Instants from here on are those of a clock, in seconds since 1970: 2001-09-09.
const OF_A_CLOCK: f64 = 1e9;

/// The length of a begin that may be a ramp, as a share of the samples.
const BEGIN: f64 = 0.2;

/// A begin that differs from the rest by more than this share is none of steady load.
const UNSTEADY: f64 = 0.1;

/// Lengths that differ by more than this share are told.
const OTHER_LENGTH: f64 = 0.1;

/// Sentences, the weightiest first.
#[must_use]
pub fn limits(compared: &Compared) -> Vec<String> {
    let mut limits = of_runs(compared);
    limits.extend(of_order(compared));
    limits.extend(of_lengths(compared));
    limits.extend(of_begins(compared));
    limits.extend(of_gaps(compared));
    limits.extend(of_means(compared));
    limits.push(
        "Nothing tells whether the load generator kept up, what else ran on the machines, and whether errors were counted: a \
         generator at its limit makes two versions look equal."
            .to_owned(),
    );
    limits
}

fn both(compared: &Compared) -> [&Version; 2] {
    [&compared.first, &compared.second]
}

/// The runs of a version in all cases that are compared.
fn runs<'a>(compared: &'a Compared, version: &'a Version) -> impl Iterator<Item = &'a Run> {
    compared.cases.iter().filter_map(|case| version.cases.get(case)).flatten()
}

fn of_runs(compared: &Compared) -> Vec<String> {
    let runs = |case: &String| both(compared).map(|version| version.cases[case].len()).into_iter().min().unwrap_or(0);
    let (few, enough): (Vec<&String>, Vec<&String>) = compared.cases.iter().partition(|case| runs(case) < FEWEST_RUNS);
    let place = place(compared, &few);
    let of_few = few.iter().map(|case| runs(case)).min().map(|least| match least {
        0 | 1 => format!(
            "A version ran once{place}: no change has an interval or a verdict, because nothing tells how much two runs of the \
             same version differ. Results of {FEWEST_RUNS} runs or more of each (`run-1`, `run-2`, …) have intervals."
        ),
        few => format!("A version ran {few} times{place}: an interval takes {FEWEST_RUNS} runs of each version."),
    });
    let of_enough = (!enough.is_empty()).then(|| {
        "Intervals are those of independent runs, and hold only where runs of both versions took turns in random order; there \
         are no verdicts."
            .to_owned()
    });
    of_few.into_iter().chain(of_enough).collect()
}

/// The place of a sentence about some of the cases; empty where it is about all of them.
fn place(compared: &Compared, cases: &[&String]) -> String {
    if cases.len() == compared.cases.len() {
        return String::new();
    }
    format!(" in {}", in_short(&cases.iter().map(|case| (*case).clone()).collect()))
}

/// Each line of some runs, with its measure, and whether its file has no other.
fn lines_in<'a>(runs: impl Iterator<Item = &'a Run>) -> impl Iterator<Item = (&'a str, bool, &'a Line)> {
    runs.flat_map(|run| &run.measures).flat_map(|(name, recorded)| {
        let is_alone = recorded.lines().count() == 1;
        recorded.lines().map(move |(_, line)| (name.as_str(), is_alone, line))
    })
}

/// Each line of each run of a version, with its measure, and whether its file has no other.
fn lines_of<'a>(compared: &'a Compared, version: &'a Version) -> impl Iterator<Item = (&'a str, bool, &'a Line)> {
    lines_in(runs(compared, version))
}

/// Each line of each run of both versions, with its measure, and whether its file has no other.
fn lines(compared: &Compared) -> impl Iterator<Item = (&str, bool, &Line)> {
    both(compared).into_iter().flat_map(|version| lines_of(compared, version))
}

/// The first and the last instant of some runs, where their files tell the time of day.
fn times(runs: &[Run]) -> Option<[f64; 2]> {
    let points = lines_in(runs.iter()).flat_map(|(.., line)| &line.points);
    let instants: Vec<f64> = points.map(|(at, _)| *at).filter(|at| *at > OF_A_CLOCK).collect();
    let least = instants.iter().copied().reduce(f64::min)?;
    Some([least, instants.iter().copied().reduce(f64::max)?])
}

/// The order in which the versions were measured.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Order {
    /// All runs of the first version came before those of the second.
    FirstBefore,
    /// All runs of the second version came before those of the first.
    SecondBefore,
    /// The times of the versions overlap.
    Mixed,
    /// The files of a version do not tell the time of day.
    Unknown,
}

impl Order {
    /// The order in a case. Where cases follow one another, the times of the versions over all cases overlap,
    /// whatever the order in each.
    fn of(compared: &Compared, case: &str) -> Order {
        match both(compared).map(|version| times(&version.cases[case])) {
            [Some(first), Some(second)] if first[1] <= second[0] => Order::FirstBefore,
            [Some(first), Some(second)] if second[1] <= first[0] => Order::SecondBefore,
            [Some(_), Some(_)] => Order::Mixed,
            _ => Order::Unknown,
        }
    }
}

fn of_order(compared: &Compared) -> Vec<String> {
    let orders: Vec<(Order, &String)> = compared.cases.iter().map(|case| (Order::of(compared, case), case)).collect();
    let cases = |wanted: Order| -> Vec<&String> {
        orders.iter().filter(|(order, _)| *order == wanted).map(|(_, case)| *case).collect()
    };
    let [one, other] = [&compared.first.name, &compared.second.name];
    let apart = |cases: Vec<&String>, earlier: &str, later: &str| {
        let is_each = cases.len() > 1 && cases.len() == compared.cases.len();
        let place = if is_each { " in each case".to_owned() } else { place(compared, &cases) };
        (!cases.is_empty()).then(|| {
            format!(
                "All of {earlier} was measured before {later}{place}: whatever changed on the machines in between is part of \
                 each difference."
            )
        })
    };
    let unknown = cases(Order::Unknown);
    let of_unknown = (!unknown.is_empty()).then(|| {
        let place = place(compared, &unknown);
        format!("The files do not tell when each version was measured{place}, nor in which order.")
    });
    [apart(cases(Order::FirstBefore), one, other), apart(cases(Order::SecondBefore), other, one), of_unknown]
        .into_iter()
        .flatten()
        .collect()
}

/// The longest time that a run of a version covers, in seconds.
fn length(compared: &Compared, version: &Version) -> Option<f64> {
    let spans = lines_of(compared, version).map(|(.., line)| line.span());
    spans.reduce(f64::max).filter(|length| *length > 0.0)
}

fn of_lengths(compared: &Compared) -> Option<String> {
    let [first, second] = both(compared).map(|version| length(compared, version));
    let (first, second) = (first?, second?);
    ((first / second).ln().abs() > OTHER_LENGTH).then(|| {
        format!(
            "{} was measured for {} s and {} for {} s: what grows with time differs by that alone.",
            compared.first.name,
            significant(first),
            compared.second.name,
            significant(second)
        )
    })
}

fn of_begins(compared: &Compared) -> Option<String> {
    let is_unsteady = |line: &Line| {
        let values: Vec<f64> = line.points.iter().map(|(_, value)| *value).collect();
        let (begin, rest) = values.split_at((values.len() as f64 * BEGIN) as usize);
        let means = plimsoll_statistics::mean(begin).zip(plimsoll_statistics::mean(rest));
        values.len() >= 10 && means.is_some_and(|(begin, rest)| ((begin - rest) / rest).abs() > UNSTEADY)
    };
    let whole: Vec<&str> =
        lines(compared).filter(|(_, is_alone, line)| *is_alone && is_unsteady(line)).map(|(name, ..)| name).collect();
    let names: BTreeSet<String> = whole.iter().map(|name| title(name)).collect();
    (!names.is_empty()).then(|| {
        format!(
            "The first fifth differs from the rest by more than {} in {}: a ramp or a warm-up is part of the means. Take the \
             range after it.",
            percent(UNSTEADY),
            in_short(&names)
        )
    })
}

fn of_gaps(compared: &Compared) -> Option<String> {
    let (mut missing, mut all, mut names) = (0, 0, BTreeSet::new());
    for (name, _, line) in lines(compared) {
        let step = line.step().unwrap_or(f64::INFINITY);
        let gaps: usize =
            line.distances().iter().map(|distance| ((distance / step).round() as usize).saturating_sub(1)).sum();
        let of_line = gaps + line.no_number.len();
        (missing, all) = (missing + of_line, all + of_line + line.points.len());
        if of_line > 0 {
            names.insert(title(name));
        }
    }
    (missing > 0).then(|| {
        format!(
            "{} of {} are missing or no number, in {}: means leave them out.",
            missing,
            counted(all, "sample"),
            in_short(&names)
        )
    })
}

fn of_means(compared: &Compared) -> Option<String> {
    let over_time: BTreeSet<&str> = lines(compared).map(|(name, ..)| name).collect();
    let is_percentile = |name: &str| {
        let name = name.to_lowercase();
        name.contains("percentile")
            || name.split(['-', '_']).any(|word| word.strip_prefix('p').is_some_and(|rest| rest.parse::<f64>().is_ok()))
    };
    let percentiles: BTreeSet<String> =
        over_time.iter().filter(|name| is_percentile(name)).map(|name| title(name)).collect();
    if over_time.is_empty() {
        return None;
    }
    let of_percentiles = if percentiles.is_empty() {
        String::new()
    } else {
        format!(" For {} they are no percentiles of requests.", in_short(&percentiles))
    };
    Some(format!(
        "Values of what was sampled over time are means of the samples, in which a quiet second weighs as much as a busy one.{of_percentiles}"
    ))
}

/// Up to five names.
fn in_short(names: &BTreeSet<String>) -> String {
    const SHOWN: usize = 5;
    let mut shown: Vec<String> = names.iter().take(SHOWN).cloned().collect();
    shown.extend((names.len() > SHOWN).then(|| format!("{} more", names.len() - SHOWN)));
    plimsoll_model::words::and_list(&shown)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::compare;
    use crate::recorded::Recorded;
    use std::collections::BTreeMap;

    fn version(name: &str, from: f64, values: &[f64]) -> Version {
        let points = (0..).zip(values).map(|(second, value)| (from + f64::from(second), *value)).collect();
        let lines = BTreeMap::from([(String::new(), Line { points, ..Line::default() })]);
        let run = Run { measures: BTreeMap::from([("p99-api_seconds".to_owned(), Recorded::OverTime(lines))]) };
        Version { name: name.to_owned(), cases: BTreeMap::from([(String::new(), vec![run])]) }
    }

    fn limits_of(first: Version, second: Version) -> String {
        limits(&compare(first, second).expect("the same case")).join("\n")
    }

    #[test]
    fn one_run_after_the_other_says_so() {
        let said = limits_of(version("old", 2e9, &[1.0; 20]), version("new", 2e9 + 100.0, &[1.0; 20]));
        for expected in [
            "A version ran once",
            "All of old was measured before new",
            "For p99 api they are no percentiles of requests",
            "whether the load generator kept up",
        ] {
            assert!(said.contains(expected), "{expected}: {said}");
        }
        for other in ["first fifth", "missing", "was measured for"] {
            assert!(!said.contains(other), "{other}: {said}");
        }
        let turned = limits_of(version("old", 2e9 + 100.0, &[1.0; 20]), version("new", 2e9, &[1.0; 20]));
        assert!(turned.contains("All of new was measured before old"), "{turned}");
        let together = limits_of(version("old", 2e9, &[1.0; 20]), version("new", 2e9 + 5.0, &[1.0; 20]));
        assert!(!together.contains("was measured before"), "{together}");
        let unknown = limits_of(version("old", 0.0, &[1.0; 20]), version("new", 0.0, &[1.0; 20]));
        assert!(unknown.contains("do not tell when"), "{unknown}");
    }

    #[test]
    fn one_version_after_the_other_is_told_of_each_case() {
        let steady = [1.0; 20];
        let of = |name: &str, begins: &[(&str, f64)]| {
            let runs = |from: f64| version(name, from, &steady).cases[""].clone();
            let cases = begins.iter().map(|(case, from)| ((*case).to_owned(), runs(*from)));
            Version { name: name.to_owned(), cases: cases.collect() }
        };
        let (early, late) = (2e9, 2e9 + 1000.0);
        let old = || of("old", &[("mysql", early), ("pg", late)]);
        for (begins, expected) in [
            ([early + 100.0, late + 100.0], &["All of old was measured before new in each case: whatever changed"][..]),
            (
                [early + 100.0, late - 100.0],
                &["All of old was measured before new in mysql: ", "All of new was measured before old in pg: "],
            ),
            ([early + 100.0, late + 5.0], &["All of old was measured before new in mysql: "]),
            (
                [early + 100.0, 0.0],
                &["before new in mysql: ", "do not tell when each version was measured in pg, nor in which order."],
            ),
            ([early + 5.0, late + 5.0], &[]),
            ([0.0, 0.0], &["The files do not tell when each version was measured, nor in which order."]),
        ] {
            let said = limits_of(old(), of("new", &[("mysql", begins[0]), ("pg", begins[1])]));
            for text in expected {
                assert!(said.contains(text), "{text}: {said}");
            }
            let told = said.matches("was measured before").count() + said.matches("do not tell when").count();
            assert_eq!(told, expected.len(), "{said}");
        }
    }

    #[test]
    fn cases_with_few_runs_are_named_where_others_have_enough() {
        let of = |name: &str| {
            let one = version(name, 2e9, &[1.0; 20]);
            let run = one.cases[""][0].clone();
            let cases = [("pg".to_owned(), vec![run.clone(); 3]), ("mysql".to_owned(), vec![run])];
            Version { cases: cases.into(), ..one }
        };
        let said = limits_of(of("old"), of("new"));
        assert!(said.contains("A version ran once in mysql: no change"), "{said}");
        assert!(said.contains("Intervals are those of independent runs"), "{said}");
    }

    #[test]
    fn ramps_gaps_and_lengths_are_told() {
        let ramp: Vec<f64> = (0..20).map(|second| if second < 4 { 0.5 } else { 1.0 }).collect();
        let said = limits_of(version("old", 2e9, &ramp), version("new", 2e9, &[1.0; 10]));
        assert!(said.contains("The first fifth differs from the rest by more than 10 % in p99 api"), "{said}");
        assert!(said.contains("old was measured for 19.0 s and new for 9.00 s"), "{said}");
        let mut holes = version("old", 2e9, &[1.0; 20]);
        for run in holes.cases.get_mut("").expect("a case") {
            for recorded in run.measures.values_mut() {
                let Recorded::OverTime(lines) = recorded else { panic!("over time") };
                let line = lines.get_mut("").expect("a line");
                line.points.remove(7);
                line.points.remove(7);
                line.no_number = vec![2e9 + 20.0];
            }
        }
        let said = limits_of(holes, version("new", 2e9, &[1.0; 20]));
        assert!(said.contains("3 of 41 samples are missing or no number, in p99 api"), "{said}");
    }
}
