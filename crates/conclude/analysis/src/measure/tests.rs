use super::*;
use crate::testing::{only_trial, start, with_second};
use plimsoll_model::measure::Noted;
use plimsoll_model::record::ErrorKind;
use plimsoll_model::result::{LoadTiming, PooledLoads, StartResult};
use plimsoll_model::sample::ProcessSample;
use plimsoll_model::units::{Instant, Nanos};
use proptest::prelude::*;

fn value(result: &StartResult, measure: &str) -> OrReason<f64> {
    TrialReader::new(only_trial(result)).value(&measure.parse().expect("a measure"))
}

#[test]
fn durations_come_from_the_histograms() {
    let result = start(1.0); // 1, 2, … 100 ms
    for (measure, expected) in [
        ("request_duration.min", 0.001),
        ("request_duration.med", 0.050),
        ("request_duration.p95", 0.095),
        ("request_duration.max", 0.100),
        ("iteration_duration.avg", 0.0505),
    ] {
        let found = value(&result, measure).expect(measure);
        assert!((found / expected - 1.0).abs() < 0.002, "{measure}: {found} instead of {expected}");
    }
}

#[test]
fn a_percentile_takes_ten_values_beyond_it() {
    let result = start(1.0); // 1,000 iterations of one call
    for (measure, expected) in [
        ("request_duration.p99", Ok(())),
        ("request_duration.p99.9", Err("p99.9 takes 10,000 requests, found 1,000")),
        ("iteration_duration.p99.5", Err("p99.5 takes 2,000 iterations, found 1,000")),
        ("request_duration:call.p1", Ok(())),
        ("connect_duration.p95", Err("no connect was recorded")),
        ("request_duration.max", Ok(())),
    ] {
        assert_eq!(value(&result, measure).map(|_| ()), expected.map_err(str::to_owned), "{measure}");
    }
    let mut few = start(1.0);
    few.loads[0].tallies.get_mut(&Subject::Request("call".to_owned())).expect("requests").service.clear();
    few.loads[0].tallies.get_mut(&Subject::Request("call".to_owned())).expect("requests").service.record(9).expect("1");
    assert_eq!(value(&few, "request_duration.p1"), Err("p1 takes 1,000 requests, found 1".to_owned()));
}

#[test]
fn what_lies_before_the_cut_counts_for_nothing() {
    let mut result = start(1.0);
    result.loads[0].summary.timing.window = Nanos(4_500_000_000);
    result.loads[0].cut = 2;
    result.loads[0].seconds.clear();
    for (second, count) in [(0, 1000), (1, 1000), (2, 30), (3, 50), (4, 20), (5, 7)] {
        with_second(&mut result.loads[0], second, count);
    }
    let sample = |at: f64, resident| ProcessSample { at, resident, ..ProcessSample::default() };
    result.processes = vec![sample(1.0, 90), sample(2.0, 80), sample(3.0, 10), sample(4.0, 20)];
    assert_eq!(value(&result, "iterations.count"), Ok(100.0));
    assert_eq!(value(&result, "iterations.rate"), Ok(40.0), "over the two and a half seconds that are left");
    assert_eq!(value(&result, "memory.max"), Ok(20.0));
    result.loads[0].cut = 5;
    assert_eq!(value(&result, "iterations.rate"), Err("nothing was measured".to_owned()));
}

#[test]
fn what_is_no_number_is_no_value() {
    let mut result = start(1.0);
    let sample = |cpu_cores| ProcessSample { at: 1.0, cpu_cores, ..ProcessSample::default() };
    for cpu_cores in [f64::NAN, f64::INFINITY] {
        result.processes = vec![sample(cpu_cores)];
        assert_eq!(value(&result, "cpu.max"), Err("what was recorded is no number".to_owned()));
    }
}

