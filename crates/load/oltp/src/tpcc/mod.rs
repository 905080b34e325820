//! TPC-C: its data, its five transactions with the behaviour of DBT-2's driver, and what must hold
//! of the data afterwards. Clauses are those of TPC-C 5.11.

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
mod terminal;

pub(crate) use conditions::conditions;
pub(crate) use loader::load;
pub(crate) use terminal::workload;

/// The names of the tables.
pub(crate) fn tables() -> Vec<String> {
    schema::TABLES.map(|table| table.name.to_owned()).to_vec()
}
