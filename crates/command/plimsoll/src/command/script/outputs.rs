//! The files of `--out`, each written by a thread of its own.

use anyhow::{Context, anyhow, bail};
use plimsoll_k6::secrets::Secrets;
use plimsoll_k6_run::metrics::{MetricId, Registry};
use plimsoll_k6_run::output::{Format, Lines, Output, csv_header, json_metric};
use plimsoll_k6_run::threshold::Limits;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::JoinHandle;

/// The most batches of lines that wait to be written.
const WAITING: usize = 64;

/// A file of `--out`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OutputFile {
    format: Format,
    /// None for standard output.
    file: Option<String>,
}

/// Files being written.
pub(super) struct Writers(Vec<(Output, JoinHandle<anyhow::Result<()>>)>);

impl OutputFile {
    /// Reads `json=FILE`, `csv=FILE`.
    pub(super) fn parse(text: &str) -> Result<OutputFile, String> {
        let (format, file) = text.split_once('=').map_or((text, None), |(format, file)| (format, Some(file)));
        let format = match format {
            "json" => Format::Json,
            "csv" => Format::Csv,
            other => return Err(format!("expected `json=FILE` or `csv=FILE` in `--out`, found `{other}`")),
        };
        if file.is_some_and(|file| file.ends_with(".gz")) {
            return Err(format!("`--out {text}` is not compressed here: take a name without `.gz`"));
        }
        Ok(OutputFile { format, file: file.filter(|file| !["", "-"].contains(file)).map(str::to_owned) })
    }

    fn open(&self) -> anyhow::Result<Box<dyn Write + Send>> {
        Ok(match &self.file {
            Some(file) => Box::new(File::create(file).with_context(|| format!("failed to create `{file}`"))?),
            None => Box::new(io::stdout()),
        })
    }
}

impl Writers {
    /// Opens the files.
    pub(super) fn start(
        wanted: &[OutputFile],
        registry: &Registry,
        limits: &[Limits],
        secrets: &Arc<Secrets>,
    ) -> anyhow::Result<Writers> {
        let start = |wanted: &OutputFile| {
            let (out, begun) = (BufWriter::new(wanted.open()?), begin(wanted, registry, limits));
            let mut file = Samples { out, begun, secrets: Arc::clone(secrets) };
            let (to, lines) = sync_channel(WAITING);
            let shown = wanted.file.clone().unwrap_or_else(|| "standard output".to_owned());
            let thread =
                std::thread::spawn(move || file.write(&lines).with_context(|| format!("failed to write {shown}")));
            Ok((Output { format: wanted.format, to }, thread))
        };
        Ok(Writers(wanted.iter().map(start).collect::<anyhow::Result<_>>()?))
    }

    /// The outputs that samples are sent to.
    pub(super) fn outputs(&self) -> Vec<Output> {
        self.0.iter().map(|(output, _)| output.clone()).collect()
    }

    /// Writes the remaining samples, and waits for the writers.
    pub(super) fn finish(self) -> anyhow::Result<()> {
        for (output, thread) in self.0 {
            let _ = output.to.send(Lines::default());
            match thread.join() {
                Ok(written) => written?,
                Err(_) => bail!("the thread that writes samples has panicked"),
            }
        }
        Ok(())
    }
}

/// The lines before samples.
enum Begin {
    /// A header line for the file; none once it is written.
    File(Option<String>),
    /// A line for each metric, before its first sample.
    Metrics { lines: Vec<(MetricId, String)>, written: BTreeSet<MetricId> },
}

fn begin(wanted: &OutputFile, registry: &Registry, limits: &[Limits]) -> Begin {
    if wanted.format == Format::Csv {
        return Begin::File(Some(csv_header()));
    }
    let line = |id: MetricId| {
        let own = limits.iter().filter(|limits| limits.metric == id && limits.submetric.is_none());
        let thresholds: Vec<&str> =
            own.flat_map(|limits| &limits.thresholds).map(|threshold| threshold.source.as_str()).collect();
        json_metric(registry.metric(id), &thresholds)
    };
    Begin::Metrics { lines: registry.iter().map(|(id, _)| (id, line(id))).collect(), written: BTreeSet::new() }
}

/// A file of samples.
struct Samples<W: Write> {
    out: W,
    begun: Begin,
    secrets: Arc<Secrets>,
}

impl<W: Write> Samples<W> {
    /// Writes what it receives, until the sender is gone.
    fn write(&mut self, from: &Receiver<Lines>) -> anyhow::Result<()> {
        while let Ok(lines) = from.recv()
            && !lines.text.is_empty()
        {
            self.begin(&lines.metrics)?;
            self.out.write_all(self.secrets.masked(&lines.text).as_bytes())?;
        }
        self.begin(&BTreeSet::new())?;
        self.out.flush().map_err(|error| anyhow!(error))
    }

    fn begin(&mut self, metrics: &BTreeSet<MetricId>) -> io::Result<()> {
        match &mut self.begun {
            Begin::File(header) => header.take().map_or(Ok(()), |header| writeln!(self.out, "{header}")),
            Begin::Metrics { lines, written } => {
                for (id, line) in lines.iter().filter(|(id, _)| metrics.contains(id)) {
                    if written.insert(*id) {
                        writeln!(self.out, "{line}")?;
                    }
                }
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outputs_are_read_as_k6_reads_them() {
        let parsed = |text: &str| OutputFile::parse(text).map(|wanted| (wanted.format, wanted.file));
        assert_eq!(parsed("json=a=b.json"), Ok((Format::Json, Some("a=b.json".to_owned()))));
        assert_eq!(parsed("csv"), Ok((Format::Csv, None)));
        for (text, expected) in [("influxdb=http://x", "`influxdb`"), ("json=a.gz", "not compressed")] {
            let refused = parsed(text).expect_err(text);
            assert!(refused.contains(expected), "{refused}");
        }
    }

    #[test]
    fn a_metric_is_told_before_its_first_sample() {
        let registry = Registry::default();
        let wanted = OutputFile { format: Format::Json, file: None };
        let begun = begin(&wanted, &registry, &[]);
        let mut file = Samples { out: Vec::new(), begun, secrets: Arc::default() };
        let (to, from) = sync_channel(4);
        let metrics = BTreeSet::from([registry.id("vus").expect("built in")]);
        for text in ["one\n", "two\n"] {
            to.send(Lines { text: text.to_owned(), metrics: metrics.clone() }).expect("there is room");
        }
        drop(to);
        file.write(&from).expect("memory takes it");
        let written = String::from_utf8(file.out).expect("text");
        let lines: Vec<&str> = written.lines().collect();
        assert!(lines[0].contains(r#""type":"Metric""#) && lines[0].contains(r#""vus""#), "{written}");
        assert_eq!(lines[1..], ["one", "two"]);
    }
}
