//! Errors of a system under test.

use crate::exit::Exit;
use crate::output::LastOutput;
use plimsoll_model::system::{CommandLine, Probe};
use plimsoll_model::units::Processors;
use std::io;
use std::path::PathBuf;
use std::time::Duration;
use thiserror::Error;

/// An error of a system under test. Every message says what was expected, what was found, where, and
/// what to do next.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SystemError {
    /// A program was not found.
    #[error(
        "the program `{program}` of the system `{system}` was not found: looked for {looked_for}; \
         install it, or correct the command `{command}`"
    )]
    NotFound {
        /// The system.
        system: String,
        /// The program, as the study names it.
        program: String,
        /// The whole command.
        command: CommandLine,
        /// The file or the folders that were searched.
        looked_for: String,
    },
    /// A file is not a program.
    #[error(
        "the program `{program}` of the system `{system}` cannot be executed: {} is {found}; \
         name a program, or make it one with `chmod +x`", file.display()
    )]
    NotExecutable {
        /// The system.
        system: String,
        /// The program, as the study names it.
        program: String,
        /// The file that was found.
        file: PathBuf,
        /// What it is.
        found: &'static str,
    },
    /// A folder does not exist.
    #[error("the folder of the system `{system}` was not found: {}; correct its `dir`", dir.display())]
    NoFolder {
        /// The system.
        system: String,
        /// Its folder.
        dir: PathBuf,
    },
    /// A port is in use.
    #[error("port {port} is in use by {holder}; end that process, or let the study use another port")]
    PortInUse {
        /// The port.
        port: u16,
        /// The process that holds it, if it can be found.
        holder: String,
    },
    /// The system ended, and another process listens on its port.
    #[error(
        "the system `{system}` ended before it was ready, and {holder}, which is none of its processes, listens on its \
         port {port}: it took the port after it was found free; end that process, or let the study use another port; \
         {output}"
    )]
    PortTaken {
        /// The system.
        system: String,
        /// Its port.
        port: u16,
        /// The process that listens there.
        holder: String,
        /// The last lines of the system's output.
        output: Box<LastOutput>,
    },
    /// The kernel refuses the port.
    #[error("port {port} cannot be listened on: {source}; use a port above 1023")]
    PortRefused {
        /// The port.
        port: u16,
        /// The kernel's answer.
        source: io::Error,
    },
    /// Every port that was tried is taken.
    #[error("no free port was found on this machine, after {tried} tries; end some of its servers")]
    NoFreePort {
        /// How many were tried.
        tried: u32,
    },
    /// Processors do not exist, or may not be used.
    #[error(
        "the system `{system}` is to run on processors {wanted}, but Plimsoll may use only {allowed}; \
         change `cpus` in the study, or the limits of the container"
    )]
    Processors {
        /// The system.
        system: String,
        /// What the study asks for.
        wanted: Processors,
        /// What there is.
        allowed: Processors,
    },
    /// The command did not start.
    #[error("the command `{command}` of the system `{system}` did not start: {reason}; try it by hand in {}", dir.display())]
    Refused {
        /// The system.
        system: String,
        /// The command.
        command: CommandLine,
        /// Where it was to run.
        dir: PathBuf,
        /// Why not.
        reason: String,
    },
    /// A command failed.
    #[error("the {purpose} command `{command}` of the system `{system}` failed with {exit}; {output}")]
    CommandFailed {
        /// The system.
        system: String,
        /// What it is for: `build`, `version`, …
        purpose: &'static str,
        /// The command.
        command: CommandLine,
        /// How it ended.
        exit: Exit,
        /// The last lines of its output.
        output: Box<LastOutput>,
    },
    /// A command did not end in time.
    #[error(
        "the {purpose} command `{command}` of the system `{system}` did not end within {limit:?} and was killed; {output}"
    )]
    CommandTooSlow {
        /// The system.
        system: String,
        /// What it is for.
        purpose: &'static str,
        /// The command.
        command: CommandLine,
        /// Its time limit.
        limit: Duration,
        /// The last lines of its output.
        output: Box<LastOutput>,
    },
    /// The system ended while it was needed.
    #[error(
        "the system `{system}` ended by itself {} s after its start, with {exit}{}; {output}",
        seconds(after),
        in_the_background(*exit)
    )]
    Died {
        /// The system.
        system: String,
        /// Its start command.
        command: CommandLine,
        /// How it ended.
        exit: Exit,
        /// The time from its start to when that was noticed.
        after: Duration,
        /// The last lines of its output.
        output: Box<LastOutput>,
    },
    /// The system runs but did not get ready in time.
    #[error(
        "the system `{system}` was not ready within {} s: expected {}, found {found}; \
         check `ready`{advice}, or give it longer; {output}",
        seconds(within),
        expected(probe)
    )]
    NotReady {
        /// The system.
        system: String,
        /// The probe.
        probe: Probe,
        /// The result of the last probe.
        found: String,
        /// Its time limit.
        within: Duration,
        /// Another thing to check, as part of the sentence; empty for none.
        advice: &'static str,
        /// The last lines of its output.
        output: Box<LastOutput>,
    },
    /// A probe is invalid.
    #[error("the readiness probe of the system `{system}` cannot be used: {reason}")]
    BadProbe {
        /// The system.
        system: String,
        /// What is wrong, and what to write instead.
        reason: String,
    },
    /// Processes could not be killed.
    #[error(
        "processes {left:?} of the system `{system}` could not be killed: they run as another user, or hang in the kernel; end them by hand"
    )]
    Survivors {
        /// The system.
        system: String,
        /// Their process ids.
        left: Vec<i32>,
    },
    /// The warden was killed from outside.
    #[error(
        "the warden of the system `{system}` was ended from outside; its processes were killed, and the trial cannot count"
    )]
    WardenLost {
        /// The system.
        system: String,
    },
    /// A container ended while it was needed, or could not be started.
    #[error(
        "the container `{container}` of the system `{system}` {what} {} s after the start of the system; {output}",
        seconds(after)
    )]
    ContainerEnded {
        /// The system.
        system: String,
        /// The container.
        container: String,
        /// Its end, in words.
        what: String,
        /// The time from the start to when that was noticed.
        after: Duration,
        /// The last lines of the system's output.
        output: Box<LastOutput>,
    },
    /// The engine of containers does not answer.
    #[error(
        "the containers of the system `{system}` cannot be started or looked at: {reason}; start the engine, or let `with` in the `start` of the \
         system name what is installed here"
    )]
    Engine {
        /// The system.
        system: String,
        /// The command that failed, and its answer.
        reason: String,
    },
    /// Compose cannot read its file, or a variable in it has no value.
    #[error(
        "the Compose file of the system `{system}` cannot be used: {reason}; correct it, or set in `env` what it needs"
    )]
    BadComposeFile {
        /// The system.
        system: String,
        /// The message of Compose.
        reason: String,
    },
    /// There is no such Compose file.
    #[error("the Compose file of the system `{system}` was not found: {}; correct `compose`, which is relative to `dir`", file.display())]
    NoComposeFile {
        /// The system.
        system: String,
        /// The file.
        file: PathBuf,
    },
    /// A measure is of a service that the Compose file does not have, or of the only one.
    #[error("the Compose file of the system `{system}` has no service `{service}` that is measured by itself: {known}")]
    NoService {
        /// The system.
        system: String,
        /// The service that is measured.
        service: String,
        /// The services that there are, and what to write.
        known: String,
    },
    /// Containers could not be removed.
    #[error(
        "containers of the system `{system}` could not be removed: {reason}; remove by hand those whose names begin with \
         `plimsoll-`"
    )]
    ContainersLeft {
        /// The system.
        system: String,
        /// The command that failed, and its answer.
        reason: String,
    },
    /// The system ended while it was needed, and what it left could not be cleaned up.
    #[error("{died}\n{left}")]
    DiedAndLeft {
        /// The error that tells of its end.
        died: Box<SystemError>,
        /// The error that tells what is left of it.
        left: Box<SystemError>,
    },
    /// Plimsoll was asked to end.
    #[error("interrupted while waiting for the system `{system}`")]
    Interrupted {
        /// The system.
        system: String,
    },
    /// An operation of the operating system failed.
    #[error("failed to {action} for the system `{system}`: {source}")]
    Io {
        /// The system.
        system: String,
        /// What was tried.
        action: String,
        /// What came back.
        source: io::Error,
    },
}

