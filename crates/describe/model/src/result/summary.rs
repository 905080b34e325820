//! The short facts of starts and loads: whether they count, when they ran, and what is told of them.

use crate::agent::{AgentRecord, add_records};
use crate::database::DatabaseFacts;
use crate::feedback::FeedbackRecord;
use crate::host::Host;
use crate::objective::{Judged, Passed};
use crate::record::{Account, ErrorKind, SequenceCheck};
use crate::script::ScriptFacts;
use crate::start::{Load, RungPart, Start, Turns, Validity};
use crate::storage::StorageFacts;
use crate::units::{Instant, Nanos, Processors};
use crate::words::without_repeats;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// The short facts of a finished start, without those of its loads.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StartSummary {
    /// Identity: which start.
    pub start: Start,
    /// Its validity, judged by what concerns all of its loads: its systems stayed alive, and their data is
    /// consistent.
    pub validity: Validity,
    /// Remarks for the reader that do not keep it from counting.
    pub warnings: Vec<String>,
    /// When, and for how long.
    pub timing: StartTiming,
    /// The systems of each variant that was alive on it, in the order in which they started.
    pub systems: Vec<VariantSystems>,
    /// The other machines on which some of them ran.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<Host>,
}

/// When a start ran, and for how long.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StartTiming {
    /// The begin of its setup, in milliseconds since 1970, UTC.
    pub started_unix_ms: i64,
    /// From the begin of its setup to the end of its teardown.
    pub took: Nanos,
}

/// The systems of one variant on a start.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct VariantSystems {
    /// The variant, as in [`Start::variants`].
    pub variant: usize,
    /// From the start of its first system to the readiness of its last.
    pub ready_after: Nanos,
    /// The processors that its systems may use, in order; none if one of them may use all, or is not started here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processors: Option<Processors>,
    /// The same for each of them that may not use all, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub bound_to: BTreeMap<String, Processors>,
    /// The databases that were started or used.
    pub databases: Vec<DatabaseFacts>,
}

/// The short facts of a finished load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoadSummary {
    /// Identity: which load of its start.
    pub load: Load,
    /// Its validity, judged by what concerns this load alone.
    pub validity: Validity,
    /// Remarks for the reader that do not keep it from counting.
    pub warnings: Vec<String>,
    /// When, and for how long.
    pub timing: LoadTiming,
    /// From when on it was steady.
    pub steadiness: Steadiness,
    /// How near the generator came to its limits.
    pub headroom: Headroom,
    /// CPU that others used meanwhile, in cores: neither Plimsoll nor its systems, and what the hypervisor took away.
    /// None where that is not known, as of systems that run already.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub others: Option<f64>,
    /// The same on other hosts on which systems ran, by the name of the host: neither its agent nor its systems.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub others_elsewhere: BTreeMap<String, f64>,
    /// The judgement by the study's objective; none in a study without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub objective: Option<Judged>,
    /// The record of the control loop that changed the number of users; none where the load itself says how many there are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub feedback: Option<FeedbackRecord>,
    /// What was found in the replies.
    pub replies: Replies,
    /// The kind of work that users did.
    pub work: Work,
    /// The records of its agents; empty where the run's own process generated the load.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<AgentRecord>,
}

/// When the measure phase of a load ran.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadTiming {
    /// Its begin, on the clock of its start: counted from the begin of the first load's measure phase.
    pub zero: Instant,
    /// Its actual length.
    pub window: Nanos,
}

/// From when on the measure phase of a load is steady.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Steadiness {
    /// The instant, counted from the begin of the measure phase; none if it never became steady, or if that was not
    /// judged.
    pub from: Option<Nanos>,
    /// True if the load is void only because it never became steady: a longer warm-up may help.
    pub unsteady: bool,
    /// Why it was not judged; none if it was judged, or if the load is meant to change.
    pub unjudged: Option<String>,
}

