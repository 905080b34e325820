//! `[decide]`: the measures that answer the question, and the smallest difference that matters.

use crate::diagnostic::Fault;
use crate::faults::Faults;
use crate::node::table;
use crate::scalar::Share;
use crate::value::Fixed;
use plimsoll_model::measure::{Measure, Series, Statistic};
use plimsoll_model::study::Decision;

table! {
    /// What decides the answer.
    struct DecideTable {
        /// The measure that decides. Default: "iteration_duration.p95".
        measure: Option<Fixed<Measure>>,
        /// Several measures that decide, instead of `measure`; the first is the headline.
        measures: Option<Vec<Fixed<Measure>>>,
        /// The smallest difference that matters, as a share of the baseline. Default: "10%" for percentiles from the 90th on and maxima, "5%" for anything else.
        margin: Option<Fixed<Share>>,
    }
}

/// What decides; `table` is missing when the study says nothing.
pub(crate) fn decisions(table: Option<&DecideTable>, faults: &mut Faults) -> Option<Vec<Decision>> {
    let default = Measure::new(Series::IterationDuration, Statistic::Percentile(95.0));
    let Some(table) = table else {
        return Some(vec![with_default_margin(default)]);
    };
    let measures = match (&table.measure, &table.measures) {
        (Some(_), Some(several)) => {
            let span = several.first().map_or(&table.place, |first| &first.span);
            let fault = Fault::error(span, "`decide` has both `measure` and `measures`");
            faults.add(fault.help("put them all into `measures`, the headline first"));
            return None;
        }
        (Some(one), None) => vec![one.value.clone()],
        (None, Some(several)) if several.is_empty() => {
            faults.add(Fault::error(&table.place, "`decide.measures` is empty").help("name at least one measure"));
            return None;
        }
        (None, Some(several)) => several.iter().map(|measure| measure.value.clone()).collect(),
        (None, None) => vec![default],
    };
    let with_margin = |measure: Measure| match &table.margin {
        Some(margin) => Decision { measure, margin: margin.value.0 },
        None => with_default_margin(measure),
    };
    Some(measures.into_iter().map(with_margin).collect())
}

/// The margins of the method: what differs less hardly ever matters to anyone, and tails scatter
/// more than centres.
fn with_default_margin(measure: Measure) -> Decision {
    let tail = match measure.statistic {
        Statistic::Percentile(percentile) => percentile >= 90.0,
        statistic => statistic == Statistic::Max,
    };
    Decision { measure, margin: if tail { 0.10 } else { 0.05 } }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{faults_of, no_faults, read_table};

    fn read(text: &str) -> Vec<(String, f64)> {
        let table: DecideTable = read_table(text);
        let decisions = decisions(Some(&table), &mut no_faults()).expect("decisions");
        decisions.iter().map(|decision| (decision.measure.to_string(), decision.margin)).collect()
    }

    #[test]
    fn margins_depend_on_the_measure_unless_given() {
        assert_eq!(read(""), [("iteration_duration.p95".to_owned(), 0.1)]);
        assert_eq!(read("measure = 'iterations.rate'"), [("iterations.rate".to_owned(), 0.05)]);
        let both = read("measures = ['memory.max', 'cpu.avg']\nmargin = '2%'");
        assert_eq!(both, [("memory.max".to_owned(), 0.02), ("cpu.avg".to_owned(), 0.02)]);
    }

    #[test]
    fn wrong_measures_and_margins_are_named() {
        let faults = faults_of::<DecideTable>("measure = 'iteration_duration.p0'\nmargin = '0%'");
        assert_eq!(faults.len(), 2, "{faults:?}");
    }
}
