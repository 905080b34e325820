//! Tests of which load is next, against systems that pass and fail as the test says.

use super::*;
use crate::order::{Options, plan};
use crate::{Step, next as next_step};
use plimsoll_model::factor::{Factor, Level, Role};
use plimsoll_model::start::{Design, Turns};

const PASSED: Shown = Shown::Judged { passed: true, strain: None, failed: false, share_to_weigh: None };
const MISSED: Shown = Shown::Judged { passed: false, strain: None, failed: false, share_to_weigh: None };
const BROKEN: Shown = Shown::Judged { passed: false, strain: None, failed: true, share_to_weigh: None };
const SECOND: Duration = Duration::from_secs(1);

/// A plan that searches from 10 users up to `most`, for this many variants, on starts of one variant or of all.
fn planned(variants: usize, most: f64, design: Design) -> Plan {
    let levels = (0..variants).map(|number| Level::Text(number.to_string())).collect();
    let factors = [Factor { name: "version".to_owned(), levels, role: Role::Compared { baseline: 0 } }];
    let factors = if variants > 1 { &factors[..] } else { &[] };
    let options = Options { repeats: 5, seed: 3, duplicate: false, spare_blocks: None, looks: Vec::new(), design };
    let lengths = PhaseLengths { warmup: SECOND, measure: 10 * SECOND, drain: SECOND };
    let searches = vec![search(SearchRange {
        first: 10.0,
        most,
        of_users: true,
        confirm: 60 * SECOND,
        step: None,
        new_users: None,
        recover: 60 * SECOND,
        longest: Duration::ZERO,
    })];
    Plan { searches, ..plan(factors, &options, |_| lengths) }
}

/// Runs the plan; `hear` says what comes of each load on each start.
fn run(plan: &Plan, hear: &mut dyn FnMut(&Start, &Load) -> Shown) -> Vec<(Start, Vec<EndedLoad>)> {
    let (mut outcomes, mut starts) = (Outcomes::default(), Vec::new());
    while let Some(step) = next_step(plan, &outcomes) {
        match step {
            Step::Start(start) => outcomes.started(start),
            Step::Loads(loads) => {
                let start = outcomes.start_under_way().expect("a load is on a start").clone();
                loads.into_iter().for_each(|load| {
                    let shown = hear(&start, &load);
                    outcomes.loaded(load, Some(shown));
                });
            }
            Step::Stop => {
                let (start, ran) = outcomes.under_way().expect("only what runs is stopped");
                let (start, ran) = (start.clone(), ran.to_vec());
                let died = ran.iter().any(|one| one.shown == Some(Shown::Died));
                starts.push((start.clone(), ran));
                outcomes.stopped(start, if died { Outcome::DoesNotCount } else { Outcome::Counts });
            }
            other => panic!("{other:?}"),
        }
    }
    starts
}

/// Passes below `truth` users.
fn below(truth: f64) -> impl FnMut(&Start, &Load) -> Shown {
    move |_, load| if level(load).round() < truth { PASSED } else { MISSED }
}

fn level(load: &Load) -> f64 {
    load.rung.expect("a search").level
}

fn parts(ran: &[EndedLoad], part: RungPart) -> Vec<f64> {
    ran.iter().filter(|one| one.load.rung.is_some_and(|rung| rung.part == part)).map(|one| level(&one.load)).collect()
}

#[test]
fn the_first_start_brackets_and_the_last_confirms() {
    let plan = planned(1, 1000.0, Design::Trials);
    let starts = run(&plan, &mut below(150.0));
    let of = |part| starts.iter().map(|(_, ran)| parts(ran, part).len()).collect::<Vec<usize>>();
    assert_eq!(of(RungPart::Bracket), [7, 0, 0, 0, 0]);
    assert_eq!(of(RungPart::Ladder), [8; 5]);
    assert_eq!(of(RungPart::Confirmation), [0, 0, 0, 0, 1]);
    let last = starts[4].1.last().expect("loads");
    assert_eq!(last.load.lengths.measure, 60 * SECOND);
    assert!((140.0..150.0).contains(&level(&last.load)), "{last:?}");
    assert!(plan.time_under_load(&plan.starts) >= 47 * 11 * SECOND);
}

