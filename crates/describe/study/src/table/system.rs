//! `[system.NAME]`: a process that is started for each trial.

use crate::document::{Fault, Faults, FromToml, Node, Schemas, Span, table};
use crate::table::capture::Pattern;
use crate::table::containers::{AroundContainers, ResolvedStart, StartValue};
use crate::table::metrics::MetricsTable;
use crate::table::named_tables::{NamedTable, NamedTables};
use crate::table::only::Only;
use crate::table::ready::{ReadyValue, ready_by_default};
use crate::value::{
    Command, CpuSet, Instances, Length, Literal, Pairs, Port, Problem, Scalar, Scope, Templated, Text, instance_name,
    resolve_optional,
};
use plimsoll_model::exposed::ExposedSeries;
use plimsoll_model::factor::{Assignment, Level};
use plimsoll_model::system::{StopPolicy, StopSignal, SystemSpec, WrittenFiles};
use plimsoll_model::units::Processors;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::Duration;

table! {
    /// A process that is started for each trial and stopped after it.
    struct SystemTable {
        /// Folder in which its commands run, relative to the study's. Default: the study's folder.
        dir: Option<Templated<Text>>,
        /// Run once before the first trial that needs it. Default: nothing is built.
        build: Option<Command>,
        /// Starts the system: a command that stays in the foreground, or containers, `{ compose = "compose.yaml" }`.
        start: StartValue,
        /// When it counts as ready. Default: when its port accepts a connection; without a port, at once.
        ready: Option<ReadyValue>,
        /// How it is stopped. Default: SIGTERM, and 5 seconds later the kill.
        stop: Option<StopTable>,
        /// The variables of Plimsoll's environment that its commands get: `["PATH", "HOME"]`. Default: all.
        inherit: Option<Vec<Literal<Text>>>,
        /// Environment added to that.
        env: Option<Pairs>,
        /// Processors it may use: "0-2,5", "lower half", "upper half" or "own". Default: all.
        cpus: Option<Templated<CpuSet>>,
        /// Prints its version. Default: none is recorded beside the hash of the program.
        version: Option<Command>,
        /// The port it listens on. Default: a free one wherever `{port}` or `{address}` is used.
        port: Option<Templated<Port>>,
        /// The waits that its output tells of: for each name a regular expression of the lines that do, which are counted.
        waits: Option<WaitPatterns>,
        /// The metrics that it exposes for Prometheus, which are read once a second. Default: none.
        metrics: Option<MetricsTable>,
        /// Files that are written before it starts, by their names, into the folder `{files}`. Default: none.
        files: Option<Pairs>,
        /// The label of the agent on whose host it runs. Default: this machine.
        on: Option<Templated<Text>>,
        /// How many instances of it are started, each with a port, an output and a name of its own: NAME-1, NAME-2. Default: one.
        instances: Option<Literal<Instances>>,
        /// The trials in which it is started: those in which a factor has this level, or one of these. Default: all.
        only: Option<Only>,
    }
}

table! {
    /// How a system is stopped, with all the processes that it started.
    struct StopTable {
        /// The signal that asks it to end: "TERM", "INT", "QUIT" or "KILL". Default: "TERM".
        signal: Option<Templated<StopSignal>>,
        /// How long it may take to end before it is killed. Default: "5s".
        grace: Option<Templated<Length>>,
    }
}

/// Regular expressions by name, in the order of the file.
#[derive(Clone, Debug)]
pub(crate) struct WaitPatterns(Vec<(String, String)>);

impl FromToml for WaitPatterns {
    fn from_toml(node: &Node<'_>, faults: &mut Faults) -> Option<Self> {
        let table = node.table(faults)?;
        let patterns: Vec<Option<_>> = table.entries().iter().map(|(name, node)| pattern(name, node, faults)).collect();
        patterns.into_iter().collect::<Option<_>>().map(WaitPatterns)
    }

    fn json_schema(schemas: &mut Schemas) -> Value {
        json!({ "type": "object", "additionalProperties": <Literal<Pattern>>::json_schema(schemas) })
    }
}

fn pattern(name: &str, node: &Node<'_>, faults: &mut Faults) -> Option<(String, String)> {
    let pattern: Literal<Pattern> = Literal::from_toml(node, faults)?;
    Some((name.to_owned(), pattern.value.text))
}

