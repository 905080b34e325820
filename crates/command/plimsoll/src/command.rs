//! The subcommands, one file each.

mod agent;
mod audit;
mod check;
mod compare;
mod databases;
mod demo;
mod doctor;
mod init;
mod interrupt;
mod plan;
mod release_report;
mod report;
mod run;
mod script;
mod study;

use crate::arguments::{Arguments, Command};
use crate::exit::{Exit, Failure};
use crate::say;
use clap::CommandFactory;
use std::process::ExitCode;

/// The first argument that makes this program a warden.
pub(crate) const WARDEN: &str = "warden";

/// Runs the subcommand.
pub(crate) fn run(arguments: Arguments) -> Result<ExitCode, Failure> {
    let exit = match arguments.command {
        Command::Demo(output) => demo::demo(&output)?,
        Command::Init { folder, describe } => init::init(&folder, describe)?,
        Command::Check(file) => check::check(&file.study, file.profile.as_deref())?,
        Command::Plan { file, quick, until_decided, time } => {
            plan::plan(&file, study::Extent::of(quick, until_decided, time))?
        }
        Command::Run(arguments) => run::run(&arguments)?,
        Command::Agent(arguments) => agent::agent(&arguments)?,
        Command::Report { bundle, out, gate } => report::report(&bundle, out.as_deref(), gate)?,
        Command::ReleaseReport { bundles, out } => release_report::release_report(&bundles, &out)?,
        Command::Compare(arguments) => compare::compare(&arguments)?,
        Command::Doctor(arguments) => doctor::doctor(&arguments)?,
        Command::Audit { table, json } => audit::audit(&table, json)?,
        Command::Script(script) => return Ok(script::script(&script)),
        Command::Schema => {
            say::result(&format!("{:#}", plimsoll_study::json_schema()))?;
            Exit::Fine
        }
        Command::Completions { shell } => {
            let mut command = Arguments::command();
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut command, "plimsoll", &mut script);
            say::result(String::from_utf8_lossy(&script).trim_end())?;
            Exit::Fine
        }
        Command::DemoServer { mode, listen } => demo::serve(mode, listen)?,
    };
    Ok(exit.into())
}