#[test]
fn where_nothing_fails_later_starts_try_the_largest_load_alone() {
    let starts = run(&planned(1, 100.0, Design::Trials), &mut below(1e9));
    assert_eq!(starts.iter().map(|(_, ran)| ran.len()).collect::<Vec<usize>>(), [5, 1, 1, 1, 1]);
    assert!(starts.iter().all(|(_, ran)| level(&ran.last().expect("a load").load) == 100.0));
}

#[test]
fn a_confirmation_that_fails_is_tried_a_little_lower() {
    let mut limit = below(150.0);
    let mut hear = |start: &Start, load: &Load| match load.rung.expect("a search").part {
        RungPart::Confirmation if level(load) > 145.0 => MISSED,
        _ => limit(start, load),
    };
    let starts = run(&planned(1, 1000.0, Design::Trials), &mut hear);
    let tried = parts(&starts[4].1, RungPart::Confirmation);
    assert!(tried.len() == 2 && tried[1] <= 145.0 && tried[1] > 0.95 * tried[0], "{tried:?}");
}

#[test]
fn each_confirmation_of_few_users_has_fewer_of_them() {
    let mut limit = below(11.0);
    let mut hear = |start: &Start, load: &Load| match load.rung.expect("a search").part {
        RungPart::Confirmation => MISSED,
        _ => limit(start, load),
    };
    let starts = run(&planned(1, 1000.0, Design::Trials), &mut hear);
    let tried = parts(&starts[4].1, RungPart::Confirmation);
    assert!(tried.len() > 1 && tried.windows(2).all(|pair| pair[1] <= pair[0] - 1.0), "{tried:?}");
}

#[test]
fn variants_on_one_start_alternate() {
    let turns = Turns { count: 1, settle: SECOND, slice: SECOND };
    let plan = planned(2, 1000.0, Design::Turns(turns));
    let mut hear = |_: &Start, load: &Load| {
        let truth = [150.0, 90.0][load.variant];
        if level(load).round() < truth { PASSED } else { MISSED }
    };
    let starts = run(&plan, &mut hear);
    for (_, ran) in &starts[1..4] {
        assert_eq!(ran.len(), 16);
        for (turn, pair) in (1..).zip(ran.chunks(2)) {
            assert!(pair.iter().all(|one| one.load.turn == turn) && pair[0].load.variant != pair[1].load.variant);
        }
    }
    let firsts: Vec<usize> = starts[1].1.chunks(2).map(|pair| pair[0].load.variant).collect();
    assert!(firsts.contains(&0) && firsts.contains(&1), "{firsts:?}");
}

#[test]
fn a_load_with_too_few_requests_is_repeated_for_longer() {
    // Ten requests a second for each user, of which 299 are needed.
    let mut hear = |_: &Start, load: &Load| {
        let count = 0.5 * level(load) * load.lengths.measure.as_secs_f64();
        if count < 299.0 {
            return Shown::TooFew { share: count / 299.0 };
        }
        if level(load).round() < 50.0 { PASSED } else { MISSED }
    };
    let starts = run(&planned(1, 1000.0, Design::Trials), &mut hear);
    let lengths: Vec<f64> = starts[0].1.iter().map(|one| one.load.lengths.measure.as_secs_f64()).collect();
    assert_eq!(lengths[0], 10.0);
    assert!((lengths[1] - 74.75).abs() < 0.01, "{lengths:?}");
    assert_eq!((level(&starts[0].1[1].load), level(&starts[0].1[2].load)), (10.0, 20.0));
    let is_too_short = |one: &EndedLoad| matches!(one.shown, Some(Shown::TooFew { .. }));
    assert!(is_too_short(&starts[0].1[0]) && !starts[1].1.iter().any(is_too_short));
    assert_eq!(parts(&starts[1].1, RungPart::Ladder).len(), 8, "later starts know how long a load must be");
}

