//! The consistency conditions of the data (clauses 3.3.2.1 to 3.3.2.12).
//!
//! Each condition is a query for the rows that break it, over all warehouses at once. Rows are grouped
//! before they are joined, so that each table is read once. Queries over many groups use UNION ALL and one
//! more GROUP BY in place of a join: MySQL before 5.6 joins grouped rows one by one.

use plimsoll_model::database::{Condition, Engine};
use plimsoll_sql::{Connection, SqlError, TextRows};
use std::time::{Duration, Instant};

/// A condition in words, and the query for the rows that break it. The last two columns of the query
/// should be equal; the columns before them say where.
type Query = (&'static str, &'static str);

/// The error codes of queries that the server ended because their time was up.
const TIMEOUT_CODES: [&str; 3] = ["57014", "1969", "3024"];

/// The number of the condition that holds only until the first order or delivery.
const AFTER_LOAD: usize = 11;

const QUERIES: [Query; 12] = [
    (
        "1: w_ytd = sum(d_ytd)",
        "SELECT w_id, w_ytd, districts FROM warehouse \
        LEFT JOIN (SELECT d_w_id, SUM(d_ytd) AS districts FROM district GROUP BY d_w_id) AS d ON d_w_id = w_id \
        WHERE districts IS NULL OR w_ytd <> districts",
    ),
    (
        "2: d_next_o_id - 1 = max(o_id) = max(no_o_id)",
        "SELECT d_w_id, d_id, d_next_o_id, newest, newest_undelivered FROM district \
        LEFT JOIN (SELECT o_w_id, o_d_id, MAX(o_id) AS newest FROM orders GROUP BY o_w_id, o_d_id) AS o \
            ON o_w_id = d_w_id AND o_d_id = d_id \
        LEFT JOIN (SELECT no_w_id, no_d_id, MAX(no_o_id) AS newest_undelivered FROM new_order \
            GROUP BY no_w_id, no_d_id) AS n ON no_w_id = d_w_id AND no_d_id = d_id \
        WHERE d_next_o_id - 1 <> COALESCE(newest, 0) OR newest_undelivered <> newest",
    ),
    (
        "3: max(no_o_id) - min(no_o_id) + 1 = count(new_order)",
        "SELECT no_w_id, no_d_id, MAX(no_o_id) - MIN(no_o_id) + 1 AS span, COUNT(*) AS undelivered FROM new_order \
        GROUP BY no_w_id, no_d_id HAVING MAX(no_o_id) - MIN(no_o_id) + 1 <> COUNT(*)",
    ),
    (
        "4: sum(o_ol_cnt) = count(order_line)",
        "SELECT o_w_id, o_d_id, ordered, found FROM \
        (SELECT o_w_id, o_d_id, SUM(o_ol_cnt) AS ordered FROM orders GROUP BY o_w_id, o_d_id) AS o \
        LEFT JOIN (SELECT ol_w_id, ol_d_id, COUNT(*) AS found FROM order_line GROUP BY ol_w_id, ol_d_id) AS l \
            ON ol_w_id = o_w_id AND ol_d_id = o_d_id WHERE ordered <> COALESCE(found, 0)",
    ),
    (
        "5: an order without carrier is in new_order, and no other",
        "SELECT o_w_id, o_d_id, o_id, o_carrier_id, no_o_id FROM orders \
        LEFT JOIN new_order ON no_w_id = o_w_id AND no_d_id = o_d_id AND no_o_id = o_id \
        WHERE (o_carrier_id IS NULL) <> (no_o_id IS NOT NULL) \
        UNION ALL SELECT no_w_id, no_d_id, no_o_id, NULL, no_o_id FROM new_order \
        LEFT JOIN orders ON o_w_id = no_w_id AND o_d_id = no_d_id AND o_id = no_o_id WHERE o_id IS NULL",
    ),
    (
        "6: o_ol_cnt = count of the order's lines",
        "SELECT o_w_id, o_d_id, o_id, SUM(ordered) AS o_ol_cnt, SUM(line) AS found FROM \
        (SELECT o_w_id, o_d_id, o_id, o_ol_cnt AS ordered, 0 AS line FROM orders \
        UNION ALL SELECT ol_w_id, ol_d_id, ol_o_id, 0, COUNT(*) FROM order_line GROUP BY ol_w_id, ol_d_id, ol_o_id) AS o \
        GROUP BY o_w_id, o_d_id, o_id HAVING SUM(ordered) <> SUM(line)",
    ),
    (
        "7: a line without delivery date is of an order without carrier, and no other",
        "SELECT ol_w_id, ol_d_id, ol_o_id, ol_number, ol_delivery_d, o_carrier_id FROM order_line \
        LEFT JOIN orders ON o_w_id = ol_w_id AND o_d_id = ol_d_id AND o_id = ol_o_id \
        WHERE (ol_delivery_d IS NULL) <> (o_carrier_id IS NULL) OR o_id IS NULL",
    ),
    (
        "8: w_ytd = sum(h_amount)",
        "SELECT w_id, w_ytd, paid FROM warehouse \
        LEFT JOIN (SELECT h_w_id, SUM(h_amount) AS paid FROM history GROUP BY h_w_id) AS h ON h_w_id = w_id \
        WHERE w_ytd <> COALESCE(paid, 0)",
    ),
    (
        "9: d_ytd = sum(h_amount)",
        "SELECT d_w_id, d_id, d_ytd, paid FROM district \
        LEFT JOIN (SELECT h_w_id, h_d_id, SUM(h_amount) AS paid FROM history GROUP BY h_w_id, h_d_id) AS h \
            ON h_w_id = d_w_id AND h_d_id = d_id WHERE d_ytd <> COALESCE(paid, 0)",
    ),
    (
        "10: c_balance = sum(delivered ol_amount) - sum(h_amount)",
        "SELECT c_w_id, c_d_id, c_id, SUM(balance) AS c_balance, SUM(line) AS delivered, SUM(payment) AS paid FROM \
        (SELECT c_w_id, c_d_id, c_id, c_balance AS balance, 0 AS line, 0 AS payment FROM customer \
        UNION ALL SELECT o_w_id, o_d_id, o_c_id, 0, SUM(ol_amount), 0 FROM orders \
            JOIN order_line ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id \
            WHERE ol_delivery_d IS NOT NULL GROUP BY o_w_id, o_d_id, o_c_id \
        UNION ALL SELECT h_c_w_id, h_c_d_id, h_c_id, 0, 0, h_amount FROM history) AS c \
        GROUP BY c_w_id, c_d_id, c_id HAVING SUM(balance) <> SUM(line) - SUM(payment)",
    ),
    (
        "11: count(orders) - count(new_order) = 2100",
        "SELECT o_w_id, o_d_id, orders, undelivered FROM \
        (SELECT o_w_id, o_d_id, COUNT(*) AS orders FROM orders GROUP BY o_w_id, o_d_id) AS o \
        LEFT JOIN (SELECT no_w_id, no_d_id, COUNT(*) AS undelivered FROM new_order GROUP BY no_w_id, no_d_id) AS n \
            ON no_w_id = o_w_id AND no_d_id = o_d_id WHERE orders - COALESCE(undelivered, 0) <> 2100",
    ),
    (
        "12: c_balance + c_ytd_payment = sum(delivered ol_amount)",
        "SELECT c_w_id, c_d_id, c_id, SUM(spent) AS balance_and_payments, SUM(line) AS delivered FROM \
        (SELECT c_w_id, c_d_id, c_id, c_balance + c_ytd_payment AS spent, 0 AS line FROM customer \
        UNION ALL SELECT o_w_id, o_d_id, o_c_id, 0, SUM(ol_amount) FROM orders \
            JOIN order_line ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id \
            WHERE ol_delivery_d IS NOT NULL GROUP BY o_w_id, o_d_id, o_c_id) AS c \
        GROUP BY c_w_id, c_d_id, c_id HAVING SUM(spent) <> SUM(line)",
    ),
];

