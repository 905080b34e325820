//! MariaDB, and what MySQL has in common with it.

use super::{Installation, Place, Setting, USER, names_of};
use plimsoll_model::storage::Secret;
use plimsoll_sql::{Connection, SqlError};
use std::path::Path;

/// Settings that a run chooses itself. Some are of MySQL only: further addresses to listen on.
pub(super) const OWN_SETTINGS: &[&str] = &[
    "admin_address",
    "admin_port",
    "datadir",
    "mysqlx",
    "mysqlx_bind_address",
    "mysqlx_port",
    "socket",
    "port",
    "bind_address",
    "basedir",
    "user",
    "init_file",
    "skip_grant_tables",
    "skip_networking",
];

/// Arguments of the initialising program that a run chooses itself.
pub(super) const OWN_ARGUMENTS: &[&str] = &[
    "--datadir",
    "--ldata",
    "--user",
    "--basedir",
    "--no-defaults",
    "--defaults-file",
    "--defaults-extra-file",
    "--bootstrap",
    "--init-file",
    "--initialize",
    "--initialize-insecure",
];

/// Settings with paths, which could put files outside the data folder.
pub(super) const PLACES: &[&str] = &[
    "aria_log_dir_path",
    "general_log_file",
    "innodb_data_file_path",
    "innodb_data_home_dir",
    "innodb_directories",
    "innodb_doublewrite_dir",
    "innodb_log_group_home_dir",
    "innodb_redo_log_archive_dirs",
    "innodb_temp_data_file_path",
    "innodb_temp_tablespaces_dir",
    "innodb_tmpdir",
    "innodb_undo_directory",
    "log_bin",
    "log_bin_index",
    "log_error",
    "mysqlx_socket",
    "relay_log",
    "relay_log_index",
    "replica_load_tmpdir",
    "slave_load_tmpdir",
    "slow_query_log_file",
    "tmpdir",
];

/// Arguments of the initialising script itself. It passes all others to the server, which also needs them
/// whenever it serves the data.
const SCRIPT_ARGUMENTS: [&str; 6] =
    ["--auth-root", "--builddir", "--cross-bootstrap", "--force", "--skip-test-db", "--extra-file"];

pub(super) fn initialise(installation: &Installation, place: &Place) -> Vec<String> {
    let mut command = vec![installation.programs.initialise.display().to_string(), "--no-defaults".to_owned()];
    command.extend(base(installation));
    command.push(format!("--datadir={}", place.data.display()));
    command.push(temporary(place));
    // Never look up names of hosts, here and when it serves.
    command.extend(["--force", "--skip-name-resolve"].map(str::to_owned));
    command.extend(installation.init.iter().cloned());
    command
}

/// The command that serves the data. The study's settings override the arguments `own`.
pub(super) fn serve(installation: &Installation, place: &Place, own: &[&str], settings: &[Setting]) -> Vec<String> {
    let mut command = program(installation);
    command.extend(own.iter().map(|&own| own.to_owned()));
    let of_server = |argument: &&String| !SCRIPT_ARGUMENTS.iter().any(|own| argument.starts_with(own));
    command.extend(installation.init.iter().filter(of_server).cloned());
    command.push(temporary(place));
    command.extend(settings.iter().map(argument));
    command.extend([
        format!("--datadir={}", place.data.display()),
        format!("--socket={}", super::socket(installation.engine, place).display()),
        format!("--port={}", place.port),
        format!("--pid-file={}", place.sockets.join("process").display()),
        format!("--bind-address={}", place.listen),
        "--skip-name-resolve".to_owned(),
    ]);
    command
}

/// The command prints its help once it has accepted all settings.
pub(super) fn try_settings(installation: &Installation, settings: &[Setting]) -> Vec<String> {
    let mut command = program(installation);
    command.extend(settings.iter().map(argument));
    command.extend(["--datadir=/", "--verbose", "--help"].map(str::to_owned));
    command
}

/// The server program, and the folder of its messages.
pub(super) fn program(installation: &Installation) -> Vec<String> {
    let server = installation.programs.server.display().to_string();
    [server, "--no-defaults".to_owned()].into_iter().chain(base(installation)).collect()
}

pub(super) fn argument((name, value): &Setting) -> String {
    format!("--{}={value}", name.replace('_', "-"))
}

fn base(installation: &Installation) -> Option<String> {
    installation.programs.base.as_ref().map(|base| format!("--basedir={}", base.display()))
}

