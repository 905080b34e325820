//! `plimsoll doctor --aa`: measures a system against itself, and how small a change could be detected above that noise.

use super::wrapped;
use crate::arguments;
use crate::command::interrupt::Listener;
use crate::command::study::{self, Extent};
use crate::command::{demo, report, run};
use crate::exit::{Exit, Failure};
use crate::progress::time;
use crate::say;
use plimsoll_analysis::decide::Doubt;
use plimsoll_analysis::noise::{Noise, noise};
use plimsoll_analysis::quantity::{confidence, margin, percent};
use plimsoll_analysis::verdict::roughly;
use plimsoll_analysis::{Analysis, Input, analyse, compare, effect, words};
use std::fmt::Write as _;
use std::path::Path;

/// The numbers of repeats for which the smallest detectable change is reported.
const REPEATS: [usize; 3] = [3, 5, 10];

pub(super) fn measure(study: Option<&Path>, arguments: &arguments::Doctor) -> Result<Exit, Failure> {
    let (name, source) = match study {
        Some(path) => (path.display().to_string(), study::read(path, None)?),
        None => ("demo.toml".to_owned(), demo::source()?),
    };
    let extent = Extent::AgainstItself(arguments.blocks);
    study::check_extent(&source.study, extent)?;
    let signals = Listener::start(Exit::Interrupted as i32)?;
    let out = arguments.out.clone().unwrap_or_else(|| run::new_folder("doctor"));
    let ended = run::run_study(&run::Task {
        name: &name,
        source,
        extent,
        out: &out,
        resume: false,
        resume_command: None,
        judge: report::Judge::Nothing,
        // The answer to the study's own question is not asked for here.
        prints_answer: false,
        keep_going: true,
        fleet: None,
        signals: &signals,
    })?;
    if ended == Exit::SystemFailed {
        say::note(&format!("a trial failed, so no noise floor is told: {}/report/report.md says why", out.display()));
    }
    if ended != Exit::Fine && ended != Exit::Open {
        return Ok(ended);
    }
    let contents = plimsoll_bundle::read(&out).map_err(|error| Failure::new(Exit::Usage, error))?;
    let input = report::input_of(contents);
    let analysis = analyse(&input);
    let noise = noise(&input, &analysis, &REPEATS);
    say::result(noise_report(&input, &analysis, &noise).trim_end())?;
    Ok(exit(&noise))
}

/// The exit code: a noise floor in doubt is a problem; without an interval nothing is known.
fn exit(noise: &[Noise<'_>]) -> Exit {
    if noise.iter().any(|one| one.doubt.is_some()) {
        Exit::Worse
    } else if noise.is_empty() || noise.iter().any(|one| one.detectable.is_err()) {
        Exit::Open
    } else {
        Exit::Fine
    }
}

fn noise_report(input: &Input, analysis: &Analysis, noise: &[Noise<'_>]) -> String {
    let mut text = format!(
        "Noise floor: {} against itself, {}, {} of {}\n",
        input.plan.label(0),
        words::condition_in(&input.plan, 0),
        words::counted(input.plan.repeats as usize, "pair"),
        time(input.plan.lengths[0].measure)
    );
    for one in noise {
        let measure = &one.floor.measure;
        let _ = writeln!(text, "\n{}", words::measure(measure)); // a string takes it
        match &one.floor.contrast {
            Err(reason) => {
                let _ = writeln!(text, "  nothing can be said: {reason}");
            }
            Ok(contrast) => {
                let interval = match &contrast.interval {
                    Ok(interval) => {
                        format!(
                            "{} interval {}",
                            confidence(analysis.alpha),
                            one.floor.ends(*interval, one.floor.notation()).join(" … ")
                        )
                    }
                    Err(reason) => reason.clone(),
                };
                let _ = writeln!(
                    text,
                    "  the same system differs by  {} ({interval}, n = {})",
                    effect::shown(contrast.value, measure),
                    contrast.n
                );
            }
        }
        for (repeats, change) in one.detectable.iter().flatten() {
            let _ = writeln!(
                text,
                "  a study of {repeats:>2} repeats sees  {} or more ({} power)",
                effect::shown(*change, measure),
                percent(compare::POWER)
            );
        }
        let _ = writeln!(text, "{}", wrapped(&conclusion(one), 2));
    }
    text += "\nLonger trials see smaller changes. The floor is that of this system and load, on this machine, today.";
    text
}

fn conclusion(noise: &Noise<'_>) -> String {
    let margin = margin(noise.margin, &noise.floor.measure);
    match noise.doubt {
        Some(Doubt::NotZero) => {
            "Problem: the same system measures differently. By chance that happens once in 20 times; \
                                 run it again, and if it comes back, find out what differs (plimsoll doctor)."
                .to_owned()
        }
        Some(Doubt::Wide) => format!(
            "Problem: the floor is wider than the margin of {margin}, so only differences beyond the floor would \
             stand. Take {}, longer trials, a quieter machine or a larger margin.",
            noise.needed.map_or("more blocks".to_owned(), |needed| format!("about {} repeats", roughly(needed)))
        ),
        None if noise.detectable.is_err() => {
            format!(
                "Nothing is known of it yet: take more blocks, at least {}.",
                plimsoll_analysis::estimate::MIN_REPEATS
            )
        }
        None => {
            let needed = noise.needed.map_or(String::new(), |needed| {
                format!(
                    " A study probably takes {} repeats for that; with fewer, only differences beyond the floor are \
                     found.",
                    roughly(needed)
                )
            });
            format!("Fine: the floor is narrow enough for the margin of {margin}.{needed}")
        }
    }
}
