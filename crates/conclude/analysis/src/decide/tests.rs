use super::*;
use plimsoll_statistics::one_sample;
use proptest::prelude::*;

const ALPHA: f64 = 0.05;

fn evidence(differences: &[f64]) -> Option<Evidence> {
    Evidence::paired(differences, 1e-9, ALPHA)
}

fn to_decide(differences: &[f64]) -> ComparisonToDecide {
    ComparisonToDecide { evidence: evidence(differences), margin: 0.05, floor: None, influence: None, hidden_by: None }
}

/// The evidence of differences from the baseline alone, which these are, and of those from its duplicate alone.
fn with_each_copy(differences: &[f64], floor: &[f64]) -> Option<[Evidence; 2]> {
    let pairs = differences.iter().zip(floor);
    both([
        evidence(differences),
        evidence(&pairs.map(|(difference, of_floor)| difference - of_floor).collect::<Vec<_>>()),
    ])
}

fn with_floor(differences: &[f64], floor: &[f64], rule: FloorRule) -> ComparisonToDecide {
    ComparisonToDecide {
        floor: evidence(floor).map(|of_floor| Floor {
            evidence: of_floor,
            rule,
            widest_in_margins: 1.0,
            with_each_copy: with_each_copy(differences, floor),
        }),
        ..to_decide(differences)
    }
}

/// `n` differences around `centre` whose interval reaches `half` to both sides.
fn around(centre: f64, half: f64, n: usize) -> Vec<f64> {
    let raw: Vec<f64> = (0..n).map(|index| index as f64 - (n - 1) as f64 / 2.0).collect();
    let test = one_sample(&raw).expect("several values");
    let scale = half / test.interval(0.95).half_width();
    raw.iter().map(|value| centre + value * scale).collect()
}

fn member(differences: &[f64]) -> Decision {
    decide(&[to_decide(differences)], ALPHA).remove(0)
}

#[test]
fn the_interval_decides_against_the_margin() {
    for (centre, half, outcome, basis) in [
        (0.0, 0.04, Outcome::Equivalent, Basis::Inside { measurable: false, despite: None }),
        (0.03, 0.015, Outcome::Equivalent, Basis::Inside { measurable: true, despite: None }),
        (0.05, 0.03, Outcome::Above, Basis::Shown { material: false }),
        (0.10, 0.03, Outcome::Above, Basis::Shown { material: true }),
        (-0.05, 0.03, Outcome::Below, Basis::Shown { material: false }),
        (-0.10, 0.03, Outcome::Below, Basis::Shown { material: true }),
    ] {
        let decision = member(&around(centre, half, 5));
        assert_eq!((decision.outcome, decision.basis), (outcome, basis), "{centre} ± {half}");
    }
    let open = member(&around(0.02, 0.06, 5));
    assert_eq!(open.outcome, Outcome::Open);
    assert!(matches!(open.basis, Basis::Unclear { needed: Some(needed) } if needed > 5), "{open:?}");
}

#[test]
fn fewer_than_three_repeats_decide_nothing() {
    for differences in [&[][..], &[0.5], &[0.5, 0.5]] {
        let decision = member(differences);
        assert_eq!((decision.outcome, decision.basis), (Outcome::Open, Basis::TooFew));
        assert_eq!(decision.interval, None);
    }
}

#[test]
fn values_that_agree_are_not_taken_for_certainty() {
    let coarse = ComparisonToDecide {
        evidence: Evidence::paired(&[0.0; 3], 0.03, ALPHA),
        margin: 0.05,
        floor: None,
        influence: None,
        hidden_by: None,
    };
    assert_eq!(decide(&[coarse], ALPHA)[0].outcome, Outcome::Open, "0 ± 0.0745");
    assert_eq!(member(&[0.0; 3]).outcome, Outcome::Equivalent, "exact values");
    assert_eq!(member(&[0.2; 3]).outcome, Outcome::Above, "exact values");
}

#[test]
fn one_of_many_needs_more_than_its_own_interval() {
    let weak = around(0.10, 0.095, 5);
    assert_eq!(member(&weak).outcome, Outcome::Above);
    let noise = around(0.0, 0.10, 5);
    let family: Vec<ComparisonToDecide> = [&weak, &noise, &noise, &noise].map(|values| to_decide(values)).into();
    let decisions = decide(&family, ALPHA);
    assert!(matches!(decisions[0].basis, Basis::OneOfMany { family: 4, needed: Some(_) }), "{:?}", decisions[0]);
}

