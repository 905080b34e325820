//! A second version against a first, name by name.

use crate::fault::Fault;
use crate::measure::better;
use crate::range::name_series;
use crate::recorded::{Line, Recorded, Run, Version};
use plimsoll_analysis::compare::FALSE_DISCOVERIES;
use plimsoll_model::measure::Direction;
use plimsoll_statistics::{Interval, benjamini_hochberg, t};
use std::collections::{BTreeMap, BTreeSet};

/// Fewest runs of each version for an interval.
pub(crate) const FEWEST_RUNS: usize = 3;

/// The confidence of intervals.
pub(crate) const CONFIDENCE: f64 = 0.95;

/// Two versions with what differs between them.
#[derive(Clone, Debug, PartialEq)]
pub struct Compared {
    /// The first version.
    pub first: Version,
    /// The second version.
    pub second: Version,
    /// The cases that both have.
    pub cases: Vec<String>,
    /// The changes, by case, then by measure, then by label.
    pub changes: Vec<Change>,
    /// Labels that one version alone has: case, measure, label, and true if it is the first.
    pub only: Vec<(String, String, String, bool)>,
    /// Labels that both versions have, and of which one has no number: case, measure, label, and true if the first has numbers.
    pub without_number: Vec<(String, String, String, bool)>,
}

/// The change of a number.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// The case.
    pub case: String,
    /// The measure: the name of its file.
    pub measure: String,
    /// The label; empty where the measure has none.
    pub label: String,
    /// The value in each run of the first version that has one.
    pub first: Vec<f64>,
    /// The value in each run of the second version that has one.
    pub second: Vec<f64>,
    /// The two values that the change is computed from: geometric means over the runs, or arithmetic ones where a value is not
    /// above zero.
    pub values: [f64; 2],
    /// The ratio of the second to the first; none where a value is not above zero.
    pub ratio: Option<f64>,
    /// The 95 % interval of the ratio, by Welch's t on logarithms; none of fewer than three runs of a version, none where no two
    /// runs of a version differ, and none without a ratio.
    pub interval: Option<Interval>,
    /// Benjamini and Hochberg's adjusted p-value, over all changes of which both versions have three runs; where there is no ratio
    /// by Welch's t on the values.
    pub adjusted_p: Option<f64>,
}

impl Change {
    /// True if it stands out among all changes.
    #[must_use]
    pub fn stands_out(&self) -> bool {
        self.adjusted_p.is_some_and(|p| p <= FALSE_DISCOVERIES)
    }

    /// The logarithm of the ratio; infinite where there is none, because a value is not above zero, and the other one is another.
    #[must_use]
    pub fn logarithm(&self) -> f64 {
        let [first, second] = self.values;
        let without_ratio = || if first == second { 0.0 } else { f64::INFINITY.copysign(second - first) };
        self.ratio.map_or_else(without_ratio, f64::ln)
    }

    /// How much worse the second version is, to order changes of one measure: where no direction is better, how much it changes.
    #[must_use]
    pub fn badness(&self) -> f64 {
        let size = self.logarithm();
        match better(&self.measure) {
            Some(Direction::Lower) => size,
            Some(Direction::Higher) => -size,
            None => size.abs(),
        }
    }
}

/// Holds the second version against the first.
///
/// # Errors
/// They have no case in common.
pub fn compare(mut first: Version, mut second: Version) -> Result<Compared, Fault> {
    let cases: Vec<String> = first.cases.keys().filter(|case| second.cases.contains_key(*case)).cloned().collect();
    if cases.is_empty() {
        let named =
            |version: &Version| version.cases.keys().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        return Err(Fault::NothingInCommon {
            of_first: named(&first),
            of_second: named(&second),
            first: first.name,
            second: second.name,
        });
    }
    name_all_series(&mut first, &mut second);
    let (mut changes, mut only, mut without_number) = (Vec::new(), Vec::new(), Vec::new());
    for case in &cases {
        let [one, other] = [&first, &second].map(|version| values(&version.cases[case]));
        let [in_one, in_other] = [&first, &second].map(|version| labels(&version.cases[case]));
        let keys: BTreeSet<&(String, String)> = one.keys().chain(other.keys()).collect();
        for key in keys {
            let (measure, label) = key.clone();
            match (one.get(key), other.get(key)) {
                (Some(first), Some(second)) => changes.push(change(case, measure, label, first, second)),
                (of_first, _) => {
                    let all = if of_first.is_some() { &in_other } else { &in_one };
                    let is_there = all.contains(&(measure.as_str(), label.as_str()));
                    let place = if is_there { &mut without_number } else { &mut only };
                    place.push((case.clone(), measure, label, of_first.is_some()));
                }
            }
        }
    }
    adjust(&mut changes);
    Ok(Compared { first, second, cases, changes, only, without_number })
}

