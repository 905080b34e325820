//! Seconds on their way from an agent to the coordinator, and how those of all agents become the seconds of one generator.

use crate::buckets::{self, NoHistogram};
use hdrhistogram::Histogram;
use plimsoll_model::record::{
    ErrorKind, GeneratorSecond, Interval, MergedSeconds, RecordedPhase, Subject, TICKS, Tally, Tick,
};
use plimsoll_model::units::Nanos;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// A second as it crosses the network.
#[derive(Serialize, Deserialize)]
struct SentSecond<'a> {
    second: i64,
    length: Nanos,
    #[serde(borrow)]
    tallies: Vec<SentTally<'a>>,
    ticks: [Tick; TICKS],
    #[serde(borrow)]
    generator: SentGenerator<'a>,
}

#[derive(Serialize, Deserialize)]
struct SentTally<'a> {
    phase: RecordedPhase,
    #[serde(borrow)]
    subject: Cow<'a, str>,
    /// The histograms of service time, response time and first byte.
    #[serde(borrow)]
    histograms: [SentHistogram<'a>; 3],
    errors: BTreeMap<ErrorKind, u64>,
    bytes_out: u64,
    bytes_in: u64,
    saturated: u64,
}

#[derive(Serialize, Deserialize)]
struct SentGenerator<'a> {
    cpu: Nanos,
    cpu_busiest: Nanos,
    users: u64,
    in_flight: u64,
    backlog: u64,
    sockets: u64,
    #[serde(borrow)]
    lateness: SentHistogram<'a>,
    stall: Nanos,
}

#[derive(Serialize, Deserialize)]
struct SentHistogram<'a>(#[serde(borrow, with = "serde_bytes")] Cow<'a, [u8]>);

impl SentHistogram<'_> {
    fn of(histogram: &Histogram<u64>) -> SentHistogram<'static> {
        SentHistogram(Cow::Owned(buckets::encode(histogram)))
    }

    fn add_to(&self, histogram: &mut Histogram<u64>) -> Result<(), NoHistogram> {
        buckets::add(&self.0, histogram)
    }
}

/// The bytes of a second do not say what they should: the agent is another program than the coordinator.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("a second of an agent cannot be read: {0}")]
pub(crate) struct Unreadable(String);

/// Writes a second for the network.
pub(crate) fn encode(interval: &Interval) -> Vec<u8> {
    let tally = |((phase, subject), tally): (&(RecordedPhase, Subject), &Tally)| SentTally {
        phase: *phase,
        subject: Cow::Owned(subject.to_string()),
        histograms: [&tally.service, &tally.response, &tally.first_byte].map(SentHistogram::of),
        errors: tally.errors.clone(),
        bytes_out: tally.bytes_out,
        bytes_in: tally.bytes_in,
        saturated: tally.saturated,
    };
    let GeneratorSecond { cpu, cpu_busiest, users, in_flight, backlog, sockets, lateness, stall } = &interval.generator;
    let second = SentSecond {
        second: interval.second,
        length: interval.length,
        tallies: interval.tallies.iter().map(tally).collect(),
        ticks: interval.ticks,
        generator: SentGenerator {
            cpu: *cpu,
            cpu_busiest: *cpu_busiest,
            users: *users,
            in_flight: *in_flight,
            backlog: *backlog,
            sockets: *sockets,
            lateness: SentHistogram::of(lateness),
            stall: *stall,
        },
    };
    rmp_serde::to_vec(&second).expect("plain data in memory")
}

/// Adds a second that was sent to one of the same number; returns what the agent says of its generator.
fn add(sent: &SentSecond<'_>, into: &mut Interval) -> Result<GeneratorSecond, Unreadable> {
    let unreadable = |error: NoHistogram| Unreadable(error.to_string());
    for tally in &sent.tallies {
        let subject: Subject = tally.subject.parse().map_err(|error| Unreadable(format!("{error}")))?;
        let known = into.tallies.entry((tally.phase, subject)).or_default();
        for (sent, known) in
            tally.histograms.iter().zip([&mut known.service, &mut known.response, &mut known.first_byte])
        {
            sent.add_to(known).map_err(unreadable)?;
        }
        tally.errors.iter().for_each(|(kind, count)| *known.errors.entry(*kind).or_default() += count);
        known.bytes_out += tally.bytes_out;
        known.bytes_in += tally.bytes_in;
        known.saturated += tally.saturated;
    }
    let SentGenerator { cpu, cpu_busiest, users, in_flight, backlog, sockets, .. } = sent.generator;
    let mut generator = GeneratorSecond { cpu, cpu_busiest, users, in_flight, backlog, sockets, ..Default::default() };
    generator.stall = sent.generator.stall;
    sent.generator.lateness.add_to(&mut generator.lateness).map_err(unreadable)?;
    // What is left of a second merges as between the threads of one generator.
    into.merge(&Interval {
        length: sent.length,
        ticks: sent.ticks,
        generator: generator.clone(),
        ..Interval::default()
    });
    Ok(generator)
}