#[test]
fn slices_that_do_not_count_use_processors_as_well() {
    // Two variants, a second each in turn, of twenty turns; each uses one core while it is loaded.
    let of_turns = |left_out: std::ops::Range<i64>| {
        let mut slices = PooledLoads::default();
        let mut result = start(1.0);
        for second in 0..40 {
            let mut slice = start(1.0).loads.remove(0);
            slice.summary.load.variant = usize::from(second % 2 == 1);
            slice.summary.load.lengths.warmup = Duration::from_millis(100);
            slice.summary.timing =
                LoadTiming { zero: Instant(second * 1_000_000_000 + 100_000_000), window: Nanos(900_000_000) };
            if left_out.contains(&(second / 2)) {
                slices.leave_out(&slice.summary);
            } else {
                slices.add(&slice);
            }
            for variant in [0, 1] {
                let cpu_cores = if slice.summary.load.variant == variant { 1.0 } else { 0.0 };
                let at = (second + 1) as f64;
                result.processes.push(ProcessSample { at, variant, cpu_cores, ..ProcessSample::default() });
            }
        }
        result.loads = slices.finish();
        result
    };
    for left_out in [0..0, 6..14, 0..3, 17..20] {
        let result = of_turns(left_out.clone());
        for measure in ["cpu.avg", "cpu.max"] {
            let found = value(&result, measure).expect(measure);
            assert!((found - 1.0).abs() < 0.01, "{measure} without {left_out:?}: {found}");
        }
    }
}

#[test]
fn rates_count_what_ended_inside_the_window() {
    let mut result = start(1.0); // a window of 2 s
    result.loads[0].seconds.clear();
    for (second, count) in [(-1, 1000), (0, 30), (1, 50), (2, 7)] {
        with_second(&mut result.loads[0], second, count);
    }
    assert_eq!(value(&result, "iterations.rate"), Ok(40.0));
    assert_eq!(value(&result, "iterations.count"), Ok(80.0));
    assert_eq!(value(&result, "data_sent.rate"), Ok(40.0 * 10.0));
}

#[test]
fn new_orders_are_those_that_were_committed_in_a_minute() {
    let mut result = start(1.0); // a window of 2 s
    assert_eq!(
        value(&result, "new_orders.rate"),
        Err("no new_order was recorded: that is a transaction of TPC-C".to_owned())
    );
    for (second, step, count, failed) in
        [(-1, "new_order", 90, 0), (0, "new_order", 10, 2), (1, "new_order", 9, 0), (1, "new_order_rollback", 5, 0)]
    {
        let subject = Subject::Request(step.to_owned());
        result.loads[0].seconds.push(LoadSecond { count, failed, ..LoadSecond::empty(second, subject) });
    }
    assert_eq!(value(&result, "new_orders.count"), Ok(17.0), "neither failed ones nor those rolled back by intent");
    assert_eq!(value(&result, "new_orders.rate"), Ok(17.0 / 2.0 * 60.0));
}

#[test]
fn samples_of_one_system_in_a_second_are_never_added() {
    for (samples, expected) in [
        (&[("a", 1.0, 5), ("a", 2.0, 7)][..], &[(0, 5.0), (1, 7.0)][..]),
        (&[("a", 1.001, 5), ("a", 1.9985, 7), ("a", 2.36, 9)], &[(0, 5.0), (1, 7.0)]),
        (&[("a", 1.6, 5), ("a", 2.1, 7)], &[(1, 7.0)]),
        (&[("a", 1.001, 5), ("b", 0.949, 2), ("b", 1.3, 3)], &[(0, 7.0)]),
        (&[("a", 0.4, 5), ("a", 3.2, 7)], &[]),
    ] {
        let mut result = start(1.0);
        result.loads[0].summary.timing.window = Nanos(2_400_000_000);
        result.processes = samples
            .iter()
            .map(|&(system, at, resident)| ProcessSample {
                at,
                system: system.to_owned(),
                resident,
                ..ProcessSample::default()
            })
            .collect();
        let sums = samples::by_second(only_trial(&result), None, |sample| sample.resident as f64);
        assert_eq!(sums, expected.iter().copied().collect(), "{samples:?}");
    }
}

