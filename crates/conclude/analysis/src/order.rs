//! Detects variants that ran one after the other: their difference cannot be told from a machine
//! that changed meanwhile.

use crate::input::Input;

/// True if all trials of a variant under a condition ran before, or all after, those of the
/// baseline, with at least two of each. It uses the times at which they ran, not the plan; and all that ran, whether
/// they count or not: which trials are left when others turn out void is no matter of order, and only pairs of one
/// block are compared.
#[must_use]
pub(crate) fn sequential(input: &Input, condition: usize, variant: usize) -> bool {
    if !input.plan.design.is_trials() {
        return false;
    }
    let started = |variant: usize| -> Vec<i64> {
        let of_cell = input.trials().filter(|trial| (trial.condition(), trial.variant()) == (condition, variant));
        of_cell.map(|trial| trial.start.summary.timing.started_unix_ms).collect()
    };
    one_precedes_other(&started(0), &started(variant))
}

/// True if all of one set come before all of the other, with at least two in each.
fn one_precedes_other(one: &[i64], other: &[i64]) -> bool {
    let before = |first: &[i64], second: &[i64]| first.iter().max() < second.iter().min();
    one.len() > 1 && other.len() > 1 && (before(one, other) || before(other, one))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_variants_that_never_take_turns_are_apart() {
        for (one, other, expected) in [
            (&[1, 2, 3][..], &[4, 5, 6][..], true),
            (&[4, 5, 6], &[1, 2, 3], true),
            (&[1, 4, 5], &[2, 3, 6], false),
            (&[1, 3], &[2, 4], false),
            (&[1], &[2], false),
            (&[], &[1, 2], false),
        ] {
            assert_eq!(one_precedes_other(one, other), expected, "{one:?} and {other:?}");
        }
    }
}
