//! Finds the programs of a server, and its version.

use crate::run_program::run_program;
use plimsoll_model::database::Engine;
use std::fs;
use std::path::{Path, PathBuf};

/// The programs of one server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Programs {
    /// The program that serves.
    pub(crate) server: PathBuf,
    /// The program that initialises the data folder.
    pub(crate) initialise: PathBuf,
    /// The folder above them, if a study names one. Some servers find their messages only by it.
    pub(crate) base: Option<PathBuf>,
}

impl Programs {
    /// Finds the programs in the folder that a study names, and only there. Without one, finds them in the
    /// search path and in the folders of packages.
    pub(crate) fn find(engine: Engine, named: Option<&Path>) -> Result<Programs, String> {
        let folders = named.map_or_else(|| default_folders(engine), installation_folders);
        let (server, initialise) = names(engine);
        let find = |names: &[&str]| {
            let files = folders.iter().flat_map(|folder| names.iter().map(|name| folder.join(name)));
            files
                .into_iter()
                .find(|file| file.is_file() && !is_stand_in(engine, file))
                .ok_or_else(|| not_found(engine, names, &folders))
        };
        let (server, initialise) = (find(server)?, find(initialise)?);
        let base = named.and_then(|_| Some(server.parent()?.parent()?.to_owned()));
        Ok(Programs { server, initialise, base })
    }

    /// Asks the server for its version: `PostgreSQL 15.18`, `MariaDB 10.11.19`, `MySQL 9.7.4`.
    pub(crate) fn version(&self, engine: Engine) -> Result<String, String> {
        let command = format!("{} --version", self.server.display());
        let said = run_program(&[self.server.display().to_string(), "--version".to_owned()]);
        let said = said.map_err(|error| format!("`{command}` fails: {error}; correct `programs`"))?;
        version(engine, &said.output).ok_or_else(|| {
            let found = said.output.lines().chain(said.errors.lines()).next().unwrap_or("nothing");
            format!("`{command}` was to say which {engine} it is, and said: {found}; correct `programs`")
        })
    }
}

/// Parses the version in `postgres (PostgreSQL) 15.18 (Debian …)`, `mariadbd  Ver 10.11.19-MariaDB-… for …`.
fn version(engine: Engine, said: &str) -> Option<String> {
    let marker = match engine {
        Engine::Postgresql => "(PostgreSQL)",
        Engine::Mariadb | Engine::Mysql => "Ver",
    };
    let version = said.split_whitespace().skip_while(|word| *word != marker).nth(1)?;
    let number = version.split('-').next()?;
    // The output of MySQL does not contain its name.
    (version.contains("MariaDB") == (engine == Engine::Mariadb)).then(|| format!("{engine} {number}"))
}

/// True if a file is MariaDB's server under the name of MySQL's.
fn is_stand_in(engine: Engine, file: &Path) -> bool {
    engine == Engine::Mysql && file.canonicalize().is_ok_and(|file| file.ends_with("mariadbd"))
}

/// The names of the server and of the initialising program, newest first.
fn names(engine: Engine) -> (&'static [&'static str], &'static [&'static str]) {
    match engine {
        Engine::Postgresql => (&["postgres"], &["initdb"]),
        Engine::Mariadb => (&["mariadbd", "mysqld"], &["mariadb-install-db", "mysql_install_db"]),
        Engine::Mysql => (&["mysqld"], &["mysqld"]), // it initialises its data itself
    }
}

/// The folders of an installation, of which one is named. Its programs may be in several.
fn installation_folders(named: &Path) -> Vec<PathBuf> {
    let above = named.parent().unwrap_or(named);
    let inside = ["bin", "sbin", "scripts"];
    let beside = inside.iter().map(|name| above.join(name));
    let below = inside.iter().map(|name| named.join(name));
    std::iter::once(named.to_owned()).chain(below).chain(beside).collect()
}

/// The search path, and the folders of Debian's packages.
fn default_folders(engine: Engine) -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> = std::env::split_paths(&path).filter(|folder| folder.is_absolute()).collect();
    match engine {
        Engine::Postgresql => folders.extend(newest_first(Path::new("/usr/lib/postgresql"))),
        Engine::Mariadb => folders.extend(["/usr/sbin", "/usr/libexec", "/usr/bin"].map(PathBuf::from)),
        Engine::Mysql => {
            folders.extend(["/usr/sbin", "/usr/libexec", "/usr/bin", "/usr/local/mysql/bin"].map(PathBuf::from));
        }
    }
    folders
}

