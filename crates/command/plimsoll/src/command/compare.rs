//! `plimsoll compare`: two bundles of the same study against each other.

use super::{release_report, report};
use crate::arguments;
use crate::exit::{Exit, Failure};
use crate::say;
use anyhow::{Context, anyhow};
use plimsoll_analysis::cross_run::{
    ComparedRun, CrossRunComparison, Difference, NotComparable, ResolvedCell, THIS_PROGRAM, compare_runs,
};
use plimsoll_analysis::{Analysis, Input, OrReason, analyse};
use plimsoll_model::flow::{Body, FlowRequest, JsonPiece, Piece, Text};
use plimsoll_model::plan::Plan;
use plimsoll_model::system::{CommandLine, Probe};
use plimsoll_model::workload::Steps;
use plimsoll_outside::limits::limits;
use plimsoll_report::release::release_of_outside;
use plimsoll_study::{Bindings, PortChoice, Severity, Study};
use std::path::{Path, PathBuf};

/// The text in messages for a port that Plimsoll picks.
const A_PORT: &str = "{port}";

/// The files of a bundle that declare measures, margins and order.
const DECLARING: [&str; 2] = ["study.json", "plan.json"];

/// The folder of the report of results that other tools recorded, where none is asked for.
const REPORT: &str = "release-report";

pub(super) fn compare(arguments: &arguments::Compare) -> Result<Exit, Failure> {
    refuse_same_folder(&arguments.first, &arguments.second)?;
    match [kind(&arguments.first), kind(&arguments.second)] {
        [Kind::Outside, Kind::Outside] => return compare_outside(arguments),
        [Kind::Outside, other] => return Err(mixed(&arguments.first, &arguments.second, other)),
        [other, Kind::Outside] => return Err(mixed(&arguments.second, &arguments.first, other)),
        _ => {}
    }
    let (first, second) = both(Bundle::read(&arguments.first), Bundle::read(&arguments.second))?;
    let compared = compare_runs(&first.run(), &second.run()).map_err(|refusal| refused(arguments, &refusal))?;
    if let Some(out) = &arguments.out {
        std::fs::write(out, plimsoll_report::cross_run::markdown(&compared))
            .with_context(|| format!("failed to write {}", out.display()))?;
    }
    let shown = if arguments.json {
        plimsoll_report::cross_run::json(&compared)
    } else {
        plimsoll_report::cross_run::terminal(&compared)
    };
    say::result(shown.trim_end())?;
    if let Some(out) = &arguments.out {
        say::note(&format!("written to {}", out.display()));
    }
    Ok(exit(&compared, arguments.gate))
}

/// The kind of results in a folder.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Bundle,
    /// Results of another tool.
    Outside,
    Neither,
}

fn kind(folder: &Path) -> Kind {
    match (plimsoll_bundle::is_bundle(folder), plimsoll_outside::is_outside(folder)) {
        (true, _) => Kind::Bundle,
        (false, true) => Kind::Outside,
        (false, false) => Kind::Neither,
    }
}

/// The failure where one folder alone has results of another tool.
fn mixed(outside: &Path, other: &Path, kind: Kind) -> Failure {
    let found = if kind == Kind::Bundle { "is a bundle" } else { "has neither a bundle nor such results" };
    let message = anyhow!(
        "{} has results of another tool, and {} {found}: `plimsoll compare` takes two bundles, or two folders with `NAME.csv` \
         and `NAME.json`",
        outside.display(),
        other.display()
    );
    Failure::new(Exit::Usage, message)
}

/// Two versions whose results other tools recorded. There are no verdicts, so that no gate can be passed.
fn compare_outside(arguments: &arguments::Compare) -> Result<Exit, Failure> {
    if arguments.gate || arguments.json {
        let asked = if arguments.gate { "--gate takes verdicts" } else { "--json writes verdicts" };
        let message = anyhow!(
            "{asked}, and results of other tools give none; without it `plimsoll compare` writes what they show, and \
             `data/changes.csv` for other programs"
        );
        return Err(Failure::new(Exit::Usage, message));
    }
    let usage = |fault: plimsoll_outside::Fault| Failure::new(Exit::Usage, anyhow!(fault));
    let mut first = plimsoll_outside::read(&arguments.first).map_err(usage)?;
    let mut second = plimsoll_outside::read(&arguments.second).map_err(usage)?;
    // Folders such as `v10.0/results` and `v10.1/results` are told apart by their paths.
    if first.name == second.name {
        first.name = arguments.first.display().to_string();
        second.name = arguments.second.display().to_string();
    }
    let compared = plimsoll_outside::compare(first, second).map_err(usage)?;
    let out = arguments.out.as_deref().unwrap_or(Path::new(REPORT));
    let results = [arguments.first.clone(), arguments.second.clone()];
    release_report::write(&release_of_outside(&compared), out, &results)?;
    let limits: Vec<String> = limits(&compared).iter().map(|limit| format!("- {limit}")).collect();
    say::result(&format!("{}\n\nreport  {1}/index.html\n        {1}/README.md", limits.join("\n"), out.display()))?;
    Ok(Exit::Open)
}

