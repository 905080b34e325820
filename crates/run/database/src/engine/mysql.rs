//! The differences of MySQL: initialising data, further listeners, and checking settings. The rest is shared with
//! MariaDB.

use super::mariadb;
use super::{Installation, Place, Setting};
use std::path::{Path, PathBuf};

/// Arguments that a study's settings override. They disable the second protocol, which would listen on all
/// addresses, and the folder for files of SQL, which packages name and which may not exist. Versions that do
/// not know a `loose` option ignore it.
pub(super) const OWN: &[&str] = &["--loose-mysqlx=OFF", "--loose-secure-file-priv="];

/// The same for loading, and without the binary log, which would be copied for each trial.
pub(super) const OWN_TO_LOAD: &[&str] = &[OWN[0], OWN[1], "--skip-log-bin"];

/// The SQL files of the system tables, in this order.
const SYSTEM_TABLES: [&str; 2] = ["mysql_system_tables.sql", "mysql_system_tables_data.sql"];

/// A shell script that pipes two SQL files into a command. Its arguments are the data folder, the files, and the
/// command.
const BOOTSTRAP: &str = r#"data=$1 tables=$2 rows=$3; shift 3
mkdir "$data/mysql" && { echo 'USE mysql;'; cat "$tables" "$rows"; } | "$@""#;

/// The command that initialises the data. Since 5.7 the server does that itself; before, a script made it read
/// SQL files. Those scripts need other programs, or Perl, and some distributions lack them, but all have the SQL
/// files.
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

/// Fails if the data cannot be initialised.
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

/// The SQL files for a version that does not initialise its data itself.
fn system_tables(installation: &Installation) -> Option<[PathBuf; 2]> {
    let above = installation.programs.server.ancestors().skip(1).take(2).filter(|_| !makes_data(installation));
    let folders = above.flat_map(|base: &Path| ["share", "share/mysql"].map(|name| base.join(name)));
    let mut files = folders.map(|folder| SYSTEM_TABLES.map(|name| folder.join(name)));
    files.find(|files| files.iter().all(|file| file.is_file()))
}

/// The command that checks settings and ends. Older versions do so when they print their help.
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
    use std::net::Ipv4Addr;

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
        let place =
            Place { data: base.join("data"), sockets: base.join("s"), listen: Ipv4Addr::LOCALHOST.into(), port: 1 };
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
