//! The work of systems while others are loaded. Where variants take turns, all of them are alive: one that computes
//! between its slices slows the others down as much as itself, which makes them alike.

use plimsoll_model::result::StartResult;
use plimsoll_model::sample::ProcessSample;
use plimsoll_model::units::{Instant, Nanos};
use plimsoll_statistics::{median, rank_slope};

/// The least difference between two variants in their use of processors between slices that is worth a word, in cores.
pub(crate) const IDLE_WORK: f64 = 0.1;

/// Fewest seconds of all starts together from which it is estimated.
const FEWEST_SECONDS: usize = 8;

/// The use of processors by the systems of a variant while it is not loaded, in cores, over these starts. None where their
/// seconds are too few to tell. A start alone may have few: a busy machine is sampled less often.
pub(crate) fn between_slices<'a>(starts: impl Iterator<Item = &'a StartResult>, variant: usize) -> Option<f64> {
    without_load(&starts.flat_map(|start| of_start(start, variant)).collect::<Vec<(f64, f64)>>())
}

/// The seconds of a start amid the slices of the variant: of each the share in which it was loaded, and the cores in use.
fn of_start(start: &StartResult, variant: usize) -> Vec<(f64, f64)> {
    let loaded = loaded(start, variant);
    let (Some((begin, _)), Some((_, end))) = (loaded.first(), loaded.last()) else { return Vec::new() };
    let seconds = seconds(start, variant);
    let amid = seconds.iter().filter(|second| second.from >= *begin && second.to <= *end);
    amid.map(|second| (share(&loaded, second), second.cores)).collect()
}

/// A span between two samples of telemetry.
struct Second {
    /// Its ends, in seconds on the clock of the start.
    from: f64,
    to: f64,
    /// The use of processors by the systems of the variant.
    cores: f64,
}

fn seconds(start: &StartResult, variant: usize) -> Vec<Second> {
    let mut samples: Vec<&ProcessSample> = start.processes.iter().filter(|sample| sample.variant == variant).collect();
    samples.sort_by(|one, other| one.at.total_cmp(&other.at));
    let Some(machine) = samples.first().map(|sample| &sample.machine) else { return Vec::new() };
    let (here, elsewhere): (Vec<&ProcessSample>, Vec<&ProcessSample>) =
        samples.iter().partition(|sample| sample.machine == *machine);
    // Each system of the variant on one machine has a sample at the same instant.
    let all_systems = here.chunk_by(|one, other| one.at == other.at);
    let mut sums: Vec<(f64, f64)> =
        all_systems.map(|same| (same[0].at, same.iter().map(|sample| sample.cpu_cores).sum())).collect();
    // Samples of another machine end at other instants: each is added to the second that ends nearest.
    for sample in elsewhere {
        let distance = |sum: &(f64, f64)| (sum.0 - sample.at).abs();
        if let Some(nearest) = sums.iter_mut().min_by(|one, other| distance(one).total_cmp(&distance(other))) {
            nearest.1 += sample.cpu_cores;
        }
    }
    sums.windows(2).map(|pair| Second { from: pair[0].0, to: pair[1].0, cores: pair[1].1 }).collect()
}

/// The spans in which the variant was loaded, in order: settling included, and also those of slices that do not count.
/// Begins and ends are in seconds on the clock of the start.
fn loaded(start: &StartResult, variant: usize) -> Vec<(f64, f64)> {
    let of_variant = start.loads.iter().filter(|load| load.summary.load.variant == variant);
    let slices = of_variant.flat_map(|load| &load.slices);
    let span = |zero: Instant, settle: Nanos, length: Nanos| {
        let zero = zero.0 as f64 / 1e9;
        (zero - settle.seconds(), zero + length.seconds())
    };
    let mut loaded: Vec<(f64, f64)> = Vec::new();
    for slice in slices {
        loaded.extend(slice.left_out.iter().map(|one| span(one.zero, one.settle, one.length)));
        loaded.push(span(slice.zero, slice.settle, slice.length));
    }
    loaded.sort_by(|one, other| one.0.total_cmp(&other.0));
    loaded
}

/// The share of a second in which the variant was loaded.
fn share(loaded: &[(f64, f64)], second: &Second) -> f64 {
    let overlap = |(begin, end): &(f64, f64)| (end.min(second.to) - begin.max(second.from)).max(0.0);
    loaded.iter().map(overlap).sum::<f64>() / (second.to - second.from)
}

