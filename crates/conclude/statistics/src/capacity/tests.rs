//! Searches of systems whose capacity is known, and what is made of their loads.

use super::*;
use crate::testing::{Noise, close};
use proptest::prelude::*;

const RANGE: Range = Range { first: 10.0, least: 1.0, most: 1000.0, whole: true, step: None };

/// Searches a system that carries loads below `truth`.
fn searched(mut search: Search, passes: &mut dyn FnMut(f64) -> bool) -> (Capacity, Vec<Tried>) {
    let mut tried = Vec::new();
    loop {
        match search.next() {
            Next::End(capacity) => return (capacity, tried),
            Next::Load(level, part) => {
                let passed = passes(level);
                tried.push(Tried { level, part, passed, strain: None });
                search.record(passed);
            }
        }
    }
}

#[test]
fn steps_go_up_to_the_largest_load_or_to_the_end() {
    let steps = Search::new(Range { step: Some(50.0), first: 50.0, most: 220.0, ..RANGE });
    let (found, tried) = searched(steps, &mut |level| level < 120.0);
    assert_eq!(tried.iter().map(|one| one.level).collect::<Vec<f64>>(), [50.0, 100.0, 150.0, 200.0]);
    assert_eq!(tried.len(), most_loads(Range { step: Some(50.0), first: 50.0, most: 220.0, ..RANGE }));
    assert_eq!(found, Capacity::At(15_000_f64.sqrt()));
    assert_eq!(searched(steps, &mut |_| true).0, Capacity::AtLeast(200.0));
    assert_eq!(searched(steps, &mut |_| false).0, Capacity::Below(50.0));
    let mut broken = steps;
    [true, false].into_iter().for_each(|passed| broken.record(passed));
    broken.end_steps();
    assert_eq!(broken.next(), Next::End(Capacity::At(5_000_f64.sqrt())));
    let mut limited = steps;
    limited.record(true);
    limited.cannot_be_offered();
    assert_eq!(limited.next(), Next::End(Capacity::AtLeast(50.0)));
}

#[test]
fn equal_steps_go_up_to_the_largest_load_whatever_their_fractions() {
    let steps = Range { first: 0.1, least: 0.1, most: 0.3, whole: false, step: Some(0.1) };
    let (found, tried) = searched(Search::new(steps), &mut |_| true);
    assert_eq!((found, tried.len(), most_loads(steps)), (Capacity::AtLeast(0.3), 3, 3));
}

#[test]
fn between_two_steps_the_strain_tells_where() {
    let step = |level: f64, strain: f64| Tried { level, part: Part::Step, passed: strain <= 1.0, strain: Some(strain) };
    let of = |tried: &[Tried]| match capacity(tried) {
        Some(Capacity::At(level)) => level,
        other => panic!("{other:?}"),
    };
    // The strain grows with the fourth power of the load.
    let truth = 130.0_f64;
    let tried: Vec<Tried> = [50.0, 100.0, 150.0, 200.0].map(|level| step(level, (level / truth).powi(4))).to_vec();
    close(of(&tried), truth, 1e-9);
    let never = [step(100.0, 0.0), step(150.0, 4.0)];
    close(of(&never), 15_000_f64.sqrt(), 1e-9);
    let contradicting = [step(100.0, 1.2), step(150.0, 0.8), step(200.0, 2.0)];
    close(of(&contradicting), 15_000_f64.sqrt(), 1e-9);
}

#[test]
fn a_bracket_doubles_until_a_load_fails_and_a_ladder_ends_at_the_capacity() {
    let (found, tried) = searched(Search::new(RANGE), &mut |level| level < 100.0);
    let levels: Vec<f64> = tried.iter().map(|one| one.level).collect();
    assert_eq!(levels[..7], [10.0, 20.0, 40.0, 80.0, 160.0, 113.0, 95.0]);
    assert_eq!(tried[7].part, Part::Ladder);
    assert_eq!(tried.len(), 15);
    let Capacity::At(found) = found else { panic!("{found:?}") };
    close(found, 100.0, 1.5);
    assert_eq!(capacity(&tried), Some(Capacity::At(found)));
}

