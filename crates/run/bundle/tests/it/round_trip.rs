//! What was written reads back the same.

use crate::given::{self, SECOND};
use plimsoll_bundle::{BundleError, BundleWriter, read};
use plimsoll_model::event::Event;
use plimsoll_model::factor::{Assignment, Level};
use plimsoll_model::record::{
    ErrorKind, GeneratorSecond, Interval, LONGEST, RecordedPhase, Subject, TICKS, Tally, Tick, histogram,
};
use plimsoll_model::sample::{DatabaseSample, HostSample, ProcessSample, Samples};
use plimsoll_model::study::Origin;
use plimsoll_model::units::{Instant, Nanos};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::fs;

#[test]
fn a_whole_bundle_reads_back() {
    let folder = tempfile::tempdir().expect("a folder");
    given::complete(folder.path(), 3);
    let contents = read(folder.path()).expect("a bundle");
    assert_eq!(contents.problems, Vec::<String>::new());
    assert!(contents.complete);
    assert_eq!(contents.study, given::STUDY);
    assert_eq!(contents.facts, given::facts());
    assert_eq!(contents.plan, given::plan(3));
    assert_eq!(contents.host, given::host());
    assert_eq!(contents.versions, given::versions());
    assert_eq!(given::numbers(&contents), [1, 2, 3]);
    contents.starts.iter().for_each(given::assert_whole);
}

#[test]
fn a_start_that_failed_in_setup_has_no_load_and_reads_back() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut bundle = given::create(folder.path(), 1);
    given::tell_versions(&mut bundle, &[]);
    given::begin_start(&mut bundle, &given::start(1));
    given::seal_start(&mut bundle, &given::finished(1));
    given::end(&mut bundle, None);
    let contents = read(folder.path()).expect("a bundle");
    assert_eq!(contents.problems, Vec::<String>::new());
    let start = &contents.starts[0];
    assert_eq!(given::facts_of(start), given::finished(1));
    let load = &start.loads[0];
    assert!(load.tallies.is_empty() && load.seconds.is_empty() && load.generator.is_empty());
    assert!(start.processes.is_empty() && start.host.is_empty() && start.databases.is_empty());
}

#[test]
fn the_first_line_of_the_manifest_says_where_the_results_come_from() {
    let folder = tempfile::tempdir().expect("a folder");
    given::complete(folder.path(), 1);
    assert_eq!(read(folder.path()).expect("a bundle").origin, Origin::Measured);
    let path = folder.path().join("manifest.jsonl");
    let text = fs::read_to_string(&path).expect("a manifest");
    let measured = ",\"origin\":\"measured\"";
    assert!(text.lines().next().expect("a line").contains(measured), "{text}");
    let imported =
        |version: Option<&str>| Origin::Imported { tool: "k6".to_owned(), version: version.map(str::to_owned) };
    for (written, expected) in [
        ("", Origin::Measured),
        (",\"origin\":{\"imported\":{\"tool\":\"k6\",\"version\":\"1.2.0\"}}", imported(Some("1.2.0"))),
        (",\"origin\":{\"imported\":{\"tool\":\"k6\",\"version\":null}}", imported(None)),
    ] {
        fs::write(&path, text.replace(measured, written)).expect("a file");
        let contents = read(folder.path()).expect("a bundle");
        assert_eq!((contents.origin, contents.problems), (expected, Vec::new()), "{written}");
    }
}

#[test]
fn a_folder_that_holds_something_is_refused_and_left_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("thesis.txt"), "years of work").expect("a file");
    let refused = BundleWriter::create(folder.path(), given::STUDY, &given::facts(), &given::plan(1), &given::host());
    assert!(matches!(refused, Err(BundleError::NotEmpty(_))), "{refused:?}");
    assert_eq!(fs::read_dir(folder.path()).expect("it is there").count(), 1);
}

#[test]
fn a_new_folder_is_made_with_those_above_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let inner = folder.path().join("results").join("Größe, a b");
    given::complete(&inner, 1);
    assert_eq!(given::numbers(&read(&inner).expect("a bundle")), [1]);
}

#[test]
fn outputs_of_systems_keep_to_the_bundle_whatever_their_names() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut bundle = given::create(folder.path(), 1);
    given::begin_start(&mut bundle, &given::start(1));
    for name in ["../../escape", "/etc/passwd", "a b,c", "größe", ".."] {
        for path in [bundle.folder().output(1, name), bundle.folder().build_log(name)] {
            fs::write(&path, "x").expect("a plain name in a folder that is there");
            assert!(!path.to_string_lossy().contains(['/', ' ', ',']) || path.starts_with(folder.path()));
            assert!(
                path.canonicalize().expect("it was written").starts_with(folder.path().canonicalize().expect("it is"))
            );
        }
    }
}

