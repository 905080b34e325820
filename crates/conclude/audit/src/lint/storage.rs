//! The object of a storage benchmark: the device, the network, or the memory of the machine.
//!
//! A file that was just written or read is in the page cache, and reading it again copies memory.
//! Three signs of that: more than [`FASTER_THAN_DEVICES`] bytes a second; the same speed from back
//! ends that have nothing else in common; and a standard deviation above the mean, where the first
//! access was cold and all later ones warm. The same numbers are fine if they are labelled as warm,
//! so each cell must state its mode. `cold` takes a proof (the cache was dropped, and checked),
//! `direct` bypasses the cache, and a write is `durable` when it is synced inside the timed span.

use super::Context;
use crate::column::Statistic;
use crate::compare::groups;
use crate::finding::{Evidence, Finding};
use crate::quantity::Quantity;
use crate::row::Row;
use plimsoll_analysis::finding::Severity;
use plimsoll_analysis::quantity::{percent, show};
use plimsoll_model::measure::Unit;

/// Bytes per second above which a read without proof is attributed to memory.
const FASTER_THAN_DEVICES: f64 = 3e9;

/// Bytes per second above which equal speeds of two back ends are a sign of the cache.
const EQUAL_SPEED_FROM: f64 = 1e9;

/// The relative difference up to which speeds count as equal.
const EQUAL_SPEED_TOLERANCE: f64 = 0.05;

/// Modes that state what a read measures, and what a write measures.
const READ_MODES: [&str; 6] = ["cold", "direct", "uncached", "dontcache", "warm", "cached"];
const WRITE_MODES: [&str; 7] = ["durable", "sync", "fsync", "fdatasync", "buffered", "not durable", "direct"];

pub(super) fn lint(context: &Context<'_>) -> Vec<Finding> {
    [page_cache(context), modes(context), mixture(context)].into_iter().flatten().collect()
}

fn is_read(row: &Row) -> bool {
    is(row, "read")
}

fn is_write(row: &Row) -> bool {
    is(row, "write")
}

/// Parts of words that contain the letters of an operation and name none.
const OTHER_WORDS: [&str; 9] =
    ["bread", "readable", "reader", "readiness", "ready", "spread", "thread", "unread", "writer"];

/// True if the operation, or else the measure or a label, has a word for it: `reads`, `randread`, `readwrite`.
fn is(row: &Row, operation: &str) -> bool {
    let has = |text: &str| {
        text.to_lowercase().split(|c: char| !c.is_alphanumeric()).any(|word| names_operation(word, operation))
    };
    match &row.operation {
        Some(text) => has(text),
        None => row.measure.as_deref().is_some_and(has) || row.labels.iter().any(|(_, text)| has(text)),
    }
}

fn names_operation(word: &str, operation: &str) -> bool {
    word.contains(operation) && !OTHER_WORDS.iter().any(|other| word.contains(other))
}

fn says_mode(row: &Row, modes: &[&str]) -> bool {
    row.mode.as_deref().is_some_and(|mode| modes.iter().any(|known| mode.to_lowercase().contains(known)))
}

/// Bytes per second: as published, or the size over the time, the median before the mean.
fn speed(row: &Row) -> Option<f64> {
    let published =
        [row.rate.as_ref(), row.centre()].into_iter().flatten().find(|one| one.unit == Unit::BytesPerSecond);
    if let Some(rate) = published {
        return Some(rate.value);
    }
    let time: &Quantity =
        row.median().or_else(|| row.centre()).filter(|time| time.unit == Unit::Seconds && time.value > 0.0)?;
    Some(row.bytes.as_ref()?.value / time.value)
}

fn page_cache(context: &Context<'_>) -> Option<Finding> {
    let mut evidence: Vec<Evidence> = groups(context.rows).iter().flat_map(|group| same_speed(&reads(group))).collect();
    let all: Vec<&Row> = context.rows.iter().collect();
    let reads = reads(&all);
    let alike = !evidence.is_empty();
    let fast = reads.iter().filter(|(_, speed)| *speed > FASTER_THAN_DEVICES);
    evidence.extend(fast.map(|(row, speed)| Evidence::of(row, show(*speed, Unit::BytesPerSecond))));
    let fastest = reads.iter().map(|(_, speed)| *speed).fold(0.0, f64::max);
    (!evidence.is_empty()).then(|| Finding {
        severity: Severity::Problem,
        topic: "page cache",
        sentence: format!(
            "Reads of up to {}{} come from the page cache until shown otherwise: the table compares memory with memory.",
            show(fastest, Unit::BytesPerSecond),
            if alike { ", and at the same speed from different backends," } else { "" }
        ),
        evidence,
        advice: "Read cold (sync, drop the cache, and look that it is empty) or direct, and keep warm reads as a measure of \
                 their own.",
    })
}

/// Reads with their speed, except those whose mode explains it.
fn reads<'a>(rows: &[&'a Row]) -> Vec<(&'a Row, f64)> {
    let unexplained = rows.iter().filter(|row| is_read(row) && !says_mode(row, &READ_MODES));
    unexplained.filter_map(|row| Some((*row, speed(row)?))).collect()
}

/// Pairs of variants that read at the same speed, in the range of memory.
fn same_speed(reads: &[(&Row, f64)]) -> Vec<Evidence> {
    let mut evidence = Vec::new();
    for (index, (row, one)) in reads.iter().enumerate() {
        for (other_row, other) in &reads[index + 1..] {
            let near = (one / other - 1.0).abs() <= EQUAL_SPEED_TOLERANCE && one.min(*other) > EQUAL_SPEED_FROM;
            if near && row.variant != other_row.variant {
                let text = format!(
                    "{}: the same speed from {}, {}, and from {}, {}",
                    row.condition(),
                    row.variant.as_deref().unwrap_or("one"),
                    show(*one, Unit::BytesPerSecond),
                    other_row.variant.as_deref().unwrap_or("the other"),
                    show(*other, Unit::BytesPerSecond)
                );
                evidence.push(Evidence::new([row.line, other_row.line], text));
            }
        }
    }
    evidence
}

