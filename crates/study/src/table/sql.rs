//! `[workload]` with `protocol = "sql"`: transactions on a database.

use crate::diagnostic::{Fault, Span};
use crate::faults::{Faults, did_you_mean, one_of};
use crate::node::table;
use crate::scalar::{Amount, Length, PositiveLength, Text, Weight, Whole};
use crate::scope::Scope;
use crate::table::database::{DatabaseTable, unknown_database};
use crate::table::workload::Protocol;
use crate::value::{Fixed, Problem, Scalar, Slot, optional, word};
use plimsoll_model::database::{Address, Database, Dataset, Origin};
use plimsoll_model::factor::Level;
use plimsoll_model::load::{LoadModel, LoadProfile, Think};
use plimsoll_model::record::ErrorKind;
use plimsoll_model::sql::{
    Distribution, Isolation, Oltp, OltpTest, OwnStatement, Parameter, Retry, Sql, SqlWork, TPCC_STEPS, Tpcc,
    Transaction, Transport, Waits,
};
use plimsoll_model::workload::{Connect, Steps, Target, Workload};
use schemars::{Schema, json_schema};
use std::time::Duration;

table! {
    /// Transactions on a database: each iteration is one.
    struct SqlTable {
        /// What is spoken with the target.
        #[allow(dead_code)] // read before, to choose this table
        protocol: Fixed<Protocol>,
        /// The name of a [database.NAME].
        database: Slot<Text>,
        /// The five transactions of TPC-C.
        tpcc: Option<TpccTable>,
        /// One of sysbench's OLTP tests.
        oltp: Option<OltpTable>,
        /// Transactions of the study's own, of which each iteration is one, drawn by weight.
        transactions: Option<Vec<TransactionTable>>,
        /// How a database that the study starts is reached: by its "unix" socket, or by "tcp" over the loopback. Default: "unix".
        transport: Option<Slot<Transport>>,
        /// How far transactions see one another: "read committed", "repeatable read" or "serializable". Default: the server's own.
        isolation: Option<Slot<Isolation>>,
        /// What is tried again, with the same input. Default: nothing.
        retry: Option<RetryTable>,
        /// How long the consistency conditions of TPC-C may be looked at after a trial; "0s" for not at all. Default: "60s".
        check_within: Option<Slot<Length>>,
        /// The longest that one transaction, or connecting, may take. Default: "10s".
        timeout: Option<Slot<PositiveLength>>,
    }
}

table! {
    /// TPC-C.
    struct TpccTable {
        /// How many warehouses the data has.
        warehouses: Slot<Warehouses>,
        /// Keying and think times: as the "spec" has them, "zero", or "scaled N" for N times those. Default: "zero".
        waits: Option<Slot<Waits>>,
        /// Weights of new order, payment, order status, delivery and stock level. Default: [45, 43, 4, 4, 4].
        mix: Option<Vec<Slot<Amount>>>,
        /// Whether the lines of an order are sorted, so that orders cannot wait for one another in a circle. Default: false.
        sorted_lines: Option<Slot<bool>>,
    }
}

table! {
    /// One of sysbench's OLTP tests.
    struct OltpTable {
        /// Which: "point_select", "read_only", "read_write", "write_only", "update_index", "update_non_index", "insert" or "delete".
        test: Slot<OltpTest>,
        /// How many tables there are. Default: 1.
        tables: Option<Slot<Tables>>,
        /// Rows of each. Default: 10000.
        rows: Option<Slot<Rows>>,
        /// How rows are chosen: "uniform", "special", "pareto N" or "zipf N". Default: "special", as sysbench.
        distribution: Option<Slot<Distribution>>,
    }
}

table! {
    /// A transaction of the study's own.
    struct TransactionTable {
        /// Name in the results.
        name: Slot<Text>,
        /// How often it is drawn, beside the other weights. Default: 1.
        weight: Option<Slot<Weight>>,
        /// Whether its statements are between BEGIN and COMMIT. Default: true.
        atomic: Option<Slot<bool>>,
        /// Its statements, one after the other.
        statements: Vec<StatementTable>,
    }
}

table! {
    /// A statement.
    struct StatementTable {
        /// The SQL, with $1, $2, … (PostgreSQL) or ? (MariaDB) where parameters go.
        sql: Slot<Text>,
        /// What the parameters are, in order, each time anew: "1 to 100", "zipf 0.9 1 to 10000", "text 16", "constant x", "same 2" or "feed users.csv:name".
        parameters: Option<Vec<Slot<Parameter>>>,
        /// How many rows it must give or change. Default: any number.
        rows: Option<Slot<RowCount>>,
    }
}

table! {
    /// What is tried again.
    struct RetryTable {
        /// After which errors: "deadlock", "serialization" and "lock_timeout".
        on: Vec<Slot<Retried>>,
        /// Attempts in all. Default: 3.
        attempts: Option<Slot<Attempts>>,
    }
}

type Warehouses = Whole<1, 100_000>;
type Tables = Whole<1, 10_000>;
type Rows = Whole<1, 10_000_000_000>;
type RowCount = Whole<0, { i64::MAX }>;
type Attempts = Whole<1, 100>;

const TIMEOUT: Duration = Duration::from_secs(10);
const CHECK_WITHIN: Duration = Duration::from_secs(60);
const MIX: [f64; 5] = [45.0, 43.0, 4.0, 4.0, 4.0];
const ATTEMPTS: u32 = 3;
const ROWS: u64 = 10_000;

