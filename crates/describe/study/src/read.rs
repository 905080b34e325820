//! Reading a study: from text to a [`Study`], with every fault named at once.

use crate::combination_check;
use crate::document::{Diagnostic, Fault, Faults, FromToml, Node, Severity, Source, profile};
use crate::placeholder_check;
use crate::sample_size;
use crate::study::{Study, TrialTables};
use crate::table::decide::{check_once, decisions};
use crate::table::generator::{self, TargetsTable};
use crate::table::location_of_key;
use crate::table::report::ReportTable;
use crate::table::root::StudyTable;
use crate::table::store::Stores;
use crate::table::target::is_loopback;
use plimsoll_model::database::Database;
use plimsoll_model::factor::{Assignment, Factor, combinations};
use plimsoll_model::start::PhaseLengths;
use plimsoll_model::workload::Steps;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
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
        let study = study(text, profile, dir, processors, &mut faults).filter(|_| !faults.has_errors());
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

fn study(text: &str, profile: Option<&str>, dir: &Path, processors: &[usize], faults: &mut Faults) -> Option<Study> {
    let document = document(text, profile, faults)?;
    let root = Node::root(&document, location_of_key);
    let table = StudyTable::from_toml(&root, faults)?;
    table.check_references(faults);
    let listening = check_placeholders(&root, &table, faults)?;
    let decide = decisions(table.decide(), faults);
    check_once(table.report().and_then(|report| report.measures.as_ref()).into_iter().flatten(), faults);
    let generator = generator::spec(table.generator(), processors, faults);
    let factors = table.factors()?.all_valid()?;
    let tables = trial_tables(&table, listening, dir, processors, faults)?;
    combination_check::check_variants(table.factors()?, faults)?;
    let trials = combination_check::resolve_every_combination(&factors, &tables, faults)?;
    trials.warn_of_unused(table.stores()?, table.databases()?, faults);
    let study = Study {
        title: table.title()?,
        question: table.question()?,
        repeats: table.repeats()?,
        seed: table.seed()?,
        noise_floor: table.noise_floor()?,
        spare_blocks: table.spare_blocks()?,
        looks: table.looks()?,
        factors,
        targets_allow: tables.allowed.clone(),
        generator: generator?,
        decide: decide?,
        report: table.report().map(ReportTable::spec).unwrap_or_default(),
        tables,
        loopback: trials.loopback,
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
        faults.add_syntax(Fault::error(&span, format!("not TOML: {}", error.message())));
    }
    Some(DeValue::Table(profile::apply(document.into_inner(), profile, faults)?))
}

/// Checks placeholders and what depends on them. Returns the systems that have a port.
fn check_placeholders(root: &Node<'_>, table: &StudyTable, faults: &mut Faults) -> Option<BTreeSet<String>> {
    let listening = match (table.factors(), table.systems(), table.databases(), table.stores()) {
        (Some(factors), Some(systems), Some(databases), Some(stores)) => {
            placeholder_check::check(&root.table(faults)?, factors, systems, databases, stores, faults)
        }
        _ => BTreeSet::new(),
    };
    if let Some(systems) = table.systems() {
        systems.check_readiness(&listening, faults);
    }
    let variants = combinations(factors.iter().filter(|factor| factor.is_compared()));
    let mut fine = true;
    let mut tried =
        Tried { loopback: true, stores: BTreeSet::new(), idle_databases: BTreeSet::new(), kept: BTreeMap::new() };
    for condition in combinations(factors.iter().filter(|factor| !factor.is_compared())) {
        let mut lengths: Vec<PhaseLengths> = Vec::new();
        for variant in &variants {
            let assignment = variant.and(&condition);
            check_ports(parts, &assignment, faults);
            let bindings = parts.stand_ins(&assignment, faults);
            match parts.resolve(&assignment, &bindings, faults) {
                Some(spec) => {
                    // A script says only when it runs where it goes.
                    let at_home = hosts(&spec).all(is_loopback) && (!parts.workload.is_script() || allow.is_empty());
                    tried.loopback &= at_home;
                    match &spec.workload.steps {
                        Steps::Storage(storage) => drop(tried.stores.insert(storage.name.clone())),
                        Steps::Sql(sql) => tried.idle_databases.extend(spec.databases_beside(&sql.database)),
                        Steps::Http(_) | Steps::Grpc { .. } | Steps::Flow(_) | Steps::Script(_) => {}
                    }
                    check_targets(&spec, parts, allow, faults);
                    check_kept_data(&spec, parts, &mut tried.kept, faults);
                    lengths.push(length_of(&spec.load));
                }
                None => fine = false,
            }
        }
        if lengths.windows(2).any(|pair| pair[0] != pair[1]) {
            let fault =
                Fault::error(&parts.load.length_span(), "the variants would be measured for different lengths of time");
            faults.add(fault.help("let the lengths in `load` depend on conditions only, not on a compared factor"));
        }
    }
    fine.then_some(tried)
}