/// A second of one agent, as far as it concerns the agent itself.
#[derive(Debug)]
pub(crate) struct SecondOfAgent {
    pub(crate) second: i64,
    pub(crate) generator: GeneratorSecond,
}

/// Adds a second that an agent has sent, as [`encode`] writes it, to those of the others.
///
/// # Errors
/// It cannot be read.
pub(crate) fn take(bytes: &[u8], agent: usize, merged: &mut MergedSeconds) -> Result<SecondOfAgent, Unreadable> {
    let sent: SentSecond<'_> = rmp_serde::from_slice(bytes).map_err(|error| Unreadable(error.to_string()))?;
    let generator = add(&sent, merged.second(agent, sent.second))?;
    Ok(SecondOfAgent { second: sent.second, generator })
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_model::record::LONGEST;
    use proptest::prelude::*;

    /// A second in which these exchanges ended, by the number of their subject.
    fn interval(second: i64, exchanges: &[(usize, u64)]) -> Interval {
        let mut interval = Interval { second, length: Nanos(1_000_000_000), ..Interval::default() };
        for (index, (subject, took)) in exchanges.iter().enumerate() {
            let subjects = [Subject::Iteration, Subject::Request("a:b".to_owned()), Subject::Connect];
            let phase = [RecordedPhase::Warmup, RecordedPhase::Measure][index % 2];
            let tally = interval.tallies.entry((phase, subjects[subject % 3].clone())).or_default();
            tally.service.record(*took).expect("in range");
            tally.first_byte.record(took / 2).expect("in range");
            tally.bytes_in += took % 100;
            if took % 10 == 0 {
                *tally.errors.entry(ErrorKind::ALL[index % ErrorKind::ALL.len()]).or_default() += 1;
            }
            interval.ticks[index % TICKS].merge(Tick { iterations: 1, total: *took });
            interval.generator.lateness.record(took / 1000).expect("in range");
            interval.generator.users += 1;
            interval.generator.cpu.0 += took;
        }
        interval
    }

    proptest! {
        #[test]
        fn seconds_of_agents_merge_into_what_one_generator_would_have_recorded(
            exchanges in prop::collection::vec((0_usize..3, 1_u64..LONGEST), 0..120),
            agents in 1_usize..9,
        ) {
            let of = |agent: usize| exchanges.iter().skip(agent).step_by(agents).copied().collect::<Vec<_>>();
            let parts: Vec<Interval> = (0..agents).map(|agent| interval(3, &of(agent))).collect();
            let mut expected = Interval { second: 3, ..Interval::default() };
            parts.iter().for_each(|part| expected.merge(part));
            let mut merger = MergedSeconds::of(agents);
            for (agent, part) in parts.iter().enumerate().rev() {
                prop_assert!(merger.take().is_none(), "not all have passed it");
                let taken = take(&encode(part), agent, &mut merger).expect("its own bytes");
                prop_assert_eq!((taken.second, &taken.generator), (3, &part.generator));
            }
            prop_assert_eq!(merger.take(), Some(expected));
            prop_assert!(merger.take().is_none());
        }
    }

    #[test]
    fn a_second_waits_for_every_agent_that_has_not_ended() {
        let mut merger = MergedSeconds::of(2);
        let send = |merger: &mut MergedSeconds, agent, second| {
            take(&encode(&interval(second, &[(0, 5)])), agent, merger).expect("its own bytes");
        };
        send(&mut merger, 0, 0);
        send(&mut merger, 0, 1);
        send(&mut merger, 1, 0);
        assert_eq!(merger.take().map(|interval| interval.second), Some(0));
        assert!(merger.take().is_none());
        merger.ended(1);
        assert_eq!(merger.take().map(|interval| interval.second), Some(1));
    }

    #[test]
    fn other_bytes_are_refused() {
        assert!(take(b"not a second", 0, &mut MergedSeconds::of(1)).is_err());
    }
}
