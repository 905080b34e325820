//! Reads and plans a study, for all subcommands.

use crate::exit::{Exit, Failure};
use crate::progress::time;
use crate::say;
use anyhow::{Context, anyhow};
use plimsoll_analysis::estimate::{CONFIDENCE, MIN_REPEATS};
use plimsoll_k6_run::duration;
use plimsoll_model::plan::Plan;
use plimsoll_runner::{PreflightFault, preflight};
use plimsoll_statistics::lengths::{Costs, FEWEST_TURNS, TwoLevels};
use plimsoll_study::{Diagnostic, Severity, Study, Style};
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A study with the text that it was read from.
pub(crate) struct Source {
    pub(crate) study: Study,
    pub(crate) text: String,
}

/// Reads the study file at `path`, with a profile of it or as it stands. Reports everything that is wrong with it at
/// once.
pub(crate) fn read(path: &Path, profile: Option<&str>) -> Result<Source, Failure> {
    let shown = path.display().to_string();
    if path.is_dir() {
        let file = path.join("study.toml");
        return Err(Failure::new(
            Exit::Usage,
            anyhow!("expected a study file, found the folder {shown}; give {}", file.display()),
        ));
    }
    let bytes = std::fs::read(path).with_context(|| format!("failed to read the study {shown}"))?;
    let text = String::from_utf8(bytes).map_err(|error| {
        let place = error.utf8_error().valid_up_to();
        Failure::new(Exit::Usage, anyhow!("expected {shown} to be UTF-8 text; byte {place} is none"))
    })?;
    let file = std::path::absolute(path).context("failed to find the study's folder")?;
    read_text(&shown, text, profile, file.parent().expect("a file that was read lies in a folder"))
}

/// Reads a study from its text.
pub(crate) fn read_text(name: &str, text: String, profile: Option<&str>, folder: &Path) -> Result<Source, Failure> {
    let (study, diagnostics) =
        plimsoll_study::read(name, &text, profile, folder, &plimsoll_telemetry::allowed_processors());
    let errors = diagnostics.iter().filter(|diagnostic| diagnostic.severity == Severity::Error).count();
    match study {
        Some(study) if errors == 0 => {
            show(&diagnostics);
            Ok(Source { study, text })
        }
        _ => {
            let plural = if errors == 1 { "" } else { "s" };
            let shown = plimsoll_study::render(&diagnostics, style());
            Err(Failure::new(
                Exit::Usage,
                anyhow!(
                    "{shown}\n{name}: {errors} error{plural}; nothing was started, and what depends on these parts was not checked"
                ),
            ))
        }
    }
}

fn show(warnings: &[Diagnostic]) {
    if !warnings.is_empty() {
        say::note(&plimsoll_study::render(warnings, style()));
    }
}

fn style() -> Style {
    if std::io::stderr().is_terminal() { Style::Coloured } else { Style::Plain }
}

/// How much of a study is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    /// Everything.
    Whole,
    /// A quick run, with fewer levels, repeats and seconds.
    Quick,
    /// As many repeats as it takes to decide.
    UntilDecided,
    /// As many repeats as fit into this time under load.
    For(Duration),
    /// The baseline against itself, in this many blocks.
    AgainstItself(u32),
}

impl Extent {
    /// The extent for the flags of these names, which exclude one another.
    pub(crate) fn of(quick: bool, until_decided: bool, time: Option<Duration>) -> Extent {
        match (quick, until_decided, time) {
            (true, ..) => Extent::Quick,
            (false, true, _) => Extent::UntilDecided,
            (false, false, Some(time)) => Extent::For(time),
            (false, false, None) => Extent::Whole,
        }
    }

    /// The flag that selects it, after a space.
    pub(crate) fn flag(self) -> String {
        match self {
            Extent::Whole | Extent::AgainstItself(_) => String::new(),
            Extent::Quick => " --quick".to_owned(),
            Extent::UntilDecided => " --until-decided".to_owned(),
            Extent::For(time) => format!(" --for {}", duration::format(time)),
        }
    }
}

