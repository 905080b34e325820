//! `[database.NAME]`: a database that is started for each trial, or one that runs already.

use crate::document::{Fault, Faults, FromToml, Node, Schemas, Span, table, unknown};
use crate::table::expect::ExpectTable;
use crate::table::identifier::{DATABASES_OF_SERVERS, Identifier, ROLES_OF_SERVERS, check_names, names_or};
use crate::table::named_tables::{NamedTable, NamedTables};
use crate::table::only::Only;
use crate::table::settings::{SettingValue, check_settings, one_line};
use crate::table::url::{Url, Variable};
use crate::value::{
    Command, CpuSet, Length, Literal, Login, Pairs, Port, PositiveTimeSpan, Problem, Scalar, Scope, Template,
    Templated, Text, keyword, resolve_all, resolve_optional,
};
use plimsoll_model::database::{
    Address, Database, Dataset, Endpoint, Engine, External, LOADED, Migration, Origin, SERVICE, Server, Snapshot,
};
use plimsoll_model::factor::{Assignment, Level};
use plimsoll_model::load::{LoadModel, LoadProfile};
use serde_json::{Value, json};
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::time::Duration;

table! {
    /// A database server that is initialised and loaded once, and started for each trial.
    struct ServerTable {
        /// What it is: "postgresql", "mariadb" or "mysql".
        server: Templated<Engine>,
        /// The label of the agent on whose host it runs. Default: this machine.
        on: Option<Templated<Text>>,
        /// Folder with the server's programs, relative to the study's. Default: where the system's packages have them.
        programs: Option<Templated<Text>>,
        /// The user of the operating system who runs it. Default: whoever runs Plimsoll, and "nobody" for root.
        user: Option<Templated<Text>>,
        /// Arguments for the program that initialises the data, for what cannot be changed later.
        init: Option<Vec<Templated<Text>>>,
        /// Settings of the server, by their own names. They are read back from it.
        settings: Option<Pairs<SettingValue>>,
        /// Folder in which the loaded data is kept between runs, relative to the study's. Default: it is removed after the run.
        data: Option<Templated<Text>>,
        /// How the loaded data is restored before a trial: "copy" of the files, or from a "template" database (PostgreSQL). Default: "copy".
        snapshot: Option<Templated<Snapshot>>,
        /// SQL files that make the data, one after the other, relative to the study's folder.
        load: Option<Vec<Templated<Text>>>,
        /// The databases in it, by name; `load` fills the first. Default: ["plimsoll"].
        databases: Option<Vec<Literal<Identifier>>>,
        /// The users as whom systems log in. The first has all rights, the others those that the SQL of `load` grants them. Default: ["service"].
        roles: Option<Vec<Literal<Identifier>>>,
        /// A command that is run on each start, when the server is ready and before the systems start, in the study's folder.
        migrate: Option<Command>,
        /// Queries, and the value that each must give after the loads of a start.
        expect: Option<Vec<ExpectTable>>,
        /// Whether all tables are read once before the load. Default: false.
        warm: Option<Templated<bool>>,
        /// Processors it may use: "0-2,5", "lower half", "upper half" or "own". Default: all.
        cpus: Option<Templated<CpuSet>>,
        /// The port it listens on. Default: a free one.
        port: Option<Templated<Port>>,
        /// The trials in which it is started: those in which a factor has this level, or one of these. Default: all.
        only: Option<Only>,
        /// How long it may take to get ready, recovery included. Default: "60s".
        ready_within: Option<Templated<PositiveTimeSpan>>,
        /// How long it may take to end before it is killed. Default: "60s".
        stop_grace: Option<Templated<Length>>,
    }
}

