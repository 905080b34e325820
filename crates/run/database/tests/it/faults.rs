//! What goes wrong while data is made, and before.

use crate::common::{NEVER, Place, names_in, processes_with, server, settings};
use plimsoll_database::{DatabaseError, check, check_disk_space_of_starts};
use plimsoll_model::database::{Dataset, Engine};
use plimsoll_model::event::Event;
use plimsoll_system::Interrupt;
use std::path::Path;
use std::process::Command;

#[test]
fn a_disk_that_is_full_while_data_is_loaded_is_named_and_nothing_is_left() {
    let rows = "CREATE TABLE filler (id INT PRIMARY KEY, text TEXT);\n";
    let postgresql =
        format!("{rows}INSERT INTO filler SELECT n, repeat('x', 1900) FROM generate_series(1, 100000) AS n;\n");
    let mariadb = format!("{rows}INSERT INTO filler SELECT seq, repeat('x', 1900) FROM seq_1_to_100000;\n");
    let some = "(SELECT 1 AS n UNION SELECT 2 UNION SELECT 3) AS n";
    let many = "information_schema.collations AS a, information_schema.collations AS b";
    let mysql = format!(
        "CREATE TABLE filler (id INT AUTO_INCREMENT PRIMARY KEY, text TEXT);\n\
         INSERT INTO filler (text) SELECT repeat('x', 1900) FROM {many}, {some};\n"
    );
    // The last is too small for the server's log alone.
    let too_small = [
        (Engine::Postgresql, postgresql.as_str(), "100m"),
        (Engine::Mariadb, mariadb.as_str(), "260m"),
        (Engine::Mysql, mysql.as_str(), "260m"),
        (Engine::Mariadb, "", "60m"),
    ];
    for (engine, script, size) in too_small {
        let place = Place::new();
        let Some(mut database) = place.database(engine, script) else { continue };
        let disk = place.path("disk");
        let Some(_mounted) = Disk::mount(&disk, size) else { return };
        server(&mut database).data = Some(disk.join("data"));
        let mut databases = place.databases();
        let error = databases.prepare(&database, &NEVER, &mut |_| ()).unwrap_err();
        let said = error.to_string();
        assert!(said.starts_with(&format!("no space: the disk of {} is full", disk.join("data").display())), "{said}");
        assert_eq!(names_in(&disk), Vec::<String>::new());
        assert_eq!(processes_with(&disk.display().to_string()), Vec::<String>::new());
    }
}

#[test]
fn an_interrupted_load_leaves_nothing() {
    let place = Place::new();
    let folder = place.path("data");
    for (engine, kept) in [(Engine::Postgresql, Some(folder.clone())), (Engine::Mariadb, None), (Engine::Mysql, None)] {
        let Some(mut database) = place.database(engine, "") else { continue };
        server(&mut database).data = kept;
        let interrupt = Interrupt::new();
        let mut databases = place.databases();
        let run = databases.scratch_folder().to_owned();
        let mut on_data = |event: &Event| {
            if matches!(event, Event::DataProgress { doing, .. } if doing == "bringing to rest") {
                interrupt.set();
            }
        };
        let error = databases.prepare(&database, &interrupt, &mut on_data).unwrap_err();
        assert!(matches!(error, DatabaseError::Interrupted), "{error}");
        drop(databases);
        assert!(!run.exists() && !folder.exists());
        assert_eq!(processes_with(&run.display().to_string()), Vec::<String>::new());
    }
}

