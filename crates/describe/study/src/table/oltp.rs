//! `oltp` of a SQL workload, and how rows are chosen.

use crate::document::{Faults, Span, all_of, did_you_mean, table};
use crate::value::{
    Problem, Scalar, Scope, Templated, WholeNumber, keyword, number_after, resolve_optional, written_or,
};
use plimsoll_model::factor::Level;
use plimsoll_model::sql::{Distribution, Oltp, OltpTest};
use serde_json::{Value, json};

table! {
    /// One of sysbench's OLTP tests.
    struct OltpTable {
        /// Which: "point_select", "read_only", "read_write", "write_only", "update_index", "update_non_index", "insert" or "delete".
        test: Templated<OltpTest>,
        /// How many tables there are. Default: 1.
        tables: Option<Templated<Tables>>,
        /// Rows of each. Default: 10000.
        rows: Option<Templated<Rows>>,
        /// How rows are chosen: "uniform", "special", "pareto N" or "zipf N". Default: "special", as sysbench.
        distribution: Option<Templated<Distribution>>,
    }
}

type Tables = WholeNumber<1, 10_000>;
type Rows = WholeNumber<1, 10_000_000_000>;

const ROWS: u64 = 10_000;

impl OltpTable {
    pub(crate) fn resolve(&self, scope: &Scope<'_>, faults: &mut Faults) -> Option<Oltp> {
        let test = self.test.resolve(scope, faults);
        let tables = resolve_optional(self.tables.as_ref(), |tables| tables.resolve(scope, faults));
        let rows = resolve_optional(self.rows.as_ref(), |rows| rows.resolve(scope, faults));
        let distribution =
            resolve_optional(self.distribution.as_ref(), |distribution| distribution.resolve(scope, faults));
        Some(Oltp {
            test: test?,
            tables: tables?.map_or(1, Tables::u32),
            rows: rows?.map_or(ROWS, Rows::u64),
            distribution: distribution?.unwrap_or(Distribution::Special),
        })
    }

    /// The names of the steps, and where each stands: a test that is a factor may be any.
    pub(crate) fn step_names(&self) -> Vec<(String, Span)> {
        let tests = self.test.fixed().map_or(OltpTest::ALL.to_vec(), |test| vec![*test]);
        tests.into_iter().map(|test| (test.name().to_owned(), self.test.span.clone())).collect()
    }

    /// As reports say it.
    pub(crate) fn in_words(&self) -> String {
        let rows = written_or(self.rows.as_ref(), "10000");
        let tables = match written_or(self.tables.as_ref(), "1") {
            "1" => format!("a table of {rows} rows"),
            tables => format!("{tables} tables of {rows} rows"),
        };
        let distribution = written_or(self.distribution.as_ref(), "special");
        format!("OLTP {}, {tables}, chosen {distribution}", self.test.as_written())
    }
}

impl Scalar for OltpTest {
    const EXPECTED: &'static str = "an OLTP test";

    fn from_level(level: &Level) -> Result<Self, Problem> {
        let names = OltpTest::ALL.map(OltpTest::name);
        let all = format!("the tests are {}", all_of(names));
        let help = did_you_mean(&level.to_string(), names).map_or(all.clone(), |near| format!("{near} {all}"));
        keyword(level, &OltpTest::ALL.map(|test| (test.name(), test))).map_err(|problem| problem.help(help))
    }

    fn schema() -> Value {
        json!({ "enum": OltpTest::ALL.map(OltpTest::name) })
    }
}

/// The steepest of Zipf's distributions: beyond it, the first row gets all but everything.
const STEEPEST: f64 = 10.0;

impl Scalar for Distribution {
    const EXPECTED: &'static str =
        "\"uniform\", \"special\", \"pareto N\" with a share below 1, or \"zipf N\" with an exponent";

    fn from_level(level: &Level) -> Result<Self, Problem> {
        distribution(&level.to_string()).ok_or_else(|| Problem::wrong::<Self>(level))
    }

    fn schema() -> Value {
        json!({ "type": "string", "pattern": "^(uniform|special|(pareto|zipf) [0-9.]+)$" })
    }
}

/// `uniform`, `zipf 0.8`.
pub(crate) fn distribution(text: &str) -> Option<Distribution> {
    match text {
        "uniform" => Some(Distribution::Uniform),
        "special" => Some(Distribution::Special),
        _ => {
            let pareto = || number_after("pareto", text).filter(|share| *share < 1.0).map(Distribution::Pareto);
            let zipf = || number_after("zipf", text).filter(|exponent| *exponent <= STEEPEST).map(Distribution::Zipf);
            pareto().or_else(zipf)
        }
    }
}
