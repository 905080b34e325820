//! The differences between two bundles: those that forbid a comparison, and those that it may be
//! about.

use super::describe;
use super::named_value::NamedValue;
use super::{ComparedRun, ResolvedCell, THIS_PROGRAM};
use crate::distinct::distinct;
use crate::quantity::significant;
use crate::words;
use plimsoll_model::factor::Assignment;
use plimsoll_model::host::{Host, Version, WORKLOAD};
use plimsoll_model::study::FloorRule;
use plimsoll_model::system::SystemSpec;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Load averages before the start are reported as different beyond this difference, as a share of
/// the processors.
const MAX_LOAD_DIFFERENCE: f64 = 0.25;

/// The largest difference in the memory of one machine, as a share: the kernel reserves a varying
/// little for itself.
const MAX_MEMORY_DIFFERENCE: f64 = 0.02;

/// The place of a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// In the study: what is measured, and with what load.
    Study,
    /// In a system: its program, and how it is started.
    System,
    /// In the machine.
    Machine,
    /// In Plimsoll itself.
    Generator,
}

/// A difference between two bundles.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// The place.
    pub kind: Kind,
    /// The name: `program of counter`, `kernel`.
    pub what: String,
    /// The value in the first bundle.
    pub first: String,
    /// The value in the second bundle.
    pub second: String,
    /// The affected variants, where it does not affect all of them.
    pub variants: Option<Vec<Assignment>>,
}

impl fmt::Display for Difference {
    /// `kernel: Linux 6.1 in the first, Linux 6.12 in the second`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} in the first, {} in the second", self.what, self.first, self.second)?;
        match &self.variants {
            Some(variants) => {
                let names: Vec<String> = variants.iter().map(Assignment::label).collect();
                write!(f, " (of {} alone)", names.join(" and "))
            }
            None => Ok(()),
        }
    }
}

impl Difference {
    /// True if it affects this variant.
    #[must_use]
    pub fn touches(&self, variant: &Assignment) -> bool {
        self.variants.as_ref().is_none_or(|variants| variants.contains(variant))
    }
}

/// All differences between two bundles.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Differences {
    /// Differences that give the numbers another meaning: the bundles must not be compared.
    pub(super) forbidding: Vec<Difference>,
    /// Differences that may cause a change in the numbers.
    pub(super) causes: Vec<Difference>,
    /// Differences that cannot be a cause, or that exist between any two runs.
    pub(super) minor: Vec<Difference>,
    /// Facts that could not be compared, with the reason.
    pub(super) unknown: Vec<String>,
}

/// The cells that both bundles have: variant and condition.
pub(super) fn shared(first: &ComparedRun<'_>, second: &ComparedRun<'_>) -> Vec<(Assignment, Assignment)> {
    let mut shared = Vec::new();
    for condition in &first.input.plan.conditions {
        for variant in &first.input.plan.variants {
            let in_second = place(&second.input.plan.conditions, condition).is_some()
                && place(&second.input.plan.variants, variant).is_some();
            if in_second {
                shared.push((variant.clone(), condition.clone()));
            }
        }
    }
    shared
}

/// The index of an assignment among others; the order of factors does not matter.
pub(super) fn place(all: &[Assignment], wanted: &Assignment) -> Option<usize> {
    all.iter().position(|one| is_same(one, wanted))
}

/// True if two assignments give the same levels to the same factors.
pub(super) fn is_same(one: &Assignment, other: &Assignment) -> bool {
    one.0.len() == other.0.len() && one.0.iter().all(|(factor, level)| other.get(factor) == Some(level))
}

