//! Finds, from its ticks, from when on a trial was steady, if ever.

use plimsoll_model::load::{LoadModel, LoadProfile};
use plimsoll_model::record::{Interval, TICK, TICKS, Tick};
use plimsoll_model::units::Nanos;
use plimsoll_statistics::{Drift, Growth, Steadiness, Subject, growth, steadiness};

/// The most ticks that are kept: an hour of them. Ticks of a longer trial are merged with their neighbours, so that
/// memory is bounded.
const MOST_TICKS: usize = 36_000;

/// The steadiness of a trial under constant load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Steady {
    /// It cannot be judged, for this reason.
    Unjudged(String),
    /// Steady from this long after the start of the measure phase.
    From(Nanos),
    /// Never steady, with the evidence in words.
    Never(String),
}

/// The ticks of a trial under constant load, warm-up included.
#[derive(Debug)]
pub(crate) struct Ticks {
    /// Ticks that are merged into one.
    width: i64,
    /// The first of the merged ticks, counted from the start of the measure phase.
    first: i64,
    merged: Vec<Tick>,
    /// Arrivals that were not finished at the end of each second of the measure phase; none in
    /// closed load.
    unfinished: Option<Vec<f64>>,
    /// The whole seconds of the measure phase.
    seconds: i64,
    /// The iterations that ended in those seconds, if load is open.
    ended: f64,
}

impl Ticks {
    /// The ticks for a load; none if the load changes, or if something other than time ends it.
    pub(crate) fn of(load: &LoadProfile) -> Option<Ticks> {
        if !load.is_constant() {
            return None;
        }
        let whole = |span: Nanos| (span.0 / TICK.0) as i64;
        let (warmup, measure) = (whole(load.warmup.into()), whole(load.stop.limit().into()));
        let mut width = 1;
        while (warmup / width + measure / width) as usize > MOST_TICKS {
            width *= 2;
        }
        let open = matches!(load.model, LoadModel::Open { .. });
        Some(Ticks {
            width,
            first: -(warmup / width),
            merged: vec![Tick::default(); (warmup / width + measure / width) as usize],
            unfinished: open.then(Vec::new),
            seconds: measure / TICKS as i64,
            ended: 0.0,
        })
    }

    /// Adds a second. Ticks outside warm-up and measure phase are left out.
    pub(crate) fn observe(&mut self, interval: &Interval) {
        for (tick, ticked) in (interval.second * TICKS as i64..).zip(&interval.ticks) {
            let place = usize::try_from(tick.div_euclid(self.width) - self.first).ok();
            if let Some(merged) = place.and_then(|place| self.merged.get_mut(place)) {
                merged.merge(*ticked);
            }
        }
        if let Some(unfinished) = &mut self.unfinished
            && (0..self.seconds).contains(&interval.second)
        {
            unfinished.push((interval.generator.users + interval.generator.backlog) as f64);
            self.ended += interval.ticks.iter().map(|tick| tick.iterations as f64).sum::<f64>();
        }
    }

    /// Judges the steadiness of the trial.
    pub(crate) fn judge(&self) -> Steady {
        let ticks: Vec<(u64, u64)> = self.merged.iter().map(|tick| (tick.iterations, tick.total)).collect();
        let found = match steadiness(&ticks, self.first.unsigned_abs() as usize) {
            Steadiness::NotJudged(reason) => {
                let length = self.width as f64 * TICK.seconds();
                Steady::Unjudged(format!("{reason} (a tick is {length} s)"))
            }
            Steadiness::From(ticks) => Steady::From(Nanos(ticks as u64 * self.width as u64 * TICK.0)),
            Steadiness::Never(drift) => Steady::Never(in_words(drift)),
        };
        // A longer warm-up does not help if the system cannot carry the load, and that it cannot is a valid result.
        match (found, self.growth()) {
            (Steady::Never(_), Some(growth)) => Steady::Unjudged(format!(
                "more arrives than the system carries ({:.1} % of the arrivals are left over each second), so nothing \
                 can become steady",
                growth.share * 100.0
            )),
            (found, _) => found,
        }
    }

    fn growth(&self) -> Option<Growth> {
        growth(self.unfinished.as_deref()?, self.ended)
    }
}