#[test]
fn telemetry_adds_systems_and_keeps_to_the_window() {
    let mut result = start(1.0);
    let sample = |at: f64, system: &str, cpu_cores: f64| ProcessSample {
        at,
        system: system.to_owned(),
        cpu_cores,
        ..ProcessSample::default()
    };
    result.processes = vec![
        sample(0.0, "web", 9.0),
        sample(1.0, "web", 0.5),
        sample(1.0, "base", 0.25),
        sample(2.0, "web", 0.7),
        sample(2.0, "base", 0.25),
        sample(3.0, "web", 9.0),
    ];
    assert!((value(&result, "cpu.avg").expect("samples") - 0.85).abs() < 1e-12);
    assert!((value(&result, "cpu.max").expect("samples") - 0.95).abs() < 1e-12);
    assert!((value(&result, "cpu:base.avg").expect("samples") - 0.25).abs() < 1e-12);
    assert_eq!(value(&result, "cpu:none.avg"), Err("no sample lies in the measure phase".to_owned()));
}

#[test]
fn what_is_missing_says_why() {
    let result = start(1.0);
    assert_eq!(value(&result, "response_time.p95"), Err("there is no response time in closed load".to_owned()));
    assert_eq!(value(&result, "connect_duration.p95"), Err("no connect was recorded".to_owned()));
    assert_eq!(value(&result, "request_duration:other.p95"), Err("no request:other was recorded".to_owned()));
}

#[test]
fn parts_are_read_by_step_or_all_together() {
    let mut result = start(1.0);
    for (step, milliseconds) in [("write", 2), ("copy", 4)] {
        let mut tally = Tally::default();
        tally.service.record_n(milliseconds * 1_000_000, 30).expect("in range");
        result.loads[0].tallies.insert(Subject::Part(Part::Sync, step.to_owned()), tally);
        let subject = Subject::Part(Part::Subrequest, step.to_owned());
        result.loads[0].seconds.push(LoadSecond { count: 30, ..LoadSecond::empty(0, subject) });
    }
    for (measure, expected) in
        [("sync_duration:write.avg", 0.002), ("sync_duration.avg", 0.003), ("sync_duration.max", 0.004)]
    {
        let found = value(&result, measure).expect(measure);
        assert!((found / expected - 1.0).abs() < 0.002, "{measure}: {found} instead of {expected}");
    }
    assert_eq!(value(&result, "subrequests.rate"), Ok(30.0));
    assert_eq!(value(&result, "requests.count"), Ok(100.0), "what a request consists of is not counted again");
    assert_eq!(value(&result, "open_duration:write.med"), Err("no open was timed apart of write".to_owned()));
    assert_eq!(value(&result, "sync_duration:write.p95"), Err("p95 takes 200 operations, found 30".to_owned()));
}

