//! Summaries are held to what k6 v1.8.1 wrote for `k6/script.js`.

use super::*;
use crate::metrics::TagSet;
use crate::threshold::Threshold;
use std::collections::BTreeSet;

const STATS: [Aggregation; 5] = [
    Aggregation::Avg,
    Aggregation::Count,
    Aggregation::Percentile(99.99),
    Aggregation::Med,
    Aggregation::Percentile(90.0),
];

/// The texts, and how long each run took.
const COMPACT: (&str, Duration) = (include_str!("k6/compact.txt"), Duration::from_nanos(283_290));
const FULL: (&str, Duration) = (include_str!("k6/full.txt"), Duration::from_nanos(281_840));
const LEGACY: (&str, Duration) = (include_str!("k6/legacy.txt"), Duration::from_nanos(858_340));
const EXPORT: &str = include_str!("k6/export.json");
/// What its `handleSummary` got.
const DATA: &str = include_str!("k6/data.json");

struct Run {
    registry: Registry,
    sinks: Sinks,
    limits: Vec<Limits>,
    checks: Checks,
}

/// What the script does, in three iterations.
fn run() -> Run {
    let mut registry = Registry::default();
    let own = [
        ("my_counter", Kind::Counter, Contains::Default),
        ("my_gauge", Kind::Gauge, Contains::Default),
        ("my_rate", Kind::Rate, Contains::Default),
        ("my_trend", Kind::Trend, Contains::Default),
        ("my_time", Kind::Trend, Contains::Time),
        ("gauge_time", Kind::Gauge, Contains::Time),
        ("counter_time", Kind::Counter, Contains::Time),
    ];
    for (name, kind, contains) in own {
        registry.register(name, kind, contains).expect(name);
    }
    let limits = [
        ("my_time", vec!["p(99)<5000000", "avg>1"]),
        ("my_trend", vec!["med<2"]),
        ("my_trend{a:b}", vec!["avg<1"]),
        ("my_counter{a:b}", vec!["count<10"]),
        ("my_counter{a:zz,b:c}", vec!["count<10"]),
        ("gauge_time", vec!["value<3"]),
        ("counter_time", vec!["count>1"]),
        ("my_rate", vec!["rate<0.00001"]),
        ("checks", vec!["rate>0.5"]),
    ];
    let limits = limits.map(|(name, thresholds)| {
        let thresholds = thresholds.into_iter().map(|text| Threshold::parse(text).expect(text)).collect();
        Limits::new(&mut registry, name, thresholds).expect(name)
    });
    let (mut sinks, mut checks) = (Sinks::new(&registry), Checks::default());
    for iteration in 0..3 {
        iterate(iteration, &registry, &mut sinks, &mut checks);
    }
    Run { registry, sinks, limits: limits.to_vec(), checks }
}

fn iterate(iteration: u32, registry: &Registry, sinks: &mut Sinks, checks: &mut Checks) {
    let first = f64::from(iteration == 0);
    let (tags, none) = ([("a", "b")].as_slice(), [].as_slice());
    let samples: [(&str, &[f64], _); 14] = [
        ("my_counter", &[0.5], tags),
        ("my_counter", &[1.25], none),
        ("my_gauge", &[10_000_000.5], none),
        ("my_rate", &[first], none),
        ("my_trend", &[0.5, 3.0, 4000.0], tags),
        ("my_time", &[0.5, 1500.5, 61_216.0, 3_661_824.0], none),
        ("gauge_time", &[1500.5], none),
        ("counter_time", &[90_000.0], none),
        ("checks", &[1.0, first, 1.0, 1.0, 0.0], none),
        ("group_duration", &[0.01, 0.01], none),
        ("iteration_duration", &[0.1], none),
        ("iterations", &[1.0], none),
        ("data_sent", &[0.0], none),
        ("data_received", &[0.0], none),
    ];
    for (name, values, tags) in samples {
        let id = registry.id(name).expect(name);
        values.iter().for_each(|value| sinks.add(registry, &[(id, *value)], &TagSet::own(tags), Duration::ZERO));
    }
    checks.record("default", "", "in none — ü", true);
    checks.record("default", "::outer", "second", iteration == 0);
    checks.record("default", "::outer", "first", true);
    checks.record("default", "::outer::inner", "second", true);
    checks.record("default", "", "never here", false);
}

