//! Little's law: in a closed load the number of users N is the throughput X times the duration of a
//! cycle, R + Z (duration and think time). X·(R + Z) above N is impossible; below it, users were
//! not always busy, time passes outside of what is timed, or the rate is taken over more time than
//! the load lasted. The lint allows for rounding, and for 2 % on top.
//!
//! J. D. C. Little, A proof for the queuing formula L = λW, Operations Research 9 (1961).

use super::Context;
use crate::finding::{Evidence, Finding};
use crate::row::Row;
use plimsoll_analysis::finding::Severity;
use plimsoll_analysis::quantity::{grouped, percent, show};
use plimsoll_model::measure::Unit;

/// The relative tolerance.
const TOLERANCE: f64 = 0.02;

pub(super) fn lint(context: &Context<'_>) -> Vec<Finding> {
    let off: Vec<(f64, Evidence)> = context.rows.iter().filter_map(check).collect();
    let (above, below): (Vec<_>, Vec<_>) = off.into_iter().partition(|(ratio, _)| *ratio > 1.0);
    let above = (!above.is_empty()).then(|| Finding {
        severity: Severity::Problem,
        topic: "Little's law",
        sentence: format!(
            "{} more users than there were: throughput times duration is above the number of users, which cannot be.",
            if above.len() == 1 { "One row keeps busy".to_owned() } else { format!("{} rows keep busy", above.len()) }
        ),
        evidence: above.into_iter().map(|(_, evidence)| evidence).collect(),
        advice: "Find out over which time the rate is taken, and whether the duration is the mean of what the rate counts.",
    });
    let least = below.iter().map(|(ratio, _)| *ratio).fold(1.0, f64::min);
    let below = (!below.is_empty()).then(|| Finding {
        severity: Severity::Caution,
        topic: "Little's law",
        sentence: format!(
            "In {} throughput times duration accounts for too few users, {} of them at worst: users were not all at work, or \
             time passes that is not in the duration.",
            if below.len() == 1 { "one row".to_owned() } else { format!("{} rows", below.len()) },
            percent(least)
        ),
        evidence: below.into_iter().map(|(_, evidence)| evidence).collect(),
        advice: "Take the rate over the time of full load alone, without ramp and drain, and say what users do between \
                 iterations.",
    });
    above.into_iter().chain(below).collect()
}

fn check(row: &Row) -> Option<(f64, Evidence)> {
    let users = row.users.filter(|users| *users > 0.0 && !row.users_bound)?;
    let rate = row.rate.as_ref().filter(|rate| rate.unit == Unit::PerSecond && rate.value > 0.0)?;
    let duration = row.mean_duration().filter(|duration| duration.value > 0.0)?;
    // From a bound, such as `< 5 ms`, follows no number of users.
    if rate.bound || duration.bound || row.think.as_ref().is_some_and(|think| think.bound) {
        return None;
    }
    let (think, think_step) = row.think.as_ref().map_or((0.0, 0.0), |think| (think.value, think.half_step));
    let round = duration.value + think;
    let busy = rate.value * round;
    let rounding = rate.half_step / rate.value + (duration.half_step + think_step) / round;
    if (busy / users - 1.0).abs() <= TOLERANCE + rounding {
        return None;
    }
    let thinking = row.think.as_ref().filter(|think| think.value > 0.0);
    let thinking = thinking.map(|think| format!(" with {} of thinking", think.text)).unwrap_or_default();
    let text = format!(
        "{} × {}{thinking} keeps {} of {} users busy ({})",
        show(rate.value, Unit::PerSecond),
        duration.text,
        plimsoll_analysis::quantity::significant(busy),
        grouped(users),
        percent(busy / users)
    );
    Some((busy / users, Evidence::of(row, text)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lint::testing::found;

    #[test]
    fn users_that_the_numbers_do_not_account_for_are_found() {
        let severity = |users: &str, rate: &str, duration: &str, think: &str| {
            let table = format!("users,rate,duration,think\n{users},{rate},{duration},{think}\n");
            found(lint, &table).first().map(|finding| finding.severity)
        };
        for (users, rate, duration, think, expected) in [
            ("10", "4532.286646/s", "2.19ms", "", None),
            ("1000", "8924.532635/s", "91.98ms", "", Some(Severity::Caution)),
            ("10", "100/s", "150 ms", "", Some(Severity::Problem)),
            ("10", "1/s", "1 s", "9 s", None),
            ("10", "1/s", "1 s", "20 s", Some(Severity::Problem)),
            ("10", "9/s", "1 s", "", None),
            ("0", "9/s", "1 s", "", None),
            ("100", "60000/s", "5.0 ms", "", Some(Severity::Problem)),
            ("100", "60000/s", "5.0 ms", "0", Some(Severity::Problem)),
            ("100", "60000/s", "5.0 ms", "0s", Some(Severity::Problem)),
            ("100", "60000/s", "5.0 ms", "0 s", Some(Severity::Problem)),
            ("100", "60000/s", "5.0 ms", "0 ms", Some(Severity::Problem)),
            ("100", "60000/s", "5.0 ms", "none", Some(Severity::Problem)),
            ("300", "60000/s", "5.0 ms", "0 s", None),
            ("100", "30000/s", "<5 ms", "", None),
            ("100", "30000+/s", "5 ms", "", None),
            ("100", "30000/s", "5 ms", "<1 s", None),
            ("\"1,000+\"", "300000/s", "5 ms", "", None),
        ] {
            assert_eq!(severity(users, rate, duration, think), expected, "{users} {rate} {duration} {think}");
        }
    }
}