#[test]
fn what_a_script_checks_and_counts_is_read_by_name() {
    let mut result = start(1.0); // a window of 2 s
    let tally = |values: &[f64], failed: u64| {
        let mut tally = Tally::default();
        for value in values {
            tally.service.record((value * METRIC_SCALE) as u64).expect("in range");
        }
        tally.errors.extend((failed > 0).then_some((ErrorKind::Check, failed)));
        tally
    };
    let check = |name: &str| Subject::Check(name.to_owned());
    let custom = |metric, name: &str| Subject::Custom(metric, name.to_owned());
    result.loads[0].tallies.extend([
        (check("status is 200"), tally(&[0.0; 8], 2)),
        (check("fast: yes"), tally(&[0.0; 2], 2)),
        (custom(Metric::Counter, "orders"), tally(&[1.0, 3.0, 6.0], 0)),
        (custom(Metric::Rate, "in time"), tally(&[1.0, 0.0, 1.0, 1.0], 1)),
        (custom(Metric::Trend, "wait"), tally(&[2.5, 7.5], 0)),
    ]);
    for (measure, expected) in [
        ("checks.ratio", 0.6),
        ("checks:status is 200.ratio", 0.75),
        ("counter:orders.count", 10.0),
        ("counter:orders.rate", 5.0),
        ("rate:in time.ratio", 0.75),
        ("trend:wait.avg", 5.0),
        ("trend:wait.max", 7.5),
    ] {
        let found = value(&result, measure).expect(measure);
        assert!((found / expected - 1.0).abs() < 0.002, "{measure}: {found} instead of {expected}");
    }
    let plain: Measure = "trend:wait.avg".parse().expect("a measure");
    let timed = Measure { noted: Some(Noted::TIMES), ..plain };
    let found = TrialReader::new(only_trial(&result)).value(&timed).expect("values");
    assert!((found / 0.005 - 1.0).abs() < 0.002, "{found} s instead of 5 ms");
    assert_eq!(value(&result, "trend:wait.p95"), Err("p95 takes 200 values, found 2".to_owned()));
    assert_eq!(value(&result, "checks:none.ratio"), Err("no check `none` was made".to_owned()));
    assert_eq!(value(&result, "gauge:none.max"), Err("the script recorded no gauge:none".to_owned()));
}

#[test]
fn errors_are_a_share_of_all_exchanges() {
    let mut result = start(1.0);
    let tally = result.loads[0].tallies.get_mut(&Subject::Request("call".to_owned())).expect("requests");
    tally.errors.insert(ErrorKind::Timeout, 5);
    assert_eq!(value(&result, "errors.ratio"), Ok(0.005));
    assert_eq!(value(&result, "errors.count"), Ok(5.0));
}

#[test]
fn iterations_that_fail_by_themselves_are_errors_too() {
    let mut result = start(1.0);
    let failed = |result: &mut StartResult, subject: Subject, kind, failed| {
        let tally = result.loads[0].tallies.get_mut(&subject).expect("it is there");
        tally.errors.insert(kind, failed);
    };
    failed(&mut result, Subject::Request("call".to_owned()), ErrorKind::Timeout, 5);
    failed(&mut result, Subject::Iteration, ErrorKind::Timeout, 5);
    assert_eq!(value(&result, "errors.count"), Ok(5.0), "an exchange that fails takes its iteration along");
    failed(&mut result, Subject::Iteration, ErrorKind::Script, 20);
    assert_eq!(value(&result, "errors.count"), Ok(25.0));
    assert_eq!(value(&result, "failed_iterations.count"), Ok(25.0));
    assert_eq!(value(&result, "failed_iterations.ratio"), Ok(0.025));
    assert_eq!(value(&result, "errors.ratio"), Ok(25.0 / 1020.0));
}

proptest! {
    #[test]
    fn the_order_of_merging_does_not_matter(
        first in prop::collection::vec(1_u64..10_000_000_000, 1..40),
        second in prop::collection::vec(1_u64..10_000_000_000, 1..40),
    ) {
        let tally = |values: &[u64]| {
            let mut tally = Tally::default();
            values.iter().for_each(|value| tally.service.record(*value).expect("in range"));
            tally
        };
        let named = |names: [&str; 2]| {
            let mut result = start(1.0);
            result.loads[0].tallies = [(names[0], tally(&first)), (names[1], tally(&second))]
                .into_iter()
                .map(|(name, tally)| (Subject::Request(name.to_owned()), tally))
                .collect();
            result
        };
        for measure in ["request_duration.med", "request_duration.avg", "request_duration.max"] {
            let forward = value(&named(["a", "b"]), measure).expect("requests");
            let backward = value(&named(["b", "a"]), measure).expect("requests");
            prop_assert!((forward - backward).abs() <= forward * 1e-12);
        }
    }
}