fn modes(context: &Context<'_>) -> Option<Finding> {
    let of_storage = |row: &&Row| row.bytes.is_some() && (is_read(row) || is_write(row));
    let silent: Vec<&Row> = context
        .rows
        .iter()
        .filter(of_storage)
        .filter(|row| !says_mode(row, if is_read(row) { &READ_MODES } else { &WRITE_MODES }))
        .collect();
    if silent.is_empty() {
        return None;
    }
    let lines = |rows: &dyn Fn(&Row) -> bool| -> Vec<u64> {
        silent.iter().filter(|row| rows(row)).map(|row| row.line).collect()
    };
    let reads = lines(&is_read);
    let writes = lines(&|row| !is_read(row));
    let reads =
        (!reads.is_empty()).then(|| Evidence::new(reads, "reads that are neither called warm nor cold nor direct"));
    let writes = (!writes.is_empty()).then(|| {
        Evidence::new(writes, "writes that do not say whether they were synced to the device inside the time")
    });
    Some(Finding {
        severity: Severity::Caution,
        topic: "storage mode",
        sentence: format!(
            "{} not say whether they are warm, cold, direct or durable, which is a matter of orders of magnitude.",
            if silent.len() == 1 { "One row does".to_owned() } else { format!("{} rows do", silent.len()) }
        ),
        evidence: reads.into_iter().chain(writes).collect(),
        advice: "Tag each cell in a column `mode`: warm, cold or direct for reads, durable or buffered for writes.",
    })
}

/// Rows whose standard deviation is above their mean.
fn mixture(context: &Context<'_>) -> Option<Finding> {
    let mut evidence = Vec::new();
    for row in context.rows {
        let Some((mean, sd)) = row.get(Statistic::Mean).zip(row.get(Statistic::Sd)) else { continue };
        if mean.value <= 0.0 || sd.low() <= mean.high() {
            continue;
        }
        let median = row.median().map(|median| format!(", median {}", median.text)).unwrap_or_default();
        let share = percent(sd.value / mean.value);
        evidence.push(Evidence::of(row, format!("mean {}{median}, sd {}, {share} of the mean", mean.text, sd.text)));
    }
    let reads = context.rows.iter().any(|row| is_read(row) && row.bytes.is_some());
    let why = if reads {
        "a first access that was cold and later ones that were warm are averaged, which describes neither"
    } else {
        "a few very large values make the mean, which describes neither them nor the rest"
    };
    (!evidence.is_empty()).then(|| Finding {
        severity: Severity::Caution,
        topic: "mixture",
        sentence: format!(
            "{} a standard deviation above the mean: {why}.",
            if evidence.len() == 1 { "One row has".to_owned() } else { format!("{} rows have", evidence.len()) }
        ),
        evidence,
        advice: "Give first and later accesses apart, or percentiles instead of mean and sd.",
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lint::testing::{evidence, found};

    fn topics(table: &str) -> Vec<&'static str> {
        found(lint, table).iter().map(|finding| finding.topic).collect()
    }

    #[test]
    fn memory_is_not_taken_for_a_disk() {
        let table = "operation,variant,size,median\nread,disk,10GB,1.56 s\nread,network,10GB,1.55 s\n";
        assert_eq!(topics(table), ["page cache", "storage mode"]);
        assert_eq!(
            evidence(lint, table)[..3],
            [
                "10GB, read: the same speed from disk, 6.41 GB/s, and from network, 6.45 GB/s",
                "disk, 10GB, read: 6.41 GB/s",
                "network, 10GB, read: 6.45 GB/s"
            ]
        );
    }

    #[test]
    fn what_is_said_to_be_warm_or_cold_is_believed() {
        for (table, expected) in [
            ("operation,variant,size,median,mode\nread,disk,10GB,1.5 s,warm\n", &[][..]),
            ("operation,variant,size,median,mode\nread,disk,10GB,1.5 s,direct\n", &[]),
            ("operation,variant,size,median,mode\nread,disk,10GB,100 s,\n", &["storage mode"]),
            ("operation,variant,size,median,mode\nwrite,disk,10GB,1.5 s,durable\n", &[]),
            ("operation,variant,size,median,mode\nwrite,disk,10GB,1.5 s,\n", &["storage mode"]),
            ("operation,variant,rate\nread,disk,7 GB/s\n", &["page cache"]),
            ("operation,variant,rate\nrandread,disk,7 GB/s\n", &["page cache"]),
            ("measure,variant,rate\nreads,disk,7 GB/s\n", &["page cache"]),
            ("measure,variant,rate\nLZ4 8 threads,disk,4.2 GB/s\n", &[]),
            ("measure,variant,rate\nread,disk,7 Gb/s\n", &[]),
            ("measure,variant,mean\nlatency,disk,1.5 s\n", &[]),
        ] {
            assert_eq!(topics(table), expected, "{table}");
        }
    }

    #[test]
    fn a_spread_above_the_mean_is_a_mixture() {
        let table = "operation,mode,size,summary\nread,warm,10MB,\"7.83 ms (±18.12 ms, p50: 1.68 ms)\"\n";
        assert_eq!(evidence(lint, table), ["10MB, read: mean 7.83 ms, median 1.68 ms, sd 18.12 ms, 231 % of the mean"]);
    }
}
