//! Compiles the SQL workload of a study.

use crate::workload::SqlWorkload;
use crate::{own, sbtest, tpcc};
use plimsoll_model::load::Share;
use plimsoll_model::sql::{Sql, SqlWork};

/// Compiles the workload that a study asks for, for the users of `share`.
///
/// # Errors
/// A statement's parameters do not fit its placeholders, or a feed cannot be read.
pub fn compile(sql: &Sql, seed: u64, share: Share) -> Result<Box<dyn SqlWorkload>, String> {
    match &sql.work {
        SqlWork::Tpcc(tpcc) => Ok(tpcc::workload(tpcc, seed)),
        SqlWork::Oltp(oltp) => sbtest::workload(oltp),
        SqlWork::Own(transactions) => {
            own::workload(transactions, sql.endpoint.as_ref().map(|endpoint| endpoint.engine), share)
        }
    }
}