/// Refuses what takes a verdict where the study reaches none. `flag` is what was asked for.
pub(crate) fn must_compare(compares: bool, flag: &str, what_it_does: &str) -> Result<(), Failure> {
    if compares {
        return Ok(());
    }
    Err(Failure::new(
        Exit::Usage,
        anyhow!(
            "`{flag}` {what_it_does}, and this study reaches none: it compares nothing, and describes one system; leave \
             `{flag}` out, name levels to compare, or hold two bundles of the study against each other: `plimsoll compare \
             EARLIER LATER`"
        ),
    ))
}

/// Refuses `--until-decided` for a study without verdicts or looks, and `doctor --aa` for one whose loads last as long as their
/// work takes.
pub(crate) fn check_extent(study: &Study, extent: Extent) -> Result<(), Failure> {
    if matches!(extent, Extent::AgainstItself(_)) && (study.is_feedback() || study.ends_after_iterations()) {
        return Err(Failure::new(
            Exit::Usage,
            anyhow!(
                "`doctor --aa` loads a system for 3 s at a time, and a load of this study takes as long as its iterations, or its \
                 control loop, do: run the study, whose noise floor tells how much the system differs from itself"
            ),
        ));
    }
    if extent != Extent::UntilDecided {
        return Ok(());
    }
    must_compare(study.compares(), "--until-decided", "ends a run when every verdict is reached")?;
    if study.searches() || study.is_feedback() {
        return Err(Failure::new(
            Exit::Usage,
            anyhow!(
                "`--until-decided` ends a run at a look, and a search for the capacity, a stress test or a control loop has none; \
                 leave it out, or give the run a time (`--for`)"
            ),
        ));
    }
    Ok(())
}

/// The looks of a study that names none.
const LOOKS: [u32; 3] = [5, 7, 10];

/// Reduces a study to the extent that is run, and plans it.
pub(crate) fn plan(study: Study, extent: Extent) -> Result<(Study, Plan), Failure> {
    let study = match extent {
        Extent::Quick => plimsoll_study::quick(study),
        Extent::AgainstItself(repeats) => plimsoll_study::against_itself(study, repeats),
        Extent::For(given) => with_turns_for(study, given),
        Extent::Whole | Extent::UntilDecided => study,
    };
    let looks = match extent {
        Extent::UntilDecided if study.looks.is_empty() => LOOKS.to_vec(),
        Extent::UntilDecided => study.looks.clone(),
        Extent::Whole | Extent::Quick | Extent::AgainstItself(_) | Extent::For(_) => Vec::new(),
    };
    let plan = match extent {
        Extent::For(given) => {
            // In a soak test of one system the interval comes from the load itself.
            let fewest = if study.is_soak() && !study.compares() { 1 } else { MIN_REPEATS as u32 };
            let repeats = repeats_within(&plan_of(&study, 1, &[]), given, fewest)?;
            Plan { given_time: Some(given), ..plan_of(&study, repeats, &[]) }
        }
        _ => plan_of(&study, looks.last().copied().unwrap_or(study.repeats), &looks),
    };
    Ok((study, plan))
}

/// What starting and stopping a system is assumed to take, in seconds: it is not known before the run.
const START_AND_STOP: f64 = 1.0;