#[test]
fn what_cannot_be_is_said_before_anything_is_started() {
    let place = Place::new();
    for engine in [Engine::Postgresql, Engine::Mariadb, Engine::Mysql] {
        let Some(database) = place.database(engine, "") else { continue };
        let fault_of = |change: &dyn Fn(&mut plimsoll_model::database::Database)| {
            let mut changed = database.clone();
            change(&mut changed);
            let faults = check(&changed).join("; ");
            let prepared = place.databases().prepare(&changed, &NEVER, &mut |_| panic!("nothing may be made"));
            assert_eq!(prepared.unwrap_err().to_string(), faults);
            faults
        };
        let said = fault_of(&|database| server(database).user = Some("no-such-user".to_owned()));
        assert!(said.contains("the user `no-such-user`, who is to run the server, is not in /etc/passwd"), "{said}");
        let said = fault_of(&|database| server(database).programs = Some(place.path("nowhere")));
        assert!(said.contains("was not found: looked for `") && said.contains("nowhere/bin"), "{said}");
        let said = fault_of(&|database| database.settings = settings(&[("port", "5432")]));
        assert!(said.contains("the setting `port` of the database `db` is Plimsoll's own to choose"), "{said}");
        let (setting, away) = match engine {
            Engine::Postgresql => ("log_directory", "/var/log/postgresql"),
            Engine::Mariadb | Engine::Mysql => ("innodb-data-home-dir", "../elsewhere"),
        };
        let said = fault_of(&|database| database.settings = settings(&[(setting, away)]));
        let expected = format!("the setting `{setting}` of the database `db` leads out of the folder of its data");
        assert!(said.contains(&expected), "{said}");
        let argument = format!("--{setting}={away}");
        let said = fault_of(&|database| server(database).init = vec![argument.clone()]);
        assert!(said.contains(&format!("`{argument}` in `init` of the database `db` leads out")), "{said}");
    }
}

#[test]
fn settings_that_a_server_does_not_take_are_found_without_any_data() {
    let place = Place::new();
    for (engine, fine, wrong) in [
        (
            Engine::Postgresql,
            [("shared_buffers", "64MB"), ("auto_explain.log_analyze", "on")],
            [("no_such_setting", "5"), ("synchronous_commit", "maybe"), ("max_connections", "-1")],
        ),
        (
            Engine::Mariadb,
            [("innodb_buffer_pool_size", "64M"), ("max-connections", "77")],
            [("no_such_setting", "5"), ("innodb_flush_method", "maybe"), ("table_definition_cache", "100")],
        ),
        (
            Engine::Mysql,
            [("innodb_buffer_pool_size", "64M"), ("max-connections", "77")],
            [("no_such_setting", "5"), ("innodb_io_capacity", "maybe"), ("table_definition_cache", "100")],
        ),
    ] {
        let Some(mut database) = place.database(engine, "") else { continue };
        database.settings = settings(&fine);
        assert_eq!(check(&database), [""; 0]);
        database.settings = settings(&[&fine[..], &wrong[..]].concat());
        let faults = check(&database);
        assert_eq!(faults.len(), wrong.len(), "{faults:#?}");
        for (fault, (name, value)) in faults.iter().zip(wrong) {
            assert!(fault.starts_with(&engine.to_string()), "{fault}");
            assert!(fault.contains(&format!(" does not take `{name} = {value}`: ")), "{fault}");
            assert!(fault.contains(&format!("\ncorrect `settings.{name}` in `[database.db]`")), "{fault}");
            assert!(fault.len() < 400 && fault.lines().count() == 2, "{fault}");
        }
    }
}

#[test]
fn data_that_no_disk_has_room_for_is_refused_before_anything_is_made() {
    let place = Place::new();
    for engine in [Engine::Postgresql, Engine::Mariadb, Engine::Mysql] {
        let Some(mut database) = place.database(engine, "") else { continue };
        let tpcc = |warehouses| Dataset::Tpcc { warehouses, seed: 1 };
        database.dataset = tpcc(1);
        assert_eq!(check_disk_space_of_starts(&[vec![database.clone()]]), [""; 0]);
        database.dataset = tpcc(1_000_000);
        let told = check_disk_space_of_starts(&[vec![database.clone(), database]]).join("");
        assert!(told.contains("`db`, TPC-C of 1000000 warehouses"), "{told}");
        assert!(told.contains("the disk of /var/tmp") && told.contains("`data` in `[database.NAME]`"), "{told}");
    }
}

/// A small file system in memory, which only root can mount.
struct Disk<'a>(&'a Path);

impl Disk<'_> {
    fn mount<'a>(path: &'a Path, size: &str) -> Option<Disk<'a>> {
        std::fs::create_dir_all(path).unwrap();
        let options = format!("size={size},mode=755");
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", &options, "tmpfs"]).arg(path).output();
        if mounted.is_ok_and(|output| output.status.success()) {
            return Some(Disk(path));
        }
        plimsoll_testkit::skipped("a small disk cannot be mounted here: a full disk is not tried");
        None
    }
}

impl Drop for Disk<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0).status();
    }
}
