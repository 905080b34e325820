//! Reading a study: from text to a [`Study`], with every fault named at once.

use crate::combination_check;
use crate::document::{Diagnostic, Fault, Faults, FromToml, Node, Severity, Source, profile};
use crate::placeholder_check;
use crate::sample_size;
use crate::study::Study;
use crate::table::decide::{check_once, decisions, default_measure};
use crate::table::design::DesignSpec;
use crate::table::generator::{self, GeneratorTable, TargetsTable};
use crate::table::location_of_key;
use crate::table::objective::ObjectiveTable;
use crate::table::report::ReportTable;
use crate::table::root::StudyTable;
use crate::trial_tables::TrialTables;
use plimsoll_model::factor::Factor;
use plimsoll_model::units::Processors;
use std::collections::BTreeSet;
use std::path::Path;
use toml::de::{DeTable, DeValue};

/// Reads a study from the text of its file.
///
/// `name` is the file as messages show it, `dir` the study's folder, and `processors` are those
/// that Plimsoll may use, in order. Every combination of levels is tried with stand-in ports, so
/// that whatever a level makes of the study is found before anything starts. There is a study if
/// and only if no diagnostic is an error.
///
/// With a profile the study is the one that this profile makes of it. Without, every profile is
/// looked at as well: a fault in one is a fault of the study.
#[must_use]
pub fn read(
    name: &str,
    text: &str,
    profile: Option<&str>,
    dir: &Path,
    processors: &[usize],
) -> (Option<Study>, Vec<Diagnostic>) {
    let attempt = |profile: Option<&str>| {
        let mut faults = Faults::new(Source::new(name, text));
        let study = study(name, text, profile, dir, processors, &mut faults).filter(|_| !faults.has_errors());
        (study, faults.into_diagnostics())
    };
    let (mut study, mut diagnostics) = attempt(profile);
    if profile.is_none() {
        for name in profile::names(&DeTable::parse_recoverable(text).0.into_inner()) {
            let (changed, found) = attempt(Some(&name));
            diagnostics.extend(found.into_iter().filter(|found| found.severity == Severity::Error));
            study = study.filter(|_| changed.is_some());
        }
        diagnostics = without_duplicates(diagnostics);
    }
    (study, diagnostics)
}

fn without_duplicates(diagnostics: Vec<Diagnostic>) -> Vec<Diagnostic> {
    let mut kept: Vec<Diagnostic> = Vec::new();
    for diagnostic in diagnostics {
        let same = |other: &Diagnostic| (&other.message, &other.span) == (&diagnostic.message, &diagnostic.span);
        if !kept.iter().any(same) {
            kept.push(diagnostic);
        }
    }
    kept
}

fn study(
    name: &str,
    text: &str,
    profile: Option<&str>,
    dir: &Path,
    processors: &[usize],
    faults: &mut Faults,
) -> Option<Study> {
    let document = document(text, profile, faults)?;
    let root = Node::root(&document, location_of_key);
    let table = StudyTable::from_toml(&root, faults)?;
    table.check_references(faults);
    let listening = check_placeholders(&root, &table, faults)?;
    let decide = decisions(table.decide(), default_measure(table.load()), table.compares(), faults);
    check_once(table.report().and_then(|report| report.measures.as_ref()).into_iter().flatten(), faults);
    let generator = generator::spec(table.generator(), table.objective(), processors, faults);
    let factors = table.factors()?.all_valid()?;
    let mut design = table.design(faults);
    table.check_search(design.as_ref(), faults);
    let machine =
        Machine { processors, of_generator: generator.as_ref().and_then(|generator| generator.cpus.as_ref()) };
    let mut tables = trial_tables(&table, listening, dir, machine, faults)?;
    combination_check::check_variants(table.factors()?, faults)?;
    combination_check::check_number(&factors, faults)?;
    if let Some(design) = &mut design {
        combination_check::check_what_is_shared_in_turns(design, &factors, &tables, faults);
    }
    tables.alive = alive_together(&table, design.as_ref(), &factors);
    let trials = combination_check::resolve_every_combination(&factors, &tables, faults)?;
    trials.warn_of_unused(table.stores()?, table.databases()?, faults);
    trials.warn_of_connecting(table.measures(), faults);
    let study = Study {
        design: design?,
        title: table.title()?,
        question: table.question()?,
        repeats: table.repeats()?,
        seed: table.seed()?,
        noise_floor: table.noise_floor()?,
        spare_blocks: table.spare_blocks()?,
        looks: table.looks()?,
        factors,
        targets_allow: tables.allowed.clone(),
        lost_agent: table.generator().map(GeneratorTable::lost_agent).unwrap_or_default(),
        generator: generator?,
        decide: decide?,
        objective: table.objective().map(ObjectiveTable::objective),
        report: table.report().map(ReportTable::spec).unwrap_or_default(),
        tables,
        loopback: trials.loopback,
        file: Path::new(name).file_name().unwrap_or_default().to_string_lossy().into_owned(),
        profile: profile.map(str::to_owned),
        quick: false,
    };
    combination_check::warn_of_long_study(&study, faults);
    sample_size::warn(&study, faults);
    Some(study)
}

