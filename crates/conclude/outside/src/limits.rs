//! What cannot be concluded from results of other tools, and what to do about it.

use crate::compare::{Change, Compared, FEWEST_RUNS};
use crate::measure::{title, unit};
use crate::range::{OF_TARGET, differs};
use crate::recorded::{Line, Run, Version};
use plimsoll_analysis::quantity::{grouped, percent, significant};
use plimsoll_analysis::words::counted;
use plimsoll_model::measure::Unit;
use std::collections::{BTreeMap, BTreeSet};

/// Instants from here on are those of a clock, in seconds since 1970: 2001-09-09.
const OF_A_CLOCK: f64 = 1e9;

/// The length of a begin that may be a ramp, as a share of the samples.
const BEGIN: f64 = 0.2;

/// A begin that differs from the rest by more than this share is none of steady load.
const UNSTEADY: f64 = 0.1;

/// Lengths that differ by more than this share are told.
const OTHER_LENGTH: f64 = 0.1;

/// A line that covers a smaller share of its run than this is told.
const MOST_OF_THE_TIME: f64 = 0.8;

/// Fewest samples of a line whose shape tells something.
const FEWEST_SAMPLES: usize = 10;

/// Sentences, the weightiest first.
#[must_use]
pub fn limits(compared: &Compared) -> Vec<String> {
    let mut limits = of_runs(compared);
    limits.extend(of_equal_runs(compared));
    limits.extend(of_order(compared));
    limits.extend(of_counters(compared));
    limits.extend(of_missing_numbers(compared));
    limits.extend(of_labels(compared));
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
    let of_few = (0..FEWEST_RUNS).filter_map(|number| {
        let cases: Vec<&String> = few.iter().copied().filter(|case| runs(case) == number).collect();
        let place = place(compared, &cases);
        (!cases.is_empty()).then(|| match number {
            0 | 1 => format!(
                "A version ran once{place}: no change has an interval or a verdict, because nothing tells how much two runs of \
                 the same version differ. Results of {FEWEST_RUNS} runs or more of each (`run-1`, `run-2`, …) have intervals."
            ),
            few => format!("A version ran {few} times{place}: an interval takes {FEWEST_RUNS} runs of each version."),
        })
    });
    let of_enough = (!enough.is_empty()).then(|| {
        "Intervals are those of independent runs, and hold only where runs of both versions took turns in random order; there \
         are no verdicts."
            .to_owned()
    });
    of_few.chain(of_enough).collect()
}

/// Numbers that all runs of either version gave alike, and that differ between the two.
fn of_equal_runs(compared: &Compared) -> Option<String> {
    let are_enough = |change: &&Change| change.first.len().min(change.second.len()) >= FEWEST_RUNS;
    let tested = compared.changes.iter().filter(are_enough).filter(|change| change.adjusted_p.is_none());
    let names: BTreeSet<String> =
        tested.filter(|change| change.values[0] != change.values[1]).map(|change| title(&change.measure)).collect();
    (!names.is_empty()).then(|| {
        format!(
            "All runs of a version gave the same number in {}: it does not vary, it was rounded, or the runs are one and the same. \
             Nothing tells how much runs differ, so that there is no interval.",
            in_short(&names)
        )
    })
}

