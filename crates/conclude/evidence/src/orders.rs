//! The orders in which the product runs trials.

use plimsoll_model::factor::{Factor, Level, Role};
use plimsoll_model::plan::Plan;
use plimsoll_model::start::{Design, PhaseLengths, Start, Turns};
use plimsoll_plan::Options;
use std::time::Duration;

/// The product's plan for so many variants, each with a duplicate of the baseline.
///
/// # Panics
/// If `repeats` is beyond what a plan can have.
#[must_use]
pub fn plan(variants: usize, conditions: usize, repeats: usize, seed: u64) -> Plan {
    of(&factors(variants, conditions), repeats, seed, Vec::new())
}

/// The product's orders of the slices of baseline (0), variant (1) and duplicate (2) on so many starts: by start, then
/// slice by slice, the turn and the variant.
///
/// # Panics
/// If `starts` is beyond what a plan can have.
#[must_use]
pub fn of_slices(starts: usize, turns: Turns, seed: u64) -> Vec<Vec<(u32, usize)>> {
    let plan = designed(&factors(2, 1), starts, seed, Vec::new(), Design::Turns(turns));
    let of_start =
        |start: &Start| plimsoll_plan::loads(&plan, start).iter().map(|load| (load.turn, load.variant)).collect();
    plan.starts.iter().map(of_start).collect()
}

/// The product's orders of the pairs of slices on so many starts, side by side: by start, then pair by pair, the turn and
/// the one beside the baseline: the variant (1) or the duplicate (2).
///
/// # Panics
/// If `starts` is beyond what a plan can have.
#[must_use]
pub fn of_pairs(starts: usize, turns: Turns, seed: u64) -> Vec<Vec<(u32, usize)>> {
    let plan = designed(&factors(2, 1), starts, seed, Vec::new(), Design::SideBySide(turns));
    let of_start = |start: &Start| {
        let loads = plimsoll_plan::loads(&plan, start);
        loads.iter().filter(|load| load.variant != 0).map(|load| (load.turn, load.variant)).collect()
    };
    plan.starts.iter().map(of_start).collect()
}

/// A plan that may end at any of `looks`.
///
/// # Panics
/// If there is no look.
#[must_use]
pub fn with_looks(looks: &[u32]) -> Plan {
    let last = *looks.last().expect("a look");
    of(&factors(2, 1), last as usize, 1, looks.to_vec())
}

fn of(factors: &[Factor], repeats: usize, seed: u64, looks: Vec<u32>) -> Plan {
    designed(factors, repeats, seed, looks, Design::Trials)
}

fn designed(factors: &[Factor], repeats: usize, seed: u64, looks: Vec<u32>, design: Design) -> Plan {
    let repeats = u32::try_from(repeats).expect("fewer repeats than 2^32");
    let options = Options { repeats, seed, duplicate: true, spare_blocks: None, looks, design };
    let lengths = PhaseLengths { warmup: Duration::ZERO, measure: Duration::from_secs(2), drain: Duration::ZERO };
    plimsoll_plan::plan(factors, &options, |_| lengths)
}

/// A compared factor with so many levels, and one of conditions.
#[must_use]
pub fn factors(variants: usize, conditions: usize) -> Vec<Factor> {
    let levels = |name: &str, count: usize| (1..=count).map(|level| Level::Text(format!("{name}{level}"))).collect();
    let mut factors = vec![Factor {
        name: "version".to_owned(),
        levels: levels("v", variants),
        role: Role::Compared { baseline: 0 },
    }];
    if conditions > 1 {
        factors.push(Factor { name: "load".to_owned(), levels: levels("l", conditions), role: Role::Condition });
    }
    factors
}