/// `15/bin`, `14/bin`, … below `folder`.
fn newest_first(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut versions: Vec<u32> = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    versions.sort_unstable_by(|a, b| b.cmp(a));
    versions.iter().map(|version| folder.join(version.to_string()).join("bin")).collect()
}

fn not_found(engine: Engine, names: &[&str], folders: &[PathBuf]) -> String {
    let packages = match engine {
        Engine::Postgresql => "the package postgresql-15 (or another version of it)",
        // The script that makes its data runs `my_print_defaults` of the second.
        Engine::Mariadb => "the packages mariadb-server-core and mariadb-client-core",
        Engine::Mysql => "the package mysql-server-core (or unpack an archive of dev.mysql.com)",
    };
    let folders: Vec<String> = folders.iter().map(|folder| folder.display().to_string()).collect();
    format!(
        "{engine} was not found: looked for `{}` in {}; install {packages}, or name the folder of its \
         programs by `programs`",
        names.join("` or `"),
        folders.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_from_what_servers_print() {
        for (engine, said, read) in [
            (Engine::Postgresql, "postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)", "PostgreSQL 15.18"),
            (Engine::Postgresql, "postgres (PostgreSQL) 17devel", "PostgreSQL 17devel"),
            (
                Engine::Mariadb,
                "mariadbd  Ver 10.11.19-MariaDB-0+deb12u1 for debian-linux-gnu on x86_64 (Debian 12)",
                "MariaDB 10.11.19",
            ),
            (Engine::Mariadb, "./mysqld  Ver 10.1.23-MariaDB for Linux on x86_64 (MariaDB Server)", "MariaDB 10.1.23"),
            (Engine::Mysql, "mysqld  Ver 8.0.36 for Linux on x86_64 (MySQL Community Server - GPL)", "MySQL 8.0.36"),
            (Engine::Mysql, "mysqld  Ver 9.7.4-2 for Linux on x86_64 ((Debian))", "MySQL 9.7.4"),
            (Engine::Mysql, "bin/mysqld  Ver 5.5.9 for Linux on x86_64 (Source distribution)", "MySQL 5.5.9"),
        ] {
            assert_eq!(version(engine, said).as_deref(), Some(read), "{said}");
        }
        assert_eq!(version(Engine::Postgresql, "Python 3.11"), None);
        assert_eq!(version(Engine::Mariadb, "mysqld  Ver 8.0.36 for Linux on x86_64"), None);
        assert_eq!(version(Engine::Mysql, "mysqld  Ver 10.11.19-MariaDB for debian-linux-gnu"), None);
    }

    #[test]
    fn a_named_folder_is_looked_in_with_its_neighbours_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let said = Programs::find(Engine::Mariadb, Some(root)).unwrap_err();
        assert!(said.contains("looked for `mariadbd` or `mysqld` in"), "{said}");
        assert!(said.contains("install the packages mariadb-server-core and mariadb-client-core, or"), "{said}");
        assert!(!said.contains("/usr/sbin"), "{said}");
        for file in ["bin/mysqld", "scripts/mysql_install_db"] {
            fs::create_dir(root.join(file).parent().unwrap()).unwrap();
            fs::write(root.join(file), "").unwrap();
        }
        for named in [root.to_owned(), root.join("bin")] {
            let found = Programs::find(Engine::Mariadb, Some(&named)).unwrap();
            assert_eq!(found.server, root.join("bin/mysqld"));
            assert_eq!(found.initialise, root.join("scripts/mysql_install_db"));
            assert_eq!(found.base.as_deref(), Some(root));
        }
    }

    #[test]
    fn of_several_versions_the_newest_comes_first() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["9", "15", "14", "common"] {
            fs::create_dir(folder.path().join(name)).unwrap();
        }
        let found = newest_first(folder.path());
        assert_eq!(found, ["15/bin", "14/bin", "9/bin"].map(|name| folder.path().join(name)));
    }
}
