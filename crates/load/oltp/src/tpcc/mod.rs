//! TPC-C: its data, its five transactions with the behaviour of DBT-2's driver, and the conditions that
//! the data must meet afterwards. Clauses are those of TPC-C 5.11.

mod attempt;
mod conditions;
mod customer;
mod delivery;
mod input;
mod loader;
mod mix;
mod new_order;
#[cfg(test)]
mod on_servers;
mod order_status;
mod payment;
mod random;
mod rows;
mod schema;
mod stock_level;
mod workload;

pub(crate) use conditions::conditions;
pub(crate) use loader::load;
pub(crate) use workload::workload;

/// The names of the tables.
pub(crate) fn tables() -> Vec<String> {
    schema::TABLES.map(|table| table.name.to_owned()).to_vec()
}
