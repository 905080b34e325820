//! `design` and `[turns]`: how the variants of a study share time.

use crate::document::{Fault, Faults, Section, Span, table};
use crate::table::database::{DatabaseTable, DatabaseTables};
use crate::table::load::LoadTable;
use crate::table::sql::SqlTable;
use crate::table::workload::WorkloadTable;
use crate::value::{Literal, PositiveTimeSpan, Problem, Scalar, TurnCount};
use plimsoll_model::factor::Level;
use plimsoll_model::start::{Design, Turns};
use plimsoll_model::workload::Protocol;
use serde_json::{Value, json};
use std::time::Duration;

table! {
    /// The turns of a start, with `design = "turns"`: in each, every variant takes one short load, a slice, in random order. With `design = "side by side"`, the baseline is loaded at the same time.
    struct TurnsTable {
        /// The turns of a start. Default: as many as give each variant the load's `duration`, 8 to 40; with `--for`, those that give the narrowest intervals in the time.
        count: Option<Literal<TurnCount>>,
        /// The measured part of a slice. Default: as long as the percentiles that decide take for their values, "300ms" to "2s"; "400ms" where the load does not tell.
        slice: Option<Literal<PositiveTimeSpan>>,
        /// Load before each slice that is not measured. Default: "100ms".
        settle: Option<Literal<PositiveTimeSpan>>,
    }
}

/// The name of a design.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DesignName {
    Trials,
    Turns,
    SideBySide,
}

impl DesignName {
    /// What variants do in this design, or cannot do: `take turns`.
    fn verb(self) -> &'static str {
        match self {
            DesignName::Trials => "run in trials",
            DesignName::Turns => "take turns",
            DesignName::SideBySide => "be loaded side by side",
        }
    }
}

impl Scalar for DesignName {
    const EXPECTED: &'static str = "\"trials\", \"turns\" or \"side by side\"";

    fn from_level(level: &Level) -> Result<Self, Problem> {
        match level {
            Level::Text(text) if text == "trials" => Ok(DesignName::Trials),
            Level::Text(text) if text == "turns" => Ok(DesignName::Turns),
            Level::Text(text) if text == "side by side" => Ok(DesignName::SideBySide),
            _ => Err(Problem::wrong::<Self>(level)),
        }
    }

    fn schema() -> Value {
        json!({ "enum": ["trials", "turns", "side by side"] })
    }
}

/// The design of a study, as far as its file says it.
#[derive(Clone, Debug)]
pub(crate) struct DesignSpec {
    name: DesignName,
    /// The place at which the study names it; none where it does not.
    pub(crate) place: Option<Span>,
    /// The reason for it, in words that follow its name.
    pub(crate) reason: String,
    /// True if variants can take turns, whether they do or not.
    pub(crate) can_take_turns: bool,
    /// The turns of a start; none where they follow from the length of the load.
    pub(crate) count: Option<u32>,
    slice: Option<Duration>,
    settle: Duration,
    /// True if a run began with it, and nothing may change it.
    pub(crate) has_begun: bool,
}

/// How long a slice is where the load does not tell how many requests there will be.
const SLICE: Duration = Duration::from_millis(400);
const SHORTEST_SLICE: Duration = Duration::from_millis(300);
/// Longer slices leave too few turns; what they are too short for is read from all slices of a start together.
const LONGEST_SLICE: Duration = Duration::from_secs(2);
const SETTLE: Duration = Duration::from_millis(100);

/// How many turns a start has if the study does not say.
const FEWEST: u32 = 8;
const MOST: u32 = 40;

/// Why one system takes no turns.
pub(crate) const NOTHING_COMPARED: &str = "the study compares nothing";

const ASKED_FOR: &str = "as the study asks for";
const IN_TURNS: &str = "the default: what the machine does meanwhile drops out of the comparison";

impl DesignSpec {
    /// The design for a measure phase of this length, in which the percentiles that decide take the longest for their
    /// values: `needed`, if the load tells.
    pub(crate) fn of(&self, measure: Duration, needed: Option<Duration>) -> Design {
        if self.name == DesignName::Trials {
            return Design::Trials;
        }
        let by_load = || needed.map_or(SLICE, |needed| needed.clamp(SHORTEST_SLICE, LONGEST_SLICE));
        let slice = self.slice.unwrap_or_else(by_load);
        let as_long = (measure.as_secs_f64() / slice.as_secs_f64()).ceil() as u32;
        let count = self.count.unwrap_or_else(|| as_long.clamp(FEWEST, MOST));
        let turns = Turns { count, settle: self.settle, slice };
        if self.name == DesignName::SideBySide { Design::SideBySide(turns) } else { Design::Turns(turns) }
    }

