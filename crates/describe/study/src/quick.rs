//! A first look at a study: fewer levels, repeats and seconds, which its report then says.

use crate::study::Study;
use plimsoll_model::factor::{Factor, Level};

const REPEATS: u32 = 3;

/// The study cut down to a first look: of each numeric condition with more than three levels the
/// first, the middle and the last; three repeats at most, without looks in between; a warm-up of at
/// most a second and a measure phase of at most three, or as many turns as fit into it, but eight
/// where the study has so many. Stages are squeezed to fit.
#[must_use]
pub fn quick(mut study: Study) -> Study {
    for factor in &mut study.factors {
        thin_out(factor);
    }
    study.repeats = study.repeats.min(REPEATS);
    study.looks.clear();
    study.in_short_loads()
}

fn thin_out(factor: &mut Factor) {
    let numeric = factor.levels.iter().all(|level| matches!(level, Level::Integer(_) | Level::Number(_)));
    let count = factor.levels.len();
    if numeric && !factor.is_compared() && count > 3 {
        factor.levels = [0, count / 2, count - 1].map(|index| factor.levels[index].clone()).into();
    }
}
