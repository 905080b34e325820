//! PostgreSQL.

use super::{Installation, Place, Setting, USER, names_of};
use plimsoll_model::storage::Secret;
use plimsoll_sql::{Connection, SqlError};
use std::path::{Path, PathBuf};

/// Settings that a run chooses itself.
pub(super) const OWN_SETTINGS: &[&str] = &[
    "port",
    "listen_addresses",
    "unix_socket_directories",
    "data_directory",
    "config_file",
    "hba_file",
    "ident_file",
    "logging_collector",
];

/// Arguments of `initdb` that a run chooses itself. All copies of the data would share a log in another folder.
pub(super) const OWN_ARGUMENTS: &[&str] =
    &["-D", "--pgdata", "-U", "--username", "--pwfile", "-W", "--pwprompt", "-X", "--waldir"];

/// Settings with paths, which could put files outside the data folder.
pub(super) const PLACES: &[&str] = &["log_directory", "stats_temp_directory"];

pub(super) fn initialise(installation: &Installation, place: &Place, password: &Path) -> Vec<String> {
    let mut command = vec![installation.programs.initialise.display().to_string()];
    command.push(format!("--pgdata={}", place.data.display()));
    command.push(format!("--username={USER}"));
    command.push(format!("--pwfile={}", password.display()));
    command.extend(["--auth=scram-sha-256", "--encoding=UTF8", "--locale=C", "--no-sync"].map(str::to_owned));
    command.extend(installation.init.iter().cloned());
    command
}

pub(super) fn serve(installation: &Installation, place: &Place, settings: &[Setting]) -> Vec<String> {
    let mut own = vec![
        ("listen_addresses", place.listen.to_string()),
        ("port", place.port.to_string()),
        ("unix_socket_directories", place.sockets.display().to_string()),
    ];
    if !place.listen.is_loopback() {
        own.push(("hba_file", access_file(place).display().to_string()));
    }
    let asked = settings.iter().map(|(name, value)| format!("{name}={value}"));
    let all = asked.chain(own.into_iter().map(|(name, value)| format!("{name}={value}")));
    let mut command = vec![installation.programs.server.display().to_string()];
    command.extend(["-D".to_owned(), place.data.display().to_string()]);
    command.extend(all.flat_map(|setting| ["-c".to_owned(), setting]));
    command
}

/// The file that says who may log in from where, of a server that takes logins from other hosts.
pub(super) fn access_file(place: &Place) -> PathBuf {
    place.sockets.join("hba.conf")
}

/// Its content: everybody, with a password, in whichever of the two forms the server keeps it (`md5` stands for both). The file
/// of a new server lets in its own host alone.
pub(super) const ACCESS: &str = "local all all md5\nhost all all all md5\n";

/// The command prints one setting once it has accepted all of them.
pub(super) fn try_settings(installation: &Installation, settings: &[Setting]) -> Vec<String> {
    let mut command = vec![installation.programs.server.display().to_string()];
    command.extend(["-C", "port", "-D", "/", "-c", "config_file=/dev/null"].map(str::to_owned));
    command.extend(settings.iter().flat_map(|(name, value)| ["-c".to_owned(), format!("{name}={value}")]));
    command
}

/// Settings for loading: no syncs before the end, and no double writes.
pub(super) fn settings_to_load(version: [u32; 3]) -> Vec<Setting> {
    let mut settings = vec![
        ("fsync", "off"),
        ("full_page_writes", "off"),
        ("synchronous_commit", "off"),
        ("autovacuum", "off"),
        ("wal_level", "minimal"),
        ("max_wal_senders", "0"),
        ("max_wal_size", "4GB"),
        ("checkpoint_timeout", "1h"),
        ("shared_buffers", "256MB"),
        ("maintenance_work_mem", "256MB"),
        // In the data folder, so that none stays in /dev/shm if the server is killed. Trials keep the
        // default: write-back of these files would be measured.
        ("dynamic_shared_memory_type", "mmap"),
    ];
    if version >= [12, 0, 0] {
        // Segments of the log are made when needed and then removed, so that the snapshot has no old
        // ones.
        settings.extend([("wal_recycle", "off"), ("wal_init_zero", "off")]);
    }
    settings.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

pub(super) fn make_databases(connection: &mut Connection, names: &[String]) -> Result<(), SqlError> {
    names.iter().try_for_each(|name| connection.batch(&format!("CREATE DATABASE \"{name}\"")))
}

pub(super) fn let_in(connection: &mut Connection, roles: &[String], password: &Secret) -> Result<(), SqlError> {
    let known = names_of(connection, "SELECT rolname FROM pg_roles")?;
    for (index, role) in roles.iter().enumerate() {
        let make = if known.contains(role) { "ALTER" } else { "CREATE" };
        let rights = if index == 0 { " SUPERUSER" } else { "" };
        connection.batch(&format!("{make} ROLE \"{role}\" LOGIN{rights} PASSWORD '{}'", password.0))?;
    }
    Ok(())
}

pub(super) fn settle(connection: &mut Connection) -> Result<(), SqlError> {
    connection.batch("VACUUM ANALYZE")?;
    connection.batch("CHECKPOINT")
}

/// Reads tables and indexes into the server's own cache, with the extension `pg_prewarm` if it is installed: the
/// scan of a large table does not stay there. `may_add` allows adding the extension.
pub(super) fn warm(connection: &mut Connection, may_add: bool) -> Result<(), SqlError> {
    if may_add {
        let _ = connection.batch("CREATE EXTENSION IF NOT EXISTS pg_prewarm"); // not installed everywhere
    }
    let of_users =
        "JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname NOT IN ('pg_catalog', 'information_schema')";
    let all =
        format!("SELECT count(pg_prewarm(c.oid)) FROM pg_class c {of_users} AND c.relkind IN ('r', 'i', 'm', 't')");
    if connection.query(&all).is_ok() {
        return Ok(());
    }
    let tables = format!("SELECT c.oid::regclass::text FROM pg_class c {of_users} AND c.relkind = 'r'");
    for table in names_of(connection, &tables)? {
        connection.query(&format!("SELECT count(*) FROM {table}"))?;
    }
    Ok(())
}