/// How many terminals a warehouse has (TPC-C 2.1, clause 4.2.2).
const TERMINALS: f64 = 10.0;

impl SqlTable {
    /// The workload of the trial that `scope` stands for, on one of the study's `databases`. `seed` is
    /// what the data's content follows from.
    pub(crate) fn resolve(
        &self,
        scope: &Scope<'_>,
        databases: &[(String, DatabaseTable)],
        seed: u64,
        faults: &mut Faults,
    ) -> Option<Workload> {
        let database = self.database(scope, databases, faults);
        let work = self.work(scope, seed, faults);
        let transport = optional(self.transport.as_ref(), |transport| transport.resolve(scope, faults));
        let isolation = optional(self.isolation.as_ref(), |isolation| isolation.resolve(scope, faults));
        let retry = optional(self.retry.as_ref(), |retry| retry.resolve(scope, faults));
        let check_within = optional(self.check_within.as_ref(), |within| within.resolve(scope, faults));
        let timeout = optional(self.timeout.as_ref(), |timeout| timeout.resolve(scope, faults));
        let (database, work) = (database?, work?);
        let (transport, target) = self.way_to(&database, transport?, faults)?;
        let checked = if matches!(work, SqlWork::Tpcc(_)) { CHECK_WITHIN } else { Duration::ZERO };
        let sql = Sql {
            database: database.name,
            endpoint: None,
            transport,
            isolation: isolation?,
            retry: retry?.unwrap_or(Retry { on: Vec::new(), attempts: 1 }),
            work,
            check_within: check_within?.map_or(checked, |within| within.0),
        };
        Some(Workload {
            target,
            connect: Connect::PerUser,
            timeout: timeout?.map_or(TIMEOUT, |timeout| timeout.0),
            steps: Steps::Sql(Box::new(sql)),
        })
    }

    /// The database of the trial, which must run in it.
    fn database(
        &self,
        scope: &Scope<'_>,
        databases: &[(String, DatabaseTable)],
        faults: &mut Faults,
    ) -> Option<Database> {
        let name = self.database.resolve(scope, faults)?.0;
        let Some((_, table)) = databases.iter().find(|(known, _)| *known == name) else {
            faults.add(unknown_database(&name, databases, &self.database.span));
            return None;
        };
        if !table.runs(scope.assignment) {
            faults.add(scope.not_running("database", &name, &self.database.span));
            return None;
        }
        table.resolve(&name, scope, faults)
    }

    /// How the database is reached, and the target if that is by a connection to a host that the study
    /// names.
    fn way_to(
        &self,
        database: &Database,
        asked: Option<Transport>,
        faults: &mut Faults,
    ) -> Option<(Transport, Option<Target>)> {
        let Origin::External(external) = &database.origin else {
            return Some((asked.unwrap_or(Transport::Unix), None));
        };
        if let Some(transport) = &self.transport {
            let message = format!("database `{}` runs already, and its `url` says how it is reached", database.name);
            faults.add(Fault::error(&transport.span, message).help("leave `transport` out"));
            return None;
        }
        Some(match &external.endpoint.address {
            Address::Tcp { host, port } => {
                (Transport::Tcp, Some(Target { host: host.clone(), port: *port, tls: None }))
            }
            Address::Unix(_) => (Transport::Unix, None),
        })
    }

    fn work(&self, scope: &Scope<'_>, seed: u64, faults: &mut Faults) -> Option<SqlWork> {
        if let Some(tpcc) = &self.tpcc {
            return tpcc.resolve(scope, seed, faults).map(SqlWork::Tpcc);
        }
        if let Some(oltp) = &self.oltp {
            return oltp.resolve(scope, faults).map(SqlWork::Oltp);
        }
        all(self.transactions.as_deref()?, |transaction| transaction.resolve(scope, faults)).map(SqlWork::Own)
    }
}

impl TpccTable {
    fn resolve(&self, scope: &Scope<'_>, seed: u64, faults: &mut Faults) -> Option<Tpcc> {
        let warehouses = self.warehouses.resolve(scope, faults);
        let waits = optional(self.waits.as_ref(), |waits| waits.resolve(scope, faults));
        let mix = optional(self.mix.as_ref(), |mix| self.mix(mix, scope, faults));
        let sorted_lines = optional(self.sorted_lines.as_ref(), |sorted| sorted.resolve(scope, faults));
        Some(Tpcc {
            warehouses: warehouses?.u32(),
            waits: waits?.unwrap_or(Waits::Zero),
            mix: mix?.unwrap_or(MIX),
            sorted_lines: sorted_lines?.unwrap_or(false),
            data_seed: seed,
        })
    }

    fn mix(&self, mix: &[Slot<Amount>], scope: &Scope<'_>, faults: &mut Faults) -> Option<[f64; 5]> {
        let weights = all(mix, |weight| weight.resolve(scope, faults).map(|weight| weight.0))?;
        let found = <[f64; 5]>::try_from(weights).ok().filter(|weights| weights.iter().sum::<f64>() > 0.0);
        if found.is_none() {
            let place = mix.first().map_or(&self.place, |first| &first.span);
            let fault = Fault::error(place, "`workload.tpcc.mix` must be five weights, not all of them zero");
            faults.add(
                fault.help("those of new order, payment, order status, delivery and stock level: [45, 43, 4, 4, 4]"),
            );
        }
        found
    }

