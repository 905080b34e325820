//! `plimsoll agent`: generates load, and runs systems, for runs on other machines.

use super::interrupt::{Listener, Words};
use super::study;
use crate::arguments;
use crate::exit::{Exit, Failure};
use crate::say;
use anyhow::Context;
use plimsoll_fleet::{Agent, Permits, SystemsHere};
use plimsoll_model::host::is_local;
use plimsoll_system::Launcher;
use std::path::Path;

pub(super) fn agent(arguments: &arguments::Agent) -> Result<Exit, Failure> {
    let signals = Listener::start(Exit::Interrupted as i32)?;
    signals.say(Words {
        first: Some("stopping what runs (once more ends the program at once)".to_owned()),
        second: Some("ended at once".to_owned()),
    });
    if let Some(name) = arguments.name.as_ref().filter(|name| is_local(name)) {
        let text = format!(
            "`{name}` is the name of the machine of a run in its records: give the agent another one (`--name`)"
        );
        return Err(Failure::new(Exit::Usage, anyhow::anyhow!(text)));
    }
    let threads = arguments.threads.map(|threads| threads as usize);
    let agent = Agent {
        name: arguments.name.clone().unwrap_or_else(plimsoll_telemetry::host_name),
        labels: arguments.labels.iter().cloned().collect(),
        permits: Permits { allow: arguments.allow.clone(), folders: arguments.allow_folder.clone() },
        threads: threads.unwrap_or_else(|| plimsoll_telemetry::allowed_processors().len().max(1)),
        systems: arguments.systems.as_ref().map(|folder| systems(arguments, folder)).transpose()?,
    };
    let broker = arguments.login.broker(&arguments.nats);
    let run = agent.run(&broker, signals.interrupt(), &mut say::note);
    run.map_err(|error| Failure::new(Exit::SystemFailed, error))?;
    Ok(Exit::Fine)
}

/// How systems run here, with the files of studies in `folder`.
fn systems(arguments: &arguments::Agent, folder: &Path) -> Result<SystemsHere, Failure> {
    let found = folder.canonicalize();
    let found = found.with_context(|| format!("failed to find the folder {} of `--systems`", folder.display()));
    Ok(SystemsHere {
        folder: found.map_err(|error| Failure::new(Exit::Usage, error))?,
        address: arguments.address,
        launcher: Launcher::of_this_program(&[super::WARDEN]),
        program: study::this_program()?,
    })
}
