//! The values of placeholders in one trial.

use super::login::{LOGIN, Login};
use super::processors::Usable;
use super::template::{FilledSegment, Template};
use crate::document::{Fault, Faults, Span, all_of, nearest};
use crate::table::target::is_loopback;
use plimsoll_model::factor::{Assignment, Level};
use plimsoll_model::storage::{KeyPair, Secret};
use plimsoll_model::units::Processors;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

/// Values of placeholders that only the runner knows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bindings {
    /// The port of each system that has one: `{NAME.port}`, and `{NAME.address}`, which is
    /// `127.0.0.1:PORT`, or that port of another host. A system's own strings say `{port}` and `{address}`.
    pub ports: BTreeMap<String, u16>,
    /// The running program: `{plimsoll}`.
    pub plimsoll: PathBuf,
    /// The key pair of each store whose credentials are generated: in a system's own strings
    /// `{NAME.access_key}` and `{NAME.secret_key}`.
    pub keys: BTreeMap<String, KeyPair>,
    /// The password with which systems log in to each database that has one: `{NAME.password}`, and
    /// a part of `{NAME.url}`.
    pub passwords: BTreeMap<String, Secret>,
    /// The texts of the study's secrets: `{secret.NAME}`.
    pub secrets: BTreeMap<String, Secret>,
    /// The folder in which each system has one of its own for the files that the study writes: `{files}`.
    pub files: PathBuf,
    /// The place of the variant among those that are alive at the same time, from 0, and how many those are: who has
    /// which of the processors that variants have of their own.
    pub place: (usize, usize),
    /// The places of systems and databases that run on other hosts, by their names.
    pub places: BTreeMap<String, Place>,
}

/// A place on another host, for a system or a database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The address at which the host is reached.
    pub address: IpAddr,
    /// The folder there that stands for that of the study.
    pub folder: PathBuf,
    /// The program there: `{plimsoll}` in the system's own strings.
    pub plimsoll: PathBuf,
    /// The folder there in which each system has one of its own for the files that the study writes.
    pub files: PathBuf,
    /// The processors there that systems may use.
    pub processors: Vec<usize>,
}

/// The names that one trial gives a value.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scope<'a> {
    /// The levels of the trial.
    pub(crate) assignment: &'a Assignment,
    /// Ports of the systems, and the running program.
    pub(crate) bindings: &'a Bindings,
    /// The systems and databases that do not run in the trial, each after what it is: `system`.
    pub(crate) not_running: &'a [(&'a str, &'a str)],
    /// The systems and databases that run on other hosts, each with the label of the agent there.
    pub(crate) elsewhere: &'a [(String, String)],
    /// How systems log in to the databases of the trial.
    pub(crate) logins: &'a BTreeMap<String, Login>,
    /// The system whose own strings are looked at.
    pub(crate) system: Option<&'a str>,
    /// Whether the strings that are looked at may hold keys and passwords: those of systems, and of commands that
    /// change the data of a database.
    pub(crate) is_trusted: bool,
    /// The study's folder.
    pub(crate) dir: &'a Path,
    /// The processors that Plimsoll may use.
    pub(crate) processors: &'a [usize],
    /// Those of the generator; none where it may use all.
    pub(crate) of_generator: Option<&'a Processors>,
}

impl<'a> Scope<'a> {
    /// The same trial, seen from inside a system.
    pub(crate) fn inside(self, system: &'a str) -> Scope<'a> {
        Scope { system: Some(system), is_trusted: true, ..self }
    }

    /// The same trial, seen from a command that changes the data of a database.
    pub(crate) fn trusted(self) -> Scope<'a> {
        Scope { is_trusted: true, ..self }
    }

    /// The URL by which one logs in to the database `name`; empty where nothing is known of it.
    pub(crate) fn url_of(&self, name: &str) -> Secret {
        Secret(self.logins.get(name).map(Login::url).unwrap_or_default())
    }

