//! The report of a release, of bundles and of results of other tools.

use crate::documents::{assert_well_formed, keep, text};
use crate::sample::{self, Noise};
use plimsoll_analysis::{Input, analyse};
use plimsoll_model::exposed::{BucketCounts, ExposedSeries, MetricKind, MetricSample};
use plimsoll_model::result::StartResult;
use plimsoll_model::study::FloorRule;
use plimsoll_outside::{Line, Recorded, Run, SUPPORTED_USERS, Version, compare};
use plimsoll_report::Document;
use plimsoll_report::release::{NoRelease, Part, release, release_of_outside};
use std::collections::{BTreeMap, BTreeSet};

/// The seconds in which systems were read, of ten that are measured.
const SECONDS: std::ops::RangeInclusive<i32> = -1..=11;

/// What comes to a handler in a second.
const PER_SECOND: f64 = 400.0;

/// A study of two versions whose systems tell the times of three handlers: `post` takes half as long again in the second,
/// `search` is the same, `export` has vanished, and `import` came once.
fn with_handlers() -> Input {
    let mut input = sample::study();
    input.facts.factors.truncate(1);
    input.facts.report.axis = None;
    input.facts.load = "closed loop, 50 users, no think time".to_owned();
    input.plan = sample::plan(&input.facts);
    input.starts = sample::starts(&input.plan, &mut Noise(5));
    input.facts.metrics = vec![ExposedSeries {
        name: "api".to_owned(),
        metric: "api_time_seconds".to_owned(),
        labels: BTreeMap::new(),
        by: Some("handler".to_owned()),
        unit: None,
        better: None,
    }];
    input.facts.metrics.extend(ExposedSeries::usual());
    let mut noise = Noise(9);
    for start in &mut input.starts {
        let metrics = samples(start, &mut noise);
        start.metrics = metrics;
    }
    input.with_units_noted()
}

fn samples(start: &StartResult, noise: &mut Noise) -> Vec<MetricSample> {
    let variant = start.loads[0].summary.load.variant;
    let mut handlers = vec![("post", if variant == 1 { 0.015 } else { 0.01 }), ("search", 0.04)];
    handlers.extend((variant != 1).then_some(("export", 0.09)));
    handlers.extend((start.summary.start.number == 1).then_some(("import", 0.09)));
    let zero = start.loads[0].summary.timing.zero.0 as f64 / 1e9;
    let of_start = |at: i32| f64::from(at) + zero;
    let mut samples = Vec::new();
    for (handler, mean) in handlers {
        let mean = mean * noise.around_one(0.02);
        for at in SECONDS {
            let count = PER_SECOND * f64::from(at + 2);
            samples.push(MetricSample {
                sum: Some(count * mean),
                // All but a hundredth in the bucket of the mean; the rest above it.
                buckets: BucketCounts(vec![(0.005, 0.0), (0.1, count * 0.995), (0.5, count), (f64::INFINITY, count)]),
                ..sample(of_start(at), variant, "api", handler, MetricKind::Histogram, count)
            });
        }
    }
    for at in SECONDS {
        samples.push(sample(of_start(at), variant, "goroutines", "", MetricKind::Gauge, 20.0 + f64::from(at)));
        samples.push(sample(of_start(at), variant, "process open files", "", MetricKind::Gauge, 9.0));
    }
    samples
}

fn sample(at: f64, variant: usize, series: &str, label: &str, kind: MetricKind, value: f64) -> MetricSample {
    MetricSample {
        at,
        system: "counter".to_owned(),
        variant,
        series: series.to_owned(),
        label: label.to_owned(),
        kind,
        value,
        sum: None,
        buckets: BucketCounts::default(),
    }
}

fn part(input: Input) -> Part {
    Part { analysis: analyse(&input), input, plimsoll: "0.1.0".to_owned() }
}

/// Each picture of the page is there, with its points, and none without a place on it.
fn assert_whole(documents: &[Document]) {
    let page = text(documents, "README.md");
    let shown: BTreeSet<&str> = page.split("](").skip(1).filter_map(|rest| rest.split(')').next()).collect();
    let paths: BTreeSet<&str> = documents.iter().map(|document| document.path.as_str()).collect();
    let pictures: BTreeSet<&str> = paths.iter().copied().filter(|path| path.starts_with("graphs/")).collect();
    assert_eq!(shown, pictures);
    for picture in &pictures {
        let points = picture.replace("graphs/", "data/").replace(".png", ".csv");
        assert!(text(documents, &points).lines().count() > 2, "{points}");
    }
    assert_well_formed(&text(documents, "index.html"));
    assert!(!page.contains("NaN") && !page.contains("inf"), "{page}");
}

