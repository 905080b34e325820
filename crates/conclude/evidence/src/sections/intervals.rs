//! Coverage of intervals, verdicts on equal systems, and verdicts on a difference as large as the
//! margin: under five noise models, for three to ten repeats.

use crate::noise_models::{NoiseModel, Trials};
use crate::replicates::{Effort, Share, shares};
use crate::rules::{ALPHA, MARGIN, decided, is_equivalent, log, passes_gate, with_floor, without_floor};
use crate::section::{Check, Demand, Section, Table, percent};
use plimsoll_analysis::decide::Outcome;

/// The repeats that are looked at.
pub(crate) const REPEATS: [usize; 6] = [3, 4, 5, 6, 8, 10];

/// Noise so wide that only chance decides about equal systems.
const WIDE_NOISE: f64 = 0.05;

/// Noise so small that only claims about the margin decide.
const NARROW_NOISE: f64 = 0.005;

struct Cell {
    noise_model: NoiseModel,
    n: usize,
    covered: Share,
    worse: Share,
    better: Share,
    either: Share,
    either_over_floor: Share,
    equivalent_at_margin: Share,
    gate_at_margin: Share,
}

pub(super) fn sections(effort: Effort) -> Vec<Section> {
    let cells: Vec<Cell> =
        NoiseModel::ALL.into_iter().flat_map(|noise_model| REPEATS.map(|n| cell(noise_model, n, effort))).collect();
    vec![coverage(&cells).with(one_sided(effort)), equal_systems(&cells), at_the_margin(&cells)]
}

fn cell(noise_model: NoiseModel, n: usize, effort: Effort) -> Cell {
    let name = format!("intervals {} {n}", noise_model.name());
    let [covered, worse, better, either, either_over_floor, equivalent_at_margin, gate_at_margin] =
        shares(&name, effort, |random| study(&noise_model.trials(n, random)));
    Cell { noise_model, n, covered, worse, better, either, either_over_floor, equivalent_at_margin, gate_at_margin }
}

fn study(trials: &Trials) -> [bool; 7] {
    let equal = trials.scaled(WIDE_NOISE, 0.0);
    let alone = decided(without_floor(&equal.differences(), MARGIN, ALPHA), ALPHA);
    let blocked_by_floor = decided(with_floor(&equal, MARGIN, ALPHA), ALPHA).outcome;
    let apart = trials.scaled(NARROW_NOISE, log(MARGIN));
    let at_margin = decided(without_floor(&apart.differences(), MARGIN, ALPHA), ALPHA);
    let (worse, better) = (alone.outcome == Outcome::Above, alone.outcome == Outcome::Below);
    [
        alone.interval.is_some_and(|interval| interval.contains(0.0)),
        worse,
        better,
        worse || better,
        matches!(blocked_by_floor, Outcome::Above | Outcome::Below),
        is_equivalent(&at_margin),
        passes_gate(&at_margin, trials.blocks.len(), MARGIN),
    ]
}

/// One row for each number of repeats, one column for each noise model.
fn table(section: Section, cells: &[Cell], show: impl Fn(&Cell) -> String) -> Section {
    let head: Vec<&str> = ["n"].into_iter().chain(NoiseModel::ALL.map(NoiseModel::name)).collect();
    let row = |n: usize| {
        let of_row = cells.iter().filter(|cell| cell.n == n).map(&show);
        [n.to_string()].into_iter().chain(of_row).collect()
    };
    section.table(&head, REPEATS.into_iter().map(row).collect())
}

fn check(what: &'static str, demand: Demand, cells: &[Cell], of: impl Fn(&Cell) -> Share) -> Check {
    let cells = cells.iter().map(|cell| (format!("n = {}, {}", cell.n, cell.noise_model.name()), of(cell))).collect();
    Check { what, demand, cells }
}

fn coverage(cells: &[Cell]) -> Section {
    let section = Section::new("Coverage").text(
        "How often the 95 % interval of a ratio holds the true ratio, in percent of the studies. *Normal*: each trial by \
         itself. *Skewed*: exponential, so that a few trials are very slow. *Outliers*: one trial in ten is five times as \
         noisy. *Blocks differ*: by three times as much as the trials in one. *Drift*: the machine drifts by three \
         standard deviations over the study, and its noise lasts (AR(1), 0.6 from one trial to the next), in the \
         randomised order that the product plans.",
    );
    table(section, cells, |cell| percent(cell.covered))
        .text(
            "Intervals that hold more than 95 % are wider than need be: with skewed or outlying noise in both variants, \
             differences have long tails on both sides, and Student's t pays for that with width.",
        )
        .text(
            "What the interval does not promise: where only one of the two has skewed noise, differences are skewed as \
             well, and it holds the truth less often than 95 %. The extreme is a baseline without any noise:",
        )
        .check(check("the 95 % interval holds the true ratio", Demand::Within(0.94, 0.99), cells, |cell| cell.covered))
}

/// Noise of one shape in the variant and of another in the baseline, for which the interval is not
/// designed.
fn one_sided(effort: Effort) -> Table {
    let effort = effort.divided_by(4);
    let rows = REPEATS.map(|n| {
        let [both, alone] = shares(&format!("one-sided {n}"), effort, |random| {
            let skewed: Vec<f64> = (0..n).map(|_| random.exponential() - 1.0).collect();
            let differences: Vec<f64> = skewed.iter().map(|skewed| skewed - random.normal()).collect();
            [differences, skewed].map(|differences| {
                let decision = decided(without_floor(&differences, MARGIN, ALPHA), ALPHA);
                decision.interval.is_some_and(|interval| interval.contains(0.0))
            })
        });
        vec![n.to_string(), percent(both), percent(alone)]
    });
    Table {
        head: ["n", "variant skewed, baseline normal", "variant skewed, baseline without noise"]
            .map(str::to_owned)
            .into(),
        rows: rows.into(),
    }
}

fn equal_systems(cells: &[Cell]) -> Section {
    let section = Section::new("Two equal systems").text(
        "How often two equal systems are called different (worse or better), in percent of the studies, by one comparison \
         that stands alone; cv 5 %. Behind it in parentheses: the same with the noise floor that every study has unless it \
         says otherwise.",
    );
    table(section, cells, |cell| format!("{} ({})", percent(cell.either), percent(cell.either_over_floor)))
        .text("From n = 7 on ranks have a say as well, which takes some of these back.")
        .check(check("worse or better", Demand::AtMost(0.055), cells, |cell| cell.either))
        .check(check("worse", Demand::AtMost(0.03), cells, |cell| cell.worse))
        .check(check("better", Demand::AtMost(0.03), cells, |cell| cell.better))
        .check(check("worse or better, with the noise floor", Demand::AtMost(0.055), cells, |cell| {
            cell.either_over_floor
        }))
}

fn at_the_margin(cells: &[Cell]) -> Section {
    let section = Section::new("A difference as large as the margin").text(
        "How often a variant that is slower by exactly the margin is called equivalent, and how often `--gate` lets it \
         pass (in parentheses), in percent of the studies; cv 0.5 %, so that nothing but this claim decides.",
    );
    table(section, cells, |cell| format!("{} ({})", percent(cell.equivalent_at_margin), percent(cell.gate_at_margin)))
        .check(check("called equivalent", Demand::AtMost(0.03), cells, |cell| cell.equivalent_at_margin))
        .check(check("passed by the gate", Demand::AtMost(0.03), cells, |cell| cell.gate_at_margin))
}
