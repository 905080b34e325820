//! Data that is kept between runs, and folders that are not Plimsoll's.

use crate::common::{Accounts, NEVER, Place, accounts, connect, names_in, ready_events, server, start};
use plimsoll_database::{DatabaseError, check};
use plimsoll_model::database::{Database, Engine};
use plimsoll_model::event::Event;
use std::fs;

fn stage(place: &Place, database: &Database) -> (Result<Accounts, DatabaseError>, Vec<Event>) {
    let mut events = Vec::new();
    let mut databases = place.databases();
    let found = databases.prepare(database, &NEVER, &mut |event| events.push(event.clone())).and_then(|prepared| {
        let running = start(&prepared, place)?;
        let found = accounts(&prepared);
        connect(&prepared).batch("DELETE FROM account").unwrap();
        running.stop()?;
        Ok(found)
    });
    (found, events)
}

#[test]
fn postgresql_data_is_kept_for_later_runs_that_ask_for_the_same() {
    keep(Engine::Postgresql, &["--data-checksums"], &["--wal-segsize=32"]);
}

#[test]
fn mariadb_data_is_kept_for_later_runs_that_ask_for_the_same() {
    keep(Engine::Mariadb, &["--innodb-page-size=32k"], &[]);
}

#[test]
fn mysql_data_is_kept_for_later_runs_that_ask_for_the_same() {
    keep(Engine::Mysql, &["--lower-case-table-names=1"], &[]);
}

fn keep(engine: Engine, init: &[&str], other_init: &[&str]) {
    let place = Place::new();
    let Some(mut database) = place.database(engine, "") else { return };
    let folder = place.path("deeper/data");
    server(&mut database).data = Some(folder.clone());
    server(&mut database).init = init.iter().map(|&argument| argument.to_owned()).collect();
    for kept in [false, true] {
        let (found, events) = stage(&place, &database);
        assert_eq!(found.unwrap(), [(1, 10), (2, 20), (3, 30)]);
        assert_eq!(ready_events(&events), [kept]);
        assert_eq!(names_in(&folder), ["conditions.json", "loaded", "password", "plimsoll.json", "plimsoll.lock"]);
    }
    // Another schema: the script is another.
    let mut other = place.database(engine, "INSERT INTO account VALUES (4, 40);").unwrap();
    other.origin = database.origin.clone();
    server(&mut other).init = other_init.iter().map(|&argument| argument.to_owned()).collect();
    let said = stage(&place, &other).0.unwrap_err().to_string();
    assert!(said.contains("is not what the study asks for"), "{said}");
    assert!(
        said.contains(&format!("init: it has {}, the study asks for {}", init.join(" "), other_init.join(" "))),
        "{said}"
    );
    assert!(said.contains("data: it has SQL files with SHA-256 "), "{said}");
    assert_eq!(check(&other), [said]);
    let left = ["conditions.json", "loaded", "password", "plimsoll.json", "plimsoll.lock"];
    assert_eq!(names_in(&folder), left, "it is left as it is");

    // What was being made when its run was killed is made anew.
    let mark = fs::read_to_string(folder.join("plimsoll.json")).unwrap();
    fs::write(folder.join("plimsoll.json"), mark.replace("\"finished\": true", "\"finished\": false")).unwrap();
    fs::create_dir(folder.join("trial-7")).unwrap();
    let (found, events) = stage(&place, &database_with_script(&place, database, engine));
    assert_eq!((found.unwrap(), ready_events(&events)), (vec![(1, 10), (2, 20), (3, 30)], vec![false]));
    assert!(!folder.join("trial-7").exists());
}

/// The same database, with its script as it was.
fn database_with_script(place: &Place, database: Database, engine: Engine) -> Database {
    Database { dataset: place.database(engine, "").unwrap().dataset, ..database }
}

#[test]
fn a_folder_that_plimsoll_did_not_make_is_refused_and_not_touched() {
    let place = Place::new();
    for engine in [Engine::Postgresql, Engine::Mariadb, Engine::Mysql] {
        let Some(mut database) = place.database(engine, "") else { continue };
        let folder = place.path("foreign");
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("PG_VERSION"), "15\n").unwrap();
        server(&mut database).data = Some(folder.clone());
        let (found, events) = stage(&place, &database);
        let said = found.unwrap_err().to_string();
        assert!(said.contains(&format!("{} was not made by Plimsoll", folder.display())), "{said}");
        assert_eq!(check(&database), [said]);
        assert_eq!((names_in(&folder), events.len()), (vec!["PG_VERSION".to_owned()], 0));
    }
}

#[test]
fn two_runs_do_not_use_the_same_data() {
    let place = Place::new();
    let Some(mut database) = place.database(Engine::Postgresql, "") else { return };
    server(&mut database).data = Some(place.path("data"));
    let mut first = place.databases();
    let _prepared = first.prepare(&database, &NEVER, &mut |_| ()).unwrap();
    let said = stage(&place, &database).0.unwrap_err().to_string();
    assert!(said.contains("is in use by another run (process "), "{said}");
}