/// What the replies to a load showed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Replies {
    /// True if the load was open: response times exist then.
    pub open_load: bool,
    /// The check over all replies, where the study asks for one: by request name.
    pub sequences: BTreeMap<String, SequenceCheck>,
    /// An example of the text that came with each kind of error, by request name.
    pub error_examples: BTreeMap<String, BTreeMap<ErrorKind, String>>,
    /// What became of everything that was sent, by request name and for connections. Empty in bundles of earlier versions.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub accounts: BTreeMap<String, Account>,
}

/// The kind of work that users do in a load, with its facts beside the records.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Work {
    /// The steps of the study: requests, or transactions of a database.
    #[default]
    Steps,
    /// Operations on objects of a storage back end.
    Storage(Box<StorageFacts>),
    /// A script.
    Script(ScriptFacts),
}

impl Work {
    /// The facts of the storage back end, where the work was storage.
    #[must_use]
    pub fn storage(&self) -> Option<&StorageFacts> {
        match self {
            Work::Storage(facts) => Some(facts),
            Work::Steps | Work::Script(_) => None,
        }
    }

    /// The facts of the script, where the work was one.
    #[must_use]
    pub fn script(&self) -> Option<&ScriptFacts> {
        match self {
            Work::Script(facts) => Some(facts),
            Work::Steps | Work::Storage(_) => None,
        }
    }
}

impl LoadSummary {
    /// True if this is a light load that broke nothing: the systems have recovered from the load before it.
    #[must_use]
    pub fn has_recovered(&self) -> bool {
        let is_broken = || self.objective.as_ref().is_none_or(|judged| judged.passed == Passed::No);
        self.validity.counts() && !is_broken()
    }

    /// Adds a load of the same variant on the same start. Its replies are added too if `with_replies`.
    pub(super) fn add(&mut self, load: &LoadSummary, with_replies: bool) {
        let (before, length) = (self.timing.window.seconds(), load.timing.window.seconds());
        self.others = self.others.zip(load.others).map(|(known, of_load)| match before + length {
            0.0 => of_load,
            both => (known * before + of_load * length) / both,
        });
        self.timing.window.0 += load.timing.window.0;
        self.load.lengths.warmup += load.load.lengths.warmup;
        self.load.lengths.measure += load.load.lengths.measure;
        self.load.lengths.drain = load.load.lengths.drain;
        self.headroom.busiest = self.headroom.busiest.max(load.headroom.busiest);
        self.headroom.lateness = self.headroom.lateness.max(load.headroom.lateness);
        add_records(&mut self.agents, &load.agents);
        for warning in &load.warnings {
            if !self.warnings.contains(warning) {
                self.warnings.push(warning.clone());
            }
        }
        if with_replies {
            self.merge_replies(&load.replies);
        }
    }

    /// Adds what the replies to a later load of the same variant showed.
    fn merge_replies(&mut self, later: &Replies) {
        for (name, check) in &later.sequences {
            let known = self.replies.sequences.entry(name.clone()).or_default();
            *known = known.clone().and(check);
        }
        for (name, examples) in &later.error_examples {
            let known = self.replies.error_examples.entry(name.clone()).or_default();
            examples.iter().for_each(|(kind, text)| {
                known.entry(*kind).or_insert_with(|| text.clone());
            });
        }
        for (name, account) in &later.accounts {
            let known = self.replies.accounts.entry(name.clone()).or_default();
            *known = std::mem::take(known).and(account);
        }
    }

    /// The summary of a load that was not offered: nothing is known of it.
    #[must_use]
    pub fn not_offered(load: Load) -> LoadSummary {
        LoadSummary {
            load,
            validity: Validity::Valid,
            warnings: Vec::new(),
            timing: LoadTiming::default(),
            steadiness: Steadiness::default(),
            headroom: Headroom::default(),
            others: None,
            others_elsewhere: BTreeMap::new(),
            objective: None,
            feedback: None,
            replies: Replies::default(),
            work: Work::default(),
            agents: Vec::new(),
        }
    }
}

