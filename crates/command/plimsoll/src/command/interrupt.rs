//! Interrupts a run by a signal.

use anyhow::Context;
use plimsoll_system::Interrupt;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag::{register, register_conditional_shutdown};
use std::sync::Arc;

/// Returns an interrupt that the first SIGINT, SIGTERM or SIGHUP sets. The second one ends the program at
/// once with this exit code; the wardens then end the systems under test.
pub(super) fn interruptible(exit_code: i32) -> anyhow::Result<Interrupt> {
    let interrupted = Interrupt::new();
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        register_conditional_shutdown(signal, exit_code, Arc::clone(interrupted.flag()))
            .and_then(|_| register(signal, Arc::clone(interrupted.flag())))
            .context("failed to listen for signals")?;
    }
    Ok(interrupted)
}
