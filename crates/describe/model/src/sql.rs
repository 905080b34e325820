//! SQL as a workload: transactions, and how users run them.

use crate::database::Endpoint;
use crate::record::ErrorKind;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// What the users of a trial do with a database, with every placeholder filled in. Each user is a
/// terminal with a connection of its own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sql {
    /// The name of the database in the study.
    pub database: String,
    /// Its address and user; none until it runs.
    pub endpoint: Option<Endpoint>,
    /// How connections are made to it.
    pub transport: Transport,
    /// The isolation level of transactions; the server's own when there is none.
    pub isolation: Option<Isolation>,
    /// Which transactions are retried.
    pub retry: Retry,
    /// What users do.
    pub work: SqlWork,
    /// How long the check of the data's consistency may take after a trial; zero for no check.
    pub check_within: Duration,
}

/// How a server of this machine is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Transport {
    /// By TCP over the loopback.
    Tcp,
    /// By its UNIX socket.
    Unix,
}

/// The isolation level of transactions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Isolation {
    /// READ COMMITTED.
    ReadCommitted,
    /// REPEATABLE READ.
    RepeatableRead,
    /// SERIALIZABLE.
    Serializable,
}

impl fmt::Display for Isolation {
    /// The name in SQL.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Isolation::ReadCommitted => "READ COMMITTED",
            Isolation::RepeatableRead => "REPEATABLE READ",
            Isolation::Serializable => "SERIALIZABLE",
        })
    }
}

/// Which failed transactions are retried, with the same input. The duration of a transaction is then from its first
/// attempt to the end of its last.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Retry {
    /// After errors of these kinds.
    pub on: Vec<ErrorKind>,
    /// Attempts in all; 1 means no retry.
    pub attempts: u32,
}

/// What users do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SqlWork {
    /// TPC-C's five transactions.
    Tpcc(Tpcc),
    /// One of sysbench's OLTP tests.
    Oltp(Oltp),
    /// Transactions of the study's own.
    Own(Vec<Transaction>),
}

/// The step of TPC-C whose commits are its throughput.
pub const NEW_ORDER: &str = "new_order";

/// The new order that TPC-C has rolled back, one in a hundred. It is a step of its own: it counts
/// neither as a new order nor as an error.
pub const NEW_ORDER_ROLLBACK: &str = "new_order_rollback";

/// The steps of TPC-C: its transactions in the order of the specification, and
/// [`NEW_ORDER_ROLLBACK`].
pub const TPCC_STEPS: [&str; 6] = [NEW_ORDER, "payment", "order_status", "delivery", "stock_level", NEW_ORDER_ROLLBACK];

/// TPC-C as users run it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tpcc {
    /// How many warehouses the data has.
    pub warehouses: u32,
    /// Keying and think times.
    pub waits: Waits,
    /// Weights of the five transactions, in the order of [`TPCC_STEPS`].
    pub mix: [f64; 5],
    /// Whether the lines of an order are sorted by warehouse and item, so that no two orders wait
    /// for one another in a circle.
    pub sorted_lines: bool,
    /// The seed of the data's random content, on which the constants of NURand depend.
    pub data_seed: u64,
}

/// The keying and think times of TPC-C.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Waits {
    /// Those of the specification.
    Spec,
    /// None: load is limited by the system alone.
    Zero,
    /// Those of the specification, times this.
    Scaled(f64),
}

impl Waits {
    /// The factor by which the times of the specification are multiplied.
    #[must_use]
    pub fn factor(self) -> f64 {
        match self {
            Waits::Spec => 1.0,
            Waits::Zero => 0.0,
            Waits::Scaled(factor) => factor,
        }
    }
}

/// An OLTP test of sysbench, as users run it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Oltp {
    /// Which.
    pub test: OltpTest,
    /// How many tables there are.
    pub tables: u32,
    /// Rows of each.
    pub rows: u64,
    /// How rows are chosen.
    pub distribution: Distribution,
}

/// The OLTP tests of sysbench.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OltpTest {
    /// One row by its key.
    PointSelect,
    /// A transaction of 14 reads.
    ReadOnly,
    /// The same and 4 writes.
    ReadWrite,
    /// A transaction of the 4 writes alone.
    WriteOnly,
    /// One row's indexed column.
    UpdateIndex,
    /// One row's column without index.
    UpdateNonIndex,
    /// Inserts a row.
    Insert,
    /// Deletes a row.
    Delete,
}

impl OltpTest {
    /// All of them.
    pub const ALL: [OltpTest; 8] = [
        OltpTest::PointSelect,
        OltpTest::ReadOnly,
        OltpTest::ReadWrite,
        OltpTest::WriteOnly,
        OltpTest::UpdateIndex,
        OltpTest::UpdateNonIndex,
        OltpTest::Insert,
        OltpTest::Delete,
    ];

    /// The name in studies and reports, which is also the name of the step.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            OltpTest::PointSelect => "point_select",
            OltpTest::ReadOnly => "read_only",
            OltpTest::ReadWrite => "read_write",
            OltpTest::WriteOnly => "write_only",
            OltpTest::UpdateIndex => "update_index",
            OltpTest::UpdateNonIndex => "update_non_index",
            OltpTest::Insert => "insert",
            OltpTest::Delete => "delete",
        }
    }
}

/// How numbers are drawn from a range.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Distribution {
    /// All numbers with the same probability.
    Uniform,
    /// As sysbench's default: three of four from one hundredth in the middle of the range.
    Special,
    /// Pareto's, with this share: with 0.2, a fifth of the rows gets four fifths of the draws.
    Pareto(f64),
    /// Zipf's, with this exponent.
    Zipf(f64),
}

/// A transaction of the study's own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Transaction {
    /// Name in the results.
    pub name: String,
    /// How often it is drawn, beside the other weights.
    pub weight: u32,
    /// Whether its statements are between BEGIN and COMMIT.
    pub atomic: bool,
    /// Its statements, never empty.
    pub statements: Vec<OwnStatement>,
}

/// A statement of the study's own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OwnStatement {
    /// The SQL, with `$1`, `$2`, … or `?` where parameters go.
    pub sql: String,
    /// What the parameters are, in order.
    pub parameters: Vec<Parameter>,
    /// How many rows it must give or change, if the study says so.
    pub rows: Option<u64>,
}

/// How a parameter of a statement gets its value, anew for each statement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Parameter {
    /// A whole number from a range, both ends included.
    Number {
        /// Smallest.
        low: i64,
        /// Largest.
        high: i64,
        /// How it is drawn.
        distribution: Distribution,
    },
    /// Letters and digits, so many.
    Text(u32),
    /// Always the same.
    Constant(String),
    /// The same value as the parameter of this number, from 1, counted over the statements of the transaction.
    Same(u32),
    /// A column of a CSV file, row by row, by all users together; from the start again at its end.
    Feed {
        /// The file.
        file: PathBuf,
        /// The column, as its first line names it.
        column: String,
    },
}
