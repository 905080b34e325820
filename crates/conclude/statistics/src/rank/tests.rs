use super::*;
use crate::testing::{close, common, samples};
use proptest::prelude::*;

/// Values above one another without ties: `x` ones, each with so many of `y` below it.
fn two(below: &[usize], y: usize) -> (Vec<f64>, Vec<f64>) {
    let xs = below.iter().enumerate().map(|(index, below)| *below as f64 + 0.5 + index as f64 / 100.0);
    (xs.collect(), (1..=y).map(|value| value as f64).collect())
}

#[test]
fn the_u_test_of_benchstat_is_met() {
    // golang.org/x/perf, benchmath/assumption_test.go, TestCompareNone.
    let table = [
        (&[-1.0, -1.0, -1.0][..], &[1.0, 1.0, 1.0][..], 0.1),
        (&[-1.0, -1.0, -1.0, -1.0], &[1.0, 1.0, 1.0, 1.0], 0.028_571_428_571_428_57),
        (&[1.0, -1.0, -1.0, -1.0], &[-1.0, 1.0, 1.0, 1.0], 0.485_714_285_714_285_7),
        (&[1.0, 1.0, 1.0, 1.0], &[1.0, 1.0, 1.0, 1.0], 1.0),
    ];
    for (x, y, p) in table {
        close(mann_whitney(x, y).unwrap().p, p, 1e-14);
    }
}

#[test]
fn the_least_p_values_are_those_of_benchstat() {
    // golang.org/x/perf, benchmath, uTestMinP: 2/C(2n, n).
    let least = [1.0, 0.3333, 0.1, 0.02857, 0.007937, 0.002_164_5, 0.000_582_75, 0.000_155_40, 4.1135e-5];
    for (index, expected) in least.iter().enumerate() {
        let n = index + 1;
        let (x, y) = two(&vec![0; n], n);
        let y: Vec<f64> = y.iter().map(|value| value + 10.0).collect();
        close(mann_whitney(&x, &y).unwrap().p / expected, 1.0, 2e-4);
    }
}

#[test]
fn tables_are_those_of_mann_and_whitney() {
    // Mann and Whitney 1947, by way of asv, test_statistics.py: P(U ≤ u) for n = 1, 2, … values
    // against m.
    let three: [&[f64]; 6] = [
        &[0.250, 0.100, 0.050],
        &[0.500, 0.200, 0.100],
        &[0.750, 0.400, 0.200],
        &[f64::NAN, 0.600, 0.350],
        &[f64::NAN, f64::NAN, 0.500],
        &[f64::NAN, f64::NAN, 0.650],
    ];
    let four: [&[f64]; 9] = [
        &[0.200, 0.067, 0.028, 0.014],
        &[0.400, 0.133, 0.057, 0.029],
        &[0.600, 0.267, 0.114, 0.057],
        &[f64::NAN, 0.400, 0.200, 0.100],
        &[f64::NAN, 0.600, 0.314, 0.171],
        &[f64::NAN, f64::NAN, 0.429, 0.243],
        &[f64::NAN, f64::NAN, 0.571, 0.343],
        &[f64::NAN, f64::NAN, f64::NAN, 0.443],
        &[f64::NAN, f64::NAN, f64::NAN, 0.557],
    ];
    let five: [&[f64]; 14] = [
        &[0.167, 0.047, 0.018, 0.008, 0.004],
        &[0.333, 0.095, 0.036, 0.016, 0.008],
        &[0.500, 0.190, 0.071, 0.032, 0.016],
        &[0.667, 0.286, 0.125, 0.056, 0.028],
        &[f64::NAN, 0.429, 0.196, 0.095, 0.048],
        &[f64::NAN, 0.571, 0.286, 0.143, 0.075],
        &[f64::NAN, f64::NAN, 0.393, 0.206, 0.111],
        &[f64::NAN, f64::NAN, 0.500, 0.278, 0.155],
        &[f64::NAN, f64::NAN, 0.607, 0.365, 0.210],
        &[f64::NAN, f64::NAN, f64::NAN, 0.452, 0.274],
        &[f64::NAN, f64::NAN, f64::NAN, 0.548, 0.345],
        &[f64::NAN, f64::NAN, f64::NAN, f64::NAN, 0.421],
        &[f64::NAN, f64::NAN, f64::NAN, f64::NAN, 0.500],
        &[f64::NAN, f64::NAN, f64::NAN, f64::NAN, 0.579],
    ];
    for (m, table) in [(3, &three[..]), (4, &four[..]), (5, &five[..])] {
        for (u, row) in table.iter().enumerate() {
            for (index, expected) in row.iter().enumerate().filter(|(_, expected)| !expected.is_nan()) {
                // The table of 1947 is rounded by hand: its last digit is off by one in places.
                close(Discrete::mann_whitney(m, index + 1).up_to(u as f64), *expected, 1e-3);
            }
        }
    }
}

