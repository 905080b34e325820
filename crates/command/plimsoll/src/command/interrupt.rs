//! Interrupts a run by a signal.

use crate::say;
use anyhow::Context;
use plimsoll_system::Interrupt;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

/// SIGINT, SIGTERM and SIGHUP as a request to stop. The first one sets the [`Interrupt`], and what runs is stopped in
/// order. The second one ends the program at once; the wardens then end the systems under test.
#[derive(Clone, Debug)]
pub(super) struct Listener {
    interrupt: Interrupt,
    words: Arc<Mutex<Words>>,
}

/// What is said on standard error.
#[derive(Clone, Debug, Default)]
pub(super) struct Words {
    /// At the first signal.
    pub(super) first: Option<String>,
    /// At the second signal, before the program ends.
    pub(super) second: Option<String>,
}

impl Listener {
    /// Listens from now on. `exit_code` is that of a program that the second signal ends.
    pub(super) fn start(exit_code: i32) -> anyhow::Result<Listener> {
        let listener = Listener { interrupt: Interrupt::new(), words: Arc::default() };
        let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP]).context("failed to listen for signals")?;
        let own = listener.clone();
        let listen = move || {
            for _ in signals.forever() {
                let again = own.interrupt.is_set();
                own.interrupt.set();
                let words = own.words.lock().unwrap_or_else(PoisonError::into_inner).clone();
                if let Some(text) = if again { words.second } else { words.first } {
                    say::note(&text);
                }
                if again {
                    low_level::exit(exit_code);
                }
            }
        };
        thread::Builder::new().name("signals".to_owned()).spawn(listen).context("failed to listen for signals")?;
        Ok(listener)
    }

    /// What the first signal sets.
    pub(super) fn interrupt(&self) -> &Interrupt {
        &self.interrupt
    }

    /// Says this from now on.
    pub(super) fn say(&self, words: Words) {
        *self.words.lock().unwrap_or_else(PoisonError::into_inner) = words;
    }
}
