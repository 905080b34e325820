//! How a process ended.

use rustix::process::WaitStatus;
use serde::{Deserialize, Serialize};
use std::fmt;

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Exit {
    /// By itself, with this code.
    Code(i32),
    /// By this signal.
    Signal(i32),
}

impl Exit {
    /// True if it ended by itself with code 0.
    #[must_use]
    pub fn is_success(self) -> bool {
        self == Exit::Code(0)
    }

    /// What `wait` reported; `None` for a process that was only stopped or continued.
    pub(crate) fn of(status: WaitStatus) -> Option<Exit> {
        status.exit_status().map(Exit::Code).or_else(|| status.terminating_signal().map(Exit::Signal))
    }
}

impl fmt::Display for Exit {
    /// `exit code 3`, `signal 9 (SIGKILL)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Exit::Code(code) => write!(f, "exit code {code}"),
            Exit::Signal(signal) => match signal_hook::low_level::signal_name(*signal) {
                Some(name) => write!(f, "signal {signal} ({name})"),
                None => write!(f, "signal {signal}"),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Exit;

    #[test]
    fn an_exit_names_its_signal() {
        assert_eq!(Exit::Code(3).to_string(), "exit code 3");
        assert_eq!(Exit::Signal(9).to_string(), "signal 9 (SIGKILL)");
        assert_eq!(Exit::Signal(40).to_string(), "signal 40");
    }
}
