//! `plimsoll script`: runs a script for k6 on its own, as `k6 run` does, prints its options, writes one to start from, or
//! takes copies of the remote modules that it imports.

mod agents;
mod exit;
mod inspect;
mod new;
mod outputs;
mod settle;
mod summary;
mod terminal;
mod vendor;
mod watch;
mod writable_folders;

use super::interrupt::{Listener, Words};
use crate::arguments::{Flags, Project, RunFlags, Script, Shown};
use crate::say;
use anyhow::Context;
use exit::{Exit, Failure};
use outputs::{Outputs, RunOfOutputs};
use plimsoll_generator::script::{
    self as load, Allowed, CallError, Console, End, Inspected, Knobs, Limits, LineSource, Part, Refused, RunOutcome,
};
use plimsoll_javascript::{Copies, Entry, FOLDER_OF_COPIES, Fault, FileError, Files, Level, Program, project_of};
use plimsoll_k6::secrets::Secrets;
use plimsoll_k6::user::RunState;
use plimsoll_k6_run::duration;
use plimsoll_k6_run::scenario::{self, Scenario};
use plimsoll_model::load::WHOLE;
use plimsoll_model::shell;
use plimsoll_model::words::{and_list, quoted};
use settle::{Settled, settle};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use terminal::{LogSettings, Terminal};
use watch::Watch;

/// How often a run that is over looks for the signal that ends it.
const SIGNAL_CHECK: Duration = Duration::from_millis(50);

pub(super) fn script(script: &Script) -> ExitCode {
    let done = match script {
        Script::Run(wanted) => with_secrets(&wanted.flags, |_, secrets| run(wanted, secrets)),
        Script::Inspect(wanted) => with_secrets(&wanted.flags, |_, secrets| inspect::inspect(wanted, secrets)),
        Script::New(wanted) => new::new(wanted),
        Script::Vendor(wanted) => vendor::take(wanted),
    };
    done.map_or_else(|failure| failure.report(), ExitCode::from)
}

/// Does something with a script, which may read the secrets of the command line. No message shows those that it has read.
fn with_secrets(
    flags: &Flags,
    work: impl FnOnce(&Flags, &Arc<Secrets>) -> Result<Exit, Failure>,
) -> Result<Exit, Failure> {
    let secrets = Secrets::configured(&flags.secret_source, |path| std::fs::read_to_string(path));
    let secrets = Arc::new(secrets.map_err(|why| Failure::new(Exit::Options, why))?);
    work(flags, &secrets).map_err(|failure| failure.masked(&secrets))
}