/// A finished start with its loads, in short.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FinishedStart {
    /// What concerns all loads.
    pub summary: StartSummary,
    /// Its loads, in order.
    pub loads: Vec<LoadSummary>,
}

impl StartSummary {
    /// The validity of the start with these loads.
    pub(super) fn validity_with<'a>(&self, loads: impl Iterator<Item = &'a LoadSummary>) -> Validity {
        self.validity.and(&validity_of_loads(&loads.collect::<Vec<_>>()))
    }
}

impl FinishedStart {
    /// The validity of the start with all of its loads.
    #[must_use]
    pub fn validity(&self) -> Validity {
        self.summary.validity_with(self.loads.iter())
    }
}

/// The validity of the loads of a start together. A void slice takes no more than its turn along, while enough turns
/// are left; a failed one fails them all.
#[must_use]
pub fn validity_of_loads(loads: &[&LoadSummary]) -> Validity {
    let all = || loads.iter().fold(Validity::Valid, |known, load| known.and(&load.validity));
    if loads.iter().any(|load| load.load.rung.is_some()) {
        return validity_of_searches(loads);
    }
    let turns = loads.iter().map(|load| load.load.turn).max().unwrap_or(1);
    if turns == 1 {
        return all();
    }
    let failed = loads.iter().filter(|load| matches!(load.validity, Validity::Failed(_)));
    if let Some(first) = failed.min_by_key(|load| load.load.number) {
        return first.validity.clone();
    }
    let whole = whole_turns(loads.iter().copied()).len();
    if whole >= Turns::needed_of(turns) as usize {
        return Validity::Valid;
    }
    Validity::Void(vec![format!(
        "only {whole} of {turns} turns count: {}",
        without_repeats(all().reasons(), "slices").join("; ")
    )])
}

/// The validity of the searches on a start. A void load runs again; it voids the start where the search had to give up and
/// found nothing.
fn validity_of_searches(loads: &[&LoadSummary]) -> Validity {
    let failed = loads.iter().filter(|load| matches!(load.validity, Validity::Failed(_)));
    if let Some(first) = failed.min_by_key(|load| load.load.number) {
        return first.validity.clone();
    }
    let variants: BTreeSet<usize> = loads.iter().map(|load| load.load.variant).collect();
    let of_variant = |variant: usize| {
        let loads = || loads.iter().filter(|load| load.load.variant == variant);
        let mut in_order: Vec<&LoadSummary> = loads().copied().collect();
        in_order.sort_by_key(|load| load.load.number);
        if let Some(reason) = why_not_recovered(&in_order) {
            return Validity::Void(vec![reason]);
        }
        let last = in_order.last().expect("a variant with a load");
        let has_passed = loads().filter_map(|load| load.objective.as_ref()).any(|judged| judged.passed == Passed::Yes);
        match last.load.rung.map(|rung| rung.part) {
            Some(RungPart::Confirmation) => Validity::Valid,
            Some(RungPart::Bracket | RungPart::Step) if has_passed => Validity::Valid,
            _ => last.validity.clone(),
        }
    };
    variants.into_iter().fold(Validity::Valid, |known, variant| known.and(&of_variant(variant)))
}

/// Why the search for a variant ended before its systems had recovered from a load, if it did; after a confirmation nothing is
/// missing. `loads` are all of its loads on a start, in order.
fn why_not_recovered(loads: &[&LoadSummary]) -> Option<String> {
    let part = |load: &LoadSummary| load.load.rung.map(|rung| rung.part);
    let light = loads.iter().rev().take_while(|load| part(load) == Some(RungPart::Recovery)).count();
    let (others, light) = loads.split_at(loads.len() - light);
    let (from, last) = (others.last()?, light.last()?);
    if last.has_recovered() || part(from) == Some(RungPart::Confirmation) {
        return None;
    }
    let took: Duration = light.iter().map(|load| load.load.lengths.warmup + load.load.lengths.measure).sum();
    let level = from.load.rung.map_or(0.0, |rung| rung.level.round());
    Some(format!(
        "the systems did not recover within {:.0} s from a load of {level}, under which requests failed (`load.recover` gives \
         them longer)",
        took.as_secs_f64()
    ))
}

