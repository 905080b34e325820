//! What gives safety away though no setting of the study says so: the server is asked.

use crate::common::{NEVER, Place, start};
use plimsoll_database::facts;
use plimsoll_model::database::Engine;
use plimsoll_model::sql::Transport;

/// Settings with a risk, each with what is in force, of a database that this script loads.
fn risky(engine: Engine, script: &str) -> Option<Vec<(String, String)>> {
    let place = Place::new();
    let database = place.database(engine, script)?;
    let mut databases = place.databases();
    let prepared = databases.prepare(&database, &NEVER, &mut |_| ()).unwrap();
    let running = start(&prepared, &place).unwrap();
    let facts = facts(&database, &prepared, Transport::Unix).unwrap();
    running.stop().unwrap();
    let risky = facts.settings.into_iter().filter(|setting| setting.risk.is_some());
    Some(risky.map(|setting| (setting.name, setting.in_force)).collect())
}

fn told(told: &[(String, String)]) -> Vec<(&str, &str)> {
    told.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect()
}

#[test]
fn settings_of_a_role_and_tables_without_a_log_are_told() {
    let script = "CREATE UNLOGGED TABLE cache (id INT PRIMARY KEY);\n\
                  ALTER ROLE CURRENT_USER SET synchronous_commit = off;\n";
    let Some(found) = risky(Engine::Postgresql, script) else { return };
    assert_eq!(told(&found), [("synchronous_commit", "off"), ("tables of the kind UNLOGGED", "cache")]);
}

#[test]
fn tables_of_engines_that_do_not_keep_them_are_told() {
    let script = "CREATE TABLE cache (id INT PRIMARY KEY) ENGINE = MEMORY;\n\
                  CREATE TABLE old (id INT PRIMARY KEY) ENGINE = MyISAM;\n";
    let Some(found) = risky(Engine::Mariadb, script) else { return };
    assert_eq!(told(&found), [("tables of the kind MEMORY", "cache"), ("tables of the kind MyISAM", "old")]);
}