    fn in_words(&self) -> String {
        let mut words =
            format!("TPC-C, {} warehouses, waits {}", self.warehouses.as_written(), or(self.waits.as_ref(), "zero"));
        if let Some(mix) = &self.mix {
            let weights: Vec<&str> = mix.iter().map(Slot::as_written).collect();
            words += &format!(", mix {}", weights.join(" : "));
        }
        match or(self.sorted_lines.as_ref(), "false") {
            "false" => {}
            "true" => words += ", lines of orders sorted",
            other => words += &format!(", lines of orders sorted: {other}"),
        }
        words
    }
}

impl OltpTable {
    fn resolve(&self, scope: &Scope<'_>, faults: &mut Faults) -> Option<Oltp> {
        let test = self.test.resolve(scope, faults);
        let tables = optional(self.tables.as_ref(), |tables| tables.resolve(scope, faults));
        let rows = optional(self.rows.as_ref(), |rows| rows.resolve(scope, faults));
        let distribution = optional(self.distribution.as_ref(), |distribution| distribution.resolve(scope, faults));
        Some(Oltp {
            test: test?,
            tables: tables?.map_or(1, Tables::u32),
            rows: rows?.map_or(ROWS, Rows::u64),
            distribution: distribution?.unwrap_or(Distribution::Special),
        })
    }

    fn in_words(&self) -> String {
        let rows = or(self.rows.as_ref(), "10000");
        let tables = match or(self.tables.as_ref(), "1") {
            "1" => format!("a table of {rows} rows"),
            tables => format!("{tables} tables of {rows} rows"),
        };
        let distribution = or(self.distribution.as_ref(), "special");
        format!("OLTP {}, {tables}, chosen {distribution}", self.test.as_written())
    }
}

impl TransactionTable {
    fn resolve(&self, scope: &Scope<'_>, faults: &mut Faults) -> Option<Transaction> {
        let name = self.name.resolve(scope, faults);
        let weight = optional(self.weight.as_ref(), |weight| weight.resolve(scope, faults));
        let atomic = optional(self.atomic.as_ref(), |atomic| atomic.resolve(scope, faults));
        let statements = all(&self.statements, |statement| statement.resolve(scope, faults));
        let statements = statements?;
        self.check_same(&statements, faults)?;
        Some(Transaction {
            name: name?.0,
            weight: weight?.map_or(1, Weight::u32),
            atomic: atomic?.unwrap_or(true),
            statements,
        })
    }

    /// A parameter can be the same as one before it, and not as one that is not known yet.
    fn check_same(&self, statements: &[OwnStatement], faults: &mut Faults) -> Option<()> {
        let values = statements.iter().flat_map(|statement| &statement.parameters);
        let slots = self.statements.iter().flat_map(|statement| statement.parameters.iter().flatten());
        for ((value, slot), number) in values.zip(slots).zip(1..) {
            let Parameter::Same(other) = value else { continue };
            if *other < number {
                continue;
            }
            let message = format!("parameter {number} of this transaction cannot be the same as parameter {other}");
            let help = "parameters are counted from 1 over all statements of the transaction: name an earlier one";
            faults.add(Fault::error(&slot.span, message).help(help));
            return None;
        }
        Some(())
    }

    fn in_words(&self) -> String {
        let weight = self.weight.as_ref().map_or("1", |weight| weight.as_written());
        format!("{} (weight {weight})", self.name.as_written())
    }
}

impl StatementTable {
    fn resolve(&self, scope: &Scope<'_>, faults: &mut Faults) -> Option<OwnStatement> {
        let sql = self.sql.resolve(scope, faults);
        let parameters = all(self.parameters.as_deref().unwrap_or_default(), |parameter| {
            Some(match parameter.resolve(scope, faults)? {
                Parameter::Feed { file, column } => Parameter::Feed { file: scope.dir.join(file), column },
                other => other,
            })
        });
        let rows = optional(self.rows.as_ref(), |rows| rows.resolve(scope, faults));
        Some(OwnStatement { sql: sql?.0, parameters: parameters?, rows: rows?.map(RowCount::u64) })
    }
}

impl RetryTable {
    fn resolve(&self, scope: &Scope<'_>, faults: &mut Faults) -> Option<Retry> {
        let on = all(&self.on, |kind| kind.resolve(scope, faults).map(|kind| kind.0));
        let attempts = optional(self.attempts.as_ref(), |attempts| attempts.resolve(scope, faults));
        Some(Retry { on: on?, attempts: attempts?.map_or(ATTEMPTS, Attempts::u32) })
    }

    fn in_words(&self) -> String {
        let kinds: Vec<&str> = self.on.iter().map(Slot::as_written).collect();
        format!("{} attempts after {}", or(self.attempts.as_ref(), "3"), kinds.join(" or "))
    }
}

/// What the database of `sql` holds before every trial; none where that is not the workload's doing.
pub(crate) fn dataset(sql: &Sql, seed: u64) -> Option<Dataset> {
    match &sql.work {
        SqlWork::Tpcc(tpcc) => Some(Dataset::Tpcc { warehouses: tpcc.warehouses, seed }),
        SqlWork::Oltp(oltp) => Some(Dataset::Sbtest { tables: oltp.tables, rows: oltp.rows, seed }),
        SqlWork::Own(_) => None,
    }
}

