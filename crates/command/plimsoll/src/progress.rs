//! The progress of a run. A terminal shows a bar over the time under load and a line per trial; any other output gets
//! the lines alone, and in long trials one a minute that says where they are.

use crate::machine::{self, TimeSharing};
use crate::printable::printable;
use crate::say;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use plimsoll_analysis::quantity;
use plimsoll_model::event::{Event, Second};
use plimsoll_model::look::Look;
use plimsoll_model::measure::Unit;
use plimsoll_model::plan::Plan;
use plimsoll_model::start::{Load, Phase, Validity};
use plimsoll_study::Study;
use std::cell::Cell;
use std::fmt;
use std::io::IsTerminal;
use std::path::Path;
use std::time::{Duration, Instant};

/// How often a line reports the preparation of data if there is no bar.
const TELL_DATA_EVERY: Duration = Duration::from_secs(10);

/// How often a line says where a trial is if there is no bar.
const TELL_LOAD_EVERY: Duration = Duration::from_secs(60);

/// Shows events as they come.
pub(crate) struct Progress {
    bar: ProgressBar,
    /// The largest number of a trial or start, as far as is known.
    trials: u32,
    conditions: usize,
    sharing: TimeSharing,
    /// True if the loads may take less time than is planned.
    is_limit: bool,
    /// True if the command that runs it has `--keep-going`.
    can_keep_going: bool,
    /// True if the number of users changes within a load, by a control loop.
    tells_users: bool,
    /// The trial under way, in words.
    current: String,
    phase: Option<Phase>,
    /// The load under way, where a start has several.
    load: Option<Load>,
    /// Since when data is prepared, and when that was last reported.
    data: Option<(Instant, Instant)>,
    /// When a line was printed last.
    told: Cell<Instant>,
    /// The output of the systems of the last trial, if it does not count.
    output: String,
    /// What was last said of when the run will probably decide.
    forecast: Option<String>,
}

impl Progress {
    /// Prints what is about to run and where its results go. The last argument is true if the command
    /// has `--keep-going`.
    pub(crate) fn new(study: &Study, out: &Path, plan: &Plan, can_keep_going: bool) -> Progress {
        let sharing = TimeSharing::of(plan, &study.facts());
        say::note(&format!("{}\nbundle  {}", study.title, out.display()));
        let bar = ProgressBar::with_draw_target(Some(0), target());
        let style = ProgressStyle::with_template("{bar:20.cyan/dim} {percent:>3} %, {left}  {msg}");
        let style = style.expect("the template is well-formed").with_key("left", left);
        bar.set_style(style);
        Progress {
            bar,
            trials: plan.starts.len() as u32,
            conditions: plan.conditions.len(),
            sharing,
            is_limit: study.ends_after_iterations() || study.is_feedback() || plan.searches(),
            can_keep_going,
            tells_users: study.is_feedback(),
            current: String::new(),
            phase: None,
            load: None,
            data: None,
            told: Cell::new(Instant::now()),
            output: String::new(),
            forecast: None,
        }
    }

