//! The subjects of messages at the broker, and how long either side waits for a sign of life of the other.
//!
//! All subjects begin with `plimsoll.`, so that an account can be limited to them; replies come at the client's own
//! `_INBOX.` subjects.

use std::time::Duration;

/// A coordinator asks here who is there.
pub(crate) const WHO: &str = "plimsoll.who";

/// The time between two signs of life of the coordinator, which the agent answers at once.
pub(crate) const BEAT_EVERY: Duration = Duration::from_millis(500);

/// The first signs of life come faster, so that the agent's clock is known before its first load: so many, this far apart.
pub(crate) const FIRST_BEATS: u32 = 8;
pub(crate) const FIRST_BEATS_EVERY: Duration = Duration::from_millis(20);

/// An agent that has heard nothing for this long stops its load and is free again. That is sooner than the coordinator
/// gives it up, so that no load of it goes on beside the next one.
pub(crate) const AGENT_WAITS: Duration = Duration::from_millis(2_500);

/// An agent of which nothing was heard for this long is lost.
pub(crate) const COORDINATOR_WAITS: Duration = Duration::from_secs(4);

/// Bytes of a message that the broker takes beside our own.
const SPARE: usize = 1024;

/// The subject at which an agent is asked to work for a run.
pub(crate) fn of_agent(id: &str) -> String {
    format!("plimsoll.agent.{id}")
}

/// The subject of messages of an engagement to the agent.
pub(crate) fn to_agent(session: &str) -> String {
    format!("plimsoll.session.{session}.agent")
}

/// The subject of those to the coordinator.
pub(crate) fn to_coordinator(session: &str) -> String {
    format!("plimsoll.session.{session}.coordinator")
}

/// The most bytes of a frame, where the broker takes messages of at most this many.
pub(crate) fn most_of_frame(max_payload: usize) -> usize {
    // A large message in one piece would make the signs of life wait behind it.
    max_payload.saturating_sub(SPARE).clamp(SPARE, 128 << 10)
}