#[test]
fn critical_values_are_those_of_published_tables() {
    // Two-sided 0.05. Signed rank: McCornack 1965, as in most textbooks; the sum of either sign that
    // still rejects.
    let table = [
        (6, 0.0),
        (7, 2.0),
        (8, 3.0),
        (9, 5.0),
        (10, 8.0),
        (11, 10.0),
        (12, 13.0),
        (13, 17.0),
        (14, 21.0),
        (15, 25.0),
        (20, 52.0),
        (25, 89.0),
        (30, 137.0),
        (40, 264.0),
        (50, 434.0),
    ];
    for (n, critical) in table {
        let doubled: Vec<usize> = (1..=n).map(|rank| 2 * rank).collect();
        let distribution = Discrete::signed_rank_sum(&doubled);
        assert!(distribution.up_to(critical) <= 0.025 && distribution.up_to(critical + 1.0) > 0.025, "n {n}");
    }
    // Mann-Whitney, n values a side: Siegel 1956, table K.
    for (n, critical) in
        [(4, 0.0), (5, 2.0), (6, 5.0), (7, 8.0), (8, 13.0), (9, 17.0), (10, 23.0), (15, 64.0), (20, 127.0)]
    {
        let distribution = Discrete::mann_whitney(n, n);
        assert!(distribution.up_to(critical) <= 0.025 && distribution.up_to(critical + 1.0) > 0.025, "n {n}");
    }
}

#[test]
fn larger_distributions_are_those_of_r() {
    // R, pwilcox(317, 30, 30) and pwilcox(3, 1, 20), as in Kayenta's WilcoxTests.
    close(Discrete::mann_whitney(30, 30).up_to(317.0), 0.024_81, 5e-6);
    close(Discrete::mann_whitney(1, 20).up_to(3.0), 0.190_476, 5e-7);
}

#[test]
fn the_repetitions_of_google_benchmark_are_met() {
    // google/benchmark, tools/gbench/report.py and its Inputs/test3_run{0,1}.json, with scipy.
    close(mann_whitney(&[9.0, 8.0], &[10.0, 7.0]).unwrap().p, 1.0, 1e-15);
    close(mann_whitney(&[90.0, 86.0], &[89.0, 72.0]).unwrap().p, 0.666_666_666_666_666_7, 1e-15);
    close(mann_whitney(&[80.0, 77.0], &[75.0, 66.6, 1.0]).unwrap().p, 0.2, 1e-15);
    close(mann_whitney_normal(&[8.0, 8.0], &[7.0, 4.54, 800.0]).unwrap().p, 0.767_096_868_410_277_2, 1e-10);
    close(mann_whitney_normal(&[80.0, 77.0], &[75.0, 66.6, 1.0]).unwrap().p, 0.148_914_673_178_765_72, 1e-10);
}

#[test]
fn the_yields_of_ncss_are_met() {
    // NCSS, Mann-Whitney equivalence of the yields, ±110, as in TOSTER's test-NCSS1.R.
    let a = [452.0, 874.0, 554.0, 447.0, 356.0, 754.0, 558.0, 574.0, 664.0, 682.0, 547.0, 435.0, 245.0];
    let b = [
        546.0, 547.0, 774.0, 465.0, 459.0, 665.0, 467.0, 365.0, 589.0, 534.0, 456.0, 651.0, 654.0, 665.0, 546.0, 537.0,
    ];
    let shifted = |by: f64| a.iter().map(|value| value + by).collect::<Vec<f64>>();
    close(mann_whitney_normal(&shifted(110.0), &b).unwrap().p_greater, 0.0218, 5e-5);
    close(mann_whitney_normal(&shifted(-110.0), &b).unwrap().p_less, 0.0119, 5e-5);
}