    /// The place of the system whose own strings are looked at; none on this machine.
    pub(crate) fn own_place(&self) -> Option<&'a Place> {
        self.bindings.places.get(self.system?)
    }

    /// The address at which a system or a database is reached.
    pub(crate) fn address_of(&self, name: &str) -> IpAddr {
        address(self.bindings.places.get(name), 0).ip()
    }

    /// The folder that stands for that of the study where a system or a database runs.
    pub(crate) fn folder_of(&self, name: &str) -> &'a Path {
        self.bindings.places.get(name).map_or(self.dir, |place| &place.folder)
    }

    /// The address of a port of that system.
    pub(crate) fn own_address(&self, port: u16) -> SocketAddr {
        address(self.own_place(), port)
    }

    /// The processors for the variant.
    pub(crate) fn usable(&self) -> Usable<'a> {
        let place = self.bindings.place;
        match self.own_place() {
            Some(elsewhere) => Usable { all: &elsewhere.processors, generator: Some(&NO_PROCESSORS), place },
            // Which ones it has is known when an agent is there.
            None if self.system.is_some_and(|system| self.is_elsewhere(system)) => {
                Usable { all: &ANY_PROCESSORS, generator: Some(&NO_PROCESSORS), place }
            }
            None => Usable { all: self.processors, generator: self.of_generator, place },
        }
    }

    /// Fills a template that stands at `span`.
    pub(crate) fn fill(&self, template: &Template, span: &Span, faults: &mut Faults) -> Option<Level> {
        template.fill(&|name| self.value(name)).map_err(|name| faults.add(self.unfilled(&name, span, faults))).ok()
    }

    /// Fills a template that stands at `span`, between the values of users.
    pub(crate) fn filled(&self, template: &Template, span: &Span, faults: &mut Faults) -> Option<Vec<FilledSegment>> {
        template.filled(&|name| self.value(name)).map_err(|name| faults.add(self.unfilled(&name, span, faults))).ok()
    }

    /// The fault for a placeholder to which the trial gives no value.
    fn unfilled(&self, name: &str, span: &Span, faults: &Faults) -> Fault {
        let owner = name.split_once('.').map(|(owner, _)| owner);
        if let Some((kind, owner)) = self.not_running.iter().find(|(_, not_running)| owner == Some(not_running)) {
            return self.fault_not_running(kind, owner, &place_of(&format!("{{{name}}}"), span, faults));
        }
        if let Some((owner, part)) = name.split_once('.').filter(|(owner, part)| self.is_out_of_reach(owner, part)) {
            let place = place_of(&format!("{{{name}}}"), span, faults);
            let message = format!(
                "`{owner}` listens on the loopback of the machine of the run, and not where `on` puts this system"
            );
            let help = match part {
                "address" | "addresses" if !self.logins.contains_key(owner) => {
                    format!("let `{owner}` run on the host of an agent too, or leave `on` out")
                }
                _ => format!("give `{owner}` an `on` too, or leave that of the system out"),
            };
            return Fault::error(&place, message).label("out of reach from another host").help(help);
        }
        unknown_placeholder(name, self.names().iter().map(String::as_str), span, faults)
    }

    /// The fault for naming a system or a database that does not run in this trial.
    pub(crate) fn fault_not_running(&self, kind: &str, name: &str, place: &Span) -> Fault {
        Fault::error(place, format!("{kind} `{name}` does not run in every trial that names it"))
            .label(format!("not where {}", self.assignment))
            .help(format!("`{kind}.{name}.only` leaves it out; let what names it depend on the same factor"))
    }

    /// The label of the agent on whose host a system or a database runs; none on this machine.
    pub(crate) fn label_of(&self, owner: &str) -> Option<String> {
        self.elsewhere.iter().find(|(name, _)| name == owner).map(|(_, label)| label.clone())
    }

    fn is_elsewhere(&self, owner: &str) -> bool {
        self.elsewhere.iter().any(|(name, _)| name == owner)
    }

    /// True for an address at the loopback of this machine, in the strings of a system on another one.
    fn is_out_of_reach(&self, owner: &str, part: &str) -> bool {
        let instance = instance_name(owner, 1);
        let is_here = |name: &str| self.bindings.ports.contains_key(name) && !self.is_elsewhere(name);
        let of_system = ["address", "addresses"].contains(&part) && (is_here(owner) || is_here(&instance));
        let of_login = ["url", "host", "address"].contains(&part)
            && !self.is_elsewhere(owner)
            && self.logins.get(owner).is_some_and(|login| is_loopback(&login.host));
        self.system.is_some_and(|system| self.is_elsewhere(system)) && (of_system || of_login)
    }

    fn value(&self, name: &str) -> Option<Level> {
        match name {
            "plimsoll" => {
                let program = self.own_place().map_or(&self.bindings.plimsoll, |place| &place.plimsoll);
                Some(Level::Text(program.display().to_string()))
            }
            "port" | "address" => self.part(self.system?, name),
            "files" => Some(Level::Text(self.files_of(self.system?).display().to_string())),
            "instance" => number_of_instance(self.system?).map(Level::Integer),
            _ => match name.split_once('.') {
                Some((SECRET, name)) => self.bindings.secrets.get(name).map(|secret| Level::Text(secret.0.clone())),
                Some((owner, part)) if self.is_out_of_reach(owner, part) => None,
                Some((owner, part)) => self.part(owner, part),
                None => self.assignment.get(name).cloned(),
            },
        }
    }

    /// The folder for the files of a system.
    pub(crate) fn files_of(&self, system: &str) -> PathBuf {
        let place = self.bindings.places.get(system);
        place.map_or(&self.bindings.files, |place| &place.files).join(system)
    }

    /// What a system, a store or a database gives.
    fn part(&self, owner: &str, part: &str) -> Option<Level> {
        let Bindings { ports, keys, .. } = self.bindings;
        let keys_and_login = || {
            let of_keys = |pair: &KeyPair| match part {
                "access_key" => Some(Level::Text(pair.access_key.clone())),
                "secret_key" => Some(Level::Text(pair.secret.0.clone())),
                _ => None,
            };
            keys.get(owner).and_then(of_keys).or_else(|| self.logins.get(owner)?.part(part))
        };
        match (ports.get(owner), part) {
            (Some(port), "port") => Some(Level::Integer((*port).into())),
            (Some(port), "address") => Some(Level::Text(self.bindings.address(owner, *port))),
            (None, "addresses") => self.bindings.addresses(owner).map(Level::Text),
            _ => self.is_trusted.then(keys_and_login).flatten(),
        }
    }

    fn names(&self) -> Vec<String> {
        let known = Known {
            factors: self.assignment.0.iter().map(|(name, _)| name.as_str()).collect(),
            systems: names_of(&self.bindings.ports),
            several: self.bindings.ports.keys().filter_map(|name| name.strip_suffix("-1")).collect(),
            keyed: names_of(&self.bindings.keys),
            databases: names_of(self.logins),
            secrets: names_of(&self.bindings.secrets),
        };
        known.placeholders(self.system.is_some(), self.is_trusted)
    }
}

