//! `[workload]` with `protocol = "sql"`: transactions on a database.

use crate::document::{Fault, Faults, Span, table};
use crate::table::database::DatabaseTable;
use crate::table::named_tables;
use crate::table::oltp::OltpTable;
use crate::table::tpcc::TpccTable;
use crate::table::transaction::TransactionTable;
use crate::table::workload::Protocol;
use crate::value::{
    Length, Literal, PositiveTimeSpan, Problem, Scalar, Scope, Templated, Text, WholeNumber, keyword, resolve_all,
    resolve_optional, written_or,
};
use plimsoll_model::database::{Address, Database, Dataset, External, Origin};
use plimsoll_model::factor::Level;
use plimsoll_model::load::LoadProfile;
use plimsoll_model::record::ErrorKind;
use plimsoll_model::sql::{Isolation, OltpTest, OwnStatement, Retry, Sql, SqlWork, TPCC_STEPS, Transport};
use plimsoll_model::workload::{Connect, Steps, Target, Workload};
use serde_json::{Value, json};
use std::time::Duration;

table! {
    /// Transactions on a database: each iteration is one.
    struct SqlTable {
        /// What is spoken with the target.
        #[allow(dead_code)] // read before, to choose this table
        protocol: Literal<Protocol>,
        /// The name of a [database.NAME].
        database: Templated<Text>,
        /// The five transactions of TPC-C.
        tpcc: Option<TpccTable>,
        /// One of sysbench's OLTP tests.
        oltp: Option<OltpTable>,
        /// Transactions of the study's own, of which each iteration is one, drawn by weight.
        transactions: Option<Vec<TransactionTable>>,
        /// How a database that the study starts is reached: by its "unix" socket, or by "tcp" over the loopback. Default: "unix"; for one on another host "tcp".
        transport: Option<Templated<Transport>>,
        /// How far transactions see one another: "read committed", "repeatable read" or "serializable". Default: the server's own.
        isolation: Option<Templated<Isolation>>,
        /// What is tried again, with the same input. Default: nothing.
        retry: Option<RetryTable>,
        /// How long the consistency conditions of TPC-C may be looked at after a trial; "0s" for not at all. Default: "60s".
        check_within: Option<Templated<Length>>,
        /// The longest that one transaction, or connecting, may take. Default: "10s".
        timeout: Option<Templated<PositiveTimeSpan>>,
    }
}

table! {
    /// What is tried again.
    struct RetryTable {
        /// After which errors: "deadlock", "serialization" and "lock_timeout".
        on: Vec<Templated<Retried>>,
        /// Attempts in all. Default: 3.
        attempts: Option<Templated<Attempts>>,
    }
}

type Attempts = WholeNumber<1, 100>;

const TIMEOUT: Duration = Duration::from_secs(10);
const CHECK_WITHIN: Duration = Duration::from_secs(60);
const ATTEMPTS: u32 = 3;

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
        let transport = resolve_optional(self.transport.as_ref(), |transport| transport.resolve(scope, faults));
        let isolation = resolve_optional(self.isolation.as_ref(), |isolation| isolation.resolve(scope, faults));
        let retry = resolve_optional(self.retry.as_ref(), |retry| retry.resolve(scope, faults));
        let check_within = resolve_optional(self.check_within.as_ref(), |within| within.resolve(scope, faults));
        let timeout = resolve_optional(self.timeout.as_ref(), |timeout| timeout.resolve(scope, faults));
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
        let table = named_tables::find(databases, &name, &self.database.span, faults)?;
        if !table.runs(scope.assignment) {
            faults.add(scope.fault_not_running("database", &name, &self.database.span));
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
            if let (Some(_), Some(Transport::Unix), Some(written)) = (database.on(), asked, &self.transport) {
                let message = format!("database `{}` runs on another host, which has its UNIX socket", database.name);
                faults.add(Fault::error(&written.span, message).help("leave `transport` out: it is \"tcp\" then"));
                return None;
            }
            let usual = if database.on().is_some() { Transport::Tcp } else { Transport::Unix };
            return Some((asked.unwrap_or(usual), None));
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
        resolve_all(self.transactions.as_deref()?, |transaction| transaction.resolve(scope, faults)).map(SqlWork::Own)
    }
}

impl RetryTable {
    fn resolve(&self, scope: &Scope<'_>, faults: &mut Faults) -> Option<Retry> {
        let on = resolve_all(&self.on, |kind| kind.resolve(scope, faults).map(|kind| kind.0));
        let attempts = resolve_optional(self.attempts.as_ref(), |attempts| attempts.resolve(scope, faults));
        Some(Retry { on: on?, attempts: attempts?.map_or(ATTEMPTS, Attempts::u32) })
    }

