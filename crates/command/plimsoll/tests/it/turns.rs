//! Studies whose variants take turns on each start.

use crate::common::{Place, START, TINY, edited, standing};
use plimsoll_bundle::Contents;
use plimsoll_model::result::Slice;
use rustix::process::Signal;

const RUN: [&str; 4] = ["run", "study.toml", "--out", "bundle"];

const TURNS: &str =
    "design   = \"turns\"\nturns    = { count = 4, slice = \"200ms\", settle = \"50ms\" }\nrepeats  = 2";

fn study() -> String {
    edited(TINY, "design   = \"trials\"\nrepeats  = 2", TURNS)
}

fn bundle(place: &Place) -> Contents {
    let bundle = plimsoll_bundle::read(&place.path("bundle")).unwrap();
    assert_eq!(bundle.problems, Vec::<String>::new());
    assert!(bundle.complete);
    bundle
}

/// Two starts count, each with a load of each variant and of the duplicate, made of slices.
fn assert_whole(place: &Place) {
    let bundle = bundle(place);
    let starts = standing(&bundle);
    assert_eq!(starts.len(), 2);
    for start in starts {
        assert!(start.validity().counts(), "{:?}", start.validity());
        let variants: Vec<usize> = start.loads.iter().map(|load| load.summary.load.variant).collect();
        assert_eq!(variants, [0, 1, 2]);
        for load in &start.loads {
            assert!(load.slices.len() >= 4, "{} slices", load.slices.len());
            let check = load.summary.replies.sequences.values().next().expect("the study checks the numbers");
            assert!(check.holds() && check.replies > 0, "{check:?}");
        }
    }
    let report = place.read("bundle/report/report.md");
    assert!(report.contains("Does a channel cost more than a mutex?"), "{report}");
}

#[test]
fn a_study_in_turns_runs_from_study_to_report() {
    let place = Place::with_study(&study());
    place.plimsoll(&["plan", "study.toml"]).with(0).prints(&[
        "design      turns: all variants alive on each start, 4 slices of 200 ms for each",
        "2 starts of 3 variants",
    ]);
    let run = place.plimsoll(&RUN).with_any_verdict().says(&["2/2"]).prints(&["bundle/report/report.html"]);
    assert!(!run.stderr.contains("share processors"), "variants that take turns may: {}", run.stderr);
    place.nothing_runs();
    assert_whole(&place);
    place.plimsoll(&["report", "bundle"]).with_any_verdict();
}

#[test]
fn a_study_side_by_side_runs_from_study_to_report() {
    let place = Place::with_study(&edited(&study(), "\"turns\"", "\"side by side\""));
    place.plimsoll(&["plan", "study.toml"]).with(0).prints(&[
        "design      side by side: all variants alive on each start, 4 slices of 200 ms for each, each at the same time as \
         one of the baseline",
        "2 starts of 3 variants",
    ]);
    let warning = "side by side, systems and generator share processors here";
    place.plimsoll(&RUN).with_any_verdict().says(&["2/2", warning]);
    place.nothing_runs();
    assert_whole(&place);
    for start in standing(&bundle(&place)) {
        let slices: Vec<(usize, Option<usize>)> = start
            .loads
            .iter()
            .flat_map(|load| load.slices.iter().map(|slice| (load.summary.load.variant, slice.beside)))
            .collect();
        let of = |pair: (usize, Option<usize>)| slices.iter().filter(|slice| **slice == pair).count();
        assert_eq!([(0, Some(1)), (1, Some(0)), (0, Some(2)), (2, Some(0))].map(of), [4; 4], "{slices:?}");
        let of_variant = |variant: usize| start.loads.iter().find(|load| load.summary.load.variant == variant).unwrap();
        let overlap = |one: &Slice, other: &Slice| {
            let end = |slice: &Slice| slice.zero.after(slice.length);
            one.zero < end(other) && other.zero < end(one)
        };
        let beside_variant = of_variant(0).slices.iter().filter(|slice| slice.beside == Some(1));
        assert!(
            beside_variant.zip(&of_variant(1).slices).any(|(baseline, variant)| overlap(baseline, variant)),
            "no two slices ran at the same time"
        );
    }
}

#[test]
fn a_start_that_was_interrupted_amid_its_turns_runs_again() {
    let place = Place::with_study(&edited(&study(), "count = 4", "count = 8"));
    let mut run = place.start(&RUN);
    run.wait_until("a slice of the second start", |_| {
        place.has("bundle/events.jsonl")
            && place.read("bundle/events.jsonl").contains("\"event\":\"second_passed\",\"start\":2,\"load\":9,")
    });
    run.signal(Signal::INT);
    run.end().with(130);
    place.nothing_runs();
    place.plimsoll(&[&RUN[..], &["--resume"]].concat()).with_any_verdict().says(&["1 of them done before"]);
    assert_whole(&place);
}

