use super::*;
use crate::decide::{ComparisonToDecide, Evidence, Floor, both, decide};
use plimsoll_model::study::FloorRule;

fn verdict_on(measure: &str, differences: &[f64], margin: f64) -> Verdict {
    let measure: Measure = measure.parse().expect("a measure");
    let evidence = Evidence::paired(differences, 1e-9, 0.05);
    let margin_there = additive_margin(measure.effect(), margin);
    let decision = decide(
        &[ComparisonToDecide { evidence, margin: margin_there, floor: None, influence: None, hidden_by: None }],
        0.05,
    )
    .remove(0);
    of_decision(&measure, differences.len(), &decision, margin)
}

#[test]
fn direction_makes_better_and_worse() {
    let (more, less) = ([0.2, 0.21, 0.19], [-0.2, -0.21, -0.19]);
    for (measure, differences, expected) in [
        ("iteration_duration.p95", more, Outcome::Worse),
        ("iteration_duration.p95", less, Outcome::Better),
        ("iterations.rate", more, Outcome::Better),
        ("iterations.rate", less, Outcome::Worse),
        ("errors.ratio", more, Outcome::Worse),
    ] {
        assert_eq!(verdict_on(measure, &differences, 0.05).outcome, expected, "{measure}");
    }
}

#[test]
fn the_reason_names_interval_margin_and_what_it_takes() {
    let open = verdict_on("iterations.rate", &[0.1, -0.08, 0.02], 0.05);
    assert_eq!(open.outcome, Outcome::Inconclusive);
    assert!(open.reason.starts_with("the interval reaches from −"), "{}", open.reason);
    assert!(open.reason.contains("within 5 % is shown; about "), "{}", open.reason);
    let uncertain = verdict_on("iterations.rate", &[0.05, 0.06, 0.04], 0.05);
    assert_eq!(uncertain.in_words(), "better, size uncertain");
}

#[test]
fn a_floor_in_doubt_says_what_lies_beyond_it_and_what_would_decide() {
    let over = |differences: &[f64], floor: &[f64]| {
        let [evidence, floor] = [differences, floor].map(|values| Evidence::paired(values, 1e-9, 0.05));
        let floor = floor.map(|evidence| Floor {
            evidence,
            rule: FloorRule::default(),
            widest_in_margins: 1.0,
            with_each_copy: None,
        });
        let to_decide = ComparisonToDecide { evidence, margin: 0.05, floor, influence: None, hidden_by: None };
        let measure: Measure = "iterations.rate".parse().expect("a measure");
        let verdict = of_decision(&measure, differences.len(), &decide(&[to_decide], 0.05).remove(0), 0.05);
        assert_eq!((verdict.outcome, verdict.blocked_by_floor), (Outcome::Inconclusive, true));
        verdict
    };
    let (many_times, same) = ([3.0, 3.01, 2.99], [0.0, 0.01, -0.01]);
    let (wide, wilder, biased) = ([0.0, 0.04, -0.04], [0.0, 2.0, -2.0], [0.10, 0.11, 0.09]);
    for (differences, floor, beyond, reason) in [
        (
            many_times,
            wide,
            true,
            "the noise floor (−9.5 % to +10.4 %) is wider than the margin of 5 %; the difference itself, ×19.6 to \
             ×20.6, lies beyond it; to decide: about 14 repeats in all, a quieter machine, a wider margin or \
             `noise_floor = \"beyond\"`",
        ),
        (
            same,
            wide,
            false,
            "the noise floor (−9.5 % to +10.4 %) is wider than the margin of 5 %; to decide: about 14 repeats in all, a \
             quieter machine or a wider margin",
        ),
        (
            same,
            wilder,
            false,
            "the noise floor (×0.0070 to ×144) is wider than the margin of 5 %; to decide: longer loads, a quieter \
             machine or a wider margin, because it would take more than 1,000 repeats",
        ),
        (
            many_times,
            biased,
            true,
            "the noise floor (+7.8 % to +13.3 %) excludes a change of zero; the difference itself, ×19.6 to ×20.6, lies \
             beyond it; let `plimsoll doctor --aa` tell whether that was chance, or declare `noise_floor = \"beyond\"`",
        ),
    ] {
        let verdict = over(&differences, &floor);
        assert_eq!((verdict.exceeds_floor, verdict.reason.as_str()), (beyond, reason));
    }
}