impl Bindings {
    /// The addresses of all instances of a system, with commas between them.
    fn addresses(&self, system: &str) -> Option<String> {
        let names = (1..).map(|number| instance_name(system, number));
        let all: Vec<String> = names.map_while(|name| Some(self.address(&name, *self.ports.get(&name)?))).collect();
        (!all.is_empty()).then(|| all.join(","))
    }

    /// The address of a port of a system.
    fn address(&self, system: &str, port: u16) -> String {
        address(self.places.get(system), port).to_string()
    }
}

/// The generator takes none of the processors of another host.
static NO_PROCESSORS: Processors = Processors(Vec::new());

/// The processors of a host of which nothing is known yet.
static ANY_PROCESSORS: [usize; LAST_PROCESSOR + 1] = {
    let mut all = [0; LAST_PROCESSOR + 1];
    let mut number = 0;
    while number <= LAST_PROCESSOR {
        all[number] = number;
        number += 1;
    }
    all
};

/// No processor of such a host has a larger number.
const LAST_PROCESSOR: usize = 4095;

/// The address of a port at a place; without one, on this machine.
fn address(place: Option<&Place>, port: u16) -> SocketAddr {
    SocketAddr::new(place.map_or(Ipv4Addr::LOCALHOST.into(), |place| place.address), port)
}

/// The name of an instance of a system, from 1.
pub(crate) fn instance_name(system: &str, number: u32) -> String {
    format!("{system}-{number}")
}

/// The number at the end of an instance's name.
fn number_of_instance(name: &str) -> Option<i64> {
    name.rsplit_once('-')?.1.parse().ok()
}

fn names_of<T>(map: &BTreeMap<String, T>) -> Vec<&str> {
    map.keys().map(String::as_str).collect()
}

/// The names from which those of placeholders are made.
pub(crate) struct Known<'a> {
    pub(crate) factors: Vec<&'a str>,
    /// Systems, and databases that are started.
    pub(crate) systems: Vec<&'a str>,
    /// The systems that have several instances.
    pub(crate) several: Vec<&'a str>,
    /// Stores with generated keys.
    pub(crate) keyed: Vec<&'a str>,
    /// Databases, whoever starts them.
    pub(crate) databases: Vec<&'a str>,
    pub(crate) secrets: Vec<&'a str>,
}