#[test]
fn what_never_fails_or_always_fails_is_censored() {
    let (found, tried) = searched(Search::new(RANGE), &mut |_| true);
    assert_eq!((found, tried.len()), (Capacity::AtLeast(1000.0), 8));
    assert_eq!(capacity(&tried), Some(found));
    let (found, tried) = searched(Search::new(RANGE), &mut |_| false);
    assert_eq!((found, tried.len()), (Capacity::Below(1.0), 5));
    assert_eq!(capacity(&tried), Some(found));
    assert_eq!(capacity(&[]), None);
    let mut limited = Search::new(RANGE);
    limited.cannot_be_offered();
    assert_eq!(limited.next(), Next::Load(10.0, Part::Bracket), "nothing has passed yet");
    limited.record(true);
    limited.cannot_be_offered();
    assert_eq!(limited.next(), Next::End(Capacity::AtLeast(10.0)));
}

#[test]
fn a_wrong_estimate_leads_to_another_bracket() {
    for estimate in [20.0, 600.0] {
        let (found, _) = searched(Search::around(RANGE, estimate, 0.0), &mut |level| level < 100.0);
        let Capacity::At(found) = found else { panic!("{found:?}") };
        close(found, 100.0, 1.5);
    }
}

#[test]
fn a_capacity_that_moves_is_not_found() {
    // Whatever a bracket finds to be too much passes on the ladder.
    let (mut search, mut tried) = (Search::around(Range { most: 1e12, ..RANGE }, 50.0, 0.0), Vec::new());
    while let Next::Load(level, part) = search.next() {
        let passed = part == Part::Ladder;
        tried.push(Tried { level, part, passed, strain: None });
        search.record(passed);
    }
    assert_eq!(search.next(), Next::End(Capacity::Unsettled));
    assert_eq!(tried.iter().filter(|one| one.part == Part::Ladder).count(), 4 * LOADS);
    assert_eq!(capacity(&tried), Some(Capacity::Unsettled));
}

#[test]
fn what_passed_before_a_ladder_left_its_region_is_no_bound() {
    // The first bracket takes seven loads; then the machine gets slow for good.
    let mut loads = 0;
    let mut passes = |level: f64| {
        loads += 1;
        loads <= 7 && level < 100.0
    };
    let (found, tried) = searched(Search::new(RANGE), &mut passes);
    assert!(tried[..7].iter().any(|one| one.passed) && tried[7..].iter().all(|one| !one.passed), "{tried:?}");
    assert_eq!((found, capacity(&tried)), (Capacity::Below(1.0), Some(Capacity::Below(1.0))));
    // Where loads of the second bracket are void, its bound is what it has shown.
    let mut cut_off = tried[..7 + LOADS + 2].to_vec();
    let last = cut_off[cut_off.len() - 1];
    assert_eq!((last.part, capacity(&cut_off)), (Part::Bracket, Some(Capacity::Below(last.level))));
    cut_off.push(Tried { level: 10.0, passed: true, ..last });
    assert_eq!(capacity(&cut_off), Some(Capacity::AtLeast(10.0)));
}

#[test]
fn a_bracket_above_a_ladder_begins_with_what_passed_on_it() {
    let (_, tried) = searched(Search::around(RANGE, 100.0, 0.0), &mut |level| level < 155.0);
    assert_eq!((tried[LOADS].part, tried[LOADS].passed), (Part::Bracket, false));
    assert_eq!(capacity(&tried[..=LOADS]), Some(Capacity::AtLeast(tried[LOADS - 1].level)));
}

#[test]
fn a_search_goes_on_where_the_systems_died() {
    let mut search = Search::new(RANGE);
    [true, true, false].into_iter().for_each(|passed| search.record(passed));
    assert_eq!(search.on_another_start().next(), search.next(), "a bracket keeps what it knows");
    let mut search = Search::around(RANGE, 100.0, 0.0);
    [true, false].into_iter().for_each(|passed| search.record(passed));
    assert_eq!(search.on_another_start(), Search::around(RANGE, 100.0, 0.0));
}

