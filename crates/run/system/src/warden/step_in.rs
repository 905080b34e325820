//! The process that becomes the command.

use crate::control_channel::{ControlChannel, LaunchOrder, Received};
use crate::program::set_environment;
use rustix::process::{Resource, Rlimit, Signal, getppid, getrlimit, set_parent_process_death_signal, setrlimit};
use rustix::thread::{CpuSet, sched_setaffinity};
use serde::{Deserialize, Serialize};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The message of the warden to its new child.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Role {
    /// The process id of the warden.
    pub(super) warden: i32,
    /// The command to become.
    pub(super) order: LaunchOrder,
}

/// Becomes the command. If that fails, it sends the reason to the warden and returns. If it succeeds, `exec`
/// closes the control channel, by which the warden knows.
pub(super) fn step_in() -> io::Result<()> {
    let mut channel = ControlChannel::of_standard_input()?;
    let Received::Message(role) = channel.receive::<Role>(None)? else { return Ok(()) };
    let refusal = become_command(&role);
    channel.send(&refusal)
}

fn become_command(role: &Role) -> String {
    if let Err(error) = set_parent_process_death_signal(Some(Signal::KILL)) {
        return format!("the kernel refused to tie it to its warden: {error}");
    }
    // The warden may have died before that call, which does not report that.
    if getppid().map(|pid| pid.as_raw_nonzero().get()) != Some(role.warden) {
        return "its warden died".to_owned();
    }
    let order = &role.order;
    if let Some(cpus) = &order.cpus {
        let mut set = CpuSet::new();
        cpus.0.iter().for_each(|&cpu| set.set(cpu));
        if let Err(error) = sched_setaffinity(None, &set) {
            return format!("it cannot be bound to processors {cpus}: {error}");
        }
    }
    if let Err(error) = limit_open_files(order.open_files) {
        return format!("its limit of open files cannot be set: {error}");
    }
    if let Err(error) = stop_ignoring_signals() {
        return format!("its signals cannot be set: {error}");
    }
    let mut command = Command::new(&order.program);
    command.arg0(order.command.program()).args(order.command.arguments());
    set_environment(&mut command, order.inherit.as_deref(), &order.env);
    command.current_dir(&order.dir).stdin(Stdio::null());
    let error = command.exec();
    format!("executing {} in {} failed: {error}", order.program.display(), order.dir.display())
}

/// Sets the soft limit of open files, as far as the hard limit allows.
fn limit_open_files(wanted: Option<u64>) -> rustix::io::Result<()> {
    let limit = getrlimit(Resource::Nofile);
    let current = [wanted, limit.maximum].into_iter().flatten().min();
    // The kernel may refuse to set even what is there, if its own bound was lowered meanwhile.
    if current == limit.current { Ok(()) } else { setrlimit(Resource::Nofile, Rlimit { current, ..limit }) }
}

/// A program that was started with ignored signals, in the background of a script or by `nohup`, would pass
/// that on, and the system would ignore the request to end. A caught signal returns to its default with
/// `exec`; an ignored one stays ignored.
fn stop_ignoring_signals() -> io::Result<()> {
    let caught = Arc::new(AtomicBool::new(false));
    for signal in [SIGHUP, SIGINT, SIGQUIT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&caught))?;
    }
    Ok(())
}