pub(super) fn differences(
    first: &ComparedRun<'_>,
    second: &ComparedRun<'_>,
    shared: &[(Assignment, Assignment)],
) -> Differences {
    let mut cell_differences = Differences { forbidding: of_studies(first, second), ..Differences::default() };
    cell_differences.forbidding.extend(nothing_in_common(first, second, shared));
    match (&first.cells, &second.cells) {
        (Ok(ones), Ok(others)) => {
            let pairs = pairs(ones, others, shared);
            cell_differences.forbidding.extend(of_cells(Kind::Study, &pairs, describe::load_and_workload));
            cell_differences.causes.extend(of_cells(Kind::System, &pairs, describe::settings));
        }
        _ => without_cells(first, second, shared, &mut cell_differences),
    }
    let (files, programs): (Vec<_>, Vec<_>) = programs(first, second, &mut cell_differences.unknown)
        .into_iter()
        .partition(|difference| difference.what.starts_with(&format!("program of {WORKLOAD} ")));
    cell_differences.causes.extend(programs);
    let of_study = |difference: Difference| Difference {
        kind: Kind::Study,
        what: difference.what.replacen("program", "file", 1),
        ..difference
    };
    cell_differences.forbidding.extend(files.into_iter().map(of_study));
    let hosts = [first, second].map(|run| &run.input.host);
    let of_machines = unequal_values(Kind::Machine, &describe::host(hosts[0]), &describe::host(hosts[1]));
    let is_slight = |difference: &Difference| difference.what == describe::MEMORY && memory_is_near(hosts);
    let (slight, machines): (Vec<_>, Vec<_>) = of_machines.into_iter().partition(is_slight);
    cell_differences.causes.extend(machines);
    cell_differences.causes.extend(unequal_values(Kind::Machine, &other_machines(first), &other_machines(second)));
    cell_differences.causes.extend(unequal_values(Kind::Generator, &agents(first), &agents(second)));
    let generator = |run: &ComparedRun<'_>| describe::generator(run.input);
    cell_differences.causes.extend(unequal_values(Kind::Generator, &generator(first), &generator(second)));
    let slices = |run: &ComparedRun<'_>| describe::slices(&run.input.plan);
    cell_differences.causes.extend(unequal_values(Kind::Study, &slices(first), &slices(second)));
    let version = |run: &ComparedRun<'_>| vec![("version of Plimsoll".to_owned(), run.plimsoll.clone())];
    cell_differences.causes.extend(unequal_values(Kind::Generator, &version(first), &version(second)));
    cell_differences.minor.extend(unequal_values(Kind::Study, &minor(first), &minor(second)));
    cell_differences.minor.extend(slight);
    cell_differences.minor.extend(load_before(hosts));
    cell_differences
}

/// The other machines on which systems ran. Their memory is left out: it differs a little from boot to boot.
fn other_machines(run: &ComparedRun<'_>) -> Vec<NamedValue> {
    let hosts = run.input.starts.iter().flat_map(|start| &start.summary.hosts);
    let but_memory = |host| describe::host(host).into_iter().filter(|(name, _)| name != describe::MEMORY).collect();
    let machines: BTreeSet<Vec<NamedValue>> = hosts.map(but_memory).collect();
    let of_machine = |(number, values): (usize, Vec<NamedValue>)| {
        values.into_iter().map(move |(name, value)| (format!("{name} of other machine {number}"), value))
    };
    (1..).zip(machines).flat_map(of_machine).collect()
}

/// How many agents generated the load; none where the process of the run did.
fn agents(run: &ComparedRun<'_>) -> Vec<NamedValue> {
    let most = run.input.starts.iter().flat_map(|start| &start.loads).map(|load| load.summary.agents.len()).max();
    let shown = |agents: usize| if agents == 0 { "none".to_owned() } else { agents.to_string() };
    vec![("agents that generate load".to_owned(), shown(most.unwrap_or(0)))]
}

/// Facts that do not affect the mean of the numbers.
fn minor(run: &ComparedRun<'_>) -> Vec<NamedValue> {
    let (facts, plan) = (&run.input.facts, &run.input.plan);
    let yes = |yes: bool| if yes { "yes" } else { "no" }.to_owned();
    let mut all = vec![
        ("title".to_owned(), facts.title.clone()),
        ("question".to_owned(), facts.question.clone()),
        ("seed".to_owned(), plan.seed.to_string()),
        ("repeats".to_owned(), plan.repeats.to_string()),
        ("baseline".to_owned(), plan.variants[0].label()),
        ("noise floor measured".to_owned(), yes(plan.with_duplicate)),
        ("differences beyond the noise floor stand".to_owned(), yes(facts.floor_rule == FloorRule::Beyond)),
        ("first look (--quick)".to_owned(), yes(facts.quick)),
        ("profile".to_owned(), facts.profile.clone().unwrap_or_else(|| "none".to_owned())),
    ];
    // A search has as many loads as it takes.
    let turns = plan.design.turns().filter(|_| !plan.searches());
    all.extend(turns.map(|turns| ("turns on a start".to_owned(), turns.count.to_string())));
    for (index, condition) in plan.conditions.iter().enumerate() {
        let trials = run.input.trials().filter(|trial| trial.condition() == index);
        // Trials of a condition share their cut; where none ran, there is none.
        if let Some(cut) = trials.map(|trial| trial.load.cut).max().filter(|cut| *cut > 0) {
            let name = format!("seconds cut off until all trials were steady, {}", words::condition(condition));
            all.push((name, cut.to_string()));
        }
    }
    all
}

