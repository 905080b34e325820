//! The rule for the second from which on a trial is steady, or that it never is.

use crate::noise_models::Lasting;
use crate::page::grouped;
use crate::random::RandomStream;
use crate::replicates::{Effort, Share, values};
use crate::section::{Check, Demand, Section, percent};
use plimsoll_statistics::{Steadiness, mean, steadiness};

/// Ticks of 100 ms in a batch of half a second.
const BATCH: usize = 5;

/// Batches of warm-up before the measure phase: five seconds.
const WARMUP: usize = 10;

/// Trials that share one cut.
const TRIALS: usize = 20;

/// Users of the simulated closed load, and the duration of an iteration, in nanoseconds.
const USERS: f64 = 50.0;
const DURATION: f64 = 10e6;

/// The trend of a trial over time, besides its noise: 0 at the start of the measure phase, 1 at its
/// end.
#[derive(Clone, Copy)]
enum Course {
    Steady,
    /// Slower by 30 % at the start of the measure phase, by e times less each tenth of it.
    Settles,
    /// Slower by 20 % at the end than at the start, in a straight line.
    Drifts,
}

impl Course {
    fn at(self, time: f64) -> f64 {
        match self {
            Course::Steady => 0.0,
            Course::Settles => (0.3 * (-10.0 * time).exp()).ln_1p(),
            Course::Drifts => (0.2 * time).ln_1p(),
        }
    }

    /// The difference between the mean from a time on and the settled level.
    fn off_from(self, time: f64) -> f64 {
        let points = (0..1000).map(|step| time + (1.0 - time) * (f64::from(step) + 0.5) / 1000.0);
        points.map(|time| self.at(time).exp_m1()).sum::<f64>() / 1000.0
    }
}

/// The noise of a trial: standard deviation of half a second, and the autocorrelation.
#[derive(Clone, Copy)]
struct Noise {
    sd: f64,
    stays: f64,
}

pub(super) fn sections(effort: Effort) -> Vec<Section> {
    vec![steady(effort.divided_by(2)), settling(effort.divided_by(10)), drifting(effort.divided_by(10))]
}

fn noises() -> impl Iterator<Item = Noise> {
    [0.02, 0.1].into_iter().flat_map(|sd| [0.0, 0.3, 0.6].map(|stays| Noise { sd, stays }))
}

fn steady(effort: Effort) -> Section {
    let (mut rows, mut never, mut cut) = (Vec::new(), Vec::new(), Vec::new());
    for seconds in [20, 60, 120] {
        for noise in noises() {
            let label = format!("{seconds} s, {}", noise.name());
            let found =
                values(&format!("steady {label}"), effort, |random| judge(Course::Steady, seconds, noise, random));
            let is_never = share(&found, |found| matches!(found, Steadiness::Never(_)));
            let is_cut = share(&found, |found| lost(found, seconds) > 0.1);
            let common: Vec<f64> = found
                .chunks(TRIALS)
                .map(|trials| trials.iter().map(|found| lost(found, seconds)).fold(0.0, f64::max))
                .collect();
            rows.push(vec![
                format!("{seconds} s"),
                noise.name(),
                format!("{:.2}", is_never.value() * 100.0),
                format!("{:.2}", is_cut.value() * 100.0),
                format!("{:.1}", mean(&common).unwrap_or(0.0) * 100.0),
            ]);
            never.push((label.clone(), is_never));
            cut.push((label, is_cut));
        }
    }
    Section::new("Steady trials")
        .text(format!(
            "Trials that are steady all the time, with {} s of warm-up; the noise of half a second is log-normal, and lasts \
             as AR(1) says. How often the rule calls a trial never steady, how often it cuts more than a tenth of the \
             measure phase, and what share of it a study of {TRIALS} such trials loses, because all are cut where the last \
             one became steady. In percent.",
            WARMUP / 2
        ))
        .table(&["measure phase", "noise", "never steady", "cut above a tenth", "lost by twenty trials"], rows)
        .check(Check { what: "a steady trial called never steady", demand: Demand::AtMost(0.005), cells: never })
        .check(Check { what: "a steady trial cut by more than a tenth", demand: Demand::AtMost(0.05), cells: cut })
}

