//! The agents that generated the load, a row for each.

use super::facts::{Fact, fact};
use plimsoll_analysis::Input;
use plimsoll_analysis::quantity::{grouped, percent, show};
use plimsoll_model::agent::{AgentRecord, add_records};
use plimsoll_model::measure::Unit;
use plimsoll_model::units::Nanos;

/// An agent at its worst over all loads.
pub(crate) struct AgentRow {
    pub(crate) name: String,
    pub(crate) users: String,
    pub(crate) busiest: String,
    pub(crate) cpu: String,
    pub(crate) lateness: String,
    pub(crate) sockets: String,
    pub(crate) round_trip: String,
    pub(crate) retransmitted: String,
    pub(crate) clock: String,
    pub(crate) reported: String,
    pub(crate) lost: String,
}

/// The records of the agents over all loads; empty where the run generated its own load.
pub(crate) fn records(input: &Input) -> Vec<AgentRecord> {
    let mut records = Vec::new();
    input.trials().for_each(|trial| add_records(&mut records, &trial.load.summary.agents));
    records
}

/// The rows of the table.
pub(crate) fn agents(input: &Input) -> Vec<AgentRow> {
    records(input).iter().map(row).collect()
}

fn row(agent: &AgentRecord) -> AgentRow {
    let seconds = |span: Nanos| show(span.seconds(), Unit::Seconds);
    let count = |count: Option<u64>| count.map_or_else(unknown, |count| grouped(count as f64));
    AgentRow {
        name: agent.name.clone(),
        users: grouped(agent.users as f64),
        busiest: percent(agent.headroom.busiest),
        cpu: show(agent.cpu, Unit::Cores),
        lateness: seconds(agent.headroom.lateness),
        sockets: count(agent.sockets),
        round_trip: agent.round_trip.map_or_else(unknown, seconds),
        retransmitted: count(agent.retransmitted),
        clock: clock(agent),
        reported: show(agent.reported as f64, Unit::Bytes),
        lost: agent.lost.as_ref().map(|why| format!("lost: {why}")).unwrap_or_default(),
    }
}

fn unknown() -> String {
    "–".to_owned()
}

/// `+1.2 ± 0.1 ms`.
fn clock(agent: &AgentRecord) -> String {
    let milliseconds = |nanos: f64| nanos / 1e6;
    let ahead = milliseconds(agent.clock_ahead as f64);
    let sign = if ahead < 0.0 { '−' } else { '+' };
    format!("{sign}{:.2} ± {:.2} ms", ahead.abs(), milliseconds(agent.clock_error.0 as f64))
}

/// The notes on the columns.
pub(crate) fn note() -> Fact {
    fact(
        "Agents",
        "each generated its share of every load, and their records were merged. The table has what was worst in any load, and \
         sums over all of them of what was resent and reported: busiest thread and lateness (p99) as for one generator; \
         sockets in use on the agent's host; connects in, the least time in which the system accepted a connection from it \
         before the load; resent, TCP segments that its host sent again; the clock against that of the machine that ran the \
         study; reported, bytes of its messages.",
    )
}