fn of_studies(first: &ComparedRun<'_>, second: &ComparedRun<'_>) -> Vec<Difference> {
    let measured = |run: &ComparedRun<'_>| describe::measured(run.input);
    let (one, other) = (measured(first), measured(second));
    // A measure that only one list has is reported with the lists.
    let in_both = |list: &[NamedValue], other: &[NamedValue]| -> Vec<NamedValue> {
        list.iter().filter(|(name, _)| other.iter().any(|(known, _)| known == name)).cloned().collect()
    };
    unequal_values(Kind::Study, &in_both(&one, &other), &in_both(&other, &one))
}

/// The reason why two bundles share no cell.
fn nothing_in_common(
    first: &ComparedRun<'_>,
    second: &ComparedRun<'_>,
    shared: &[(Assignment, Assignment)],
) -> Option<Difference> {
    let labels = |all: &[Assignment]| all.iter().map(ToString::to_string).collect::<Vec<_>>().join(" | ");
    let differs = |what: &str, one: &[Assignment], other: &[Assignment]| {
        let none_shared = !one.iter().any(|assignment| place(other, assignment).is_some());
        none_shared.then(|| Difference {
            kind: Kind::Study,
            what: what.to_owned(),
            first: labels(one),
            second: labels(other),
            variants: None,
        })
    };
    let (one, other) = (&first.input.plan, &second.input.plan);
    if !shared.is_empty() {
        return None;
    }
    differs("conditions, none of which both have", &one.conditions, &other.conditions)
        .or_else(|| differs("variants, none of which both have", &one.variants, &other.variants))
}

/// Compares the texts of two studies of which one can no longer be resolved.
fn without_cells(
    first: &ComparedRun<'_>,
    second: &ComparedRun<'_>,
    shared: &[(Assignment, Assignment)],
    cell_differences: &mut Differences,
) {
    for run in [first, second] {
        if let Err(reason) = &run.cells {
            cell_differences
                .unknown
                .push(format!("how systems were started in {} is not known, because {reason}", run.name));
        }
    }
    let in_words = |run: &ComparedRun<'_>| {
        let facts = &run.input.facts;
        vec![("load".to_owned(), facts.load.clone()), ("workload".to_owned(), facts.workload.clone())]
    };
    cell_differences.forbidding.extend(unequal_values(Kind::Study, &in_words(first), &in_words(second)));
    let lengths = |run: &ComparedRun<'_>| {
        let plan = &run.input.plan;
        let mut lengths: Vec<NamedValue> = Vec::new();
        for (_, condition) in shared {
            let Some(length) = place(&plan.conditions, condition).and_then(|index| plan.lengths.get(index)) else {
                continue;
            };
            let name = format!("lengths at {}", words::condition(condition));
            let text = format!("warm-up {:?}, measure {:?}, drain {:?}", length.warmup, length.measure, length.drain);
            if !lengths.iter().any(|(known, _)| *known == name) {
                lengths.push((name, text));
            }
        }
        lengths
    };
    cell_differences.forbidding.extend(unequal_values(Kind::Study, &lengths(first), &lengths(second)));
}

type CellPair<'a> = (&'a ResolvedCell, &'a ResolvedCell);

fn pairs<'a>(
    ones: &'a [ResolvedCell],
    others: &'a [ResolvedCell],
    shared: &[(Assignment, Assignment)],
) -> Vec<CellPair<'a>> {
    let cell = |cells: &'a [ResolvedCell], (variant, condition): &(Assignment, Assignment)| {
        cells.iter().find(|cell| is_same(&cell.variant, variant) && is_same(&cell.condition, condition))
    };
    shared.iter().filter_map(|wanted| Some((cell(ones, wanted)?, cell(others, wanted)?))).collect()
}

/// A difference, and the first of the two cells that differ.
type CellDifference<'a> = (Difference, &'a ResolvedCell);