#[test]
fn events_stand_one_a_line_with_their_time() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut bundle = given::create(folder.path(), 1);
    given::tell(&mut bundle, &Event::Warning { message: "two\nlines".to_owned() });
    given::tell(&mut bundle, &Event::RunFinished { complete: true, decided_after: None });
    let text = fs::read_to_string(folder.path().join("events.jsonl")).expect("a file");
    let events: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).expect("an object")).collect();
    assert_eq!(events.len(), 2);
    assert_eq!((&events[0]["event"], &events[0]["message"]), (&"warning".into(), &"two\nlines".into()));
    assert!(events[0]["at"].as_str().is_some_and(|at| at.ends_with('Z')), "{text}");
}

/// A histogram of any durations, the longest that is kept among them.
fn any_histogram() -> impl Strategy<Value = hdrhistogram::Histogram<u64>> {
    let duration = prop_oneof![Just(0), Just(LONGEST), 0..5_000_u64, 0..=LONGEST];
    prop::collection::vec((duration, 1..1_000_000_000_u64), 0..6).prop_map(|records| {
        let mut histogram = histogram();
        records.iter().for_each(|(value, count)| histogram.record_n(*value, *count).expect("it grows"));
        histogram
    })
}

fn any_errors() -> impl Strategy<Value = BTreeMap<ErrorKind, u64>> {
    prop::collection::btree_map(prop::sample::select(ErrorKind::ALL.to_vec()), 1..u64::from(u32::MAX), 0..4)
}

fn any_tally() -> impl Strategy<Value = Tally> {
    let histograms = (any_histogram(), any_histogram(), any_histogram());
    let counts = (0..1_u64 << 50, 0..1_u64 << 50, 0..1_u64 << 50);
    (histograms, any_errors(), counts).prop_map(
        |((service, response, first_byte), errors, (bytes_out, bytes_in, saturated))| Tally {
            service,
            response,
            first_byte,
            errors,
            bytes_out,
            bytes_in,
            saturated,
        },
    )
}

fn any_subject() -> impl Strategy<Value = Subject> {
    let awkward = ["a, b", "größe", "GET /x/y?z=%20", " led by a space", "a.service", "\"quoted\"", "", "a\r\nb", "#"];
    prop_oneof![
        Just(Subject::Iteration),
        Just(Subject::Connect),
        prop::sample::select(awkward.to_vec()).prop_map(|name| Subject::Request(name.to_owned())),
        any::<String>().prop_map(Subject::Request),
    ]
}

fn any_phase() -> impl Strategy<Value = RecordedPhase> {
    prop::sample::select(vec![RecordedPhase::Warmup, RecordedPhase::Measure])
}

fn any_generator() -> impl Strategy<Value = GeneratorSecond> {
    (any_histogram(), 0..1_u64 << 60, 0..1_u64 << 60, any::<u64>()).prop_map(|(lateness, cpu, stall, users)| {
        let (cpu, stall) = (Nanos(cpu), Nanos(stall));
        GeneratorSecond { lateness, cpu, cpu_busiest: Nanos(cpu.0 / 3), stall, users, ..GeneratorSecond::default() }
    })
}

fn any_ticks() -> impl Strategy<Value = [Tick; TICKS]> {
    let tick = (0..3_u64, any::<u64>()).prop_map(|(iterations, total)| Tick { iterations, total });
    prop::collection::vec(tick, TICKS).prop_map(|ticks| ticks.try_into().expect("as many as a second has"))
}

/// Seconds from -2 on, each of its own length, with any tallies.
pub(crate) fn any_intervals() -> impl Strategy<Value = Vec<Interval>> {
    let tallies = prop::collection::btree_map((any_phase(), any_subject()), any_tally(), 0..4);
    let interval = (tallies, 0..=SECOND.0, any_ticks(), any_generator());
    prop::collection::vec(interval, 0..5).prop_map(|intervals| {
        let numbered = (-2_i64..).zip(intervals);
        let interval = |(second, (tallies, length, ticks, generator))| Interval {
            second,
            length: Nanos(length),
            tallies,
            ticks,
            generator,
        };
        numbered.map(interval).collect()
    })
}

fn any_finite() -> impl Strategy<Value = f64> {
    any::<f64>().prop_filter("it is a number", |number| number.is_finite())
}