impl Run {
    fn summary(&self, elapsed: Duration) -> Summary<'_> {
        let Run { registry, sinks, limits, checks } = self;
        Summary { registry, sinks, elapsed, limits, checks, trend_stats: &STATS, time_unit: None }
    }
}

/// The lines of a text, but for durations that are never the same, and for how wide those make the
/// columns of other trends.
fn lines(text: &str) -> Vec<String> {
    let measured = ["iteration_duration", "group_duration"];
    let same = |line: &&str| !measured.iter().any(|name| line.trim_start().starts_with(name));
    let narrow = |line: &str| match line.split_once("avg=") {
        Some((label, stats)) => format!("{label}avg={}", stats.split_whitespace().collect::<Vec<_>>().join(" ")),
        None => line.to_owned(),
    };
    text.trim_end().lines().filter(same).map(narrow).collect()
}

#[test]
fn trends_stand_below_one_another() {
    let found = run().summary(COMPACT.1).text(Mode::Compact);
    let trends = found.lines().filter(|line| line.contains(": avg="));
    let before_median = trends.filter_map(|line| line.split_once(" med=")).map(|(before, _)| before.chars().count());
    let places: BTreeSet<usize> = before_median.collect();
    assert_eq!(places.len(), 1, "{found}");
}

#[test]
fn texts_are_those_of_k6() {
    for (mode, (expected, elapsed)) in [(Mode::Compact, COMPACT), (Mode::Legacy, LEGACY), (Mode::Full, FULL)] {
        let found = run().summary(elapsed).text(mode);
        assert_eq!(lines(&found), lines(expected), "{mode:?}");
    }
}

#[test]
fn a_part_without_thresholds_is_shown_with_its_metric_alone() {
    let mut run = run();
    run.limits = vec![Limits::new(&mut run.registry, "my_counter{a:b}", Vec::new()).expect("it is there")];
    let found = run.summary(COMPACT.1).text(Mode::Compact);
    assert!(found.contains("{ a:b }") && !found.contains("THRESHOLDS"), "{found}");
}

/// That both have the same names, and the same values but for what was measured.
fn assert_alike(found: &Value, expected: &Value, at: &str) {
    match (found, expected) {
        (Value::Object(found), Value::Object(expected)) => {
            assert_eq!(found.keys().collect::<BTreeSet<_>>(), expected.keys().collect::<BTreeSet<_>>(), "{at}");
            found.iter().for_each(|(name, value)| assert_alike(value, &expected[name], &format!("{at}.{name}")));
        }
        (Value::Array(found), Value::Array(expected)) => {
            assert_eq!(found.len(), expected.len(), "{at}");
            found.iter().zip(expected).for_each(|(found, expected)| assert_alike(found, expected, at));
        }
        _ if at.contains("_duration") || [".rate", "DurationMs"].iter().any(|measured| at.ends_with(measured)) => {}
        _ => assert_eq!(found, expected, "{at}"),
    }
}

#[test]
fn the_json_is_that_of_k6() {
    let run = run();
    let summary = run.summary(COMPACT.1);
    let read = |text| serde_json::from_str::<Value>(text).expect("JSON");
    assert_alike(&summary.export(None), &read(EXPORT), "");
    let output = Output { is_terminal: false, no_color: false };
    assert_alike(&summary.data(None, output), &read(DATA), "");
    let plain = summary.data(None, Output { no_color: true, ..output });
    assert_eq!(plain["options"]["noColor"], true);
}

#[test]
fn thresholds_that_do_not_hold_are_named() {
    assert_eq!(run().summary(Duration::from_secs(1)).crossed(), ["gauge_time", "my_rate", "my_trend", "my_trend{a:b}"]);
}