#[test]
fn loads_near_the_capacity_have_enough_requests_to_weigh_what_misses() {
    // Two requests a second for each user, of which 2,000 are needed.
    let hear = |_: &Start, load: &Load| {
        let requests = 2.0 * level(load) * load.lengths.measure.as_secs_f64();
        let passed = level(load).round() < 50.0;
        Shown::Judged { passed, strain: None, failed: false, share_to_weigh: Some(requests / 2000.0) }
    };
    let lengths = |longest: u32| {
        let mut plan = planned(1, 1000.0, Design::Trials);
        plan.searches[0].range.longest = longest * SECOND;
        let starts = run(&plan, &mut { hear });
        let of = |one: &EndedLoad| one.load.lengths.measure.as_secs_f64();
        starts.iter().map(|(_, ran)| ran.iter().map(of).collect::<Vec<f64>>()).collect::<Vec<_>>()
    };
    assert!(lengths(0).iter().flatten().all(|seconds| [10.0, 60.0].contains(seconds)));
    assert!(lengths(20).iter().flatten().any(|seconds| *seconds == 20.0), "no longer than that");
    let starts = lengths(30);
    let ladder = |ran: &[f64]| ran[ran.len() - 8..].iter().all(|seconds| (23.0..27.0).contains(seconds));
    assert!(starts[0][..3].iter().all(|seconds| *seconds == 10.0), "a bracket has no need of it: {starts:?}");
    assert!(starts[..4].iter().all(|ran| ladder(ran)), "{starts:?}");
}

#[test]
fn only_the_first_start_brackets_and_only_the_last_one_confirms() {
    let plan = planned(1, 1000.0, Design::Trials);
    let of = |repeats: u32| plan.time_of_repeats(repeats);
    assert_eq!(of(plan.repeats), plan.time_under_load(&plan.starts));
    // A ladder of eight loads of 1 s and 10 s is all that the others have.
    assert_eq!(of(12) - of(11), 8 * 11 * SECOND);
    assert!(of(1) > 8 * 11 * SECOND + 60 * SECOND);
}

#[test]
fn where_loads_contradict_one_another_the_plan_knows_how_many_more_there_may_be() {
    let mut plan = planned(1, 1000.0, Design::Trials);
    plan.searches[0].range.longest = 30 * SECOND;
    let usual = plan.time_under_load(&plan.starts);
    // Eight loads of each start get longer by 20 s, and sixteen more may come, of 1 s and 30 s.
    assert_eq!(plan.most_time_of_searches() - usual, 5 * (8 * 20 + 16 * 31) * SECOND);
    let mut loads = 0;
    let mut hear = |_: &Start, load: &Load| {
        loads += 1;
        if level(load).round() < if loads % 20 < 12 { 150.0 } else { 120.0 } { PASSED } else { MISSED }
    };
    let starts = run(&plan, &mut hear);
    let ladders: Vec<usize> = starts.iter().map(|(_, ran)| parts(ran, RungPart::Ladder).len()).collect();
    assert!(ladders.contains(&24), "{ladders:?}");
}

#[test]
fn a_void_load_is_repeated_and_a_generator_at_its_limit_ends_the_search() {
    let mut hear = |_: &Start, load: &Load| if level(load) > 70.0 { Shown::Void } else { PASSED };
    let starts = run(&planned(1, 1000.0, Design::Trials), &mut hear);
    let levels: Vec<f64> = starts[0].1.iter().map(|one| level(&one.load)).collect();
    assert_eq!(levels, [10.0, 20.0, 40.0, 80.0, 80.0, 80.0]);
    let levels: Vec<f64> = starts[1].1.iter().map(|one| level(&one.load)).collect();
    assert_eq!(levels, [40.0, 80.0, 80.0, 80.0], "at least 40");
}

/// Passes below 150 users, and breaks from there on; the systems recover after so many light loads.
fn breaking(needed: usize) -> impl FnMut(&Start, &Load) -> Shown {
    let mut light_loads = 0;
    move |_, load| {
        if load.rung.expect("a search").part == RungPart::Recovery {
            light_loads += 1;
            return if light_loads < needed { MISSED } else { PASSED };
        }
        light_loads = 0;
        if level(load).round() < 150.0 { PASSED } else { BROKEN }
    }
}