    fn in_words(&self) -> String {
        let kinds: Vec<&str> = self.on.iter().map(Templated::as_written).collect();
        format!("{} attempts after {}", written_or(self.attempts.as_ref(), "3"), kinds.join(" or "))
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

/// Refuses a load that writes to a database that Plimsoll did not make and nothing restores, unless the
/// study allows it; then warns that trials find what earlier ones have left.
pub(crate) fn check_writes(sql: &Sql, database: &Database, span: &Span, faults: &mut Faults) {
    let Origin::External(External { restore: None, may_write, .. }) = &database.origin else { return };
    let name = &database.name;
    let Some(writes) = writes(&sql.work, name) else { return };
    let restore = "add `restore` with a command that brings its data back";
    if *may_write {
        let message = format!("trials find in `{name}` what earlier ones have left: nothing restores it");
        faults.add(Fault::warning(span, message).help(restore));
    } else {
        let message = format!("{writes}, which is not Plimsoll's own, and nothing restores it");
        let help = format!("{restore}; where its data may change for good, `may_write = true`");
        faults.add(Fault::error(span, message).help(help));
    }
}

/// That the work writes to the database `name`, or may do so; none where it only reads.
fn writes(work: &SqlWork, name: &str) -> Option<String> {
    let known = Some(format!("the load writes to `{name}`"));
    match work {
        SqlWork::Tpcc(_) => known,
        SqlWork::Oltp(oltp) => known.filter(|_| !matches!(oltp.test, OltpTest::PointSelect | OltpTest::ReadOnly)),
        SqlWork::Own(own) => {
            let word = own.iter().flat_map(|transaction| &transaction.statements).find_map(other_than_select)?;
            Some(format!("the load may write to `{name}` with its statement `{word} …` (only SELECT is known to read)"))
        }
    }
}

/// The first word of a statement, unless that is SELECT.
fn other_than_select(statement: &OwnStatement) -> Option<&str> {
    statement.sql.split_whitespace().next().filter(|word| !word.to_lowercase().starts_with("select"))
}

// What is known before any trial.
impl SqlTable {
    /// The names of the steps, and where each stands.
    pub(crate) fn step_names(&self) -> Vec<(String, Span)> {
        if let Some(tpcc) = &self.tpcc {
            return TPCC_STEPS.map(|name| (name.to_owned(), tpcc.place.clone())).into();
        }
        if let Some(oltp) = &self.oltp {
            return oltp.step_names();
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
        self.tpcc.as_ref().is_some_and(TpccTable::has_waits)
    }

    /// What users do, on which database and how, as reports say it.
    pub(crate) fn in_words(&self) -> String {
        let own =
            || self.transactions.iter().flatten().map(TransactionTable::in_words).collect::<Vec<_>>().join(" or ");
        let work = match (&self.tpcc, &self.oltp) {
            (Some(tpcc), _) => tpcc.in_words(),
            (None, Some(oltp)) => oltp.in_words(),
            (None, None) => own(),
        };
        let mut words = format!("SQL on {}: {work}; one connection per user", self.database.as_written());
        if let Some(transport) = &self.transport {
            words += &format!(" by {}", transport.as_written());
        }
        if let Some(isolation) = &self.isolation {
            words += &format!(", {}", isolation.as_written());
        }
        if let Some(retry) = &self.retry {
            words += &format!(", {}", retry.in_words());
        }
        format!("{words}; time-out {}", written_or(self.timeout.as_ref(), "10s"))
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

    /// What `sql` and the load must be to one another.
    pub(crate) fn check_load(&self, sql: &Sql, load: &LoadProfile, faults: &mut Faults) -> Option<()> {
        match (&self.tpcc, &sql.work) {
            (Some(table), SqlWork::Tpcc(tpcc)) => table.check_load(tpcc, load, faults),
            _ => Some(()),
        }
    }
}

impl Scalar for Transport {
    const EXPECTED: &'static str = "\"unix\" or \"tcp\"";

    fn from_level(level: &Level) -> Result<Self, Problem> {
        keyword(level, &[("unix", Transport::Unix), ("tcp", Transport::Tcp)])
    }

    fn schema() -> Value {
        json!({ "enum": ["unix", "tcp"] })
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
        keyword(level, &words)
    }

    fn schema() -> Value {
        json!({ "enum": ["read committed", "repeatable read", "serializable"] })
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
        keyword(level, &RETRIED.map(|kind| (kind.name(), Retried(kind))))
    }

    fn schema() -> Value {
        json!({ "enum": RETRIED.map(ErrorKind::name) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::testing::{faults_of, no_faults, read_table};
    use crate::table::workload::{StudyContext, WorkloadTable};
    use crate::value::{Bindings, NO_LOGINS};
    use plimsoll_model::factor::Assignment;
    use plimsoll_model::sql::{Distribution, Oltp, Parameter, Tpcc, Waits};
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
            not_running: &[],
            elsewhere: &[],
            logins: &NO_LOGINS,
            is_trusted: false,
            system: None,
            dir: Path::new("/study"),
            processors: &[0],
            of_generator: None,
        };
        let table: WorkloadTable = read_table(&format!("protocol = 'sql'\n{written}"));
        table.resolve(
            &scope,
            StudyContext { stores: &[], databases: &databases(), seed: 7, ..StudyContext::default() },
            faults,
        )
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
        let tpcc = Tpcc {
            warehouses: 4,
            waits: Waits::Zero,
            mix: [45.0, 43.0, 4.0, 4.0, 4.0],
            sorted_lines: false,
            data_seed: 7,
        };
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
        assert_eq!(names, [("move {n}", 3, false), ("look", 1, true)]);
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
            "SQL on {e}: OLTP {t}, 2 tables of 5 rows, chosen special; one connection per user by tcp, serializable, \
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
}