fn run(RunFlags { flags, fleet }: &RunFlags, secrets: &Arc<Secrets>) -> Result<Exit, Failure> {
    let signals = Listener::start(Exit::Interrupted as i32)?;
    let program = program(flags)?;
    let settings = LogSettings {
        output: &flags.log_output,
        format: flags.log_format,
        console: flags.console_output.as_deref(),
        secrets,
    };
    let terminal = Arc::new(Terminal::open(flags.quiet, &settings)?);
    let console: Console = {
        let (terminal, least) = (Arc::clone(&terminal), if flags.verbose { Level::Debug } else { Level::Info });
        Arc::new(move |source, level, line| match source {
            _ if level < least => {}
            LineSource::Script => terminal.console(level, line),
            LineSource::Run => terminal.log(level, line),
        })
    };
    let inspected = loaded(flags, &program, secrets, &console)?;
    let warn = &mut |warning: &str| terminal.log(Level::Warn, warning);
    if let Some(address) = flags.address.as_deref().filter(|address| !address.is_empty()) {
        warn(&format!("`--address {address}` has no effect: there is no server to control a run"));
    }
    let settled = settle(flags, &inspected.functions, inspected.options.as_deref(), &inspected.registry, warn)?;
    // An output that is refused leaves its file as it is.
    agents::check(fleet, flags, &settled)?;
    let of_run = RunOfOutputs { registry: &settled.registry, limits: &settled.limits, secrets, terminal: &terminal };
    let outputs = Outputs::start(&settled.outputs, &of_run)?;
    let plan = Arc::new(plan(flags, &settled, &inspected, &outputs));
    if !flags.quiet {
        say::note(&header(flags, &plan));
    }
    signals.say(words_of_signals());
    let fleet = agents::gather(fleet, flags, signals.interrupt())?;
    let run = load::Run {
        program: &program,
        plan: &plan,
        limits: limits(flags),
        allowed: Allowed::loopback_and(&flags.allow, "name it with `--allow`"),
        threads: flags.threads.map_or_else(|| threads_for(&plan.scenarios), usize::from),
        cpus: None,
        seed: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64),
        console,
        interrupted: signals.interrupt().flag(),
        part: Part::default(),
    };
    let mut watch = Watch::new(&plan, &settled.limits, &terminal);
    let ran = match &fleet {
        Some(fleet) => {
            // Agents may read all of them.
            secrets.mask_all();
            agents::run(fleet, flags, &run, &mut watch, &terminal).map(|(ran, refused)| (ran, Some(refused)))
        }
        None => {
            let ran = load::run(&run, &mut watch).context("failed to run the script");
            ran.map(|ran| (ran, None)).map_err(Failure::from)
        }
    };
    // The agents are free while the summary is made.
    drop(fleet);
    terminal.finish();
    let (mut ran, refused_there) = ran?;
    ran.sinks.merge(&watch.sinks());
    // The summary is shown even if samples cannot be written.
    let written = outputs.finish(|lost| terminal.log(Level::Error, lost));
    let crossed: Vec<String> = summary::show(flags, &settled, &run, &ran).into_iter().map(str::to_owned).collect();
    let crossed: Vec<&str> = crossed.iter().map(String::as_str).collect();
    written?;
    // The signal may have come while the summary was made.
    if ran.end == End::Finished && signals.interrupt().is_set() {
        ran.end = End::Interrupted;
    }
    for (kind, count) in plan.log_limit.suppressed() {
        terminal.log(Level::Warn, &format!("{count} more of: {kind}"));
    }
    let mut refused = run.allowed.refused();
    if let Some(there) = refused_there {
        // Here there was `handleSummary` at most.
        refused.hosts.extend(there.hosts);
        refused.hosts.sort_unstable();
        refused.hosts.dedup();
        refused.all = there.all;
    }
    ran.faults.iter().for_each(|fault| terminal.log(Level::Error, fault));
    if !refused.hosts.is_empty() {
        terminal.log(if refused.all { Level::Error } else { Level::Warn }, &unsent(&refused));
    }
    let exit = conclude(&terminal, &plan, &ran, &crossed, &refused, signals.interrupt().is_set());
    if flags.linger && !signals.interrupt().is_set() {
        terminal.log(Level::Info, "the run is over; it stays until a signal comes, as `--linger` says");
        while !signals.interrupt().is_set() {
            std::thread::sleep(SIGNAL_CHECK);
        }
    }
    Ok(exit)
}

/// What is said when a signal comes.
fn words_of_signals() -> Words {
    Words {
        first: Some("interrupted: no iteration begins any more (once more ends the program at once)".to_owned()),
        second: Some("ended at once: `teardown` may not have run, and there is no summary".to_owned()),
    }
}

/// The message about hosts that are not allowed.
fn unsent(Refused { hosts, all }: &Refused) -> String {
    let names: Vec<&str> = hosts.iter().map(String::as_str).collect();
    let flags: Vec<String> = hosts.iter().map(|host| format!("--allow {}", shell::word(host))).collect();
    let what = if *all { "nothing was sent: the script asks only for" } else { "nothing was sent to" };
    format!("{what} {}; if that is yours to load, say `{}`", and_list(quoted(&names)), flags.join(" "))
}

/// The script with all its modules.
fn program(flags: &Flags) -> Result<Arc<Program>, Failure> {
    let from_input = flags.script.as_os_str() == "-";
    let files = files(&flags.project, (!from_input).then_some(&flags.script), flags.vendor.as_deref())?;
    let mut text = String::new();
    let entry = if from_input {
        std::io::stdin().read_to_string(&mut text).context("failed to read the script from standard input")?;
        Entry::Text { name: "-", text: &text }
    } else {
        Entry::File(&flags.script)
    };
    Program::load(entry, files, plimsoll_k6::natives()).map_err(|faults| at_fault(&faults))
}

