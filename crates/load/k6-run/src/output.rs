//! Outputs of samples while a run goes on: each sample as a line (`--out json` and `--out csv`), or added up in
//! [series](crate::series).

use crate::metrics::{Metric, MetricId, Registry, TagSet};
use crate::options::SYSTEM_TAGS;
use crate::series::{Collector, SharedTable};
use crate::summary::json_number;
use jiff::Timestamp;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::mem;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;

/// The bytes of lines after which a thread hands them over.
const ENOUGH: usize = 64 * 1024;

/// An output that gets each sample.
#[derive(Clone, Debug)]
pub enum Output {
    /// Lines: each sample is one.
    Lines(LineOutput),
    /// Series, which it takes at intervals of its own. Users never wait for it.
    Series(Arc<Collector>),
}

/// The format of lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// An object a line.
    Json,
    /// Cells with commas.
    Csv,
}

/// An output of lines. Its channel is bounded: if the writer cannot keep up, users wait.
#[derive(Clone, Debug)]
pub struct LineOutput {
    /// The format.
    pub format: Format,
    /// The channel to its writer.
    pub to: SyncSender<Lines>,
}

/// Lines of one thread.
#[derive(Debug, Default)]
pub struct Lines {
    /// The lines, each with its end.
    pub text: String,
    /// The metrics of these samples.
    pub metrics: BTreeSet<MetricId>,
}

/// The samples of one thread on their way to the outputs.
#[derive(Debug)]
pub struct ThreadOutputs {
    /// The lines that were not handed over yet.
    lines: Vec<(LineOutput, Lines)>,
    series: Vec<Arc<SharedTable>>,
}

impl ThreadOutputs {
    /// For one thread.
    #[must_use]
    pub fn new(outputs: &[Output]) -> ThreadOutputs {
        let mut of_thread = ThreadOutputs { lines: Vec::new(), series: Vec::new() };
        for output in outputs {
            match output {
                Output::Lines(output) => of_thread.lines.push((output.clone(), Lines::default())),
                Output::Series(collector) => of_thread.series.push(collector.thread()),
            }
        }
        of_thread
    }

    /// Adds samples of this moment.
    #[inline]
    pub fn add(&mut self, registry: &Registry, samples: &[(MetricId, f64)], tags: &TagSet<'_>) {
        if !self.lines.is_empty() {
            self.add_lines(registry, samples, tags);
        }
        for table in &self.series {
            table.add(registry, samples, tags);
        }
    }

    fn add_lines(&mut self, registry: &Registry, samples: &[(MetricId, f64)], tags: &TagSet<'_>) {
        let (at, metadata, tags) = (Timestamp::now(), tags.metadata, tags.iter().collect::<Vec<_>>());
        for (output, lines) in &mut self.lines {
            for (id, value) in samples {
                let sample = Sample { metric: registry.metric(*id), value: *value, at, tags: &tags, metadata };
                lines.text += &sample.line(output.format);
                lines.text.push('\n');
                lines.metrics.insert(*id);
            }
        }
        if self.lines.iter().any(|(_, lines)| lines.text.len() > ENOUGH) {
            self.send_lines();
        }
    }

    /// Hands over the lines so far.
    pub fn send_lines(&mut self) {
        for (output, lines) in self.lines.iter_mut().filter(|(_, lines)| !lines.text.is_empty()) {
            // A writer that is gone has failed, and reports that itself.
            let _ = output.to.send(mem::take(lines));
        }
    }
}

/// One sample.
#[derive(Clone, Copy, Debug)]
pub struct Sample<'a> {
    /// Its metric.
    pub metric: &'a Metric,
    /// Its value.
    pub value: f64,
    /// Its time.
    pub at: Timestamp,
    /// Its tags.
    pub tags: &'a [(&'a str, &'a str)],
    /// Its metadata.
    pub metadata: &'a [(String, String)],
}

/// The line before the first sample of a metric, with the metric's thresholds.
#[must_use]
pub fn json_metric(metric: &Metric, thresholds: &[&str]) -> String {
    let Metric { name, kind, contains, submetrics } = metric;
    let parts = submetrics.iter().map(|part| {
        let tags: Value = part.tags.iter().map(|(name, value)| (name.clone(), Value::from(value.as_str()))).collect();
        let suffix = part.name[name.len()..].trim_matches(['{', '}']);
        json!({ "name": part.name, "suffix": suffix, "tags": tags })
    });
    let parts = if submetrics.is_empty() { Value::Null } else { parts.collect() };
    let data = json!({
        "name": name,
        "type": kind.to_string(),
        "contains": contains.to_string(),
        "thresholds": thresholds,
        "submetrics": parts,
    });
    json!({ "type": "Metric", "data": data, "metric": name }).to_string()
}