/// Hollander and Wolfe 1973, page 29: the Hamilton depression scale before and after.
const DEPRESSION: [f64; 9] = [-0.952, 0.147, -1.022, -0.430, -0.620, -0.590, -0.490, 0.080, -0.010];

#[test]
fn the_depression_example_of_r_is_met() {
    // R, ?wilcox.test: V = 40, p = 0.01953, one-sided, for the first less the second.
    let first_less_second: Vec<f64> = DEPRESSION.iter().map(|value| -value).collect();
    let test = signed_rank(&first_less_second).unwrap();
    assert_eq!(test.statistic, 40.0);
    close(test.p_greater, 0.019_53, 5e-6);
    close(test.p, 0.039_06, 5e-6);
    // Hollander and Wolfe: estimate −0.46, 96 % interval −0.786 to −0.010.
    let found = hodges_lehmann(&DEPRESSION, 0.95).unwrap();
    let interval = found.interval.unwrap();
    close(found.estimate, -0.46, 1e-12);
    close(interval.low, -0.786, 1e-12);
    close(interval.high, -0.010, 1e-12);
    close(found.attained, 0.961, 5e-4);
}

#[test]
fn the_permeability_example_of_r_is_met() {
    // R, ?wilcox.test (Hollander and Wolfe 1973, page 69): W = 35, p = 0.1272 one-sided; SAS,
    // NPAR1WAY: two-sided 0.2544, shift 0.305; R, conf.int: −0.15 to 0.76.
    let x = [0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46];
    let y = [1.15, 0.88, 0.90, 0.74, 1.21];
    let test = mann_whitney(&x, &y).unwrap();
    assert_eq!(test.statistic, 35.0);
    close(test.p_greater, 0.1272, 5e-5);
    close(test.p, 0.2544, 5e-5);
    let found = hodges_lehmann_shift(&x, &y, 0.95).unwrap();
    close(found.estimate, 0.305, 1e-12);
    close(found.interval.unwrap().low, -0.15, 1e-12);
    close(found.interval.unwrap().high, 0.76, 1e-12);
}

#[test]
fn the_shift_of_kayenta_is_met() {
    // Kayenta, MannWhitneySuite, against R.
    let found = hodges_lehmann_shift(&[10.0, 20.0, 30.0, 40.0], &[1.0, 2.0, 3.0, 4.0], 0.95).unwrap();
    assert_eq!(found.estimate, 22.5);
    assert_eq!(found.interval, Some(Interval { low: 6.0, high: 39.0 }));
}

#[test]
fn intervals_attain_what_is_published() {
    // reference/stats.md 5, exact: two samples of n each at 95 %, in per cent.
    let two_samples = [(4, 97.1), (5, 96.8), (6, 95.9), (7, 96.2), (8, 95.0), (9, 96.0), (10, 95.7)];
    for (n, expected) in two_samples {
        let (x, y) = two(&vec![0; n], n);
        let found = hodges_lehmann_shift(&x, &y, 0.95).unwrap();
        assert!(found.interval.is_some());
        close(100.0 * found.attained, expected, 0.051);
    }
    let three = hodges_lehmann_shift(&[1.0, 2.0, 3.0], &[4.0, 5.0, 6.0], 0.95).unwrap();
    assert_eq!(three.interval, None);
    close(three.attained, 0.9, 1e-12);
    // Paired: 6 differences are the least, 1 − 2/2⁶.
    let five = hodges_lehmann(&[1.0, 2.0, 3.0, 4.0, 5.0], 0.95).unwrap();
    assert_eq!(five.interval, None);
    close(five.attained, 1.0 - 2.0 / 32.0, 1e-12);
    let six = hodges_lehmann(&[1.0, 2.0, 3.0, 4.0, 5.0, 7.0], 0.95).unwrap();
    assert_eq!(six.interval, Some(Interval { low: 1.0, high: 7.0 }));
    close(six.attained, 1.0 - 2.0 / 64.0, 1e-12);
}

#[test]
fn tied_values_change_nothing_where_there_are_none() {
    let (x, y) = two(&[0, 3, 4, 7, 7], 8);
    let ranks = Ranks::of_two(&x, &y).unwrap();
    let ties = Discrete::rank_sum_with_ties(&ranks.doubled, x.len());
    let plain = Discrete::mann_whitney(x.len(), y.len());
    for u in 0..=40 {
        close(ties.up_to(f64::from(u)), plain.up_to(f64::from(u)), 1e-13);
        close(ties.from(f64::from(u)), plain.from(f64::from(u)), 1e-13);
    }
}

