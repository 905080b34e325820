//! Stock-Level (clause 2.8): of how many items of a district's last 20 orders little is left.

use super::attempt::{Attempt, int, statements};
use super::input::StockLevel;
use crate::terminal::Ended;
use plimsoll_sql::{SqlError, Value};

/// Orders that are looked at.
const LAST: i64 = 20;

statements! {
    District: "select district", "SELECT d_next_o_id FROM district WHERE d_w_id = ? AND d_id = ?";
    Count: "count stock",
        "SELECT COUNT(DISTINCT s_i_id) FROM order_line JOIN stock ON s_w_id = ol_w_id AND s_i_id = ol_i_id \
        WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id >= ? AND ol_o_id < ? AND s_quantity < ?";
}

/// Runs it.
pub(super) fn run(question: StockLevel, attempt: &mut Attempt<'_>) -> Result<Ended, SqlError> {
    let ids = [question.home.warehouse, question.home.district].map(Value::Int);
    attempt.begin()?;
    let next = attempt.read_one(Sql::District, &ids, |rows| int(rows, 0))?;
    let [first, next, threshold] = [next - LAST, next, question.threshold].map(Value::Int);
    attempt.read_one(Sql::Count, &[ids[0], ids[1], first, next, threshold], |rows| int(rows, 0))?;
    attempt.commit()
}
