//! Calls the product's rules, for simulations.

use crate::noise_models::Trials;
use plimsoll_analysis::compare::Reference;
use plimsoll_analysis::decide::{Basis, ComparisonToDecide, Decision, Evidence, Floor, Outcome, decide};
use plimsoll_analysis::verdict::of_decision;
use plimsoll_model::measure::Measure;
use plimsoll_model::study::FloorRule;

/// The level of a study without looks.
pub const ALPHA: f64 = 0.05;

/// The margin of most simulations, as a share.
pub const MARGIN: f64 = 0.05;

/// The rule of the noise floor of a study that names none.
pub const FLOOR_RULE: FloorRule = FloorRule::Beyond;

/// The resolution of numbers that are kept exactly.
const EXACT: f64 = 1e-9;

/// A share on the additive scale.
#[must_use]
pub fn log(share: f64) -> f64 {
    share.ln_1p()
}

/// The evidence in the differences of pairs.
#[must_use]
pub fn evidence(differences: &[f64], alpha: f64) -> Option<Evidence> {
    Evidence::paired(differences, EXACT, alpha)
}

/// A comparison without a noise floor, as in a study with `noise_floor = false`.
#[must_use]
pub fn without_floor(differences: &[f64], margin: f64, alpha: f64) -> ComparisonToDecide {
    ComparisonToDecide {
        evidence: evidence(differences, alpha),
        margin: log(margin),
        floor: None,
        influence: None,
        hidden_by: None,
    }
}

/// A comparison with its noise floor, as in studies.
#[must_use]
pub fn with_floor(trials: &Trials, margin: f64, alpha: f64) -> ComparisonToDecide {
    ruled(trials, margin, alpha, FLOOR_RULE)
}

/// A comparison with its noise floor and `noise_floor = "strict"`.
#[must_use]
pub fn with_strict_floor(trials: &Trials, margin: f64, alpha: f64) -> ComparisonToDecide {
    ruled(trials, margin, alpha, FloorRule::Strict)
}

fn ruled(trials: &Trials, margin: f64, alpha: f64, rule: FloorRule) -> ComparisonToDecide {
    let floor = floor(&trials.floor(), &trials.differences(), Reference::Baseline, alpha);
    let floor = floor.map(|floor| Floor { rule, ..floor });
    ComparisonToDecide { floor, ..without_floor(&trials.differences(), margin, alpha) }
}

/// The noise floor beneath differences from this reference, by the rule of a study that names none.
#[must_use]
pub fn floor(of_floor: &[f64], differences: &[f64], reference: Reference, alpha: f64) -> Option<Floor> {
    let pairs: Vec<(f64, f64)> = differences.iter().copied().zip(of_floor.iter().copied()).collect();
    let [one, other] = reference.with_each_copy(&pairs);
    Some(Floor {
        evidence: evidence(of_floor, alpha)?,
        rule: FLOOR_RULE,
        widest_in_margins: reference.widest_floor(),
        with_each_copy: Some([evidence(&one, alpha)?, evidence(&other, alpha)?]),
    })
}

/// The product's decision about a comparison that is alone in its study.
///
/// # Panics
/// Never: a question has a decision.
#[must_use]
pub fn decided(to_decide: ComparisonToDecide, alpha: f64) -> Decision {
    decide(&[to_decide], alpha).remove(0)
}

/// True if the decision is a difference.
#[must_use]
pub fn is_difference(decision: &Decision) -> bool {
    matches!(decision.outcome, Outcome::Above | Outcome::Below)
}

/// True if the decision is equivalence.
#[must_use]
pub fn is_equivalent(decision: &Decision) -> bool {
    decision.outcome == Outcome::Equivalent
}

/// True if nothing is decided.
#[must_use]
pub fn is_open(decision: &Decision) -> bool {
    decision.outcome == Outcome::Open
}

/// True if `--gate` passes, for a measure of which less is better.
///
/// # Panics
/// Never: the measure's name is one.
#[must_use]
pub fn passes_gate(decision: &Decision, repeats: usize, margin: f64) -> bool {
    let measure: Measure = "iteration_duration.p95".parse().expect("a measure");
    of_decision(&measure, repeats, decision, margin).not_inferior
}

/// The repeats that an open decision asks for.
#[must_use]
pub fn needed(decision: &Decision) -> Option<usize> {
    match decision.basis {
        Basis::Unclear { needed } | Basis::OneOfMany { needed, .. } | Basis::NoiseFloor { needed, .. } => needed,
        _ => None,
    }
}
