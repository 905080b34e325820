//! What differs on MySQL: how its data is made, what it opens by itself, and how it tells whether it
//! takes settings. The rest it shares with MariaDB.

use super::mariadb;
use super::{Installation, Place, Setting};
use std::path::{Path, PathBuf};

/// What the server is told, unless a study says otherwise: no second protocol, which would listen on
/// all addresses, and no folder for files of SQL, which packages name and which would have to be
/// there. Versions that do not know it pass over what is loose.
pub(super) const OWN: &[&str] = &["--loose-mysqlx=OFF", "--loose-secure-file-priv="];

/// The same while it loads: also without the binary log, which would be copied for each trial.
pub(super) const OWN_TO_LOAD: &[&str] = &[OWN[0], OWN[1], "--skip-log-bin"];

/// The tables of the system as SQL, in this order.
const SYSTEM_TABLES: [&str; 2] = ["mysql_system_tables.sql", "mysql_system_tables_data.sql"];

/// Has a command, which follows the folder of the data and two files, make data of what these say.
const BOOTSTRAP: &str = r#"data=$1 tables=$2 rows=$3; shift 3
mkdir "$data/mysql" && { echo 'USE mysql;'; cat "$tables" "$rows"; } | "$@""#;

/// Since 5.7 the server makes its data by itself; before, a script had it read SQL. Those scripts take
/// programs beside them, or Perl, and not every distribution has them; all have the SQL.
pub(super) fn initialise(installation: &Installation, place: &Place) -> Vec<String> {
    let mut command = mariadb::program(installation);
    command.extend([format!("--datadir={}", place.data.display()), mariadb::temporary(place)]);
    command.push("--skip-name-resolve".to_owned());
    command.extend(installation.init.iter().cloned());
    let Some([tables, rows]) = system_tables(installation) else {
        command.push("--initialize-insecure".to_owned());
        return command;
    };
    command.push("--bootstrap".to_owned());
    let files = [&place.data, &tables, &rows].map(|path| path.display().to_string());
    ["sh", "-c", BOOTSTRAP, "sh"].map(str::to_owned).into_iter().chain(files).chain(command).collect()
}

/// What keeps data from being made.
pub(super) fn check(installation: &Installation) -> Result<(), String> {
    if makes_data(installation) || system_tables(installation).is_some() {
        return Ok(());
    }
    Err(format!(
        "{} at {} lacks the SQL that makes its data: looked for `{}` in `share` and `share/mysql` above it; name the \
         folder of a whole archive by `programs`",
        installation.version,
        installation.programs.server.display(),
        SYSTEM_TABLES.join("` and `")
    ))
}

fn makes_data(installation: &Installation) -> bool {
    installation.number() >= [5, 7, 0]
}

/// The files of which a version makes its data that does not do so by itself.
fn system_tables(installation: &Installation) -> Option<[PathBuf; 2]> {
    let above = installation.programs.server.ancestors().skip(1).take(2).filter(|_| !makes_data(installation));
    let folders = above.flat_map(|base: &Path| ["share", "share/mysql"].map(|name| base.join(name)));
    let mut files = folders.map(|folder| SYSTEM_TABLES.map(|name| folder.join(name)));
    files.find(|files| files.iter().all(|file| file.is_file()))
}

/// It reads them and ends; before it learnt that, it does so where it is asked for help.
pub(super) fn try_settings(installation: &Installation, settings: &[Setting]) -> Vec<String> {
    if installation.number() < [8, 0, 16] {
        return mariadb::try_settings(installation, settings);
    }
    let mut command = mariadb::program(installation);
    command.extend(OWN.iter().map(|&own| own.to_owned()));
    command.extend(settings.iter().map(mariadb::argument));
    command.extend(["--datadir=/", "--log-error-verbosity=2", "--validate-config"].map(str::to_owned));
    command
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::account::Account;
    use crate::programs::Programs;
    use plimsoll_model::database::Engine;
    use std::fs;

    fn installation(base: &Path, version: &str) -> Installation {
        let server = base.join("bin/mysqld");
        Installation {
            engine: Engine::Mysql,
            programs: Programs { server: server.clone(), initialise: server, base: Some(base.to_owned()) },
            version: version.to_owned(),
            user: Account::find(None).unwrap(),
            init: vec!["--innodb-log-file-size=8M".to_owned()],
        }
    }

    #[test]
    fn old_versions_make_their_data_of_sql_and_new_ones_by_themselves() {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path();
        let place = Place { data: base.join("data"), sockets: base.join("s"), port: 1 };
        let said = check(&installation(base, "MySQL 5.6.24")).unwrap_err();
        assert!(said.contains("MySQL 5.6.24") && said.contains("mysql_system_tables_data.sql"), "{said}");
        fs::create_dir(base.join("share")).unwrap();
        SYSTEM_TABLES.iter().for_each(|name| fs::write(base.join("share").join(name), "").unwrap());

        let old = installation(base, "MySQL 5.6.24");
        assert_eq!(check(&old), Ok(()));
        let command = initialise(&old, &place);
        assert_eq!((command[0].as_str(), command[7].clone()), ("sh", base.join("bin/mysqld").display().to_string()));
        assert_eq!(command.last().unwrap(), "--bootstrap");
        let new = installation(base, "MySQL 5.7.44");
        let command = initialise(&new, &place);
        assert!(command[0].ends_with("mysqld") && command[1] == "--no-defaults", "{command:?}");
        assert_eq!(command[command.len() - 2..], ["--innodb-log-file-size=8M", "--initialize-insecure"]);
    }

    #[test]
    fn settings_are_tried_as_each_version_can() {
        let last = |version| try_settings(&installation(Path::new("/x"), version), &[]).pop().unwrap();
        assert_eq!([last("MySQL 5.5.9"), last("MySQL 8.0.15")], ["--help"; 2]);
        assert_eq!([last("MySQL 8.0.16"), last("MySQL 9.7.4")], ["--validate-config"; 2]);
    }
}