table! {
    /// A database server that runs already.
    struct ExternalTable {
        /// Where it is, and who connects: postgresql://USER@HOST:PORT/DATABASE, mariadb://… or mysql://…; with ?socket=/PATH instead of HOST:PORT by its UNIX socket.
        url: Templated<Url>,
        /// The variable of Plimsoll's environment that has the password. Default: there is no password.
        password_env: Option<Literal<Variable>>,
        /// Run before every trial, in the study's folder: brings the data into the state before a trial.
        restore: Option<Command>,
        /// Whether a workload of SQL may write to it without `restore`. Default: false.
        may_write: Option<Templated<bool>>,
        /// Settings that must be in force, by the server's own names. They are not set, but read back.
        settings: Option<Pairs<SettingValue>>,
        /// Queries, and the value that each must give after the loads of a start.
        expect: Option<Vec<ExpectTable>>,
        /// Whether all tables are read once before the load. Default: false.
        warm: Option<Templated<bool>>,
        /// The trials in which it is used: those in which a factor has this level, or one of these. Default: all.
        only: Option<Only>,
    }
}

const MINUTE: Duration = Duration::from_secs(60);

/// A database, by who starts it.
#[derive(Clone, Debug)]
pub(crate) enum DatabaseTable {
    /// The run (`server`).
    Started(Box<ServerTable>),
    /// Somebody else (`url`).
    External(Box<ExternalTable>),
}

/// The keys that say which of the two a database is.
const ORIGINS: [&str; 2] = ["server", "url"];

impl DatabaseTable {
    /// The database for the trial that `scope` stands for, as it is without a workload of its own.
    pub(crate) fn resolve(&self, name: &str, scope: &Scope<'_>, faults: &mut Faults) -> Option<Database> {
        match self {
            DatabaseTable::Started(table) => table.resolve(name, scope, faults),
            DatabaseTable::External(table) => table.resolve(name, scope, faults),
        }
    }

    /// Whether it runs, or is used, in trials with these levels. Where some factors have none yet,
    /// whether it does in any of them.
    pub(crate) fn runs(&self, levels: &Assignment) -> bool {
        self.only().is_none_or(|only| only.allows(levels))
    }

    pub(crate) fn only(&self) -> Option<&Only> {
        match self {
            DatabaseTable::Started(table) => table.only.as_ref(),
            DatabaseTable::External(table) => table.only.as_ref(),
        }
    }

    /// The label of the agent on whose host it runs with these levels; none on this machine, or where it cannot be told.
    pub(crate) fn host(&self, scope: &Scope<'_>, faults: &mut Faults) -> Option<String> {
        self.started()?.on.as_ref()?.resolve(scope, faults).map(|label| label.0)
    }

    /// The table of a database that the run starts. It has a port, whether the study says which or not.
    pub(crate) fn started(&self) -> Option<&ServerTable> {
        match self {
            DatabaseTable::Started(table) => Some(table),
            DatabaseTable::External(_) => None,
        }
    }

    /// Whether a server that runs already is restored before each start of the systems.
    pub(crate) fn is_restored(&self) -> bool {
        matches!(self, DatabaseTable::External(table) if table.restore.is_some())
    }

    /// Whether this factor changes what a server that runs already is restored to, and not which server that is.
    pub(crate) fn is_restored_by(&self, factor: &str) -> bool {
        let DatabaseTable::External(table) = self else { return false };
        let placeholder = format!("{{{factor}}}");
        let restore = table.restore.as_ref().map(|restore| restore.shown(&Assignment::default()));
        restore.is_some_and(|restore| restore.contains(&placeholder)) && !table.url.as_written().contains(&placeholder)
    }

    /// Where it is said what it is.
    pub(crate) fn target_span(&self) -> &Span {
        match self {
            DatabaseTable::Started(table) => &table.server.span,
            DatabaseTable::External(table) => &table.url.span,
        }
    }

    /// Where files that make its data are named.
    pub(crate) fn load_span(&self) -> Option<&Span> {
        self.started()?.load.as_ref()?.first().map(|file| &file.span)
    }

    /// What the database called `name` is, and with which settings, for people: with the levels that
    /// are known.
    pub(crate) fn shown(&self, name: &str, levels: &Assignment) -> Vec<String> {
        let (what, settings) = match self {
            DatabaseTable::Started(table) => (table.shown(levels), &table.settings),
            DatabaseTable::External(table) => (table.url.shown(levels), &table.settings),
        };
        let settings = settings.iter().flat_map(|settings| settings.shown(levels));
        let settings = settings.map(|pair| format!("{name}: with {pair}"));
        let on = self.started().and_then(|table| table.on.as_ref());
        let on = on.map(|on| format!(" on `{}`", on.shown(levels))).unwrap_or_default();
        std::iter::once(format!("{name}{on}: {what}")).chain(settings).collect()
    }

