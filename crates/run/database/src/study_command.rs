//! Commands of the study that change the data of a database.

use crate::error::DatabaseError;
use plimsoll_model::system::{CommandLine, Probe, Ready, StopPolicy, StopSignal, SystemSpec};
use plimsoll_system::{Interrupt, Launcher, check_commands};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

/// A command of the study about one database.
pub(crate) struct StudyCommand<'a> {
    /// The name of the database.
    pub(crate) database: &'a str,
    /// Its purpose, as messages name it: `restore`.
    pub(crate) purpose: &'static str,
    pub(crate) command: &'a CommandLine,
    /// The folder in which it runs.
    pub(crate) dir: &'a Path,
    /// Variables of its environment, beside those of the run.
    pub(crate) env: BTreeMap<String, String>,
    /// The time after which it is killed, if there is one.
    pub(crate) limit: Option<Duration>,
}

impl StudyCommand<'_> {
    /// The fault that its program is not there. One with a path may be built before it is run.
    pub(crate) fn check(&self) -> Option<String> {
        let named = !self.command.program().contains('/');
        let fault = || check_commands(&self.spec()).first().map(ToString::to_string);
        named.then(fault).flatten()
    }

    /// Runs it to its end, with its output appended to `log`. Returns its duration.
    pub(crate) fn run(
        &self,
        launcher: &Launcher,
        log: &Path,
        interrupt: &Interrupt,
    ) -> Result<Duration, DatabaseError> {
        Ok(launcher.run(&self.spec(), self.purpose, self.command, self.limit, log, interrupt)?)
    }

    fn spec(&self) -> SystemSpec {
        SystemSpec {
            name: self.database.to_owned(),
            on: None,
            dir: self.dir.to_owned(),
            build: None,
            start: self.command.clone(),
            containers: None,
            inherit: None,
            env: self.env.clone(),
            ready: Ready { probe: Probe::Started, within: Duration::ZERO },
            stop: StopPolicy { signal: StopSignal::Kill, grace: Duration::ZERO },
            cpus: None,
            version: None,
            port: None,
            waits: BTreeMap::new(),
            metrics: None,
            files: None,
        }
    }
}