impl SystemError {
    /// Wraps an error of the operating system.
    pub(crate) fn io(system: &str, action: impl Into<String>) -> impl FnOnce(io::Error) -> SystemError {
        let (system, action) = (system.to_owned(), action.into());
        move |source| SystemError::Io { system, action, source }
    }

    /// This end of a system, with what it left where that is what has failed of the clean-up after it.
    pub(crate) fn and_left<T>(self, cleaned_up: Result<T, SystemError>) -> SystemError {
        match cleaned_up {
            Err(left @ (SystemError::Survivors { .. } | SystemError::ContainersLeft { .. })) => {
                SystemError::DiedAndLeft { died: Box::new(self), left: Box::new(left) }
            }
            // Any other failure comes from the same end.
            Ok(_) | Err(_) => self,
        }
    }
}

fn seconds(span: &Duration) -> String {
    format!("{:.1}", span.as_secs_f64())
}

/// A hint for a command with exit code 0, which may have moved to the background.
fn in_the_background(exit: Exit) -> &'static str {
    if exit.is_success() { ", though it must stay in the foreground" } else { "" }
}

fn expected(probe: &Probe) -> String {
    match probe {
        Probe::Tcp(address) => format!("a connection to {address} to be accepted"),
        Probe::Http(url) => format!("a status below 400 from {url}"),
        Probe::Log(text) => format!("a line with `{text}` in its output"),
        Probe::Command(command) => format!("`{command}` to end with exit code 0"),
        Probe::Started => "its process to run".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_system_does_not_hide_what_it_left() {
        let system = || "shop".to_owned();
        let died = || SystemError::Died {
            system: system(),
            command: CommandLine(vec!["serve".to_owned()]),
            exit: Exit::Code(3),
            after: Duration::from_secs(2),
            output: Box::default(),
        };
        let end = died().to_string();
        for left in [
            SystemError::ContainersLeft { system: system(), reason: "`docker rm` failed".to_owned() },
            SystemError::Survivors { system: system(), left: vec![42] },
        ] {
            let expected = format!("{end}\n{left}");
            assert_eq!(died().and_left::<()>(Err(left)).to_string(), expected);
        }
        let lost = SystemError::WardenLost { system: system() };
        assert_eq!(died().and_left::<()>(Err(lost)).to_string(), end);
        assert_eq!(died().and_left(Ok(())).to_string(), end);
    }
}
