//! Starts of several variants with several loads: each load reads back with what is its own.

use crate::given::{self, SECOND};
use crate::round_trip::{any_intervals, assert_same, merged};
use plimsoll_bundle::{BundleWriter, Contents, read};
use plimsoll_model::plan::Plan;
use plimsoll_model::record::{ErrorKind, Interval, Subject, Tally};
use plimsoll_model::result::{FinishedStart, LoadResult, LoadSummary, LoadTiming, Steadiness, Work};
use plimsoll_model::sample::{DatabaseSample, ProcessSample, Samples};
use plimsoll_model::start::{Load, Start, Validity};
use plimsoll_model::units::{Instant, Nanos};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// The variants that take the loads, in order.
const VARIANTS: [usize; 3] = [1, 0, 1];

/// The begins of the measure phases in nanoseconds; the later ones are not at whole seconds.
const ZEROS: [i64; 3] = [0, 7_250_000_000, 14_500_499_999];

/// A load of a start as it is to be written.
struct Written {
    summary: LoadSummary,
    intervals: Vec<Interval>,
}

/// The only start of the plan: both variants are alive on it.
fn start() -> Start {
    Start { variants: vec![1, 0], ..given::start(1) }
}

fn plan() -> Plan {
    Plan { starts: vec![start()], ..given::plan(1) }
}

/// The short facts of the load `number`, each of which tells the loads apart.
fn summary(number: u32, zero: i64) -> LoadSummary {
    let variant = VARIANTS[number as usize - 1];
    LoadSummary {
        warnings: vec![format!("of load {number}")],
        timing: LoadTiming { zero: Instant(zero), window: Nanos(2 * SECOND.0 + u64::from(number)) },
        ..given::load_summary(Load { number, variant, turn: 1, beside: None, rung: None, lengths: given::lengths() })
    }
}

/// Three loads of a second of warm-up and two that are measured. In the last second of the last
/// load, errors are time-outs.
fn loads() -> Vec<Written> {
    let load = |(number, zero)| Written { summary: summary(number, zero), intervals: given::intervals(10 * number) };
    let mut loads: Vec<Written> = (1..).zip(ZEROS).map(load).collect();
    for tally in loads[2].intervals[2].tallies.values_mut() {
        tally.errors = BTreeMap::from([(ErrorKind::Timeout, 1)]);
    }
    loads[0].summary.validity = Validity::Void(vec!["the generator was the limit".to_owned()]);
    loads[1].summary.work = Work::Script(given::script());
    loads
}

/// One sample of each variant, whose systems run on different machines.
fn processes() -> Vec<ProcessSample> {
    let sample = |variant: usize, machine: &str| {
        let known = given::processes()[0].clone();
        ProcessSample { variant, machine: machine.to_owned(), ..known }
    };
    vec![sample(1, "local"), sample(0, "second, other")]
}

/// One sample of each variant.
fn counters() -> Vec<DatabaseSample> {
    start()
        .variants
        .iter()
        .map(|variant| DatabaseSample { variant: *variant, ..given::counters()[0].clone() })
        .collect()
}

fn finished(loads: &[Written]) -> FinishedStart {
    let loads = loads.iter().map(|load| load.summary.clone()).collect();
    FinishedStart { summary: given::start_summary(start()), loads }
}

/// A complete bundle of one start with these loads.
fn write(folder: &Path, loads: &[Written]) -> Contents {
    let mut bundle =
        BundleWriter::create(folder, given::STUDY, &given::facts(), &plan(), &given::host()).expect("an empty folder");
    given::tell_versions(&mut bundle, &given::versions());
    given::begin_start(&mut bundle, &start());
    for Written { summary, intervals } in loads {
        given::add_seconds(&mut bundle, summary.load.number, summary.timing.zero, intervals);
    }
    let samples = Samples {
        processes: processes(),
        host: given::host_series(),
        databases: counters(),
        waits: given::waits(),
        metrics: given::metrics(),
    };
    given::add_samples(&mut bundle, samples);
    given::seal_start(&mut bundle, &finished(loads));
    given::end(&mut bundle, None);
    let contents = read(folder).expect("a bundle");
    assert_eq!(contents.problems, Vec::<String>::new());
    contents
}

fn errors(load: &LoadResult) -> BTreeMap<ErrorKind, u64> {
    load.tallies[&Subject::Iteration].errors.clone()
}