/// The differences between cells, each name once: with the values of the first cell that has it,
/// and with the list of cells where not all differ, or not in the same values.
fn of_cells(kind: Kind, pairs: &[CellPair<'_>], describe: fn(&ResolvedCell) -> Vec<NamedValue>) -> Vec<Difference> {
    let mut by_name: Vec<Vec<CellDifference<'_>>> = Vec::new();
    for (one, other) in pairs {
        for difference in unequal_values(kind, &describe(one), &describe(other)) {
            match by_name.iter_mut().find(|cell_differences| cell_differences[0].0.what == difference.what) {
                Some(cell_differences) => cell_differences.push((difference, one)),
                None => by_name.push(vec![(difference, one)]),
            }
        }
    }
    let all = distinct(pairs.iter().map(|(one, _)| one.variant.clone()));
    let merged = by_name.into_iter().map(|cell_differences| {
        let variants = distinct(cell_differences.iter().map(|(_, cell)| cell.variant.clone()));
        let places = places(&cell_differences, pairs);
        let first = cell_differences[0].0.clone();
        let what = if places.is_empty() { first.what } else { format!("{} ({places})", first.what) };
        Difference { what, variants: (variants.len() < all.len()).then_some(variants), ..first }
    });
    merged.collect()
}

/// The cells in which something differs: the first by name and the number of others; by variant or
/// condition alone where the other makes no difference. Empty where it is the same in all.
fn places(cell_differences: &[CellDifference<'_>], pairs: &[CellPair<'_>]) -> String {
    let alike = cell_differences.iter().all(|(difference, _)| *difference == cell_differences[0].0);
    if alike && cell_differences.len() == pairs.len() {
        return String::new();
    }
    let first = cell_differences[0].1;
    let (name, count, noun) = if let Some(count) = groups(cell_differences, pairs, |cell| &cell.variant) {
        (first.variant.to_string(), count, "variant")
    } else if let Some(count) = groups(cell_differences, pairs, |cell| &cell.condition) {
        (words::condition(&first.condition), count, "condition")
    } else {
        (format!("{}, {}", first.variant, words::condition(&first.condition)), cell_differences.len(), "cell")
    };
    match count {
        0 | 1 => name,
        2 => format!("told for {name}; it differs for one other {noun} too"),
        _ => format!("told for {name}; it differs for {} other {noun}s too", count - 1),
    }
}

/// The number of groups of cells that differ, if in each group either all cells differ, in the same
/// values, or none does.
fn groups(
    cell_differences: &[CellDifference<'_>],
    pairs: &[CellPair<'_>],
    of: fn(&ResolvedCell) -> &Assignment,
) -> Option<usize> {
    let groups = distinct(cell_differences.iter().map(|(_, cell)| of(cell)));
    let is_whole = |group: &Assignment| {
        let all = pairs.iter().filter(|(one, _)| of(one) == group).count();
        let mut differ =
            cell_differences.iter().filter(|(_, cell)| of(cell) == group).map(|(difference, _)| difference);
        let count = differ.clone().count();
        differ.next().is_some_and(|first| differ.all(|other| other == first)) && count == all
    };
    groups.iter().all(|group| is_whole(group)).then_some(groups.len())
}

/// The names with different values in two lists, in the order of the first. A name that one list
/// lacks has the value `none` there.
fn unequal_values(kind: Kind, one: &[NamedValue], other: &[NamedValue]) -> Vec<Difference> {
    let value = |list: &[NamedValue], name: &str| {
        list.iter().find(|(known, _)| known == name).map_or("none".to_owned(), |(_, value)| value.clone())
    };
    let mut names: Vec<&String> = one.iter().map(|(name, _)| name).collect();
    names.extend(other.iter().map(|(name, _)| name).filter(|name| !one.iter().any(|(known, _)| known == *name)));
    names
        .into_iter()
        .map(|name| (name, value(one, name), value(other, name)))
        .filter(|(_, first, second)| first != second)
        .map(|(name, first, second)| Difference { kind, what: name.clone(), first, second, variants: None })
        .collect()
}

/// True if two machines have the same memory, except for what the kernel reserves.
fn memory_is_near(hosts: [&Host; 2]) -> bool {
    let [Some(one), Some(other)] = hosts.map(|host| host.memory) else { return false };
    one.abs_diff(other) as f64 <= MAX_MEMORY_DIFFERENCE * one.max(other) as f64
}

/// Load averages over a minute differ in every run, if only through what ran before it, which may
/// have been the other run. A comparison is never about them.
fn load_before([one, other]: [&Host; 2]) -> Option<Difference> {
    let (first, second) = (one.load_before?[0], other.load_before?[0]);
    let far = (first - second).abs() > MAX_LOAD_DIFFERENCE * one.processors.max(1) as f64;
    far.then(|| Difference {
        kind: Kind::Machine,
        what: "load average before the start".to_owned(),
        first: significant(first),
        second: significant(second),
        variants: None,
    })
}

/// The programs that ran, by system: programs of the same name are compared, and the same file at
/// another path is no difference.
fn programs(first: &ComparedRun<'_>, second: &ComparedRun<'_>, unknown: &mut Vec<String>) -> Vec<Difference> {
    let (ones, others) = (by_place(first), by_place(second));
    let files = |programs: &BTreeMap<ProgramKey, &Version>, system: &str| -> BTreeSet<String> {
        programs.iter().filter(|((name, _), _)| name == system).filter_map(|(_, one)| one.sha256.clone()).collect()
    };
    let mut cell_differences = Vec::new();
    let places: BTreeSet<&ProgramKey> = ones.keys().chain(others.keys()).collect();
    for place in places {
        let (one, other) = (ones.get(place), others.get(place));
        if let (Some(one), Some(other)) = (one, other)
            && one.sha256.is_none()
            && other.sha256.is_none()
            && one.version.is_none()
        {
            unknown.push(format!("whether {} of {} is the same file: neither bundle has its hash", place.1, place.0));
        }
        let is_elsewhere = |version: &&Version, programs: &BTreeMap<ProgramKey, &Version>| {
            version.sha256.as_ref().is_some_and(|hash| files(programs, &place.0).contains(hash))
        };
        let same = match (one, other) {
            (Some(one), Some(other)) if one.sha256.is_some() || other.sha256.is_some() => one.sha256 == other.sha256,
            (Some(one), Some(other)) => one.version == other.version,
            (Some(one), None) => is_elsewhere(one, &others),
            (None, Some(other)) => is_elsewhere(other, &ones),
            (None, None) => true,
        };
        if !same {
            let path = |version: Option<&&Version>| version.and_then(|version| version.path.clone());
            let found_elsewhere = path(one) != path(other);
            let tell = |version: Option<&&Version>| match (version, path(version).filter(|_| found_elsewhere)) {
                (None, _) => "not run".to_owned(),
                (Some(version), None) => version_label(version),
                (Some(version), Some(path)) => format!("{}, {path}", version_label(version)),
            };
            cell_differences.push(Difference {
                kind: Kind::System,
                what: format!("program of {} ({})", place.0, place.1),
                first: tell(one),
                second: tell(other),
                variants: run_by(first, second, place),
            });
        }
    }
    cell_differences
}

/// System and program.
type ProgramKey = (String, String);

fn by_place<'a>(run: &ComparedRun<'a>) -> BTreeMap<ProgramKey, &'a Version> {
    let place = |version: &Version| {
        let own = starts(run, &version.name).any(|program| program == THIS_PROGRAM)
            && version.program.rsplit('/').next() == Some("plimsoll");
        (version.name.clone(), if own { THIS_PROGRAM.to_owned() } else { version.program.clone() })
    };
    run.input.versions.iter().map(|version| (place(version), version)).collect()
}

/// The programs by which a bundle starts a system.
fn starts<'a>(run: &'a ComparedRun<'_>, system: &'a str) -> impl Iterator<Item = &'a str> {
    let cells = run.cells.as_deref().unwrap_or_default();
    let systems = cells.iter().flat_map(|cell| &cell.systems).filter(move |spec| spec.name == system);
    systems.map(|spec| spec.start.program())
}

