//! Capacities in whole users.
//!
//! The levels of a ladder lie between whole numbers, and the nearest number of users is offered. Where 1 user
//! passes and 2 fail, the levels come together at 1.5, from where on 2 are offered, and the largest load that
//! passes is the whole number below. Estimates and their intervals stay as they are; only their texts are whole.
//! Rounding down keeps the order of numbers, so that an interval which holds the capacity still holds it with both
//! of its ends rounded down.

use crate::input::Input;
use crate::quantity::show;
use plimsoll_model::measure::{Measure, Series, Unit};

/// The share of itself by which the mean of logarithms may miss a whole number.
const ROUNDING: f64 = 1e-9;

/// The largest load that a capacity holds: whole users, or arrivals per second as they are.
#[must_use]
pub fn load_within(capacity: f64, measure: &Measure) -> f64 {
    if is_of_users(measure) { (capacity * (1.0 + ROUNDING)).floor() } else { capacity }
}

/// The smallest load that is not below a bound of the capacity: whole users, or arrivals per second as they are.
#[must_use]
pub fn load_from(bound: f64, measure: &Measure) -> f64 {
    if is_of_users(measure) { (bound * (1.0 - ROUNDING)).ceil() } else { bound }
}

/// Formats a value of a measure of the study like [`show`], but a capacity that was searched for in whole users. The
/// users of a control loop are a mean over time, and rounded like all other values.
#[must_use]
pub fn show_value(input: &Input, value: f64, measure: &Measure) -> String {
    let value = if input.plan.searches() { load_within(value, measure) } else { value };
    show(value, measure.unit())
}

fn is_of_users(measure: &Measure) -> bool {
    measure.series == Series::Capacity && measure.unit() == Unit::Count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_rounded_down_to_those_that_pass_and_arrivals_are_not() {
        let [users, arrivals]: [Measure; 2] =
            ["capacity.count", "capacity.rate"].map(|name| name.parse().expect("a measure"));
        for (capacity, within, from) in [(1.5, 1.0, 2.0), (3.5, 3.0, 4.0), (351.9, 351.0, 352.0), (0.8, 0.0, 1.0)] {
            assert_eq!([load_within(capacity, &users), load_from(capacity, &users)], [within, from]);
            assert_eq!([load_within(capacity, &arrivals), load_from(capacity, &arrivals)], [capacity; 2]);
        }
        let errors: Measure = "errors.count".parse().expect("a measure");
        assert_eq!(load_within(1.5, &errors), 1.5);
    }

    #[test]
    fn whole_users_stay_as_many_in_a_mean_of_logarithms() {
        let users: Measure = "capacity.count".parse().expect("a measure");
        for whole in (1..1000).map(f64::from) {
            let mean = (3.0 * whole.ln() / 3.0).exp();
            assert_eq!([load_within(mean, &users), load_from(mean, &users)], [whole; 2]);
        }
    }
}