#[test]
fn few_users_are_found_to_the_user() {
    for truth in [1.5, 2.5, 3.5, 7.5, 20.5] {
        let (found, _) = searched(Search::new(RANGE), &mut |level| level.round() < truth);
        let Capacity::At(found) = found else { panic!("{truth}: {found:?}") };
        assert!((found - truth).abs() < 0.7, "{truth}: {found}");
    }
}

#[test]
fn a_cut_off_search_has_no_capacity() {
    let (_, tried) = searched(Search::around(RANGE, 100.0, 0.0), &mut |level| level < 100.0);
    assert_eq!(tried.len(), LOADS);
    assert!((1..LOADS).all(|loads| capacity(&tried[..loads]).is_none()));
}

#[test]
fn a_ladder_goes_on_where_its_loads_contradict_one_another() {
    // The machine gets a fifth slower after half of the ladder.
    let mut loads = 0;
    let mut passes = |level: f64| {
        loads += 1;
        level < if loads <= LOADS / 2 { 100.0 } else { 80.0 }
    };
    let (found, tried) = searched(Search::around(RANGE, 100.0, 0.0), &mut passes);
    assert_eq!(tried.len(), MOST_LOADS);
    let contradiction_of = |low: f64, high: f64| (high / low).ln();
    let (least, most) = (contradiction_of(83.0, 97.0), contradiction_of(80.0, 100.0));
    assert!((least..most).contains(&contradiction(&tried)), "{}", contradiction(&tried));
    let Capacity::At(found) = found else { panic!("{found:?}") };
    assert!((80.0..95.0).contains(&found), "between the two: {found}");
    let (_, steady) = searched(Search::around(RANGE, 100.0, 0.0), &mut |level| level < 100.0);
    assert_eq!((steady.len(), contradiction(&steady), contradiction(&steady[..1])), (LOADS, 0.0, 0.0));
}

#[test]
fn steps_get_smaller_at_turns_and_larger_again_where_three_loads_do_the_same() {
    let mut outcomes = [true, false, true, false, false, false, false, true].into_iter();
    let (_, tried) = searched(Search::around(RANGE, 100.0, 0.0), &mut |_| outcomes.next().unwrap_or(true));
    let steps: Vec<f64> =
        tried[..8].windows(2).map(|pair| (pair[1].level / pair[0].level).ln().abs().exp_m1()).collect();
    for (found, expected) in steps.into_iter().zip([0.06, 0.04, 0.03, 0.02, 0.02, 0.03, 0.04]) {
        close(found, expected, 1e-9);
    }
}

#[test]
fn steps_are_as_large_as_loads_contradict_one_another() {
    let steps = |widest: f64| {
        let (_, tried) = searched(Search::around(RANGE, 100.0, widest), &mut |level| level < 110.0);
        let steps = tried[..4].windows(2).map(|pair| (pair[1].level / pair[0].level).ln().abs().exp_m1());
        (steps.collect::<Vec<f64>>(), tried.len())
    };
    assert_eq!(steps(0.0), steps(CONTRADICTION));
    let (after_wide, loads) = steps(0.3);
    for (found, expected) in after_wide.into_iter().zip([0.3, 0.2, 0.15]) {
        close(found, expected, 1e-9);
    }
    assert_eq!(loads, LOADS, "on this start loads agree");
    // A bracket fails where the ladder passes, which counts for nothing.
    let (mut search, mut loads) = (Search::new(RANGE), 0);
    while let Next::Load(level, part) = search.next() {
        loads += usize::from(part == Part::Ladder);
        search.record(level < if part == Part::Bracket { 70.0 } else { 100.0 });
    }
    assert_eq!(loads, LOADS);
}

