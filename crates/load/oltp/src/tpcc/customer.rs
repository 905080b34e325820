//! Finds the customer of a transaction, by number or by last name.

use super::attempt::{Attempt, check_failed};
use super::input::{Customer, CustomerKey};
use plimsoll_sql::{SqlError, Value};

/// Returns the number of a customer. Of several with the same last name, it is the middle one in the
/// order of first names, rounded up (clause 2.5.2.2). The statement `by_name` gives their numbers.
pub(super) fn number(
    customer: &Customer,
    by_name: impl Into<usize>,
    attempt: &mut Attempt<'_>,
) -> Result<i64, SqlError> {
    let name = match &customer.by {
        CustomerKey::Number(number) => return Ok(*number),
        CustomerKey::LastName(name) => name,
    };
    let (warehouse, district) = (Value::Int(customer.warehouse), Value::Int(customer.district));
    attempt.read(by_name, &[warehouse, district, Value::Text(name)], |rows| {
        let number = if rows.is_empty() { None } else { rows.int(middle(rows.len()), 0)? };
        number.ok_or_else(|| check_failed(format!("expected customers named {name}, found none: {customer:?}")))
    })
}

/// The index of the middle of `count` items, from 0.
fn middle(count: usize) -> usize {
    count.div_ceil(2) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_one_is_rounded_up() {
        assert_eq!([1, 2, 3, 4, 5].map(middle), [0, 0, 1, 1, 2]);
    }
}