impl SystemTable {
    /// The system for the trial that `scope` stands for, which is inside the system.
    pub(crate) fn resolve(&self, name: &str, scope: &Scope<'_>, faults: &mut Faults) -> Option<SystemSpec> {
        let port = scope.bindings.ports.get(name).copied();
        let on = scope.label_of(name);
        if self.on.is_some() && on.is_none() {
            return None;
        }
        let dir = resolve_optional(self.dir.as_ref(), |dir| dir.resolve(scope, faults));
        let build = resolve_optional(self.build.as_ref(), |build| build.resolve(scope, faults));
        let ready = match &self.ready {
            Some(ready) => ready.resolve(scope, faults),
            None => Some(ready_by_default(port.map(|port| scope.own_address(port)))),
        };
        let stop = stop_policy(self.stop.as_ref(), scope, faults);
        let env = resolve_optional(self.env.as_ref(), |env| env.resolve(scope, faults));
        let cpus = resolve_optional(self.cpus.as_ref(), |cpus| {
            let set = cpus.resolve(scope, faults)?.among(scope.usable());
            set.map_err(|problem| faults.add(problem.fault(&cpus.span, &cpus.path))).ok()
        });
        let version = resolve_optional(self.version.as_ref(), |version| version.resolve(scope, faults));
        let metrics = resolve_optional(self.metrics.as_ref(), |metrics| metrics.resolve(port, scope, faults));
        let files = resolve_optional(self.files.as_ref(), |files| files.resolve(scope, faults));
        let (stop, env, cpus) = (stop?, env?.unwrap_or_default(), cpus?);
        let around = self.around_containers(&env, cpus.as_ref(), &stop);
        let ResolvedStart { command: start, containers } = self.start.resolve(&around, scope, faults)?;
        let folder = scope.folder_of(name);
        Some(SystemSpec {
            name: name.to_owned(),
            on,
            dir: dir?.map_or_else(|| folder.to_owned(), |dir| folder.join(dir.0)),
            build: build?,
            start,
            containers,
            inherit: self.inherit.as_ref().map(|names| names.iter().map(|name| name.value.0.clone()).collect()),
            env: env.into_iter().collect(),
            ready: ready?,
            stop,
            cpus,
            version: version?,
            port,
            waits: self.waits.iter().flat_map(|waits| waits.0.iter().cloned()).collect(),
            metrics: metrics?,
            files: files?
                .map(|texts| WrittenFiles { folder: scope.files_of(name), texts: texts.into_iter().collect() }),
        })
    }
}

impl SystemTable {
    /// The values of its keys that concern containers.
    fn around_containers<'a>(
        &'a self,
        env: &[(String, String)],
        cpus: Option<&Processors>,
        stop: &StopPolicy,
    ) -> AroundContainers<'a> {
        let span_of_signal = self.stop.as_ref().and_then(|stop| Some(&stop.signal.as_ref()?.span));
        AroundContainers {
            variables: env.iter().map(|(name, _)| name.clone()).collect(),
            cpus: cpus.zip(self.cpus.as_ref()).map(|(cpus, written)| (cpus.to_string(), &written.span)),
            signal: span_of_signal.map(|span| (name_of(stop.signal).to_owned(), span)),
        }
    }

    /// Whether the system runs in trials with these levels. Where some factors have none yet, whether
    /// it runs in any of them.
    pub(crate) fn runs(&self, levels: &Assignment) -> bool {
        self.only.as_ref().is_none_or(|only| only.allows(levels))
    }

    /// The label of the agent on whose host it runs with these levels; none on this machine, or where it cannot be told.
    pub(crate) fn host(&self, scope: &Scope<'_>, faults: &mut Faults) -> Option<String> {
        self.on.as_ref()?.resolve(scope, faults).map(|label| label.0)
    }

    /// The series that are kept of its metrics.
    pub(crate) fn series(&self) -> Vec<ExposedSeries> {
        self.metrics.as_ref().map(MetricsTable::series).unwrap_or_default()
    }

    /// The place of the command that starts it.
    pub(crate) fn start_span(&self) -> &Span {
        self.start.span()
    }

    /// What starts the system called `name`, and with which environment, for people: with the
    /// levels that are known.
    pub(crate) fn shown(&self, name: &str, levels: &Assignment) -> Vec<String> {
        let env = self.env.iter().flat_map(|env| env.shown(levels)).map(|pair| format!("{name}: with {pair}"));
        let on = self.on.as_ref().map(|on| format!(" on `{}`", on.shown(levels))).unwrap_or_default();
        std::iter::once(format!("{name}{on}: {}", self.start.shown(levels))).chain(env).collect()
    }
}