/// Lines of plain numbers that only grow, but for falls to near zero: of a counter the rate means something, and the mean
/// nothing.
fn of_counters(compared: &Compared) -> Option<String> {
    let is_counter = |line: &Line| {
        let values: Vec<f64> = line.points.iter().map(|(_, value)| *value).collect();
        let largest = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let grows = values.windows(2).filter(|pair| pair[1] > pair[0]).count();
        let falls = values.windows(2).filter(|pair| pair[1] < pair[0]).count();
        let is_reset = |pair: &[f64]| pair[1] < 0.1 * largest;
        values.len() >= FEWEST_SAMPLES
            && values.iter().all(|value| *value >= 0.0)
            && grows * 2 > values.len()
            && falls * 10 <= values.len()
            && values.windows(2).all(|pair| pair[1] >= pair[0] || is_reset(pair))
    };
    let mut by_measure: BTreeMap<&str, bool> = BTreeMap::new();
    for (name, _, line) in lines(compared) {
        *by_measure.entry(name).or_insert(true) &= is_counter(line);
    }
    // Memory that grows is no counter.
    let may_count = |name: &str| unit(name) == Unit::Number;
    let names: BTreeSet<String> =
        by_measure.into_iter().filter(|(name, all)| *all && may_count(name)).map(|(name, _)| title(name)).collect();
    (!names.is_empty()).then(|| {
        format!(
            "All lines of {} only grow. If they are counters, their means tell how long was counted before, and not how fast: take \
             the rate then, in Prometheus `rate(…[1m])`.",
            in_short(&names)
        )
    })
}

fn of_missing_numbers(compared: &Compared) -> Vec<String> {
    let of = |first_has: bool| {
        let without = if first_has { &compared.second.name } else { &compared.first.name };
        let lines = compared.without_number.iter().filter(|(.., has)| *has == first_has);
        let names: BTreeSet<String> = lines.map(|(_, measure, label, _)| line_in_words(measure, label)).collect();
        (!names.is_empty())
            .then(|| format!("{without} has samples and no number of {}: they are not compared.", in_short(&names)))
    };
    [of(true), of(false)].into_iter().flatten().collect()
}

/// Series that are compared although a label of theirs differs.
fn of_labels(compared: &Compared) -> Option<String> {
    let mut by_measure: BTreeMap<(&str, &str), (bool, Vec<&Line>)> = BTreeMap::new();
    for case in &compared.cases {
        for (name, is_alone, line) in
            both(compared).into_iter().flat_map(|version| lines_in(version.cases[case].iter()))
        {
            let (all_alone, lines) = by_measure.entry((case, name)).or_insert((true, Vec::new()));
            *all_alone &= is_alone;
            lines.push(line);
        }
    }
    let alone = by_measure.into_values().filter(|(all_alone, _)| *all_alone).map(|(_, lines)| lines);
    let labels: BTreeSet<String> = alone
        .flat_map(|lines| {
            let names: BTreeSet<&String> = lines.iter().flat_map(|line| line.labels.keys()).collect();
            let strange = names.into_iter().filter(|name| !OF_TARGET.contains(&name.as_str()));
            strange
                .filter(|name| differs(name, lines.iter().copied()))
                .map(|name| format!("`{name}`"))
                .collect::<Vec<_>>()
        })
        .collect();
    (!labels.is_empty()).then(|| {
        format!(
            "Where a file has a single series, it is held against that of the other files, though they differ in {}.",
            in_short(&labels)
        )
    })
}

/// The place of a sentence about some of the cases; empty where it is about all of them.
fn place(compared: &Compared, cases: &[&String]) -> String {
    if cases.len() == compared.cases.len() {
        return String::new();
    }
    format!(" in {}", in_short(&cases.iter().map(|case| (*case).clone()).collect()))
}