/// The turns in which the load of every variant counts.
#[must_use]
pub fn whole_turns<'a>(loads: impl Iterator<Item = &'a LoadSummary> + Clone) -> BTreeSet<u32> {
    let broken: BTreeSet<u32> =
        loads.clone().filter(|load| !load.validity.counts()).map(|load| load.load.turn).collect();
    loads.map(|load| load.load.turn).filter(|turn| !broken.contains(turn)).collect()
}

/// How near the generator came to its limits over a measure phase. Its validity is judged by this.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Headroom {
    /// Mean CPU of its busiest thread, in cores.
    pub busiest: f64,
    /// How late due work was started although a user was free: 99th percentile; in a closed loop with fewer than 1,000
    /// pieces of work the one that ten lie above, from the 90th.
    pub lateness: Nanos,
}

/// The first second that counts, by condition: one cut for all loads under it, at which the last of them became steady.
/// Starts and loads that do not count are ignored.
#[must_use]
pub fn common_cuts<'a>(starts: impl IntoIterator<Item = &'a FinishedStart>) -> BTreeMap<usize, i64> {
    let mut cuts = BTreeMap::new();
    for finished in starts.into_iter().filter(|finished| finished.summary.validity.counts()) {
        for load in finished.loads.iter().filter(|load| load.validity.counts()) {
            let steady = load.steadiness.from.map_or(0, |from| from.0.div_ceil(1_000_000_000) as i64);
            let cut: &mut i64 = cuts.entry(finished.summary.start.condition).or_default();
            *cut = steady.max(*cut);
        }
    }
    cuts
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::start::{PhaseLengths, Rung};

    fn finished(condition: usize, steady_from: Option<u64>, validity: Validity) -> FinishedStart {
        let start = Start {
            number: 1,
            block: 1,
            repeat: 1,
            attempt: 1,
            extended: false,
            position: 1,
            condition,
            variants: vec![0],
        };
        let load = Load { number: 1, variant: 0, turn: 1, beside: None, rung: None, lengths: PhaseLengths::default() };
        let from = steady_from.map(|milliseconds| Nanos(milliseconds * 1_000_000));
        let steadiness = Steadiness { from, ..Steadiness::default() };
        FinishedStart {
            summary: StartSummary {
                start,
                validity: Validity::Valid,
                warnings: Vec::new(),
                timing: StartTiming::default(),
                systems: Vec::new(),
                hosts: Vec::new(),
            },
            loads: vec![LoadSummary { validity, steadiness, ..LoadSummary::not_offered(load) }],
        }
    }

    #[test]
    fn a_condition_is_cut_where_the_last_of_its_loads_that_count_became_steady() {
        let void = Validity::Void(vec!["no steady state".to_owned()]);
        let starts = [
            finished(0, Some(0), Validity::Valid),
            finished(0, Some(1200), Validity::Valid),
            finished(0, Some(4000), void),
            finished(1, Some(3000), Validity::Valid),
            finished(2, None, Validity::Valid),
        ];
        assert_eq!(common_cuts(&starts), BTreeMap::from([(0, 2), (1, 3), (2, 0)]));
    }

    #[test]
    fn a_start_counts_as_a_whole_if_each_of_its_loads_does() {
        let mut start = finished(0, None, Validity::Valid);
        assert!(start.validity().counts());
        let void = Validity::Void(vec!["stalled".to_owned()]);
        let load = LoadSummary { validity: void.clone(), ..start.loads[0].clone() };
        start.loads.push(load);
        assert_eq!(start.validity(), void);
    }

    /// Slices of two variants in `turns` turns.
    pub(crate) fn slices(turns: u32) -> Vec<LoadSummary> {
        let of = |(number, turn, variant)| {
            let load = Load { number, variant, turn, beside: None, rung: None, lengths: PhaseLengths::default() };
            let mut summary = LoadSummary::not_offered(load);
            let zero = Instant(i64::from(number - 1) * 1_000_000_000);
            summary.timing = LoadTiming { zero, window: Nanos(500_000_000) };
            summary
        };
        let places = (1..=turns).flat_map(|turn| [(2 * turn - 1, turn, 0), (2 * turn, turn, 1)]);
        places.map(of).collect()
    }

    #[test]
    fn a_search_is_void_where_it_gave_up_before_anything_was_found() {
        let void = Validity::Void(vec!["the generator was the limit".to_owned()]);
        let passed = |passed| Judged {
            passed,
            readings: Vec::new(),
            reasons: Vec::new(),
            share_of_needed: 1.0,
            strain: None,
            share_to_weigh: None,
        };
        let of = |parts: &[RungPart]| -> Vec<LoadSummary> {
            let loads = slices(1).into_iter().cycle().step_by(2);
            let numbered = (1..).zip(loads).zip(parts);
            let loads = numbered.map(|((number, mut load), part)| {
                load.load = Load { number, rung: Some(Rung { level: 1.0, part: *part }), ..load.load };
                load.objective = Some(passed(Passed::Yes));
                load
            });
            loads.collect()
        };
        let validity = |loads: &[LoadSummary]| validity_of_loads(&loads.iter().collect::<Vec<_>>());
        for (last, expected) in [
            (RungPart::Bracket, Validity::Valid),
            (RungPart::Ladder, void.clone()),
            (RungPart::Confirmation, Validity::Valid),
        ] {
            let mut loads = of(&[RungPart::Bracket, RungPart::Ladder, last]);
            loads[1].validity = void.clone();
            assert_eq!(validity(&loads), Validity::Valid, "a void load that ran again");
            loads[2].validity = void.clone();
            assert_eq!(validity(&loads), expected, "{last:?}");
        }
        let mut loads = of(&[RungPart::Bracket]);
        (loads[0].validity, loads[0].objective) = (void.clone(), Some(passed(Passed::No)));
        assert_eq!(validity(&loads), void, "nothing has passed");
        for (from, counts) in [(RungPart::Bracket, false), (RungPart::Confirmation, true)] {
            let mut loads = of(&[from, RungPart::Recovery, RungPart::Recovery]);
            assert_eq!(validity(&loads), Validity::Valid, "the systems have recovered");
            loads[2].objective = Some(passed(Passed::No));
            assert_eq!(validity(&loads).counts(), counts, "{from:?}: they have not");
        }
    }

    #[test]
    fn a_void_slice_takes_its_turn_along_while_enough_are_left() {
        let mut start = FinishedStart { loads: slices(8), ..finished(0, None, Validity::Valid) };
        let void = Validity::Void(vec!["a stall".to_owned()]);
        for spoilt in [0, 3, 5, 6] {
            assert!(start.validity().counts());
            start.loads[2 * spoilt].validity = void.clone();
        }
        assert!(start.validity().counts(), "half of the turns are enough");
        assert_eq!(whole_turns(start.loads.iter()), BTreeSet::from([2, 3, 5, 8]));
        start.loads[3].validity = void;
        assert_eq!(
            start.validity(),
            Validity::Void(vec!["only 3 of 8 turns count: a stall (the first of 5 slices)".to_owned()])
        );
        for (slice, late) in [(3, "7.5 ms late"), (5, "12 ms late")] {
            start.loads[slice].validity = Validity::Void(vec![late.to_owned()]);
        }
        let reasons = "a stall (the first of 4 slices); 7.5 ms late (the first of 2 slices)";
        let expected = format!("only 2 of 8 turns count: {reasons}");
        assert_eq!(start.validity(), Validity::Void(vec![expected]));
        let failed = Validity::Failed(vec!["wrong replies".to_owned()]);
        start.loads[15].validity = failed.clone();
        assert_eq!(start.validity(), failed, "a wrong reply is no matter of a turn");
    }
}
