//! An audit as JSON, for other programs.
//!
//! The format is versioned. New fields keep the version; a changed or removed field raises it.

use crate::{Audit, Severity};
use serde::Serialize;

/// The version of the format.
const FORMAT: u32 = 1;

#[derive(Serialize)]
struct Report<'a> {
    format: u32,
    table: &'a str,
    sources: &'a [String],
    rows: usize,
    comparisons: usize,
    problems: usize,
    cautions: usize,
    notes: usize,
    findings: Vec<FindingRow<'a>>,
}

#[derive(Serialize)]
struct FindingRow<'a> {
    gravity: &'static str,
    topic: &'a str,
    sentence: &'a str,
    evidence: Vec<EvidenceRow<'a>>,
    advice: &'a str,
}

#[derive(Serialize)]
struct EvidenceRow<'a> {
    lines: &'a [u64],
    text: &'a str,
}

/// The audit of the table `name` as JSON.
#[must_use]
pub fn json(name: &str, audit: &Audit) -> String {
    let findings = audit.findings.iter().map(|finding| FindingRow {
        gravity: finding.severity.name(),
        topic: finding.topic,
        sentence: &finding.sentence,
        evidence: finding.evidence.iter().map(|one| EvidenceRow { lines: &one.lines, text: &one.text }).collect(),
        advice: finding.advice,
    });
    let report = Report {
        format: FORMAT,
        table: name,
        sources: &audit.sources,
        rows: audit.rows,
        comparisons: audit.comparisons,
        problems: audit.count(Severity::Problem),
        cautions: audit.count(Severity::Caution),
        notes: audit.count(Severity::Note),
        findings: findings.collect(),
    };
    serde_json::to_string_pretty(&report).expect("texts and numbers have a form in JSON")
}
