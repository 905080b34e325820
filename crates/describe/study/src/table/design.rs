//! `design` and `[turns]`: how the variants of a study share time.

use crate::document::{Fault, Faults, Section, Span, table};
use crate::table::load::LoadTable;
use crate::table::workload::WorkloadTable;
use crate::value::{Literal, PositiveTimeSpan, Problem, Scalar, TurnCount};
use plimsoll_model::factor::Level;
use plimsoll_model::start::{Design, Turns};
use plimsoll_model::workload::Protocol;
use serde_json::{Value, json};
use std::time::Duration;

table! {
    /// The turns of a start, with `design = "turns"`: in each, every variant takes one short load, a slice, in random order.
    struct TurnsTable {
        /// The turns of a start. Default: as many as give each variant the load's `duration`, 8 to 40.
        count: Option<Literal<TurnCount>>,
        /// The measured part of a slice: as long as a few hundred requests take, so that a slice has the percentile that decides. Default: "400ms".
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
}

impl Scalar for DesignName {
    const EXPECTED: &'static str = "\"trials\" or \"turns\"";

    fn from_level(level: &Level) -> Result<Self, Problem> {
        match level {
            Level::Text(text) if text == "trials" => Ok(DesignName::Trials),
            Level::Text(text) if text == "turns" => Ok(DesignName::Turns),
            _ => Err(Problem::wrong::<Self>(level)),
        }
    }

    fn schema() -> Value {
        json!({ "enum": ["trials", "turns"] })
    }
}

/// The design of a study, as far as its file says it.
#[derive(Clone, Debug)]
pub(crate) enum DesignSpec {
    Trials,
    Turns {
        count: Option<u32>,
        slice: Duration,
        settle: Duration,
        /// Where the study says so.
        place: Span,
    },
}

const SLICE: Duration = Duration::from_millis(400);
const SETTLE: Duration = Duration::from_millis(100);

/// How many turns a start has if the study does not say.
const FEWEST: u32 = 8;
const MOST: u32 = 40;

impl DesignSpec {
    /// The design for a load of this length.
    pub(crate) fn of(&self, measure: Duration) -> Design {
        match self {
            DesignSpec::Trials => Design::Trials,
            DesignSpec::Turns { count, slice, settle, .. } => {
                let as_long = (measure.as_secs_f64() / slice.as_secs_f64()).ceil() as u32;
                let count = count.unwrap_or_else(|| as_long.clamp(FEWEST, MOST));
                Design::Turns(Turns { count, settle: *settle, slice: *slice })
            }
        }
    }
}

/// Reads the design.
pub(crate) fn design(
    name: Option<&Section<Literal<DesignName>>>,
    turns: Option<&Section<TurnsTable>>,
    faults: &mut Faults,
) -> Option<DesignSpec> {
    let name = match name {
        Some(name) => Some(name.valid()?),
        None => None,
    };
    let table = match turns {
        Some(table) => Some(table.valid()?),
        None => None,
    };
    let Some(name) = name.filter(|name| name.value == DesignName::Turns) else {
        if let Some(table) = table {
            let fault = Fault::error(&table.place, "`[turns]` is for a study whose variants take turns");
            faults.add(fault.help("write `design = \"turns\"`, or leave the table out"));
        }
        return Some(DesignSpec::Trials);
    };
    let span = |value: Option<&Literal<PositiveTimeSpan>>, default| value.map_or(default, |value| value.value.0);
    Some(DesignSpec::Turns {
        count: table.and_then(|table| table.count.as_ref()).map(|count| count.value.u32()),
        slice: span(table.and_then(|table| table.slice.as_ref()), SLICE),
        settle: span(table.and_then(|table| table.settle.as_ref()), SETTLE),
        place: name.span.clone(),
    })
}

/// Slices are loads of equal length at an equal level, on systems that are alive side by side.
pub(crate) fn check(design: &DesignSpec, load: &LoadTable, workload: &WorkloadTable, faults: &mut Faults) {
    let DesignSpec::Turns { place, .. } = design else { return };
    if let Some(what) = load.why_not_in_slices() {
        let fault = Fault::error(place, format!("variants cannot take turns: {what}"));
        faults.add(fault.help("use `design = \"trials\"`, or a load that is the same all the time"));
    }
    if workload.protocol() == Protocol::Storage {
        let fault =
            Fault::error(place, "variants cannot take turns: a storage workload makes its objects anew for each load");
        faults.add(fault.help("use `design = \"trials\"`"));
    }
}

/// Fails for a port that two variants would listen on at the same time.
pub(crate) fn refuse_fixed_port(design: &DesignSpec, system: &str, port: u16, faults: &mut Faults) {
    let DesignSpec::Turns { place, .. } = design else { return };
    let fault = Fault::error(
        place,
        format!(
            "variants cannot take turns: `{system}` listens on port {port} in all of them, which are alive at the same time"
        ),
    );
    faults.add(fault.help("let each have a port of its own (`{port}`), or use `design = \"trials\"`"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_give_each_variant_as_much_time_as_a_trial() {
        let given = |count| DesignSpec::Turns { count, slice: SLICE, settle: SETTLE, place: 0..0 };
        let counts = [(None, 1), (None, 6), (None, 60), (Some(5), 60)]
            .map(|(count, seconds)| given(count).of(Duration::from_secs(seconds)).turns().expect("turns").count);
        assert_eq!(counts, [8, 15, 40, 5]);
        assert_eq!(DesignSpec::Trials.of(SLICE), Design::Trials);
    }
}
