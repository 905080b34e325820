use super::testing::{TrialPlace, around, record, storage_of, study, with_facts};
use super::{Cell, Row, StorageReport, Table};
use crate::finding::Finding;
use crate::testing::placed;
use crate::{Input, analyse};
use plimsoll_model::factor::{Assignment, Level};
use plimsoll_model::record::{ErrorKind, Part, Subject, Tally};
use plimsoll_model::result::GeneratorRow;
use plimsoll_model::start::{Start, Validity};
use plimsoll_model::storage::{FILE_ALONE, FileSystem, Operation, Residency};
use proptest::prelude::*;

fn report(input: &Input) -> StorageReport {
    analyse(input).storage.expect("a storage study")
}

fn table(report: &StorageReport, operation: Operation) -> &Table {
    report.tables.iter().find(|table| table.step.operation == operation).expect("a table")
}

fn notes_of(input: &Input, operation: Operation) -> Vec<String> {
    table(&report(input), operation).notes.clone()
}

fn finding(input: &Input, topic: &str) -> Option<Finding> {
    analyse(input).findings.into_iter().find(|finding| finding.topic == topic)
}

/// Three back ends of which the first is fastest up to 1 MB and the second from 10 MB on.
fn crossing() -> Input {
    let times = [[1.0, 3.0, 100.0, 900.0], [20.0, 30.0, 50.0, 300.0], [90.0, 200.0, 400.0, 2000.0]];
    study(&["local", "nfs", "s3"], 4, 5, |TrialPlace { back_end, size, repeat }, _| {
        around(times[back_end][size], repeat, 40)
    })
}

#[test]
fn another_study_has_no_storage() {
    let input = crate::testing::input(3, |_| crate::testing::start(1.0));
    assert_eq!(analyse(&input).storage, None);
}

#[test]
fn a_cell_tells_of_all_operations_and_its_interval_of_trials() {
    let input = study(&["local", "nfs"], 1, 3, |TrialPlace { repeat, .. }, _| vec![10.0 * f64::from(repeat + 1); 30]);
    let report = report(&input);
    let cell = table(&report, Operation::Write).rows[0].cells[0].as_ref().expect("a cell");
    let close = |one: f64, other: f64| (one / other - 1.0).abs() < 1e-3;
    assert!(close(cell.mean, 0.020) && close(cell.quantiles.p50, 0.020), "{cell:?}");
    assert!(close(cell.sd.expect("a spread"), 0.008_210), "of 90 operations: {cell:?}");
    assert!(close(cell.bytes_per_second.expect("objects are moved"), 5_000_000.0), "100 KB in 20 ms");
    assert_eq!((cell.operations, cell.trials.len(), cell.failed), (90, 3, 0));
    // Logarithms of 10, 20, 30: mean 2.9 and sd 0.556, t(0.975, 2) = 4.3027.
    let interval = cell.interval.as_ref().expect("three trials");
    assert!(close(interval.low, 0.004_569) && close(interval.high, 0.072_26), "{interval:?}");
    assert_eq!(cell.quantiles.p95, None, "90 operations are too few");
}

#[test]
fn who_is_fastest_is_told_by_ranges_of_sizes_with_the_crossover() {
    let notes = notes_of(&crossing(), Operation::Write);
    assert_eq!(
        notes[..4],
        [
            "local is the fastest from 100KB to 1MB: the next takes 20 times as long at 100KB (nfs), 10 times as long at 1MB \
             (nfs).",
            "nfs is the fastest from 10MB to 100MB: the next takes 2 times as long at 10MB (local), 3 times as long at 100MB \
             (local).",
            "A crossover lies between 1MB, where local is the fastest, and 10MB, where nfs is.",
            "s3 is the slowest at all sizes.",
        ]
    );
}

#[test]
fn where_intervals_overlap_nothing_is_claimed() {
    let alike = study(&["local", "nfs"], 2, 4, |TrialPlace { repeat, .. }, _| around(10.0, repeat, 40));
    let notes = notes_of(&alike, Operation::Write);
    assert_eq!(
        notes,
        [
            "Nobody is shown to be the fastest at all sizes: the intervals of local and nfs overlap.",
            "Nobody is shown to be the steadiest at any size."
        ]
    );
    let two_ahead = study(&["local", "nfs", "s3"], 1, 4, |TrialPlace { back_end, repeat, .. }, _| {
        around(if back_end == 2 { 90.0 } else { 10.0 }, repeat, 40)
    });
    let notes = notes_of(&two_ahead, Operation::Read);
    assert!(notes[0].starts_with("local and nfs are ahead at 100KB; their intervals overlap"), "{notes:?}");
    assert_eq!(notes[1], "s3 is the slowest at 100KB.");
}