// What is known before any trial.
impl SqlTable {
    /// The names of the steps, and where each stands.
    pub(crate) fn step_names(&self) -> Vec<(String, Span)> {
        if let Some(tpcc) = &self.tpcc {
            return TPCC_STEPS.map(|name| (name.to_owned(), tpcc.place.clone())).into();
        }
        if let Some(oltp) = &self.oltp {
            // A test that is a factor may be any.
            let tests = oltp.test.fixed().map_or(OltpTest::ALL.to_vec(), |test| vec![*test]);
            return tests.into_iter().map(|test| (test.name().to_owned(), oltp.test.span.clone())).collect();
        }
        let own = self.transactions.iter().flatten();
        own.map(|one| (one.name.as_written().to_owned(), one.place.clone())).collect()
    }

    /// Whether it makes the new orders of TPC-C.
    pub(crate) fn is_tpcc(&self) -> bool {
        self.tpcc.is_some()
    }

    /// Whether users may pause as TPC-C has it.
    pub(crate) fn has_waits(&self) -> bool {
        let waits = self.tpcc.as_ref().and_then(|tpcc| tpcc.waits.as_ref());
        waits.is_some_and(|waits| waits.fixed().is_none_or(|waits| waits.factor() > 0.0))
    }

    /// What users do, on which database and how, as reports say it.
    pub(crate) fn in_words(&self) -> String {
        let own = || {
            let own: Vec<String> = self.transactions.iter().flatten().map(TransactionTable::in_words).collect();
            own.join(" or ")
        };
        let work = match (&self.tpcc, &self.oltp) {
            (Some(tpcc), _) => tpcc.in_words(),
            (None, Some(oltp)) => oltp.in_words(),
            (None, None) => own(),
        };
        let mut words = format!("SQL on {}: {work}; one connection per user", self.database.as_written());
        if let Some(transport) = &self.transport {
            words += match transport.as_written() {
                "unix" => ", UNIX socket",
                "tcp" => ", TCP",
                other => return words + &format!(", transport {other}") + &self.conditions_in_words(),
            };
        }
        words + &self.conditions_in_words()
    }

    fn conditions_in_words(&self) -> String {
        let mut words = String::new();
        if let Some(isolation) = &self.isolation {
            words += &format!(", {}", isolation.as_written());
        }
        if let Some(retry) = &self.retry {
            words += &format!(", {}", retry.in_words());
        }
        format!("{words}; time-out {}", or(self.timeout.as_ref(), "10s"))
    }

    /// Faults and warnings about the workload as a whole.
    pub(crate) fn check(&self, faults: &mut Faults) -> Option<()> {
        if let Some(fault) = self.fault_of_work() {
            faults.add(fault);
            return None;
        }
        if let Some(within) = self.check_within.as_ref().filter(|_| !self.is_tpcc()) {
            let fault = Fault::warning(&within.span, "this changes nothing: the conditions are those of TPC-C");
            faults.add(fault.help("leave it out"));
        }
        Some(())
    }

    fn fault_of_work(&self) -> Option<Fault> {
        let tpcc = self.tpcc.as_ref().map(|tpcc| &tpcc.place);
        let oltp = self.oltp.as_ref().map(|oltp| &oltp.place);
        let own = self.transactions.as_ref();
        let own = own.map(|own| own.first().map_or(&self.place, |first| &first.place));
        let given: Vec<&Span> = [tpcc, oltp, own].into_iter().flatten().collect();
        let kinds = "`tpcc`, `oltp` and `transactions`";
        match given.as_slice() {
            [] => {
                let fault = Fault::error(&self.place, "`workload` does not say what users do");
                return Some(fault.help(format!("add one of {kinds}")));
            }
            [_, second, ..] => {
                let fault = Fault::error(second, "`workload` says twice what users do");
                return Some(fault.help(format!("keep one of {kinds}")));
            }
            [_] => {}
        }
        let idle = self.transactions.iter().flatten().find(|one| one.statements.is_empty());
        if self.transactions.as_ref().is_some_and(Vec::is_empty) {
            let fault = Fault::error(&self.place, "`workload.transactions` is empty");
            return Some(fault.help("a user must do something: give it at least one transaction"));
        }
        if let Some(retry) = self.retry.as_ref().filter(|retry| retry.on.is_empty()) {
            let fault = Fault::error(&retry.place, "`workload.retry.on` is empty");
            return Some(fault.help("leave `retry` out to try nothing again"));
        }
        idle.map(|idle| {
            Fault::error(&idle.place, "a transaction has no statements").help("give it one, or leave it out")
        })
    }