/// The variants that start this program; none where all of them do, or where that is unknown, as
/// with a program that a wrapper script starts.
fn run_by(
    first: &ComparedRun<'_>,
    second: &ComparedRun<'_>,
    (system, program): &ProgramKey,
) -> Option<Vec<Assignment>> {
    let cells = || [first, second].into_iter().flat_map(|run| run.cells.as_deref().unwrap_or_default());
    let starts = |spec: &SystemSpec| {
        let as_argument = |argument: &String| spec.dir.join(argument).as_os_str() == program.as_str();
        spec.start.program() == program || spec.start.arguments().iter().any(as_argument)
    };
    let runs = |cell: &&ResolvedCell| cell.systems.iter().any(|spec| spec.name == *system && starts(spec));
    let variants = distinct(cells().filter(runs).map(|cell| cell.variant.clone()));
    let all = distinct(cells().map(|cell| cell.variant.clone()));
    (!variants.is_empty() && variants.len() < all.len()).then_some(variants)
}

/// A program as people identify it: by version and the start of its hash.
fn version_label(version: &Version) -> String {
    let hash = version.sha256.as_ref().map(|hash| format!("SHA-256 {}…", &hash[..hash.len().min(12)]));
    let parts: Vec<String> = version.version.iter().cloned().chain(hash).collect();
    if parts.is_empty() { "unknown".to_owned() } else { parts.join(", ") }
}
