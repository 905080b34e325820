//! Delivery (clause 2.7): delivers the oldest undelivered order of each district, at once and in one
//! transaction.

use super::attempt::{Attempt, decimal, int, statements};
use super::input::Delivery;
use super::mix::Mix;
use super::rows::{DISTRICTS, money};
use crate::workload::TransactionEnd;
use plimsoll_sql::{SqlError, Value};

// A transaction sees its own changes, whatever its isolation level. So rows that must not be older
// than its locks are read after they were changed.
statements! {
    Oldest: "select new order",
        "SELECT no_o_id FROM new_order WHERE no_w_id = ? AND no_d_id = ? ORDER BY no_o_id LIMIT 1 FOR UPDATE";
    Delete: "delete new order", "DELETE FROM new_order WHERE no_w_id = ? AND no_d_id = ? AND no_o_id = ?";
    UpdateOrder: "update order",
        "UPDATE orders SET o_carrier_id = ? WHERE o_w_id = ? AND o_d_id = ? AND o_id = ?";
    Order: "select order", "SELECT o_c_id FROM orders WHERE o_w_id = ? AND o_d_id = ? AND o_id = ?";
    UpdateLines: "update order lines",
        "UPDATE order_line SET ol_delivery_d = CURRENT_TIMESTAMP WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ?";
    Amount: "sum of order lines",
        "SELECT SUM(ol_amount) FROM order_line WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ?";
    UpdateCustomer: "update customer",
        "UPDATE customer SET c_balance = c_balance + ?, c_delivery_cnt = c_delivery_cnt + 1 \
        WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?";
}

/// Runs the transaction. Skips and counts districts without an order to deliver.
pub(super) fn run(delivery: Delivery, mix: &Mix, attempt: &mut Attempt<'_>) -> Result<TransactionEnd, SqlError> {
    let mut skipped = 0;
    attempt.begin()?;
    for district in 1..=DISTRICTS {
        let ids = [delivery.warehouse, district].map(Value::Int);
        let oldest = attempt.read(Sql::Oldest, &ids, |rows| match rows.is_empty() {
            true => Ok(None),
            false => int(rows, 0).map(Some),
        })?;
        match oldest {
            Some(order) => deliver(delivery, district, order, attempt)?,
            None => skipped += 1,
        }
    }
    let ended = attempt.commit()?;
    mix.skip_districts(skipped);
    Ok(ended)
}

/// Delivers one order.
fn deliver(delivery: Delivery, district: i64, order: i64, attempt: &mut Attempt<'_>) -> Result<(), SqlError> {
    let [warehouse, district, order] = [delivery.warehouse, district, order].map(Value::Int);
    let ids = [warehouse, district, order];
    attempt.change_one(Sql::Delete, &ids)?;
    attempt.change_one(Sql::UpdateOrder, &[Value::Int(delivery.carrier), warehouse, district, order])?;
    let customer = attempt.read_one(Sql::Order, &ids, |rows| int(rows, 0))?;
    attempt.change(Sql::UpdateLines, &ids, 5, 15)?;
    let amount = attempt.read_one(Sql::Amount, &ids, |rows| decimal(rows, 0, 2))?;
    attempt.change_one(Sql::UpdateCustomer, &[money(amount), warehouse, district, Value::Int(customer)])
}
