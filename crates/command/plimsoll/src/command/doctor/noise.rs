//! `plimsoll doctor --noise`: how much a server differs from itself on this machine in each design, and so how long it
//! takes to see a small difference.
//!
//! The designs take turns block by block, so that all see the same machine. Each has a bundle in a folder that is
//! removed at the end.

use super::wrapped;
use crate::command::interrupt::{Listener, Scratch, Words};
use crate::command::study::{self, Extent};
use crate::command::{WARDEN, demo, report, run};
use crate::exit::{Exit, Failure};
use crate::machine::{self, TimeSharing};
use crate::progress::time;
use crate::say;
use anyhow::Context;
use indicatif::{ProgressBar, ProgressStyle};
use plimsoll_analysis::compare::Comparison;
use plimsoll_analysis::decide::MAX_FORECAST_REPEATS;
use plimsoll_analysis::estimate::MIN_REPEATS;
use plimsoll_analysis::quantity::percent;
use plimsoll_analysis::{Analysis, Input, analyse, words};
use plimsoll_bundle::BundleWriter;
use plimsoll_model::event::Event;
use plimsoll_model::host::LOCAL;
use plimsoll_model::look::Look;
use plimsoll_model::plan::Plan;
use plimsoll_model::result::{FinishedStart, validity_of_loads};
use plimsoll_model::start::Validity;
use plimsoll_model::study::GeneratorSpec;
use plimsoll_runner::generator::LocalThreads;
use plimsoll_runner::{Ending, Run};
use plimsoll_statistics::{repeats_needed, standard_deviation, t_quantile};
use plimsoll_study::Study;
use plimsoll_system::Launcher;
use plimsoll_telemetry::{host_facts, other_processes};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const STUDY: &str = include_str!("noise.toml");

/// The turns of a start: one variant at a time, as long under load as the trials of a block.
const TURNS: &str = "\n[turns]\ncount = 10\nslice = \"300ms\"\nsettle = \"50ms\"\n";

const DESIGNS: [&str; 3] = ["turns", "side by side", "trials"];

/// The differences whose time is told, as shares.
const DIFFERENCES: [f64; 3] = [0.10, 0.05, 0.03];

/// The difference that the sentence below the table is about, and the repeats whose interval the table shows.
const SMALL: f64 = 0.03;
const REPEATS: usize = 5;

/// The level of intervals.
const ALPHA: f64 = 0.05;

pub(super) fn measure() -> Result<Exit, Failure> {
    let signals = Listener::start(Exit::Interrupted as i32)?;
    signals.say(words_of_signals());
    let folder = scratch(&signals)?;
    let mut studies = Vec::new();
    for design in DESIGNS {
        studies.push(DesignUnderTest::read(design, folder.path())?);
    }
    let under_load: Duration = studies.iter().map(|one| one.plan.time_under_load(&one.plan.starts)).sum();
    say::note(&format!(
        "measuring a server against itself in turns, side by side and in trials: {} under load, and nothing else should run …",
        time(under_load)
    ));
    let stopped = || signals.interrupt().is_set();
    if let Some(warning) = other_processes(super::OBSERVATION_TIME, &stopped)
        .and_then(|others| machine::warning(&others, TimeSharing::Turns))
    {
        say::note(&warning);
    }
    let bar = bar(under_load);
    let limits = demo::source()?.study.facts().generator;
    let ending = take_turns(&mut studies, &limits, &signals, &bar);
    bar.finish_and_clear();
    if ending? == Ending::Interrupted {
        return Ok(Exit::Interrupted);
    }
    let found: Vec<(&DesignUnderTest, Input, Analysis)> =
        studies.iter().map(DesignUnderTest::results).collect::<Result<_, Failure>>()?;
    let rows: Vec<Row> = found.iter().flat_map(|(study, input, analysis)| rows(study, input, analysis)).collect();
    say::result(report_of(&rows).trim_end())?;
    let is_known = rows.iter().any(|row| row.sd.is_some() && row.counted > 0);
    Ok(if is_known { Exit::Fine } else { Exit::Open })
}

/// The words for the first signal and the second.
fn words_of_signals() -> Words {
    Words {
        first: Some("interrupted: stopping what runs; nothing is kept (once more ends the program at once)".to_owned()),
        second: Some("ended at once; nothing is kept".to_owned()),
    }
}

/// The folder for the bundles.
fn scratch(signals: &Listener) -> Result<Scratch, Failure> {
    let name = plimsoll_system::random_text(12).context("failed to name a scratch folder")?;
    let path = std::env::temp_dir().join(format!("plimsoll-noise-{name}"));
    let shown = path.display().to_string();
    Ok(signals.scratch(path).with_context(|| format!("failed to make the scratch folder {shown}"))?)
}

