//! HdrHistogram interval logs, in the form that the standard tools read: a header, then one line
//! for each interval and tag with a histogram in the compressed V2 encoding.
//!
//! The library can only write a whole log at once, but a start is written second by second. So this module formats the
//! lines, and the library encodes only the histograms.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};
use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use plimsoll_model::record::{Subject, Tally};
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The suffixes of tags for the three histograms of a tally.
const SERIES: [&str; 3] = ["service", "response", "first_byte"];

/// Nanoseconds in a millisecond: `Interval_Max` is in milliseconds, as the tools expect.
const MAX_DIVISOR: f64 = 1e6;

/// Writes one log.
pub(crate) struct IntervalLog<W: Write> {
    out: W,
    serializer: V2DeflateSerializer,
    buffer: Vec<u8>,
}

impl<W: Write> IntervalLog<W> {
    /// Begins a log whose intervals count from `base`.
    pub(crate) fn begin(mut out: W, base: SystemTime) -> io::Result<IntervalLog<W>> {
        let base = base.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
        writeln!(out, "#[Durations in nanoseconds; tags are LOAD.SUBJECT.SERIES, written by Plimsoll]")?;
        writeln!(out, "#[Histogram log format version 1.3]")?;
        writeln!(out, "#[BaseTime: {base:.3} (seconds since epoch)]")?;
        writeln!(out, "#[StartTime: {base:.3} (seconds since epoch)]")?;
        writeln!(out, "\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"")?;
        Ok(IntervalLog { out, serializer: V2DeflateSerializer::new(), buffer: Vec::new() })
    }

    /// Writes the histograms of a tally for an interval that began `start` seconds after the base.
    pub(crate) fn write(
        &mut self,
        load: u32,
        subject: &Subject,
        tally: &Tally,
        start: f64,
        length: f64,
    ) -> io::Result<()> {
        for (series, histogram) in SERIES.iter().zip([&tally.service, &tally.response, &tally.first_byte]) {
            if !histogram.is_empty() {
                self.buffer.clear();
                self.serializer.serialize(histogram, &mut self.buffer).map_err(io::Error::other)?;
                let tag = escape(&subject.to_string());
                let max = histogram.max() as f64 / MAX_DIVISOR;
                let encoded = STANDARD.encode(&self.buffer);
                writeln!(self.out, "Tag={load}.{tag}.{series},{start:.3},{length:.3},{max:.3},{encoded}")?;
            }
        }
        Ok(())
    }

    /// Returns the underlying writer, after everything is written to it.
    pub(crate) fn finish(self) -> W {
        self.out
    }
}

/// Selects the part of a log to read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Selection {
    /// The load whose number begins the tags; none for a log of one load, whose tags have no number.
    pub(crate) load: Option<u32>,
    /// Intervals that began earlier than this after the base are left out.
    pub(crate) from: Duration,
}

/// Merges the selected part of a log into one tally for each subject. Only the histograms are filled, because a log
/// holds nothing else.
pub(crate) fn read(log: &[u8], selection: Selection) -> Result<Vec<(Subject, Tally)>, String> {
    let mut tallies: Vec<(Subject, Tally)> = Vec::new();
    let mut deserializer = Deserializer::new();
    for entry in IntervalLogIterator::new(log) {
        let LogEntry::Interval(interval) = entry.map_err(|error| format!("an interval is damaged: {error:?}"))? else {
            continue;
        };
        if interval.start_timestamp() < selection.from {
            continue;
        }
        let tag = interval.tag().ok_or("an interval has no tag")?.as_str().to_owned();
        let tag = match selection.load {
            None => &tag[..],
            Some(load) => match part_from_load(&tag)? {
                (number, tag) if number == load => tag,
                _ => continue,
            },
        };
        let (subject, series) = tag.rsplit_once('.').ok_or_else(|| format!("unknown tag `{tag}`"))?;
        let subject: Subject = unescape(subject).parse().map_err(|error| format!("{error}"))?;
        let bytes = STANDARD.decode(interval.encoded_histogram()).map_err(|error| error.to_string())?;
        let histogram: Histogram<u64> = deserializer
            .deserialize(&mut bytes.as_slice())
            .map_err(|error| format!("a histogram is damaged: {error}"))?;
        let place = tallies.iter().position(|(known, _)| *known == subject).unwrap_or_else(|| {
            tallies.push((subject, Tally::default()));
            tallies.len() - 1
        });
        let tally = &mut tallies[place].1;
        let into = match series {
            "service" => &mut tally.service,
            "response" => &mut tally.response,
            "first_byte" => &mut tally.first_byte,
            _ => return Err(format!("unknown series in tag `{tag}`")),
        };
        into.add(&histogram).map_err(|error| format!("a histogram does not fit: {error}"))?;
    }
    Ok(tallies)
}

