//! The simulations, one module for each question.

mod capacity;
mod detectable;
mod exploratory;
mod floor;
mod intervals;
mod looks;
mod margins;
mod order;
mod percentiles;
mod ranks;
mod rejected;
mod repeats;
mod several;
mod side_by_side;
mod steady;
mod turns;
mod whole;
mod windows;

use crate::replicates::Effort;
use crate::section::Section;

/// Makes a section, or several from the same studies.
type Simulation = fn(Effort) -> Vec<Section>;

/// Every simulation with its name, in the order of the page.
pub const ALL: [(&str, Simulation); 18] = [
    ("intervals", intervals::sections),
    ("several", several::sections),
    ("looks", looks::sections),
    ("repeats", repeats::sections),
    ("windows", windows::sections),
    ("order", order::sections),
    ("turns", turns::sections),
    ("side-by-side", side_by_side::sections),
    ("margins", margins::sections),
    ("detectable", detectable::sections),
    ("floor", floor::sections),
    ("ranks", ranks::sections),
    ("steady", steady::sections),
    ("percentiles", percentiles::sections),
    ("exploratory", exploratory::sections),
    ("rejected", rejected::sections),
    ("whole", whole::sections),
    ("capacity", capacity::sections),
];