#[test]
fn too_little_is_none_and_much_is_fine() {
    assert_eq!(mann_whitney(&[], &[1.0]), None);
    assert_eq!(mann_whitney(&[f64::NAN], &[1.0]), None);
    assert_eq!(signed_rank(&[0.0, 0.0]), None);
    assert_eq!(signed_rank(&[f64::INFINITY]), None);
    assert_eq!(hodges_lehmann(&[], 0.95), None);
    assert_eq!(hodges_lehmann_shift(&[1.0], &[], 0.95), None);
    let many: Vec<f64> = (0..3000).map(f64::from).collect();
    close(hodges_lehmann(&many, 0.95).unwrap().estimate, 1499.5, 1e-9);
    let shift = hodges_lehmann_shift(&many, &many, 0.95).unwrap();
    assert_eq!(shift.estimate, 0.0);
    assert!(shift.interval.unwrap().contains(0.0));
    close(mann_whitney(&many, &many).unwrap().p, 1.0, 1e-9);
}

#[test]
fn the_approximation_takes_over_smoothly() {
    let series = |n: usize| (0..n).map(|i| ((i * 37) % 101) as f64 - 40.0 + i as f64 / 1000.0).collect::<Vec<f64>>();
    let (exact, approximate) = (hodges_lehmann(&series(50), 0.95).unwrap(), hodges_lehmann(&series(51), 0.95).unwrap());
    close(exact.attained, approximate.attained, 2e-3);
    close(exact.interval.unwrap().half_width(), approximate.interval.unwrap().half_width(), 0.6);
    let (exact, approximate) = (signed_rank(&series(50)).unwrap(), signed_rank(&series(51)).unwrap());
    close(exact.p, approximate.p, 0.05);
}

proptest! {
    #[test]
    fn any_samples_give_numbers_or_none(x in samples(0..30), y in samples(0..30), confidence in 0.01..1.0) {
        for test in [mann_whitney(&x, &y), mann_whitney_normal(&x, &y), signed_rank(&x)].into_iter().flatten() {
            for p in [test.p, test.p_less, test.p_greater] {
                prop_assert!((0.0..=1.0).contains(&p), "{:?}", test);
            }
        }
        for found in [hodges_lehmann(&x, confidence), hodges_lehmann_shift(&x, &y, confidence)].into_iter().flatten() {
            prop_assert!(found.estimate.is_finite() && (0.0..=1.0).contains(&found.attained));
            if let Some(interval) = found.interval {
                prop_assert!(interval.contains(found.estimate), "{:?}", found);
                prop_assert!(found.attained >= confidence - 1e-9, "{:?}", found);
            } else {
                prop_assert!(found.attained < confidence, "{:?}", found);
            }
        }
    }

    #[test]
    fn swapping_turns_everything_round(x in common(1..20), y in common(1..20)) {
        let (forth, back) = (mann_whitney(&x, &y).unwrap(), mann_whitney(&y, &x).unwrap());
        prop_assert!((forth.p - back.p).abs() < 1e-12 && (forth.p_less - back.p_greater).abs() < 1e-12);
        let (forth, back) = (hodges_lehmann_shift(&x, &y, 0.9).unwrap(), hodges_lehmann_shift(&y, &x, 0.9).unwrap());
        prop_assert!((forth.estimate + back.estimate).abs() < 1e-9);
        prop_assert_eq!(forth.interval, back.interval.map(|interval| interval.negated()));
    }

    #[test]
    fn more_confidence_is_wider(x in common(6..40)) {
        let half = |confidence| hodges_lehmann(&x, confidence).unwrap().interval.map_or(f64::INFINITY, |found| found.half_width());
        prop_assert!(half(0.5) <= half(0.9) && half(0.9) <= half(0.99));
    }

    #[test]
    fn the_interval_leaves_out_zero_where_the_test_rejects(x in prop::collection::vec(-1e3..1e3, 6..30)) {
        let found = hodges_lehmann(&x, 0.95).unwrap();
        let test = signed_rank(&x).unwrap();
        if (test.p - 0.05).abs() > 1e-9 {
            prop_assert_eq!(!found.interval.unwrap().contains(0.0), test.p < 0.05);
        }
    }
}