impl Sample<'_> {
    fn line(&self, format: Format) -> String {
        match format {
            Format::Json => self.json(),
            Format::Csv => self.csv(),
        }
    }

    /// The sample as a line of JSON.
    #[must_use]
    pub fn json(&self) -> String {
        let tags: Value = self.tags.iter().map(|(name, value)| ((*name).to_owned(), Value::from(*value))).collect();
        let mut data = json!({ "time": self.at.to_string(), "value": json_number(self.value), "tags": tags });
        if !self.metadata.is_empty() {
            data["metadata"] =
                self.metadata.iter().map(|(name, value)| (name.clone(), Value::from(value.as_str()))).collect();
        }
        json!({ "metric": self.metric.name, "type": "Point", "data": data }).to_string()
    }

    /// The sample as a line of CSV.
    #[must_use]
    pub fn csv(&self) -> String {
        let tag = |name| self.tags.iter().find(|(tag, _)| *tag == name).map_or("", |(_, value)| *value);
        let others = self.tags.iter().filter(|(name, _)| !SYSTEM_TAGS.contains(name));
        let others: Vec<String> = others.map(|(name, value)| format!("{name}={value}")).collect();
        let metadata: Vec<String> = self.metadata.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let mut line = format!("{},{},{:.6}", self.metric.name, self.at.as_second(), self.value);
        for cell in SYSTEM_TAGS.map(tag).into_iter().chain([others.join("&").as_str(), metadata.join("&").as_str()]) {
            let _ = write!(line, ",{}", quoted(cell));
        }
        line
    }
}

/// The first line of a file of CSV.
#[must_use]
pub fn csv_header() -> String {
    format!("metric_name,timestamp,metric_value,{},extra_tags,metadata", SYSTEM_TAGS.join(","))
}

/// The cell, in quotes if it would be more than one cell without.
fn quoted(cell: &str) -> String {
    if cell.contains(['"', ',', '\r', '\n']) || cell.starts_with(' ') {
        return format!("\"{}\"", cell.replace('"', "\"\""));
    }
    cell.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::Registry;

    const TAGS: &[(&str, &str)] = &[("name", "a,\"b\""), ("status", "200"), ("team", "x"), ("tier", "y")];

    fn sample(registry: &Registry) -> Sample<'_> {
        let metric = registry.metric(registry.id("http_req_duration").expect("built in"));
        let at = Timestamp::new(1_795_322_427, 123_400_000).expect("an instant");
        Sample { metric, value: 1.25, at, tags: TAGS, metadata: &[] }
    }

    #[test]
    fn samples_have_a_line_in_json() {
        let registry = Registry::default();
        let sample = sample(&registry);
        let read = |line: &str| serde_json::from_str::<Value>(line).expect("JSON");
        assert_eq!(
            read(&sample.json()),
            json!({ "metric": "http_req_duration", "type": "Point", "data": {
                "time": "2026-11-22T04:40:27.1234Z",
                "value": 1.25,
                "tags": { "name": "a,\"b\"", "status": "200", "team": "x", "tier": "y" },
            } })
        );
        assert_eq!(
            read(&json_metric(sample.metric, &["p(95)<500"])),
            json!({ "type": "Metric", "metric": "http_req_duration", "data": {
                "name": "http_req_duration",
                "type": "trend",
                "contains": "time",
                "thresholds": ["p(95)<500"],
                "submetrics": [{
                    "name": "http_req_duration{expected_response:true}",
                    "suffix": "expected_response:true",
                    "tags": { "expected_response": "true" },
                }],
            } })
        );
    }

    #[test]
    fn metadata_is_written_with_a_sample() {
        let registry = Registry::default();
        let metadata = [("order", "7"), ("trace", "a")].map(|(name, value)| (name.to_owned(), value.to_owned()));
        let sample = Sample { tags: &[], metadata: &metadata, ..sample(&registry) };
        let read: Value = serde_json::from_str(&sample.json()).expect("JSON");
        assert_eq!(read["data"]["metadata"], json!({ "order": "7", "trace": "a" }));
        assert!(sample.csv().ends_with(",,order=7&trace=a"), "{}", sample.csv());
    }

    #[test]
    fn samples_have_a_line_in_csv() {
        assert_eq!(
            csv_header(),
            "metric_name,timestamp,metric_value,check,error,error_code,expected_response,group,method,name,proto,scenario,\
             service,status,subproto,tls_version,url,extra_tags,metadata"
        );
        let registry = Registry::default();
        assert_eq!(
            sample(&registry).csv(),
            "http_req_duration,1795322427,1.250000,,,,,,,\"a,\"\"b\"\"\",,,,200,,,,team=x&tier=y,"
        );
    }
}
