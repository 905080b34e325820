//! The interval logs as other programs see them: through the HdrHistogram library's own reader.

use crate::given;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;
use hdrhistogram::serialization::interval_log::{IntervalLogHistogram, IntervalLogIterator, LogEntry};
use plimsoll_model::units::Instant;
use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

fn log(folder: &Path, name: &str) -> String {
    fs::read_to_string(folder.join("starts/0002").join(name)).expect("a log")
}

fn intervals(log: &str) -> Vec<IntervalLogHistogram<'_>> {
    let entries = IntervalLogIterator::new(log.as_bytes()).map(|entry| entry.expect("a log that can be read"));
    entries.filter_map(|entry| if let LogEntry::Interval(interval) = entry { Some(interval) } else { None }).collect()
}

#[test]
fn the_head_of_a_log_names_its_version_and_its_start() {
    let folder = tempfile::tempdir().expect("a folder");
    let before = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock");
    given::complete(folder.path(), 2);
    let after = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock");
    for name in ["measure.hlog", "warmup.hlog"] {
        let log = log(folder.path(), name);
        assert!(log.contains("#[Histogram log format version 1.3]\n"), "{log}");
        assert!(
            log.contains(
                "\n\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"\n"
            )
        );
        let mut entries = IntervalLogIterator::new(log.as_bytes());
        let (Some(Ok(LogEntry::BaseTime(base))), Some(Ok(LogEntry::StartTime(start)))) =
            (entries.next(), entries.next())
        else {
            panic!("the base and the start come first: {log}");
        };
        assert_eq!(base, start);
        // The first interval was a second long when it was written, so it began a second before.
        let (from, to) = (before - Duration::from_millis(1001), after - Duration::from_millis(999));
        assert!((from..=to).contains(&base), "{base:?}");
    }
}

#[test]
fn each_interval_has_its_tag_start_length_and_maximum() {
    let folder = tempfile::tempdir().expect("a folder");
    given::complete(folder.path(), 2);
    let log = log(folder.path(), "measure.hlog");
    let seen: Vec<_> = intervals(&log)
        .iter()
        .map(|interval| {
            let tag = interval.tag().expect("a tag").as_str().to_owned();
            (tag, interval.start_timestamp().as_secs(), interval.duration().as_secs(), interval.max())
        })
        .collect();
    let of_second = |start| {
        let request = "1.request:GET%20/a%2C%20b";
        [
            ("1.iteration.service", 2.001),
            ("1.iteration.first_byte", 0.9),
            (&format!("{request}.service"), 2.001),
            (&format!("{request}.first_byte"), 0.9),
        ]
        .map(|(tag, max)| (tag.to_owned(), start, 1, max))
    };
    // Second 0 begins one second after the log does, which begins with the warm-up.
    assert_eq!(seen, [of_second(1), of_second(2)].concat());
}

#[test]
fn the_warm_up_has_a_log_of_its_own() {
    let folder = tempfile::tempdir().expect("a folder");
    given::complete(folder.path(), 2);
    let log = log(folder.path(), "warmup.hlog");
    let starts: Vec<u64> = intervals(&log).iter().map(|interval| interval.start_timestamp().as_secs()).collect();
    assert_eq!(starts, [0; 4]);
}

#[test]
fn each_load_has_its_number_in_its_tags_and_stands_where_it_ran() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut bundle = given::create(folder.path(), 2);
    given::begin_start(&mut bundle, &given::start(2));
    for (number, zero) in [(1, 0), (2, 8_250_000_000)] {
        given::add_seconds(&mut bundle, number, Instant(zero), &given::intervals(number));
    }
    given::seal_start(&mut bundle, &given::finished(2));
    for (name, first, second) in
        [("warmup.hlog", &[0_u128][..], &[8250_u128][..]), ("measure.hlog", &[1000, 2000], &[9250, 10_250])]
    {
        let log = log(folder.path(), name);
        let starts = |load: &str| -> Vec<u128> {
            let tag = format!("{load}.iteration.service");
            let of_load = |interval: &IntervalLogHistogram<'_>| interval.tag().expect("a tag").as_str() == tag;
            intervals(&log).into_iter().filter(of_load).map(|interval| interval.start_timestamp().as_millis()).collect()
        };
        assert_eq!((starts("1"), starts("2")), (first.to_vec(), second.to_vec()), "{name}");
    }
}

#[test]
fn histograms_are_in_the_compressed_encoding_of_version_2() {
    let folder = tempfile::tempdir().expect("a folder");
    given::complete(folder.path(), 2);
    let log = log(folder.path(), "measure.hlog");
    let first = &intervals(&log)[0];
    let bytes = STANDARD.decode(first.encoded_histogram()).expect("base64");
    let histogram: Histogram<u64> = Deserializer::new().deserialize(&mut bytes.as_slice()).expect("a histogram");
    assert_eq!((histogram.len(), histogram.sigfig()), (3, 3));
    assert!(histogram.equivalent(histogram.max(), 2_000_000));
    assert!(first.encoded_histogram().starts_with("HISTF"), "the cookie that the standard tools look for");
}
