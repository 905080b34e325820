//! Finds tables that a crash can empty or damage, and a disabled redo log, which no setting shows.

use plimsoll_model::database::{Engine, Setting};
use plimsoll_sql::{Connection, SqlError};

/// The queries for kind and name of the load's tables.
const UNLOGGED: &str = "SELECT 'UNLOGGED', relname FROM pg_class JOIN pg_namespace AS n ON n.oid = relnamespace \
    WHERE relpersistence = 'u' AND relkind = 'r' AND nspname NOT IN ('pg_catalog', 'information_schema') ORDER BY 2";
const BY_ENGINE: &str = "SELECT engine, table_name FROM information_schema.tables WHERE table_type = 'BASE TABLE' \
    AND table_schema = DATABASE() ORDER BY 1, 2";
const REDO_LOG: &str = "SHOW GLOBAL STATUS LIKE 'Innodb_redo_log_enabled'";

const PLAIN: &str = "no transactions: a crash can damage them, and a rollback leaves what was written";

/// Kinds of tables, what can be lost of them, and the source.
const LOST: [(&str, &str, &str); 8] = [
    ("UNLOGGED", "they are empty after a crash", "PostgreSQL: CREATE TABLE"),
    ("MEMORY", "they are empty when the server starts anew", "MariaDB and MySQL: MEMORY Storage Engine"),
    ("BLACKHOLE", "nothing is kept", "MariaDB and MySQL: BLACKHOLE Storage Engine"),
    ("MyISAM", PLAIN, "MariaDB and MySQL: MyISAM Storage Engine"),
    ("MRG_MyISAM", PLAIN, "MariaDB and MySQL: MERGE Storage Engine"),
    ("ARCHIVE", PLAIN, "MariaDB and MySQL: ARCHIVE Storage Engine"),
    ("CSV", PLAIN, "MariaDB and MySQL: CSV Storage Engine"),
    ("Aria", "no transactions: a rollback leaves what was written", "MariaDB: Aria Storage Engine"),
];

/// The risky tables of the database that is loaded and of `others`, which have names, as settings that the study did not
/// ask for.
pub(crate) fn tables(loaded: &mut Connection, others: &mut [(String, Connection)]) -> Result<Vec<Setting>, SqlError> {
    let mut found = by_kind(loaded)?;
    for (database, connection) in others {
        let named = |(kind, table): (String, String)| (kind, format!("{database}.{table}"));
        found.extend(by_kind(connection)?.into_iter().map(named));
    }
    let mut found_settings: Vec<Setting> = LOST.iter().filter_map(|kind| of_kind(kind, &found)).collect();
    if loaded.engine() != Engine::Postgresql {
        found_settings.extend(loaded.query(REDO_LOG)?.rows.into_iter().filter_map(pair).filter_map(redo_log));
    }
    Ok(found_settings)
}

/// Kind and name of the tables of a database.
fn by_kind(connection: &mut Connection) -> Result<Vec<(String, String)>, SqlError> {
    let is_postgresql = connection.engine() == Engine::Postgresql;
    let found = connection.query(if is_postgresql { UNLOGGED } else { BY_ENGINE })?;
    Ok(found.rows.into_iter().filter_map(pair).collect())
}

fn pair(row: Vec<Option<String>>) -> Option<(String, String)> {
    let mut cells = row.into_iter().flatten();
    Some((cells.next()?, cells.next()?))
}

fn of_kind((kind, lost, source): &(&str, &str, &str), found: &[(String, String)]) -> Option<Setting> {
    let names = found.iter().filter(|(engine, _)| engine.eq_ignore_ascii_case(kind)).map(|(_, name)| name.as_str());
    let names: Vec<&str> = names.collect();
    let risk = Some(format!("{lost} ({source})"));
    let name = format!("tables of the kind {kind}");
    (!names.is_empty()).then_some(Setting { name, asked: None, in_force: names.join(", "), risk })
}

fn redo_log((name, value): (String, String)) -> Option<Setting> {
    let risk = "a crash of the server can destroy the whole database (MySQL: Disabling Redo Logging)".to_owned();
    let name = name.to_lowercase();
    value.eq_ignore_ascii_case("off").then_some(Setting { name, asked: None, in_force: value, risk: Some(risk) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_told_by_kind_and_those_that_are_kept_are_not() {
        let found = [("InnoDB", "a"), ("MEMORY", "b"), ("MEMORY", "c"), ("MyISAM", "d")];
        let found = found.map(|(engine, name)| (engine.to_owned(), name.to_owned()));
        let told: Vec<Setting> = LOST.iter().filter_map(|kind| of_kind(kind, &found)).collect();
        let names: Vec<(&str, &str)> = told.iter().map(|one| (one.name.as_str(), one.in_force.as_str())).collect();
        assert_eq!(names, [("tables of the kind MEMORY", "b, c"), ("tables of the kind MyISAM", "d")]);
        assert!(told[0].risk.as_ref().unwrap().starts_with("they are empty when"));
    }

    #[test]
    fn a_redo_log_that_is_off_is_told() {
        let is = |value: &str| redo_log(("Innodb_redo_log_enabled".to_owned(), value.to_owned()));
        assert_eq!(is("ON"), None);
        assert!(is("OFF").unwrap().risk.unwrap().contains("destroy the whole database"));
    }
}