#[test]
fn equivalence_needs_no_adjustment() {
    let family: Vec<ComparisonToDecide> = (0..20).map(|_| to_decide(&around(0.01, 0.03, 5))).collect();
    assert!(decide(&family, ALPHA).iter().all(|decision| decision.outcome == Outcome::Equivalent));
}

#[test]
fn ranks_that_disagree_take_a_decision_back() {
    // The t interval lies wholly above 0; of the seven values two are below it.
    let values = [0.30, 0.31, 0.29, 0.30, 0.32, -0.01, -0.02];
    let test = evidence(&values).expect("values").test;
    assert!(test.interval(0.95).low > 0.0);
    let decision = member(&values);
    assert!(matches!(decision.basis, Basis::OutlierSensitive { .. }), "{decision:?}");
}

#[test]
fn ranks_take_equivalence_back_only_where_what_is_typical_lies_outside_the_margin() {
    let with_margin = |values: &[f64], margin: f64| {
        let decision = decide(&[ComparisonToDecide { margin, ..to_decide(values) }], ALPHA).remove(0);
        let student = decision.interval.expect("an interval");
        assert!(student.high < margin, "{student:?}");
        (decision.outcome, matches!(decision.basis, Basis::Inside { .. }))
    };
    // By ranks the interval reaches out of the margin; the estimate lies inside.
    let two_kinds = [0.02, 0.0201, 0.0202, 0.0203, 0.0204, 0.04, 0.0401, 0.0402, 0.0403];
    let ranked = evidence(&two_kinds).and_then(|found| found.shift?.interval).expect("nine values have ranks");
    assert_eq!(with_margin(&two_kinds, ranked.high - 1e-6), (Outcome::Equivalent, true));
    // Four values of 30 pull the mean away from what the others agree upon. A difference may be shown all the same.
    assert_eq!(with_margin(&pulled(0.0), 0.0599), (Outcome::Above, false));
    let decision = decide(&[ComparisonToDecide { margin: 0.0599, ..to_decide(&pulled(-0.3)) }], ALPHA).remove(0);
    let Basis::OutlierSensitive { typical: Some(typical), .. } = decision.basis else { panic!("{decision:?}") };
    assert!((typical - 0.06).abs() < 1e-12 && decision.equivalence_withdrawn, "{typical}");
    // Three cannot: they widen the interval by more than they move it.
    let three: Vec<f64> = pulled(0.0).into_iter().skip(1).collect();
    assert!(evidence(&three[..three.len() - 1]).expect("values").test.interval(0.95).high > 0.06);
}

/// 26 values of 0.06 and four of `other`.
fn pulled(other: f64) -> Vec<f64> {
    (0..30).map(|index| if index < 26 { 0.06 } else { other }).collect()
}

#[test]
fn a_floor_may_be_as_much_wider_as_it_is_made_so() {
    let (same, floor) = (around(0.0, 0.04, 5), around(0.0, 0.055, 5));
    let over = |widest_in_margins: f64| {
        let to_decide = with_floor(&same, &floor, FloorRule::Beyond);
        let floor = to_decide.floor.clone().map(|floor| Floor { widest_in_margins, ..floor });
        decide(&[ComparisonToDecide { floor, ..to_decide }], ALPHA).remove(0)
    };
    assert!(matches!(over(1.0).basis, Basis::NoiseFloor { doubt: Doubt::Wide, .. }));
    assert_eq!(over(1.155).outcome, Outcome::Equivalent);
    assert!(matches!(over(1.05).basis, Basis::NoiseFloor { doubt: Doubt::Wide, .. }), "5.5 % is wider than 5.25 %");
}