    /// What `sql` and the load must be to one another; `thinks` is whether the study gives think times.
    pub(crate) fn check_load(&self, sql: &Sql, load: &LoadProfile, faults: &mut Faults) -> Option<()> {
        let SqlWork::Tpcc(tpcc) = &sql.work else { return Some(()) };
        let waits = self.tpcc.as_ref().and_then(|tpcc| tpcc.waits.as_ref());
        let Some(waits) = waits.filter(|_| tpcc.waits.factor() > 0.0) else { return Some(()) };
        let (message, help) = match &load.model {
            LoadModel::Open { .. } => {
                ("keying and think times have a meaning only in closed load (`users`)", "write `waits = \"zero\"`")
            }
            LoadModel::Closed { think, .. } if *think != Think::Constant(Duration::ZERO) => (
                "`tpcc.waits` and `load.think` both say how long users pause",
                "leave `think` out of `[load]`, or write `waits = \"zero\"`",
            ),
            LoadModel::Closed { users, .. } => {
                let most = f64::from(tpcc.warehouses) * TERMINALS;
                if tpcc.waits == Waits::Spec && users.peak() > most {
                    let message = format!(
                        "{} users are more than the {most} terminals of {} warehouses",
                        users.peak(),
                        tpcc.warehouses
                    );
                    let fault = Fault::warning(&waits.span, message);
                    faults.add(fault.help("the specification has ten terminals for each warehouse: name more `warehouses`, or fewer users"));
                }
                return Some(());
            }
        };
        faults.add(Fault::error(&waits.span, message).help(help));
        None
    }
}

/// Resolves every one of `asked`, so that all faults are named.
fn all<T, U>(asked: &[T], resolve: impl FnMut(&T) -> Option<U>) -> Option<Vec<U>> {
    let resolved: Vec<Option<U>> = asked.iter().map(resolve).collect();
    resolved.into_iter().collect()
}

/// A value as the study has it, or its default.
fn or<'a, T: Scalar>(slot: Option<&'a Slot<T>>, default: &'a str) -> &'a str {
    slot.map_or(default, Slot::as_written)
}

impl Scalar for Transport {
    const EXPECTED: &'static str = "\"unix\" or \"tcp\"";

    fn from_level(level: &Level) -> Result<Self, Problem> {
        word(level, &[("unix", Transport::Unix), ("tcp", Transport::Tcp)])
    }

    fn schema() -> Schema {
        json_schema!({ "enum": ["unix", "tcp"] })
    }
}

impl Scalar for Isolation {
    const EXPECTED: &'static str = "\"read committed\", \"repeatable read\" or \"serializable\"";

    fn from_level(level: &Level) -> Result<Self, Problem> {
        let words = [
            ("read committed", Isolation::ReadCommitted),
            ("repeatable read", Isolation::RepeatableRead),
            ("serializable", Isolation::Serializable),
        ];
        let near = did_you_mean(&level.to_string(), words.map(|(word, _)| word));
        word(level, &words).map_err(|problem| problem.maybe_help(near))
    }

    fn schema() -> Schema {
        json_schema!({ "enum": ["read committed", "repeatable read", "serializable"] })
    }
}

impl Scalar for OltpTest {
    const EXPECTED: &'static str = "an OLTP test";

    fn from_level(level: &Level) -> Result<Self, Problem> {
        let names = OltpTest::ALL.map(OltpTest::name);
        let near = did_you_mean(&level.to_string(), names);
        let help = near.unwrap_or_else(|| format!("the tests are {}", one_of(names)));
        word(level, &OltpTest::ALL.map(|test| (test.name(), test))).map_err(|problem| problem.help(help))
    }

    fn schema() -> Schema {
        json_schema!({ "enum": OltpTest::ALL.map(OltpTest::name) })
    }
}

/// The most that the times of the specification are multiplied by.
const LONGEST_WAITS: f64 = 100.0;

impl Scalar for Waits {
    const EXPECTED: &'static str = "\"spec\", \"zero\" or \"scaled N\" with a number above 0";

    fn from_level(level: &Level) -> Result<Self, Problem> {
        if let Ok(waits) = word(level, &[("spec", Waits::Spec), ("zero", Waits::Zero)]) {
            return Ok(waits);
        }
        let factor = number_after("scaled", &level.to_string()).filter(|factor| *factor <= LONGEST_WAITS);
        factor.map(Waits::Scaled).ok_or_else(|| Problem::wrong::<Self>(level))
    }

    fn schema() -> Schema {
        json_schema!({ "type": "string", "pattern": "^(spec|zero|scaled [0-9.]+)$" })
    }
}

/// The number above 0 in `word 0.5`.
fn number_after(word: &str, text: &str) -> Option<f64> {
    let number: f64 = text.strip_prefix(word)?.strip_prefix(' ')?.trim().parse().ok()?;
    (number.is_finite() && number > 0.0).then_some(number)
}

/// The steepest of Zipf's distributions: beyond it, the first row gets all but everything.
const STEEPEST: f64 = 10.0;

impl Scalar for Distribution {
    const EXPECTED: &'static str =
        "\"uniform\", \"special\", \"pareto N\" with a share below 1, or \"zipf N\" with an exponent";

    fn from_level(level: &Level) -> Result<Self, Problem> {
        distribution(&level.to_string()).ok_or_else(|| Problem::wrong::<Self>(level))
    }

    fn schema() -> Schema {
        json_schema!({ "type": "string", "pattern": "^(uniform|special|(pareto|zipf) [0-9.]+)$" })
    }
}

fn distribution(text: &str) -> Option<Distribution> {
    match text {
        "uniform" => Some(Distribution::Uniform),
        "special" => Some(Distribution::Special),
        _ => {
            let pareto = || number_after("pareto", text).filter(|share| *share < 1.0).map(Distribution::Pareto);
            let zipf = || number_after("zipf", text).filter(|exponent| *exponent <= STEEPEST).map(Distribution::Zipf);
            pareto().or_else(zipf)
        }
    }
}

