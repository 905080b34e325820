//! Starts systems, and the commands that build, probe and describe them.

use crate::command::{AT_ONCE, Supervised, Task, mark_of_run, open_files_before_loads};
use crate::containers::{Project, remove_left_over};
use crate::error::SystemError;
use crate::exit::Exit;
use crate::interrupt::Interrupt;
use crate::output::{LastOutput, Output};
use crate::port::check_port_free;
use crate::program::{check_command, sha256};
use crate::running::Running;
use crate::tree::kill_marked;
use plimsoll_model::host::Version;
use plimsoll_model::system::{CommandLine, ContainersOf, SystemSpec};
use plimsoll_model::units::Processors;
use rustix::fs::{MemfdFlags, OFlags, fcntl_setfl, memfd_create};
use rustix::thread::{CpuSet, sched_getaffinity};
use std::fs::File;
use std::io::{self, Read, Seek};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long a version command may take.
const VERSION_LIMIT: Duration = Duration::from_secs(10);
/// How often a wait checks for an interrupt.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Starts commands, each under a warden: this program, started again by its hidden subcommand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launcher {
    /// The program whose `main` calls [`warden::main`](crate::warden::main).
    pub program: PathBuf,
    /// The arguments by which it calls that.
    pub arguments: Vec<String>,
    /// A name of the run that no other run has, by which [`Launcher::end_left_over`] finds its processes; empty for none.
    pub run: String,
}

impl Launcher {
    /// A launcher of the current program, even if its file was replaced meanwhile. Systems get the limit of open files
    /// that this process has now.
    #[must_use]
    pub fn of_this_program(arguments: &[&str]) -> Launcher {
        open_files_before_loads();
        let arguments = arguments.iter().map(|&argument| argument.to_owned()).collect();
        Launcher { program: PathBuf::from("/proc/self/exe"), arguments, run: String::new() }
    }

    /// The same for a run of this name.
    #[must_use]
    pub fn of_run(self, run: &str) -> Launcher {
        Launcher { run: run.to_owned(), ..self }
    }

    /// Kills all processes that this run has started and that are still there, as after its own end and that of its
    /// wardens by `kill -9`. Returns the number of killed processes.
    #[must_use]
    pub fn end_left_over(&self) -> usize {
        if self.run.is_empty() { 0 } else { kill_marked(&mark_of_run(&self.run)).killed }
    }

    /// Removes the containers of `spec` that this run has started and that are still there. Returns the number of starts
    /// whose containers were.
    ///
    /// # Errors
    /// The engine does not answer, or cannot remove them.
    pub fn remove_left_over(&self, spec: &SystemSpec) -> Result<usize, SystemError> {
        if self.run.is_empty() { Ok(0) } else { remove_left_over(spec, &self.run) }
    }

    /// Runs the build command, if there is one, with its output appended to `log`. Returns its
    /// duration.
    pub fn build(&self, spec: &SystemSpec, log: &Path, interrupt: &Interrupt) -> Result<Duration, SystemError> {
        let Some(command) = &spec.build else { return Ok(Duration::ZERO) };
        self.run(spec, "build", command, None, log, interrupt)
    }

    /// Runs a command of a system to its end, or kills it after `limit`, with its output appended to
    /// `log`. Returns its duration. `purpose` names the command in error messages.
    pub fn run(
        &self,
        spec: &SystemSpec,
        purpose: &'static str,
        command: &CommandLine,
        limit: Option<Duration>,
        log: &Path,
        interrupt: &Interrupt,
    ) -> Result<Duration, SystemError> {
        check_folder(spec)?;
        let start = Instant::now();
        let (output, file) = open(spec, log)?;
        let mut run = Supervised::start(self, Task { spec, command, cpus: None, project: None, output: file })?;
        let exit = wait_for(&mut run, spec, limit, interrupt)?;
        run.stop(&AT_ONCE)?; // it may leave daemons
        let (system, command, output) = (spec.name.clone(), command.clone(), Box::new(output.last()));
        match exit {
            Some(exit) if exit.is_success() => Ok(start.elapsed()),
            Some(exit) => Err(SystemError::CommandFailed { system, purpose, command, exit, output }),
            None => {
                let limit = limit.expect("without a limit, it ends or fails");
                Err(SystemError::CommandTooSlow { system, purpose, command, limit, output })
            }
        }
    }

    /// Starts the system, with its output appended to the file `output`. The system runs when this
    /// returns; [`Running::wait_ready`] waits until it can take load.
    pub fn start(&self, spec: &SystemSpec, output: &Path) -> Result<Running, SystemError> {
        check_folder(spec)?;
        check_processors(spec)?;
        if let Some(port) = spec.port {
            check_port_free(port)?;
        }
        let project = Project::of(spec, &self.run)?;
        let command = project.as_ref().map_or_else(|| spec.start.clone(), |project| project.command(&spec.start));
        let mut spec = spec.clone();
        if project.is_some() {
            // Output goes to a file.
            spec.env.entry("COMPOSE_ANSI".to_owned()).or_insert_with(|| "never".to_owned());
        }
        let (output, file) = open(&spec, output)?;
        let started = Instant::now();
        let cpus = spec.cpus.as_ref().filter(|_| project.is_none());
        let task = Task { spec: &spec, command: &command, cpus, project: project.as_ref(), output: file };
        let command = Supervised::start(self, task)?;
        Ok(Running::new(self.clone(), spec, output, started, command, project))
    }

