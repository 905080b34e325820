//! How a start ended for the strategy of the run: whether it counts, and whether others on the machine are why it does
//! not.

use plimsoll_model::host::CROWDED;
use plimsoll_model::objective::{Condition, Passed};
use plimsoll_model::result::{FinishedStart, LoadSummary};
use plimsoll_model::start::Validity;
use plimsoll_model::study::GeneratorSpec;
use plimsoll_model::units::Nanos;
use plimsoll_plan::{Outcome, Shown};

/// CPU that others used under the loads of a start that do not count: the mean over these loads, in cores.
pub(crate) fn others_in_void_loads(finished: &FinishedStart) -> Option<f64> {
    let bad = finished.loads.iter().filter(|load| !load.validity.counts());
    plimsoll_statistics::mean(&bad.filter_map(|load| load.others).collect::<Vec<f64>>())
}

/// The result of a load by the objective; none where it was not judged, or where the systems' replies were wrong.
pub(crate) fn shown(load: &LoadSummary) -> Option<Shown> {
    let judged = load.objective.as_ref()?;
    match (&load.validity, judged.passed) {
        _ if judged.broke(&Condition::Alive) => Some(Shown::Died),
        (Validity::Failed(_), _) => None,
        (Validity::Void(_), _) => Some(Shown::Void),
        (Validity::Valid, Passed::TooFew) => Some(Shown::TooFew { share: judged.share_of_needed }),
        (Validity::Valid, passed) => Some(Shown::Judged {
            passed: passed == Passed::Yes,
            strain: judged.strain,
            failed: judged.broke(&Condition::Errors),
            share_to_weigh: judged.share_to_weigh,
        }),
    }
}

/// The machine that generates the load, as far as it can make a load void.
pub(crate) struct Machine {
    /// The limits above which the generator was what limited a load.
    pub(crate) limits: GeneratorSpec,
    /// The number of its processors.
    pub(crate) processors: usize,
}

impl Machine {
    /// True if the generator fell behind under this load, and others used the processors meanwhile. Where they did not,
    /// the study asks more of the generator than it can do, and a quieter machine is no remedy.
    fn has_spoilt(&self, load: &LoadSummary) -> bool {
        let fell_behind = load.headroom.busiest > self.limits.max_cpu
            || load.headroom.lateness > Nanos::from(self.limits.max_lateness);
        let crowded = load.others.is_some_and(|cores| cores > CROWDED * self.processors as f64);
        matches!(load.validity, Validity::Void(_)) && fell_behind && crowded
    }
}

/// How a start ended, as the strategy of the run sees it.
pub(crate) fn outcome(finished: &FinishedStart, machine: &Machine) -> Outcome {
    let bad = finished.loads.iter().filter(|load| !load.validity.counts());
    let unsteady = finished.summary.validity.counts() && bad.clone().all(|load| load.steadiness.unsteady);
    match finished.validity() {
        Validity::Valid => Outcome::Counts,
        Validity::Void(_) if finished.loads.iter().any(|load| machine.has_spoilt(load)) => Outcome::Disturbed,
        _ if unsteady => Outcome::Unsteady,
        Validity::Void(_) | Validity::Failed(_) => Outcome::DoesNotCount,
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use plimsoll_model::result::{StartSummary, StartTiming};
    use plimsoll_model::start::{Load, PhaseLengths, Start};
    use std::time::Duration;

    /// A start that ended well, and its load, changed by `change`.
    pub(crate) fn finished(change: impl FnOnce(&mut LoadSummary)) -> FinishedStart {
        let load = Load { number: 1, variant: 0, turn: 1, beside: None, rung: None, lengths: PhaseLengths::default() };
        let mut load = LoadSummary::not_offered(load);
        change(&mut load);
        let start = Start {
            number: 1,
            block: 1,
            repeat: 1,
            attempt: 1,
            extended: false,
            position: 1,
            condition: 0,
            variants: vec![0],
        };
        let (validity, warnings, timing) = (Validity::Valid, Vec::new(), StartTiming::default());
        let summary = StartSummary { start, validity, warnings, timing, systems: Vec::new(), hosts: Vec::new() };
        FinishedStart { summary, loads: vec![load] }
    }

    /// A start with a void load, under which the generator was so late, and others used so many cores.
    fn void(late_ms: u64, others: Option<f64>) -> FinishedStart {
        finished(|load| {
            load.validity = Validity::Void(vec!["a reason".to_owned()]);
            load.headroom.lateness = Nanos(late_ms * 1_000_000);
            load.others = others;
        })
    }

    #[test]
    fn a_start_is_disturbed_where_the_generator_fell_behind_and_others_used_the_processors() {
        let limits = GeneratorSpec { threads: 1, cpus: None, max_cpu: 0.9, max_lateness: Duration::from_millis(5) };
        let machine = Machine { limits, processors: 4 };
        for (late_ms, others, expected) in [
            (9, Some(1.5), Outcome::Disturbed),
            (9, Some(0.5), Outcome::DoesNotCount),
            (9, None, Outcome::DoesNotCount),
            (1, Some(3.0), Outcome::DoesNotCount),
        ] {
            assert_eq!(outcome(&void(late_ms, others), &machine), expected, "{late_ms} ms, {others:?}");
        }
        assert_eq!(others_in_void_loads(&void(9, Some(1.5))), Some(1.5));
    }
}