#[test]
fn what_is_typically_worse_than_the_margin_passes_no_gate() {
    // The mean is inside the margin, by four values of 30 that are far below the others.
    let pulled: Vec<f64> = (0..30).map(|index| if index < 26 { 0.06 } else { 0.0 }).collect();
    let of = |values: &[f64]| {
        let to_decide = ComparisonToDecide {
            evidence: Evidence::paired(values, 1e-9, 0.05),
            margin: 0.0599,
            floor: None,
            influence: None,
            hidden_by: None,
        };
        let measure: Measure = "iteration_duration.p95".parse().expect("a measure");
        of_decision(&measure, values.len(), &decide(&[to_decide], 0.05).remove(0), 0.0599_f64.exp_m1())
    };
    let slower = of(&pulled);
    assert_eq!((slower.outcome, slower.not_inferior), (Outcome::Worse, false));
    let faster = of(&pulled.iter().map(|value| -value).collect::<Vec<f64>>());
    assert_eq!((faster.outcome, faster.not_inferior), (Outcome::Better, true));
    let unclear: Vec<f64> = pulled.iter().map(|value| if *value > 0.0 { *value } else { -0.3 }).collect();
    let unclear = of(&unclear);
    assert_eq!((unclear.outcome, unclear.not_inferior), (Outcome::Inconclusive, false));
    assert!(unclear.reason.contains("the difference is +6.2 %, outside the margin of 6.2 %"), "{}", unclear.reason);
}

#[test]
fn equivalence_over_a_floor_that_excludes_zero_names_it() {
    // From the mean of both copies, of which one is 0.01 above the other.
    let verdict = |spread: f64| {
        let around =
            |middle: f64, spread: f64| Evidence::paired(&[middle, middle + spread, middle - spread], 1e-9, 0.05);
        let floor = around(0.01, 0.001).map(|evidence| Floor {
            evidence,
            rule: FloorRule::Beyond,
            widest_in_margins: 1.0,
            with_each_copy: both([around(0.005, spread), around(-0.005, spread)]),
        });
        let evidence = around(0.0, spread);
        let to_decide = ComparisonToDecide { evidence, margin: 0.05, floor, influence: None, hidden_by: None };
        let measure: Measure = "iterations.rate".parse().expect("a measure");
        of_decision(&measure, 3, &decide(&[to_decide], 0.05).remove(0), 0.05)
    };
    let holds = verdict(0.001);
    assert_eq!((holds.outcome, holds.holds_despite_floor), (Outcome::Equivalent, true));
    assert_eq!(
        holds.reason,
        "the interval lies within the margin of 5 %, also with each copy of the baseline alone, which differ by +0.8 % \
         to +1.3 %"
    );
    let open = verdict(0.019);
    assert_eq!((open.outcome, open.needed), (Outcome::Inconclusive, Some(6)));
    assert_eq!(
        open.reason,
        "the noise floor (+0.8 % to +1.3 %) excludes a change of zero; about 6 repeats in all would probably decide"
    );
}

#[test]
fn whatever_forbids_equivalence_forbids_the_gate_where_nothing_is_decided() {
    // About −13 % to +2 %.
    let differences = [-0.10, 0.01, -0.14, -0.02, -0.03];
    let wide = Evidence::paired(&[0.0, 0.08, -0.08, 0.05, -0.05], 1e-9, 0.05).map(|evidence| Floor {
        evidence,
        rule: FloorRule::Beyond,
        widest_in_margins: 1.0,
        with_each_copy: None,
    });
    let of = |floor: Option<Floor>, hidden_by: Option<HiddenBy>| {
        let evidence = Evidence::paired(&differences, 1e-9, 0.05);
        let to_decide = ComparisonToDecide { evidence, margin: 0.05, floor, influence: None, hidden_by };
        let measure: Measure = "iteration_duration.p95".parse().expect("a measure");
        let verdict = of_decision(&measure, 5, &decide(&[to_decide], 0.05).remove(0), 0.05);
        assert_eq!(verdict.outcome, Outcome::Inconclusive);
        (verdict.not_inferior, verdict.gate_objection)
    };
    assert_eq!(of(None, None), (true, None));
    assert_eq!(of(wide, None), (false, Some("the noise floor is in doubt")));
    assert_eq!(of(None, Some(HiddenBy::SharedProcessors)), (false, Some("a larger difference may be hidden")));
}

#[test]
fn non_inferiority_looks_at_the_worse_end_alone() {
    // About −20 % to +2 %: not worse by 5 % where less is better, perhaps worse where more is.
    let differences = [-0.10, -0.06, -0.14, -0.08, -0.03];
    assert!(verdict_on("iteration_duration.p95", &differences, 0.05).not_inferior);
    assert!(!verdict_on("iterations.rate", &differences, 0.05).not_inferior);
}