impl Known<'_> {
    /// The names that placeholders may have, inside a system or elsewhere. Only where it `is_trusted`, they may stand for
    /// keys and passwords.
    pub(crate) fn placeholders(&self, inside_a_system: bool, is_trusted: bool) -> Vec<String> {
        let parts = |owners: &[&str], parts: &[&str]| -> Vec<String> {
            owners.iter().flat_map(|owner| parts.iter().map(move |part| format!("{owner}.{part}"))).collect()
        };
        let mut names: Vec<String> = self.factors.iter().map(|name| (*name).to_owned()).collect();
        if inside_a_system {
            names.extend(["port", "address", "files", "instance"].map(str::to_owned));
        }
        names.extend(parts(&self.systems, &["port", "address"]));
        names.extend(parts(&self.several, &["addresses"]));
        if is_trusted {
            names.extend(parts(&self.keyed, &KEYS));
            let of_logins = parts(&self.databases, &LOGIN).into_iter().filter(|name| !names.contains(name));
            names.extend(of_logins.collect::<Vec<String>>());
        }
        names.extend(self.secrets.iter().map(|secret| format!("{SECRET}.{secret}")));
        names.push("plimsoll".to_owned());
        names
    }
}

/// The placeholder of the first instance for one such as `web.address`: `web-1.address`.
fn first_instance(name: &str) -> Option<String> {
    let (system, part) = name.split_once('.')?;
    Some(format!("{}.{part}", instance_name(system, 1)))
}

/// What the placeholders of secrets begin with.
pub(crate) const SECRET: &str = "secret";

/// What a store with generated credentials gives.
const KEYS: [&str; 2] = ["access_key", "secret_key"];

/// The fault for a placeholder that nothing fills, in the text at `span`.
pub(crate) fn unknown_placeholder<'a>(
    name: &str,
    known: impl Iterator<Item = &'a str> + Clone,
    span: &Span,
    faults: &Faults,
) -> Fault {
    let of_a_system = format!(".{name}");
    let part = name.split_once('.').map(|(_, part)| part).unwrap_or_default();
    let is_key = KEYS.contains(&part);
    let is_login = LOGIN.contains(&part) && !["port", "address"].contains(&part);
    let secret = name.split_once('.').filter(|(owner, _)| *owner == SECRET).map(|(_, name)| name);
    let help = if let (Some(secret), None) = (secret, nearest(name, known.clone())) {
        format!("say where it comes from: `[secret.{secret}]` with `env = \"VARIABLE\"` or `file = \"PATH\"`")
    } else if let Some(meant) = known.clone().find(|known| known.ends_with(&of_a_system)) {
        match name {
            "port" | "address" => format!("outside a system say whose, as in `{{{meant}}}`"),
            _ => format!("say whose, as in `{{{meant}}}`"),
        }
    } else if let Some(first) = first_instance(name).filter(|first| known.clone().any(|known| known == first)) {
        format!("the system has several instances: say which, as in `{{{first}}}`")
    } else if let Some(meant) = nearest(name, known.clone()) {
        format!("did you mean `{meant}`?")
    } else if is_key {
        "keys are those of a store with `credentials = \"generated\"`, and only systems are told them".to_owned()
    } else if let Some(meant) = name
        .strip_prefix("database.")
        .and_then(|part| known.clone().find(|known| known.split_once('.').is_some_and(|(_, known)| known == part)))
    {
        format!("say which database, by its name: `{{{meant}}}`")
    } else if is_login {
        "how to log in to a `[database.NAME]` is told to systems, and to its `migrate`, alone; of one that is reached by its \
         UNIX socket nothing is told"
            .to_owned()
    } else {
        format!("placeholders here are {}; write `{{{{` for a brace", all_of(known))
    };
    let kind = match name.contains('.') {
        true if secret.is_some() => "no secret is",
        true if is_key => "no store gives",
        true if is_login => "nothing here gives",
        true => "no system gives",
        false => "no factor is named",
    };
    Fault::error(&place_of(&format!("{{{name}}}"), span, faults), format!("{kind} `{name}`"))
        .label("nothing fills this placeholder")
        .help(help)
}

/// Where `part` stands in the text at `span`; all of it if it is not found there, as when escapes
/// hide it.
pub(crate) fn place_of(part: &str, span: &Span, faults: &Faults) -> Span {
    let text = faults.source().text().get(span.clone()).unwrap_or_default();
    match text.find(part) {
        Some(at) => span.start + at..span.start + at + part.len(),
        None => span.clone(),
    }
}