    /// Removes the bar.
    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }

    /// Shows one event.
    pub(crate) fn show(&mut self, event: &Event) {
        match event {
            Event::RunStarted { starts, already_done, time_under_load } => {
                self.begin(*starts, *already_done, *time_under_load);
            }
            Event::MachineObserved { others, .. } => {
                if let Some(warning) = machine::warning(others, self.sharing) {
                    self.say(&warning);
                }
            }
            Event::BuildStarted { system, command } => self.set_message(&format!("building {system}: {command}")),
            Event::BuildFinished { system, took } => self.say(&format!("built {system} in {}", time(*took))),
            Event::DataProgress { database, doing, done } => {
                self.making(&format!("data of {database}: {doing} · {:.0} %", done * 100.0));
            }
            Event::DataReady { database, kept, took, size } => {
                self.data = None;
                let how =
                    if *kept { "kept from an earlier run".to_owned() } else { format!("made in {}", time(*took)) };
                self.say(&format!("data of {database}: {}, {how}", quantity::show(*size as f64, Unit::Bytes)));
            }
            Event::StartBegun { start, variants, condition } => {
                let condition = if condition.is_empty() { String::new() } else { format!(" · {condition}") };
                self.current = format!("{}/{} {variants}{condition}", start.number, self.trials);
                self.data = None;
                self.output.clear();
                self.set_message(&self.current);
            }
            Event::PhaseStarted { phase, .. } => {
                self.phase = Some(*phase);
                self.set_message(&format!("{} · {}", self.current, self.stage()));
            }
            Event::LoadBegun { load, .. } => self.load = Some(*load).filter(|_| self.sharing.has_starts()),
            Event::LoadFinished { .. } => {
                // Of loads that run at the same time, the first to be reported counts.
                if let Some(load) = self.load.take() {
                    self.bar.inc(milliseconds(load.lengths.under_load()));
                }
            }
            Event::SecondPassed(second) => self.second(second),
            Event::StartFinished { validity, iterations, errors, others, .. } => {
                self.say(&trial_line(&self.current, validity, *iterations, *errors, *others));
                self.output = outputs(validity);
            }
            Event::BlockRepeated { of, starts, time_under_load, extended, .. } => {
                self.trials += starts;
                self.bar.inc_length(milliseconds(*time_under_load));
                let longer = if *extended { ", with a longer warm-up" } else { "" };
                let unit = if self.sharing.has_starts() { "more start" } else { "more trial" };
                let (starts, time) = (counted((*starts).into(), unit), time(*time_under_load));
                self.say(&format!("block {of} does not count and runs again{longer}: {starts}, {time} under load"));
            }
            Event::TooDisturbed { blocks, others, goes_on: true } => {
                self.say(&format!("{}; the run goes on, as it was asked to", too_disturbed(*blocks, *others)));
            }
            Event::TooDisturbed { blocks, others, goes_on: false } => {
                self.say(&format!("{}: {}", too_disturbed(*blocks, *others), ends_here(self.can_keep_going)));
            }
            Event::LookTaken { look, spared, time_spared } => self.look(look, *spared, *time_spared),
            Event::Warning { message } => self.say(&format!("warning: {}", in_one_line(message))),
            // The output of what ended the run is shown in full.
            Event::RunFinished { complete: false, .. } if self.output.contains('\n') => self.say(&self.output),
            Event::RunFinished { .. }
            | Event::VersionsFound { .. }
            | Event::StartDecided { .. }
            | Event::ObjectsPlaced { .. }
            | Event::ConsoleWritten { .. }
            | Event::Sampled { .. }
            | Event::ResultsComplete(_) => {}
        }
    }

    /// Says when the run will probably decide, unless that was said last.
    pub(crate) fn forecast(&mut self, text: String) {
        if self.forecast.as_ref() != Some(&text) {
            self.say(&text);
            self.forecast = Some(text);
        }
    }

    /// Says what a look has found, and takes the time off that is saved. Starts keep their numbers, and so does their total.
    fn look(&mut self, look: &Look, spared: u32, time_spared: Duration) {
        let unit = if self.sharing.has_starts() { "start" } else { "trial" };
        let less = format!("{} and {} under load", counted(spared.into(), unit), time(time_spared));
        self.say(&look_line(look, self.conditions, Some(less).filter(|_| spared > 0)));
        if !look.decided {
            self.bar.set_length(self.bar.length().unwrap_or(0).saturating_sub(milliseconds(time_spared)));
        }
    }

    fn begin(&mut self, trials: u32, already_done: u32, time_under_load: Duration) {
        self.trials = self.trials.max(trials);
        self.bar.set_length(milliseconds(time_under_load));
        let done = if already_done > 0 { format!(", {already_done} of them done before") } else { String::new() };
        let unit = if self.sharing.has_starts() { "starts" } else { "trials" };
        let at_most = if self.is_limit { "at most " } else { "" };
        self.say(&format!("{trials} {unit}{done}, {at_most}{} under load", time(time_under_load)));
    }

    /// Shows that data is being prepared, which may take long. Without a bar, prints a line now and then.
    fn making(&mut self, what: &str) {
        self.set_message(what);
        let now = Instant::now();
        let (began, told) = self.data.unwrap_or((now, now));
        let is_first = self.data.is_none();
        if self.bar.is_hidden() && (is_first || now.duration_since(told) >= TELL_DATA_EVERY) {
            let after = if is_first { String::new() } else { format!(" after {}", time(now.duration_since(began))) };
            say::note(&format!("{what}{after}"));
            self.data = Some((began, now));
        }
    }

    fn second(&self, second: &Second) {
        let Second { iterations, errors, median, .. } = *second;
        let length = Duration::from(second.recorded.length);
        if self.load.is_none() && matches!(self.phase, Some(Phase::Warmup | Phase::Measure)) {
            self.bar.inc(milliseconds(length));
        }
        let stage = self.stage();
        // Slices are shorter than a second.
        let rate = if length.is_zero() { iterations as f64 } else { iterations as f64 / length.as_secs_f64() };
        let median = median.map_or(String::new(), |median| format!(" · median {:.3} ms", median * 1e3));
        let errors = if errors > 0 { format!(" · {}", counted(errors, "error")) } else { String::new() };
        let users = second.generator.users;
        let users = if self.tells_users { format!(" · {}", counted(users, "user")) } else { String::new() };
        let message = format!("{} · {stage}{users} · {rate:.0}/s{median}{errors}", self.current);
        self.set_message(&message);
        if self.bar.is_hidden() && self.told.get().elapsed() >= TELL_LOAD_EVERY {
            self.say(&message);
        }
    }

    /// The turn or the phase of the start under way.
    fn stage(&self) -> String {
        match (self.load, self.phase) {
            (Some(load), Some(Phase::Warmup | Phase::Measure | Phase::Drain)) => match load.rung {
                Some(rung) => format!("load {} at {}", load.number, quantity::show(rung.level, Unit::Count)),
                None => format!("turn {}", load.turn),
            },
            (_, phase) => phase.map_or(String::new(), |phase| phase.to_string()),
        }
    }

    /// Shows what is under way beside the bar.
    fn set_message(&self, message: &str) {
        self.bar.set_message(printable(message).into_owned());
    }

    /// Prints a permanent line above the bar.
    fn say(&self, line: &str) {
        self.told.set(Instant::now());
        if self.bar.is_hidden() {
            say::note(line);
        } else {
            self.bar.println(printable(line));
        }
    }
}

