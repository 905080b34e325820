//! The effect of the order of trials on a machine that changes, and whether the analysis detects an
//! order that cannot be trusted.

use crate::noise_models::Lasting;
use crate::orders;
use crate::random::RandomStream;
use crate::replicates::{Effort, shares};
use crate::rules::{ALPHA, evidence};
use crate::section::{Check, Demand, Section, percent};
use crate::study::{Shape, one_after_the_other, study};
use plimsoll_analysis::analyse;
use plimsoll_analysis::decide::Evidence;
use plimsoll_analysis::verdict::Outcome;

/// Repeats.
const N: usize = 5;

/// Standard deviation of a trial.
const CV: f64 = 0.02;

/// The behaviour of the machine.
#[derive(Clone, Copy)]
struct Machine {
    name: &'static str,
    /// The slowdown from the first trial to the last.
    drift: f64,
    /// The autocorrelation of the noise of consecutive trials.
    autocorrelation: f64,
}

const MACHINES: [Machine; 4] = [
    Machine { name: "still", drift: 0.0, autocorrelation: 0.0 },
    Machine { name: "drifts by 6 %", drift: 0.06, autocorrelation: 0.0 },
    Machine { name: "noise lasts (0.6)", drift: 0.0, autocorrelation: 0.6 },
    Machine { name: "both", drift: 0.06, autocorrelation: 0.6 },
];

/// The order of trials, and how they are compared.
#[derive(Clone, Copy)]
enum Design {
    /// All of one, then all of the other; Welch's test.
    Sequential,
    /// In turns, always in the same order; pairs.
    FixedTurns,
    /// As the product plans, in random order in blocks; but Welch's test, which knows no blocks.
    BlocksUnpaired,
    /// The product: random order in blocks, pairs.
    Product,
}

pub(super) fn sections(effort: Effort) -> Vec<Section> {
    let designs = [
        (Design::Sequential, "AAAAABBBBB, Welch's t"),
        (Design::FixedTurns, "ABABABABAB, paired t"),
        (Design::BlocksUnpaired, "randomised blocks, Welch's t"),
        (Design::Product, "randomised blocks, paired t: the product"),
    ];
    let (mut rows, mut unflagged, mut product) = (Vec::new(), Vec::new(), Vec::new());
    for (design, words) in designs {
        let mut row = vec![words.to_owned()];
        for machine in MACHINES {
            let name = format!("order {words} {}", machine.name);
            let [differ] = shares(&name, effort, |random| [leaves_out_equality(design, machine, random)]);
            row.push(percent(differ));
            match design {
                Design::Sequential if machine.drift > 0.0 && machine.autocorrelation == 0.0 => {
                    unflagged.push((machine.name.to_owned(), differ));
                }
                Design::Product => product.push((machine.name.to_owned(), differ)),
                _ => {}
            }
        }
        rows.push(row);
    }
    let flagged = shares("order flagged", effort.divided_by(50), |random| [is_flagged(true, random)])[0];
    let [wrongly] = shares("order not flagged", effort.divided_by(50), |random| [is_flagged(false, random)]);
    let head: Vec<&str> = ["order and test"].into_iter().chain(MACHINES.map(|machine| machine.name)).collect();
    vec![
        Section::new("Order")
            .text(format!(
                "Two equal systems, n = {N}, cv {:.0} %: how often the 95 % interval excludes equality, in percent of \
                 the studies, whatever the margin.",
                CV * 100.0
            ))
            .table(&head, rows)
            .text(
                "Plimsoll plans no other order than the last one. But a bundle may hold another: trials that were moved, \
                 or blocks of which only parts count. So the analysis goes by the times at which trials ran. Whole studies \
                 with all trials of the baseline before those of the variant were given to it: their verdicts must be void \
                 and a finding must say why.",
            )
            .check(Check::one("AAAABBBB is flagged and void", Demand::AtLeast(1.0), flagged))
            .check(Check::one("randomised blocks are flagged", Demand::AtMost(0.0), wrongly))
            .check(Check { what: "product, interval excludes equality", demand: Demand::AtMost(0.055), cells: product })
            .check(Check {
                what: "false alarms of AAAAABBBBB that the flag saves from, about half",
                demand: Demand::Within(0.4, 0.6),
                cells: unflagged,
            }),
    ]
}

fn leaves_out_equality(design: Design, machine: Machine, random: &mut RandomStream) -> bool {
    let values = run(&sequence(design, random), machine, random);
    let evidence = match design {
        Design::Sequential | Design::BlocksUnpaired => Evidence::unpaired(&values[1], &values[0], 0.0),
        Design::FixedTurns | Design::Product => {
            let differences: Vec<f64> = values[1].iter().zip(&values[0]).map(|(one, other)| one - other).collect();
            evidence(&differences, ALPHA)
        }
    };
    evidence.is_some_and(|evidence| !evidence.test.interval(1.0 - ALPHA).contains(0.0))
}

/// The variant of each trial in the order of the run.
fn sequence(design: Design, random: &mut RandomStream) -> Vec<usize> {
    match design {
        Design::Sequential => [[0; N], [1; N]].concat(),
        Design::FixedTurns => [0, 1].repeat(N),
        // Without the duplicate, so that all designs have the same ten trials.
        Design::BlocksUnpaired | Design::Product => {
            let plan = orders::plan(2, 1, N, random.seed());
            plan.starts.iter().map(|start| start.variants[0]).filter(|variant| *variant < 2).collect()
        }
    }
}

/// The values of both variants, each in the order in which they ran.
fn run(sequence: &[usize], machine: Machine, random: &mut RandomStream) -> [Vec<f64>; 2] {
    let mut noise = Lasting::new(machine.autocorrelation, random);
    let mut values = [Vec::new(), Vec::new()];
    let last = (sequence.len() - 1) as f64;
    for (place, variant) in sequence.iter().enumerate() {
        values[*variant].push(machine.drift * place as f64 / last + CV * noise.next(random));
    }
    values
}

/// True if the analysis of a whole study reports sequential variants, and gives no verdict.
fn is_flagged(sequential: bool, random: &mut RandomStream) -> bool {
    let shape = Shape { variants: 2, conditions: 1, repeats: 4, seconds: 2 };
    let mut input = study(shape, random.seed(), |_| (CV * random.normal()).exp());
    if sequential {
        one_after_the_other(&mut input);
    }
    let analysis = analyse(&input);
    let void = analysis.verdicts().all(|verdict| verdict.outcome == Outcome::Void);
    let said = analysis.findings.iter().any(|finding| finding.topic == "one variant after the other");
    assert_eq!(void, said, "a verdict is void for its order exactly where a finding says so");
    said
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_designs_have_the_same_trials() {
        let mut random = RandomStream::named("sequences", 0);
        for design in [Design::Sequential, Design::FixedTurns, Design::BlocksUnpaired, Design::Product] {
            let sequence = sequence(design, &mut random);
            assert_eq!((sequence.len(), sequence.iter().sum::<usize>()), (2 * N, N));
        }
    }
}
