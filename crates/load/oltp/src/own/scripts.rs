//! Loads the data of a study's own SQL with scripts.

use crate::loader_pool::LoaderPool;
use plimsoll_model::database::Endpoint;
use plimsoll_model::record::ErrorKind;
use plimsoll_sql::SqlError;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

/// Runs scripts one after the other, each as one batch.
///
/// # Errors
/// A file cannot be read, or the server refuses what stands in it, is gone, or its disk is full; or
/// `interrupted` was set.
pub(crate) fn load_scripts(
    files: &[PathBuf],
    endpoint: &Endpoint,
    interrupted: &AtomicBool,
    progress: &mut dyn FnMut(&str, f64),
) -> Result<(), SqlError> {
    for (done, file) in files.iter().enumerate() {
        let name = file.display();
        let script = std::fs::read_to_string(file)
            .map_err(|error| SqlError::new(ErrorKind::Io, format!("failed to read the script `{name}`: {error}")))?;
        let share = done as f64 / files.len() as f64;
        let loader = LoaderPool { endpoint, interrupted };
        let run = loader.run_all(&[script], &|connection, script| connection.batch(script), &mut || {
            progress(&format!("running {name}"), share);
        });
        run.map_err(|mut error| {
            error.detail = format!("failed to run the script `{name}`: {}", error.detail);
            error
        })?;
    }
    progress("loaded", 1.0);
    Ok(())
}
