//! `plimsoll report`: the report of a bundle, written from the bundle alone.

use super::study;
use crate::exit::{Exit, Failure};
use crate::say;
use anyhow::Context;
use plimsoll_analysis::{Analysis, Goal, Input, analyse};
use plimsoll_bundle::{Contents, RunFolder};
use plimsoll_model::shell;
use plimsoll_model::start::Validity;
use plimsoll_report::{Document, Gate};
use std::path::{Path, PathBuf};

/// Why a gate takes verdicts.
pub(super) const WHAT_A_GATE_DOES: &str = "passes where the verdicts show that no variant is worse";

/// A report that was written, with its analysis.
pub(super) struct Written {
    /// The answer and a table, as shown on the terminal.
    summary: String,
    folder: PathBuf,
    /// Whether the gate is passed, and what stands in its way.
    pub(super) gate: String,
    /// The analysis.
    pub(super) analysis: Analysis,
    /// The validity of each trial whose block did not run again.
    pub(super) validities: Vec<Validity>,
    /// Whether the run came to its end.
    complete: bool,
}

pub(super) fn report(bundle: &Path, out: Option<&Path>, gate: bool) -> Result<Exit, Failure> {
    let out = out.map_or_else(|| bundle.join("report"), Path::to_owned);
    let written = write(bundle, &out, if gate { Gate::Asked } else { Gate::NotAsked })?;
    print_summary(&written)?;
    if !gate {
        return Ok(Exit::Fine);
    }
    study::must_compare(written.analysis.described.is_empty(), "--gate", WHAT_A_GATE_DOES)?;
    if !written.complete {
        say::result(&format!("gate    {}", written.gate))?;
        return Ok(Exit::GateNotPassed);
    }
    written.judged(Judge::Gate)
}

/// What the exit code of a run depends on, beside whether its trials count.
#[derive(Clone, Copy, Debug)]
pub(super) enum Judge {
    /// Nothing else: it is a demonstration, or a quick run.
    Nothing,
    /// The verdicts.
    Verdicts,
    /// Whether every variant is shown to be no worse.
    Gate,
}

impl Judge {
    /// The goal of the run.
    pub(super) fn goal(self) -> Goal {
        if matches!(self, Judge::Gate) { Goal::Gate } else { Goal::Verdicts }
    }

    /// The gate, as far as it was asked for.
    pub(super) fn gate(self) -> Gate {
        if matches!(self, Judge::Gate) { Gate::Asked } else { Gate::NotAsked }
    }
}

impl Written {
    /// The exit code of a run that came to its end. A failed trial outweighs any verdict. Where no trial
    /// counts, nothing can be concluded.
    pub(super) fn judged(&self, judge: Judge) -> Result<Exit, Failure> {
        if matches!(judge, Judge::Gate) {
            say::result(&format!("gate    {}", self.gate))?;
        }
        if self.validities.iter().any(|validity| matches!(validity, Validity::Failed(_))) {
            return Ok(Exit::SystemFailed);
        }
        if !self.validities.iter().any(Validity::counts) {
            return Ok(match judge {
                Judge::Nothing => Exit::Fine,
                Judge::Verdicts => Exit::Open,
                Judge::Gate => Exit::GateNotPassed,
            });
        }
        Ok(match judge {
            Judge::Nothing => Exit::Fine,
            Judge::Verdicts if !self.analysis.described.is_empty() => Exit::of_description(&self.analysis),
            Judge::Verdicts => Exit::of(self.analysis.verdicts(), false),
            Judge::Gate => Exit::of(self.analysis.verdicts(), true),
        })
    }
}

/// Reads the bundle and writes its report to `out`, with the gate where it was asked for.
pub(super) fn write(bundle: &Path, out: &Path, asked: Gate) -> Result<Written, Failure> {
    let contents = plimsoll_bundle::read(bundle).map_err(|error| Failure::new(Exit::Usage, error))?;
    for problem in &contents.problems {
        say::note(&format!("{}: {problem}", bundle.display()));
    }
    if let Some(place) = RunFolder::at(bundle).data_note().read().filter(|_| !contents.complete) {
        say::note(&format!(
            "the data of its databases still lies in {place}; `plimsoll run --resume` removes it at its end"
        ));
    }
    let input = input_of(contents);
    let stand = input.trials().filter(|result| !input.plan.is_superseded(result.identity()));
    let validities = stand.map(|result| result.validity()).collect();
    let analysis = analyse(&input);
    let documents = plimsoll_report::render(&input, &analysis, asked);
    remove_old_charts(out).and_then(|()| write_documents(&documents, out)).map_err(|failure| {
        let bundle = shell::word(&bundle.display());
        failure.with_help(&format!("the results are kept; for a report elsewhere: plimsoll report {bundle} --out DIR"))
    })?;
    let summary = plimsoll_report::terminal(&input, &analysis);
    let gate = plimsoll_report::gate(&input, &analysis);
    Ok(Written { summary, folder: out.to_owned(), gate, analysis, validities, complete: input.complete })
}

/// Writes documents below a folder, which is made where it is not there.
pub(super) fn write_documents(documents: &[Document], out: &Path) -> Result<(), Failure> {
    for document in documents {
        let path = out.join(&document.path);
        let folder = path.parent().expect("a document lies in a folder");
        std::fs::create_dir_all(folder).with_context(|| format!("failed to make the folder {}", folder.display()))?;
        std::fs::write(&path, &document.bytes).with_context(|| format!("failed to write {}", path.display()))?;
    }
    Ok(())
}

/// Converts the contents of a bundle to the input of the analysis.
pub(super) fn input_of(contents: Contents) -> Input {
    Input {
        facts: contents.facts,
        plan: contents.plan,
        starts: contents.starts,
        origin: contents.origin,
        host: contents.host,
        versions: contents.versions,
        problems: contents.problems,
        complete: contents.complete,
        declared: contents.declared,
    }
    .with_units_noted()
}

/// The folder of charts in that of a report.
const CHARTS: &str = "charts";

/// Removes the charts of an earlier report, of which this one may not have all. They are those that its `report.md` shows:
/// the folder may have other pictures.
fn remove_old_charts(out: &Path) -> Result<(), Failure> {
    let Ok(earlier) = std::fs::read_to_string(out.join("report.md")) else { return Ok(()) };
    let Ok(entries) = std::fs::read_dir(out.join(CHARTS)) else { return Ok(()) };
    let shown = |path: &PathBuf| {
        let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        let is_picture = path.extension().is_some_and(|kind| kind == "svg" || kind == "png");
        is_picture && earlier.contains(&format!("{CHARTS}/{stem}.png"))
    };
    for chart in entries.filter_map(|entry| Some(entry.ok()?.path())).filter(shown) {
        std::fs::remove_file(&chart).with_context(|| format!("failed to remove {}", chart.display()))?;
    }
    Ok(())
}

/// Prints the answer and where the report is.
pub(super) fn print_summary(written: &Written) -> anyhow::Result<()> {
    let (summary, folder) = (written.summary.trim_end(), written.folder.display());
    say::result(&format!("{summary}\n\nreport  {folder}/report.html\n        {folder}/report.md"))
}