/// The folder for temporary tables. It must not be `/tmp`: a starting server removes the temporary tables of all
/// other servers in the same folder.
pub(super) fn temporary(place: &Place) -> String {
    format!("--tmpdir={}", place.sockets.display())
}

/// Settings for loading: no syncs before the end, no double writes, and a shutdown that purges everything. The
/// log keeps its default size: a large one would be copied for every trial, and hardly helps.
pub(super) fn settings_to_load(first: &Path) -> Vec<Setting> {
    let settings = [
        ("innodb_flush_log_at_trx_commit", "0"),
        ("innodb_doublewrite", "0"),
        ("innodb_buffer_pool_size", "512M"),
        ("innodb_fast_shutdown", "0"),
        ("innodb_io_capacity", "10000"),
        ("loose_innodb_io_capacity_max", "20000"), // not known before 5.6
        ("max_allowed_packet", "64M"),
    ];
    let mut settings: Vec<Setting> =
        settings.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect();
    settings.push(("init_file".to_owned(), first.display().to_string()));
    settings
}

/// The statements that the server runs before it accepts connections.
pub(super) fn first_statements(password: &Secret) -> String {
    let hosts = ["localhost", "127.0.0.1"];
    let user = |host: &str| {
        format!(
            "CREATE USER '{USER}'@'{host}' IDENTIFIED BY '{}';\nGRANT ALL ON *.* TO '{USER}'@'{host}' WITH GRANT OPTION;\n",
            password.0
        )
    };
    hosts.map(user).concat()
}

/// Makes the databases, and removes other users: new servers have a root user without a password, or with the
/// operating system's authentication.
pub(super) fn make_databases(connection: &mut Connection, names: &[String]) -> Result<(), SqlError> {
    let others = format!(
        "SELECT concat(quote(user), '@', quote(host)) FROM mysql.user \
         WHERE user NOT IN ('{USER}', 'PUBLIC', 'mariadb.sys', 'mysql.sys', 'mysql.session', 'mysql.infoschema') \
         AND host <> ''"
    );
    for other in names_of(connection, &others)? {
        connection.batch(&format!("DROP USER {other}"))?;
    }
    connection.batch("DROP DATABASE IF EXISTS test")?;
    names.iter().try_for_each(|name| connection.batch(&format!("CREATE DATABASE `{name}` CHARACTER SET utf8mb4")))
}

pub(super) fn let_in(connection: &mut Connection, roles: &[String], password: &Secret) -> Result<(), SqlError> {
    let known = names_of(connection, "SELECT concat(user, '@', host) FROM mysql.user")?;
    for (index, role) in roles.iter().enumerate() {
        // From any host, so that the study's SQL can name it without one. The server listens on the loopback alone, unless it
        // is for other hosts.
        let (account, password) = (format!("'{role}'@'%'"), &password.0);
        if !known.contains(&format!("{role}@%")) {
            connection.batch(&format!("CREATE USER {account} IDENTIFIED BY '{password}'"))?;
        } else if connection.batch(&format!("ALTER USER {account} IDENTIFIED BY '{password}'")).is_err() {
            // Before MariaDB 10.2 and MySQL 5.7.6.
            connection.batch(&format!("SET PASSWORD FOR {account} = PASSWORD('{password}')"))?;
        }
        if index == 0 {
            connection.batch(&format!("GRANT ALL ON *.* TO {account} WITH GRANT OPTION"))?;
        }
    }
    Ok(())
}

pub(super) fn settle(connection: &mut Connection) -> Result<(), SqlError> {
    for table in tables(connection)? {
        connection.query(&format!("ANALYZE TABLE {table}"))?;
    }
    Ok(())
}

/// Reads all tables, whose rows are in the primary key, then each further index.
pub(super) fn warm(connection: &mut Connection) -> Result<(), SqlError> {
    let scans = "SELECT concat('SELECT count(`', column_name, '`) FROM `', table_schema, '`.`', table_name, \
                 '` FORCE INDEX (`', index_name, '`)') FROM information_schema.statistics \
                 WHERE seq_in_index = 1 AND table_schema = database() ORDER BY index_name <> 'PRIMARY'";
    for table in tables(connection)? {
        connection.query(&format!("SELECT count(*) FROM {table}"))?;
    }
    for scan in names_of(connection, scans)? {
        connection.query(&scan)?;
    }
    Ok(())
}

fn tables(connection: &mut Connection) -> Result<Vec<String>, SqlError> {
    let tables = "SELECT concat('`', table_schema, '`.`', table_name, '`') FROM information_schema.tables \
                  WHERE table_type = 'BASE TABLE' AND table_schema = database()";
    names_of(connection, tables)
}
