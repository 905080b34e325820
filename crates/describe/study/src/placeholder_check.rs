//! Checks all placeholders of a study: unknown names, factors that nothing uses, and the systems that
//! are given their port.
//!
//! It reads the document rather than the tables, so that a fault elsewhere in a table does not
//! make a factor look unused.

use crate::document::{Fault, Faults, Node, Span, TableNode, nearest};
use crate::table::factors::{Factors, misplaced_key};
use crate::table::secret::SecretTables;
use crate::table::store::Stores;
use crate::table::system::Systems;
use crate::table::{self, database::DatabaseTables};
use crate::value;
use crate::value::{SECRET, SECRET_OF_LOGIN, Template, is_name, place_of, unknown_placeholder};
use std::collections::BTreeSet;
use toml::de::DeValue;

/// What placeholders can be about.
#[derive(Clone, Copy)]
pub(crate) struct Named<'a> {
    pub(crate) factors: &'a Factors,
    pub(crate) systems: &'a Systems,
    pub(crate) databases: &'a DatabaseTables,
    pub(crate) stores: &'a Stores,
    pub(crate) secrets: &'a SecretTables,
}

/// Checks the placeholders, and returns the systems that have a port.
pub(crate) fn check(root: &TableNode<'_>, named: Named<'_>, faults: &mut Faults) -> BTreeSet<String> {
    let Named { factors, systems, databases, stores, secrets } = named;
    let known = value::Known {
        factors: factors.names(),
        systems: [systems.names(), databases.started()].concat(),
        several: systems.several(),
        keyed: stores.keyed(),
        databases: databases.names(),
        secrets: secrets.names(),
    };
    let uses = uses(root, faults);
    let mut meant = limiting(root, faults);
    for one in &uses {
        let known = known.placeholders(one.system.is_some(), one.is_trusted());
        let of_external = one.name.split_once('.').filter(|(owner, _)| databases.is_external(owner));
        if let Some((owner, _)) = of_external.filter(|_| !known.contains(&one.name)) {
            let place = place_of(&format!("{{{}}}", one.name), &one.span, faults);
            // Worded as where a trial lacks it, so that it is told once.
            let fault = Fault::error(&place, format!("no system gives `{}`", one.name));
            let help = format!("database `{owner}` runs already: write its address as it stands in its `url`");
            faults.add(fault.label("nothing fills this placeholder").help(help));
        } else if !known.contains(&one.name) {
            let fault = unknown_placeholder(&one.name, known.iter().map(String::as_str), &one.span, faults);
            let fault = match value_meant(one, &known, root, faults) {
                Some(help) => fault.help(help),
                None => fault,
            };
            faults.add(fault);
            meant.extend(nearest(&one.name, known.iter().map(String::as_str)).map(str::to_owned));
        }
    }
    report_unused(factors, &uses, &meant, faults);
    report_secrets(secrets, databases, &uses, faults);
    let listening = listening(systems, &uses);
    report_missing_ports(systems, &listening, &uses, faults);
    listening
}

/// A placeholder in the text at `span`.
struct PlaceholderUse<'a> {
    name: String,
    span: Span,
    /// The system in whose table it stands.
    system: Option<String>,
    /// The key in the table of a system or a database.
    key: Option<&'a str>,
    /// Whether a value of users could stand there.
    with_values: bool,
}

impl PlaceholderUse<'_> {
    /// Whether keys and passwords may stand there: in a system, and in a command that changes the data of a database.
    fn is_trusted(&self) -> bool {
        self.system.is_some() || self.key == Some("migrate")
    }
}

/// What to write for a value of users that stands in the braces of a factor, or in those of a script: `${name}`.
fn value_meant(
    one: &PlaceholderUse<'_>,
    known: &[String],
    root: &TableNode<'_>,
    faults: &mut Faults,
) -> Option<String> {
    let PlaceholderUse { name, span, .. } = one;
    let workload = root.get("workload");
    if workload.is_some_and(|workload| one.with_values && table::value_check::is_defined(name, workload, faults)) {
        return Some(format!("write `{{${name}}}`: the dollar sign of users' values stands within the braces"));
    }
    let of_script = faults.source().text().get(span.clone())?.contains(&format!("${{{name}}}"));
    let no_factor_near = nearest(name, known.iter().map(String::as_str)).is_none();
    // In the command of a system a shell may be meant.
    let secret = of_script && no_factor_near && (one.system.is_none() || one.key == Some("env"));
    secret.then(|| {
        format!(
            "for a variable of the environment say `[{SECRET}.{name}]` with `env = \"{name}\"`, and write \
             `{{{SECRET}.{name}}}`"
        )
    })
}