/// The lines of a log for each of its loads, so that a log of many loads is not searched for each of them.
pub(crate) fn by_load(log: &[u8]) -> BTreeMap<u32, Vec<u8>> {
    let mut parts: BTreeMap<u32, Vec<u8>> = BTreeMap::new();
    for line in log.split_inclusive(|byte| *byte == b'\n') {
        let tag = line.strip_prefix(b"Tag=").and_then(|rest| rest.split(|byte| *byte == b'.').next());
        let load = tag.and_then(|tag| std::str::from_utf8(tag).ok()?.parse().ok());
        if let Some(load) = load {
            parts.entry(load).or_default().extend_from_slice(line);
        }
    }
    parts
}

/// Splits a tag into the number of the load and the rest.
fn part_from_load(tag: &str) -> Result<(u32, &str), String> {
    let parted = tag.split_once('.').and_then(|(load, rest)| Some((load.parse().ok()?, rest)));
    parted.ok_or_else(|| format!("no number of a load in tag `{tag}`"))
}

/// The characters that are percent-encoded in a tag, which must not contain commas, spaces or line breaks.
const NOT_PLAIN: &AsciiSet = &NON_ALPHANUMERIC.remove(b':').remove(b'.').remove(b'_').remove(b'-').remove(b'/');

fn escape(subject: &str) -> String {
    utf8_percent_encode(subject, NOT_PLAIN).to_string()
}

fn unescape(tag: &str) -> String {
    percent_decode_str(tag).decode_utf8_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Selects everything of a load from a second on.
    fn of_load(load: u32, from: u64) -> Selection {
        Selection { load: Some(load), from: Duration::from_secs(from) }
    }

    /// Two seconds of load 1 and one of load 11, of a subject with an awkward name.
    fn log(subject: &Subject) -> Vec<u8> {
        let mut log = IntervalLog::begin(Vec::new(), UNIX_EPOCH).expect("memory");
        let mut tally = Tally::default();
        tally.service.record_n(1_000_000, 3).expect("in range");
        tally.first_byte.record(400).expect("in range");
        for (load, start) in [(1, 0.0), (1, 1.0), (11, 7.0)] {
            log.write(load, subject, &tally, start, 1.0).expect("memory");
        }
        log.finish()
    }

    #[test]
    fn a_log_reads_back_with_awkward_names() {
        let subject = Subject::Request("GET /a, b=ü%\n".to_owned());
        let log = log(&subject);
        for (load, from, service, first_byte) in [(1, 0, 6, 2), (1, 1, 3, 1), (11, 0, 3, 1), (11, 7, 3, 1)] {
            let read = read(&log, of_load(load, from)).expect("a log");
            assert_eq!(read.len(), 1);
            assert_eq!(read[0].0, subject);
            let counts = (read[0].1.service.len(), read[0].1.first_byte.len(), read[0].1.response.len());
            assert_eq!(counts, (service, first_byte, 0), "load {load} from second {from}");
        }
        for (load, from) in [(1, 2), (11, 8), (2, 0)] {
            assert!(read(&log, of_load(load, from)).expect("a log").is_empty(), "load {load} from second {from}");
        }
    }

    #[test]
    fn tags_of_earlier_formats_have_no_number_of_a_load() {
        let subject = Subject::Request("1.5.service".to_owned());
        let numbered = String::from_utf8(log(&subject)).expect("text");
        let earlier = numbered.replace("Tag=1.", "Tag=").replace("Tag=11.", "Tag=");
        let all = read(earlier.as_bytes(), Selection { load: None, from: Duration::ZERO }).expect("a log");
        assert_eq!((all.len(), &all[0].0, all[0].1.service.len()), (1, &subject, 9));
        let refused = read(earlier.as_bytes(), of_load(1, 0)).expect_err("no number");
        assert!(refused.contains("no number of a load in tag `request:1.5.service.service`"), "{refused}");
    }

    proptest! {
        #[test]
        fn any_name_survives_in_a_tag(name in ".*") {
            let tag = escape(&name);
            prop_assert!(!tag.contains([',', ' ', '\n', '\r']));
            prop_assert_eq!(unescape(&tag), name);
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = read(&bytes, Selection { load: None, from: Duration::ZERO });
            let _ = read(&bytes, of_load(1, 0));
        }
    }
}
