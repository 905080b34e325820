//! Order-Status (clause 2.6): reads the last order of a customer.

use super::attempt::{Attempt, check_failed, decimal, int, statements};
use super::customer;
use super::input::OrderStatus;
use crate::workload::TransactionEnd;
use plimsoll_sql::{SqlError, Value};

statements! {
    CustomersByName: "select customers by name",
        "SELECT c_id FROM customer WHERE c_w_id = ? AND c_d_id = ? AND c_last = ? ORDER BY c_first";
    Customer: "select customer",
        "SELECT c_balance, c_first, c_middle, c_last FROM customer WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?";
    Order: "select order",
        "SELECT o_id, o_entry_d, o_carrier_id, o_ol_cnt FROM orders WHERE o_w_id = ? AND o_d_id = ? AND o_c_id = ? \
        ORDER BY o_id DESC LIMIT 1";
    Lines: "select order lines",
        "SELECT ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d FROM order_line \
        WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ?";
}

/// Runs the transaction.
pub(super) fn run(input: &OrderStatus, attempt: &mut Attempt<'_>) -> Result<TransactionEnd, SqlError> {
    attempt.begin()?;
    let number = customer::number(&input.customer, Sql::CustomersByName, attempt)?;
    let ids = [input.customer.warehouse, input.customer.district, number];
    let [warehouse, district, customer] = ids.map(Value::Int);
    attempt.read_one(Sql::Customer, &[warehouse, district, customer], |rows| decimal(rows, 0, 2))?;
    let (order, count) =
        attempt.read_one(Sql::Order, &[warehouse, district, customer], |rows| Ok((int(rows, 0)?, int(rows, 3)?)))?;
    attempt.read(Sql::Lines, &[warehouse, district, Value::Int(order)], |rows| match rows.len() as i64 {
        found if found == count => Ok(()),
        found => Err(check_failed(format!("expected {count} lines of order {order} of {ids:?}, found {found}"))),
    })?;
    attempt.commit()
}