/// Slices of both variants in four turns, of which the third is void for one of them.
fn slices() -> Vec<Written> {
    let order = [1, 0, 0, 1, 1, 0, 0, 1];
    let slice = |(number, variant): (u32, usize)| {
        let turn = number.div_ceil(2);
        let mut summary =
            given::load_summary(Load { number, variant, turn, beside: None, rung: None, lengths: given::lengths() });
        summary.timing = LoadTiming { zero: Instant(i64::from(number - 1) * 5_000_000_000), window: SECOND };
        if number == 5 {
            summary.validity = Validity::Void(vec!["a stall".to_owned()]);
        }
        Written { summary, intervals: given::intervals(number) }
    };
    (1..).zip(order).map(slice).collect()
}

#[test]
fn a_slice_reads_back_with_the_variant_before_it_also_where_that_does_not_count() {
    let mut slices = slices();
    // A turn that does not count leaves three, of which a start would need four: they all come back.
    for known in slices.iter().map(|slice| slice.summary.clone()).collect::<Vec<_>>() {
        let Load { number, turn, .. } = known.load;
        let load = Load { number: number + 8, turn: turn + 4, ..known.load };
        let zero = Instant(known.timing.zero.0 + 40_000_000_000);
        let summary =
            LoadSummary { load, validity: Validity::Valid, timing: LoadTiming { zero, ..known.timing }, ..known };
        slices.push(Written { summary, intervals: given::intervals(load.number) });
    }
    let folder = tempfile::tempdir().expect("a folder");
    let contents = write(folder.path(), &slices);
    let of = |variant: usize| {
        let load = contents.starts[0].loads.iter().find(|load| load.summary.load.variant == variant).expect("a load");
        load.slices.iter().map(|slice| (slice.turn, slice.after)).collect::<Vec<_>>()
    };
    // In the third turn, which is left out, variant 0 was last.
    assert_eq!(of(1), [(1, None), (2, Some(0)), (4, Some(0)), (5, Some(1)), (6, Some(0)), (7, Some(1)), (8, Some(0))]);
    assert_eq!(
        of(0),
        [(1, Some(1)), (2, Some(0)), (4, Some(0)), (5, Some(1)), (6, Some(0)), (7, Some(1)), (8, Some(0))]
    );
}

#[test]
fn each_load_of_a_start_reads_back_with_its_own_rows_histograms_and_errors() {
    let folder = tempfile::tempdir().expect("a folder");
    let contents = write(folder.path(), &loads());
    assert_eq!(contents.plan, plan());
    let [start] = &contents.starts[..] else { panic!("one start: {contents:?}") };
    assert_eq!(given::facts_of(start), finished(&loads()));
    for (number, load) in (1..).zip(&start.loads) {
        assert_eq!(load.cut, 0);
        given::assert_load(load, 10 * number);
        assert!(load.seconds.iter().all(|row| row.load == number));
        assert_eq!(
            load.generator.iter().map(|row| (row.load, row.second)).collect::<Vec<_>>(),
            [-1, 0, 1].map(|second| (number, second))
        );
    }
    let of_status = BTreeMap::from([(ErrorKind::Status, 2)]);
    let with_timeouts = BTreeMap::from([(ErrorKind::Status, 1), (ErrorKind::Timeout, 1)]);
    assert_eq!(start.loads.iter().map(errors).collect::<Vec<_>>(), [of_status.clone(), of_status, with_timeouts]);
}

#[test]
fn samples_of_a_start_keep_the_variant_that_they_are_of() {
    let folder = tempfile::tempdir().expect("a folder");
    let contents = write(folder.path(), &loads());
    let start = &contents.starts[0];
    assert_eq!((&start.processes, &start.databases), (&processes(), &counters()));
    assert_eq!(start.host, given::host_series());
    let ready: Vec<u64> = start.trials().map(|trial| trial.ready_after().0).collect();
    assert_eq!(ready, VARIANTS.map(|variant| 1_234_567 + variant as u64), "each load finds its systems");
}