#[test]
fn where_equivalence_is_withdrawn_a_difference_is_still_shown() {
    let inside = around(0.03, 0.015, 9);
    assert_eq!(member(&inside).outcome, Outcome::Equivalent);
    let over = |floor: &[f64], rule| ruled(&inside, floor, rule);
    // The floor is wide, and the difference within it: neither claim stands. Beyond it, the difference does.
    let wide = around(0.0, 0.06, 9);
    assert!(matches!(over(&wide, FloorRule::Beyond).basis, Basis::NoiseFloor { doubt: Doubt::Wide, .. }));
    // From the duplicate it differs by 0.041 to 0.053, and the margin is 0.05.
    let (above, biased) = (around(0.035, 0.01, 9), around(-0.012, 0.004, 9));
    let found = ruled(&above, &biased, FloorRule::Beyond);
    assert_eq!((found.outcome, found.basis), (Outcome::Above, Basis::Shown { material: false }));
    assert_eq!(ruled(&above, &biased, FloorRule::Strict).outcome, Outcome::Open);
    // Shared processors may hide a part of a difference, and make none.
    let beside = ComparisonToDecide { hidden_by: Some(HiddenBy::SharedProcessors), ..to_decide(&inside) };
    assert_eq!(decide(&[beside], ALPHA)[0].outcome, Outcome::Above);
    // What carry-over may hide is taken out of the difference as well.
    let with_carry_over = |low, high| {
        let influence = Influence {
            kind: InfluenceKind::CarryOver,
            value: 0.0,
            interval: Some(Interval { low: -0.04, high: 0.01 }),
            starts: 9,
            without: Some(Interval { low, high }),
            sd_without: 0.03,
        };
        decide(&[ComparisonToDecide { influence: Some(influence), ..to_decide(&inside) }], ALPHA).remove(0)
    };
    assert_eq!(with_carry_over(0.01, 0.06).outcome, Outcome::Above);
    assert!(matches!(with_carry_over(-0.01, 0.06).basis, Basis::Influence { doubt: InfluenceDoubt::Hides, .. }));
    // As one of many it is shown by nothing.
    let noise = around(0.0, 0.10, 9);
    let weak =
        ComparisonToDecide { hidden_by: Some(HiddenBy::SharedProcessors), ..to_decide(&around(0.02, 0.0195, 9)) };
    let family = [weak, to_decide(&noise), to_decide(&noise), to_decide(&noise)];
    assert!(matches!(decide(&family, ALPHA)[0].basis, Basis::MayHide(_)));
}

fn ruled(differences: &[f64], floor: &[f64], rule: FloorRule) -> Decision {
    decide(&[with_floor(differences, floor, rule)], ALPHA).remove(0)
}

#[test]
fn a_noise_floor_in_doubt_leaves_everything_open() {
    let (quiet, biased, wide) = (around(0.0, 0.02, 5), around(0.03, 0.01, 5), around(0.0, 0.08, 5));
    let (twentyfold, same, unclear) = (around(3.0, 0.01, 5), around(0.0, 0.03, 5), around(0.02, 0.06, 5));
    for (floor, doubt) in [(&biased, Doubt::NotZero), (&wide, Doubt::Wide)] {
        for (differences, lies_beyond_floor) in [(&twentyfold, true), (&same, false), (&unclear, false)] {
            let decision = ruled(differences, floor, FloorRule::default());
            assert_eq!(decision.outcome, Outcome::Open, "{differences:?}");
            let Basis::NoiseFloor { doubt: found, beyond, needed, .. } = decision.basis else { panic!("{decision:?}") };
            assert_eq!((found, beyond), (doubt, lies_beyond_floor), "{differences:?}");
            assert_eq!(needed.is_some_and(|needed| needed > 5), doubt == Doubt::Wide, "repeats cure no bias");
        }
    }
    for differences in [&twentyfold, &same, &unclear] {
        let decision = ruled(differences, &quiet, FloorRule::default());
        assert_eq!(decision, member(differences), "a floor that holds does nothing");
    }
}

#[test]
fn a_wide_floor_asks_for_the_repeats_that_both_need() {
    let needed = |differences: &[f64], floor: &[f64]| match ruled(differences, floor, FloorRule::Strict).basis {
        Basis::NoiseFloor { needed, .. } | Basis::Unclear { needed } => needed.expect("a forecast"),
        other => panic!("{other:?}"),
    };
    let (quiet, wide, wider) = (around(0.0, 0.02, 5), around(0.0, 0.06, 5), around(0.0, 0.5, 5));
    let (decided, unclear) = (around(1.0, 0.01, 5), around(0.02, 0.2, 5));
    assert!(needed(&unclear, &quiet) > needed(&decided, &wide), "the values take longer");
    assert_eq!(needed(&unclear, &wide), needed(&unclear, &quiet));
    assert_eq!(needed(&unclear, &wider).cmp(&needed(&decided, &wider)), std::cmp::Ordering::Equal);
}