/// Names the series of Prometheus of each measure in the same way in all runs of both versions.
fn name_all_series(first: &mut Version, second: &mut Version) {
    let runs = first.cases.values_mut().chain(second.cases.values_mut()).flatten();
    let mut files: BTreeMap<&str, Vec<&mut BTreeMap<String, Line>>> = BTreeMap::new();
    for (measure, recorded) in runs.flat_map(|run| &mut run.measures) {
        match recorded {
            Recorded::OverTime(lines) if lines.values().any(|line| !line.labels.is_empty()) => {
                files.entry(measure).or_default().push(lines);
            }
            _ => {}
        }
    }
    files.values_mut().for_each(|files| name_series(files));
}

/// The measures and labels of the runs, also where there is no number.
fn labels(runs: &[Run]) -> BTreeSet<(&str, &str)> {
    let measures = runs.iter().flat_map(|run| &run.measures);
    measures.flat_map(|(measure, recorded)| recorded.labels().map(|label| (measure.as_str(), label.as_str()))).collect()
}

/// The values of the runs, by measure and label.
fn values(runs: &[Run]) -> BTreeMap<(String, String), Vec<f64>> {
    let mut values: BTreeMap<(String, String), Vec<f64>> = BTreeMap::new();
    for (measure, recorded) in runs.iter().flat_map(|run| &run.measures) {
        for (label, value) in recorded.values() {
            values.entry((measure.clone(), label)).or_default().push(value);
        }
    }
    values
}

fn change(case: &str, measure: String, label: String, first: &[f64], second: &[f64]) -> Change {
    let logs_of = |values: &[f64]| -> Option<Vec<f64>> {
        values.iter().map(|value| (*value > 0.0).then(|| value.ln())).collect()
    };
    let both = logs_of(first).zip(logs_of(second));
    let mean = |values: &[f64]| plimsoll_statistics::mean(values).unwrap_or(f64::NAN);
    let logs = both.as_ref().map(|(first, second)| [mean(first), mean(second)]);
    let values = match logs {
        Some(logs) => logs.map(f64::exp),
        None => [mean(first), mean(second)],
    };
    let are_enough = first.len().min(second.len()) >= FEWEST_RUNS;
    // Runs that all gave one number do not show how much runs differ: it was rounded.
    let differ = |values: &[f64]| values.iter().any(|value| *value != values[0]);
    let test = match &both {
        _ if !are_enough || !(differ(first) || differ(second)) => None,
        Some((first, second)) => t::welch(second, first),
        None => t::welch(second, first),
    };
    Change {
        case: case.to_owned(),
        measure,
        label,
        first: first.to_vec(),
        second: second.to_vec(),
        values,
        ratio: logs.map(|[first, second]| (second - first).exp()),
        interval: test.as_ref().filter(|_| both.is_some()).map(|test| {
            let Interval { low, high } = test.interval(CONFIDENCE);
            Interval { low: low.exp(), high: high.exp() }
        }),
        adjusted_p: test.map(|test| test.p_two_sided(0.0)),
    }
}