fn exit(compared: &CrossRunComparison, gate: bool) -> Exit {
    // If nothing differs, nothing is better or worse; but two runs may be the same.
    if compared.nothing_differs() {
        return match (compared.is_all_equivalent(), gate) {
            (true, _) => Exit::Fine,
            (false, true) => Exit::GateNotPassed,
            (false, false) => Exit::Open,
        };
    }
    let verdicts: Vec<_> = compared.verdicts().collect();
    // A comparison without a verdict does not pass the gate.
    if verdicts.is_empty() {
        return if gate { Exit::GateNotPassed } else { Exit::Open };
    }
    Exit::of(verdicts.into_iter(), gate)
}

fn refuse_same_folder(first: &Path, second: &Path) -> Result<(), Failure> {
    let same = match (first.canonicalize(), second.canonicalize()) {
        (Ok(one), Ok(other)) => one == other,
        _ => false,
    };
    if !same {
        return Ok(());
    }
    let message = anyhow!("{} and {} are the same bundle: name two runs", first.display(), second.display());
    Err(Failure::new(Exit::Usage, message))
}

/// Both values, or the errors of both.
fn both<T>(first: anyhow::Result<T>, second: anyhow::Result<T>) -> Result<(T, T), Failure> {
    let error = match (first, second) {
        (Ok(first), Ok(second)) => return Ok((first, second)),
        (Err(one), Err(other)) => anyhow!("{one:#}\n{other:#}"),
        (Err(error), Ok(_)) | (Ok(_), Err(error)) => error,
    };
    Err(Failure::new(Exit::Usage, error))
}

/// A bundle with its own analysis.
struct Bundle {
    name: String,
    input: Input,
    analysis: Analysis,
    cells: OrReason<Vec<ResolvedCell>>,
    plimsoll: String,
}

impl Bundle {
    fn read(folder: &Path) -> anyhow::Result<Bundle> {
        let contents = plimsoll_bundle::read(folder)?;
        if !contents.declared {
            return Err(anyhow!(changed(folder, &contents.problems)));
        }
        let text = contents.study.clone();
        let input = report::input_of(contents);
        Ok(Bundle {
            name: folder.display().to_string(),
            analysis: analyse(&input),
            cells: cells(&text, &input),
            plimsoll: plimsoll_bundle::written_by(folder).unwrap_or_else(|| "unknown".to_owned()),
            input,
        })
    }

    fn run(&self) -> ComparedRun<'_> {
        ComparedRun {
            name: self.name.clone(),
            input: &self.input,
            analysis: &self.analysis,
            cells: self.cells.clone(),
            plimsoll: self.plimsoll.clone(),
        }
    }
}

/// The reason why a bundle is not judged whose study or plan was edited after the run.
fn changed(folder: &Path, problems: &[String]) -> String {
    let is_told = |name: &&&str| problems.iter().any(|problem| problem.starts_with(**name));
    let files: Vec<String> =
        DECLARING.iter().filter(is_told).map(|name| folder.join(name).display().to_string()).collect();
    format!(
        "{} was changed after the run, so its margins or its order are not those that were declared: put back what the \
         run wrote, or run the study again",
        files.join(" and ")
    )
}

/// The resolved trials of a bundle, from the study's text in it. Folders are relative to the study's own, and
/// processors are counted from 0, so that neither depends on where the study ran.
fn cells(text: &str, input: &Input) -> OrReason<Vec<ResolvedCell>> {
    if text.trim().is_empty() {
        return Err("its study.toml is missing or empty".to_owned());
    }
    let processors: Vec<usize> = (0..input.host.processors.max(1)).collect();
    let profile = input.facts.profile.as_deref();
    let (study, diagnostics) = plimsoll_study::read("study.toml", text, profile, Path::new("."), &processors);
    let Some(study) = study else {
        let first = diagnostics.iter().find(|one| one.severity == Severity::Error);
        let first = first.map(ToString::to_string).unwrap_or_default();
        return Err(format!("this version cannot read its study ({first})"));
    };
    let study = if input.facts.quick { plimsoll_study::quick(study) } else { study };
    resolved(&study, &input.plan, stand_in(text))
}

/// A port that the study does not contain, so that it differs from all other numbers in it.
fn stand_in(text: &str) -> u16 {
    (1..=u16::MAX).rev().find(|port| !text.contains(&port.to_string())).unwrap_or(u16::MAX)
}