/// Evaluates the conditions for at most `within`. `after_load` adds the one that holds only then. The
/// server itself ends a query when the time is up, so that the connection stays.
///
/// # Errors
/// The server refuses or is gone.
pub(crate) fn conditions(
    connection: &mut Connection,
    after_load: bool,
    within: Duration,
) -> Result<Vec<Condition>, SqlError> {
    let deadline = Instant::now() + within;
    // The condition that can be evaluated only now comes first, while there is time.
    let (only_now, always): (Vec<_>, Vec<_>) = QUERIES.iter().zip(1..).partition(|(_, number)| *number == AFTER_LOAD);
    let asked = only_now.into_iter().filter(|_| after_load).chain(always);
    let conditions = asked.map(|((name, query), _)| evaluate(connection, name, query, deadline));
    let conditions = conditions.collect::<Result<Vec<Condition>, SqlError>>()?;
    set_query_limit(connection, Duration::ZERO)?;
    Ok(conditions)
}

/// Evaluates one condition.
fn evaluate(connection: &mut Connection, name: &str, query: &str, deadline: Instant) -> Result<Condition, SqlError> {
    let name = name.to_owned();
    let too_late = |name| Condition { name, holds: None, detail: "the time for conditions was up".to_owned() };
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() {
        return Ok(too_late(name));
    }
    set_query_limit(connection, left)?;
    match connection.query(&format!("{query} LIMIT 3")) {
        Ok(broken) => Ok(Condition { name, holds: Some(broken.rows.is_empty()), detail: describe(&broken) }),
        Err(error) if TIMEOUT_CODES.contains(&error.code.as_str()) => Ok(too_late(name)),
        Err(error) => Err(error),
    }
}

