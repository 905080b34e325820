//! Agents: generators on other hosts, and how each of them did in a load.

use crate::load::Share;
use crate::result::Headroom;
use crate::units::Nanos;
use serde::{Deserialize, Serialize};

/// The record of one of several agents in a load.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AgentRecord {
    /// Its name.
    pub name: String,
    /// Its share of users and arrivals.
    pub share: Share,
    /// The most users that were at work at the end of a second.
    pub users: u64,
    /// Its distance from its limits in the measure phase.
    pub headroom: Headroom,
    /// CPU of its threads in the measure phase, in cores.
    pub cpu: f64,
    /// The longest time in which its event loop did not poll for new events, in the measure phase.
    pub stall: Nanos,
    /// TCP sockets in use on its host when the load was over; none where that is not known.
    pub sockets: Option<u64>,
    /// The time in which the system accepted a connection from it before the load: the least of several attempts. None where
    /// users do not connect to one address.
    pub round_trip: Option<Nanos>,
    /// TCP segments that its host sent again while it got ready and while the load ran; none where that is not known.
    pub retransmitted: Option<u64>,
    /// Nanoseconds by which its clock was ahead of the coordinator's.
    pub clock_ahead: i64,
    /// The most by which that may be wrong.
    pub clock_error: Nanos,
    /// Bytes of its messages to the coordinator in this load.
    pub reported: u64,
    /// The reason why it was lost under this load; none if it was not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<String>,
}

impl AgentRecord {
    /// Adds how the agent did in a later load: what was worst, and the sums of what is counted. The clock is that of the load
    /// in which it was known least.
    pub fn add(&mut self, later: &AgentRecord) {
        self.users = self.users.max(later.users);
        self.headroom.busiest = self.headroom.busiest.max(later.headroom.busiest);
        self.headroom.lateness = self.headroom.lateness.max(later.headroom.lateness);
        self.cpu = self.cpu.max(later.cpu);
        self.stall = self.stall.max(later.stall);
        self.sockets = self.sockets.max(later.sockets);
        self.round_trip = self.round_trip.max(later.round_trip);
        self.retransmitted = self.retransmitted.zip(later.retransmitted).map(|(one, other)| one + other);
        if later.clock_error > self.clock_error {
            (self.clock_ahead, self.clock_error) = (later.clock_ahead, later.clock_error);
        }
        self.reported += later.reported;
        self.lost = self.lost.take().or_else(|| later.lost.clone());
    }
}

/// Adds records of agents to those of earlier loads, by name.
pub fn add_records(known: &mut Vec<AgentRecord>, later: &[AgentRecord]) {
    for record in later {
        match known.iter_mut().find(|known| known.name == record.name) {
            Some(known) => known.add(record),
            None => known.push(record.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_of_later_loads_are_added_by_name() {
        let record = |name: &str, users, retransmitted, clock_error| AgentRecord {
            name: name.to_owned(),
            users,
            retransmitted,
            clock_ahead: clock_error as i64 * 10,
            clock_error: Nanos(clock_error),
            ..AgentRecord::default()
        };
        let mut known = vec![record("a", 3, Some(2), 5)];
        add_records(&mut known, &[record("a", 2, Some(1), 9), record("b", 1, None, 1)]);
        add_records(&mut known, &[record("a", 1, None, 1)]);
        assert_eq!(known[1], record("b", 1, None, 1));
        assert_eq!((known[0].users, known[0].retransmitted, known[0].clock_ahead), (3, None, 90));
    }
}