    /// True if each start has one variant.
    pub(crate) fn is_trials(&self) -> bool {
        self.name == DesignName::Trials
    }

    /// Refuses to load variants side by side in a search for the capacity: what one carries would depend on what the other
    /// is offered.
    pub(crate) fn check_search(&self, faults: &mut Faults) {
        if let (DesignName::SideBySide, Some(place)) = (self.name, &self.place) {
            let fault = Fault::error(place, "the capacity of variants cannot be searched for side by side");
            faults.add(fault.help("use `design = \"turns\"`, or leave `design` out"));
        }
    }

    /// True if the study names its design.
    pub(crate) fn is_named(&self) -> bool {
        self.place.is_some()
    }

    /// The design with which a run began, where the study does not name one.
    pub(crate) fn begun_as(&self, design: Design) -> DesignSpec {
        let (name, turns) = match design {
            Design::Trials => (DesignName::Trials, None),
            Design::Turns(turns) => (DesignName::Turns, Some(turns)),
            Design::SideBySide(turns) => (DesignName::SideBySide, Some(turns)),
        };
        let reason = "as the run began".to_owned();
        let settle = turns.map_or(self.settle, |turns| turns.settle);
        let (count, slice) = (turns.map(|turns| turns.count), turns.map(|turns| turns.slice));
        DesignSpec { name, place: None, reason, count, slice, settle, has_begun: true, ..*self }
    }
}

/// Reads the design. Where the study names none it is turns, unless they are impossible or unwise for the reasons given.
pub(crate) fn design(
    name: Option<&Section<Literal<DesignName>>>,
    turns: Option<&Section<TurnsTable>>,
    (impossible, unwise): (Option<&str>, Option<&str>),
    faults: &mut Faults,
) -> Option<DesignSpec> {
    let why_no_turns = impossible.or(unwise);
    let named = match name {
        Some(name) => Some(name.valid()?),
        None => None,
    };
    let table = match turns {
        Some(table) => Some(table.valid()?),
        None => None,
    };
    let (name, reason) = match (named, why_no_turns) {
        (Some(named), _) => (named.value, ASKED_FOR.to_owned()),
        (None, None) => (DesignName::Turns, IN_TURNS.to_owned()),
        (None, Some(why)) => (DesignName::Trials, format!("variants do not take turns: {why}")),
    };
    if let (Some(table), DesignName::Trials) = (table, name) {
        let fault =
            Fault::error(&table.place, "`[turns]` is for a study whose variants are loaded in turns or side by side");
        faults.add(match why_no_turns.filter(|_| named.is_none()) {
            Some(why) => fault.help(format!("leave the table out: {why}")),
            None => fault.help("write `design = \"turns\"`, or leave the table out"),
        });
    }
    refuse_impossible(named, impossible, faults);
    let span = |value: Option<&Literal<PositiveTimeSpan>>| value.map(|value| value.value.0);
    Some(DesignSpec {
        name,
        can_take_turns: impossible.is_none(),
        place: named.map(|named| named.span.clone()),
        reason,
        count: table.and_then(|table| table.count.as_ref()).map(|count| count.value.u32()),
        slice: span(table.and_then(|table| table.slice.as_ref())),
        settle: span(table.and_then(|table| table.settle.as_ref())).unwrap_or(SETTLE),
        has_begun: false,
    })
}

/// Why the variants of a study cannot take turns, whatever it asks for: slices are loads of equal length at an equal
/// level, on systems that are alive at the same time.
pub(crate) fn why_impossible(load: &LoadTable, workload: &WorkloadTable) -> Option<&'static str> {
    load.why_not_in_slices().or_else(|| {
        let is_storage = workload.protocol() == Protocol::Storage;
        is_storage.then_some("a storage workload makes its objects anew for each load")
    })
}

/// Why turns are not the default for a workload, although a study may ask for them. Servers that the run starts have data
/// of their own each; what TPC-C leaves to the next slice there is next to nothing (bench/RESULTS.md). A server that runs
/// already is restored before each variant starts, while the others are alive.
pub(crate) fn why_unwise(workload: &WorkloadTable, databases: &DatabaseTables) -> Option<&'static str> {
    let running = || databases.0.iter().filter_map(|(.., one)| one.as_ref()).filter(|one| one.started().is_none());
    if workload.protocol() == Protocol::Sql && running().next().is_some() {
        return Some("what one load leaves to a database that runs already, the next one may pay for");
    }
    running()
        .any(DatabaseTable::is_restored)
        .then_some("a database that runs already would be restored under those that use it")
}

