use super::*;
use crate::testing::Noise;
use proptest::prelude::*;

/// What a series of trials came to.
#[derive(Debug, Default)]
struct Rates {
    never: f64,
    cut: f64,
    cut_over_tenth: f64,
    mean_cut: f64,
    /// By how much the mean of the rest is off, at the 95th percentile of trials.
    bias: f64,
}

/// Trials of `n` batches in the measure phase and `warmup` before it, with lognormal noise of `sd`
/// and autocorrelation `rho` between batches around `level`, a function of the share of the measure
/// phase that has passed. Throughput goes the other way, as in closed load.
fn rates(
    seed: u64,
    runs: usize,
    (warmup, n): (usize, usize),
    (sd, rho): (f64, f64),
    level: impl Fn(f64) -> f64,
) -> Rates {
    let mut noise = Noise::new(seed);
    let mut found = Rates::default();
    let mut biases = Vec::new();
    for _ in 0..runs {
        let series = noise.autoregressive(rho, warmup + n);
        let mut ticks = Vec::new();
        for (batch, wave) in series.iter().enumerate() {
            let at = (batch as f64 - warmup as f64) / n as f64;
            let duration = level(at) * (sd * wave).exp();
            for _ in 0..BATCH {
                let count = (2e5 / duration * (1.0 + 0.002 * noise.normal())).max(0.0) as u64;
                ticks.push((count, (count as f64 * duration * 1e6) as u64));
            }
        }
        match steadiness(&ticks, warmup * BATCH) {
            Steadiness::NotJudged(reason) => panic!("{reason}"),
            Steadiness::Never(_) => found.never += 1.0,
            Steadiness::From(ticks) => {
                let cut = ticks / BATCH;
                found.cut += f64::from(u8::from(cut > 0));
                found.cut_over_tenth += f64::from(u8::from(cut * 10 > n));
                found.mean_cut += cut as f64 / n as f64;
                let rest: Vec<f64> = (cut..n).map(|batch| level(batch as f64 / n as f64)).collect();
                biases.push((mean(&rest).unwrap() / level(1e9) - 1.0).abs());
            }
        }
    }
    let share = |count: f64| count / runs as f64;
    biases.sort_by(f64::total_cmp);
    Rates {
        never: share(found.never),
        cut: share(found.cut),
        cut_over_tenth: share(found.cut_over_tenth),
        mean_cut: share(found.mean_cut),
        bias: biases.get(biases.len() * 95 / 100).copied().unwrap_or(0.0),
    }
}

#[test]
#[ignore = "prints rates to choose the thresholds by"]
#[expect(clippy::print_stdout)]
fn explore() {
    for sd in [0.005, 0.02, 0.05, 0.1, 0.3] {
        for rho in [0.0, 0.3, 0.6] {
            for (warmup, n) in [(0, 40), (10, 30), (0, 120), (20, 100), (40, 200), (0, 240)] {
                let r = rates(1, 4000, (warmup, n), (sd, rho), |_| 10.0);
                println!(
                    "stationary sd {sd} rho {rho} {warmup}+{n}: never {:.4} cut {:.4} >tenth {:.4} mean {:.4}",
                    r.never, r.cut, r.cut_over_tenth, r.mean_cut
                );
            }
        }
    }
    for sd in [0.005, 0.01, 0.02, 0.05, 0.1] {
        for rho in [0.0, 0.3, 0.6] {
            for n in [40, 120, 240] {
                let t = rates(2, 500, (0, n), (sd, rho), |at| 10.0 * (1.0 + 0.3 * (-at.max(0.0) * 10.0).exp()));
                let d = rates(3, 500, (0, n), (sd, rho), |at| 10.0 * (1.0 + 0.2 * at.clamp(0.0, 1.0)));
                println!(
                    "sd {sd} rho {rho} n {n}: transient never {:.3} cut {:.3} mean {:.3} bias95 {:.4} | drift never {:.3}",
                    t.never, t.cut, t.mean_cut, t.bias, d.never
                );
            }
        }
    }
}

proptest! {
    #[test]
    fn any_ticks_are_judged(ticks in prop::collection::vec((0_u64..2000, any::<u64>()), 0..300), measured in 0_usize..400) {
        match steadiness(&ticks, measured) {
            Steadiness::From(from) => prop_assert!(from * 2 <= ticks.len()),
            Steadiness::Never(drift) => prop_assert!(!drift.change.is_nan() && !drift.standard_errors.is_nan()),
            Steadiness::NotJudged(reason) => prop_assert!(!reason.is_empty()),
        }
    }
}

#[test]
fn a_strong_drift_is_never_steady_however_smooth_it_is() {
    let grown: [fn(f64) -> f64; 4] = [
        |at| 10.0 * (1.0 + at.clamp(0.0, 1.0)),
        |at| 10.0 * (1.0 + 4.0 * at.clamp(0.0, 1.0)),
        |at| 10.0 / (1.0 + at.clamp(0.0, 1.0)),
        |at| 10.0 * (2.0 * at.clamp(0.0, 1.0)).exp(),
    ];
    for level in grown {
        for (sd, n) in [(0.0, 22), (0.005, 40), (0.02, 120), (0.05, 240)] {
            let found = rates(9, 50, (4, n), (sd, 0.3), level);
            assert_eq!(found.never, 1.0, "sd {sd}, {n} batches: {found:?}");
        }
    }
}

#[test]
fn noise_hardly_ever_goes_one_way() {
    let mut noise = Noise::new(77);
    for (n, rho) in [(16, 0.6), (40, 0.6), (120, 0.6), (40, 0.0)] {
        let runs = 20_000;
        let found = (0..runs).filter(|_| goes_one_way(&noise.autoregressive(rho, n))).count();
        assert!(found * 1000 <= runs, "{found} of {runs} with n {n} and rho {rho}");
    }
}