/// The study with as many turns on a start as give the narrowest intervals in the time, if its variants take turns and it
/// does not say how many.
fn with_turns_for(study: Study, given: Duration) -> Study {
    if study.names_turns() || study.design().is_trials() || study.searches() {
        return study;
    }
    let repeat_of = |turns| plan_of(&study.clone().with_turns(turns), 1, &[]);
    let under_load = |plan: &Plan| plan.time_under_load(&plan.starts).as_secs_f64();
    let (one, two) = (repeat_of(1), repeat_of(2));
    let systems = (one.block_size() * one.conditions.len()) as f64;
    let turn = under_load(&two) - under_load(&one);
    let costs = Costs { start: under_load(&one) - turn + START_AND_STOP * systems, turn };
    let turns = TwoLevels::ASSUMED.turns_within(given.as_secs_f64(), costs, 1.0 - CONFIDENCE);
    // Too little time for two repeats is said of the shortest ones.
    study.with_turns(turns.unwrap_or(FEWEST_TURNS))
}

/// The most starts of a run: all of them are planned before the first one, in memory.
const MOST_STARTS: u128 = 1_000_000;

/// The repeats that fit into the time, by the plan of one; at least `fewest`. The first and the last repeat of a search take longer
/// than those between.
fn repeats_within(plan: &Plan, given: Duration, fewest: u32) -> Result<u32, Failure> {
    let least = plan.time_of_repeats(fewest);
    if given >= least {
        let further = plan.time_of_repeats(fewest + 1) - least;
        let more = (given - least).as_nanos() / further.as_nanos().max(1);
        let repeats = u128::from(fewest) + more;
        let starts = repeats * plan.starts.len() as u128;
        return match u32::try_from(repeats) {
            Ok(repeats) if starts <= MOST_STARTS => Ok(repeats),
            _ => Err(Failure::new(
                Exit::Usage,
                anyhow!(
                    "`--for` {} has room for {repeats} repeats of this study, which are {starts} starts, and a run has \
                     {MOST_STARTS} at most: give less time",
                    duration::format(given)
                ),
            )),
        };
    }
    let least = Duration::from_secs(least.as_secs_f64().ceil() as u64);
    Err(Failure::new(
        Exit::Usage,
        anyhow!(
            "expected at least {} for `--for`, found {}: {} of this study, which take that long under load; give more time, or \
             shorten `load.duration`",
            time(least),
            time(given),
            if fewest > 1 { format!("an interval takes {fewest} repeats") } else { "it takes one repeat".to_owned() }
        ),
    ))
}

/// The plan of so many repeats.
fn plan_of(study: &Study, repeats: u32, looks: &[u32]) -> Plan {
    let options = plimsoll_plan::Options {
        repeats,
        seed: study.seed,
        duplicate: study.noise_floor.is_some(),
        spare_blocks: study.spare_blocks,
        looks: looks.to_vec(),
        design: study.design(),
    };
    let plan = plimsoll_plan::plan(&study.factors, &options, |condition| study.phase_lengths(condition));
    let ranges = plan.conditions.iter().filter_map(|condition| study.search(condition));
    let searches = ranges.map(plimsoll_plan::search).collect();
    Plan { searches, ..plan }
}

/// Finds everything else that would go wrong, before anything is started by a run that begins or resumes.
pub(crate) fn check_before_start(name: &str, study: &Study, plan: &Plan, resumes: bool) -> Result<(), Failure> {
    let program = this_program()?;
    let faults = preflight(study, plan, &program, resumes);
    if faults.is_empty() {
        show(&plimsoll_runner::notes(study, plan, &program));
        return Ok(());
    }
    let shown = faults.iter().map(|fault| match fault {
        PreflightFault::InStudy(diagnostic) => diagnostic.render(style()).trim_end().to_owned(),
        PreflightFault::Elsewhere(text) => text.clone(),
    });
    let listed = shown.collect::<Vec<_>>().join("\n\n");
    let plural = if faults.len() == 1 { "" } else { "s" };
    Err(Failure::new(Exit::Usage, anyhow!("{listed}\n\n{name}: {} error{plural}; nothing was started", faults.len())))
}

/// The path of this program, which studies can name as `{plimsoll}`.
pub(crate) fn this_program() -> Result<PathBuf, Failure> {
    Ok(std::env::current_exe().context("failed to find this program's own file")?)
}
