//! How late the machine wakes a thread that waits for an instant, as the generator's threads do.

use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags};
use rustix::io::Errno;
use std::num::NonZeroU64;
use std::time::{Duration, Instant};

/// The pause between two wake-ups.
const PAUSE: Duration = Duration::from_millis(1);

/// How late wake-ups were, in ascending order; never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WakeupLateness(Vec<Duration>);

impl WakeupLateness {
    /// The lateness of measured wake-ups; none if nothing was measured.
    #[must_use]
    pub fn of(mut wake_ups: Vec<Duration>) -> Option<WakeupLateness> {
        wake_ups.sort_unstable();
        (!wake_ups.is_empty()).then_some(WakeupLateness(wake_ups))
    }

    /// How many wake-ups there were.
    #[must_use]
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// The lateness that this share of the wake-ups does not exceed; `share` is from 0 to 1.
    #[must_use]
    pub fn quantile(&self, share: f64) -> Duration {
        let rank = (share * self.0.len() as f64).ceil() as usize;
        self.0[rank.clamp(1, self.0.len()) - 1]
    }
}

/// Why wake-ups could not be measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UnknownLateness {
    /// The kernel has no `epoll_pwait2`, or something keeps this process from calling it.
    Refused(String),
    /// Nothing was measured in the time.
    Nothing,
}

/// Measures for `span`, on a thread of its own, how late the kernel wakes a thread that waits for
/// the next millisecond: by `epoll_pwait2` with a timer slack of 1 ns, which is how the generator
/// waits.
///
/// # Errors
/// The generator could not wait on this machine either.
pub fn lateness(span: Duration) -> Result<WakeupLateness, UnknownLateness> {
    let measured = std::thread::spawn(move || wake_ups(span)).join().unwrap_or(Ok(Vec::new()));
    let wake_ups = measured.map_err(|error| UnknownLateness::Refused(error.to_string()))?;
    WakeupLateness::of(wake_ups).ok_or(UnknownLateness::Nothing)
}

fn wake_ups(span: Duration) -> Result<Vec<Duration>, Errno> {
    rustix::thread::set_current_timer_slack(NonZeroU64::new(1))?;
    let epoll = epoll::create(CreateFlags::CLOEXEC)?;
    let mut events: Vec<epoll::Event> = Vec::with_capacity(1);
    let mut late = Vec::with_capacity((span.as_millis() + 1) as usize);
    let started = Instant::now();
    while started.elapsed() < span {
        let due = Instant::now() + PAUSE;
        let wait = Timespec { tv_sec: 0, tv_nsec: PAUSE.subsec_nanos().into() };
        match epoll::wait(&epoll, rustix::buffer::spare_capacity(&mut events), Some(&wait)) {
            Ok(_) => late.push(Instant::now().saturating_duration_since(due)),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(late)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_values_that_were_measured() {
        let lateness = WakeupLateness::of([5, 1, 2, 4, 3].map(Duration::from_micros).into()).expect("five wake-ups");
        for (share, micros) in [(0.0, 1), (0.2, 1), (0.5, 3), (0.99, 5), (1.0, 5)] {
            assert_eq!(lateness.quantile(share), Duration::from_micros(micros), "{share}");
        }
        assert_eq!(WakeupLateness::of(Vec::new()), None);
    }

    #[test]
    fn wake_ups_are_measured_as_often_as_there_is_time_for() {
        let lateness = lateness(Duration::from_millis(50)).expect("this machine can wait");
        assert!((1..=50).contains(&lateness.count()), "{}", lateness.count());
    }
}