    /// The version of the system: the SHA-256 of its program's file, and the first line that its version
    /// command prints. Of containers, the file is that of Compose; none where there is only an image, which is known once it
    /// runs ([`Running::versions_of_containers`]).
    pub fn version_of(&self, spec: &SystemSpec, interrupt: &Interrupt) -> Result<Option<Version>, SystemError> {
        check_folder(spec)?;
        if let Some(containers) = &spec.containers {
            let version = self.version_line(spec, interrupt)?;
            let (program, sha256) = match &containers.origin {
                ContainersOf::Compose(file) => (file.display().to_string(), sha256(&spec.dir.join(file)).ok()),
                ContainersOf::Image(_) if version.is_none() => return Ok(None),
                ContainersOf::Image(image) => (image.clone(), None),
            };
            return Ok(Some(Version { name: spec.name.clone(), program, path: None, version, sha256 }));
        }
        let program = check_command(&spec.start, spec)?;
        let hash = sha256(&program).map_err(SystemError::io(&spec.name, format!("read {}", program.display())))?;
        let path = program.display().to_string();
        Ok(Some(Version {
            name: spec.name.clone(),
            program: spec.start.program().to_owned(),
            path: Some(path).filter(|path| path != spec.start.program()),
            version: self.version_line(spec, interrupt)?,
            sha256: Some(hash),
        }))
    }

    fn version_line(&self, spec: &SystemSpec, interrupt: &Interrupt) -> Result<Option<String>, SystemError> {
        let Some(command) = &spec.version else { return Ok(None) };
        let answer = self.run_short(spec, command, VERSION_LIMIT, interrupt)?;
        let (system, purpose, command) = (spec.name.clone(), "version", command.clone());
        let output = Box::new(LastOutput::of(&answer.output, None));
        match answer.exit {
            Some(Exit::Code(0)) => Ok(answer.output.lines().next().map(|line| line.trim().to_owned())),
            Some(exit) => Err(SystemError::CommandFailed { system, purpose, command, exit, output }),
            None => Err(SystemError::CommandTooSlow { system, purpose, command, limit: VERSION_LIMIT, output }),
        }
    }

    /// Runs a short command of a system to its end, or kills it after `limit`.
    pub(crate) fn run_short(
        &self,
        spec: &SystemSpec,
        command: &CommandLine,
        limit: Duration,
        interrupt: &Interrupt,
    ) -> Result<CommandOutput, SystemError> {
        let memory = || -> io::Result<(File, File)> {
            let file = File::from(memfd_create("output", MemfdFlags::CLOEXEC)?);
            // As with files on the disk, so that the warden can bound it.
            fcntl_setfl(&file, OFlags::APPEND)?;
            Ok((file.try_clone()?, file))
        };
        let (output, mut written) = memory().map_err(SystemError::io(&spec.name, "make a file in memory"))?;
        let mut run = Supervised::start(self, Task { spec, command, cpus: None, project: None, output })?;
        let exit = wait_for(&mut run, spec, Some(limit), interrupt)?;
        run.stop(&AT_ONCE)?;
        let mut bytes = Vec::new();
        let mut read = || written.rewind().and_then(|()| written.read_to_end(&mut bytes));
        read().map_err(SystemError::io(&spec.name, format!("read what `{command}` wrote")))?;
        Ok(CommandOutput { exit, output: String::from_utf8_lossy(&bytes).into_owned() })
    }
}

/// The result of a short command.
pub(crate) struct CommandOutput {
    /// `None` if it had to be killed.
    pub(crate) exit: Option<Exit>,
    /// All that it wrote.
    pub(crate) output: String,
}

/// Waits for the end of a command. Returns `None` if it does not end within `limit`.
fn wait_for(
    command: &mut Supervised,
    spec: &SystemSpec,
    limit: Option<Duration>,
    interrupt: &Interrupt,
) -> Result<Option<Exit>, SystemError> {
    let deadline = limit.map(|limit| Instant::now() + limit);
    loop {
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        if let Some(exit) = command.ended(left.unwrap_or(POLL_INTERVAL).min(POLL_INTERVAL))? {
            return Ok(Some(exit));
        }
        if left.is_some_and(|left| left.is_zero()) {
            return Ok(None);
        }
        if interrupt.is_set() {
            return Err(SystemError::Interrupted { system: spec.name.clone() });
        }
    }
}

fn open(spec: &SystemSpec, path: &Path) -> Result<(Output, File), SystemError> {
    Output::open(path).map_err(SystemError::io(&spec.name, format!("open {} for its output", path.display())))
}

fn check_folder(spec: &SystemSpec) -> Result<(), SystemError> {
    if spec.dir.is_dir() {
        return Ok(());
    }
    Err(SystemError::NoFolder { system: spec.name.clone(), dir: spec.dir.clone() })
}

fn check_processors(spec: &SystemSpec) -> Result<(), SystemError> {
    let Some(wanted) = &spec.cpus else { return Ok(()) };
    let allowed = sched_getaffinity(None).map_err(Into::into);
    let allowed = allowed.map_err(SystemError::io(&spec.name, "read the processors that it may use"))?;
    let is_allowed = |&cpu: &usize| cpu < CpuSet::MAX_CPU && allowed.is_set(cpu);
    if !wanted.0.is_empty() && wanted.0.iter().all(is_allowed) {
        return Ok(());
    }
    let allowed = Processors((0..CpuSet::MAX_CPU).filter(|&cpu| allowed.is_set(cpu)).collect());
    Err(SystemError::Processors { system: spec.name.clone(), wanted: wanted.clone(), allowed })
}