    /// How systems log in to it; none where its port is not known yet, or where it is reached by its UNIX socket.
    pub(crate) fn login(&self, name: &str, scope: &Scope<'_>, faults: &mut Faults) -> Option<Login> {
        let password = scope.bindings.passwords.get(name).cloned();
        match self {
            DatabaseTable::Started(table) => Some(Login {
                engine: table.server.resolve(scope, faults)?,
                host: scope.address_of(name).to_string(),
                port: scope.bindings.ports.get(name).copied()?,
                database: resolve_optional(table.snapshot.as_ref(), |snapshot| snapshot.resolve(scope, faults))?
                    .unwrap_or(Snapshot::Copy)
                    .database(&table.databases())
                    .to_owned(),
                user: table.roles().swap_remove(0),
                password,
            }),
            DatabaseTable::External(table) => {
                let Endpoint { engine, address, user, database, .. } = table.url.resolve(scope, faults)?.0;
                let Address::Tcp { host, port } = address else { return None };
                Some(Login { engine, host, port, database, user, password })
            }
        }
    }

    fn settings(&self) -> Option<&Pairs<SettingValue>> {
        match self {
            DatabaseTable::Started(table) => table.settings.as_ref(),
            DatabaseTable::External(table) => table.settings.as_ref(),
        }
    }
}

impl ServerTable {
    fn resolve(&self, name: &str, scope: &Scope<'_>, faults: &mut Faults) -> Option<Database> {
        let on = scope.label_of(name);
        if self.on.is_some() && on.is_none() {
            return None;
        }
        let folder = scope.folder_of(name);
        let path =
            |written: &Templated<Text>, faults: &mut Faults| Some(folder.join(written.resolve(scope, faults)?.0));
        let engine = self.server.resolve(scope, faults);
        let programs = resolve_optional(self.programs.as_ref(), |programs| path(programs, faults));
        let user = resolve_optional(self.user.as_ref(), |user| user.resolve(scope, faults));
        let init = resolve_all(self.init.as_deref().unwrap_or_default(), |argument| argument.resolve(scope, faults));
        let settings = resolve_optional(self.settings.as_ref(), |settings| one_line(settings, scope, faults));
        let data = resolve_optional(self.data.as_ref(), |data| path(data, faults));
        let snapshot = resolve_optional(self.snapshot.as_ref(), |snapshot| snapshot.resolve(scope, faults));
        let load = resolve_all(self.load.as_deref().unwrap_or_default(), |file| path(file, faults));
        // On another host it runs where the server does.
        let of_migrate = if on.is_some() { scope.inside(name) } else { scope.trusted() };
        let migrate = resolve_optional(self.migrate.as_ref(), |command| command.resolve(&of_migrate, faults));
        let expected = resolve_all(self.expect.as_deref().unwrap_or_default(), |row| row.resolve(scope, faults));
        let warm = resolve_optional(self.warm.as_ref(), |warm| warm.resolve(scope, faults));
        let cpus = resolve_optional(self.cpus.as_ref(), |cpus| {
            let set = cpus.resolve(scope, faults)?.among(scope.inside(name).usable());
            set.map_err(|problem| faults.add(problem.fault(&cpus.span, &cpus.path))).ok()
        });
        let ready_within = resolve_optional(self.ready_within.as_ref(), |within| within.resolve(scope, faults));
        let stop_grace = resolve_optional(self.stop_grace.as_ref(), |grace| grace.resolve(scope, faults));
        let port = scope.bindings.ports.get(name).copied();
        if port.is_none() {
            faults.add(Fault::error(&self.place, format!("no port was chosen for database `{name}`")));
        }
        let server = Server {
            on,
            listen: scope.address_of(name),
            programs: programs?,
            user: user?.map(|user| user.0),
            init: init?.into_iter().map(|argument| argument.0).collect(),
            data: data?,
            snapshot: snapshot?.unwrap_or(Snapshot::Copy),
            databases: self.databases(),
            roles: self.roles(),
            password: scope.bindings.passwords.get(name).cloned(),
            migrate: migrate?.map(|command| Migration { command, dir: folder.to_owned(), url: scope.url_of(name) }),
            port: port?,
            cpus: cpus?,
            ready_within: ready_within?.map_or(MINUTE, |within| within.0),
            stop_grace: stop_grace?.map_or(MINUTE, |grace| grace.0),
        };
        let (engine, load) = (engine?, load?);
        self.check_snapshot(engine, server.snapshot, faults)?;
        Some(Database {
            name: name.to_owned(),
            engine,
            origin: Origin::Started(Box::new(server)),
            settings: settings?.unwrap_or_default(),
            dataset: if load.is_empty() { Dataset::Empty } else { Dataset::Scripts(load) },
            warm: warm?.unwrap_or(false),
            expected: expected?,
        })
    }