/// Why turns are not the default where users wait as TPC-C has it, some 20 s from one transaction to the next.
pub(crate) fn why_too_rare(workload: &WorkloadTable) -> Option<&'static str> {
    let waits = workload.sql().is_some_and(SqlTable::has_waits);
    waits.then_some("users wait as TPC-C has it, so that a slice would have next to no requests")
}

/// Fails where a study asks for slices that are impossible.
fn refuse_impossible(named: Option<&Literal<DesignName>>, why: Option<&str>, faults: &mut Faults) {
    if let (Some(named), Some(why)) = (named.filter(|named| named.value != DesignName::Trials), why) {
        let fault = Fault::error(&named.span, format!("variants cannot {}: {why}", named.value.verb()));
        faults.add(fault.help("use `design = \"trials\"`, or leave `design` out"));
    }
}

/// A port that two variants would listen on at the same time leaves trials, or fails where the study asks for turns.
pub(crate) fn respect_fixed_port(design: &mut DesignSpec, system: &str, port: u16, faults: &mut Faults) {
    let why = format!("`{system}` listens on port {port} in all of them, which would be alive at the same time");
    fall_back_to_trials(design, &why, "let each have a port of its own (`{port}`)", faults);
}

/// So does a database whose servers serve one copy of the data.
pub(crate) fn respect_shared_data(design: &mut DesignSpec, database: &str, faults: &mut Faults) {
    let why = format!("with `snapshot = \"template\"` the servers of `{database}` share one folder of data");
    fall_back_to_trials(design, &why, "leave `snapshot` out, so that each has a copy", faults);
}

/// So does a server that runs already and that each variant restores in its own way: all would work with what the last one
/// made of it.
pub(crate) fn respect_restored_data(design: &mut DesignSpec, database: &str, faults: &mut Faults) {
    let why = format!("`restore` of `{database}` depends on a compared factor, and all of them share that server");
    fall_back_to_trials(design, &why, "let `url` name a server for each", faults);
}

/// Leaves trials where the study names no design; refuses its design otherwise, with a remedy.
fn fall_back_to_trials(design: &mut DesignSpec, why: &str, remedy: &str, faults: &mut Faults) {
    design.can_take_turns = false;
    if design.name == DesignName::Trials {
        return;
    }
    let Some(place) = &design.place else {
        design.name = DesignName::Trials;
        design.reason = format!("variants do not take turns: {why}");
        return;
    };
    let fault = Fault::error(place, format!("variants cannot {}: {why}", design.name.verb()));
    faults.add(fault.help(format!("{remedy}, or use `design = \"trials\"`")));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn in_turns() -> DesignSpec {
        let reason = IN_TURNS.to_owned();
        let (name, place, can_take_turns) = (DesignName::Turns, None, true);
        DesignSpec { name, place, reason, can_take_turns, count: None, slice: None, settle: SETTLE, has_begun: false }
    }

    #[test]
    fn turns_give_each_variant_as_much_time_as_a_trial() {
        let given = |count| DesignSpec { count, ..in_turns() };
        let counts = [(None, 1), (None, 6), (None, 60), (Some(5), 60)]
            .map(|(count, seconds)| given(count).of(Duration::from_secs(seconds), None).turns().expect("turns").count);
        assert_eq!(counts, [8, 15, 40, 5]);
        assert_eq!(DesignSpec { name: DesignName::Trials, ..in_turns() }.of(SLICE, None), Design::Trials);
    }

    #[test]
    fn a_slice_is_as_long_as_its_percentile_needs() {
        let slice = |given, needed: Option<u64>| {
            let design = DesignSpec { slice: given, ..in_turns() };
            let design = design.of(Duration::from_secs(10), needed.map(Duration::from_millis));
            design.turns().expect("turns").slice
        };
        let millis = Duration::from_millis;
        assert_eq!(
            [None, Some(20), Some(700), Some(9000)].map(|needed| slice(None, needed)),
            [400, 300, 700, 2000].map(millis)
        );
        assert_eq!(slice(Some(millis(150)), Some(700)), millis(150));
    }

    #[test]
    fn a_run_that_goes_on_has_the_design_with_which_it_began() {
        let turns = Turns { count: 9, settle: Duration::from_millis(50), slice: Duration::from_millis(250) };
        for design in [Design::Trials, Design::Turns(turns), Design::SideBySide(turns)] {
            assert_eq!(in_turns().begun_as(design).of(Duration::from_secs(60), None), design);
        }
    }
}