#[test]
fn systems_recover_from_a_load_under_which_requests_failed() {
    let plan = planned(1, 1000.0, Design::Trials);
    let starts = run(&plan, &mut breaking(3));
    let mut failed = 0;
    for (_, ran) in &starts {
        for (index, load) in ran.iter().enumerate().filter(|(_, load)| load.shown == Some(BROKEN)) {
            // The last load of a ladder needs none.
            if index + 1 == ran.len() {
                continue;
            }
            let light: Vec<&EndedLoad> = ran[index + 1..].iter().take(3).collect();
            assert!(light.iter().all(|one| part(one) == Some(RungPart::Recovery)), "{ran:?}");
            assert!(light.iter().all(|one| level(&one.load) == if level(&load.load) < 160.0 { 20.0 } else { 40.0 }));
            assert!(light.iter().all(|one| one.load.turn == load.load.turn));
            failed += 1;
        }
    }
    assert!(failed >= 12, "{failed}");
    let same_without = |ran: &[EndedLoad]| {
        ran.iter().filter(|one| part(one) != Some(RungPart::Recovery)).map(|one| level(&one.load)).collect::<Vec<f64>>()
    };
    let undisturbed = run(&plan, &mut below(150.0));
    for ((_, ran), (_, other)) in starts.iter().zip(&undisturbed) {
        assert_eq!(same_without(ran), same_without(other), "the search itself goes the same way");
    }
}

#[test]
fn where_systems_do_not_recover_the_next_start_goes_on() {
    let starts = run(&planned(1, 1000.0, Design::Trials), &mut breaking(1000));
    let of = |index: usize| starts[index].1.iter().map(|one| level(&one.load)).collect::<Vec<f64>>();
    // Of 1 s of warm-up and 2.5 s of measure phase each, 18 are more than a minute.
    assert_eq!(of(0), [&[10.0, 20.0, 40.0, 80.0, 160.0][..], &[40.0; 18]].concat());
    assert_eq!(of(1)[0], 113.0, "between what passed and what broke");
}

#[test]
fn while_one_variant_recovers_the_others_wait() {
    let turns = Turns { count: 1, settle: SECOND, slice: SECOND };
    let starts = run(&planned(2, 1000.0, Design::Turns(turns)), &mut breaking(2));
    let recoveries = |ran: &[EndedLoad]| ran.iter().filter(|one| part(one) == Some(RungPart::Recovery)).count();
    assert!(starts.iter().all(|(_, ran)| recoveries(ran) > 0));
    for pair in starts.iter().flat_map(|(_, ran)| ran.windows(2)) {
        let is_followed = pair[1].load.variant == pair[0].load.variant && pair[1].load.turn == pair[0].load.turn;
        assert!(part(&pair[1]) != Some(RungPart::Recovery) || is_followed, "{pair:?}");
    }
}

/// Steps of 10 users from 10 to 80, on five starts.
fn stress() -> Plan {
    let mut plan = planned(1, 80.0, Design::Trials);
    plan.searches = vec![search(SearchRange { step: Some(10.0), ..plan.searches[0].range })];
    plan
}

fn levels(starts: &[(Start, Vec<EndedLoad>)]) -> Vec<Vec<f64>> {
    starts.iter().map(|(_, ran)| ran.iter().map(|one| level(&one.load)).collect()).collect()
}