/// Runs one block of each design after the other, and begins with the other design each time.
fn take_turns(
    studies: &mut [DesignUnderTest],
    limits: &GeneratorSpec,
    signals: &Listener,
    bar: &ProgressBar,
) -> Result<Ending, Failure> {
    let repeats = studies[0].plan.repeats;
    for block in 1..=repeats {
        for place in 0..studies.len() {
            let count = studies.len();
            let study = &mut studies[(place + block as usize) % count];
            bar.set_message(format!("{} · block {block} of {repeats}", study.design));
            if study.run_block(limits, signals, bar)? == Ending::Interrupted {
                return Ok(Ending::Interrupted);
            }
        }
    }
    Ok(Ending::Complete)
}

/// A design with its study, its bundle, and the time that its blocks took.
struct DesignUnderTest {
    design: &'static str,
    text: String,
    study: Study,
    plan: Plan,
    bundle: PathBuf,
    took: Duration,
    blocks: u32,
    /// The blocks that would count in a study with the usual limits.
    counted: u32,
}

impl DesignUnderTest {
    fn read(design: &'static str, folder: &Path) -> Result<DesignUnderTest, Failure> {
        let turns = if design == "trials" { "" } else { TURNS };
        let text = STUDY.replace("{design}", design) + turns;
        let source = study::read_text("noise.toml", text, None, Path::new("."))?;
        let (study, plan) = study::plan(source.study, Extent::Whole)?;
        study::check_before_start("noise.toml", &study, &plan, false)?;
        let bundle = folder.join(design);
        Ok(DesignUnderTest {
            design,
            text: source.text,
            study,
            plan,
            bundle,
            took: Duration::ZERO,
            blocks: 0,
            counted: 0,
        })
    }

    /// Runs the next block.
    fn run_block(&mut self, limits: &GeneratorSpec, signals: &Listener, bar: &ProgressBar) -> Result<Ending, Failure> {
        let facts = self.study.facts();
        let opened = if self.blocks == 0 {
            BundleWriter::create(&self.bundle, &self.text, &facts, &self.plan, &host_facts(LOCAL))
        } else {
            BundleWriter::resume(&self.bundle, &self.text, &facts, &self.plan)
        };
        let mut bundle = opened.map_err(|error| Failure::new(Exit::Usage, error))?;
        let run = Run {
            study: &self.study,
            plan: &self.plan,
            launcher: &Launcher::of_this_program(&[WARDEN]),
            program: &study::this_program()?,
            generator: &LocalThreads,
            hosts: &BTreeMap::new(),
            folder: &bundle.folder(),
            recorded: &bundle.recorded().clone(),
            interrupted: signals.interrupt(),
            observe: Duration::ZERO,
            keep_going: true,
            pause_after: Some(self.plan.starts_in_block() as u32),
        };
        let (began, mut counts) = (Instant::now(), true);
        let mut tell = |event: &Event| {
            bundle.on_event(event)?;
            if let Event::ResultsComplete(finished) = event {
                counts &= would_count(finished, limits);
            }
            if let Event::SecondPassed(second) = event {
                bar.inc(Duration::from(second.recorded.length).as_millis() as u64);
            }
            Ok(())
        };
        let ending = plimsoll_runner::run(&run, &mut Look::open, &mut tell).map_err(run::failure)?;
        self.took += began.elapsed();
        self.blocks += 1;
        self.counted += u32::from(counts);
        Ok(ending)
    }

    fn results(&self) -> Result<(&DesignUnderTest, Input, Analysis), Failure> {
        let contents = plimsoll_bundle::read(&self.bundle).map_err(|error| Failure::new(Exit::Usage, error))?;
        let input = report::input_of(contents);
        let analysis = analyse(&input);
        Ok((self, input, analysis))
    }

    /// How long one repeat takes, with starting and stopping its systems.
    fn time_of_repeat(&self) -> Duration {
        self.took / self.blocks.max(1)
    }
}

/// True if a start would count with these limits of the generator.
fn would_count(finished: &FinishedStart, limits: &GeneratorSpec) -> bool {
    let mut loads = finished.loads.clone();
    for load in &mut loads {
        if load.headroom.busiest > limits.max_cpu || load.headroom.lateness > limits.max_lateness.into() {
            load.validity = Validity::Void(Vec::new());
        }
    }
    finished.summary.validity.counts() && validity_of_loads(&loads.iter().collect::<Vec<_>>()).counts()
}

