//! A run that may end early takes a look at the verdicts when the plan says so, and only then.

use crate::given::{Given, STUDY, in_vain};
use plimsoll_bundle::{BundleError, BundleWriter};
use plimsoll_model::event::Event;
use plimsoll_model::look::Look;
use plimsoll_runner::Ending;
use std::time::Duration;

fn looks(events: &[Event]) -> Vec<(u32, bool)> {
    let look = |event: &Event| match event {
        Event::LookTaken { look, .. } => Some((look.repeats, look.decided)),
        _ => None,
    };
    events.iter().filter_map(look).collect()
}

/// A look that finds every verdict reached, or none.
fn look(repeats: u32, decided: bool) -> Look {
    Look { repeats, decided, conditions: Vec::new() }
}

fn finished(events: &[Event]) -> usize {
    events.iter().filter(|event| matches!(event, Event::StartFinished { .. })).count()
}

#[test]
fn the_run_ends_at_the_first_look_at_which_everything_is_decided() {
    let given = Given::new(STUDY, &[3, 5, 7]);
    let mut sealed = Vec::new();
    let mut decided = |repeats| {
        sealed.push(given.contents().starts.len());
        look(repeats, repeats >= 5)
    };
    let ran = given.run(&mut decided, &mut |_| false);
    assert_eq!((ran.ending, looks(&ran.events)), (Ending::Complete, vec![(3, false), (5, true)]));
    assert_eq!((sealed, finished(&ran.events)), (vec![9, 15], 15), "a look sees all of its repeats");
    let contents = given.contents();
    assert!(contents.complete);
    assert_eq!(contents.problems, Vec::<String>::new());
    assert_eq!((contents.plan.repeats, contents.plan.starts.len()), (5, 15));
    assert_eq!(contents.plan.looks, [3, 5, 7], "what was declared stays");
}

#[test]
fn a_run_that_ended_early_has_nothing_left_to_run() {
    let given = Given::new(STUDY, &[1, 2]);
    given.run(&mut |repeats| look(repeats, true), &mut |_| false);
    let text = std::fs::read_to_string(given.bundle().join("study.toml")).expect("the study");
    let facts = given.contents().facts;
    let refused = BundleWriter::resume(&given.bundle(), &text, &facts, &given.plan);
    assert!(matches!(refused, Err(BundleError::Complete(_))), "{refused:?}");
}

#[test]
fn nobody_asks_after_the_last_repeat() {
    let given = Given::new(STUDY, &[1, 2]);
    let mut asked = Vec::new();
    let ran = given.run(
        &mut |repeats| {
            asked.push(repeats);
            Look::open(repeats)
        },
        &mut |_| false,
    );
    assert_eq!((asked, finished(&ran.events)), (vec![1], 6));
    assert_eq!(given.contents().plan, given.plan);
}

#[test]
fn blocks_run_again_before_a_look() {
    let given = Given::new(&format!("spare_blocks = 3\n{}", in_vain()), &[1, 2]);
    let ran = given.run(&mut Look::open, &mut |_| false);
    let order: Vec<String> = ran.events.iter().filter_map(step).collect();
    assert_eq!(order, ["again 1", "again 3", "look 1", "again 2"]);
}

fn step(event: &Event) -> Option<String> {
    match event {
        Event::BlockRepeated { of, .. } => Some(format!("again {of}")),
        Event::LookTaken { look, .. } => Some(format!("look {}", look.repeats)),
        _ => None,
    }
}

#[test]
fn a_look_that_was_taken_before_an_interruption_is_not_taken_again() {
    for last in [3, 4] {
        let given = Given::new(STUDY, &[1, 2]);
        let mut stop = |event: &Event| matches!(event, Event::StartFinished { start: number, .. } if *number == last);
        let mut asked = 0;
        let mut undecided = |repeats| {
            asked += 1;
            Look::open(repeats)
        };
        assert_eq!(given.run(&mut undecided, &mut stop).ending, Ending::Interrupted);
        let second = given.run(&mut undecided, &mut |_| false);
        assert!(looks(&second.events).is_empty(), "interrupted after trial {last}");
        assert_eq!(given.contents().plan, given.plan);
        assert_eq!(asked, 1);
    }
}

#[test]
fn conditions_under_which_everything_is_decided_run_no_further() {
    let study =
        STUDY.replace("baseline = \"a\" }", "baseline = \"a\" }\nsize = [1, 2]").replace("/{path}", "/{path}?{size}");
    let given = Given::new(&study, &[1, 2, 3]);
    // The second condition is decided at the first look, and that is known after an interruption too.
    let decided = |conditions: &[usize]| {
        let conditions = conditions.to_vec();
        move |repeats| Look { repeats, decided: false, conditions: conditions.clone() }
    };
    let mut stop = |event: &Event| matches!(event, Event::LookTaken { look, .. } if look.repeats == 1);
    let first = given.run(&mut decided(&[1]), &mut stop);
    assert_eq!(first.ending, Ending::Interrupted);
    let spared = first.events.iter().find_map(|event| match event {
        Event::LookTaken { spared, time_spared, .. } => Some((*spared, *time_spared)),
        _ => None,
    });
    assert_eq!(spared, Some((6, 6 * Duration::from_secs(20))));
    let second = given.run(&mut decided(&[]), &mut |_| false);
    assert_eq!((second.ending, finished(&first.events), finished(&second.events)), (Ending::Complete, 6, 6));
    let contents = given.contents();
    assert!(contents.complete);
    assert_eq!(contents.problems, Vec::<String>::new());
    assert_eq!([0, 1].map(|condition| contents.plan.repeats_of(condition)), [3, 1]);
    assert_eq!((contents.plan.repeats, contents.plan.starts.len(), contents.starts.len()), (3, 12, 12));
}