#[test]
fn what_a_load_did_before_its_condition_was_steady_is_left_out_of_each_load() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut loads = loads();
    loads[1].summary.steadiness = Steadiness { from: Some(Nanos(400_000_000)), ..Steadiness::default() };
    let contents = write(folder.path(), &loads);
    for (number, load) in (1..).zip(&contents.starts[0].loads) {
        let iterations = &load.tallies[&Subject::Iteration];
        assert_eq!((load.cut, iterations.count(), iterations.bytes_in), (1, 3, 300), "load {number}");
        assert!(iterations.service.equivalent(iterations.service.max(), 10_000_000 * number), "load {number}");
        assert_eq!((load.seconds.len(), load.generator.len()), (6, 3), "the series keep everything");
    }
    let of_status = BTreeMap::from([(ErrorKind::Status, 1)]);
    let with_timeouts = BTreeMap::from([(ErrorKind::Timeout, 1)]);
    let found: Vec<_> = contents.starts[0].loads.iter().map(errors).collect();
    assert_eq!(found, [of_status.clone(), of_status, with_timeouts]);
}

#[test]
fn a_load_that_was_not_offered_is_empty_beside_one_that_was() {
    let folder = tempfile::tempdir().expect("a folder");
    for (index, name) in ["first", "second"].into_iter().enumerate() {
        let mut loads = loads();
        loads.truncate(2);
        loads[index].intervals.clear();
        loads[index].summary = LoadSummary::not_offered(loads[index].summary.load);
        let contents = write(&folder.path().join(name), &loads);
        let read = &contents.starts[0].loads;
        assert_eq!(read[index].summary, loads[index].summary);
        assert!(read[index].tallies.is_empty() && read[index].seconds.is_empty() && read[index].generator.is_empty());
        given::assert_load(&read[1 - index], 10 * (2 - index as u32));
    }
}

#[test]
fn each_load_has_a_console_of_its_own_that_is_sealed() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut bundle = given::create(folder.path(), 1);
    given::begin_start(&mut bundle, &given::start(1));
    (1..=3).for_each(|number| given::add_lines(&mut bundle, number, &format!("{number}\n")));
    given::seal_start(&mut bundle, &given::finished(1));
    let manifest = fs::read_to_string(folder.path().join("manifest.jsonl")).expect("a manifest");
    for (number, name) in (1..).zip(["console.log", "console-2.log", "console-3.log"]) {
        let text = fs::read_to_string(folder.path().join("starts/0001").join(name)).expect("a file");
        assert_eq!(text, format!("{number}\n"));
        assert!(manifest.contains(&format!("\"starts/0001/{name}\"")), "{manifest}");
    }
}

/// The begins of three measure phases: those of later loads some seconds after the ones before.
fn any_zeros() -> impl Strategy<Value = [i64; 3]> {
    let distance = 4_000_000_000..1_000_000_000_000_i64;
    (distance.clone(), distance).prop_map(|(second, third)| [0, second, second + third])
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_tallies_of_each_load_are_the_merge_of_what_it_measured_from_the_cut_on(
        intervals in prop::collection::vec(any_intervals(), 3),
        zeros in any_zeros(),
        steady in (0_usize..3, 0_u64..2500),
    ) {
        let folder = tempfile::tempdir().expect("a folder");
        let load = |((number, zero), intervals)| Written { summary: summary(number, zero), intervals };
        let mut loads: Vec<Written> = (1..).zip(zeros).zip(intervals).map(load).collect();
        let (last, steady_from) = steady;
        loads[last].summary.steadiness.from = Some(Nanos(steady_from * 1_000_000));
        let contents = write(folder.path(), &loads);
        let cut = steady_from.div_ceil(1000) as i64;
        for (read, written) in contents.starts[0].loads.iter().zip(&loads) {
            prop_assert_eq!((&read.summary, read.cut), (&written.summary, cut));
            prop_assert_eq!(read.generator.len(), written.intervals.len(), "the series keep everything");
            let counted = |interval: &&Interval| cut == 0 || interval.second >= cut;
            let counted: Vec<Interval> = written.intervals.iter().filter(counted).cloned().collect();
            for (subject, expected) in merged(&counted) {
                let nothing = Tally::default();
                let found = read.tallies.get(&subject).unwrap_or(&nothing);
                if cut == 0 {
                    assert_same(found, &expected);
                }
                prop_assert!(found.service == expected.service, "service");
                prop_assert!(found.response == expected.response, "response");
                prop_assert!(found.first_byte == expected.first_byte, "first byte");
                prop_assert_eq!(&found.errors, &expected.errors);
            }
        }
    }
}
