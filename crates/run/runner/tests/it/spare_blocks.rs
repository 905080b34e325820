//! Blocks in which a trial does not count run again: as a whole, and not without end.

use crate::given::{Given, STUDY, in_vain};
use plimsoll_model::event::Event;
use plimsoll_model::look::Look;
use plimsoll_model::start::Start;
use plimsoll_runner::Ending;

fn repeated(events: &[Event]) -> Vec<(u32, u32, u32)> {
    let of = |event: &Event| match event {
        Event::BlockRepeated { of, block, attempt, .. } => Some((*of, *block, *attempt)),
        _ => None,
    };
    events.iter().filter_map(of).collect()
}

/// The warnings about blocks that do not run again.
fn warnings(events: &[Event]) -> Vec<&str> {
    let said = events.iter().filter_map(|event| match event {
        Event::Warning { message } => Some(message.as_str()),
        _ => None,
    });
    said.filter(|message| message.contains("is not run again")).collect()
}

#[test]
fn what_counts_does_not_run_again() {
    let given = Given::new(STUDY, &[]);
    let ran = given.run(&mut Look::open, &mut |_| false);
    assert_eq!(repeated(&ran.events), []);
}

#[test]
fn blocks_run_again_until_none_is_spare() {
    let given = Given::new(&format!("spare_blocks = 3\n{}", in_vain()), &[]);
    let ran = given.run(&mut Look::open, &mut |_| false);
    assert_eq!(ran.ending, Ending::Complete, "that nothing counts is for the report to say");
    assert_eq!(repeated(&ran.events), [(1, 3, 2), (2, 4, 2), (3, 5, 3)]);
    let said = warnings(&ran.events);
    let [said] = said.as_slice() else { panic!("block 5 was the third attempt: {said:?}") };
    assert!(
        said.starts_with("block 4 is not run again, though not all of it counts (no spare block is left): "),
        "{said}"
    );
    assert!(said.contains("the generator was the limit"), "{said}");
    let contents = given.contents();
    assert_eq!(contents.problems, Vec::<String>::new());
    assert_eq!((contents.plan.starts.len(), contents.starts.len()), (15, 15));
    let standing = |trial: &&Start| !contents.plan.is_superseded(trial);
    let standing: Vec<u32> = contents.plan.starts.iter().filter(standing).map(|trial| trial.block).collect();
    assert_eq!(standing, [4, 4, 4, 5, 5, 5]);
    let reasons = ran.events.iter().filter_map(|event| match event {
        Event::BlockRepeated { reasons, starts, .. } => Some((reasons, starts)),
        _ => None,
    });
    for (reasons, trials) in reasons {
        assert!(reasons[0].contains("the generator was the limit"), "{reasons:?}");
        assert_eq!(*trials, 3);
    }
}

#[test]
fn a_study_can_have_no_spare_blocks() {
    let given = Given::new(&format!("spare_blocks = 0\n{}", in_vain()), &[]);
    let ran = given.run(&mut Look::open, &mut |_| false);
    assert_eq!((ran.ending, repeated(&ran.events)), (Ending::Complete, vec![]));
    let said = warnings(&ran.events);
    assert!(
        said.len() == 2
            && said[0]
                .starts_with("block 1 is not run again, though not all of it counts (the study has no spare blocks): "),
        "{said:?}"
    );
}

#[test]
fn a_block_is_not_attempted_more_than_three_times() {
    let text = in_vain().replace("repeats  = 2", "repeats  = 1\nspare_blocks = 9");
    let given = Given::new(&text, &[]);
    given.run(&mut Look::open, &mut |_| false);
    assert_eq!(given.contents().plan.starts.iter().map(|trial| trial.attempt).max(), Some(3));
    assert_eq!(given.contents().plan.starts.len(), 9);
}

#[test]
fn a_run_that_is_interrupted_anywhere_comes_to_the_same_end() {
    let text = in_vain().replace("repeats  = 2", "repeats  = 1\nspare_blocks = 2");
    let whole = Given::new(&text, &[]);
    let events = whole.run(&mut Look::open, &mut |_| false).events;
    let expected = whole.contents().plan;
    let moments = events.iter().filter(|event| is_moment(event)).count();
    assert!(moments > 9, "nine trials and two blocks again: {events:?}");
    for moment in 1..=moments {
        let given = Given::new(&text, &[]);
        let mut seen = 0;
        let first = given.run(&mut Look::open, &mut |event| {
            seen += usize::from(is_moment(event));
            seen == moment
        });
        let last = moment == moments;
        assert_eq!(first.ending == Ending::Complete, last, "at moment {moment}");
        if !last {
            let second = given.run(&mut Look::open, &mut |_| false);
            assert_eq!(second.ending, Ending::Complete);
        }
        let contents = given.contents();
        assert_eq!(contents.plan.starts, expected.starts, "after an interruption at moment {moment}");
        assert_eq!((contents.problems, contents.starts.len()), (Vec::new(), expected.starts.len()));
    }
}

/// True for an event at which the test interrupts the run: between trials, or in the middle of one.
fn is_moment(event: &Event) -> bool {
    matches!(event, Event::StartBegun { .. } | Event::StartFinished { .. } | Event::BlockRepeated { .. })
}
