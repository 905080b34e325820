//! Stock-Level (clause 2.8): counts the items of a district's last 20 orders whose stock is low.

use super::attempt::{Attempt, int, statements};
use super::input::StockLevel;
use crate::workload::TransactionEnd;
use plimsoll_sql::{SqlError, Value};

/// The number of orders whose items are counted.
const ORDERS: i64 = 20;

statements! {
    District: "select district", "SELECT d_next_o_id FROM district WHERE d_w_id = ? AND d_id = ?";
    Count: "count stock",
        "SELECT COUNT(DISTINCT s_i_id) FROM order_line JOIN stock ON s_w_id = ol_w_id AND s_i_id = ol_i_id \
        WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id >= ? AND ol_o_id < ? AND s_quantity < ?";
}

/// Runs the transaction.
pub(super) fn run(input: StockLevel, attempt: &mut Attempt<'_>) -> Result<TransactionEnd, SqlError> {
    let ids = [input.home.warehouse, input.home.district].map(Value::Int);
    attempt.begin()?;
    let next = attempt.read_one(Sql::District, &ids, |rows| int(rows, 0))?;
    let [first, next, threshold] = [next - ORDERS, next, input.threshold].map(Value::Int);
    attempt.read_one(Sql::Count, &[ids[0], ids[1], first, next, threshold], |rows| int(rows, 0))?;
    attempt.commit()
}
