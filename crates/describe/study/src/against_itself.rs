//! A study cut down to its baseline against itself, which shows the noise of the machine.

use crate::study::Study;
use crate::table::root::FLOOR_RULE;
use plimsoll_model::factor::Role;

/// The baseline of a study against its duplicate, under the first condition, in trials as short as
/// those of a first look. `repeats` is how often.
#[must_use]
pub fn against_itself(mut study: Study, repeats: u32) -> Study {
    for factor in &mut study.factors {
        let kept = match &mut factor.role {
            Role::Compared { baseline } => std::mem::take(baseline),
            Role::Condition => 0,
        };
        factor.levels = vec![factor.levels[kept].clone()];
    }
    study.repeats = repeats;
    study.looks = Vec::new();
    study.noise_floor = Some(FLOOR_RULE);
    study.in_short_loads()
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_model::factor::Level;
    use std::path::Path;
    use std::time::Duration;

    const STUDY: &str = r#"
title    = "t"
question = "q"
looks    = [5, 10]
noise_floor = false
factors.mode  = { levels = ["new", "old"], compare = true, baseline = "old" }
factors.users = [10, 100]
system.web    = { start = "./{mode} {port}" }
workload      = { protocol = "http", target = "{web.address}", steps = [{ get = "/" }] }
load          = { users = "{users}", duration = "20s" }
"#;

    #[test]
    fn the_baseline_and_the_first_condition_are_left_in_short_trials() {
        let study = crate::read("study.toml", STUDY, None, Path::new("."), &[0, 1]).0.expect("a study");
        let study = against_itself(study, 10);
        let levels: Vec<&[Level]> = study.factors.iter().map(|factor| factor.levels.as_slice()).collect();
        assert_eq!(levels, [&[Level::Text("old".to_owned())][..], &[Level::Integer(10)]]);
        assert_eq!((study.repeats, study.noise_floor.is_some(), study.looks.len()), (10, true, 0));
        let condition = plimsoll_model::factor::combinations(study.factors.iter().skip(1)).remove(0);
        assert_eq!(study.phase_lengths(&condition).measure, Duration::from_secs(3));
        assert!(study.facts().quick);
    }
}