/// Lets the server end queries that take longer than `limit` from now on; zero is no limit. MySQL before
/// 5.7 knows no such setting: there only the connection's own timeout ends a query.
fn set_query_limit(connection: &mut Connection, limit: Duration) -> Result<(), SqlError> {
    let statement = match connection.engine() {
        // Zero milliseconds would be no limit at all.
        Engine::Postgresql => format!("SET statement_timeout = {}", limit.as_micros().div_ceil(1_000)),
        Engine::Mariadb => format!("SET SESSION max_statement_time = {}", limit.as_secs_f64()),
        Engine::Mysql => format!("SET SESSION max_execution_time = {}", limit.as_micros().div_ceil(1_000)),
    };
    connection.batch(&statement).or_else(|error| if error.is_fatal() { Err(error) } else { Ok(()) })
}

/// Describes the first rows that break a condition: `w_id 1, w_ytd 300001.00, paid 300000.00; …`.
fn describe(broken: &TextRows) -> String {
    let row = |row: &Vec<Option<String>>| {
        let cell = |(name, cell): (&String, &Option<String>)| format!("{name} {}", cell.as_deref().unwrap_or("NULL"));
        broken.columns.iter().zip(row).map(cell).collect::<Vec<String>>().join(", ")
    };
    broken.rows.iter().map(row).collect::<Vec<String>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_breaks_a_condition_is_said_with_its_columns() {
        let cell = |text: &str| Some(text.to_owned());
        let table = TextRows {
            columns: vec!["w_id".to_owned(), "paid".to_owned()],
            rows: vec![vec![cell("1"), cell("2.00")], vec![cell("2"), None]],
        };
        assert_eq!(describe(&table), "w_id 1, paid 2.00; w_id 2, paid NULL");
    }

    #[test]
    fn conditions_are_numbered_as_in_the_specification() {
        for ((name, _), number) in QUERIES.iter().zip(1..) {
            assert!(name.starts_with(&format!("{number}: ")), "{name}");
        }
    }
}