/// Parses the file and applies the profile. Places that are no TOML are faults; the rest is read.
fn document<'a>(text: &'a str, profile: Option<&str>, faults: &mut Faults) -> Option<DeValue<'a>> {
    let (document, syntax) = DeTable::parse_recoverable(text);
    for error in syntax {
        let span = error.span().unwrap_or(0..0);
        let fault = Fault::error(&span, format!("not TOML: {}", error.message()));
        let Some(open) = open_brace(text, span.start) else {
            faults.add_syntax(fault);
            continue;
        };
        // All that follows is read as a part of this table, so that other faults would be no faults of their own.
        faults.add_syntax(fault.help(format!("close the brace that line {open} opens")));
        return None;
    }
    Some(DeValue::Table(profile::apply(document.into_inner(), profile, faults)?))
}

/// The line, from 1, of the last text before a place, if it opens a brace that it does not close.
fn open_brace(text: &str, place: usize) -> Option<usize> {
    let before = text.get(..place)?;
    let (line, last) = before.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()).last()?;
    // Braces in quotes are those of placeholders, which are closed.
    (last.matches('{').count() > last.matches('}').count()).then_some(line + 1)
}

/// Checks placeholders and what depends on them. Returns the systems that have a port.
fn check_placeholders(root: &Node<'_>, table: &StudyTable, faults: &mut Faults) -> Option<BTreeSet<String>> {
    let tables = (table.factors(), table.systems(), table.databases(), table.stores(), table.secrets());
    let listening = match tables {
        (Some(factors), Some(systems), Some(databases), Some(stores), Some(secrets)) => {
            let named = placeholder_check::Named { factors, systems, databases, stores, secrets };
            placeholder_check::check(&root.table(faults)?, named, faults)
        }
        _ => BTreeSet::new(),
    };
    if let Some(systems) = table.systems() {
        systems.check_readiness(&listening, faults);
    }
    Some(listening)
}

/// The processors, and who shares them.
#[derive(Clone, Copy)]
struct Machine<'a> {
    /// Those that Plimsoll may use.
    processors: &'a [usize],
    /// Those of the generator; none where it may use all.
    of_generator: Option<&'a Processors>,
}

/// How many variants are alive at the same time, the duplicate included.
fn alive_together(table: &StudyTable, design: Option<&DesignSpec>, factors: &[Factor]) -> usize {
    if design.is_none_or(DesignSpec::is_trials) {
        return 1;
    }
    let compared = factors.iter().filter(|factor| factor.is_compared());
    let duplicate = table.noise_floor().flatten().is_some();
    compared.map(|factor| factor.levels.len()).product::<usize>() + usize::from(duplicate)
}

/// The tables that are resolved for each trial, as where one variant is alive at a time; `None` if one is wrong.
fn trial_tables(
    table: &StudyTable,
    listening: BTreeSet<String>,
    dir: &Path,
    machine: Machine<'_>,
    faults: &Faults,
) -> Option<TrialTables> {
    Some(TrialTables {
        systems: table.systems()?.all_valid()?,
        databases: table.databases()?.all_valid()?,
        stores: table.stores()?.all_valid()?,
        secrets: table.secrets()?.all_valid()?,
        workload: table.workload()?.clone(),
        load: table.load()?.clone(),
        listening,
        seed: table.seed().unwrap_or_default(),
        dir: dir.to_owned(),
        processors: machine.processors.to_vec(),
        of_generator: machine.of_generator.cloned(),
        alive: 1,
        source: faults.source().clone(),
        allowed: table.targets().map(TargetsTable::allowed).unwrap_or_default(),
    })
}
