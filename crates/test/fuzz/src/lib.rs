//! Fuzz targets: functions that feed arbitrary bytes to a parser of what others write, such as servers, scripts, or
//! whoever made a bundle. A target panics where a promise is broken; what is no valid input, the parser must refuse.
//!
//! The targets run in two ways. The test of this package feeds each with its corpus and with seeded mutations of it.
//! The program in `guided` lets libFuzzer look for inputs that reach new code.

mod mutation;
mod targets;

pub use mutation::Mutator;
pub use targets::TARGETS;

/// A function that feeds a parser with bytes.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Its name, which is also that of its folder in `corpus`.
    pub name: &'static str,
    /// Runs the parser. Panics if it breaks a promise.
    pub run: fn(&[u8]),
    /// How many mutations the test feeds: as many as take a few tenths of a second without optimisation.
    pub mutations: u32,
}