#[test]
fn starts_are_no_surer_than_the_loads_of_one_agree() {
    let interval = |capacities: &[f64], widest: f64| {
        let test = over_starts(capacities, widest).expect("several starts");
        let interval = test.interval(0.95);
        (interval.high - interval.low) / 2.0
    };
    // Half of 0.1, Student's factor for five, and the root of five.
    close(interval(&[100.0, 100.0, 100.0, 100.0, 100.1], 0.1), 0.05 * 2.7764 / 5_f64.sqrt(), 1e-5);
    let apart = [100.0, 130.0, 90.0, 120.0, 80.0];
    close(interval(&apart, 0.1), interval(&apart, 0.0), 1e-12);
    assert!(over_starts(&[100.0], 0.1).is_none());
}

#[test]
fn strains_cross_where_their_mean_is_one() {
    let of = |level: f64, strain: f64| Tried { level, part: Part::Ladder, passed: strain <= 1.0, strain: Some(strain) };
    let levels = [100.0, 106.0, 103.0, 100.0, 101.5, 103.0, 101.5, 102.5];
    let smooth: Vec<Tried> = levels.iter().map(|level| of(*level, (level / 104.0).powf(20.0))).collect();
    let Some(Capacity::At(found)) = capacity(&smooth) else { panic!("{:?}", capacity(&smooth)) };
    close(found, 104.0, 0.01);
    let breaks_down: Vec<Tried> =
        levels.iter().map(|level| of(*level, if *level < 102.0 { 0.0 } else { 20.0 })).collect();
    let Some(Capacity::At(found)) = capacity(&breaks_down) else { panic!("{:?}", capacity(&breaks_down)) };
    let averaged = [103.0_f64, 100.0, 101.5, 103.0, 101.5, 102.5];
    close(found.ln(), averaged.iter().map(|level| level.ln()).sum::<f64>() / 6.0, 1e-9);
    // What a load failed for has no strain, so that a fit of the others would put the capacity above it.
    let without = |one: &Tried| Tried { strain: one.strain.filter(|_| one.passed), ..*one };
    let unknown: Vec<Tried> = smooth.iter().map(without).collect();
    assert_eq!(capacity(&unknown), capacity(&breaks_down));
    // Strains that fall with the load have no crossing of their own; the flattest slope keeps it near the loads.
    let falls: Vec<Tried> = levels.iter().map(|level| of(level.min(104.0), (100.0 / level).powf(20.0) * 1.2)).collect();
    let Some(Capacity::At(found)) = capacity(&falls) else { panic!("{:?}", capacity(&falls)) };
    assert!((98.0..110.0).contains(&found), "{found}");
}

#[test]
fn values_to_show_are_those_of_the_rule_of_three() {
    assert_eq!([0.05, 0.01, 0.001].map(values_to_show), [59, 299, 2995]);
    assert_eq!([0.0, 1.0].map(values_to_show), [1, 1]);
}

#[test]
fn loads_that_pass_by_chance_are_averaged_out() {
    let mut noise = Noise::new(7);
    let logs: Vec<f64> = (0..2000)
        .map(|_| {
            let mut passes = |level: f64| level < 300.0 * (0.02 * noise.normal()).exp();
            let Capacity::At(found) = searched(Search::around(RANGE, 300.0, 0.0), &mut passes).0 else {
                panic!("the capacity is inside the range")
            };
            (found / 300.0).ln()
        })
        .collect();
    let mean = crate::mean(&logs).expect("values");
    let sd = crate::standard_deviation(&logs).expect("values");
    assert!(mean.abs() < 0.002 && sd < 0.02, "{mean}, {sd}");
}

proptest! {
    #[test]
    fn every_search_ends(seed in 0_u64..5000, first in 1.0..1e5_f64, most in 1.0..1e6_f64, whole: bool) {
        let (mut noise, most) = (Noise::new(seed), if whole { most.floor() } else { most });
        let range = Range { first, least: 1.0, most, whole, step: None };
        let (found, tried) = searched(Search::new(range), &mut |_| noise.uniform() < 0.5);
        let most_tried = 3 * most_loads(Range { first: 1.0, least: 1.0, ..range }) + 60;
        prop_assert!(tried.len() <= most_tried);
        prop_assert!(tried.iter().all(|one| one.level >= 1.0 && one.level <= most.max(1.0)));
        prop_assert!(capacity(&tried).is_some(), "{:?}", found);
    }
}
