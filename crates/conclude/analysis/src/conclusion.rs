//! The conclusion of a study as one value: for exit codes, and for runs that end once every verdict
//! is reached.

use crate::analysis::Analysis;
use crate::verdict::{Outcome, Verdict};
use plimsoll_model::look::Look;
use std::collections::BTreeMap;

/// The overall result of a set of verdicts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conclusion {
    /// Every verdict is better or equivalent; or nothing is compared, and what is described has its values.
    Fine,
    /// A variant is worse.
    Worse,
    /// No variant is shown to be worse, but a verdict is inconclusive or void, or a value of what is described is
    /// missing.
    Open,
}

/// The goal of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Goal {
    /// A verdict on each comparison.
    Verdicts,
    /// The gate: proof that no variant is worse, where a verdict need not be reached.
    Gate,
}

impl Goal {
    /// True if this verdict passes the gate, and nothing else is asked for.
    fn passes(self, verdict: &Verdict) -> bool {
        self == Goal::Gate && verdict.not_inferior
    }

    /// True if a comparison with this verdict takes no more repeats.
    #[must_use]
    pub fn is_reached(self, verdict: &Verdict) -> bool {
        self.passes(verdict) || !matches!(verdict.outcome, Outcome::Inconclusive | Outcome::Void)
    }
}

/// The worst result among `verdicts`.
#[must_use]
pub fn conclusion<'a>(verdicts: impl IntoIterator<Item = &'a Verdict>) -> Conclusion {
    verdicts.into_iter().fold(Conclusion::Fine, |so_far, verdict| match (so_far, verdict.outcome) {
        (Conclusion::Worse, _) | (_, Outcome::Worse) => Conclusion::Worse,
        (Conclusion::Open, _) | (_, Outcome::Inconclusive | Outcome::Void) => Conclusion::Open,
        (Conclusion::Fine, Outcome::Better | Outcome::Equivalent) => Conclusion::Fine,
    })
}

impl Analysis {
    /// The verdicts, on each comparison that decides.
    pub fn verdicts(&self) -> impl Iterator<Item = &Verdict> + Clone {
        self.comparisons.iter().filter_map(|comparison| comparison.verdict.as_ref())
    }

    /// The overall result of the verdicts, or of what is described.
    #[must_use]
    pub fn conclusion(&self) -> Conclusion {
        if self.lacks_a_value() { Conclusion::Open } else { conclusion(self.verdicts()) }
    }

    /// A look after `repeats` repeats. Whether a variant passes the gate does not depend on other comparisons, so it is for good.
    #[must_use]
    pub fn look(&self, repeats: u32, goal: Goal) -> Look {
        let decided = self.verdicts().next().is_some() && self.verdicts().all(|verdict| goal.is_reached(verdict));
        let mut under: BTreeMap<usize, bool> = BTreeMap::new();
        for one in &self.comparisons {
            if let Some(verdict) = &one.verdict {
                *under.entry(one.condition).or_insert(true) &= goal.passes(verdict) || verdict.for_good;
            }
        }
        let for_good = under.into_iter().filter(|(_, for_good)| *for_good && !decided);
        Look { repeats, decided, conditions: for_good.map(|(condition, _)| condition).collect() }
    }

    /// The verdicts that stand over a noise floor in doubt, unless the rule is strict, in words that call the floor `it`:
    /// differences beyond it, and equivalence if the study has any there.
    #[must_use]
    pub fn stands_over_floor(&self, it: &str) -> String {
        let equivalence = match self.verdicts().any(|verdict| verdict.holds_despite_floor) {
            true => ", and equivalence with each copy of the baseline,",
            false => "",
        };
        format!("differences that lie wholly beyond {it}{equivalence}")
    }

    /// True if every variant is shown to be non-inferior to the baseline by the margin, in each
    /// measure that decides.
    #[must_use]
    pub fn passes_gate(&self) -> bool {
        self.verdicts().all(|verdict| verdict.not_inferior)
    }
}

#[cfg(test)]
mod tests {
    use super::{Goal, Outcome};
    use crate::analyse;
    use crate::input::Input;
    use crate::testing::{input, start};
    use plimsoll_model::factor::Assignment;

    /// Five repeats under each of two conditions. The variant takes twice as long; under the second condition its values
    /// differ by `noise` from repeat to repeat.
    fn under_two_conditions(noise: f64) -> Input {
        let mut input = input(10, |number| {
            let noise = if number > 10 { noise * f64::from(number % 4) } else { 0.0 };
            start(if number % 2 == 1 { 1.0 } else { 2.0 + noise })
        });
        input.plan.conditions = vec![Assignment::default(); 2];
        input.plan.lengths = vec![input.plan.lengths[0]; 2];
        input.plan.repeats = 5;
        let starts = input.starts.iter_mut().map(|start| &mut start.summary.start);
        for start in input.plan.starts.iter_mut().chain(starts).filter(|start| start.repeat > 5) {
            start.condition = 1;
            start.repeat -= 5;
        }
        input
    }

    #[test]
    fn a_look_tells_what_is_decided() {
        let look = analyse(&under_two_conditions(0.0)).look(5, Goal::Verdicts);
        assert_eq!((look.repeats, look.decided, look.conditions), (5, true, vec![]));
        let look = analyse(&under_two_conditions(20.0)).look(5, Goal::Verdicts);
        assert_eq!((look.decided, look.conditions), (false, vec![0]));
    }

    #[test]
    fn the_gate_takes_no_verdict_where_nothing_can_be_worse() {
        // The variant is faster by 0 to 30 %, so that it may be equivalent or better.
        let mut input =
            input(5, |number| start(if number % 2 == 1 { 1.0 } else { 1.0 - 0.1 * f64::from(number / 2 % 4) }));
        input.facts.decide.truncate(1);
        let analysis = analyse(&input);
        let verdict = analysis.verdicts().next().expect("a verdict");
        assert_eq!((verdict.outcome, verdict.not_inferior), (Outcome::Inconclusive, true), "{}", verdict.reason);
        assert!(!analysis.look(5, Goal::Verdicts).decided);
        assert!(analysis.look(5, Goal::Gate).decided);
    }
}
