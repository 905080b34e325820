//! Verdicts: what the interval of a ratio says against the margin that was declared before.

use crate::OrReason;
use crate::compare::Ratio;
use crate::quantity::{changes, percent};
use plimsoll_model::measure::Direction;
use std::fmt;

/// What can be said of a variant against the baseline.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// In a word.
    pub outcome: Outcome,
    /// The smallest difference that matters, as a share.
    pub margin: f64,
    /// Why.
    pub reason: String,
}

/// A verdict in a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// The variant is worse than the baseline.
    Worse,
    /// It is better.
    Better,
    /// If they differ at all, then by less than the margin.
    Equivalent,
    /// The data do not decide.
    Inconclusive,
    /// There are no data to decide with.
    Void,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Outcome::Worse => "worse",
            Outcome::Better => "better",
            Outcome::Equivalent => "equivalent",
            Outcome::Inconclusive => "inconclusive",
            Outcome::Void => "void",
        })
    }
}

/// The verdict on `ratio`. An interval inside the margin is equivalent even where it leaves out 1:
/// the difference can be measured, and does not matter.
#[must_use]
pub fn verdict(ratio: &OrReason<Ratio>, direction: Direction, margin: f64) -> Verdict {
    let (outcome, reason) = match ratio {
        Err(reason) => (Outcome::Void, reason.clone()),
        Ok(ratio) => match ratio.interval {
            Err(ref reason) => (Outcome::Inconclusive, reason.clone()),
            Ok(interval) => judge(interval.low, interval.high, direction, margin),
        },
    };
    Verdict { outcome, margin, reason }
}

fn judge(low: f64, high: f64, direction: Direction, margin: f64) -> (Outcome, String) {
    let most = 1.0 + margin;
    // "Worse" is a ratio above 1 where less is better, and below 1 where more is.
    let (above, below) = match direction {
        Direction::Lower => (Outcome::Worse, Outcome::Better),
        Direction::Higher => (Outcome::Better, Outcome::Worse),
    };
    let margin = percent(margin);
    if 1.0 / most <= low && high <= most {
        let measurable = if low > 1.0 || high < 1.0 { "; a difference is there, and smaller than that" } else { "" };
        return (Outcome::Equivalent, format!("the interval lies within the margin of {margin}{measurable}"));
    }
    let size = |beyond: bool| {
        let size = if beyond { "and it is larger than" } else { "but it may be smaller than" };
        format!("a difference is shown, {size} the margin of {margin}")
    };
    if low > 1.0 {
        (above, size(low > most))
    } else if high < 1.0 {
        (below, size(high < 1.0 / most))
    } else {
        let [low, high] = changes(low, high);
        let reach = format!("the interval reaches from {low} to {high}");
        (Outcome::Inconclusive, format!("{reach}: neither a difference nor its absence within {margin} is shown"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::Interval;

    fn of(low: f64, high: f64, direction: Direction) -> Outcome {
        let interval = Interval { low, high };
        let ratio = Ratio { value: (low * high).sqrt(), n: 5, range: interval, interval: Ok(interval) };
        verdict(&Ok(ratio), direction, 0.05).outcome
    }

    #[test]
    fn the_interval_decides_against_the_margin() {
        use Direction::{Higher, Lower};
        for (low, high, direction, expected) in [
            (0.97, 1.03, Lower, Outcome::Equivalent),
            (1.01, 1.04, Lower, Outcome::Equivalent),
            (1.01, 1.08, Lower, Outcome::Worse),
            (1.06, 1.08, Lower, Outcome::Worse),
            (0.90, 0.94, Lower, Outcome::Better),
            (0.90, 0.94, Higher, Outcome::Worse),
            (1.06, 1.20, Higher, Outcome::Better),
            (0.94, 1.02, Lower, Outcome::Inconclusive),
            (0.80, 1.20, Higher, Outcome::Inconclusive),
        ] {
            assert_eq!(of(low, high, direction), expected, "{low} to {high}, {direction:?}");
        }
    }

    #[test]
    fn without_an_interval_there_is_no_verdict() {
        let range = Interval { low: 2.0, high: 3.0 };
        let ratio = Ratio { value: 2.4, n: 2, range, interval: Err("2 repeats".to_owned()) };
        let undecided = verdict(&Ok(ratio), Direction::Lower, 0.05);
        assert_eq!((undecided.outcome, undecided.reason.as_str()), (Outcome::Inconclusive, "2 repeats"));
        let void = verdict(&Err("no pair of trials is left".to_owned()), Direction::Lower, 0.05);
        assert_eq!(void.outcome, Outcome::Void);
    }
}