#[test]
fn without_intervals_nothing_is_claimed() {
    let once = study(&["local", "nfs"], 1, 1, |TrialPlace { back_end, .. }, _| vec![1.0 + back_end as f64; 30]);
    let notes = notes_of(&once, Operation::Write);
    assert_eq!(
        notes[0],
        "Who is the fastest at 100KB cannot be said: local has no interval (one repeat has no spread)."
    );
    let mut after_each_other = crossing();
    for result in &mut after_each_other.starts {
        result.summary.timing.started_unix_ms += 1_000_000 * result.summary.start.variants[0] as i64;
    }
    let notes = notes_of(&after_each_other, Operation::Write);
    assert_eq!(notes[0], "Who is the fastest at all sizes cannot be said: variants did not take turns.");
}

#[test]
fn the_steadiest_is_told_by_the_spread_inside_trials() {
    let input = study(&["local", "nfs"], 1, 4, |TrialPlace { back_end, repeat, .. }, _| {
        let wide = if back_end == 0 { 0.01 } else { 0.5 } * (1.0 + f64::from(repeat) / 20.0);
        (0..50).map(|index| 10.0 * (1.0 + wide * (f64::from(index) / 25.0 - 1.0))).collect()
    });
    let notes = notes_of(&input, Operation::Write);
    assert!(
        notes[1].starts_with("local is the steadiest at 100KB: the operations of a trial differ by ±0.6 %"),
        "{notes:?}"
    );
    assert!(notes[1].ends_with("those of the next by ±32 % (nfs)."), "{notes:?}");
}

#[test]
fn outliers_that_part_mean_and_median_are_named() {
    let input = study(&["local", "nfs"], 1, 3, |TrialPlace { back_end, repeat, .. }, operation| {
        let mut times = around(2.0, repeat, 40);
        if (back_end, repeat, operation) == (1, 1, Operation::Read) {
            times[..2].copy_from_slice(&[300.0, 300.0]);
        }
        times
    });
    let report = report(&input);
    let notes = &table(&report, Operation::Read).notes;
    let note = notes.iter().find(|note| note.starts_with("nfs at 100KB")).expect("a note");
    assert!(note.contains("2 of 120 operations took more than 5 times the median, and 72 % of all the time"), "{note}");
    assert!(note.contains("without, the mean is 2.02 ms. All of them were in trial 3"), "{note}");
    assert!(!table(&report, Operation::Write).notes.iter().any(|note| note.contains("median")));
}

#[test]
fn a_mean_above_the_median_without_outliers_is_told_as_such() {
    let input = study(&["local"], 1, 3, |_, _| [vec![1.0; 60], vec![4.0; 40]].concat());
    let notes = notes_of(&input, Operation::Write);
    assert_eq!(
        notes,
        [
            "local at 100KB: mean 2.20 ms, median 1.00 ms, standard deviation 1.47 ms. The times lie far apart; none is more than \
          5 times the median."
        ]
    );
}

#[test]
fn reads_from_the_page_cache_are_named_as_such() {
    let input = with_facts(crossing(), 0, |facts| {
        facts.residency = Some(Residency { pages: 1000, cached: if facts.size < 5_000_000 { 900 } else { 100 } });
    });
    let report = report(&input);
    let notes = &table(&report, Operation::Read).notes;
    assert!(notes[0].starts_with("local is the fastest from 100KB to 1MB (from the page cache, not from storage)"));
    let note = notes.last().expect("a note");
    assert!(note.starts_with("local from 100KB to 1MB: 90 % or more of what was read lay in the page cache"), "{note}");
    assert!(!table(&report, Operation::Write).notes.iter().any(|note| note.contains("cache")));
    assert_eq!(finding(&input, "cache, not storage").expect("a finding").evidence, ["read, local: 100KB, 1MB"]);
    assert_eq!(finding(&crossing(), "cache, not storage"), None);
}

#[test]
fn writes_say_whether_they_last() {
    let input = with_facts(crossing(), 0, |facts| facts.mode = "durable".to_owned());
    let input = with_facts(input, 2, |facts| facts.kind = "S3".to_owned());
    let evidence = |input: &Input| finding(input, "not durable").expect("a finding").evidence;
    assert_eq!(evidence(&input), ["write, nfs: 100KB, 1MB, 10MB, 100MB"]);
    let file_alone = with_facts(input, 0, |facts| facts.mode = FILE_ALONE.to_owned());
    assert_eq!(evidence(&file_alone).len(), 1, "synced it is, and its mode says what not");
    assert!(report(&file_alone).back_ends[0].facts.contains(&format!("mode {FILE_ALONE}")));
}