/// The kinds of errors after which the same transaction may well succeed.
const RETRIED: [ErrorKind; 3] = [ErrorKind::Deadlock, ErrorKind::Serialization, ErrorKind::LockTimeout];

/// An error after which a transaction is tried again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Retried(ErrorKind);

impl Scalar for Retried {
    const EXPECTED: &'static str = "\"deadlock\", \"serialization\" or \"lock_timeout\"";

    fn from_level(level: &Level) -> Result<Self, Problem> {
        let near = did_you_mean(&level.to_string(), RETRIED.map(ErrorKind::name));
        word(level, &RETRIED.map(|kind| (kind.name(), Retried(kind)))).map_err(|problem| problem.maybe_help(near))
    }

    fn schema() -> Schema {
        json_schema!({ "enum": RETRIED.map(ErrorKind::name) })
    }
}

/// The longest text that is made up.
const LONGEST_TEXT: u32 = 1_000_000;

impl Scalar for Parameter {
    const EXPECTED: &'static str = "a parameter";

    fn from_level(level: &Level) -> Result<Self, Problem> {
        let Level::Text(text) = level else { return Ok(Parameter::Constant(level.to_string())) };
        let forms = "write \"1 to 100\", \"zipf 0.9 1 to 100\" (or uniform, special, pareto 0.2), \"text 16\", \"constant x\", \
                     \"same 1\" or \"feed FILE.csv:COLUMN\"";
        parameter(text).ok_or_else(|| Problem::wrong::<Self>(level).help(forms))
    }

    fn schema() -> Schema {
        json_schema!({ "anyOf": [
            { "type": ["number", "boolean"] },
            { "type": "string", "pattern": "^(((uniform|special|(pareto|zipf) [0-9.]+) )?-?[0-9]+ to -?[0-9]+|text [0-9]+|constant .*|same [0-9]+|feed .+:.+)$" },
        ] })
    }
}

fn parameter(text: &str) -> Option<Parameter> {
    if let Some(number) = number_between(text) {
        return Some(number);
    }
    let (form, rest) = text.split_once(' ')?;
    match form {
        "text" => rest.parse().ok().filter(|length| (1..=LONGEST_TEXT).contains(length)).map(Parameter::Text),
        "constant" => Some(Parameter::Constant(rest.to_owned())),
        "same" => rest.parse().ok().filter(|number| *number > 0).map(Parameter::Same),
        "feed" => {
            let (file, column) = rest.rsplit_once(':')?;
            let given = !file.is_empty() && !column.is_empty();
            given.then(|| Parameter::Feed { file: file.into(), column: column.to_owned() })
        }
        _ => None,
    }
}

/// `1 to 100`, `zipf 0.9 1 to 100`.
fn number_between(text: &str) -> Option<Parameter> {
    let (start, high) = text.split_once(" to ")?;
    let (drawn, low) = start.rsplit_once(' ').unwrap_or(("uniform", start));
    let (low, high) = (whole(low)?, whole(high)?);
    let distribution = distribution(drawn)?;
    (low <= high).then_some(Parameter::Number { low, high, distribution })
}