#[test]
fn by_the_milder_rule_a_floor_takes_back_what_it_could_explain() {
    let (quiet, biased, wide) = (around(0.0, 0.02, 5), around(0.04, 0.01, 5), around(0.0, 0.08, 5));
    let (small, large, same) = (around(0.06, 0.03, 5), around(0.5, 0.1, 5), around(0.0, 0.03, 5));
    for (differences, floor, outcome) in [
        (&small, &quiet, Outcome::Above),
        (&same, &quiet, Outcome::Equivalent),
        (&small, &biased, Outcome::Open),
        (&same, &biased, Outcome::Open),
        (&large, &biased, Outcome::Above),
        (&small, &wide, Outcome::Open),
        (&same, &wide, Outcome::Open),
        (&large, &wide, Outcome::Above),
    ] {
        assert_eq!(ruled(differences, floor, FloorRule::Beyond).outcome, outcome, "{differences:?} over {floor:?}");
    }
    for (floor, doubt) in [(&biased, Doubt::NotZero), (&wide, Doubt::Wide)] {
        let decision = ruled(&same, floor, FloorRule::Beyond);
        let Basis::NoiseFloor { doubt: found, needed, .. } = decision.basis else { panic!("{decision:?}") };
        assert_eq!((found, needed.is_some_and(|needed| needed > 5)), (doubt, true));
    }
}

#[test]
fn a_decision_is_for_good_where_the_others_cannot_change_it() {
    // p is about 0.018 and 0.042: by Holm both are below 0.05, and by Bonferroni the first.
    let (sure, barely) = (around(0.2, 0.2 / 1.4, 5), around(0.2, 0.2 / 1.06, 5));
    let (same, unclear) = (around(0.0, 0.03, 5), around(0.02, 0.06, 5));
    let found = |family: [&[f64]; 2]| {
        let decisions = decide(&family.map(to_decide), ALPHA);
        [0, 1].map(|index| (decisions[index].outcome, decisions[index].for_good))
    };
    assert_eq!(found([&sure, &barely]), [(Outcome::Above, true), (Outcome::Above, false)]);
    assert_eq!(found([&same, &unclear]), [(Outcome::Equivalent, true), (Outcome::Open, false)]);
    assert_eq!(decide(&[to_decide(&barely)], ALPHA)[0].outcome, Outcome::Above);
    assert!(decide(&[to_decide(&barely)], ALPHA)[0].for_good, "alone");
    // Comparisons with too few repeats as yet count as well.
    let family = [to_decide(&barely), to_decide(&[0.1, 0.1])];
    assert!(!decide(&family, ALPHA)[0].for_good);
}

#[test]
fn equivalence_over_a_floor_stands_where_it_holds_with_each_copy_of_the_baseline() {
    // The margin is 0.05. The duplicate is 0.012 above the baseline, or below it. So what is 0.033 on the other side of
    // the baseline is 0.045 from the duplicate.
    for side in [1.0, -1.0] {
        let floor = around(side * 0.012, 0.008, 5);
        for (middle, half, stands) in [
            (0.0, 0.01, true),
            (0.02, 0.01, true),
            (-0.02, 0.01, true),
            (side * 0.033, 0.015, true),
            (side * -0.033, 0.015, false),
        ] {
            let differences = around(middle, half, 5);
            let decision = ruled(&differences, &floor, FloorRule::Beyond);
            let despite = matches!(decision.basis, Basis::Inside { measurable: false, despite: Some(_) });
            let withdrawn = matches!(decision.basis, Basis::NoiseFloor { doubt: Doubt::NotZero, .. });
            assert_eq!(
                (decision.outcome == Outcome::Equivalent, despite, withdrawn),
                (stands, stands, !stands),
                "{decision:?}"
            );
            assert_eq!(ruled(&differences, &floor, FloorRule::Strict).outcome, Outcome::Open);
            let mut without_copies = with_floor(&differences, &floor, FloorRule::Beyond);
            without_copies.floor = without_copies.floor.map(|floor| Floor { with_each_copy: None, ..floor });
            assert_eq!(decide(&[without_copies], ALPHA)[0].outcome, Outcome::Open);
        }
    }
}

#[test]
fn only_the_milder_rule_waits_for_a_difference_to_lie_beyond() {
    let wide = around(0.0, 2.0, 5);
    let large = around(3.0, 2.5, 5);
    let needed = |rule| match ruled(&large, &wide, rule).basis {
        Basis::NoiseFloor { needed, .. } => needed,
        other => panic!("{other:?}"),
    };
    assert!(needed(FloorRule::Beyond).is_some_and(|needed| needed < 50), "beyond the floor");
    assert_eq!(needed(FloorRule::Strict), None, "so wide a floor does not fit into the margin");
}

