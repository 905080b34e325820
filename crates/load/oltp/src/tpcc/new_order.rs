//! New-Order (clause 2.4): a customer orders 5 to 15 items.

use super::attempt::{Attempt, check_failed, decimal, int, statements, text};
use super::input::{Line, NewOrder, UNUSED_ITEM};
use super::rows::money;
use crate::workload::TransactionEnd;
use plimsoll_sql::{SqlError, Value};

statements! {
    Warehouse: "select warehouse", "SELECT w_tax FROM warehouse WHERE w_id = ?";
    District: "select district", "SELECT d_tax, d_next_o_id FROM district WHERE d_w_id = ? AND d_id = ? FOR UPDATE";
    NextOrder: "update district", "UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = ? AND d_id = ?";
    Customer: "select customer",
        "SELECT c_discount, c_last, c_credit FROM customer WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?";
    InsertOrder: "insert order",
        "INSERT INTO orders (o_id, o_d_id, o_w_id, o_c_id, o_entry_d, o_carrier_id, o_ol_cnt, o_all_local) \
        VALUES (?, ?, ?, ?, CURRENT_TIMESTAMP, NULL, ?, ?)";
    InsertNewOrder: "insert new order", "INSERT INTO new_order (no_o_id, no_d_id, no_w_id) VALUES (?, ?, ?)";
    Item: "select item", "SELECT i_price, i_name, i_data FROM item WHERE i_id = ?";
    Stock: "select stock",
        "SELECT s_quantity, s_data, CASE ? + 0 WHEN 1 THEN s_dist_01 WHEN 2 THEN s_dist_02 WHEN 3 THEN s_dist_03 \
        WHEN 4 THEN s_dist_04 WHEN 5 THEN s_dist_05 WHEN 6 THEN s_dist_06 WHEN 7 THEN s_dist_07 \
        WHEN 8 THEN s_dist_08 WHEN 9 THEN s_dist_09 ELSE s_dist_10 END \
        FROM stock WHERE s_w_id = ? AND s_i_id = ? FOR UPDATE";
    UpdateStock: "update stock",
        "UPDATE stock SET s_quantity = ?, s_ytd = s_ytd + ?, s_order_cnt = s_order_cnt + 1, \
        s_remote_cnt = s_remote_cnt + ? WHERE s_w_id = ? AND s_i_id = ?";
    InsertLine: "insert order line",
        "INSERT INTO order_line (ol_o_id, ol_d_id, ol_w_id, ol_number, ol_i_id, ol_supply_w_id, ol_delivery_d, \
        ol_quantity, ol_amount, ol_dist_info) VALUES (?, ?, ?, ?, ?, ?, NULL, ?, ?, ?)";
}

/// Runs the transaction. An order with an unused last item first does everything else (clause 2.4.2.3).
pub(super) fn run(order: &NewOrder, attempt: &mut Attempt<'_>) -> Result<TransactionEnd, SqlError> {
    let (warehouse, district) = (Value::Int(order.warehouse), Value::Int(order.district));
    let customer = Value::Int(order.customer);
    let (count, is_local) = (Value::Int(order.lines.len() as i64), Value::Int(i64::from(order.is_local())));

    attempt.begin()?;
    attempt.read_one(Sql::Warehouse, &[warehouse], |rows| decimal(rows, 0, 4))?;
    let id = attempt.read_one(Sql::District, &[warehouse, district], |rows| {
        decimal(rows, 0, 4)?;
        int(rows, 1)
    })?;
    attempt.change_one(Sql::NextOrder, &[warehouse, district])?;
    attempt.read_one(Sql::Customer, &[warehouse, district, customer], |rows| decimal(rows, 0, 4))?;
    let order_id = Value::Int(id);
    attempt.change_one(Sql::InsertOrder, &[order_id, district, warehouse, customer, count, is_local])?;
    attempt.change_one(Sql::InsertNewOrder, &[order_id, district, warehouse])?;
    for (line, number) in order.lines.iter().zip(1..) {
        match price(line.item, attempt)? {
            Some(price) => add_line(order, id, number, *line, price, attempt)?,
            None => return attempt.roll_back(),
        }
    }
    attempt.commit()
}

/// The price of an item in cents; none for the unused item.
fn price(item: i64, attempt: &mut Attempt<'_>) -> Result<Option<i64>, SqlError> {
    attempt.read(Sql::Item, &[Value::Int(item)], |rows| match (rows.len(), item == UNUSED_ITEM) {
        (1, false) => decimal(rows, 0, 2).map(Some),
        (0, true) => Ok(None),
        (found, true) => Err(check_failed(format!("item {item} must not be there, found {found}"))),
        (found, false) => Err(check_failed(format!("expected item {item} once, found {found}"))),
    })
}

/// Takes a line's items from the stock of the warehouse that supplies them.
fn add_line(
    order: &NewOrder,
    id: i64,
    number: i64,
    line: Line,
    price: i64,
    attempt: &mut Attempt<'_>,
) -> Result<(), SqlError> {
    let (warehouse, district) = (Value::Int(order.warehouse), Value::Int(order.district));
    let (item, supply, ordered) = (Value::Int(line.item), Value::Int(line.supply), Value::Int(line.quantity));
    let (quantity, dist_info) =
        attempt.read_one(Sql::Stock, &[district, supply, item], |rows| Ok((int(rows, 0)?, text(rows, 2)?)))?;
    let left = Value::Int(left_in_stock(quantity, line.quantity));
    let is_remote = Value::Int(i64::from(line.supply != order.warehouse));
    attempt.change_one(Sql::UpdateStock, &[left, ordered, is_remote, supply, item])?;
    let (id, number, amount) = (Value::Int(id), Value::Int(number), money(line.quantity * price));
    attempt.change_one(
        Sql::InsertLine,
        &[id, district, warehouse, number, item, supply, ordered, amount, Value::Text(&dist_info)],
    )
}

/// The stock of an item after an order. It is filled up by 91 if fewer than 10 would be left.
fn left_in_stock(quantity: i64, ordered: i64) -> i64 {
    if quantity - ordered >= 10 { quantity - ordered } else { quantity - ordered + 91 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_may_be_left_and_nine_is_filled_up() {
        assert_eq!(left_in_stock(15, 5), 10);
        assert_eq!(left_in_stock(14, 5), 100);
        assert_eq!(left_in_stock(10, 10), 91);
    }
}
