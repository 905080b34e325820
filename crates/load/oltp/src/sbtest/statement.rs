//! The statements of sysbench's tests, and the statements of each test.

use plimsoll_model::database::Engine;
use plimsoll_model::sql::OltpTest;

/// The number of rows in a range.
pub(super) const RANGE: i64 = 100;

/// A statement on one table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Statement {
    PointSelect,
    SimpleRange,
    SumRange,
    OrderRange,
    DistinctRange,
    UpdateIndex,
    UpdateNonIndex,
    Delete,
    /// Inserts the row that was deleted before.
    Insert,
    /// Inserts a row whose id the server chooses.
    NewRow,
}

use Statement::{
    Delete, DistinctRange, Insert, NewRow, OrderRange, PointSelect, SimpleRange, SumRange, UpdateIndex, UpdateNonIndex,
};

impl Statement {
    /// The short name in results.
    pub(super) fn name(self) -> &'static str {
        match self {
            PointSelect => "select row",
            SimpleRange => "select range",
            SumRange => "sum of range",
            OrderRange => "ordered range",
            DistinctRange => "distinct range",
            UpdateIndex => "update index",
            UpdateNonIndex => "update non-index",
            Delete => "delete",
            Insert | NewRow => "insert",
        }
    }

    pub(super) fn sql(self, engine: Engine, table: u32) -> String {
        match self {
            PointSelect => format!("SELECT c FROM sbtest{table} WHERE id=?"),
            SimpleRange => format!("SELECT c FROM sbtest{table} WHERE id BETWEEN ? AND ?"),
            SumRange => format!("SELECT SUM(k) FROM sbtest{table} WHERE id BETWEEN ? AND ?"),
            OrderRange => format!("SELECT c FROM sbtest{table} WHERE id BETWEEN ? AND ? ORDER BY c"),
            DistinctRange => format!("SELECT DISTINCT c FROM sbtest{table} WHERE id BETWEEN ? AND ? ORDER BY c"),
            UpdateIndex => format!("UPDATE sbtest{table} SET k=k+1 WHERE id=?"),
            UpdateNonIndex => format!("UPDATE sbtest{table} SET c=? WHERE id=?"),
            Delete => format!("DELETE FROM sbtest{table} WHERE id=?"),
            Insert => format!("INSERT INTO sbtest{table} (id, k, c, pad) VALUES (?, ?, ?, ?)"),
            NewRow => match engine {
                Engine::Postgresql => format!("INSERT INTO sbtest{table} (k, c, pad) VALUES (?, ?, ?)"),
                Engine::Mariadb | Engine::Mysql => {
                    format!("INSERT INTO sbtest{table} (id, k, c, pad) VALUES (0, ?, ?, ?)")
                }
            },
        }
    }
}

const READS: [&[Statement]; 5] = [&[PointSelect; 10], &[SimpleRange], &[SumRange], &[OrderRange], &[DistinctRange]];
const WRITES: [&[Statement]; 3] = [&[UpdateIndex], &[UpdateNonIndex], &[Delete, Insert]];

/// The statements of a test, in order. The statements of a group are on one table.
pub(super) fn statements(test: OltpTest) -> Vec<&'static [Statement]> {
    match test {
        OltpTest::PointSelect => vec![&[PointSelect]],
        OltpTest::ReadOnly => READS.to_vec(),
        OltpTest::ReadWrite => [READS.as_slice(), &WRITES].concat(),
        OltpTest::WriteOnly => WRITES.to_vec(),
        OltpTest::UpdateIndex => vec![&[UpdateIndex]],
        OltpTest::UpdateNonIndex => vec![&[UpdateNonIndex]],
        OltpTest::Insert => vec![&[NewRow]],
        OltpTest::Delete => vec![&[Delete]],
    }
}

/// True if the statements of a test run between BEGIN and COMMIT.
pub(super) fn is_transaction(test: OltpTest) -> bool {
    matches!(test, OltpTest::ReadOnly | OltpTest::ReadWrite | OltpTest::WriteOnly)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// sysbench counts BEGIN and COMMIT as queries too.
    #[test]
    fn a_transaction_has_as_many_statements_as_sysbench_sends() {
        for (test, expected) in OltpTest::ALL.into_iter().zip([1, 16, 20, 6, 1, 1, 1, 1]) {
            let own: usize = statements(test).iter().map(|group| group.len()).sum();
            assert_eq!(own + if is_transaction(test) { 2 } else { 0 }, expected, "{}", test.name());
        }
    }
}