    /// The names of the databases in it. There is at least one.
    fn databases(&self) -> Vec<String> {
        names_or(self.databases.as_deref(), LOADED)
    }

    /// The names of the users of systems. There is at least one.
    fn roles(&self) -> Vec<String> {
        names_or(self.roles.as_deref(), SERVICE)
    }

    /// Checks the names of databases and roles, and that each database is there that is asked for rows.
    fn check_names(&self, faults: &mut Faults) -> Option<()> {
        let databases = self.databases.as_deref();
        let databases = check_names("databases", databases, DATABASES_OF_SERVERS, &self.place, faults);
        let roles = check_names("roles", self.roles.as_deref(), ROLES_OF_SERVERS, &self.place, faults);
        let mut fine = databases.and(roles);
        let known = self.databases();
        for (name, span) in self.expect.iter().flatten().filter_map(ExpectTable::database) {
            if !known.iter().any(|database| database == name) {
                faults.add(unknown("database of the server", name, known.iter().map(String::as_str), span));
                fine = None;
            }
        }
        fine
    }

    fn check_snapshot(&self, engine: Engine, snapshot: Snapshot, faults: &mut Faults) -> Option<()> {
        if let (Snapshot::Template, Some([_, second, ..])) = (snapshot, self.databases.as_deref()) {
            let fault = Fault::error(&second.span, "one database is made from a template, and no second one");
            faults.add(fault.help("leave `snapshot` out: the files are copied, with all databases in them"));
            return None;
        }
        let Some(written) =
            self.snapshot.as_ref().filter(|_| engine != Engine::Postgresql && snapshot == Snapshot::Template)
        else {
            return Some(());
        };
        let fault = Fault::error(&written.span, format!("{engine} has no template databases"));
        faults.add(fault.help("leave `snapshot` out: the files are copied"));
        None
    }

    fn shown(&self, levels: &Assignment) -> String {
        let written = self.server.shown(levels);
        let engine = Engine::from_level(&Level::Text(written.clone())).map_or(written, |engine| engine.to_string());
        match &self.programs {
            Some(programs) => format!("{engine} of {}", programs.shown(levels)),
            None => engine,
        }
    }
}

impl ExternalTable {
    fn resolve(&self, name: &str, scope: &Scope<'_>, faults: &mut Faults) -> Option<Database> {
        let url = self.url.resolve(scope, faults);
        self.check_settings_vary(faults)?;
        let restore = resolve_optional(self.restore.as_ref(), |restore| restore.resolve(scope, faults));
        let may_write = resolve_optional(self.may_write.as_ref(), |may| may.resolve(scope, faults));
        let settings = resolve_optional(self.settings.as_ref(), |settings| one_line(settings, scope, faults));
        let warm = resolve_optional(self.warm.as_ref(), |warm| warm.resolve(scope, faults));
        let expected = resolve_all(self.expect.as_deref().unwrap_or_default(), |row| row.resolve(scope, faults));
        let endpoint = url?.0;
        let engine = endpoint.engine;
        let external = External {
            endpoint,
            password_variable: self.password_env.as_ref().map(|variable| variable.value.0.clone()),
            restore: restore?,
            may_write: may_write?.unwrap_or(false),
            dir: scope.dir.to_owned(),
        };
        Some(Database {
            name: name.to_owned(),
            engine,
            origin: Origin::External(external),
            settings: settings?.unwrap_or_default(),
            dataset: Dataset::Empty,
            warm: warm?.unwrap_or(false),
            expected: expected?,
        })
    }

