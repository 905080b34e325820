//! The databases of a run, on the disk.

use plimsoll_model::database::{Database, Endpoint};
use plimsoll_model::event::Event;
use plimsoll_model::sql::Transport;
use plimsoll_model::storage::Secret;
use plimsoll_model::system::SystemSpec;
use plimsoll_system::{Launcher, Running};
use std::path::Path;
use std::sync::atomic::AtomicBool;

/// Why a database cannot be had. The text says what was expected, what was found, and what to do.
#[derive(Debug, thiserror::Error)]
pub enum DatabaseError {
    /// The run is to stop.
    #[error("interrupted")]
    Interrupted,
    /// It does not work.
    #[error("{0}")]
    Failed(String),
}

/// Hears of data that is made.
pub type OnData<'a> = dyn FnMut(&Event) + 'a;

/// The databases of a run. Whatever was made for it, and is not to be kept, is removed when this is
/// dropped.
#[derive(Debug)]
pub struct Databases {}

impl Databases {
    /// For a run that starts servers with `launcher`, writes what they print into files of `logs`, and
    /// is over when `interrupted` is set.
    #[must_use]
    pub fn new(_launcher: &Launcher, _logs: &Path) -> Databases {
        Databases {}
    }

    /// Readies a database for a trial: its data is initialised and loaded, if this is the first time;
    /// restored; and what starts the server is made. For an external one, its data is restored.
    ///
    /// # Errors
    /// Programs are missing, the folder is not Plimsoll's, the disk is full, a snapshot does not fit
    /// the study, …
    pub fn stage(
        &mut self,
        _database: &Database,
        _interrupted: &AtomicBool,
        _on_data: &mut OnData<'_>,
    ) -> Result<Staged, DatabaseError> {
        Err(DatabaseError::Failed("databases cannot be started yet".to_owned()))
    }

    /// The folder for everything that is not to be kept.
    #[must_use]
    pub fn place(&self) -> &Path {
        Path::new("")
    }

    /// What must not stand in a bundle.
    #[must_use]
    pub fn secrets(&self) -> Vec<Secret> {
        Vec::new()
    }
}

/// A database that is ready to be started for a trial. Dropped, it removes the trial's copy of the
/// data.
#[derive(Debug)]
pub struct Staged {
    /// What starts it; none for an external one.
    pub system: Option<SystemSpec>,
    /// How its data was restored, and how long that took in seconds.
    pub restored: (String, f64),
    /// `initialised and loaded by the run`, `kept from an earlier run`, `external`.
    pub data: String,
    /// Bytes of the data, where that is known.
    pub size: Option<u64>,
}

impl Staged {
    /// Where it can be reached.
    #[must_use]
    pub fn endpoint(&self, _transport: Transport) -> Option<Endpoint> {
        None
    }

    /// Waits until the server answers, compares the settings in force with those that the study asks
    /// for, and warms the cache if it is to.
    ///
    /// # Errors
    /// It ends, does not get ready in time, or has another setting in force.
    pub fn wait_ready(&self, _running: Option<&Running>, _interrupted: &AtomicBool) -> Result<(), DatabaseError> {
        Ok(())
    }
}

/// What would keep a database from being had, before anything is started.
#[must_use]
pub fn check(_database: &Database) -> Vec<String> {
    Vec::new()
}

/// Removes what a killed run left at `place`. Gives whether there was any.
///
/// # Errors
/// The folder is not one of ours, or its run is alive.
pub fn remove_left(_place: &Path) -> Result<bool, DatabaseError> {
    Ok(false)
}