#[test]
fn servers_of_this_machine_and_shared_disks_are_told() {
    let disk = |facts: &mut plimsoll_model::storage::StorageFacts| {
        let system = FileSystem { kind: "ext4".to_owned(), source: "/dev/sda1".to_owned(), ..FileSystem::default() };
        facts.file_system = Some(system);
    };
    let mut input = with_facts(with_facts(crossing(), 0, disk), 1, disk);
    input = with_facts(input, 2, |facts| {
        facts.kind = "S3".to_owned();
        facts.page_cache = false;
    });
    input.facts.loopback = true;
    let sentence = finding(&input, "loopback").expect("a finding").sentence;
    assert!(sentence.starts_with("target = loopback for s3:"), "{sentence}");
    let shared = finding(&input, "one file system").expect("a finding").evidence;
    assert_eq!(shared, ["/dev/sda1 (ext4): local and nfs"]);
    let facts = &report(&input).back_ends;
    assert!(facts[2].facts.contains(&"target = loopback".to_owned()), "{facts:?}");
    assert!(facts[0].facts.iter().any(|fact| fact.starts_with("on ext4 (/dev/sda1")), "{facts:?}");
}

#[test]
fn what_makes_numbers_look_better_and_what_stays_behind_is_told() {
    let mut input = with_facts(crossing(), 1, |facts| facts.payload = "zeros".to_owned());
    let storage = storage_of(&mut input.starts[0].loads[0]).expect("facts");
    storage.left_behind = vec!["/data/local/x: permission denied".to_owned()];
    input.starts[0].summary.validity = Validity::Failed(vec!["it hung".to_owned()]);
    let content = finding(&input, "content that compresses").expect("a finding").sentence;
    assert!(content.contains("easy to compress (zeros)"), "{content}");
    let left = finding(&input, "left behind").expect("a finding");
    assert_eq!(left.evidence, ["trial 1: /data/local/x: permission denied"]);
}

#[test]
fn requests_and_their_failures_are_counted() {
    let mut input = crossing();
    for result in &mut input.starts {
        let mut requests = Tally::default();
        requests.service.record_n(1_000_000, 120).expect("in range");
        requests.errors.insert(ErrorKind::Status, 4);
        result.loads[0].tallies.insert(Subject::Part(Part::Subrequest, "write".to_owned()), requests);
    }
    let report = report(&input);
    let cell = table(&report, Operation::Write).rows[0].cells[0].as_ref().expect("a cell");
    let requests = cell.subrequests.expect("requests");
    assert_eq!((requests.count, requests.failed, requests.per_operation), (600, 20, 3.0));
    assert!(cell.parts.is_empty());
    let evidence = finding(&input, "requests that failed").expect("a finding").evidence;
    assert_eq!(evidence[0], "write, local at 100KB: 20 of 600 requests (3.3 %) failed; 0 of 200 operations did");
}

#[test]
fn what_is_timed_apart_stands_in_the_cell() {
    let mut input = crossing();
    for result in &mut input.starts {
        let mut sync = Tally::default();
        sync.service.record_n(2_000_000, 40).expect("in range");
        result.loads[0].tallies.insert(Subject::Part(Part::Sync, "write".to_owned()), sync);
        let read = result.loads[0].tallies.get_mut(&Subject::Request("read".to_owned())).expect("reads");
        read.first_byte.record_n(500_000, 40).expect("in range");
    }
    let report = report(&input);
    let written = table(&report, Operation::Write).rows[0].cells[0].as_ref().expect("a cell");
    assert_eq!(written.parts.iter().map(|(part, _)| *part).collect::<Vec<_>>(), [Part::Sync]);
    let read = table(&report, Operation::Read).rows[0].cells[0].as_ref().expect("a cell");
    assert!((read.first_byte.expect("first bytes") / 0.0005 - 1.0).abs() < 1e-3);
}

#[test]
fn time_between_operations_is_not_taken_for_idle_users() {
    let mut input = crossing();
    input.facts.mean_think = Some(0.0);
    for result in &mut input.starts {
        result.loads[0].generator = vec![GeneratorRow { users: 10, ..GeneratorRow::default() }; 2];
    }
    let told = finding(&input, "between operations").expect("a finding");
    assert!(told.sentence.starts_with("In 60 of 60 trials users spent time between operations"), "{}", told.sentence);
    assert_eq!(finding(&input, "idle users"), None);
}

