//! Bounds what functions of the engine may be asked for that nothing can interrupt.
//!
//! The engine asks whether a user has run for too long at calls and in loops of the script, and while it matches regular
//! expressions. It does not ask in functions of its own that loop. Most of them are bounded by memory, as every turn takes
//! some. These are not: functions that go through an array's holes, of which there may be thousands of millions without
//! any memory, and functions that look for a text in another one.
//!
//! Each function with a bound takes memory in every runtime, so only those are bounded whose names a program mentions. One
//! that puts such a name together from pieces goes around the bound: then only the second signal ends it early.

use rquickjs::{Ctx, Function, Result};

/// The functions of arrays that go through holes. `concat`, `flat` and `flatMap` go through those of other arrays, too.
const OF_ARRAYS: [&str; 22] = [
    "concat",
    "copyWithin",
    "every",
    "filter",
    "flat",
    "flatMap",
    "forEach",
    "includes",
    "indexOf",
    "join",
    "lastIndexOf",
    "map",
    "reduce",
    "reduceRight",
    "reverse",
    "shift",
    "slice",
    "some",
    "sort",
    "splice",
    "toLocaleString",
    "unshift",
];

/// The functions of texts that look for another text.
const OF_STRINGS: [&str; 6] = ["includes", "indexOf", "lastIndexOf", "replace", "replaceAll", "split"];

/// What lets an array be long, and so be joined where it is converted to a text.
const OF_LONG_ARRAYS: [&str; 2] = ["Array", "length"];

/// The most elements of an array, holes included. Going through so many takes some tenths of a second; if they were no
/// holes, they would take four times the memory that a user has by default.
const MOST_ELEMENTS: u32 = 1 << 24;

/// The most comparisons of characters that looking for a text may take.
const MOST_COMPARISONS: f64 = (1_u64 << 32) as f64;

/// The script that puts functions with bounds in the place of those of the engine.
const SCRIPT: &str = include_str!("bounds.js");

/// The functions to which a program gives bounds.
#[derive(Debug, Default)]
pub(crate) struct Bounds {
    of_arrays: Vec<&'static str>,
    of_strings: Vec<&'static str>,
}

impl Bounds {
    /// For a program whose modules are not all known.
    pub(crate) fn all() -> Bounds {
        Bounds { of_arrays: OF_ARRAYS.to_vec(), of_strings: OF_STRINGS.to_vec() }
    }

    /// For a program with modules of these texts.
    pub(crate) fn of(sources: &[&str]) -> Bounds {
        let mentions = |word: &str| sources.iter().any(|source| source.contains(word));
        let may_be_long = OF_LONG_ARRAYS.into_iter().any(mentions);
        let of_arrays = OF_ARRAYS.into_iter().filter(|name| mentions(name) || may_be_long && *name == "join");
        Bounds {
            of_arrays: of_arrays.collect(),
            of_strings: OF_STRINGS.into_iter().filter(|name| mentions(name)).collect(),
        }
    }

    /// Installs the bounds in a runtime.
    pub(crate) fn install(&self, ctx: &Ctx<'_>) -> Result<()> {
        if self.of_arrays.is_empty() && self.of_strings.is_empty() {
            return Ok(());
        }
        let bound: Function<'_> = ctx.eval(SCRIPT)?;
        bound.call((self.of_arrays.clone(), MOST_ELEMENTS, self.of_strings.clone(), MOST_COMPARISONS))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_program_mentions_is_bounded() {
        let bounds = Bounds::of(&["const a = b.map(c)", "d.split(',')"]);
        assert_eq!((bounds.of_arrays, bounds.of_strings), (vec!["map"], vec!["split"]));
        assert_eq!(Bounds::of(&["`${new Array(9)}`"]).of_arrays, ["join"]);
        let none = Bounds::of(&["export default function () {}"]);
        assert!(none.of_arrays.is_empty() && none.of_strings.is_empty());
    }
}