/// For example: `the mean duration of iterations changes by +23 % from the first half to the second (9.1 standard
/// errors)`.
fn in_words(drift: Drift) -> String {
    let what = match drift.subject {
        Subject::Durations => "the mean duration of iterations",
        Subject::Throughput => "throughput",
    };
    // Fewer standard errors are no evidence by themselves: the drift was found because it always goes one way.
    let clearly = match drift.standard_errors {
        errors if errors.is_finite() && errors >= 3.0 => format!("{errors:.1} standard errors"),
        _ => "one way all the time".to_owned(),
    };
    format!("{what} changes by {:+.1} % from the first half to the second ({clearly})", drift.change * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_model::load::{Arrivals, Overflow, Profile, Shape, Stage, Stop, Think};
    use std::time::Duration;

    fn closed(warmup: u64, measure: u64) -> LoadProfile {
        LoadProfile {
            model: LoadModel::Closed { users: Profile::constant(10.0), think: Think::Constant(Duration::ZERO) },
            warmup: Duration::from_secs(warmup),
            stop: Stop::After(Duration::from_secs(measure)),
            drain: Duration::ZERO,
        }
    }

    fn open(warmup: u64, measure: u64) -> LoadProfile {
        let rate = Profile::constant(1000.0);
        let model = LoadModel::Open { rate, arrivals: Arrivals::Constant, max_users: 100, overflow: Overflow::Wait };
        LoadProfile { model, ..closed(warmup, measure) }
    }

    /// Judges a trial in which an iteration takes about `milliseconds(t)` at second `t`, and `unfinished(s)` arrivals
    /// are unfinished at the end of second `s`.
    fn judged(load: &LoadProfile, milliseconds: impl Fn(f64) -> f64, unfinished: impl Fn(i64) -> u64) -> Steady {
        let mut ticks = Ticks::of(load).expect("constant load");
        let warmup = load.warmup.as_secs() as i64;
        let measure = load.stop.limit().as_secs() as i64;
        for second in -warmup..measure + 2 {
            let mut interval = Interval { second, ..Interval::default() };
            for (tick, ticked) in interval.ticks.iter_mut().enumerate() {
                let at = second as f64 + tick as f64 / 10.0;
                let noise = 1.0 + (((second * 10 + tick as i64) * 7919).rem_euclid(101) - 50) as f64 / 1000.0;
                let took = milliseconds(at) * noise;
                let iterations = (1000.0 / took).round() as u64;
                *ticked = Tick { iterations, total: (iterations as f64 * took * 1e6) as u64 };
            }
            interval.generator.users = unfinished(second);
            ticks.observe(&interval);
        }
        ticks.judge()
    }

    #[test]
    fn only_constant_load_that_time_ends_is_judged() {
        assert!(Ticks::of(&closed(2, 20)).is_some() && Ticks::of(&open(2, 20)).is_some());
        let stage = |target| Stage { length: Duration::from_secs(5), target, shape: Shape::Hold };
        let staged = |target| LoadModel::Closed {
            users: Profile { start: 10.0, stages: vec![stage(target)], joining: None },
            think: Think::Constant(Duration::ZERO),
        };
        assert!(Ticks::of(&LoadProfile { model: staged(20.0), ..closed(2, 20) }).is_none());
        assert!(Ticks::of(&LoadProfile { model: staged(10.0), ..closed(2, 20) }).is_some(), "it stays the same");
        let stop = Stop::Iterations { count: 9, limit: Duration::from_secs(20) };
        assert!(Ticks::of(&LoadProfile { stop, ..closed(2, 20) }).is_none());
    }

    #[test]
    fn a_steady_trial_is_steady_from_its_start() {
        assert_eq!(judged(&closed(2, 20), |_| 10.0, |_| 0), Steady::From(Nanos(0)));
    }

    #[test]
    fn a_slow_start_is_cut_as_far_as_it_reaches_into_the_measure_phase() {
        let found = judged(&closed(2, 20), |at| if at < 3.0 { 20.0 } else { 10.0 }, |_| 0);
        let Steady::From(from) = found else { panic!("{found:?}") };
        assert!((3.0..=4.0).contains(&from.seconds()), "{from:?}");
        assert_eq!(judged(&closed(4, 20), |at| if at < -1.0 { 20.0 } else { 10.0 }, |_| 0), Steady::From(Nanos(0)));
    }

    #[test]
    fn durations_that_keep_growing_are_never_steady() {
        let found = judged(&closed(2, 20), |at| 10.0 + at * 0.5, |_| 0);
        let Steady::Never(evidence) = found else { panic!("{found:?}") };
        assert!(evidence.contains('%'), "{evidence}");
    }

    #[test]
    fn a_load_above_what_the_system_carries_is_no_want_of_warm_up() {
        let growing = |at: f64| 10.0 + (at + 2.0) * 20.0;
        let found = judged(&open(2, 20), growing, |second| (second.max(0) * 100) as u64);
        let Steady::Unjudged(reason) = found else { panic!("{found:?}") };
        assert!(reason.starts_with("more arrives than the system carries"), "{reason}");
    }

    #[test]
    fn a_trial_that_is_too_short_is_not_judged() {
        assert!(matches!(judged(&closed(0, 3), |_| 10.0, |_| 0), Steady::Unjudged(_)));
    }

    #[test]
    fn memory_is_bounded_however_long_a_trial_is() {
        let ticks = Ticks::of(&closed(100_000, 1_000_000)).expect("constant load");
        assert!(ticks.merged.len() <= MOST_TICKS && ticks.width > 1);
        let found = judged(&closed(3, 7201), |at| if at < 100.0 { 20.0 } else { 10.0 }, |_| 0);
        let Steady::From(from) = found else { panic!("{found:?}") };
        assert!((100.0..=110.0).contains(&from.seconds()), "{from:?}");
    }
}
