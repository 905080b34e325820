//! Whole runs against a server that is there already, so that no system needs to be started.

mod given;
mod looks;
mod spare_blocks;

use given::{Given, STUDY};
use plimsoll_model::event::Event;
use plimsoll_model::look::Look;
use plimsoll_runner::Ending;

#[test]
fn every_trial_of_the_plan_runs_once_and_in_its_order() {
    let given = Given::new(STUDY, &[]);
    let ran = given.run(&mut |_| panic!("a plan without looks asks for no verdict"), &mut |_| false);
    assert_eq!(ran.ending, Ending::Complete);
    let contents = given.contents();
    assert_eq!(contents.problems, Vec::<String>::new());
    assert_eq!(contents.plan, given.plan);
    let found: Vec<_> = contents.starts.iter().map(|trial| trial.summary.start.clone()).collect();
    assert_eq!(found, given.plan.starts, "the duplicate among them");
    let labels: Vec<String> = ran.events.iter().filter_map(label).collect();
    assert_eq!(labels.iter().filter(|label| *label == "a (duplicate)").count(), 2, "{labels:?}");
    assert_eq!(labels.iter().filter(|label| *label == "a").count(), 2, "{labels:?}");
}

#[test]
fn a_run_that_pauses_goes_on_where_it_was() {
    let given = Given::new(STUDY, &[]);
    let endings: Vec<Ending> =
        (0..3).map(|_| given.run_some(Some(2), &mut Look::open, &mut |_| false).ending).collect();
    assert_eq!(endings, [Ending::Paused, Ending::Paused, Ending::Complete]);
    let contents = given.contents();
    let found: Vec<_> = contents.starts.iter().map(|trial| trial.summary.start.clone()).collect();
    assert_eq!((found, contents.problems), (given.plan.starts.clone(), Vec::<String>::new()));
}

#[test]
fn the_machine_is_observed_before_the_first_start() {
    let given = Given::new(STUDY, &[]);
    let ran = given.run(&mut Look::open, &mut |_| false);
    let place = |of: fn(&Event) -> bool| ran.events.iter().position(of);
    let observed = place(|event| matches!(event, Event::MachineObserved { .. })).expect("it was observed");
    assert!(observed < place(|event| matches!(event, Event::StartBegun { .. })).expect("a start"));
    let Event::MachineObserved { others, .. } = &ran.events[observed] else { unreachable!("it was found") };
    assert!(others.processors > 0 && others.cpu_cores >= 0.0, "{others:?}");
}

fn label(event: &Event) -> Option<String> {
    match event {
        Event::StartBegun { variants, .. } => Some(variants.clone()),
        _ => None,
    }
}