/// The files that a script may read, with the copies of remote modules in a folder. None is a script from standard input.
fn files(project: &Project, script: Option<&PathBuf>, copies: Option<&Path>) -> Result<Files, Failure> {
    let own = script.and_then(|script| script.parent()).filter(|folder| !folder.as_os_str().is_empty());
    let root = project.root.clone().unwrap_or_else(|| project_of(own.unwrap_or(Path::new("."))));
    let folders = std::iter::once(root.as_path()).chain(project.files.iter().map(PathBuf::as_path));
    let unread = |error: FileError| Failure::new(Exit::Script, error.to_string());
    let folder = copies.map_or_else(|| root.join(FOLDER_OF_COPIES), Path::to_owned);
    let taken_by = vendor_command(project, script.map_or(Path::new("SCRIPT"), PathBuf::as_path), copies);
    let copies = Copies::within(folder, taken_by).map_err(unread)?;
    Ok(Files::within(folders).map_err(unread)?.opened_by("`--files DIR`").with_copies(copies))
}

/// The command that takes copies of the remote modules of a script with the same files.
fn vendor_command(project: &Project, script: &Path, copies: Option<&Path>) -> String {
    let root = project.root.iter().map(|folder| ("--root", folder.as_path()));
    let files = project.files.iter().map(|folder| ("--files", folder.as_path()));
    let folders = root.chain(files).chain(copies.map(|folder| ("--out", folder)));
    let flags: String = folders.map(|(flag, folder)| format!(" {flag} {}", shell::word(&folder.display()))).collect();
    format!("plimsoll script vendor {}{flags}", shell::word(&script.display()))
}

fn at_fault(faults: &[Fault]) -> Failure {
    let faults: Vec<String> = faults.iter().map(Fault::render).collect();
    Failure::new(Exit::Script, faults.join("\n"))
}

fn limits(flags: &Flags) -> Limits {
    let knobs = Knobs { memory: "`--user-memory`", stack: "`--user-stack`", busy: "`--user-busy`", ..Knobs::default() };
    let (memory, stack) = (flags.user_memory as usize * 1024 * 1024, flags.user_stack as usize * 1024);
    let vm = plimsoll_javascript::Limits { memory, stack, busy: flags.user_busy.into() };
    Limits { vm, iteration: None, knobs }
}

/// Loads the script for its options and metrics.
fn loaded(
    flags: &Flags,
    program: &Arc<Program>,
    secrets: &Arc<Secrets>,
    console: &Console,
) -> Result<Inspected, Failure> {
    let inspected = load::inspect(program, environment(flags)?, Arc::clone(secrets), limits(flags), console);
    let inspected = inspected.map_err(|why| match why {
        CallError::Aborted(message) => Failure::new(Exit::Aborted, aborted(&message)),
        why => Failure::new(Exit::Script, why.render()),
    })?;
    if inspected.functions.is_empty() {
        let why = "expected a script that exports a function, such as `export default function () { … }`, found none";
        return Err(Failure::new(Exit::NoFunction, why));
    }
    Ok(inspected)
}

/// `__ENV`: the variables of the system, overridden by those of the command line.
fn environment(flags: &Flags) -> Result<Vec<(String, String)>, Failure> {
    let mut variables: BTreeMap<String, String> =
        system_environment().filter(|_| flags.include_system_env_vars).collect();
    for said in &flags.env {
        // A name alone is one without a value, as in k6.
        let (name, value) = said.split_once('=').unwrap_or((said, ""));
        if !is_name(name) {
            let why = format!("expected a name of letters, digits and `_` in `--env`, found `{said}`");
            return Err(Failure::new(Exit::Options, why));
        }
        variables.insert(name.to_owned(), value.to_owned());
    }
    Ok(variables.into_iter().collect())
}

/// The variables of the system that are text.
fn system_environment() -> impl Iterator<Item = (String, String)> {
    let text = |text: OsString| text.into_string().ok();
    std::env::vars_os().filter_map(move |(name, value)| Some((text(name)?, text(value)?)))
}

fn is_name(text: &str) -> bool {
    let fits = |char: char| char.is_ascii_alphanumeric() || char == '_';
    text.chars().all(fits) && text.starts_with(|first: char| !first.is_ascii_digit())
}

fn plan(flags: &Flags, settled: &Settled, inspected: &Inspected, outputs: &Outputs) -> RunState {
    let (options, scenarios) = (settled.options.clone(), settled.scenarios.clone());
    let plan = inspected.plan.configured(options, scenarios, settled.registry.clone());
    RunState { outputs: outputs.of_run(), by_group: flags.summary_mode == Some(Shown::Full), ..plan }
}