#[test]
fn the_report_of_a_release() {
    let documents = release(&[part(with_handlers())]).expect("two versions");
    keep(&documents, "release");
    assert_whole(&documents);
    insta::assert_snapshot!(text(&documents, "README.md"));
    let mean = text(&documents, "data/bounded-api-avg.csv");
    assert!(mean.starts_with("x,version,line,value,least,largest\n1,mutex,solid,0.0"), "{mean}");
}

#[test]
fn a_release_goes_on_only_by_whole_runs_that_are_no_first_look() {
    for (complete, quick) in [(true, false), (false, false), (true, true)] {
        let mut input = with_handlers();
        input.facts.decide.iter_mut().for_each(|decision| decision.margin = 50.0);
        input.facts.floor_rule = FloorRule::Beyond;
        (input.complete, input.facts.quick) = (complete, quick);
        let page = text(&release(&[part(input)]).expect("two versions"), "README.md");
        assert_eq!(page.contains("The release can go on"), complete && !quick, "{page}");
        assert_eq!(page.contains("Resume the run of Bounded first"), !complete, "{page}");
        assert_eq!(page.contains("Mend what can overturn the answer. Bounded, a first look: "), quick, "{page}");
    }
}

#[test]
fn a_second_in_which_nothing_ended_is_drawn_as_none() {
    let mut input = with_handlers();
    for load in input.starts.iter_mut().flat_map(|start| &mut start.loads) {
        load.seconds.retain(|row| row.second != 4);
    }
    let points = text(&release(&[part(input)]).expect("two versions"), "data/bounded-requests.csv");
    for version in ["mutex", "inputQ"] {
        assert!(points.contains(&format!("\n5,{version},solid,0,0,0\n")), "{points}");
    }
}

#[test]
fn bundles_of_one_release_stand_side_by_side() {
    let documents = release(&[part(with_handlers()), part(sample::in_turns())]).expect("the same versions");
    assert_whole(&documents);
    let page = text(&documents, "README.md");
    for expected in ["| Design, Bounded 2 |", "| Host |", "### Graphs: Bounded 1", "- Bounded 2: of 2"] {
        assert!(page.contains(expected), "{expected}: {page}");
    }
    assert!(documents.iter().any(|document| document.path == "data/results-2.csv"));
}

#[test]
fn what_is_no_release_is_refused() {
    let describing = release(&[part(sample::one_system())]).expect_err("it compares nothing");
    assert_eq!(describing, NoRelease::NothingCompared("mutex under load".to_owned()));
    let other = release(&[part(with_handlers()), part(sample::three_variants())]).expect_err("other variants");
    assert!(other.to_string().contains("found mutex, inputQ in one and mutex, inputQ, racy in another"), "{other}");
}

fn version(name: &str, factor: f64, runs: usize) -> Version {
    let line = |of: f64| Line { points: (0..30).map(|at| (f64::from(at) * 15.0, of)).collect(), ..Line::default() };
    let run = |number: usize| {
        let around = factor * (1.0 + 0.01 * (number as f64 - 1.0));
        let labels = [("get | put".to_owned(), line(0.01 * around)), ("<script>".to_owned(), line(0.02))];
        Run {
            measures: BTreeMap::from([
                ("api_seconds".to_owned(), Recorded::OverTime(labels.into())),
                (
                    "heap_bytes".to_owned(),
                    Recorded::OverTime([(String::new(), line(3e7 * (1.0 + around) / 2.0))].into()),
                ),
                (SUPPORTED_USERS.to_owned(), Recorded::Values([("postgresql".to_owned(), 900.0 / around)].into())),
            ]),
        }
    };
    Version { name: name.to_owned(), cases: BTreeMap::from([("bounded".to_owned(), (0..runs).map(run).collect())]) }
}

#[test]
fn results_of_other_tools_make_the_same_report_without_verdicts() {
    let compared = compare(version("v1", 1.0, 1), version("v2", 1.2, 1)).expect("the same case");
    let documents = release_of_outside(&compared);
    keep(&documents, "release-of-outside");
    assert_whole(&documents);
    let page = text(&documents, "README.md");
    assert!(!page.contains("stands out **") && !page.contains("<script>"), "{page}");
    insta::assert_snapshot!(page);
}

#[test]
fn several_runs_of_other_tools_have_intervals() {
    let compared = compare(version("v1", 1.0, 4), version("v2", 1.2, 4)).expect("the same case");
    let page = text(&release_of_outside(&compared), "README.md");
    assert!(page.contains("| get \\| put | 10.0 ms | 12.1 ms | +20.0 % | +"), "{page}");
    assert!(page.contains("**stands out**") && page.contains("Look at what became worse"), "{page}");
}