fn any_process() -> impl Strategy<Value = ProcessSample> {
    let names = (any::<String>(), any::<String>(), any::<usize>());
    (any_finite(), names, any_finite(), any::<u64>()).prop_map(
        |(at, (machine, system, variant), cpu_cores, resident)| ProcessSample {
            at,
            machine,
            system,
            variant,
            cpu_cores,
            resident,
            ..ProcessSample::default()
        },
    )
}

fn any_host() -> impl Strategy<Value = HostSample> {
    let host = (any_finite(), any::<String>(), any_finite(), any_finite(), any::<u64>());
    host.prop_map(|(at, machine, cpu_cores, steal_cores, runnable)| HostSample {
        at,
        machine,
        cpu_cores,
        steal_cores,
        runnable,
        ..HostSample::default()
    })
}

fn any_counter() -> impl Strategy<Value = DatabaseSample> {
    (any_finite(), any::<String>(), any::<usize>(), any::<String>(), any_finite())
        .prop_map(|(at, database, variant, counter, value)| DatabaseSample { at, database, variant, counter, value })
}

pub(crate) fn assert_same(read: &Tally, written: &Tally) {
    assert!(read.service == written.service, "service");
    assert!(read.response == written.response, "response");
    assert!(read.first_byte == written.first_byte, "first byte");
    assert_eq!(read.errors, written.errors);
    let counts = |tally: &Tally| (tally.bytes_out, tally.bytes_in, tally.saturated);
    assert_eq!(counts(read), counts(written));
}