fn whole(text: &str) -> Option<i64> {
    text.trim().replace('_', "").parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scope::Bindings;
    use crate::table::workload::{Given, WorkloadTable};
    use crate::testing::{faults_of, no_faults, read_table};
    use plimsoll_model::factor::Assignment;
    use proptest::prelude::*;
    use std::path::Path;

    fn databases() -> Vec<(String, DatabaseTable)> {
        let read = |name: &str, text: &str| (name.to_owned(), read_table(text));
        vec![
            read("db", "server = 'mariadb'"),
            read("there", "url = 'postgresql://me@localhost:5433/shop'"),
            read("rare", "server = 'postgresql'\nonly = { n = 9 }"),
        ]
    }

    fn resolve(written: &str, faults: &mut Faults) -> Option<Workload> {
        let assignment = Assignment(vec![("n".to_owned(), Level::Integer(4))]);
        let bindings = Bindings { ports: [("db".to_owned(), 5433)].into(), ..Bindings::default() };
        let scope = Scope {
            assignment: &assignment,
            bindings: &bindings,
            resting: &[],
            system: None,
            dir: Path::new("/study"),
            processors: &[0],
        };
        let table: WorkloadTable = read_table(&format!("protocol = 'sql'\n{written}"));
        table.resolve(&scope, Given { stores: &[], databases: &databases(), seed: 7 }, faults)
    }

    fn sql(text: &str) -> Sql {
        let workload = resolve(text, &mut no_faults()).expect(text);
        let Steps::Sql(sql) = workload.steps else { panic!("SQL") };
        *sql
    }

    #[test]
    fn tpcc_has_defaults() {
        let text = "database = 'db'\ntpcc = { warehouses = '{n}' }";
        let workload = resolve(text, &mut no_faults()).expect("a workload");
        assert_eq!((workload.target, workload.connect, workload.timeout), (None, Connect::PerUser, TIMEOUT));
        let tpcc = Tpcc { warehouses: 4, waits: Waits::Zero, mix: MIX, sorted_lines: false, data_seed: 7 };
        let expected = Sql {
            database: "db".to_owned(),
            endpoint: None,
            transport: Transport::Unix,
            isolation: None,
            retry: Retry { on: Vec::new(), attempts: 1 },
            work: SqlWork::Tpcc(tpcc),
            check_within: CHECK_WITHIN,
        };
        assert_eq!(sql(text), expected);
        assert_eq!(dataset(&expected, 7), Some(Dataset::Tpcc { warehouses: 4, seed: 7 }));
    }

    #[test]
    fn every_key_is_resolved() {
        let sql = sql("database = 'db'\ntransport = 'tcp'\nisolation = 'repeatable read'\ncheck_within = '0s'\n\
             timeout = '2s'\nretry = { on = ['deadlock', 'lock_timeout'], attempts = '{n}' }\n\
             tpcc = { warehouses = 2, waits = 'scaled 0.{n}', mix = [0, '{n}', 1, 0.5, 2], sorted_lines = true }");
        assert_eq!((sql.transport, sql.isolation), (Transport::Tcp, Some(Isolation::RepeatableRead)));
        assert_eq!(sql.retry, Retry { on: vec![ErrorKind::Deadlock, ErrorKind::LockTimeout], attempts: 4 });
        assert_eq!(sql.check_within, Duration::ZERO);
        let waits = Waits::Scaled(0.4);
        let mix = [0.0, 4.0, 1.0, 0.5, 2.0];
        assert_eq!(sql.work, SqlWork::Tpcc(Tpcc { warehouses: 2, waits, mix, sorted_lines: true, data_seed: 7 }));
    }

    #[test]
    fn oltp_tests_have_tables_of_their_own() {
        let oltp = |text: &str| match sql(&format!("database = 'db'\noltp = {{ {text} }}")).work {
            SqlWork::Oltp(oltp) => oltp,
            _ => panic!("OLTP"),
        };
        let test = OltpTest::ReadWrite;
        let expected = Oltp { test, tables: 1, rows: 10_000, distribution: Distribution::Special };
        assert_eq!(oltp("test = 'read_write'"), expected);
        let expected = Oltp { test, tables: 4, rows: 1_000_000, distribution: Distribution::Zipf(0.8) };
        assert_eq!(oltp("test = 'read_write', tables = '{n}', rows = 1_000_000, distribution = 'zipf 0.8'"), expected);
        let one = sql("database = 'db'\noltp = { test = 'insert', rows = 5 }");
        assert_eq!(dataset(&one, 7), Some(Dataset::Sbtest { tables: 1, rows: 5, seed: 7 }));
        assert_eq!(one.check_within, Duration::ZERO);
    }

    #[test]
    fn transactions_of_ones_own_are_resolved() {
        let one = sql("database = 'db'\n[[transactions]]\nname = 'move {n}'\nweight = 3\natomic = false\n\
             [[transactions.statements]]\nsql = 'UPDATE a SET x = x + ? WHERE id = ?'\nrows = 1\n\
             parameters = ['-5 to 1_000', 'zipf 0.9 1 to {n}0']\n\
             [[transactions.statements]]\nsql = 'INSERT INTO b VALUES (?, ?, ?, ?, ?)'\n\
             parameters = ['text 16', 'same 2', 'constant a b', 5, 'feed users.csv:name']\n\
             [[transactions]]\nname = 'look'\nstatements = [{ sql = 'SELECT 1' }]\n");
        let SqlWork::Own(transactions) = &one.work else { panic!("own") };
        let names: Vec<_> = transactions.iter().map(|one| (one.name.as_str(), one.weight, one.atomic)).collect();
        assert_eq!(names, [("move 4", 3, false), ("look", 1, true)]);
        let number = |low, high, distribution| Parameter::Number { low, high, distribution };
        let statements = &transactions[0].statements;
        let expected = [number(-5, 1000, Distribution::Uniform), number(1, 40, Distribution::Zipf(0.9))];
        assert_eq!((statements[0].parameters.as_slice(), statements[0].rows), (&expected[..], Some(1)));
        let feed = Parameter::Feed { file: "/study/users.csv".into(), column: "name".to_owned() };
        let constant = |text: &str| Parameter::Constant(text.to_owned());
        let expected = [Parameter::Text(16), Parameter::Same(2), constant("a b"), constant("5"), feed];
        assert_eq!(statements[1].parameters, expected);
        assert_eq!(dataset(&one, 7), None);
    }

    #[test]
    fn an_external_database_is_a_target() {
        let workload = resolve("database = 'there'\ntpcc = { warehouses = 1 }", &mut no_faults()).expect("a workload");
        assert_eq!(workload.target.map(|target| (target.host, target.port)), Some(("localhost".to_owned(), 5433)));
        let Steps::Sql(sql) = workload.steps else { panic!("SQL") };
        assert_eq!(sql.transport, Transport::Tcp);
    }

    #[test]
    fn a_workload_is_told_in_words() {
        let words = |text: &str| read_table::<WorkloadTable>(&format!("protocol = 'sql'\n{text}")).in_words();
        assert_eq!(
            words("database = 'db'\ntpcc = { warehouses = '{w}' }"),
            "SQL on db: TPC-C, {w} warehouses, waits zero; one connection per user; time-out 10s"
        );
        assert_eq!(
            words(
                "database = '{e}'\noltp = { test = '{t}', tables = 2, rows = 5 }\ntransport = 'tcp'\n\
                 isolation = 'serializable'\nretry = { on = ['serialization', 'deadlock'] }\ntimeout = '1s'"
            ),
            "SQL on {e}: OLTP {t}, 2 tables of 5 rows, chosen special; one connection per user, TCP, serializable, \
             3 attempts after serialization or deadlock; time-out 1s"
        );
        assert_eq!(
            words(
                "database = 'db'\ntransactions = [{ name = 'a', statements = [{ sql = 'x' }] }, \
                   { name = 'b', weight = 2, statements = [{ sql = 'x' }] }]"
            ),
            "SQL on db: a (weight 1) or b (weight 2); one connection per user; time-out 10s"
        );
    }

    #[test]
    fn wrong_workloads_are_named_when_read() {
        const ONE: &str = "transactions = [{ name = 'a', statements = [{ sql = 'x', ";
        for (text, what) in [
            ("", "does not say what users do"),
            ("tpcc = { warehouses = 1 }\noltp = { test = 'insert' }", "says twice what users do"),
            ("transactions = []", "`workload.transactions` is empty"),
            ("transactions = [{ name = 'a', statements = [] }]", "a transaction has no statements"),
            ("tpcc = { }", "`warehouses` is missing"),
            ("tpcc = { warehouses = 0 }", "at least 1"),
            ("tpcc = { warehouses = 1, waits = 'none' }", "\"spec\", \"zero\" or \"scaled N\""),
            ("tpcc = { warehouses = 1, waits = 'scaled 0' }", "a number above 0"),
            ("tpcc = { warehouses = 1 }\ntransport = 'socket'", "\"unix\" or \"tcp\""),
            ("tpcc = { warehouses = 1 }\nisolation = 'repeatable reads'", "did you mean `repeatable read`?"),
            ("tpcc = { warehouses = 1 }\nretry = { on = ['constraint'] }", "\"deadlock\", \"serialization\""),
            ("tpcc = { warehouses = 1 }\nretry = { on = [] }", "`workload.retry.on` is empty"),
            ("tpcc = { warehouses = 1 }\nsteps = []", "unknown key `steps`"),
            ("oltp = { test = 'readonly' }", "did you mean `read_only`?"),
            ("oltp = { test = 'bulk' }", "the tests are `point_select`, `read_only`"),
            ("oltp = { test = 'insert', distribution = 'pareto 1' }", "a share below 1"),
            ("oltp = { test = 'insert', distribution = 'zipf' }", "with an exponent"),
            ("oltp = { test = 'insert' }\ncheck_within = '5s'", "warning: this changes nothing"),
            (&format!("{ONE}parameters = ['100'] }}] }}]"), "write \"1 to 100\""),
            (&format!("{ONE}parameters = ['9 to 1'] }}] }}]"), "must be a parameter"),
            (&format!("{ONE}parameters = ['normal 1 to 9'] }}] }}]"), "must be a parameter"),
            (&format!("{ONE}parameters = ['feed users.csv'] }}] }}]"), "feed FILE.csv:COLUMN"),
            (
                &format!("{ONE}}}] }}, {{ name = 'a', statements = [{{ sql = 'x' }}] }}]"),
                "two transactions are named `a`",
            ),
        ] {
            let faults = faults_of::<WorkloadTable>(&format!("protocol = 'sql'\ndatabase = 'db'\n{text}"));
            assert!(matches!(faults.as_slice(), [fault] if fault.contains(what)), "{text}: {faults:?}");
        }
    }

    #[test]
    fn wrong_workloads_are_named_when_resolved() {
        for (text, what) in [
            ("database = 'dbs'\ntpcc = { warehouses = 1 }", "no database is named `dbs`; did you mean `db`?"),
            ("database = 'oracle'\ntpcc = { warehouses = 1 }", "databases are `db`, `there` or `rare`"),
            (
                "database = 'rare'\ntpcc = { warehouses = 1 }",
                "database `rare` does not run in every trial that names it",
            ),
            ("database = 'there'\ntransport = 'unix'\ntpcc = { warehouses = 1 }", "its `url` says how it is reached"),
            ("database = 'db'\ntpcc = { warehouses = 1, mix = [1, 2] }", "must be five weights"),
            ("database = 'db'\ntpcc = { warehouses = 1, mix = [0, 0, 0, 0, 0] }", "not all of them zero"),
            (
                "database = 'db'\ntransactions = [{ name = 'a', statements = [{ sql = 'x', parameters = [1, 'same 2'] }] }]",
                "parameter 2 of this transaction cannot be the same as parameter 2",
            ),
        ] {
            let mut faults = no_faults();
            assert_eq!(resolve(text, &mut faults), None, "{text}");
            let faults: Vec<String> = faults.into_diagnostics().iter().map(ToString::to_string).collect();
            assert!(matches!(faults.as_slice(), [fault] if fault.contains(what)), "{text}: {faults:?}");
        }
    }

    proptest! {
        #[test]
        fn every_range_reads_back(low in any::<i64>(), high in any::<i64>()) {
            let read = parameter(&format!("{low} to {high}"));
            let expected = Parameter::Number { low, high, distribution: Distribution::Uniform };
            prop_assert_eq!(read, (low <= high).then_some(expected));
        }

        #[test]
        fn no_text_makes_it_panic(text in "(zipf|feed|same|text)?[0-9 :to.é-]{0,12}") {
            let _ = parameter(&text);
        }
    }
}