/// The unit of the bar: slices are shorter than a second.
fn milliseconds(span: Duration) -> u64 {
    span.as_millis() as u64
}

fn target() -> ProgressDrawTarget {
    if std::io::stderr().is_terminal() { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() }
}

/// The load that is left, for the bar, in whole seconds. Starting and stopping systems comes on top, and is not known.
fn left(state: &ProgressState, out: &mut dyn fmt::Write) {
    let left = Duration::from_secs(state.len().unwrap_or(0).saturating_sub(state.pos()).div_ceil(1000));
    let _ = match state.len() {
        None | Some(0) => write!(out, "starting"),
        Some(_) => write!(out, "{} of load left", time(left)),
    };
}

/// The message about a run that others on the machine have disturbed.
fn too_disturbed(blocks: u32, others: f64) -> String {
    let used = machine::others_used(others);
    format!("the last {blocks} blocks do not count, because the generator fell behind while {used}")
}

/// That a run ends early on a busy machine, and what to do.
fn ends_here(can_keep_going: bool) -> String {
    let keep_going = if can_keep_going { "; `plimsoll run --keep-going` runs on whatever others do" } else { "" };
    format!(
        "the run ends here\n  stop what else runs (`plimsoll doctor` says what), or wait until it has ended{keep_going}"
    )
}

fn trial_line(trial: &str, validity: &Validity, iterations: u64, errors: u64, others: Option<f64>) -> String {
    let errors = if errors > 0 { format!(", {}", counted(errors, "error")) } else { String::new() };
    let others = others.map_or(String::new(), |cores| format!("; {} meanwhile", machine::others_used(cores)));
    let (word, reasons) = match validity {
        Validity::Valid => return format!("{trial} · {iterations} iterations{errors}"),
        Validity::Void(reasons) => ("void", reasons),
        Validity::Failed(reasons) => ("failed", reasons),
    };
    let reasons: Vec<String> = reasons.iter().map(|reason| in_one_line(reason)).collect();
    format!("{trial} · {word}: {}{others}", reasons.join("; "))
}

