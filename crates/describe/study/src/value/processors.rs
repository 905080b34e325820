//! Sets of processors as a study writes them: `"0-2,5"`, `"lower half"`, `"upper half"`, `"own"`.

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
    /// Some that no other variant has that is alive at the same time, nor the generator.
    Own,
}

/// The processors of the machine, and who takes some of them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Usable<'a> {
    /// Those that Plimsoll may use, in order.
    pub(crate) all: &'a [usize],
    /// Those of the generator; none where it may use all.
    pub(crate) generator: Option<&'a Processors>,
    /// The place of the variant among those that are alive at the same time, from 0, and how many those are.
    pub(crate) place: (usize, usize),
}

impl<'a> Usable<'a> {
    /// For what belongs to no variant.
    pub(crate) fn all(all: &'a [usize]) -> Usable<'a> {
        Usable { all, generator: None, place: (0, 1) }
    }

    /// An equal part of what the generator leaves.
    fn own(self) -> Result<Processors, Problem> {
        let Usable { all, generator, place: (place, of) } = self;
        let Some(generator) = generator else {
            return Err(Problem::new("is for a study whose generator has processors of its own")
                .help("give it some: `cpus` under `[generator]`"));
        };
        let left: Vec<usize> = all.iter().copied().filter(|number| !generator.0.contains(number)).collect();
        let each = left.len() / of.max(1);
        if each == 0 {
            return Err(Problem::new(format!(
                "takes a processor for each of the {of} variants that are alive at the same time, and the generator leaves {}",
                left.len()
            ))
            .help("let the systems share some: \"lower half\""));
        }
        Ok(Processors(left[place * each..(place + 1) * each].to_vec()))
    }
}

/// The largest number that a processor can have: far above any machine, and few enough to list.
const LAST: usize = 65_535;

impl CpuSet {
    /// The processors of the set. Where there is only one, both halves are it.
    pub(crate) fn among(&self, of_machine: Usable<'_>) -> Result<Processors, Problem> {
        let usable = of_machine.all;
        let half = (usable.len() / 2).max(1).min(usable.len());
        match self {
            CpuSet::Own => of_machine.own(),
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
    const EXPECTED: &'static str = "processors such as \"0-2,5\", \"lower half\", \"upper half\" or \"own\"";

    fn from_level(level: &Level) -> Result<Self, Problem> {
        let set = match level {
            Level::Text(text) if text == "lower half" => Some(CpuSet::LowerHalf),
            Level::Text(text) if text == "upper half" => Some(CpuSet::UpperHalf),
            Level::Text(text) if text == "own" => Some(CpuSet::Own),
            Level::Text(text) => numbers(text),
            Level::Integer(number) => numbers(&number.to_string()),
            Level::Bool(_) | Level::Number(_) => None,
        };
        set.ok_or_else(|| Problem::wrong::<Self>(level))
    }

    fn schema() -> Value {
        json!({ "type": "string", "pattern": "^(lower half|upper half|own|[0-9]+(-[0-9]+)?( ?, ?[0-9]+(-[0-9]+)?)*)$" })
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
        let halves = |usable: &[usize]| {
            [CpuSet::LowerHalf, CpuSet::UpperHalf].map(|half| half.among(Usable::all(usable)).expect("a half").0)
        };
        assert_eq!(halves(&[0]), [vec![0], vec![0]]);
        assert_eq!(halves(&[0, 1]), [vec![0], vec![1]]);
        assert_eq!(halves(&[2, 3, 6]), [vec![2], vec![3, 6]]);
        assert_eq!(halves(&[]), [Vec::<usize>::new(), Vec::new()]);
    }

    #[test]
    fn variants_that_are_alive_together_have_processors_of_their_own() {
        let generator = Processors(vec![6, 7]);
        let own = |place| {
            let usable = Usable { all: &[0, 1, 2, 3, 4, 5, 6, 7], generator: Some(&generator), place };
            CpuSet::Own.among(usable).map(|one| one.0).map_err(|problem| format!("{problem:?}"))
        };
        assert_eq!([own((0, 3)), own((1, 3)), own((2, 3))], [Ok(vec![0, 1]), Ok(vec![2, 3]), Ok(vec![4, 5])]);
        assert_eq!(own((3, 4)), Ok(vec![3]), "each has as many as the others");
        assert!(own((0, 7)).is_err_and(|why| why.contains("7 variants") && why.contains("leaves 6")));
        assert!(CpuSet::Own.among(Usable::all(&[0, 1])).is_err(), "the generator may use all");
    }

    #[test]
    fn a_processor_that_may_not_be_used_is_refused() {
        assert!(CpuSet::Numbers(vec![1, 4]).among(Usable::all(&[0, 1])).is_err());
        assert_eq!(CpuSet::Numbers(vec![1]).among(Usable::all(&[0, 1])), Ok(Processors(vec![1])));
    }
}