#[test]
fn missing_trials_leave_a_reason() {
    let mut input = crossing();
    for result in &mut input.starts {
        let load = &mut result.loads[0];
        match (load.summary.load.variant, result.summary.start.condition) {
            (0, 0) => load.summary.validity = Validity::Void(vec!["no steady state".to_owned()]),
            (1, 0) => {
                load.tallies.remove(&Subject::Request("write".to_owned()));
            }
            _ => {}
        }
    }
    input.starts.retain(|result| (result.summary.start.variants[0], result.summary.start.condition) != (2, 0));
    input.starts.retain(|result| result.summary.start.condition != 3);
    let report = report(&input);
    let rows = &table(&report, Operation::Write).rows;
    let reasons: Vec<&str> = rows[0].cells.iter().map(|cell| cell.as_ref().expect_err("no cell").as_str()).collect();
    assert_eq!(reasons, ["no trial counts", "no write was recorded", "no trial ran"]);
    assert_eq!(rows.len(), 3);
    assert!(report.notes.iter().any(|note| note.starts_with("Of size = 100MB there is no row")), "{:?}", report.notes);
    let notes = &table(&report, Operation::Write).notes;
    assert_eq!(notes[0], "Who is the fastest at 100KB cannot be said: local has no result (no trial counts).");
}

#[test]
fn conditions_besides_size_have_tables_of_their_own() {
    let mut input = crossing();
    let users =
        |condition: usize| ("users".to_owned(), Level::Integer(if condition.is_multiple_of(2) { 1 } else { 8 }));
    for (index, condition) in input.plan.conditions.iter_mut().enumerate() {
        let size = if index < 2 { "1MB" } else { "10MB" };
        *condition = Assignment(vec![users(index), ("size".to_owned(), Level::Text(size.to_owned()))]);
    }
    for result in &mut input.starts {
        let size = if result.summary.start.condition < 2 { 1_000_000 } else { 10_000_000 };
        storage_of(&mut result.loads[0]).expect("facts").size = size;
    }
    let report = report(&input);
    let titles: Vec<String> = report.tables.iter().map(Table::title).collect();
    assert_eq!(titles, ["write, 1 user", "write, 8 users", "read, 1 user", "read, 8 users"]);
    let labels: Vec<&str> = report.tables[1].rows.iter().map(|row| row.label.as_str()).collect();
    assert_eq!(labels, ["1MB", "10MB"]);
}

#[test]
fn one_back_end_and_one_size_are_told_without_comparing() {
    let input = study(&["local"], 1, 3, |TrialPlace { repeat, .. }, _| around(5.0, repeat, 12));
    let report = report(&input);
    assert!(table(&report, Operation::Write).notes.is_empty());
    assert_eq!(report.notes, ["Sizes: 100KB is 100,000 bytes."]);
    let few = study(&["local"], 1, 3, |_, _| vec![5.0, 6.0]);
    let few = self::report(&few).notes;
    assert!(few[1].starts_with("2 cells of 2 with fewer than 20 operations"), "{few:?}");
}

#[test]
fn the_duplicate_of_the_baseline_is_no_back_end() {
    let mut input = crossing();
    let plain = report(&input);
    let extra: Vec<_> = input.starts.iter().filter(|result| result.summary.start.variants[0] == 0).cloned().collect();
    input.plan.with_duplicate = true;
    input.starts.extend(extra.into_iter().map(|result| {
        let place = Start { variants: vec![3], ..result.summary.start.clone() };
        let mut result = placed(result, &place);
        record(&mut result.loads[0], "write", &[5000.0; 40]);
        result
    }));
    assert_eq!(report(&input), plain);
}

/// Every number of a cell.
fn numbers(cell: &Cell) -> Vec<f64> {
    let quantiles = &cell.quantiles;
    let optional = [cell.sd, cell.bytes_per_second, cell.first_byte, cell.cached, quantiles.p5, quantiles.p95];
    let outliers = cell.outliers.iter().flat_map(|one| [one.share_of_time, one.mean_without]);
    let ends = cell.interval.iter().flat_map(|one| [one.low, one.high]);
    [cell.mean, quantiles.p50, quantiles.least, quantiles.largest]
        .into_iter()
        .chain(optional.into_iter().flatten())
        .chain(outliers)
        .chain(ends)
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn whatever_was_recorded_gives_numbers_that_agree(
        times in prop::collection::vec(prop::collection::vec(0.0..5000.0_f64, 0..12), 12),
        pages in 0_u64..3,
    ) {
        let input = study(&["local", "nfs"], 2, 3, |TrialPlace { back_end, size, repeat }, _| {
            times[(back_end * 2 + size) * 3 + repeat as usize].clone()
        });
        let input = with_facts(input, 0, |facts| facts.residency = Some(Residency { pages, cached: pages / 2 }));
        let report = report(&input);
        for cell in report.tables.iter().flat_map(|table| &table.rows).flat_map(Row::known).map(|(_, cell)| cell) {
            prop_assert!(numbers(cell).iter().all(|number| number.is_finite()), "{cell:?}");
            if let Some(sd) = cell.sd {
                let apart = (cell.mean - cell.quantiles.p50).abs();
                prop_assert!(apart <= sd * (1.0 + 1e-9) + 1e-12, "{cell:?}");
            }
        }
        let text = format!("{report:?}");
        prop_assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
    }
}
