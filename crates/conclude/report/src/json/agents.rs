//! The agents that generated the load, as JSON. Durations are in seconds.

use crate::page::agents::records;
use plimsoll_analysis::Input;
use plimsoll_model::units::Nanos;
use serde::Serialize;

#[derive(Serialize)]
pub(super) struct Agent {
    name: String,
    users: u64,
    busiest_thread: f64,
    cpu_cores: f64,
    lateness_p99: f64,
    sockets: Option<u64>,
    round_trip: Option<f64>,
    segments_sent_again: Option<u64>,
    clock_ahead: f64,
    clock_error: f64,
    reported_bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    lost: Option<String>,
}

/// The agents, each at its worst over all loads; none where the run generated its own load.
pub(super) fn agents(input: &Input) -> Option<Vec<Agent>> {
    let agents = records(input).into_iter().map(|agent| Agent {
        users: agent.users,
        busiest_thread: agent.headroom.busiest,
        cpu_cores: agent.cpu,
        lateness_p99: agent.headroom.lateness.seconds(),
        sockets: agent.sockets,
        round_trip: agent.round_trip.map(Nanos::seconds),
        segments_sent_again: agent.retransmitted,
        clock_ahead: agent.clock_ahead as f64 / 1e9,
        clock_error: agent.clock_error.seconds(),
        reported_bytes: agent.reported,
        lost: agent.lost,
        name: agent.name,
    });
    Some(agents.collect()).filter(|agents: &Vec<Agent>| !agents.is_empty())
}