/// What a design makes of a measure.
struct Row {
    design: &'static str,
    measure: String,
    /// The blocks that were compared.
    n: usize,
    /// All blocks, and those that would count in a study.
    blocks: u32,
    counted: u32,
    /// The spread between blocks of the logarithm of the ratio of two equal servers; none for too few blocks.
    sd: Option<f64>,
    time_of_repeat: Duration,
    /// True if an interval of the two excludes a change of zero.
    differs: bool,
}

impl Row {
    /// The design in a sentence: `in turns`.
    fn how(&self) -> String {
        if self.design == "side by side" { self.design.to_owned() } else { format!("in {}", self.design) }
    }

    /// The half-width of the interval after so many repeats with this spread, as a share.
    fn half_width(&self, repeats: usize) -> Option<f64> {
        let width = t_quantile(1.0 - ALPHA / 2.0, (repeats - 1) as f64) * self.sd? / (repeats as f64).sqrt();
        Some(width.exp_m1())
    }

    /// The time after which a study would probably see a difference: that of as many repeats as a report asks for where
    /// a difference of this size is open. Blocks that do not count take their time too. None where that would take more than
    /// [`MAX_FORECAST_REPEATS`] repeats, or where no block counts.
    fn time_to_see(&self, difference: f64) -> Option<Duration> {
        if self.counted == 0 {
            return None;
        }
        let needed = repeats_needed(self.sd?, self.n, difference.ln_1p(), ALPHA, MAX_FORECAST_REPEATS)?;
        let of_each = f64::from(self.blocks) / f64::from(self.counted.max(1));
        Some(self.time_of_repeat.mul_f64(needed.max(MIN_REPEATS) as f64 * of_each))
    }
}

fn rows(study: &DesignUnderTest, input: &Input, analysis: &Analysis) -> Vec<Row> {
    let of = |decision: &plimsoll_model::study::Decision| {
        let same = |one: &&Comparison| one.measure == decision.measure;
        let pairs: Vec<&Comparison> = analysis.comparisons.iter().chain(&analysis.floors).filter(same).collect();
        let n = pairs.iter().map(|one| one.pairs.len()).min().unwrap_or(0);
        Row {
            design: study.design,
            measure: words::measure(&decision.measure),
            n,
            blocks: study.blocks,
            counted: study.counted,
            sd: (n >= MIN_REPEATS).then(|| pooled_sd(&pairs)).flatten(),
            time_of_repeat: study.time_of_repeat(),
            differs: pairs.iter().any(|one| excludes_no_change(one)),
        }
    };
    plimsoll_analysis::decisions(&input.facts).iter().map(of).collect()
}

/// The spread of the differences between equal servers: the root of the mean of the variances of both comparisons.
fn pooled_sd(comparisons: &[&Comparison]) -> Option<f64> {
    let variance = |one: &&Comparison| {
        let differences: Vec<f64> = one.pairs.iter().map(|pair| pair.difference(one.measure.effect())).collect();
        Some(standard_deviation(&differences)?.powi(2))
    };
    let variances: Vec<f64> = comparisons.iter().map(variance).collect::<Option<_>>()?;
    Some(plimsoll_statistics::mean(&variances)?.sqrt())
}

fn excludes_no_change(comparison: &Comparison) -> bool {
    let interval = comparison.contrast.as_ref().ok().and_then(|contrast| contrast.interval.as_ref().ok());
    interval.is_some_and(|interval| !interval.contains(1.0))
}

fn report_of(rows: &[Row]) -> String {
    let mut text = String::from("A server against itself on this machine, as it is now\n\n");
    let headings: Vec<String> = DIFFERENCES.iter().map(|difference| format!("sees {}", percent(*difference))).collect();
    let width = rows.iter().map(|row| row.measure.chars().count()).max().unwrap_or(0);
    let _ = writeln!(
        text, // a string takes it
        "design        {:width$}   counts  interval of {REPEATS}  {:>10}  {:>10}  {:>10}",
        "measure",
        headings[0],
        headings[1],
        headings[2]
    );
    for row in rows {
        let half = row.half_width(REPEATS).map_or("unknown".to_owned(), |half| format!("± {}", percent(half)));
        let times: Vec<String> = DIFFERENCES.iter().map(|difference| shown(row, *difference)).collect();
        let _ = writeln!(
            text,
            "{:12}  {:width$}  {:>7}  {half:>13}  {:>10}  {:>10}  {:>10}",
            row.design,
            row.measure,
            format!("{} of {}", row.counted, row.blocks),
            times[0],
            times[1],
            times[2]
        );
    }
    let _ = writeln!(text, "\n{}", wrapped(&conclusion(rows), 0));
    let differing: Vec<String> =
        rows.iter().filter(|row| row.differs).map(|row| format!("{} {}", row.measure, row.how())).collect();
    if !differing.is_empty() {
        let sentence = format!(
            "The same server differed from itself by more than chance explains: {}. That happens in one of 20 comparisons; \
             if it comes back, find out what differs (plimsoll doctor).",
            differing.join(", ")
        );
        let _ = writeln!(text, "{}", wrapped(&sentence, 0));
    }
    let rule = "Times count as many repeats as a report asks for to show a difference, from the spread between blocks that \
                was found here, with starting and stopping. \"counts\" are the blocks that would count in a study. A system \
                of your own varies more or less than this server.";
    let _ = write!(text, "\n{}", wrapped(rule, 0));
    text
}