/// The cores that are used at a share of zero, from seconds that each have a share and cores: a second of telemetry is
/// longer than a slice, so hardly any is free of load. It is where the line by ranks meets zero, and never below nothing.
fn without_load(seconds: &[(f64, f64)]) -> Option<f64> {
    if seconds.len() < FEWEST_SECONDS {
        return None;
    }
    let slope = rank_slope(seconds)?;
    let rest: Vec<f64> = seconds.iter().map(|(share, cores)| cores - slope * share).collect();
    Some(median(&rest)?.max(0.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{start, two_variants_on_one_start};
    use plimsoll_model::result::PooledLoads;
    use std::ops::Range;
    use std::time::Duration;

    #[test]
    fn what_is_used_without_load_is_where_the_line_meets_zero() {
        let shares = [0.1, 0.4, 0.3, 0.0, 0.35, 0.2, 0.45, 0.15];
        let line = |idle: f64| shares.map(|share| (share, idle + 0.8 * share));
        for idle in [0.0, 0.5, 1.0] {
            let found = without_load(&line(idle)).expect("eight seconds");
            assert!((found - idle).abs() < 1e-12, "{found} of {idle}");
        }
        let mut with_outlier = line(0.5);
        with_outlier[2].1 = 9.0; // a collection of garbage in one second
        let found = without_load(&with_outlier).expect("eight seconds");
        assert!((found - 0.5).abs() < 0.02, "{found}");
        assert_eq!(without_load(&line(0.5)[1..]), None, "too few");
        assert_eq!(without_load(&[(0.3, 0.1); 9]), None, "every second has the same load");
    }

    /// A start on which two variants took turns in slices of 700 ms, one after the other; the second one also uses `idle`
    /// cores all the time, and each half a core while it is loaded.
    fn in_turns(idle: f64) -> StartResult {
        in_turns_without(&(0..0), idle)
    }

    /// A start of ten turns, of which these do not count.
    fn in_turns_without(left_out: &Range<u32>, idle: f64) -> StartResult {
        let mut slices = PooledLoads::default();
        let mut loaded = [Vec::new(), Vec::new()];
        for place in 0..20 {
            let variant = place % 2;
            let mut slice = two_variants_on_one_start(0).loads.remove(variant);
            let begin = 0.7 * place as f64;
            slice.summary.load.turn = place as u32 / 2 + 1;
            slice.summary.load.lengths.warmup = Duration::from_millis(100);
            slice.summary.timing.zero = Instant(((begin + 0.1) * 1e9) as i64);
            slice.summary.timing.window = Nanos(600_000_000);
            if left_out.contains(&slice.summary.load.turn) {
                slices.leave_out(&slice.summary);
            } else {
                slices.add(&slice);
            }
            loaded[variant].push((begin, begin + 0.7));
        }
        let mut start = start(1.0);
        start.loads = slices.finish();
        for at in 0..=14 {
            let second = Second { from: f64::from(at) - 1.0, to: f64::from(at), cores: 0.0 };
            for (variant, idle) in [(0, 0.0), (1, idle)] {
                let cpu_cores = idle + 0.5 * share(&loaded[variant], &second);
                let system = "web".to_owned();
                start.processes.push(ProcessSample { at: second.to, system, variant, cpu_cores, ..Default::default() });
            }
        }
        start
    }

    #[test]
    fn seconds_of_several_starts_are_enough_together() {
        let short = || {
            let mut start = in_turns(0.9);
            start.processes.retain(|sample| sample.at < 7.5);
            start
        };
        assert_eq!(between_slices([short()].iter(), 1), None, "seven seconds");
        let found = between_slices([short(), short()].iter(), 1).expect("fourteen seconds");
        assert!((found - 0.9).abs() < 1e-6, "{found}");
    }

    #[test]
    fn a_variant_that_works_between_its_slices_is_found() {
        let starts = [in_turns(0.9), in_turns(0.9), in_turns(0.0)];
        let found = [0, 1].map(|variant| between_slices(starts.iter(), variant).expect("fourteen seconds"));
        assert!(found[0] < 1e-6 && (found[1] - 0.9).abs() < 1e-6, "{found:?}");
        assert_eq!(between_slices([start(1.0)].iter(), 0), None, "a trial has no slices");
    }

    #[test]
    fn slices_that_do_not_count_are_no_time_without_load() {
        let starts = [in_turns_without(&(3..9), 0.9), in_turns_without(&(4..8), 0.9)];
        let found = [0, 1].map(|variant| between_slices(starts.iter(), variant).expect("twenty-eight seconds"));
        assert!(found[0] < 1e-6 && (found[1] - 0.9).abs() < 1e-6, "{found:?}");
    }
}