#[test]
fn carry_over_takes_back_what_it_could_explain() {
    let (same, small, large, unclear) =
        (around(0.0, 0.03, 5), around(0.06, 0.03, 5), around(-0.5, 0.1, 5), around(0.02, 0.06, 5));
    // What is left of a difference does not matter where carry-over is shown.
    let after = |differences: &[f64], influence: [f64; 2], without: [f64; 2]| {
        let interval = |[low, high]: [f64; 2]| Some(Interval { low, high });
        let (interval, without) = (interval(influence), interval(without));
        let kind = InfluenceKind::CarryOver;
        let influence = Influence { kind, value: 0.0, interval, starts: 5, without, sd_without: 0.03 };
        decide(&[ComparisonToDecide { influence: Some(influence), ..to_decide(differences) }], ALPHA).remove(0)
    };
    let inside = [-0.04, 0.04];
    for (differences, influence, without, outcome) in [
        (&same, [-0.02, 0.03], inside, Outcome::Equivalent),
        (&small, [-0.02, 0.03], inside, Outcome::Above),
        // Shown, but below half the margin of 0.05.
        (&same, [0.01, 0.02], inside, Outcome::Equivalent),
        (&same, [0.01, 0.03], inside, Outcome::Open),
        (&small, [-0.04, -0.01], inside, Outcome::Open),
        (&large, [0.01, 0.03], inside, Outcome::Below),
        (&large, [0.3, 0.5], inside, Outcome::Open),
        // Not shown, but it may hide a difference.
        (&same, [-0.01, 0.06], [-0.03, 0.06], Outcome::Open),
        (&small, [-0.5, 0.5], [-0.3, 0.4], Outcome::Above),
    ] {
        let decision = after(differences, influence, without);
        assert_eq!(decision.outcome, outcome, "{differences:?} with {influence:?}");
        if outcome == Outcome::Open {
            let Basis::Influence { doubt, needed, .. } = decision.basis else { panic!("{decision:?}") };
            assert_eq!(needed.is_some_and(|needed| needed > 5), doubt == InfluenceDoubt::Hides, "{needed:?}");
        }
    }
    assert!(matches!(after(&unclear, [-0.5, 0.5], [-0.3, 0.4]).basis, Basis::Unclear { .. }), "more repeats help");
    assert!(matches!(after(&unclear, [0.01, 0.03], inside).basis, Basis::Influence { .. }), "they do not");
}

#[test]
fn a_floor_of_too_few_repeats_raises_no_doubt() {
    for rule in [FloorRule::Beyond, FloorRule::Strict] {
        let to_decide = with_floor(&around(0.0, 0.03, 5), &[0.3, 0.5], rule);
        assert_eq!(decide(&[to_decide], ALPHA)[0].outcome, Outcome::Equivalent, "{rule:?}");
    }
}

proptest! {
    #[test]
    fn turning_all_signs_turns_the_outcome(values in prop::collection::vec(-1.0..1.0_f64, 0..9)) {
        let negated: Vec<f64> = values.iter().map(|value| -value).collect();
        let turned = match member(&values).outcome {
            Outcome::Above => Outcome::Below,
            Outcome::Below => Outcome::Above,
            outcome => outcome,
        };
        prop_assert_eq!(member(&negated).outcome, turned);
    }

    #[test]
    fn whatever_the_values_nothing_is_nan(
        values in prop::collection::vec(prop_oneof![Just(0.0), -1e3..1e3_f64, Just(1e-300)], 0..12),
        floor in prop::collection::vec(-1e3..1e3_f64, 0..12),
        margin in 1e-6..10.0_f64,
        rule in prop_oneof![Just(FloorRule::Beyond), Just(FloorRule::Strict)],
    ) {
        let to_decide = ComparisonToDecide { margin, ..with_floor(&values, &floor, rule) };
        for decision in decide(&[to_decide.clone(), to_decide], ALPHA) {
            prop_assert!(decision.interval.is_none_or(|member| member.low.is_finite() && member.high.is_finite()));
            prop_assert!(decision.adjusted_p.is_none_or(|p| (0.0..=1.0).contains(&p)));
        }
    }
}

#[test]
fn what_may_hide_a_difference_shows_none_to_be_absent() {
    let side_by_side = |differences: &[f64]| {
        let comparison = ComparisonToDecide { hidden_by: Some(HiddenBy::SharedProcessors), ..to_decide(differences) };
        decide(&[comparison], ALPHA).remove(0)
    };
    let same = side_by_side(&[0.001, -0.001, 0.0, 0.002, -0.002]);
    assert_eq!((same.outcome, same.basis), (Outcome::Open, Basis::MayHide(HiddenBy::SharedProcessors)));
    assert_eq!(side_by_side(&[0.1, 0.11, 0.09]).outcome, Outcome::Above, "a difference is one all the same");
}