/// `On this machine a difference of 3 % takes about 4 min in turns, 2 min side by side, 50 min in trials.`
fn conclusion(rows: &[Row]) -> String {
    let Some(measure) = rows.first().map(|row| &row.measure) else { return String::new() };
    let of = |row: &Row| format!("{} {}", shown(row, SMALL), row.how());
    let times: Vec<String> = rows.iter().filter(|row| row.measure == *measure).map(of).collect();
    if rows.iter().all(|row| row.sd.is_none()) {
        return "Too few blocks count to say anything: the machine is too busy. `plimsoll doctor` says with what."
            .to_owned();
    }
    if rows.iter().all(|row| row.counted == 0) {
        return "As it is now, nothing that is measured on this machine would count: the generator falls behind in every block. \
                Stop what else runs; `plimsoll doctor` says with what the machine is busy."
            .to_owned();
    }
    format!("On this machine a difference of {} in the {measure} takes about {}.", percent(SMALL), times.join(", "))
}

/// The time to see a difference, as precise as it is known.
fn shown(row: &Row, difference: f64) -> String {
    match (row.sd, row.time_to_see(difference)) {
        (None, _) => "unknown".to_owned(),
        (_, None) if row.counted == 0 => "never".to_owned(),
        (_, None) => "too long".to_owned(),
        (_, Some(span)) => {
            let unit = if span < Duration::from_secs(120) { 10 } else { 60 };
            time(Duration::from_secs((span.as_secs_f64() / f64::from(unit)).ceil() as u64 * unit as u64))
        }
    }
}

/// A bar over the time under load; hidden where standard error is no terminal.
fn bar(under_load: Duration) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{bar:20.cyan/dim} {percent:>3} %  {msg}");
    ProgressBar::new(under_load.as_millis() as u64).with_style(style.expect("the template is well-formed"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(design: &'static str, sd: Option<f64>, counted: u32) -> Row {
        let time_of_repeat = Duration::from_secs(12);
        Row { design, measure: "median".to_owned(), n: 6, blocks: 6, counted, sd, time_of_repeat, differs: false }
    }

    #[test]
    fn a_wider_spread_takes_longer_and_blocks_that_do_not_count_too() {
        let time = |sd, counted| row("turns", Some(sd), counted).time_to_see(SMALL).expect("it can be seen");
        assert!(time(0.01, 6) < time(0.02, 6));
        assert_eq!(time(0.02, 3), 2 * time(0.02, 6), "every other block counts");
        assert_eq!(time(1e-6, 6), Duration::from_secs(36), "three repeats at least");
        assert_eq!(row("trials", Some(9.0), 6).time_to_see(SMALL), None);
    }

    #[test]
    fn the_answer_is_a_sentence_with_all_designs() {
        let rows = [row("turns", Some(0.01), 6), row("side by side", Some(0.01), 6), row("trials", Some(0.08), 6)];
        let text = report_of(&rows);
        let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let times = "a difference of 3 % in the median takes about 50 s in turns, 50 s side by side, 13 min in trials.";
        assert!(flat.contains(times), "{text}");
        let text = report_of(&[row("turns", Some(0.01), 0), row("trials", Some(0.08), 0)]);
        assert!(text.contains("would count") && text.contains("never") && text.contains("± "), "{text}");
        let text = report_of(&[row("turns", None, 1), row("trials", None, 0)]);
        assert!(text.contains("Too few blocks count") && text.contains("unknown"), "{text}");
    }

    #[test]
    fn the_studies_are_sound_and_turns_as_long_as_trials() {
        let folder = Path::new("nowhere");
        let [turns, _, trials] =
            DESIGNS.map(|design| DesignUnderTest::read(design, folder).expect("a sound study").plan);
        assert_eq!(turns.time_under_load(&turns.starts), trials.time_under_load(&trials.starts));
        assert_eq!((turns.repeats, turns.block_size()), (trials.repeats, 3));
    }
}