/// What a line is of: `get` of a measure, or the measure where it has no label.
fn line_in_words(measure: &str, label: &str) -> String {
    if label.is_empty() { title(measure) } else { format!("`{label}` of {}", title(measure)) }
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

/// The times that the runs of a version cover, in seconds: of each the longest of its lines.
fn lengths(compared: &Compared, version: &Version) -> Vec<f64> {
    let of_run = |run| lines_in(std::iter::once(run)).map(|(.., line)| line.span()).reduce(f64::max);
    runs(compared, version).filter_map(of_run).filter(|length| *length > 0.0).collect()
}

fn of_lengths(compared: &Compared) -> Vec<String> {
    let ends = |version: &Version| {
        let lengths = lengths(compared, version);
        let least = lengths.iter().copied().reduce(f64::min)?;
        Some((least, lengths.iter().copied().fold(least, f64::max)))
    };
    let shown = |(least, most): (f64, f64)| match is_longer(least, most) {
        true => format!("{} to {} s", significant(least), significant(most)),
        false => format!("{} s", significant(most)),
    };
    let [one, other] = [&compared.first, &compared.second].map(ends);
    let of_runs =
        one.zip(other).filter(|(one, other)| is_longer(one.0.min(other.0), one.1.max(other.1))).map(|(one, other)| {
            format!(
                "{} was measured for {} and {} for {}: what grows with time differs by that alone.",
                compared.first.name,
                shown(one),
                compared.second.name,
                shown(other)
            )
        });
    of_runs.into_iter().chain(of_short_lines(compared)).collect()
}

/// Lines that cover less of the time than others of the same run.
fn of_short_lines(compared: &Compared) -> Option<String> {
    let mut names = BTreeSet::new();
    for run in both(compared).into_iter().flat_map(|version| runs(compared, version)) {
        let longest = lines_in(std::iter::once(run)).map(|(.., line)| line.span()).fold(0.0, f64::max);
        let all = run
            .measures
            .iter()
            .flat_map(|(name, recorded)| recorded.lines().map(move |(label, line)| (name, label, line)));
        for (name, label, _) in
            all.filter(|(.., line)| !line.points.is_empty() && line.span() < longest * MOST_OF_THE_TIME)
        {
            names.insert(line_in_words(name, label));
        }
    }
    (!names.is_empty()).then(|| {
        format!(
            "{} cover{} less than {} of the time of a run: their means are those of a part of it.",
            in_short(&names),
            if names.len() == 1 { "s" } else { "" },
            percent(MOST_OF_THE_TIME)
        )
    })
}

/// True if the longer of two lengths is longer by more than [`OTHER_LENGTH`].
fn is_longer(least: f64, most: f64) -> bool {
    (most / least).ln() > OTHER_LENGTH
}

fn of_begins(compared: &Compared) -> Option<String> {
    let is_unsteady = |line: &Line| {
        let values: Vec<f64> = line.points.iter().map(|(_, value)| *value).collect();
        let (begin, rest) = values.split_at((values.len() as f64 * BEGIN) as usize);
        // A short begin differs by chance where samples vary.
        let by_chance = plimsoll_statistics::standard_deviation(rest).map(|sd| 3.0 * sd / (begin.len() as f64).sqrt());
        let means = plimsoll_statistics::mean(begin).zip(plimsoll_statistics::mean(rest));
        values.len() >= FEWEST_SAMPLES
            && means
                .zip(by_chance)
                .is_some_and(|((begin, rest), by_chance)| (begin - rest).abs() > by_chance.max(UNSTEADY * rest.abs()))
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
    let (mut missing, mut all, mut names) = (0_usize, 0_usize, BTreeSet::new());
    for (name, _, line) in lines(compared) {
        let distances = line.distances();
        let step = line.step().unwrap_or(f64::INFINITY);
        // Samples at irregular times, as those of requests, have distances and no gaps.
        let regular = distances.iter().filter(|distance| (**distance / step - 1.0).abs() < 0.1).count();
        let left_out = |distance: &f64| ((distance / step).round() as usize).saturating_sub(1);
        let gaps = if regular * 2 > distances.len() {
            distances.iter().map(left_out).fold(0, usize::saturating_add)
        } else {
            0
        };
        let of_line = line.no_number.len().saturating_add(gaps);
        all = of_line.saturating_add(line.points.len()).saturating_add(all);
        missing = of_line.saturating_add(missing);
        if of_line > 0 {
            names.insert(title(name));
        }
    }
    (missing > 0).then(|| {
        format!(
            "{} of {} are missing or no number, in {}: means leave them out.",
            grouped(missing as f64),
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

    /// A version with these runs of lines, each with its name.
    fn of_lines(name: &str, runs: &[&[(&str, Line)]]) -> Version {
        let file = |line: &Line| Recorded::OverTime(BTreeMap::from([(String::new(), line.clone())]));
        let run = |lines: &&[(&str, Line)]| Run {
            measures: lines.iter().map(|(name, line)| ((*name).to_owned(), file(line))).collect(),
        };
        Version { name: name.to_owned(), cases: BTreeMap::from([(String::new(), runs.iter().map(run).collect())]) }
    }

    fn line(points: impl IntoIterator<Item = (f64, f64)>) -> Line {
        Line { points: points.into_iter().collect(), ..Line::default() }
    }

    fn every_second(values: &[f64]) -> Line {
        line((0..).map(f64::from).zip(values.iter().copied()))
    }

    #[test]
    fn counters_are_told_from_rates() {
        let counter: Vec<f64> =
            (0..20).map(|second| f64::from(if second < 12 { second } else { second - 12 }) * 10.0).collect();
        let said = |line: &Line| {
            limits_of(
                of_lines("old", &[&[("requests", line.clone())]]),
                of_lines("new", &[&[("requests", line.clone())]]),
            )
        };
        let told = said(&every_second(&counter));
        assert!(told.contains("All lines of requests only grow. If they are counters"), "{told}");
        for other in [vec![5.0; 20], (0..20).map(|second| f64::from(second % 3)).collect(), vec![0.0; 20]] {
            assert!(!said(&every_second(&other)).contains("only grow"), "{other:?}");
        }
    }

    #[test]
    fn runs_and_lines_of_other_lengths_are_told() {
        let long = || every_second(&[1.0; 60]);
        let short = every_second(&[1.0; 20]);
        let runs = |name: &str, lines: [Line; 2]| {
            let [one, other] = lines.map(|line| [("heap", line)]);
            of_lines(name, &[&one, &other])
        };
        let said = limits_of(runs("old", [long(), long()]), runs("new", [long(), short.clone()]));
        assert!(said.contains("old was measured for 59.0 s and new for 19.0 to 59.0 s"), "{said}");
        let old = of_lines("old", &[&[("heap", long()), ("stack", long())]]);
        let said = limits_of(old, of_lines("new", &[&[("heap", long()), ("stack", short)]]));
        assert!(said.contains("stack covers less than 80 % of the time of a run"), "{said}");
    }

    #[test]
    fn what_is_irregular_or_varies_is_no_gap_and_no_ramp() {
        // Requests at any time, with values of any size.
        let mut at = 0.0;
        let irregular = line((0..40_u32).map(|number| {
            at += f64::from(number * number % 7 + 1) / 10.0;
            (at, f64::from(number * 37 % 11))
        }));
        let said = limits_of(
            of_lines("old", &[&[("durations", irregular.clone())]]),
            of_lines("new", &[&[("durations", irregular)]]),
        );
        assert!(!said.contains("missing") && !said.contains("first fifth"), "{said}");
    }

    #[test]
    fn what_is_compared_in_spite_of_something_says_so() {
        let labelled = |name: &str, pod: &str, value: &str| {
            let answer = format!(
                r#"{{"status":"success","data":{{"resultType":"matrix","result":[{{"metric":{{"pod":"{pod}"}},"values":[[0,"{value}"]]}}]}}}}"#
            );
            let recorded = Recorded::of_query_range(answer.as_bytes()).expect("an answer");
            let run = Run { measures: BTreeMap::from([("rps".to_owned(), recorded)]) };
            Version { name: name.to_owned(), cases: BTreeMap::from([(String::new(), vec![run; 3])]) }
        };
        let said = limits_of(labelled("old", "a", "100"), labelled("new", "b", "101"));
        assert!(said.contains("though they differ in `pod`"), "{said}");
        assert!(said.contains("All runs of a version gave the same number in rps"), "{said}");
        let said = limits_of(labelled("old", "a", "100"), labelled("new", "a", "NaN"));
        assert!(said.contains("new has samples and no number of `a` of rps"), "{said}");
    }
}