#[test]
fn a_stress_test_goes_up_on_each_start_until_requests_fail() {
    let mut hear = |_: &Start, load: &Load| match level(load) {
        ..30.0 => PASSED,
        ..60.0 => MISSED,
        _ => BROKEN,
    };
    let plan = stress();
    let starts = run(&plan, &mut hear);
    assert_eq!(levels(&starts), vec![vec![10.0, 20.0, 30.0, 40.0, 50.0, 60.0]; 5]);
    assert_eq!(plan.searches[0].loads, [8, 8]);
    assert_eq!(plan.time_under_load(&plan.starts), 5 * 8 * 11 * SECOND, "without a confirmation");
    let mut joining = stress();
    joining.searches[0].range.new_users = Some(20.0);
    let ran = run(&joining, &mut hear);
    let warmups: Vec<f64> = ran[0].1.iter().map(|one| one.load.lengths.warmup.as_secs_f64()).collect();
    assert_eq!(warmups, [1.0, 1.5, 2.0, 2.5, 3.0, 3.5], "that of the first has the time of its users in it");
    let warmups = 8.0 + (0..8).map(|place| f64::from(10 * place) / 20.0).sum::<f64>();
    assert_eq!(joining.time_under_load(&joining.starts[..1]).as_secs_f64(), 80.0 + warmups);
    let whole = run(&plan, &mut |_, _| MISSED);
    assert_eq!(levels(&whole)[0].len(), 8, "slow is not broken");
}

#[test]
fn steps_end_before_what_a_system_died_of() {
    let mut hear = |_: &Start, load: &Load| if level(load) < 40.0 { PASSED } else { Shown::Died };
    let found = levels(&run(&stress(), &mut hear));
    assert_eq!(found[0], [10.0, 20.0, 30.0, 40.0]);
    assert_eq!(found[1..], vec![vec![10.0, 20.0, 30.0]; 5], "one more for the first, which does not count");
}

#[test]
fn a_step_that_the_generator_cannot_offer_is_the_last() {
    let mut hear = |_: &Start, load: &Load| if level(load) < 40.0 { PASSED } else { Shown::Void };
    let found = levels(&run(&stress(), &mut hear));
    assert_eq!(found[4], [10.0, 20.0, 30.0, 40.0, 40.0, 40.0]);
}

#[test]
fn where_a_system_dies_the_next_start_goes_on() {
    let mut hear = |_: &Start, load: &Load| match level(load).round() {
        ..50.0 => PASSED,
        ..70.0 => MISSED,
        _ => Shown::Died,
    };
    let starts = run(&planned(1, 1000.0, Design::Trials), &mut hear);
    let of = |index: usize| starts[index].1.iter().map(|one| level(&one.load)).collect::<Vec<f64>>();
    assert_eq!(of(0), [10.0, 20.0, 40.0, 80.0]);
    assert_eq!(of(1)[..2], [57.0, 48.0], "between what passed and what it died of");
    // Starts are added for the one that does not count, as for any other.
    assert_eq!(starts.len(), 6);
    assert_eq!(parts(&starts[5].1, RungPart::Ladder).len(), 8);
}

#[test]
fn where_systems_die_near_their_capacity_later_starts_stay_below_it() {
    let mut hear = |_: &Start, load: &Load| if level(load).round() < 50.0 { PASSED } else { Shown::Died };
    let found = levels(&run(&planned(1, 1000.0, Design::Trials), &mut hear));
    assert_eq!(found[..2], [vec![10.0, 20.0, 40.0, 80.0], vec![57.0]]);
    assert_eq!((found[2].len(), found[2][0], found[2][1].round()), (2, 48.0, 52.0), "the ladder between 48 and 57");
    let again: Vec<f64> = found[3].iter().map(|level| level.round()).collect();
    assert_eq!(again, [52.0], "the first time on a ladder may be chance");
    // Two more than planned for those that do not count, and each that is left passes.
    assert_eq!(found[4..], vec![vec![49.0]; 3]);
}

#[test]
fn a_system_that_dies_after_the_capacity_was_found_bounds_nothing() {
    let mut hear = |start: &Start, load: &Load| match level(load).round() {
        ..50.0 => PASSED,
        _ if start.number == 2 => Shown::Died,
        _ => MISSED,
    };
    let starts = run(&planned(1, 1000.0, Design::Trials), &mut hear);
    assert_eq!(starts.len(), 6);
    for (start, ran) in starts.iter().filter(|(start, _)| start.number != 2) {
        let ladder = parts(ran, RungPart::Ladder);
        assert!(ladder.len() == 8 && ladder.iter().any(|level| level.round() >= 50.0), "{}: {ladder:?}", start.number);
    }
}