/// Reports secrets that nothing uses, and those that would be told to commands whose words are recorded.
fn report_secrets(
    secrets: &SecretTables,
    databases: &DatabaseTables,
    uses: &[PlaceholderUse<'_>],
    faults: &mut Faults,
) {
    for (name, place, _) in &secrets.0 {
        let placeholder = format!("{SECRET}.{name}");
        if !uses.iter().any(|one| one.name == placeholder) && faults.well_formed() {
            let fault = Fault::warning(place, format!("secret `{name}` is used nowhere"));
            faults.add(fault.help(format!("write `{{{placeholder}}}` where it belongs")));
        }
    }
    let is_secret = |name: &str| {
        name.split_once('.').is_some_and(|(owner, part)| {
            owner == SECRET || (SECRET_OF_LOGIN.contains(&part) && databases.names().contains(&owner))
        })
    };
    for one in uses.iter().filter(|one| is_secret(&one.name)) {
        let Some(key) = one.key.filter(|key| ["build", "version"].contains(key)) else { continue };
        let place = place_of(&format!("{{{}}}", one.name), &one.span, faults);
        let fault = Fault::error(&place, format!("`{key}` is told no secrets: what it says of itself is recorded"));
        faults.add(fault.help("let the command read the secret itself; it has Plimsoll's environment"));
    }
}

fn uses<'a>(root: &TableNode<'a>, faults: &mut Faults) -> Vec<PlaceholderUse<'a>> {
    let mut uses = Vec::new();
    for section in ["store", "workload", "load"] {
        if let Some(node) = root.get(section) {
            let place = Place { system: None, key: None, with_values: section == "workload" && is_http(node, faults) };
            collect(node, place, &mut uses, faults);
        }
    }
    for section in ["system", "database"] {
        for (name, key, node) in keys_of(section, root, faults) {
            let system = (section == "system").then_some(name);
            let place = Place { system, key: Some(key), with_values: false };
            match key {
                // Levels, expressions, and the names and labels of metrics are as they stand, braces and all.
                "only" | "waits" => {}
                "metrics" => {
                    let url = entries(&node, faults).into_iter().find(|(key, _)| *key == "url");
                    url.iter().for_each(|(_, url)| collect(url, place, &mut uses, faults));
                }
                _ => collect(&node, place, &mut uses, faults),
            }
        }
    }
    uses
}

/// What is to be known of the part of the study that is looked at.
#[derive(Clone, Copy)]
struct Place<'a> {
    /// The system in whose table it stands.
    system: Option<&'a str>,
    /// The key in the table of a system or a database.
    key: Option<&'a str>,
    /// Whether users may know values there: what reads the texts says where.
    with_values: bool,
}

fn is_http(workload: &Node<'_>, faults: &mut Faults) -> bool {
    let is_protocol =
        |(key, node): &(&str, Node<'_>)| *key == "protocol" && node.scalar().is_some_and(|is| is.to_string() == "http");
    entries(workload, faults).iter().any(is_protocol)
}

/// The factors on which it depends whether a system or a database is started.
fn limiting(root: &TableNode<'_>, faults: &mut Faults) -> BTreeSet<String> {
    let keys = [keys_of("system", root, faults), keys_of("database", root, faults)].concat();
    let only = keys.iter().filter(|(_, key, _)| *key == "only").flat_map(|(.., only)| entries(only, faults));
    only.map(|(factor, _)| factor.to_owned()).collect()
}

/// What stands in all tables of a section, as `[system.NAME]`: the name, the key, and its value.
fn keys_of<'a>(section: &str, root: &TableNode<'a>, faults: &mut Faults) -> Vec<(&'a str, &'a str, Node<'a>)> {
    let mut keys = Vec::new();
    for (name, table) in root.get(section).map_or_else(Vec::new, |tables| entries(tables, faults)) {
        keys.extend(entries(&table, faults).into_iter().map(|(key, node)| (name, key, node)));
    }
    keys
}