/// The name of a signal, as programs have it.
fn name_of(signal: StopSignal) -> &'static str {
    match signal {
        StopSignal::Term => "SIGTERM",
        StopSignal::Int => "SIGINT",
        StopSignal::Quit => "SIGQUIT",
        StopSignal::Kill => "SIGKILL",
    }
}

fn stop_policy(table: Option<&StopTable>, scope: &Scope<'_>, faults: &mut Faults) -> Option<StopPolicy> {
    let signal = table.and_then(|table| table.signal.as_ref());
    let signal = resolve_optional(signal, |signal| signal.resolve(scope, faults));
    let grace = table.and_then(|table| table.grace.as_ref());
    let grace = resolve_optional(grace, |grace| grace.resolve(scope, faults));
    Some(StopPolicy {
        signal: signal?.unwrap_or(StopSignal::Term),
        grace: grace?.map_or(Duration::from_secs(5), |grace| grace.0),
    })
}

impl Scalar for StopSignal {
    const EXPECTED: &'static str = "\"TERM\", \"INT\", \"QUIT\" or \"KILL\"";

    fn from_level(level: &Level) -> Result<Self, Problem> {
        let Level::Text(text) = level else { return Err(Problem::wrong::<Self>(level)) };
        match text.strip_prefix("SIG").unwrap_or(text) {
            "TERM" => Ok(StopSignal::Term),
            "INT" => Ok(StopSignal::Int),
            "QUIT" => Ok(StopSignal::Quit),
            "KILL" => Ok(StopSignal::Kill),
            _ => Err(Problem::wrong::<Self>(level)),
        }
    }

    fn schema() -> Value {
        json!({ "type": "string", "pattern": "^(SIG)?(TERM|INT|QUIT|KILL)$" })
    }
}

impl NamedTable for SystemTable {
    const KIND: &'static str = "system";
    const IDENTIFYING_KEYS: &'static [&'static str] = SystemTable::KEYS;

    fn instances(&self) -> Option<u32> {
        self.instances.as_ref().map(|instances| instances.value.u32())
    }
}

/// All systems.
pub(crate) type Systems = NamedTables<SystemTable>;

impl Systems {
    /// The names of the systems that a table of this name stands for: its own, or those of its instances.
    pub(crate) fn names_of(&self, table: &str) -> Vec<&str> {
        let is_instance = |name: &str, system: &SystemTable| {
            (1..=system.instances().unwrap_or(0)).any(|number| instance_name(table, number) == name)
        };
        let is_meant = |name: &str, system: Option<&SystemTable>| {
            name == table || system.is_some_and(|system| is_instance(name, system))
        };
        let meant = self.0.iter().filter(|(name, _, system)| is_meant(name, system.as_ref()));
        meant.map(|(name, ..)| name.as_str()).collect()
    }

    /// The names of the tables that have several instances.
    pub(crate) fn several(&self) -> Vec<&str> {
        let first = self.0.iter().filter(|(.., table)| table.as_ref().is_some_and(|table| table.instances.is_some()));
        first.filter_map(|(name, ..)| name.strip_suffix("-1")).collect()
    }

    /// True if `name` has the form of a service of a system that is started by a Compose file: `shop/db`. Whether there is
    /// one, the file alone says.
    pub(crate) fn is_service(&self, name: &str) -> bool {
        let Some((of, _)) = name.split_once('/') else { return false };
        let mut systems = self.0.iter().filter_map(|(name, _, system)| Some((name, system.as_ref()?)));
        systems.any(|(name, system)| name == of && system.start.is_compose())
    }

    /// Refuses a port that instances would share, and files outside the folder of a system.
    pub(crate) fn check_instances_and_files(&self, faults: &mut Faults) {
        for table in self.valid() {
            for (name, place) in table.files.iter().flat_map(Pairs::names) {
                if name.contains('/') || [".", "..", ""].contains(&name) {
                    let fault = Fault::error(place, format!("`{name}` is not the name of a file"));
                    faults.add(fault.help("files lie side by side in the folder `{files}`: leave out the slash"));
                }
            }
            if let (Some(_), Some(port)) = (&table.instances, &table.port) {
                let fault = Fault::error(&port.span, "several instances cannot listen on the same port");
                faults.add(fault.help("leave `port` out: each gets a free one, `{port}`"));
            }
        }
    }

