//! External servers, which run already. Only the study's own command changes their data.

use crate::databases::Restored;
use crate::error::DatabaseError;
use crate::study_command::StudyCommand;
use plimsoll_model::database::{Database, External};
use plimsoll_model::storage::Secret;
use plimsoll_system::{Interrupt, Launcher};
use std::collections::BTreeMap;
use std::path::Path;

/// The password of an external server, from the URL or the environment.
pub(crate) fn password(database: &Database, external: &External) -> Result<Option<Secret>, String> {
    let Some(variable) = &external.password_variable else { return Ok(external.endpoint.password.clone()) };
    match std::env::var(variable) {
        Ok(password) => Ok(Some(Secret(password))),
        Err(_) => Err(format!(
            "the password of the database `{}` is to be in the variable {variable} of the environment, which is not \
             set; set it, or correct `password_env`",
            database.name
        )),
    }
}

/// Restores the data with the study's command, if there is one.
pub(crate) fn restore(
    launcher: &Launcher,
    database: &Database,
    external: &External,
    log: &Path,
    interrupt: &Interrupt,
) -> Result<Restored, DatabaseError> {
    let Some(command) = &external.restore else { return Ok(Restored { how: "not restored".to_owned(), seconds: 0.0 }) };
    let restore = StudyCommand {
        database: &database.name,
        purpose: "restore",
        command,
        dir: &external.dir,
        env: BTreeMap::new(),
        limit: None,
    };
    let took = restore.run(launcher, log, interrupt)?;
    Ok(Restored { how: format!("`{command}`"), seconds: took.as_secs_f64() })
}