/// The entries of a table; none of anything else, which is a fault where it is read.
fn entries<'a>(node: &Node<'a>, faults: &mut Faults) -> Vec<(&'a str, Node<'a>)> {
    match node.value {
        DeValue::Table(_) => node.table(faults).map_or_else(Vec::new, |table| table.entries().to_vec()),
        _ => Vec::new(),
    }
}

fn collect<'a>(node: &Node<'a>, place: Place<'a>, uses: &mut Vec<PlaceholderUse<'a>>, faults: &mut Faults) {
    match node.value {
        DeValue::String(text) => match Template::parse(text) {
            Ok(template) => {
                for value in template.values().filter(|_| !place.with_values) {
                    faults.add(value::misplaced_value(value, &node.span, faults));
                }
                uses.extend(template.names().map(|name| PlaceholderUse {
                    name: name.to_owned(),
                    span: node.span.clone(),
                    system: place.system.map(str::to_owned),
                    key: place.key,
                    with_values: place.with_values,
                }));
            }
            Err(stray) => {
                let place = place_of(&stray.found, &node.span, faults);
                let fault = Fault::error(&place, format!("{} {}", node.name(), stray.message));
                faults
                    .add(fault.help(
                        "a placeholder is the name of a factor in braces; for a brace itself write `{{` or `}}`",
                    ));
            }
        },
        DeValue::Array(_) => {
            for item in node.items(faults).into_iter().flatten() {
                collect(&item, place, uses, faults);
            }
        }
        DeValue::Table(_) => {
            for (_, entry) in entries(node, faults) {
                collect(&entry, place, uses, faults);
            }
        }
        _ => {}
    }
}

/// Reports factors that nothing uses; those that are `meant` in another way are used.
fn report_unused(factors: &Factors, uses: &[PlaceholderUse<'_>], meant: &BTreeSet<String>, faults: &mut Faults) {
    // In a file that is not all TOML, the use may stand in the part that could not be read.
    if !faults.well_formed() {
        return;
    }
    for factor in &factors.0 {
        let used = uses.iter().any(|one| one.name == factor.name) || meant.contains(&factor.name);
        // A key of the study that stands below `[factors]` and is no list has been reported as that.
        let elsewhere = misplaced_key(&factor.name);
        let reported = elsewhere.is_some() && factor.factor.is_none();
        if !used && is_name(&factor.name) && !reported {
            let fault = Fault::error(&factor.place, format!("factor `{}` is used nowhere", factor.name));
            let help =
                format!("write `{{{}}}` where its level belongs: in a system, the workload or the load", factor.name);
            faults.add(fault.label("its levels would all be the same").help(elsewhere.unwrap_or(help)));
        }
    }
}

/// The systems that are told their port, or say which one they have.
fn listening(systems: &Systems, uses: &[PlaceholderUse<'_>]) -> BTreeSet<String> {
    let told = uses.iter().filter(|one| {
        let own = one.system.as_deref().and_then(|system| one.name.strip_prefix(system)?.strip_prefix('.'));
        matches!(own.unwrap_or(&one.name), "port" | "address")
    });
    let fixed = systems.0.iter().filter(|(_, _, table)| table.as_ref().is_some_and(|table| table.port.is_some()));
    let told = told.filter_map(|one| one.system.as_deref()).flat_map(|table| systems.names_of(table));
    told.map(str::to_owned).chain(fixed.map(|(name, ..)| name.clone())).collect()
}

/// `{counter.address}` makes sense only if the counter knows the port.
fn report_missing_ports(
    systems: &Systems,
    listening: &BTreeSet<String>,
    uses: &[PlaceholderUse<'_>],
    faults: &mut Faults,
) {
    for one in uses {
        let Some((system, "port" | "address")) = one.name.split_once('.') else { continue };
        // Nothing is known about a system whose table is wrong.
        let known = systems.0.iter().any(|(name, _, table)| name == system && table.is_some());
        if known && !listening.contains(system) {
            let place = place_of(&format!("{{{}}}", one.name), &one.span, faults);
            let fault = Fault::error(&place, format!("system `{system}` has no port"));
            faults.add(fault.help("put `{port}` or `{address}` into its `start` or `env`, or give it `port = …`"));
        }
    }
}
