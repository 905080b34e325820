//! Reads and plans a study, for all subcommands.

use crate::exit::{Exit, Failure};
use crate::say;
use anyhow::{Context, anyhow};
use plimsoll_model::start::Plan;
use plimsoll_runner::{PreflightFault, preflight};
use plimsoll_study::{Diagnostic, Severity, Study, Style};
use std::io::IsTerminal;
use std::path::{Path, PathBuf};

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
            Err(Failure::new(Exit::Usage, anyhow!("{shown}\n{name}: {errors} error{plural}; nothing was started")))
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
    /// The baseline against itself, in this many blocks.
    AgainstItself(u32),
}

impl Extent {
    /// The extent for the flags of these names, which exclude one another.
    pub(crate) fn of(quick: bool, until_decided: bool) -> Extent {
        match (quick, until_decided) {
            (true, _) => Extent::Quick,
            (false, true) => Extent::UntilDecided,
            (false, false) => Extent::Whole,
        }
    }

    /// The flag that selects it, after a space.
    pub(crate) fn flag(self) -> &'static str {
        match self {
            Extent::Whole | Extent::AgainstItself(_) => "",
            Extent::Quick => " --quick",
            Extent::UntilDecided => " --until-decided",
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

/// Refuses `--until-decided` for a study without verdicts.
pub(crate) fn check_extent(study: &Study, extent: Extent) -> Result<(), Failure> {
    let ends_early = extent == Extent::UntilDecided;
    must_compare(study.compares() || !ends_early, "--until-decided", "ends a run when every verdict is reached")
}

/// The looks of a study that names none.
const LOOKS: [u32; 3] = [5, 7, 10];

/// Reduces a study to the extent that is run, and plans it.
pub(crate) fn plan(study: Study, extent: Extent) -> (Study, Plan) {
    let study = match extent {
        Extent::Quick => plimsoll_study::quick(study),
        Extent::AgainstItself(repeats) => plimsoll_study::against_itself(study, repeats),
        Extent::Whole | Extent::UntilDecided => study,
    };
    let looks = match extent {
        Extent::UntilDecided if study.looks.is_empty() => LOOKS.to_vec(),
        Extent::UntilDecided => study.looks.clone(),
        Extent::Whole | Extent::Quick | Extent::AgainstItself(_) => Vec::new(),
    };
    let options = plimsoll_plan::Options {
        repeats: looks.last().copied().unwrap_or(study.repeats),
        seed: study.seed,
        duplicate: study.noise_floor.is_some(),
        spare_blocks: study.spare_blocks,
        looks,
        design: study.design(),
    };
    let plan = plimsoll_plan::plan(&study.factors, &options, |condition| study.phase_lengths(condition));
    (study, plan)
}

/// Finds everything else that would go wrong, before anything is started.
pub(crate) fn check_before_start(name: &str, study: &Study, plan: &Plan) -> Result<(), Failure> {
    let program = this_program()?;
    let faults = preflight(study, plan, &program);
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
