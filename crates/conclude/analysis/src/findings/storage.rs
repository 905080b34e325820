//! Findings about storage: caches, writes that are not durable, servers on this machine,
//! compressible content, retried requests, objects left behind.

use super::{Context, Finding, Severity};
use crate::measure::TrialReader;
use crate::quantity::{grouped, percent};
use crate::storage::{Cell, LOOPBACK, Row, StorageReport, Table, is_loopback};
use crate::words;
use plimsoll_model::storage::{FileSystem, StorageFacts};
use plimsoll_model::words::and_list;
use std::collections::{BTreeMap, BTreeSet};

pub(super) fn findings(context: &Context<'_>) -> Vec<Finding> {
    let Some(report) = &context.analysis.storage else { return Vec::new() };
    [
        cache(context, report),
        not_durable(context, report),
        loopback(context),
        one_file_system(context),
        content(context),
        failed_requests(context, report),
        left_behind(context),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// The facts about storage from the trials that count, including those of the duplicate.
fn facts<'a>(context: &'a Context<'_>) -> impl Iterator<Item = (&'a TrialReader<'a>, &'a StorageFacts)> {
    context.counted().filter_map(|reader| Some((reader, reader.load().summary.work.storage()?)))
}

/// The cells that satisfy `which`, as `read, nfs: 1MB, 10MB`.
fn cells(context: &Context<'_>, report: &StorageReport, list_of_trials: impl Fn(&Cell) -> bool) -> Vec<String> {
    let mut sizes: BTreeMap<(usize, usize), Vec<&str>> = BTreeMap::new();
    for (index, table) in report.tables.iter().enumerate() {
        for (row, variant, _) in of(table).filter(|(.., cell)| list_of_trials(cell)) {
            sizes.entry((index, variant)).or_default().push(&row.label);
        }
    }
    let line = |((index, variant), sizes): ((usize, usize), Vec<&str>)| {
        let title = report.tables[index].title();
        format!("{title}, {}: {}", context.variant(variant), sizes.join(", "))
    };
    sizes.into_iter().map(line).collect()
}

fn of(table: &Table) -> impl Iterator<Item = (&Row, usize, &Cell)> {
    table.rows.iter().flat_map(|row| row.known().map(move |(variant, cell)| (row, variant, cell)))
}

fn cache(context: &Context<'_>, report: &StorageReport) -> Option<Finding> {
    let evidence = cells(context, report, Cell::is_cache);
    let reads_past_it = |cell: &Cell| cell.is_cache() && ["cold", "direct"].contains(&cell.mode.as_str());
    let advice = if cells(context, report, reads_past_it).is_empty() {
        "The modes `cold` and `direct` read from storage."
    } else {
        "Where `cold` or `direct` did so, the file system lives in memory: use another directory."
    };
    (!evidence.is_empty()).then(|| Finding {
        severity: Severity::Caution,
        topic: "cache, not storage",
        sentence: format!(
            "Some reads found half or more of their objects in the page cache of this machine: they tell the speed of \
             memory, not of storage. {advice}"
        ),
        evidence,
    })
}

fn not_durable(context: &Context<'_>, report: &StorageReport) -> Option<Finding> {
    let evidence = cells(context, report, |cell| cell.not_durable);
    (!evidence.is_empty()).then(|| Finding {
        severity: Severity::Caution,
        topic: "not durable",
        sentence:
            "Some writes are not durable: nothing was synced before they ended, so a loss of power could have taken \
                   what they wrote. The mode `durable` measures writes that last."
                .to_owned(),
        evidence,
    })
}

fn loopback(context: &Context<'_>) -> Option<Finding> {
    let local: BTreeSet<String> = facts(context)
        .filter(|(_, facts)| is_loopback(facts))
        .map(|(reader, _)| context.input.plan.variant(reader.trial().variant()).label())
        .collect();
    let names: Vec<String> = local.into_iter().collect();
    (!names.is_empty()).then(|| Finding {
        severity: Severity::Caution,
        topic: "loopback",
        sentence: format!(
            "{LOOPBACK} for {}: the server is on this machine, so the numbers tell what protocol and processors cost, and \
             nothing of a network or of another disk.",
            and_list(&names)
        ),
        evidence: Vec::new(),
    })
}

/// Back ends that share a disk, and so its cache and its queue.
fn one_file_system(context: &Context<'_>) -> Option<Finding> {
    let mut variants: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (reader, facts) in facts(context) {
        if let Some(system) = &facts.file_system {
            let name = context.input.plan.variant(reader.trial().variant()).label();
            variants.entry(disk(system)).or_default().insert(name);
        }
    }
    let evidence: Vec<String> = variants
        .into_iter()
        .filter(|(_, names)| names.len() > 1)
        .map(|(source, names)| format!("{source}: {}", and_list(names.into_iter().collect::<Vec<_>>())))
        .collect();
    (!evidence.is_empty()).then(|| Finding {
        severity: Severity::Note,
        topic: "one file system",
        sentence:
            "Several back ends lie on the same file system: they share its disk, and what one of them leaves to be \
                   written may slow down the next."
                .to_owned(),
        evidence,
    })
}

/// The device of a file system; those without a device are identified by their mount point.
fn disk(FileSystem { kind, source, mount_point, .. }: &FileSystem) -> String {
    let at = if source.contains('/') { String::new() } else { format!(" at {mount_point}") };
    format!("{source}{at} ({kind})")
}

fn content(context: &Context<'_>) -> Option<Finding> {
    let easy: BTreeSet<&str> =
        facts(context).map(|(_, facts)| facts.payload.as_str()).filter(|payload| *payload != "random").collect();
    let easy: Vec<&str> = easy.into_iter().collect();
    (!easy.is_empty()).then(|| Finding {
        severity: Severity::Caution,
        topic: "content that compresses",
        sentence: format!(
            "Objects held content that is easy to compress ({}): a back end that compresses, or leaves out zeros, looks \
             faster than with content that is not.",
            and_list(&easy)
        ),
        evidence: Vec::new(),
    })
}

fn failed_requests(context: &Context<'_>, report: &StorageReport) -> Option<Finding> {
    let mut evidence = Vec::new();
    for table in &report.tables {
        for (row, variant, cell) in of(table) {
            if let Some(requests) = cell.subrequests.filter(|requests| requests.failed > 0) {
                evidence.push(format!(
                    "{}, {} at {}: {} of {} requests ({}) failed; {} of {} operations did",
                    table.title(),
                    context.variant(variant),
                    row.label,
                    grouped(requests.failed as f64),
                    grouped(requests.count as f64),
                    percent(requests.failed as f64 / requests.count as f64),
                    grouped(cell.failed as f64),
                    grouped(cell.operations as f64)
                ));
            }
        }
    }
    (!evidence.is_empty()).then(|| Finding {
        severity: Severity::Caution,
        topic: "requests that failed",
        sentence:
            "Some requests inside operations failed. Where the study lets them be sent again, the operation took the \
                   time of all attempts, and of the waits that the server asked for."
                .to_owned(),
        evidence,
    })
}

/// Objects left behind, including those of trials that do not count.
fn left_behind(context: &Context<'_>) -> Option<Finding> {
    let all = context.readers.iter().filter_map(|reader| Some((reader, reader.load().summary.work.storage()?)));
    let lines =
        all.flat_map(|(reader, facts)| facts.left_behind.iter().map(|what| (reader.trial().number(), what.clone())));
    let evidence = context.merge_equal_lines(lines);
    (!evidence.is_empty()).then(|| Finding {
        severity: Severity::Caution,
        topic: "left behind",
        sentence: format!(
            "{} could not be removed after their trials: they take space, and a listing finds them.",
            words::counted(evidence.len(), "thing")
        ),
        evidence,
    })
}