/// The cells, with `stand_in` for each port that Plimsoll picks, and [`A_PORT`] for that in text.
fn resolved(study: &Study, plan: &Plan, stand_in: u16) -> OrReason<Vec<ResolvedCell>> {
    let mut cells = Vec::new();
    for condition in &plan.conditions {
        for variant in &plan.variants {
            let assignment = variant.and(condition);
            let ports = study.system_ports(&assignment).into_iter().map(|(name, choice)| match choice {
                PortChoice::Fixed(port) => (name, port),
                PortChoice::Free => (name, stand_in),
            });
            let (ports, plimsoll) = (ports.collect(), PathBuf::from(THIS_PROGRAM));
            let bindings = Bindings { ports, plimsoll, place: (0, 1), ..study.stand_ins() };
            let spec = study.resolve(&assignment, &bindings).map_err(|faults| {
                let first = faults.first().map(ToString::to_string).unwrap_or_default();
                format!("its study no longer resolves for {assignment} ({first})")
            })?;
            let mut cell = ResolvedCell {
                variant: variant.clone(),
                condition: condition.clone(),
                systems: spec.systems,
                databases: spec.databases,
                workload: spec.workload,
                load: spec.load,
            };
            name_ports(&mut cell, &stand_in.to_string());
            cells.push(cell);
        }
    }
    Ok(cells)
}

/// Replaces the stand-in by [`A_PORT`] wherever a study can have a port.
fn name_ports(cell: &mut ResolvedCell, stand_in: &str) {
    let name = |text: &mut String| *text = text.replace(stand_in, A_PORT);
    let name_in = |command: &mut CommandLine| command.0.iter_mut().for_each(name);
    for system in &mut cell.systems {
        name_in(&mut system.start);
        system.build.iter_mut().for_each(name_in);
        system.env.values_mut().for_each(name);
        system.files.iter_mut().flat_map(|files| files.texts.values_mut()).for_each(name);
        match &mut system.ready.probe {
            Probe::Tcp(text) | Probe::Http(text) | Probe::Log(text) => name(text),
            Probe::Command(command) => name_in(command),
            Probe::Started => {}
        }
    }
    match &mut cell.workload.steps {
        Steps::Http(steps) => {
            for step in steps {
                name(&mut step.path);
                step.headers.iter_mut().for_each(|(_, value)| name(value));
            }
        }
        Steps::Flow(flow) => flow.requests.iter_mut().flat_map(literals).for_each(name),
        Steps::Script(script) => script.env.values_mut().chain(script.tags.values_mut()).for_each(name),
        Steps::Grpc { .. } | Steps::Storage(_) | Steps::Sql(_) => {}
    }
}

/// The literal texts in a request of a flow.
fn literals(request: &mut FlowRequest) -> Vec<&mut String> {
    let mut all = of_text(&mut request.path);
    all.extend(request.headers.iter_mut().flat_map(|(_, value)| of_text(value)));
    match &mut request.body {
        Body::Text(text) => all.extend(of_text(text)),
        Body::Json(json) => all.extend(json.0.iter_mut().filter_map(|piece| match piece {
            JsonPiece::Literal(text) => Some(text),
            JsonPiece::Inside(_) | JsonPiece::Whole(_) => None,
        })),
        Body::Form(fields) => all.extend(fields.iter_mut().flat_map(|(_, value)| of_text(value))),
        Body::None | Body::Multipart(_) | Body::File(_) => {}
    }
    all
}

fn of_text(text: &mut Text) -> Vec<&mut String> {
    let literals = text.0.iter_mut().filter_map(|piece| match piece {
        Piece::Literal(text) => Some(text),
        Piece::Value { .. } => None,
    });
    literals.collect()
}

/// The failure with every reason at once, each by name with both values.
fn refused(arguments: &arguments::Compare, refusal: &NotComparable) -> Failure {
    let (first, second) = (arguments.first.display(), arguments.second.display());
    let message = match refusal {
        NotComparable::SameRun => anyhow!("{first} and {second} are copies of the same run: name two runs"),
        NotComparable::DifferentStudy(differences) => {
            let line = |difference: &Difference| {
                let Difference { what, first, second, .. } = difference;
                format!("  {what}\n    first:  {first}\n    second: {second}")
            };
            let lines: Vec<String> = differences.iter().map(line).collect();
            anyhow!(
                "{first} and {second} cannot be compared, because their numbers do not mean the same:\n{}\nrun one study \
                 for both; `plimsoll compare` takes other systems, settings and machines, not another load",
                lines.join("\n")
            )
        }
    };
    Failure::new(Exit::Usage, message)
}