fn warn_of_unused_stores(stores: &Stores, used: &BTreeSet<String>, faults: &mut Faults) {
    for (name, place, _) in stores.0.iter().filter(|(name, ..)| !used.contains(name)) {
        let fault = Fault::warning(place, format!("store `{name}` is used in no trial"));
        faults.add(fault.help(format!("storage workloads name it: `store = \"{name}\"`, or a level of a factor")));
    }
}

/// A database that users do not work with takes memory and processors all the same, unless something
/// that names it works with it.
fn warn_of_idle_databases(databases: &DatabaseTables, idle: &BTreeSet<String>, faults: &mut Faults) {
    for (name, place, _) in databases.0.iter().filter(|(name, ..)| idle.contains(name)) {
        if !faults.source().text().contains(&format!("{{{name}.")) {
            let fault = Fault::warning(place, format!("database `{name}` runs in trials that do not use it"));
            faults.add(fault.help("give it `only = { FACTOR = \"LEVEL\" }` with the trials that do"));
        }
    }
}

/// A month: whoever wants to wait longer than that should know it.
const LONG: f64 = 30.0 * DAY;
const DAY: f64 = 86_400.0;

fn warn_of_long_study(study: &Study, faults: &mut Faults) {
    let variants: usize =
        study.factors.iter().filter(|factor| factor.is_compared()).map(|factor| factor.levels.len()).product();
    let conditions = combinations(study.factors.iter().filter(|factor| !factor.is_compared()));
    let once: f64 = conditions
        .iter()
        .map(|condition| {
            let length = study.phase_lengths(condition);
            (length.warmup + length.measure).as_secs_f64()
        })
        .sum();
    let in_block = variants + usize::from(study.noise_floor.is_some());
    let total = once * in_block as f64 * f64::from(study.repeats);
    if total > LONG {
        let message = format!("the trials take {} under load", long_span(total));
        let fault = Fault::warning(&study.parts.load.length_span(), message);
        faults
            .add(fault.help(
                "shorten `duration`, or name fewer levels or repeats; `plimsoll plan` shows what they add up to",
            ));
    }
}

/// Days or years, as people say them.
fn long_span(seconds: f64) -> String {
    let days = seconds / DAY;
    if days < 2.0 * 365.0 { format!("{days:.0} days") } else { format!("{:.0} years", days / 365.0) }
}

fn check_targets(spec: &TrialSpec, parts: &Parts, allow: &[String], faults: &mut Faults) {
    if let Some(target) = &spec.workload.target {
        check_target(&target.host, parts.target_span(&spec.workload), allow, faults);
    }
    for (database, host) in spec.databases.iter().filter_map(|database| Some((database, host_of(database)?))) {
        check_target(host, parts.span_of_database(&database.name), allow, faults);
    }
}

/// A target that is an address can be judged at once. So can a name, and before anybody is asked for
/// its addresses, unless the study lists addresses: then all of the name's may be among them.
fn check_target(host: &str, span: &Span, allow: &[String], faults: &mut Faults) {
    let is_address = |text: &str| text.parse::<IpAddr>().is_ok();
    let strange = match host.parse::<IpAddr>() {
        Ok(address) => !may_load(allow, host, &[address]),
        Err(_) => !is_loopback(host) && !may_load(allow, host, &[]) && !allow.iter().any(|allowed| is_address(allowed)),
    };
    if strange {
        let message = format!("load may not go to {host}, which is not this machine");
        let help = format!("if that host is yours to load, say so: `[targets]` with `allow = [\"{host}\"]`");
        faults.add(Fault::error(span, message).help(help));
    }
}

/// A folder can keep the data of all trials only if it is the same in all of them.
fn check_kept_data(spec: &TrialSpec, parts: &Parts, seen: &mut BTreeMap<PathBuf, Database>, faults: &mut Faults) {
    for (folder, database) in spec.databases.iter().filter_map(kept) {
        let known = seen.entry(folder).or_insert_with(|| database.clone());
        if *known != database {
            let message = format!("`database.{}.data` would keep different data in different trials", database.name);
            let help = "let the name of the folder depend on what differs, as in \"data/{FACTOR}\"";
            faults.add(Fault::error(parts.span_of_data(&database.name), message).help(help));
        }
    }
}

fn check_ports(parts: &Parts, assignment: &Assignment, faults: &mut Faults) {
    let mut taken: Vec<(u16, String)> = Vec::new();
    for (name, choice) in parts.ports(assignment, faults) {
        let PortChoice::Fixed(port) = choice else { continue };
        if let Some((_, other)) = taken.iter().find(|(known, _)| *known == port) {
            let span = parts.port_of(&name).map_or(0..0, |port| port.span.clone());
            let fault = Fault::error(&span, format!("`{other}` and `{name}` both have port {port}"));
            faults.add(fault.help("give them different ports, or leave `port` out and let Plimsoll pick free ones"));
        }
        taken.push((port, name));
    }
}
