//! The clock frequency of the processors, which changes during a run with power and heat.

use crate::facts::allowed_processors;
use std::fs;
use std::path::PathBuf;

/// The most processors that are read. The mean of this many shows a drift; reading hundreds would disturb the
/// measurement.
const MOST: usize = 16;

/// Where the kernel reports the frequency of the processors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Frequency {
    /// A file for each processor, in kilohertz.
    Files(Vec<PathBuf>),
    /// The lines `cpu MHz` of `/proc/cpuinfo`.
    Facts,
    /// Nowhere.
    Unknown,
}

impl Frequency {
    /// Finds the source that this machine has.
    pub(crate) fn find() -> Frequency {
        let file = |cpu: usize| PathBuf::from(format!("/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_cur_freq"));
        let files: Vec<PathBuf> = allowed_processors().into_iter().take(MOST).map(file).collect();
        let files: Vec<PathBuf> = files.into_iter().filter(|file| fs::read_to_string(file).is_ok()).collect();
        match (files.is_empty(), facts().is_some()) {
            (false, _) => Frequency::Files(files),
            (true, true) => Frequency::Facts,
            (true, false) => Frequency::Unknown,
        }
    }

    /// The mean frequency now, in megahertz.
    pub(crate) fn read(&self) -> Option<f64> {
        match self {
            Frequency::Files(files) => {
                let kilohertz = |file: &PathBuf| fs::read_to_string(file).ok()?.trim().parse::<f64>().ok();
                mean(files.iter().filter_map(kilohertz)).map(|kilohertz| kilohertz / 1e3)
            }
            Frequency::Facts => facts(),
            Frequency::Unknown => None,
        }
    }
}

fn facts() -> Option<f64> {
    mean_of_facts(&fs::read_to_string("/proc/cpuinfo").ok()?)
}

/// From lines `cpu MHz : 2599.998`.
fn mean_of_facts(facts: &str) -> Option<f64> {
    let lines = facts.lines().filter_map(|line| line.split_once(':'));
    mean(lines.filter(|(name, _)| name.trim() == "cpu MHz").filter_map(|(_, value)| value.trim().parse().ok()))
}

/// The mean of plausible frequencies; none if there are none.
fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let values: Vec<f64> = values.filter(|value| value.is_finite() && *value > 0.0).collect();
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_is_over_the_processors_that_say_something() {
        let facts = "processor\t: 0\ncpu MHz\t\t: 2000.5\n\nprocessor\t: 1\ncpu MHz\t\t: 3000.5\n";
        assert_eq!(mean_of_facts(facts), Some(2500.5));
        for nothing in ["", "processor\t: 0\n", "cpu MHz\t: unknown\n", "cpu MHz\t: 0.000\n"] {
            assert_eq!(mean_of_facts(nothing), None, "{nothing:?}");
        }
    }

    #[test]
    fn files_are_in_kilohertz_and_may_vanish() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            let path = folder.path().join(name);
            fs::write(&path, text).unwrap();
            path
        };
        let gone = folder.path().join("gone");
        let files = vec![file("0", "1800000\n"), file("1", "2200000\n"), gone.clone()];
        assert_eq!(Frequency::Files(files).read(), Some(2000.0));
        assert_eq!(Frequency::Files(vec![gone]).read(), None);
        assert_eq!(Frequency::Unknown.read(), None);
    }

    #[test]
    fn what_this_machine_says_is_a_frequency_or_nothing() {
        if let Some(frequency) = Frequency::find().read() {
            assert!((1.0..100_000.0).contains(&frequency), "{frequency} MHz");
        }
    }
}
