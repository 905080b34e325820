//! The process between Plimsoll and a command. It makes sure that no process outlives the run.
//!
//! The program that uses this crate reaches [`main`] by a hidden subcommand, named in
//! [`Launcher::arguments`](crate::Launcher). It runs in two places:
//!
//! 1. as the warden itself (`guard`), which runs until all processes are gone;
//! 2. for a moment as a child of the warden (`step_in`). It applies the settings of the command (death with
//!    the warden, processors, open files, folder, environment), then becomes the command by `exec`. A program can apply
//!    these settings to itself without unsafe code.

pub(crate) mod bounded_output;
mod guard;
mod signals;
mod step_in;

use std::ffi::OsString;
use std::process::ExitCode;

/// The word after the launcher's arguments that selects the second place.
const STEP_IN: &str = "step-in";

/// Runs the hidden subcommand, with the arguments that follow it. Must be called from the main
/// thread, before any other is started: the command's life is tied to the thread that starts it.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let outcome = match arguments.into_iter().next() {
        None => guard::guard(),
        Some(word) if word == STEP_IN => step_in::step_in(),
        Some(word) => Err(std::io::Error::other(format!("expected no argument or `{STEP_IN}`, found {word:?}"))),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("warden: {error}; it is started by Plimsoll itself, not by hand");
            ExitCode::FAILURE
        }
    }
}