    /// Refuses a factor that would change nothing: these settings are read, not set. Where it also says
    /// which server it is, or how that is restored, it may have set them there.
    fn check_settings_vary(&self, faults: &mut Faults) -> Option<()> {
        let restore = self.restore.as_ref().map(|restore| restore.shown(&Assignment::default()));
        let changing = format!("{} {}", self.url.as_written(), restore.unwrap_or_default());
        let idle = |value: &Templated<SettingValue>| {
            let template = Template::parse(value.as_written()).ok()?;
            template.names().find(|name| !changing.contains(&format!("{{{name}}}"))).map(str::to_owned)
        };
        let mut settings = self.settings.iter().flat_map(Pairs::iter);
        let Some((name, value, factor)) = settings.find_map(|(name, value)| Some((name, value, idle(value)?))) else {
            return Some(());
        };
        let message =
            format!("`{factor}` changes nothing: the setting `{name}` of a server that runs already is only read");
        let help =
            format!("let `restore` set it by `{{{factor}}}`, or have the server started (`server` instead of `url`)");
        faults.add(Fault::error(&value.span, message).help(help));
        None
    }
}

/// The connection of Plimsoll's own, beside those of the users, by which it looks at the server.
const OWN_CONNECTIONS: u32 = 1;
/// Connections that are worth having beside.
const ROOM: u32 = 4;

/// The connections of a server, by its settings or else by default; none where the settings do not tell.
fn connections(database: &Database) -> Option<u32> {
    match (connections_told(database), database.engine) {
        (Some(value), _) => value.parse().ok(), // what else it may be, the server knows
        (None, Engine::Postgresql) => Some(100),
        (None, Engine::Mariadb | Engine::Mysql) => Some(151),
    }
}

/// The setting of a database for its connections.
fn connections_told(database: &Database) -> Option<&String> {
    let told = database.settings.iter().find(|(name, _)| name.replace('-', "_") == "max_connections");
    told.map(|(_, value)| value)
}

/// True for a server that runs already, of which the study does not say how many connections it has.
pub(crate) fn may_have_other_connections(database: &Database) -> bool {
    matches!(database.origin, Origin::External(_)) && connections_told(database).is_none()
}

/// The most users that have a connection each to a server; none where its settings do not tell.
pub(crate) fn most_users(database: &Database) -> Option<u32> {
    Some(connections(database)?.saturating_sub(OWN_CONNECTIONS + ROOM))
}

/// Refuses more users than a server that the run starts has connections: each has one from the start.
pub(crate) fn check_connections(
    database: &Database,
    load: &LoadProfile,
    span: &Span,
    faults: &mut Faults,
) -> Option<()> {
    // A server that runs already is asked before the load.
    let started = matches!(database.origin, Origin::Started(_));
    let Some(most) = connections(database).filter(|_| started) else { return Some(()) };
    let users = load.most_users();
    let fewer = match &load.model {
        LoadModel::Closed { .. } => "offer fewer `users`",
        LoadModel::Open { .. } => "give the load fewer `max_users`",
    };
    let needed = users.saturating_add(OWN_CONNECTIONS);
    if needed <= most {
        return Some(());
    }
    let message = format!("{users} users take more than the {most} connections of {}", database.engine);
    let help = format!("set `max_connections = {}` in its `settings`, or {fewer}", needed.saturating_add(ROOM));
    faults.add(Fault::error(span, message).help(help));
    None
}