    /// The systems whose tables have no fault.
    pub(crate) fn valid(&self) -> impl Iterator<Item = &SystemTable> {
        self.0.iter().filter_map(|(.., table)| table.as_ref())
    }

    /// Warns of systems that listen on a port of which Plimsoll knows nothing: they count as ready
    /// at once, and the first requests find nobody. `listening` are those whose port is known.
    pub(crate) fn check_readiness(&self, listening: &BTreeSet<String>, faults: &mut Faults) {
        let unheard = self.0.iter().filter(|(name, ..)| !listening.contains(name));
        for (name, _, table) in unheard {
            let Some(table) = table.as_ref().filter(|table| table.ready.is_none()) else { continue };
            let Some(start) = table.start.as_command() else { continue };
            if let Some((port, place)) = start.literal_port(faults) {
                let fault = Fault::warning(&place, format!("nothing tells when `{name}` is ready"));
                let help = format!("use `{{port}}` in the place of {port}, or set `ready`");
                faults.add(fault.label("a port that only the system knows").help(help));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::testing::{faults_of, no_faults, read_table};
    use crate::value::{Bindings, NO_LOGINS};
    use plimsoll_model::factor::Assignment;
    use plimsoll_model::system::{CommandLine, Probe};
    use std::path::{Path, PathBuf};

    fn resolved(text: &str) -> SystemSpec {
        let table: SystemTable = read_table(text);
        let bindings = Bindings {
            ports: [("db".to_owned(), 5432)].into(),
            plimsoll: "/bin/plimsoll".into(),
            ..Bindings::default()
        };
        let assignment = Assignment(vec![("mode".to_owned(), Level::Text("two words".to_owned()))]);
        let scope = Scope {
            assignment: &assignment,
            bindings: &bindings,
            not_running: &[],
            elsewhere: &[],
            logins: &NO_LOGINS,
            is_trusted: false,
            system: Some("db"),
            dir: Path::new("/study"),
            processors: &[0, 1],
            of_generator: None,
        };
        table.resolve("db", &scope, &mut no_faults()).expect("a system")
    }

    #[test]
    fn a_system_is_resolved_with_defaults() {
        let system = resolved("start = './db --mode {mode} --listen \"{address}\"'");
        assert_eq!(
            system.start,
            CommandLine(["./db", "--mode", "two words", "--listen", "127.0.0.1:5432"].map(str::to_owned).into())
        );
        assert_eq!((system.dir, system.port), (PathBuf::from("/study"), Some(5432)));
        assert_eq!(system.ready.probe, Probe::Tcp("127.0.0.1:5432".to_owned()));
        assert_eq!(system.stop, StopPolicy { signal: StopSignal::Term, grace: Duration::from_secs(5) });
    }

    #[test]
    fn every_key_is_resolved() {
        let system = resolved(
            "dir = 'server'\nbuild = 'make'\nstart = '{plimsoll} serve'\nready = { log = 'up', within = '3s' }\n\
             stop = { signal = 'SIGINT', grace = '1s' }\nenv = { PORT = '{port}', N = 3 }\ncpus = 'upper half'\n\
             version = './db -V'\n",
        );
        assert_eq!(system.dir, PathBuf::from("/study/server"));
        assert_eq!(system.start.program(), "/bin/plimsoll");
        assert_eq!(system.ready.probe, Probe::Log("up".to_owned()));
        assert_eq!(system.stop, StopPolicy { signal: StopSignal::Int, grace: Duration::from_secs(1) });
        assert_eq!(system.env, [("N".to_owned(), "3".to_owned()), ("PORT".to_owned(), "5432".to_owned())].into());
        assert_eq!(system.cpus, Some(Processors(vec![1])));
    }

    #[test]
    fn wrong_values_are_named() {
        let faults = faults_of::<SystemTable>("start = \"a 'b\"\nport = 70000\nstop = { signal = 'HUP' }\nstrat = 'x'");
        assert_eq!(faults.len(), 4, "{faults:?}");
        assert!(faults_of::<SystemTable>("build = 'make'")[0].contains("`start` is missing"));
    }
}
