//! What went wrong on the sockets that users hold: deliveries that did not come, and sockets that were lost.

use super::Context;
use super::load::{Failures, in_cells};
use crate::finding::{Finding, Severity};
use crate::measure::TrialReader;
use crate::quantity::grouped;
use plimsoll_model::measure::{Measure, Series, Statistic};
use plimsoll_model::record::{Metric, Part, SOCKETS_LOST, Subject};
use std::collections::BTreeMap;

pub(super) fn findings(context: &Context<'_>) -> Vec<Finding> {
    [lost_deliveries(context), lost_sockets(context)].into_iter().flatten().collect()
}

fn lost_deliveries(context: &Context<'_>) -> Option<Finding> {
    let mut of_cells: BTreeMap<(usize, usize), Failures> = BTreeMap::new();
    for reader in context.counted() {
        let cell = of_cells.entry(cell_of(reader)).or_default();
        let tallies = reader.load().tallies.iter();
        for (_, tally) in tallies.filter(|(subject, _)| matches!(subject, Subject::Part(Part::Delivery, _))) {
            cell.add(tally);
        }
    }
    of_cells.retain(|_, cell| cell.failed > 0);
    let lost: u64 = of_cells.values().map(|cell| cell.failed).sum();
    (lost > 0).then(|| Finding {
        severity: Severity::Caution,
        topic: "deliveries",
        sentence: format!(
            "{} deliveries to users who listen did not come. They are part of the durations: at their limit, or with the time until \
             the socket was lost on which they were to come.",
            grouped(lost as f64)
        ),
        evidence: in_cells(context, &of_cells, "deliveries").collect(),
    })
}

fn lost_sockets(context: &Context<'_>) -> Option<Finding> {
    let counter = Measure::new(Series::Custom(Metric::Counter, SOCKETS_LOST.to_owned()), Statistic::Count);
    let mut of_cells: BTreeMap<(usize, usize), f64> = BTreeMap::new();
    for reader in context.counted() {
        *of_cells.entry(cell_of(reader)).or_default() += reader.value(&counter).unwrap_or(0.0);
    }
    of_cells.retain(|_, lost| *lost > 0.0);
    let lost: f64 = of_cells.values().sum();
    let line = |((condition, variant), lost): (&(usize, usize), &f64)| {
        format!("{}, {}: {}", context.variant(*variant), context.condition(*condition), grouped(*lost))
    };
    (lost > 0.0).then(|| Finding {
        severity: Severity::Caution,
        topic: "sockets",
        sentence: format!("{} sockets of users were lost, by the server or on the way to it.", grouped(lost)),
        evidence: of_cells.iter().map(line).collect(),
    })
}

/// Condition and variant.
fn cell_of(reader: &TrialReader<'_>) -> (usize, usize) {
    (reader.trial().condition(), reader.trial().variant())
}

#[cfg(test)]
mod tests {
    use crate::analyse;
    use crate::finding::Finding;
    use crate::testing::{input, start};
    use plimsoll_model::record::{ErrorKind, METRIC_SCALE, Metric, Part, SOCKETS_LOST, Subject, Tally};

    /// The findings of this topic where the second variant loses so many of 100 deliveries and so many sockets, each time.
    fn found(topic: &str, deliveries: u64, sockets: u64) -> Option<Finding> {
        let mut input = input(3, |number| start(1.0 + f64::from(number) / 100.0));
        for start in &mut input.starts {
            let load = &mut start.loads[0];
            let is_second = load.summary.load.variant == 1;
            let mut tally = Tally::default();
            tally.service.record_n(1_000_000, 100).expect("in range");
            let mut lost = Tally::default();
            if is_second && deliveries > 0 {
                tally.errors.insert(ErrorKind::Timeout, deliveries);
            }
            if is_second && sockets > 0 {
                lost.service.record(sockets * METRIC_SCALE as u64).expect("in range");
            }
            load.tallies.insert(Subject::Part(Part::Delivery, "post".to_owned()), tally);
            load.tallies.insert(Subject::Custom(Metric::Counter, SOCKETS_LOST.to_owned()), lost);
        }
        analyse(&input).findings.into_iter().find(|finding| finding.topic == topic)
    }

    #[test]
    fn what_did_not_come_is_told_for_the_variant_that_lost_it() {
        let finding = found("deliveries", 7, 0).expect("some were lost");
        assert!(finding.sentence.starts_with("21 deliveries to users who listen did not come."), "{finding:?}");
        assert_eq!(finding.evidence.len(), 1);
        assert!(finding.evidence[0].contains("21 of 300 deliveries (7 %): timeout 21"), "{finding:?}");
        assert_eq!(found("deliveries", 0, 4), None);
    }

    #[test]
    fn lost_sockets_are_told_for_the_variant_that_lost_them() {
        let finding = found("sockets", 0, 4).expect("some were lost");
        assert!(finding.sentence.starts_with("12 sockets of users were lost"), "{finding:?}");
        assert!(finding.evidence.len() == 1 && finding.evidence[0].ends_with(": 12"), "{finding:?}");
        assert_eq!(found("sockets", 7, 0), None);
    }
}