/// What the measure phase scheduled, merged without a bundle.
pub(crate) fn merged(intervals: &[Interval]) -> BTreeMap<Subject, Tally> {
    let mut all: BTreeMap<Subject, Tally> = BTreeMap::new();
    for ((phase, subject), tally) in intervals.iter().flat_map(|interval| &interval.tallies) {
        if *phase == RecordedPhase::Measure {
            all.entry(subject.clone()).or_default().merge(tally);
        }
    }
    all
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_tallies_of_a_load_are_the_merge_of_what_was_measured(starts in prop::collection::vec(any_intervals(), 1..3)) {
        let folder = tempfile::tempdir().expect("a folder");
        let mut bundle = given::create(folder.path(), starts.len() as u32);
        given::tell_versions(&mut bundle, &[]);
        for (number, intervals) in (1..).zip(&starts) {
            given::begin_start(&mut bundle, &given::start(number));
            given::add_seconds(&mut bundle, 1, Instant(0), intervals);
            given::seal_start(&mut bundle, &given::finished(number));
        }
        given::end(&mut bundle, None);
        let contents = read(folder.path()).expect("a bundle");
        prop_assert_eq!(&contents.problems, &Vec::<String>::new());
        prop_assert_eq!(contents.starts.len(), starts.len());
        for (start, intervals) in contents.starts.iter().zip(&starts) {
            let load = &start.loads[0];
            let expected = merged(intervals);
            prop_assert_eq!(load.tallies.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>());
            for (subject, tally) in &expected {
                assert_same(&load.tallies[subject], tally);
            }
        }
    }

    #[test]
    fn what_ended_before_a_condition_was_steady_is_left_out_of_all_its_loads(
        starts in prop::collection::vec(any_intervals(), 2),
        steady_from in 0_u64..2500,
    ) {
        let folder = tempfile::tempdir().expect("a folder");
        let mut bundle = given::create(folder.path(), 2);
        given::tell_versions(&mut bundle, &[]);
        for (number, intervals) in (1..).zip(&starts) {
            given::begin_start(&mut bundle, &given::start(number));
            given::add_seconds(&mut bundle, 1, Instant(0), intervals);
            let mut finished = given::finished(number);
            if number == 2 {
                finished.loads[0].steadiness.from = Some(Nanos(steady_from * 1_000_000));
            }
            given::seal_start(&mut bundle, &finished);
        }
        given::end(&mut bundle, None);
        let contents = read(folder.path()).expect("a bundle");
        let cut = steady_from.div_ceil(1000) as i64;
        for (start, intervals) in contents.starts.iter().zip(&starts) {
            let load = &start.loads[0];
            prop_assert_eq!(load.cut, cut);
            prop_assert_eq!(load.generator.len(), intervals.len(), "the series keep everything");
            let counted: Vec<Interval> = match cut {
                0 => intervals.clone(),
                cut => intervals.iter().filter(|interval| interval.second >= cut).cloned().collect(),
            };
            for (subject, expected) in merged(&counted) {
                let nothing = Tally::default();
                let found = load.tallies.get(&subject).unwrap_or(&nothing);
                prop_assert!(found.service == expected.service, "service");
                prop_assert!(found.response == expected.response, "response");
                prop_assert!(found.first_byte == expected.first_byte, "first byte");
                prop_assert_eq!(&found.errors, &expected.errors);
            }
        }
    }

    #[test]
    fn ticks_are_written_as_they_passed(intervals in any_intervals()) {
        let folder = tempfile::tempdir().expect("a folder");
        let mut bundle = given::create(folder.path(), 1);
        given::begin_start(&mut bundle, &given::start(1));
        given::add_seconds(&mut bundle, 1, Instant(0), &intervals);
        given::seal_start(&mut bundle, &given::finished(1));
        let text = fs::read_to_string(folder.path().join("starts/0001/ticks.csv")).expect("a table");
        let mut expected = Vec::new();
        for interval in &intervals {
            for (tick, ticked) in interval.ticks.iter().enumerate().filter(|(_, ticked)| ticked.iterations > 0) {
                expected.push(format!("1,{},{},{}", interval.second * 10 + tick as i64, ticked.iterations, ticked.total));
            }
        }
        prop_assert_eq!(text.lines().skip(1).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn the_series_of_a_start_read_back_exactly(
        intervals in any_intervals(),
        processes in prop::collection::vec(any_process(), 0..4),
        host in prop::collection::vec(any_host(), 0..4),
        databases in prop::collection::vec(any_counter(), 0..4),
    ) {
        let folder = tempfile::tempdir().expect("a folder");
        let mut bundle = given::create(folder.path(), 1);
        given::begin_start(&mut bundle, &given::start(1));
        given::add_seconds(&mut bundle, 1, Instant(0), &intervals);
        let samples = Samples { processes: processes.clone(), host: host.clone(), databases: databases.clone(), waits: given::waits(), metrics: given::metrics() };
        given::add_samples(&mut bundle, samples);
        given::seal_start(&mut bundle, &given::finished(1));
        let contents = read(folder.path()).expect("a bundle");
        let start = &contents.starts[0];
        prop_assert_eq!(&start.processes, &processes);
        prop_assert_eq!(&start.host, &host);
        prop_assert_eq!(&start.databases, &databases);
        prop_assert_eq!(&start.waits, &given::waits());
        prop_assert_eq!(&start.metrics, &given::metrics());
        let load = &start.loads[0];
        prop_assert_eq!(load.generator.len(), intervals.len());
        for (row, interval) in load.generator.iter().zip(&intervals) {
            let generator = &interval.generator;
            let cores = if interval.length.0 == 0 { 0.0 } else { generator.cpu.seconds() / interval.length.seconds() };
            prop_assert_eq!((row.second, row.cpu_cores), (interval.second, cores));
            prop_assert_eq!((row.users, row.stall), (generator.users, generator.stall.0));
            prop_assert_eq!(row.lateness_max, generator.lateness.max());
        }
        let mut expected: BTreeMap<(i64, Subject), Tally> = BTreeMap::new();
        for interval in &intervals {
            for ((_, subject), tally) in &interval.tallies {
                expected.entry((interval.second, subject.clone())).or_default().merge(tally);
            }
        }
        prop_assert_eq!(load.seconds.len(), expected.len());
        for (row, ((second, subject), tally)) in load.seconds.iter().zip(&expected) {
            prop_assert_eq!((row.second, &row.subject), (*second, subject));
            prop_assert_eq!((row.count, row.failed), (tally.count(), tally.failed()));
            prop_assert_eq!((row.bytes_out, row.bytes_in), (tally.bytes_out, tally.bytes_in));
            prop_assert_eq!((row.mean, row.max), (tally.service.mean(), tally.service.max()));
            prop_assert_eq!(row.p99, tally.service.value_at_quantile(0.99));
            prop_assert_eq!(row.response_p95, tally.response.value_at_quantile(0.95));
        }
    }

    #[test]
    fn a_run_goes_on_with_any_numbers_as_levels(level in any_finite(), margin in any_finite()) {
        let folder = tempfile::tempdir().expect("a folder");
        let (mut facts, mut plan) = (given::facts(), given::plan(1));
        facts.decide[0].margin = margin;
        plan.variants[1] = Assignment(vec![("mode".to_owned(), Level::Number(level))]);
        drop(BundleWriter::create(folder.path(), given::STUDY, &facts, &plan, &given::host()).expect("an empty folder"));
        let resumed = BundleWriter::resume(folder.path(), given::STUDY, &facts, &plan);
        prop_assert!(resumed.is_ok(), "{resumed:?}");
    }
}
