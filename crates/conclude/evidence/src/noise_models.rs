//! Noise models for simulated studies.
//!
//! Values are on the additive scale of the product's decisions, logarithms of durations, and in
//! units of the standard deviation of a trial.

use crate::orders;
use crate::random::RandomStream;

/// The noise of the trials of a study.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoiseModel {
    /// Normal, independent from trial to trial.
    Normal,
    /// Exponential: most trials are a little fast, a few very slow.
    Skewed,
    /// Normal, but one trial in ten is five times as noisy.
    Contaminated,
    /// Normal, and blocks differ by three times as much as the trials inside one.
    Blocks,
    /// A machine that drifts by three standard deviations over the study, with autocorrelated noise
    /// (AR(1), 0.6 from one trial to the next), in the order of the plan.
    Drifting,
}

impl NoiseModel {
    /// All of them.
    pub const ALL: [NoiseModel; 5] =
        [NoiseModel::Normal, NoiseModel::Skewed, NoiseModel::Contaminated, NoiseModel::Blocks, NoiseModel::Drifting];

    /// A word or two for tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            NoiseModel::Normal => "normal",
            NoiseModel::Skewed => "skewed",
            NoiseModel::Contaminated => "outliers",
            NoiseModel::Blocks => "blocks differ",
            NoiseModel::Drifting => "drift",
        }
    }

    /// The trials of a study of so many blocks, in which nothing but noise makes a difference.
    pub fn trials(self, blocks: usize, random: &mut RandomStream) -> Trials {
        match self {
            NoiseModel::Drifting => drifting(blocks, random),
            _ => Trials { blocks: (0..blocks).map(|_| self.block(random)).collect() },
        }
    }

    fn block(self, random: &mut RandomStream) -> [f64; 3] {
        let shared = if self == NoiseModel::Blocks { 3.0 * random.normal() } else { 0.0 };
        [(); 3].map(|()| shared + self.noise(random))
    }

    fn noise(self, random: &mut RandomStream) -> f64 {
        match self {
            NoiseModel::Skewed => random.exponential() - 1.0,
            NoiseModel::Contaminated => random.normal() * if random.happens(0.1) { 5.0 } else { 1.0 },
            _ => random.normal(),
        }
    }
}

fn drifting(blocks: usize, random: &mut RandomStream) -> Trials {
    let mut trials = Trials { blocks: vec![[0.0; 3]; blocks] };
    let plan = orders::plan(2, 1, blocks, random.seed());
    let last = (plan.starts.len() - 1) as f64;
    let mut noise = Lasting::new(0.6, random);
    for (place, start) in plan.starts.iter().enumerate() {
        trials.blocks[start.block as usize - 1][start.variants[0]] = 3.0 * place as f64 / last + noise.next(random);
    }
    trials
}

/// Noise that stays for a while: AR(1) with standard deviation 1.
#[derive(Debug)]
pub struct Lasting {
    stays: f64,
    now: f64,
}

impl Lasting {
    /// With this correlation from one value to the next.
    pub fn new(stays: f64, random: &mut RandomStream) -> Lasting {
        Lasting { stays, now: random.normal() }
    }

    /// The next value.
    pub fn next(&mut self, random: &mut RandomStream) -> f64 {
        let now = self.now;
        self.now = self.stays * now + (1.0 - self.stays * self.stays).sqrt() * random.normal();
        now
    }
}

/// The trials of a study of two variants: in each block the baseline, the variant, and the
/// duplicate of the baseline.
#[derive(Clone, Debug)]
pub struct Trials {
    /// By block; the three as in a plan.
    pub blocks: Vec<[f64; 3]>,
}

impl Trials {
    /// The same with a standard deviation of `sd` instead of 1, and a variant that differs by
    /// `effect`.
    #[must_use]
    pub fn scaled(&self, sd: f64, effect: f64) -> Trials {
        let scaled = |[baseline, variant, duplicate]: &[f64; 3]| [baseline * sd, variant * sd + effect, duplicate * sd];
        Trials { blocks: self.blocks.iter().map(scaled).collect() }
    }

    /// The variant less the baseline, block by block.
    #[must_use]
    pub fn differences(&self) -> Vec<f64> {
        self.blocks.iter().map(|[baseline, variant, _]| variant - baseline).collect()
    }

    /// The duplicate less the baseline, block by block: the noise floor.
    #[must_use]
    pub fn floor(&self) -> Vec<f64> {
        self.blocks.iter().map(|[baseline, _, duplicate]| duplicate - baseline).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_statistics::{mean, standard_deviation};

    #[test]
    fn no_world_makes_a_difference_by_itself() {
        for noise_model in NoiseModel::ALL {
            let mut random = RandomStream::named("no difference", 0);
            let differences: Vec<f64> =
                (0..4000).flat_map(|_| noise_model.trials(5, &mut random).differences()).collect();
            let error = standard_deviation(&differences).expect("values") / (differences.len() as f64).sqrt();
            assert!(mean(&differences).expect("values").abs() < 4.0 * error, "{noise_model:?}");
        }
    }

    #[test]
    fn what_a_block_shares_falls_out_of_its_differences() {
        let mut random = RandomStream::named("blocks", 0);
        let differences: Vec<f64> =
            (0..4000).flat_map(|_| NoiseModel::Blocks.trials(5, &mut random).differences()).collect();
        let sd = standard_deviation(&differences).expect("values");
        assert!((sd - 2.0_f64.sqrt()).abs() < 0.03, "{sd}");
    }
}
