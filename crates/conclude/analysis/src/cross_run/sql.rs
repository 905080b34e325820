//! Describes the databases of a bundle and the load on them as named texts.

use super::describe::THIS_MACHINE;
use super::named_value::{NamedValue, named};
use crate::quantity::grouped;
use crate::words::counted;
use plimsoll_model::database::{Database, Dataset, Origin, Server, Snapshot};
use plimsoll_model::sql::{
    Distribution, OwnStatement, Parameter, Retry, Sql, SqlWork, Tpcc, Transaction, Transport, Waits,
};

/// The transactions of users, and the rules for them.
pub(super) fn work(sql: &Sql) -> Vec<NamedValue> {
    let transport = match sql.transport {
        Transport::Tcp => "TCP",
        Transport::Unix => "UNIX socket",
    };
    let isolation = sql.isolation.map_or("the server's own".to_owned(), |isolation| isolation.to_string());
    let mut all = vec![
        named("database", &sql.database),
        named("transport", transport),
        named("isolation level", isolation),
        named("retries", retries(&sql.retry)),
    ];
    match &sql.work {
        SqlWork::Tpcc(tpcc) => all.extend(self::tpcc(tpcc)),
        SqlWork::Oltp(oltp) => all.extend([
            named("test of sysbench", oltp.test.name()),
            named("tables", format!("{} of {} rows", oltp.tables, grouped(oltp.rows as f64))),
            named("choice of rows", distribution(oltp.distribution)),
        ]),
        SqlWork::Own(transactions) => all.extend(transactions.iter().map(own)),
    }
    all
}

fn retries(retry: &Retry) -> String {
    if retry.attempts <= 1 || retry.on.is_empty() {
        return "none".to_owned();
    }
    let kinds: Vec<&str> = retry.on.iter().map(|kind| kind.name()).collect();
    format!("after {}, {} attempts in all", kinds.join(", "), retry.attempts)
}

fn tpcc(tpcc: &Tpcc) -> Vec<NamedValue> {
    let waits = match tpcc.waits {
        Waits::Spec => "as specified".to_owned(),
        Waits::Zero => "none".to_owned(),
        Waits::Scaled(factor) => format!("{factor} times those specified"),
    };
    vec![
        named("warehouses", tpcc.warehouses.to_string()),
        named("keying and think times", waits),
        named("mix", tpcc.mix.map(|weight| weight.to_string()).join(", ")),
        named("sorted order lines", if tpcc.sorted_lines { "yes" } else { "no" }),
    ]
}

fn distribution(distribution: Distribution) -> String {
    match distribution {
        Distribution::Uniform => "uniform".to_owned(),
        Distribution::Special => "special".to_owned(),
        Distribution::Pareto(share) => format!("Pareto {share}"),
        Distribution::Zipf(exponent) => format!("Zipf {exponent}"),
    }
}

fn own(transaction: &Transaction) -> NamedValue {
    let statements: Vec<String> = transaction.statements.iter().map(statement).collect();
    let atomic = if transaction.atomic { "in one transaction" } else { "each by itself" };
    let text = format!("weight {}, {atomic}: {}", transaction.weight, statements.join("; "));
    named(format!("transaction `{}`", transaction.name), text)
}

fn statement(statement: &OwnStatement) -> String {
    let parameters: Vec<String> = statement.parameters.iter().map(parameter).collect();
    if parameters.is_empty() { statement.sql.clone() } else { format!("{} ({})", statement.sql, parameters.join(", ")) }
}

pub(super) fn parameter(parameter: &Parameter) -> String {
    match parameter {
        Parameter::Number { low, high, distribution: how } => format!("{low} to {high}, {}", distribution(*how)),
        Parameter::Text(length) => format!("{length} characters"),
        Parameter::Constant(text) => format!("`{text}`"),
        Parameter::Same(number) => format!("parameter {number} again"),
        Parameter::Feed { file, column } => format!("{column} of {}", file.display()),
    }
}

/// The data in a database before every trial: where it differs, numbers do not mean the same.
pub(super) fn data(database: &Database) -> Vec<NamedValue> {
    let dataset = match &database.dataset {
        Dataset::Tpcc { warehouses, .. } => format!("TPC-C, {}", counted(*warehouses as usize, "warehouse")),
        Dataset::Sbtest { tables, rows, .. } => {
            format!("{tables} tables of sysbench, {} rows each", grouped(*rows as f64))
        }
        Dataset::Scripts(files) => {
            let files: Vec<String> = files.iter().map(|file| file.display().to_string()).collect();
            files.join(", ")
        }
        Dataset::Empty => "none".to_owned(),
    };
    let of = |what: &str| format!("{what} of {}", database.name);
    let migration = match &database.origin {
        Origin::Started(server) => server.migrate.as_ref(),
        Origin::External(_) => None,
    };
    let mut all = vec![
        named(of("data"), dataset),
        named(of("reading all data before the load"), if database.warm { "yes" } else { "no" }),
    ];
    all.extend(migration.map(|migration| named(of("migration"), migration.command.to_string())));
    all
}