/// The header that describes the run, as in k6.
fn header(flags: &Flags, plan: &RunState) -> String {
    // A run whose outputs cannot be read has been refused before.
    let outputs = flags.outputs().unwrap_or_default();
    let outputs = if outputs.is_empty() { "-".to_owned() } else { outputs.join(", ") };
    let (count, longest) = (plan.scenarios.len(), scenario::longest(&plan.scenarios));
    let mut lines = vec![
        format!("script     {}", flags.script.display()),
        format!("output     {outputs}"),
        format!(
            "scenarios  {count} scenario{}, {} max VUs, {} max duration (incl. graceful stop):",
            if count == 1 { "" } else { "s" },
            scenario::most_vus(&plan.scenarios, WHOLE),
            duration::format(longest),
        ),
    ];
    lines.extend(plan.scenarios.iter().map(|scenario| format!("           * {scenario}")));
    lines.join("\n")
}

/// The fewest users of an arrival rate on each thread. A thread cannot take an iteration that arrives at another one, whose
/// users are all busy.
const USERS_OF_THREAD: u64 = 20;

/// The threads of a run that names none: one for each processor, but so few that each has enough users for what arrives at it.
fn threads_for(scenarios: &[Scenario]) -> usize {
    let with_arrivals = scenarios.iter().map(|scenario| &scenario.executor).filter(|executor| executor.has_arrivals());
    let fewest = with_arrivals.map(|executor| executor.most_vus() / USERS_OF_THREAD).min().unwrap_or(u64::MAX);
    processors().min(usize::try_from(fewest).unwrap_or(usize::MAX)).max(1)
}

fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// The exit code of the command; prints why it does not end well. The end of the run takes precedence over thresholds.
fn conclude(
    terminal: &Terminal,
    plan: &RunState,
    ran: &RunOutcome,
    crossed: &[&str],
    refused: &Refused,
    is_interrupted: bool,
) -> Exit {
    let crossed_says = || format!("thresholds on {} do not hold", and_list(quoted(crossed)));
    let (exit, why) = match &ran.end {
        End::Interrupted => (Exit::Interrupted, "the run was interrupted".to_owned()),
        End::NotLoaded(why) => (Exit::Script, format!("a user could not load the script: {why}")),
        End::Setup(why) => failed("setup", why, Exit::SetupTimeout),
        End::Teardown(why) => failed("teardown", why, Exit::TeardownTimeout),
        End::Stopped => (Exit::Thresholds, format!("{}, and one of them ends the run", crossed_says())),
        End::Aborted(message) => (Exit::Aborted, aborted(message)),
        End::Finished if is_interrupted => (Exit::Interrupted, "the run was interrupted in its summary".to_owned()),
        End::Finished if !ran.faults.is_empty() => (Exit::Failed, "not all of the load was sent: see above".to_owned()),
        End::Finished if !ran.broken.is_empty() => (Exit::Script, "the script broke a limit: see above".to_owned()),
        // Reported before. It is no success, because the script could not do any of its work.
        End::Finished if refused.all => return Exit::Options,
        End::Finished if plan.failure.get().is_some() => {
            let message = plan.failure.get().map(String::as_str).unwrap_or_default();
            (Exit::Marked, format!("the script called the run a failure: {message}"))
        }
        End::Finished if !crossed.is_empty() => (Exit::Thresholds, crossed_says()),
        End::Finished => return Exit::Fine,
    };
    terminal.log(Level::Error, why.trim_end_matches([':', ' ']));
    exit
}

/// The exit code and message for a failed `setup` or `teardown`.
fn failed(function: &str, why: &CallError, timed_out: Exit) -> (Exit, String) {
    let exit = if why.took_too_long() { timed_out } else { Exit::Script };
    let says = match why {
        CallError::TimedOut => format!("`{function}` took too long: see `{function}Timeout`"),
        why => format!("`{function}` failed: {}", why.render()),
    };
    (exit, says)
}

fn aborted(message: &str) -> String {
    format!("the script ended the run: {message}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_for_copies_has_all_folders_of_the_script() {
        let project = Project { root: Some("my shop".into()), files: vec!["data".into(), "more".into()] };
        assert_eq!(
            vendor_command(&project, Path::new("my shop/a.js"), Some(Path::new("copies"))),
            "plimsoll script vendor 'my shop/a.js' --root 'my shop' --files data --files more --out copies"
        );
    }
}