fn settling(effort: Effort) -> Section {
    let (mut rows, mut cells) = (Vec::new(), Vec::new());
    for seconds in [20, 60, 120] {
        for noise in noises() {
            let label = format!("{seconds} s, {}", noise.name());
            let found =
                values(&format!("settles {label}"), effort, |random| judge(Course::Settles, seconds, noise, random));
            let left: Vec<f64> = found
                .iter()
                .filter(|found| matches!(found, Steadiness::From(_)))
                .map(|found| Course::Settles.off_from(lost(found, seconds)))
                .collect();
            let within = Share { hits: left.iter().filter(|off| **off < 0.01).count() as u64, of: left.len() as u64 };
            rows.push(vec![
                format!("{seconds} s"),
                noise.name(),
                percent(share(&found, |found| matches!(found, Steadiness::Never(_)))),
                format!("{:.2}", mean(&left).unwrap_or(0.0) * 100.0),
                percent(within),
            ]);
            if noise.sd < 0.05 {
                cells.push((label, within));
            }
        }
    }
    Section::new("Trials that settle")
        .text(format!(
            "Trials that are slower by 30 % when the measure phase starts, and by e times less after each tenth of it. \
             Without a cut their mean is off by {:.1} %. How often they are called never steady; by how much what remains \
             is off after the trial's own cut, in the mean; and how often that is below 1 %. In percent. Where half a \
             second is off by 10 % at random, a change of this size is hidden in the noise, and stays in.",
            Course::Settles.off_from(0.0) * 100.0
        ))
        .table(&["measure phase", "noise", "never steady", "off by, mean", "off by less than 1 %"], rows)
        .check(Check { what: "what is left is off by less than 1 %, noise 2 %", demand: Demand::AtLeast(0.95), cells })
}

fn drifting(effort: Effort) -> Section {
    let (mut rows, mut cells) = (Vec::new(), Vec::new());
    for seconds in [20, 60, 120] {
        for noise in noises() {
            let label = format!("{seconds} s, {}", noise.name());
            let found =
                values(&format!("drifts {label}"), effort, |random| judge(Course::Drifts, seconds, noise, random));
            let never = share(&found, |found| matches!(found, Steadiness::Never(_)));
            rows.push(vec![format!("{seconds} s"), noise.name(), percent(never)]);
            if noise.sd < 0.05 {
                cells.push((label, never));
            }
        }
    }
    Section::new("Trials that never settle")
        .text(format!(
            "Trials that get slower by 20 % over the measure phase, in a straight line: how often they are called never \
             steady, in percent. {} trials for each number.",
            grouped(effort.replicates as u64)
        ))
        .table(&["measure phase", "noise", "never steady"], rows)
        .check(Check { what: "a drift of 20 % is called never steady, noise 2 %", demand: Demand::AtLeast(0.95), cells })
}

impl Noise {
    fn name(self) -> String {
        format!("{:.0} %, AR {}", self.sd * 100.0, self.stays)
    }
}

/// The product's judgement of one trial.
fn judge(course: Course, seconds: usize, noise: Noise, random: &mut RandomStream) -> Steadiness {
    let batches = WARMUP + 2 * seconds;
    let mut lasting = Lasting::new(noise.stays, random);
    let mut ticks = Vec::with_capacity(batches * BATCH);
    for batch in 0..batches {
        let disturbance = noise.sd * lasting.next(random);
        for tick in 0..BATCH {
            let since = (batch * BATCH + tick) as f64 - (WARMUP * BATCH) as f64;
            let time = (since / (2 * seconds * BATCH) as f64).max(0.0);
            let duration = DURATION * (course.at(time) + disturbance).exp();
            // Each user is always in an iteration.
            let ended = (USERS * 1e8 / duration).round();
            ticks.push((ended as u64, (ended * duration) as u64));
        }
    }
    steadiness(&ticks, WARMUP * BATCH)
}

/// The share of the measure phase that is cut.
fn lost(found: &Steadiness, seconds: usize) -> f64 {
    match found {
        Steadiness::From(ticks) => *ticks as f64 / (2 * seconds * BATCH) as f64,
        _ => 0.0,
    }
}

fn share(found: &[Steadiness], is: impl Fn(&Steadiness) -> bool) -> Share {
    Share { hits: found.iter().filter(|found| is(found)).count() as u64, of: found.len() as u64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_course_is_off_by_its_integral() {
        // ∫ 0.3·e^(−10t) from 0 to 1 = 0.03·(1 − e^−10).
        assert!((Course::Settles.off_from(0.0) - 0.03).abs() < 1e-4);
        assert!(Course::Settles.off_from(0.5) < 0.001);
    }
}