/// Adjusts the p-values of all changes for their number.
fn adjust(changes: &mut [Change]) {
    let p: Vec<f64> = changes.iter().filter_map(|change| change.adjusted_p).collect();
    let tested = changes.iter_mut().filter(|change| change.adjusted_p.is_some());
    tested.zip(benjamini_hochberg(&p)).for_each(|(change, adjusted)| change.adjusted_p = Some(adjusted));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(name: &str, runs: &[&[(&str, f64)]]) -> Version {
        let run = |values: &&[(&str, f64)]| {
            let values = values.iter().map(|(label, value)| ((*label).to_owned(), *value)).collect();
            Run { measures: BTreeMap::from([("api_seconds".to_owned(), Recorded::Values(values))]) }
        };
        Version { name: name.to_owned(), cases: BTreeMap::from([(String::new(), runs.iter().map(run).collect())]) }
    }

    #[test]
    fn one_run_each_has_changes_and_no_interval() {
        let old = version("old", &[&[("get", 0.1), ("put", 0.2), ("gone", 0.3), ("zero", 0.0)]]);
        let new = version("new", &[&[("get", 0.11), ("put", 0.1), ("added", 0.3), ("zero", 0.1)]]);
        let compared = compare(old, new).expect("the same case");
        let found: Vec<(&str, Option<f64>)> =
            compared.changes.iter().map(|change| (change.label.as_str(), change.ratio)).collect();
        assert_eq!(found.iter().map(|(label, _)| *label).collect::<Vec<_>>(), ["get", "put", "zero"]);
        assert!((found[0].1.expect("a ratio") - 1.1).abs() < 1e-12);
        assert_eq!(found[2].1, None, "there is no ratio to zero");
        assert!(compared.changes.iter().all(|change| change.interval.is_none() && !change.stands_out()));
        let only: Vec<(&str, bool)> =
            compared.only.iter().map(|(_, _, label, first)| (label.as_str(), *first)).collect();
        assert_eq!(only, [("added", false), ("gone", true)], "what vanished did not fall to zero");
    }

    #[test]
    fn three_runs_each_have_an_interval_and_a_p_that_knows_of_the_others() {
        let runs = |get: f64| {
            [[("get", get), ("put", 0.2)], [("get", get * 1.01), ("put", 0.21)], [("get", get * 0.99), ("put", 0.19)]]
        };
        let as_slices = |name: &str, get: f64| {
            let runs = runs(get);
            version(name, &runs.iter().map(<[_; 2]>::as_slice).collect::<Vec<_>>())
        };
        let compared = compare(as_slices("old", 0.1), as_slices("new", 0.15)).expect("the same case");
        let [get, put] = &compared.changes[..] else { panic!("two labels") };
        let interval = get.interval.expect("three runs");
        assert!(get.stands_out() && interval.low > 1.4 && interval.high < 1.6, "{get:?}");
        assert!(!put.stands_out() && put.ratio.is_some_and(|ratio| (ratio - 1.0).abs() < 1e-12), "{put:?}");
        assert!(get.badness() > put.badness());
    }

    #[test]
    fn a_change_from_zero_has_no_ratio_and_stands_out_all_the_same() {
        let runs = |of: [f64; 3]| of.map(|value| [("pause", value), ("put", 0.2 + value / 1e4)]);
        let version = |name: &str, of: [f64; 3]| {
            let runs = runs(of);
            version(name, &runs.iter().map(<[_; 2]>::as_slice).collect::<Vec<_>>())
        };
        let compared =
            compare(version("old", [0.0, 0.0, 0.0]), version("new", [5.0, 5.1, 4.9])).expect("the same case");
        let [pause, put] = &compared.changes[..] else { panic!("two labels") };
        assert_eq!((pause.ratio, pause.interval, pause.values[0]), (None, None, 0.0));
        assert!(pause.stands_out() && pause.badness() > put.badness(), "{pause:?}");
        let same = compare(version("old", [0.0; 3]), version("new", [0.0; 3])).expect("the same case");
        assert!(same.changes[0].badness() == 0.0 && !same.changes[0].stands_out(), "{same:?}");
    }

    #[test]
    fn a_series_has_one_name_in_all_files() {
        let version = |name: &str, series: &[&str]| {
            let run = |series: &&str| {
                let answer = format!(r#"{{"status":"success","data":{{"resultType":"matrix","result":[{series}]}}}}"#);
                let recorded = Recorded::of_query_range(answer.as_bytes()).expect("an answer");
                Run { measures: BTreeMap::from([("api_seconds".to_owned(), recorded)]) }
            };
            Version {
                name: name.to_owned(),
                cases: BTreeMap::from([(String::new(), series.iter().map(run).collect())]),
            }
        };
        let labels = |first: &[&str], second: &[&str]| {
            let compared = compare(version("old", first), version("new", second)).expect("the same case");
            let changed = compared.changes.iter().map(|change| change.label.clone());
            changed.chain(compared.only.iter().map(|(_, _, label, _)| format!("only {label}"))).collect::<Vec<String>>()
        };
        let on =
            |instance: &str| format!(r#"{{"metric":{{"instance":"{instance}","job":"chat"}},"values":[[0,"1"]]}}"#);
        assert_eq!(labels(&[&on("a:80")], &[&on("b:80"), &on("c:80")]), [""]);
        let pod = |pod: &str| format!(r#"{{"metric":{{"pod":"{pod}","handler":"get"}},"values":[[0,"1"]]}}"#);
        assert_eq!(labels(&[&pod("a")], &[&pod("b"), &pod("c")]), ["get"], "another pod is no other series");
        let of = |handler: &str, code: &str| {
            format!(r#"{{"metric":{{"handler":"{handler}","code":"{code}"}},"values":[[0,"1"]]}}"#)
        };
        let (get, failed, put) = (of("get", "200"), of("get", "500"), of("put", "200"));
        assert_eq!(
            labels(&[&format!("{get},{put}")], &[&format!("{get},{failed}")]),
            ["code=200, handler=get", "only code=200, handler=put", "only code=500, handler=get"]
        );
        assert_eq!(labels(&[&get], &[&format!("{get},{put}")]), ["get", "only put"]);
    }

    #[test]
    fn a_label_without_a_number_has_not_vanished() {
        let version = |name: &str, answer: &str| {
            let answer = format!(r#"{{"status":"success","data":{{"resultType":"matrix","result":[{answer}]}}}}"#);
            let recorded = Recorded::of_query_range(answer.as_bytes()).expect("an answer");
            let run = Run { measures: BTreeMap::from([("p99_seconds".to_owned(), recorded)]) };
            Version { name: name.to_owned(), cases: BTreeMap::from([(String::new(), vec![run])]) }
        };
        let of =
            |handler: &str, value: &str| format!(r#"{{"metric":{{"handler":"{handler}"}},"values":[[0,"{value}"]]}}"#);
        let old = || version("old", &format!("{},{}", of("get", "1"), of("delete", "2")));
        let compared =
            compare(old(), version("new", &format!("{},{}", of("get", "1"), of("delete", "NaN")))).expect("a case");
        let label =
            |found: &[(String, String, String, bool)]| found.iter().map(|one| one.2.clone()).collect::<Vec<_>>();
        assert_eq!((label(&compared.without_number), label(&compared.only)), (vec!["delete".to_owned()], Vec::new()));
        let empty = compare(old(), version("new", "")).expect("a case");
        assert_eq!((empty.without_number.len(), label(&empty.only).len()), (0, 2), "there was nothing of the kind");
    }

    #[test]
    fn runs_that_all_gave_one_number_show_no_certainty() {
        let version =
            |name: &str, value: f64| version(name, &[&[("get", value)], &[("get", value)], &[("get", value)]]);
        let compared = compare(version("old", 100.0), version("new", 101.0)).expect("the same case");
        let [get] = &compared.changes[..] else { panic!("one label") };
        assert_eq!((get.interval, get.adjusted_p, get.stands_out()), (None, None, false));
        assert!(get.ratio.is_some_and(|ratio| (ratio - 1.01).abs() < 1e-12));
    }

    #[test]
    fn versions_without_a_case_in_common_are_refused() {
        let mut new = version("new", &[&[("get", 1.0)]]);
        new.cases = BTreeMap::from([("pg".to_owned(), Vec::new())]);
        let refused = compare(version("old", &[&[("get", 1.0)]]), new).expect_err("no case");
        assert_eq!(refused.to_string(), "old and new have no case in common: found `` and `pg`");
    }
}
