//! Timers with the precision of a microsecond. tokio's own tick once a millisecond.

use rustix::fs::Timespec;
use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime};
use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

const NEVER_AGAIN: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

/// Waits until `deadline`; returns at once if that has passed.
pub(crate) async fn until(deadline: Instant) -> io::Result<()> {
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() {
        return Ok(());
    }
    let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC)?;
    let once = Itimerspec { it_interval: NEVER_AGAIN, it_value: timespec(left)? };
    timerfd_settime(&timer, TimerfdTimerFlags::empty(), &once)?;
    let _expired = watch(timer)?.readable().await?;
    Ok(())
}

#[expect(
    deprecated,
    reason = "its successor is unsafe, for types that may lend a closed descriptor: an OwnedFd cannot"
)]
fn watch(timer: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    AsyncFd::with_interest(timer, Interest::READABLE)
}

fn timespec(span: Duration) -> io::Result<Timespec> {
    Timespec::try_from(span).map_err(|_| io::Error::other(format!("a delay of {span:?} is too long for a timer")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_never_ends_early() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().unwrap();
        for micros in [0, 50, 700, 2_300] {
            let span = Duration::from_micros(micros);
            let begin = Instant::now();
            runtime.block_on(until(begin + span)).unwrap();
            assert!(begin.elapsed() >= span, "{span:?} took {:?}", begin.elapsed());
        }
    }
}
