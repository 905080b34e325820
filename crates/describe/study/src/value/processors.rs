//! Sets of processors as a study writes them: `"0-2,5"`, `"lower half"`, `"upper half"`.

use super::scalar::{Problem, Scalar};
use plimsoll_model::factor::Level;
use plimsoll_model::units::Processors;
use serde_json::{Value, json};

/// A set of processors, before it is known which ones there are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CpuSet {
    /// By number.
    Numbers(Vec<usize>),
    /// The first half of those that may be used.
    LowerHalf,
    /// The others.
    UpperHalf,
}

/// The largest number that a processor can have: far above any machine, and few enough to list.
const LAST: usize = 65_535;

impl CpuSet {
    /// The processors of the set. `usable` are those that Plimsoll may use, in order. Where there
    /// is only one, both halves are it.
    pub(crate) fn among(&self, usable: &[usize]) -> Result<Processors, Problem> {
        let half = (usable.len() / 2).max(1).min(usable.len());
        match self {
            CpuSet::LowerHalf => Ok(Processors(usable[..half].to_vec())),
            CpuSet::UpperHalf if usable.len() < 2 => Ok(Processors(usable.to_vec())),
            CpuSet::UpperHalf => Ok(Processors(usable[half..].to_vec())),
            CpuSet::Numbers(numbers) => match numbers.iter().find(|number| !usable.contains(number)) {
                None => Ok(Processors(numbers.clone())),
                Some(number) => {
                    let may = Processors(usable.to_vec());
                    Err(Problem::new(format!("names processor {number}, which Plimsoll may not use here"))
                        .help(format!("it may use {may}; \"lower half\" and \"upper half\" fit every machine")))
                }
            },
        }
    }
}

impl Scalar for CpuSet {
    const EXPECTED: &'static str = "processors such as \"0-2,5\", \"lower half\" or \"upper half\"";

    fn from_level(level: &Level) -> Result<Self, Problem> {
        let set = match level {
            Level::Text(text) if text == "lower half" => Some(CpuSet::LowerHalf),
            Level::Text(text) if text == "upper half" => Some(CpuSet::UpperHalf),
            Level::Text(text) => numbers(text),
            Level::Integer(number) => numbers(&number.to_string()),
            Level::Bool(_) | Level::Number(_) => None,
        };
        set.ok_or_else(|| Problem::wrong::<Self>(level))
    }

    fn schema() -> Value {
        json!({ "type": "string", "pattern": "^(lower half|upper half|[0-9]+(-[0-9]+)?( ?, ?[0-9]+(-[0-9]+)?)*)$" })
    }
}

fn numbers(text: &str) -> Option<CpuSet> {
    let mut numbers = Vec::new();
    for range in text.split(',').map(str::trim) {
        let (from, to) = range.split_once('-').unwrap_or((range, range));
        let (from, to): (usize, usize) = (from.trim().parse().ok()?, to.trim().parse().ok()?);
        if from > to || to > LAST {
            return None;
        }
        numbers.extend(from..=to);
    }
    numbers.sort_unstable();
    numbers.dedup();
    Some(CpuSet::Numbers(numbers))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<CpuSet> {
        CpuSet::from_level(&Level::Text(text.to_owned())).ok()
    }

    #[test]
    fn sets_are_written_as_in_taskset() {
        assert_eq!(read("0-2,5"), Some(CpuSet::Numbers(vec![0, 1, 2, 5])));
        assert_eq!(read("3, 1"), Some(CpuSet::Numbers(vec![1, 3])));
        for wrong in ["", "a", "2-1", "0-", "0-99999999999", "-1", "half"] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn halves_share_every_machine_out() {
        let halves =
            |usable: &[usize]| [CpuSet::LowerHalf, CpuSet::UpperHalf].map(|half| half.among(usable).expect("a half").0);
        assert_eq!(halves(&[0]), [vec![0], vec![0]]);
        assert_eq!(halves(&[0, 1]), [vec![0], vec![1]]);
        assert_eq!(halves(&[2, 3, 6]), [vec![2], vec![3, 6]]);
        assert_eq!(halves(&[]), [Vec::<usize>::new(), Vec::new()]);
    }

    #[test]
    fn a_processor_that_may_not_be_used_is_refused() {
        assert!(CpuSet::Numbers(vec![1, 4]).among(&[0, 1]).is_err());
        assert_eq!(CpuSet::Numbers(vec![1]).among(&[0, 1]), Ok(Processors(vec![1])));
    }
}