/// A reason with only the last line of a system's output, which is indented below it.
fn in_one_line(reason: &str) -> String {
    let own: Vec<&str> = reason.lines().take_while(|line| !is_output(line)).collect();
    let last = reason.lines().rfind(|line| is_output(line)).map(|line| format!(" {}", line.trim_start()));
    own.join("; ") + &last.unwrap_or_default()
}

/// The output of systems in all reasons why a trial does not count.
fn outputs(validity: &Validity) -> String {
    let lines = validity.reasons().iter().flat_map(|reason| reason.lines()).filter(|line| is_output(line));
    lines.collect::<Vec<&str>>().join("\n")
}

fn is_output(line: &str) -> bool {
    line.starts_with(' ')
}

/// The line about a look. `less` is what is left out because of it, if anything.
fn look_line(Look { repeats, decided, conditions }: &Look, of: usize, less: Option<String>) -> String {
    match less {
        _ if *decided => format!("after {repeats} repeats everything is decided: the run ends here"),
        None => format!("after {repeats} repeats not everything is decided: the run goes on"),
        Some(less) => format!(
            "after {repeats} repeats everything is decided for good under {} of {of} conditions, which run no further: {less} less",
            conditions.len()
        ),
    }
}

fn counted(count: u64, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

/// A span for people: `50 ms`, `45 s`, `2 min 5 s`, `1 h 3 min`.
pub(crate) fn time(span: Duration) -> String {
    let seconds = span.as_secs_f64();
    let whole = span.as_secs();
    match whole {
        0 if span.is_zero() => "0 s".to_owned(),
        0 => format!("{} ms", span.as_millis()),
        1..60 if span.subsec_millis() == 0 => format!("{whole} s"),
        1..60 => format!("{seconds:.1} s"),
        60..3600 if whole.is_multiple_of(60) => format!("{} min", whole / 60),
        60..3600 => format!("{} min {} s", whole / 60, whole % 60),
        _ => format!("{} h {} min", whole / 3600, whole % 3600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trial_is_one_line_whatever_its_system_wrote() {
        let reason = "the system `db` ended by itself; its last output (all of it in output-db.log):\n    one\n    two";
        let failed = Validity::Failed(vec![reason.to_owned(), "too many\nset fewer".to_owned()]);
        let line = "1/4 a · failed: the system `db` ended by itself; its last output (all of it in output-db.log): two; \
                    too many; set fewer";
        assert_eq!(trial_line("1/4 a", &failed, 0, 0, None), line);
        assert_eq!(outputs(&failed), "    one\n    two");
        let void = Validity::Void(vec!["late".to_owned()]);
        assert_eq!(
            trial_line("2/4 b", &void, 0, 0, Some(0.94)),
            "2/4 b · void: late; others used 0.94 cores meanwhile"
        );
    }

    #[test]
    fn a_look_says_what_runs_no_further() {
        let look = |decided, conditions: &[usize]| Look { repeats: 5, decided, conditions: conditions.to_vec() };
        let less = || Some("8 starts and 2 min under load".to_owned());
        for (look, less, line) in [
            (look(true, &[]), less(), "after 5 repeats everything is decided: the run ends here"),
            (look(false, &[]), None, "after 5 repeats not everything is decided: the run goes on"),
            (
                look(false, &[0, 2]),
                less(),
                "after 5 repeats everything is decided for good under 2 of 6 conditions, which run no further: 8 starts and \
                 2 min under load less",
            ),
        ] {
            assert_eq!(look_line(&look, 6, less), line);
        }
    }

    #[test]
    fn a_flag_is_advised_only_where_the_command_has_it() {
        assert!(ends_here(true).ends_with("has ended; `plimsoll run --keep-going` runs on whatever others do"));
        assert!(ends_here(false).ends_with("or wait until it has ended"));
    }

    #[test]
    fn times_read_well() {
        for (ms, text) in [
            (0, "0 s"),
            (50, "50 ms"),
            (1500, "1.5 s"),
            (45_000, "45 s"),
            (125_000, "2 min 5 s"),
            (120_000, "2 min"),
            (3_780_000, "1 h 3 min"),
        ] {
            assert_eq!(time(Duration::from_millis(ms)), text);
        }
    }
}
