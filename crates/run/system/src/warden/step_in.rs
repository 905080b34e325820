//! The last instant before the command: this process becomes it.

use crate::control_channel::{ControlChannel, LaunchOrder, Received};
use rustix::process::{Signal, getppid, set_parent_process_death_signal};
use rustix::thread::{CpuSet, sched_setaffinity};
use serde::{Deserialize, Serialize};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// What the warden tells its new child.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Role {
    /// The warden.
    pub(super) warden: i32,
    /// What to become.
    pub(super) order: LaunchOrder,
}

/// Becomes the command. Comes back only if that failed, and tells the warden why; if it did not,
/// `exec` closes the control channel, which tells the warden as well.
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
    // The warden may have died before that call, which then says nothing of it.
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
    if let Err(error) = stop_ignoring_signals() {
        return format!("its signals cannot be set: {error}");
    }
    let mut command = Command::new(&order.program);
    command.arg0(order.command.program()).args(order.command.arguments());
    command.current_dir(&order.dir).envs(&order.env).stdin(Stdio::null());
    let error = command.exec();
    format!("executing {} in {} failed: {error}", order.program.display(), order.dir.display())
}

/// A program that was started with signals ignored, in the background of a script or by `nohup`,
/// would hand that on, and the system could not be asked to end. A signal that is caught goes back
/// to its default with `exec`; one that is ignored stays ignored.
fn stop_ignoring_signals() -> io::Result<()> {
    let caught = Arc::new(AtomicBool::new(false));
    for signal in [SIGHUP, SIGINT, SIGQUIT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&caught))?;
    }
    Ok(())
}
