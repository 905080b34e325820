//! Payment (clause 2.5): a customer pays, at the terminal's warehouse or from elsewhere.

use super::attempt::{Attempt, statements, text};
use super::customer;
use super::input::Payment;
use super::rows::money;
use crate::workload::TransactionEnd;
use plimsoll_sql::{SqlError, Value};

statements! {
    UpdateWarehouse: "update warehouse", "UPDATE warehouse SET w_ytd = w_ytd + ? WHERE w_id = ?";
    Warehouse: "select warehouse",
        "SELECT w_name, w_street_1, w_street_2, w_city, w_state, w_zip FROM warehouse WHERE w_id = ?";
    UpdateDistrict: "update district", "UPDATE district SET d_ytd = d_ytd + ? WHERE d_w_id = ? AND d_id = ?";
    District: "select district",
        "SELECT d_name, d_street_1, d_street_2, d_city, d_state, d_zip FROM district WHERE d_w_id = ? AND d_id = ?";
    CustomersByName: "select customers by name",
        "SELECT c_id FROM customer WHERE c_w_id = ? AND c_d_id = ? AND c_last = ? ORDER BY c_first";
    Customer: "select customer",
        "SELECT c_credit, c_first, c_middle, c_last, c_street_1, c_street_2, c_city, c_state, c_zip, c_phone, \
        c_since, c_credit_lim, c_discount, c_balance FROM customer \
        WHERE c_w_id = ? AND c_d_id = ? AND c_id = ? FOR UPDATE";
    UpdateCustomer: "update customer",
        "UPDATE customer SET c_balance = c_balance - ?, c_ytd_payment = c_ytd_payment + ?, \
        c_payment_cnt = c_payment_cnt + 1 WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?";
    UpdateBadCustomer: "update customer of bad credit",
        "UPDATE customer SET c_balance = c_balance - ?, c_ytd_payment = c_ytd_payment + ?, \
        c_payment_cnt = c_payment_cnt + 1, c_data = LEFT(CONCAT(LEFT(?, 500), c_data), 500) \
        WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?";
    InsertHistory: "insert history",
        "INSERT INTO history (h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_amount, h_data) \
        VALUES (?, ?, ?, ?, ?, CURRENT_TIMESTAMP, ?, ?)";
}

/// Runs the transaction.
pub(super) fn run(payment: &Payment, attempt: &mut Attempt<'_>) -> Result<TransactionEnd, SqlError> {
    let (warehouse, district) = (Value::Int(payment.home.warehouse), Value::Int(payment.home.district));
    let amount = money(payment.amount);

    attempt.begin()?;
    attempt.change_one(Sql::UpdateWarehouse, &[amount, warehouse])?;
    let w_name = attempt.read_one(Sql::Warehouse, &[warehouse], |rows| text(rows, 0))?;
    attempt.change_one(Sql::UpdateDistrict, &[amount, warehouse, district])?;
    let d_name = attempt.read_one(Sql::District, &[warehouse, district], |rows| text(rows, 0))?;
    let number = customer::number(&payment.customer, Sql::CustomersByName, attempt)?;
    charge(payment, number, attempt)?;

    let [c_id, c_d_id, c_w_id] = [number, payment.customer.district, payment.customer.warehouse].map(Value::Int);
    let data = format!("{w_name}    {d_name}");
    attempt.change_one(Sql::InsertHistory, &[c_id, c_d_id, c_w_id, district, warehouse, amount, Value::Text(&data)])?;
    attempt.commit()
}

/// Takes the amount from the customer's balance. A customer of bad credit also gets a note of it.
fn charge(payment: &Payment, number: i64, attempt: &mut Attempt<'_>) -> Result<(), SqlError> {
    let ids = [payment.customer.warehouse, payment.customer.district, number];
    let [warehouse, district, customer] = ids.map(Value::Int);
    let amount = money(payment.amount);
    let credit = attempt.read_one(Sql::Customer, &[warehouse, district, customer], |rows| text(rows, 0))?;
    if credit == "BC" {
        let note = note(payment, number);
        let parameters = [amount, amount, Value::Text(&note), warehouse, district, customer];
        attempt.change_one(Sql::UpdateBadCustomer, &parameters)
    } else {
        attempt.change_one(Sql::UpdateCustomer, &[amount, amount, warehouse, district, customer])
    }
}

/// The note for the data of a customer of bad credit.
fn note(payment: &Payment, number: i64) -> String {
    let Payment { home, customer, amount } = payment;
    let (whole, cents) = (amount / 100, amount % 100);
    let who = format!("{number} {} {}", customer.district, customer.warehouse);
    format!("{who} {} {} {whole}.{cents:02} ", home.district, home.warehouse)
}
