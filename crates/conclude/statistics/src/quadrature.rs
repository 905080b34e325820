//! Integrals by Gauss and Legendre's rule with 16 points a panel.

/// The points to the right of the middle of [−1, 1], and their weights (Abramowitz and Stegun,
/// *Handbook of Mathematical Functions*, table 25.4).
const RULE: [(f64, f64); 8] = [
    (0.095_012_509_837_637_44, 0.189_450_610_455_068_5),
    (0.281_603_550_779_258_9, 0.182_603_415_044_923_6),
    (0.458_016_777_657_227_4, 0.169_156_519_395_002_54),
    (0.617_876_244_402_643_7, 0.149_595_988_816_576_73),
    (0.755_404_408_355_003, 0.124_628_971_255_533_87),
    (0.865_631_202_387_831_7, 0.095_158_511_682_492_78),
    (0.944_575_023_073_232_6, 0.062_253_523_938_647_89),
    (0.989_400_934_991_649_9, 0.027_152_459_411_754_095),
];

/// The points of a rule on `low..high` in `panels` equal panels, each with its weight: the integral
/// of a function is the sum of its values there times the weights.
pub(crate) fn points(low: f64, high: f64, panels: usize) -> Vec<(f64, f64)> {
    let half = (high - low) / (2.0 * panels as f64);
    let mut points = Vec::with_capacity(panels * 2 * RULE.len());
    for panel in 0..panels {
        let middle = low + half * (2 * panel + 1) as f64;
        for (x, weight) in RULE {
            points.push((middle - half * x, half * weight));
            points.push((middle + half * x, half * weight));
        }
    }
    points
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::close;

    #[test]
    fn polynomials_up_to_degree_31_are_exact() {
        for degree in 0..32 {
            let integral: f64 = points(0.0, 1.0, 1).iter().map(|(x, weight)| weight * x.powi(degree)).sum();
            close(integral, 1.0 / f64::from(degree + 1), 1e-15);
        }
    }

    #[test]
    fn panels_add_up() {
        let integral: f64 = points(-3.0, 5.0, 7).iter().map(|(x, weight)| weight * x.exp()).sum();
        close(integral, 5.0_f64.exp() - (-3.0_f64).exp(), 1e-12);
    }
}