/// The server and its settings, which a comparison may be about.
pub(super) fn database(database: &Database) -> Vec<NamedValue> {
    let of = |what: &str| format!("{what} of {}", database.name);
    let mut all = vec![named(of("server"), database.engine.to_string())];
    match &database.origin {
        Origin::Started(server) => all.extend(started(server, of)),
        Origin::External(external) => {
            all.push(named(of("origin"), "runs already"));
            all.push(named(of("address"), external.endpoint.address.to_string()));
        }
    }
    all.extend(database.settings.iter().map(|(name, value)| named(of(&format!("setting {name}")), value)));
    all
}

fn started(server: &Server, of: impl Fn(&str) -> String) -> Vec<NamedValue> {
    let snapshot = match server.snapshot {
        Snapshot::Copy => "files are copied",
        Snapshot::Template => "a template database",
    };
    let programs = server.programs.as_ref().map_or("of the system".to_owned(), |folder| folder.display().to_string());
    let data = server.data.as_ref().map_or("one for each run".to_owned(), |folder| folder.display().to_string());
    vec![
        named(of("host"), server.on.as_deref().unwrap_or(THIS_MACHINE)),
        named(of("folder of the data"), data),
        named(of("programs"), programs),
        named(of("arguments for initialising"), server.init.join(" ")),
        named(of("restoring"), snapshot),
        named(of("processors"), server.cpus.as_ref().map_or("all".to_owned(), ToString::to_string)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_model::database::Engine;
    use plimsoll_model::record::ErrorKind;
    use plimsoll_model::sql::{Isolation, Oltp, OltpTest};
    use std::time::Duration;

    fn lines(named: Vec<NamedValue>) -> Vec<String> {
        named.into_iter().map(|(name, value)| format!("{name}: {value}")).collect()
    }

    fn sql(work: SqlWork) -> Sql {
        Sql {
            database: "db".to_owned(),
            endpoint: None,
            transport: Transport::Unix,
            isolation: Some(Isolation::ReadCommitted),
            retry: Retry { on: vec![ErrorKind::Deadlock], attempts: 3 },
            work,
            check_within: Duration::ZERO,
        }
    }

    #[test]
    fn a_workload_is_told_in_words() {
        let tpcc = SqlWork::Tpcc(Tpcc {
            warehouses: 2,
            waits: Waits::Scaled(0.1),
            mix: [45.0, 43.0, 4.0, 4.0, 4.0],
            sorted_lines: false,
            data_seed: 1,
        });
        assert_eq!(
            lines(work(&sql(tpcc))),
            [
                "database: db",
                "transport: UNIX socket",
                "isolation level: READ COMMITTED",
                "retries: after deadlock, 3 attempts in all",
                "warehouses: 2",
                "keying and think times: 0.1 times those specified",
                "mix: 45, 43, 4, 4, 4",
                "sorted order lines: no",
            ]
        );
        let oltp =
            Oltp { test: OltpTest::ReadWrite, tables: 4, rows: 100_000, distribution: Distribution::Pareto(0.2) };
        let described = lines(work(&sql(SqlWork::Oltp(oltp))));
        assert_eq!(
            described[4..],
            ["test of sysbench: read_write", "tables: 4 of 100,000 rows", "choice of rows: Pareto 0.2"]
        );
        let number = Parameter::Number { low: 1, high: 9, distribution: Distribution::Uniform };
        let select = OwnStatement { sql: "SELECT ?".to_owned(), parameters: vec![number], rows: None };
        let own = Transaction { name: "look".to_owned(), weight: 2, atomic: false, statements: vec![select] };
        let described = lines(work(&sql(SqlWork::Own(vec![own]))));
        assert_eq!(described[4], "transaction `look`: weight 2, each by itself: SELECT ? (1 to 9, uniform)");
    }

    #[test]
    fn a_server_is_told_with_its_settings_apart_from_its_data() {
        let server = Server {
            on: None,
            listen: std::net::Ipv4Addr::LOCALHOST.into(),
            programs: Some("/opt/pg15/bin".into()),
            user: None,
            init: vec!["--data-checksums".to_owned()],
            data: None,
            snapshot: Snapshot::Copy,
            databases: vec!["plimsoll".to_owned()],
            roles: vec!["service".to_owned()],
            password: None,
            migrate: None,
            port: 5,
            cpus: None,
            ready_within: Duration::ZERO,
            stop_grace: Duration::ZERO,
        };
        let db = Database {
            name: "db".to_owned(),
            engine: Engine::Postgresql,
            origin: Origin::Started(Box::new(server)),
            settings: vec![("fsync".to_owned(), "off".to_owned())],
            dataset: Dataset::Tpcc { warehouses: 2, seed: 1 },
            warm: true,
            expected: Vec::new(),
        };
        assert_eq!(
            lines(database(&db)),
            [
                "server of db: PostgreSQL",
                "host of db: this machine",
                "folder of the data of db: one for each run",
                "programs of db: /opt/pg15/bin",
                "arguments for initialising of db: --data-checksums",
                "restoring of db: files are copied",
                "processors of db: all",
                "setting fsync of db: off",
            ]
        );
        assert_eq!(
            lines(data(&db)),
            ["data of db: TPC-C, 2 warehouses", "reading all data before the load of db: yes"]
        );
    }
}