/// Where the data of a database is kept, and what it is made from: all but what only matters to a server
/// that runs. None where it is not kept.
pub(crate) fn kept_data(database: &Database) -> Option<(PathBuf, Database)> {
    let Origin::Started(server) = &database.origin else { return None };
    let folder = server.data.clone()?;
    let (ready_within, stop_grace) = (MINUTE, MINUTE);
    let (password, migrate) = (None, None);
    let (on, listen) = (None, Ipv4Addr::LOCALHOST.into());
    let server =
        Server { on, listen, password, migrate, port: 0, cpus: None, ready_within, stop_grace, ..(**server).clone() };
    let origin = Origin::Started(Box::new(server));
    let (settings, expected) = (Vec::new(), Vec::new());
    Some((folder, Database { origin, settings, warm: false, expected, ..database.clone() }))
}

impl FromToml for DatabaseTable {
    fn from_toml(node: &Node<'_>, faults: &mut Faults) -> Option<Self> {
        let table = node.table(faults)?;
        let given = ORIGINS.map(|key| table.get(key));
        let read = match given {
            [Some(_), None] => DatabaseTable::Started(Box::new(ServerTable::from_toml(node, faults)?)),
            [None, Some(_)] => DatabaseTable::External(Box::new(ExternalTable::from_toml(node, faults)?)),
            [Some(_), Some(url)] => {
                let fault = Fault::error(&url.place(), format!("{} is started and runs already", node.name()));
                faults.add(fault.help("keep `server` for a database that is started for each trial, or `url`"));
                return None;
            }
            [None, None] => {
                let misspelt = table.refuse_unknown_keys(&[ServerTable::KEYS, ExternalTable::KEYS].concat(), faults);
                if !misspelt.iter().any(|key| ORIGINS.contains(key)) {
                    let fault = Fault::error(&node.place(), format!("{} does not say what it is", node.name()));
                    faults.add(fault.help(
                        "add `server = \"postgresql\"`, `\"mariadb\"` or `\"mysql\"`, or `url` for one that runs already",
                    ));
                }
                return None;
            }
        };
        if let DatabaseTable::Started(table) = &read {
            table.check_names(faults)?;
        }
        match read.settings() {
            Some(settings) => check_settings(settings, faults).map(|()| read),
            None => Some(read),
        }
    }

    fn json_schema(schemas: &mut Schemas) -> Value {
        json!({ "anyOf": [
            ServerTable::json_schema(schemas),
            ExternalTable::json_schema(schemas),
        ] })
    }
}

impl NamedTable for DatabaseTable {
    const KIND: &'static str = "database";
    const IDENTIFYING_KEYS: &'static [&'static str] = &ORIGINS;
}

/// All databases.
pub(crate) type DatabaseTables = NamedTables<DatabaseTable>;

impl DatabaseTables {
    /// Those that the run starts, or may start: nothing is known of one that is wrong.
    pub(crate) fn started(&self) -> Vec<&str> {
        let started = |table: &Option<DatabaseTable>| table.as_ref().is_none_or(|table| table.started().is_some());
        self.0.iter().filter(|(.., table)| started(table)).map(|(name, ..)| name.as_str()).collect()
    }

    /// Whether the database called `name` runs already.
    pub(crate) fn is_external(&self, name: &str) -> bool {
        let external = |table: &Option<DatabaseTable>| table.as_ref().is_some_and(|table| table.started().is_none());
        self.0.iter().any(|(known, _, table)| known == name && external(table))
    }
}

impl Scalar for Engine {
    const EXPECTED: &'static str = "\"postgresql\", \"mariadb\" or \"mysql\"";

    fn from_level(level: &Level) -> Result<Self, Problem> {
        keyword(level, &[("postgresql", Engine::Postgresql), ("mariadb", Engine::Mariadb), ("mysql", Engine::Mysql)])
    }

    fn schema() -> Value {
        json!({ "enum": ["postgresql", "mariadb", "mysql"] })
    }
}

impl Scalar for Snapshot {
    const EXPECTED: &'static str = "\"copy\" or \"template\"";

    fn from_level(level: &Level) -> Result<Self, Problem> {
        keyword(level, &[("copy", Snapshot::Copy), ("template", Snapshot::Template)])
    }

    fn schema() -> Value {
        json!({ "enum": ["copy", "template"] })
    }
}

#[cfg(test)]
mod tests;
