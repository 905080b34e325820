//! The outputs of `--out`: files, each written by a thread of its own, and servers to which metrics are sent.

use super::terminal::Terminal;
use anyhow::{Context as _, anyhow};
use plimsoll_javascript::Level;
use plimsoll_k6::secrets::Secrets;
use plimsoll_k6_run::metrics::{MetricId, Registry};
use plimsoll_k6_run::output::{Format, LineOutput, Lines, Output, csv_header, json_metric};
use plimsoll_k6_run::threshold::Limits;
use plimsoll_push::{Context, Push, Settings};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::JoinHandle;

/// The most batches of lines that wait to be written.
const WAITING: usize = 64;

/// An output of `--out`.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum WantedOutput {
    File(OutputFile),
    /// A server.
    Push(Box<Settings>),
}

/// A file of `--out`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OutputFile {
    format: Format,
    /// None for standard output.
    file: Option<String>,
}

/// The outputs of a run under way.
pub(super) struct Outputs {
    files: Vec<(LineOutput, JoinHandle<anyhow::Result<()>>)>,
    pushes: Vec<Push>,
}

/// The parts of a run that outputs need.
pub(super) struct RunOfOutputs<'a> {
    pub(super) registry: &'a Registry,
    pub(super) limits: &'a [Limits],
    pub(super) secrets: &'a Arc<Secrets>,
    pub(super) terminal: &'a Arc<Terminal>,
}

impl WantedOutput {
    /// Reads `json=FILE`, `csv=FILE`, and the names of outputs that send metrics to a server, each of which may have its
    /// URL, and is set up by variables of the environment.
    ///
    /// # Errors
    /// A message for each fault.
    pub(super) fn parse(text: &str, environment: &[(String, String)]) -> Result<WantedOutput, Vec<String>> {
        match Settings::parse(text, environment) {
            Some(settings) => settings.map(|settings| WantedOutput::Push(settings.into())),
            None => OutputFile::parse(text).map(WantedOutput::File).map_err(|why| vec![why]),
        }
    }
}

impl OutputFile {
    fn parse(text: &str) -> Result<OutputFile, String> {
        let (format, file) = text.split_once('=').map_or((text, None), |(format, file)| (format, Some(file)));
        let format = match format {
            "json" => Format::Json,
            "csv" => Format::Csv,
            other => {
                let known = "`json=FILE`, `csv=FILE`, `experimental-prometheus-rw=URL` or `opentelemetry=URL`";
                return Err(format!("expected {known} in `--out`, found `{other}`"));
            }
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

    fn start(&self, run: &RunOfOutputs<'_>) -> anyhow::Result<(LineOutput, JoinHandle<anyhow::Result<()>>)> {
        let (out, begun) = (BufWriter::new(self.open()?), begin(self, run.registry, run.limits));
        let mut file = Samples { out, begun, secrets: Arc::clone(run.secrets) };
        let (to, lines) = sync_channel(WAITING);
        let shown = self.file.clone().unwrap_or_else(|| "standard output".to_owned());
        let thread = std::thread::spawn(move || file.write(&lines).with_context(|| format!("failed to write {shown}")));
        Ok((LineOutput { format: self.format, to }, thread))
    }
}

impl RunOfOutputs<'_> {
    fn context(&self) -> Context {
        let (secrets, terminal) = (Arc::clone(self.secrets), Arc::clone(self.terminal));
        Context {
            registry: Arc::new(self.registry.clone()),
            mask: Arc::new(move |text| secrets.masked(text)),
            on_loss: Arc::new(move |lost| terminal.log(Level::Error, lost)),
        }
    }
}

impl Outputs {
    /// Opens the files, and starts to send to servers.
    pub(super) fn start(wanted: &[WantedOutput], run: &RunOfOutputs<'_>) -> anyhow::Result<Outputs> {
        let mut outputs = Outputs { files: Vec::new(), pushes: Vec::new() };
        for wanted in wanted {
            match wanted {
                WantedOutput::File(file) => outputs.files.push(file.start(run)?),
                WantedOutput::Push(settings) => {
                    outputs.pushes.push(Push::start((**settings).clone(), run.context()).map_err(|why| anyhow!(why))?);
                }
            }
        }
        Ok(outputs)
    }

    /// The outputs that samples go to.
    pub(super) fn of_run(&self) -> Vec<Output> {
        let lines = self.files.iter().map(|(output, _)| Output::Lines(output.clone()));
        let series = self.pushes.iter().map(|push| Output::Series(Arc::clone(push.collector())));
        lines.chain(series).collect()
    }

    /// Writes and sends the remaining samples. Passes what a server did not receive to `on_loss`: that is no reason for
    /// another end of the run. Fails with what is wrong with the first file that cannot be written.
    pub(super) fn finish(self, mut on_loss: impl FnMut(&str)) -> anyhow::Result<()> {
        for lost in self.pushes.into_iter().filter_map(Push::finish) {
            on_loss(&lost);
        }
        // The end of the program would cut off a file that is not waited for.
        let mut all = Ok(());
        for (output, thread) in self.files {
            let _ = output.to.send(Lines::default());
            let panicked = |_| Err(anyhow!("the thread that writes samples has panicked"));
            all = all.and(thread.join().unwrap_or_else(panicked));
        }
        all
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
    use super::super::terminal::LogSettings;
    use super::*;
    use crate::arguments::{LogFormat, LogOutput};

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

    #[test]
    fn a_file_that_cannot_be_written_leaves_the_others_whole() {
        let (registry, secrets) = (Registry::default(), Arc::<Secrets>::default());
        let settings =
            LogSettings { output: &LogOutput::Nowhere, format: LogFormat::Raw, console: None, secrets: &secrets };
        let terminal = Arc::new(Terminal::open(true, &settings).expect("it opens no file"));
        let run = RunOfOutputs { registry: &registry, limits: &[], secrets: &secrets, terminal: &terminal };
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("samples.csv");
        let files = ["/dev/full", path.to_str().expect("text")];
        let wanted = files.map(|file| OutputFile { format: Format::Csv, file: Some(file.to_owned()) });
        let outputs = Outputs::start(&wanted.map(WantedOutput::File), &run).expect("both are opened");
        for (output, _) in &outputs.files {
            let lines = Lines { text: "one\n".to_owned(), metrics: BTreeSet::new() };
            output.to.send(lines).expect("it waits for lines");
        }
        let error = outputs.finish(|_| ()).expect_err("the first one is full");
        assert!(format!("{error:#}").contains("/dev/full"), "{error:#}");
        let written = std::fs::read_to_string(&path).expect("it is there");
        assert_eq!(written, format!("{}\none\n", csv_header()));
    }
}
