//! Tests whether the number of repeats that an open verdict requests decides the study.

use crate::noise_models::{NoiseModel, Trials};
use crate::page::of_all;
use crate::random::RandomStream;
use crate::replicates::{Effort, Share, values};
use crate::rules::{ALPHA, MARGIN, decided, is_open, needed, with_floor};
use crate::section::{Check, Demand, Section, percent};

/// Larger forecasts are not followed up.
const MAX_FOLLOWED_UP: usize = 150;

/// Fewest open studies of a cell for its share to mean something.
const MIN_OPEN_STUDIES: u64 = 100;

/// The continuation of an open study.
#[derive(Clone, Copy)]
struct FollowUp {
    open: bool,
    /// The repeats that it requests.
    repeats_requested: Option<usize>,
    /// True if those repeats decide the study; none where it is not followed up.
    decided: Option<bool>,
}

pub(super) fn sections(effort: Effort) -> Vec<Section> {
    let effort = effort.divided_by(4);
    let (mut rows, mut cells) = (Vec::new(), Vec::new());
    for n in [3, 5] {
        for (cv, ratio) in [
            (0.01, 1.0),
            (0.01, 1.03),
            (0.02, 1.0),
            (0.02, 1.02),
            (0.02, 1.05),
            (0.02, 1.08),
            (0.03, 1.0),
            (0.03, 1.05),
            (0.03, 1.08),
            (0.05, 1.0),
            (0.05, 1.1),
            (0.05, 2.0),
        ] {
            let name = format!("repeats {n} {cv} {ratio}");
            let follow_ups = values(&name, effort, |random| follow_up(n, cv, ratio, random));
            let share = |of: &dyn Fn(&FollowUp) -> Option<bool>| share(&follow_ups, of);
            let open = share(&|follow_up| Some(follow_up.open));
            let followed = share(&|follow_up| follow_up.open.then_some(follow_up.decided.is_some()));
            let decided = share(&|follow_up| follow_up.decided);
            rows.push(vec![
                n.to_string(),
                format!("{:.0} %", cv * 100.0),
                format!("{ratio}"),
                percent(open),
                median(follow_ups.iter().filter_map(|follow_up| follow_up.repeats_requested).collect()),
                percent(followed),
                percent(decided),
            ]);
            if decided.of >= MIN_OPEN_STUDIES {
                cells.push((format!("n = {n}, cv {:.0} %, R = {ratio}", cv * 100.0), decided));
            }
        }
    }
    let all = of_all(cells.iter().map(|(_, share)| *share));
    vec![
        Section::new("Repeats needed")
            .text(format!(
                "A study of n repeats, with its noise floor, leaves its verdict open and asks for more repeats. Those are \
                 run, and all are decided together: how often does that reach a verdict? Forecasts above {MAX_FOLLOWED_UP} repeats \
                 are not followed up. In all, {all} of the studies that were followed up are decided."
            ))
            .table(&["n", "cv", "R", "open, %", "asks for (median)", "followed up, % of these", "then decided, %"], rows)
            .check(Check { what: "decided after as many repeats as were asked for", demand: Demand::AtLeast(0.7), cells }),
    ]
}

fn follow_up(n: usize, cv: f64, ratio: f64, random: &mut RandomStream) -> FollowUp {
    let effect = ratio.ln();
    let first = NoiseModel::Normal.trials(n, random);
    let decision = decided(with_floor(&first.scaled(cv, effect), MARGIN, ALPHA), ALPHA);
    let repeats_requested = needed(&decision).filter(|_| is_open(&decision));
    let after =
        repeats_requested.filter(|repeats_requested| *repeats_requested <= MAX_FOLLOWED_UP).map(|repeats_requested| {
            let more = NoiseModel::Normal.trials(repeats_requested - n, random);
            let all = Trials { blocks: [first.blocks.as_slice(), &more.blocks].concat() };
            !is_open(&decided(with_floor(&all.scaled(cv, effect), MARGIN, ALPHA), ALPHA))
        });
    FollowUp { open: is_open(&decision), repeats_requested, decided: after }
}

fn share(follow_ups: &[FollowUp], of: &dyn Fn(&FollowUp) -> Option<bool>) -> Share {
    let answers: Vec<bool> = follow_ups.iter().filter_map(of).collect();
    Share { hits: answers.iter().filter(|yes| **yes).count() as u64, of: answers.len() as u64 }
}

fn median(mut counts: Vec<usize>) -> String {
    counts.sort_unstable();
    counts.get(counts.len() / 2).map_or("–".to_owned(), usize::to_string)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_median_of_counts() {
        assert_eq!((median(vec![]), median(vec![3, 1, 2])), ("–".to_owned(), "2".to_owned()));
    }
}