#[test]
fn a_system_that_dies_in_a_turn_fails_its_start() {
    let place = Place::with_study(&edited(
        &edited(&study(), START, "start = \"sh mortal.sh '{plimsoll}' {mode} {address}\""),
        "count = 4",
        "count = 20",
    ));
    place.write(
        "mortal.sh",
        "\"$1\" demo-server --mode \"$2\" --listen \"$3\" &\nserver=$!\nsleep 3\nkill -9 $server\nexit 7\n",
    );
    place.plimsoll(&RUN).with(3).says(&["failed: ", "ended by itself"]);
    place.nothing_runs();
}

#[test]
fn a_system_that_stands_still_in_a_turn_voids_its_start_and_is_named() {
    let start = "start = \"sh frozen.sh '{plimsoll}' {mode} {address}\"\nstop = { signal = \"KILL\" }";
    let study = edited(&edited(&study(), START, start), "repeats  = 2", "repeats  = 2\nspare_blocks = 0");
    let place = Place::with_study(&edited(&study, "count = 4", "count = 8"));
    // In the second turn: a machine that is busy has more seconds in a warm-up, but no more loads in a turn.
    // Events of an earlier start may be written only after this one has begun.
    let script = "\"$1\" demo-server --mode \"$2\" --listen \"$3\" &\nserver=$!\n\
                  since=$(date -u +%Y-%m-%dT%H:%M:%S)\n\
                  later() { awk -v since=\"$since\" '/\"second_passed\",\"start\":[0-9]+,\"load\":([4-9]|[1-9][0-9]),/ \
                  && substr($0, 8, 19) > since { n++ } END { print n + 0 }' bundle/events.jsonl; }\n\
                  [ \"$2\" = inputQ ] && {\n\
                  until [ \"$(later)\" -ge 2 ]; do sleep 0.02; done; kill -STOP $server; }\nwait\n";
    place.write("frozen.sh", script);
    let says = ["void: only", "no exchange of inputQ ended in a slice or its drain; its system hangs, or"];
    place.plimsoll(&RUN).with(4).says(&says);
    place.nothing_runs();
}

#[test]
fn a_variant_that_works_between_its_slices_is_named_and_never_called_equivalent() {
    let start = "start = \"sh busy.sh '{plimsoll}' {mode} {address}\"";
    let place = Place::with_study(&edited(&edited(&study(), START, start), "count = 4", "count = 14"));
    // Three quarters of a processor or so, whoever is loaded.
    let script = "\"$1\" demo-server --mode mutex --listen \"$3\" &\n\
                  [ \"$2\" = inputQ ] && while :; do timeout 0.15 sh -c 'while :; do :; done'; sleep 0.05; done\n\
                  wait\n";
    place.write("busy.sh", script);
    place.plimsoll(&RUN).with_any_verdict();
    place.nothing_runs();
    let report = place.read("bundle/report/report.md");
    assert!(report.contains("The systems of a variant use the processors while another one is loaded"), "{report}");
    assert!(!report.contains("| equivalent"), "{report}");
}

#[test]
fn what_cannot_take_turns_is_refused_with_the_remedy() {
    let with = |from: &str, to: &str| Place::with_study(&edited(&study(), from, to));
    for (place, says) in [
        (with("\"300ms\"", "\"300ms\"\niterations = 10"), "the load ends after a number of iterations"),
        (with("[system.counter]", "[system.counter]\nport = 7654"), "listens on port 7654"),
        (
            with("design   = \"turns\"", "design   = \"trials\""),
            "`[turns]` is for a study whose variants are loaded in turns",
        ),
        (with("count = 4", "count = 3"), "count"),
        (with("\"turns\"", "\"turn\""), "must be \"trials\", \"turns\" or \"side by side\""),
        (with("slice = \"200ms\"", "slice = \"0s\""), "slice"),
    ] {
        place.plimsoll(&["check", "study.toml"]).with(2).says(&[says]);
    }
}

#[test]
fn the_design_is_named_with_its_reason() {
    let unnamed = edited(TINY, "design   = \"trials\"\n", "");
    let with = |from: &str, to: &str| edited(&unnamed, from, to);
    for (study, design) in [
        (
            unnamed.clone(),
            "design      turns: all variants alive on each start, 8 slices of 300 ms for each; the default",
        ),
        (TINY.to_owned(), "design      trials: one variant at a time; as the study asks for"),
        (with("[system.counter]", "[system.counter]\nport = 7654"), "listens on port 7654"),
        (with("\"300ms\"", "\"300ms\"\niterations = 10"), "variants do not take turns: the load ends after a number"),
    ] {
        let place = Place::with_study(&study);
        for command in ["check", "plan"] {
            place.plimsoll(&[command, "study.toml"]).with(0).prints(&[design]);
        }
    }
}
