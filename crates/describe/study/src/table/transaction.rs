//! `transactions` of a SQL workload: the study's own SQL, and what its parameters are.

use crate::document::{Fault, Faults, table};
use crate::table::oltp::distribution;
use crate::value::{Problem, Scalar, Scope, Templated, Text, Weight, WholeNumber, resolve_all, resolve_optional};
use plimsoll_model::factor::Level;
use plimsoll_model::sql::{OwnStatement, Parameter, Transaction};
use serde_json::{Value, json};

table! {
    /// A transaction of the study's own.
    struct TransactionTable {
        /// Name in the results.
        name: Templated<Text>,
        /// How often it is drawn, beside the other weights. Default: 1.
        weight: Option<Templated<Weight>>,
        /// Whether its statements are between BEGIN and COMMIT. Default: true.
        atomic: Option<Templated<bool>>,
        /// Its statements, one after the other.
        statements: Vec<StatementTable>,
    }
}

table! {
    /// A statement.
    struct StatementTable {
        /// The SQL, with ? where parameters go; for PostgreSQL also $1, $2, …, and ?? for its operator ?.
        sql: Templated<Text>,
        /// What the parameters are, in order, each time anew: "1 to 100", "zipf 0.9 1 to 10000", "text 16", "constant x", "same 2" or "feed users.csv:name".
        parameters: Option<Vec<Templated<Parameter>>>,
        /// How many rows it must give or change. Default: any number.
        rows: Option<Templated<RowCount>>,
    }
}

type RowCount = WholeNumber<0, { i64::MAX }>;

impl TransactionTable {
    pub(crate) fn resolve(&self, scope: &Scope<'_>, faults: &mut Faults) -> Option<Transaction> {
        let weight = resolve_optional(self.weight.as_ref(), |weight| weight.resolve(scope, faults));
        let atomic = resolve_optional(self.atomic.as_ref(), |atomic| atomic.resolve(scope, faults));
        let statements = resolve_all(&self.statements, |statement| statement.resolve(scope, faults));
        let statements = statements?;
        self.check_same(&statements, faults)?;
        Some(Transaction {
            name: self.name.as_written().to_owned(),
            weight: weight?.map_or(1, Weight::u32),
            atomic: atomic?.unwrap_or(true),
            statements,
        })
    }

    /// A parameter can be the same as one before it, and not as one that is not known yet.
    fn check_same(&self, statements: &[OwnStatement], faults: &mut Faults) -> Option<()> {
        let values = statements.iter().flat_map(|statement| &statement.parameters);
        let templated = self.statements.iter().flat_map(|statement| statement.parameters.iter().flatten());
        for ((value, templated), number) in values.zip(templated).zip(1..) {
            let Parameter::Same(other) = value else { continue };
            if *other < number {
                continue;
            }
            let message = format!("parameter {number} of this transaction cannot be the same as parameter {other}");
            let help = "parameters are counted from 1 over all statements of the transaction: name an earlier one";
            faults.add(Fault::error(&templated.span, message).help(help));
            return None;
        }
        Some(())
    }

    /// As reports say it.
    pub(crate) fn in_words(&self) -> String {
        let weight = self.weight.as_ref().map_or("1", |weight| weight.as_written());
        format!("{} (weight {weight})", self.name.as_written())
    }
}

impl StatementTable {
    fn resolve(&self, scope: &Scope<'_>, faults: &mut Faults) -> Option<OwnStatement> {
        let sql = self.sql.resolve(scope, faults);
        let parameters = resolve_all(self.parameters.as_deref().unwrap_or_default(), |parameter| {
            Some(match parameter.resolve(scope, faults)? {
                Parameter::Feed { file, column } => Parameter::Feed { file: scope.dir.join(file), column },
                other => other,
            })
        });
        let rows = resolve_optional(self.rows.as_ref(), |rows| rows.resolve(scope, faults));
        Some(OwnStatement { sql: sql?.0, parameters: parameters?, rows: rows?.map(RowCount::u64) })
    }
}

/// The longest text that is made up.
const LONGEST_TEXT: u32 = 1_000_000;

impl Scalar for Parameter {
    const EXPECTED: &'static str = "a parameter";

    fn from_level(level: &Level) -> Result<Self, Problem> {
        let Level::Text(text) = level else { return Ok(Parameter::Constant(level.to_string())) };
        let forms = "write \"1 to 100\", \"zipf 0.9 1 to 100\" (or uniform, special, pareto 0.2), \"text 16\", \"constant x\", \
                     \"same 1\" or \"feed FILE.csv:COLUMN\"";
        parameter(text).ok_or_else(|| Problem::wrong::<Self>(level).help(forms))
    }

    fn schema() -> Value {
        json!({ "anyOf": [
            { "type": ["number", "boolean"] },
            { "type": "string", "pattern": "^(((uniform|special|(pareto|zipf) [0-9.]+) )?-?[0-9]+ to -?[0-9]+|text [0-9]+|constant .*|same [0-9]+|feed .+:.+)$" },
        ] })
    }
}

fn parameter(text: &str) -> Option<Parameter> {
    if let Some(number) = number_between(text) {
        return Some(number);
    }
    let (form, rest) = text.split_once(' ')?;
    match form {
        "text" => rest.parse().ok().filter(|length| (1..=LONGEST_TEXT).contains(length)).map(Parameter::Text),
        "constant" => Some(Parameter::Constant(rest.to_owned())),
        "same" => rest.parse().ok().filter(|number| *number > 0).map(Parameter::Same),
        "feed" => {
            let (file, column) = rest.rsplit_once(':')?;
            let given = !file.is_empty() && !column.is_empty();
            given.then(|| Parameter::Feed { file: file.into(), column: column.to_owned() })
        }
        _ => None,
    }
}

/// `1 to 100`, `zipf 0.9 1 to 100`.
fn number_between(text: &str) -> Option<Parameter> {
    let (start, high) = text.split_once(" to ")?;
    let (drawn, low) = start.rsplit_once(' ').unwrap_or(("uniform", start));
    let (low, high) = (whole(low)?, whole(high)?);
    let distribution = distribution(drawn)?;
    (low <= high).then_some(Parameter::Number { low, high, distribution })
}

fn whole(text: &str) -> Option<i64> {
    text.trim().replace('_', "").parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_model::sql::Distribution;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_range_reads_back(low in any::<i64>(), high in any::<i64>()) {
            let read = parameter(&format!("{low} to {high}"));
            let expected = Parameter::Number { low, high, distribution: Distribution::Uniform };
            prop_assert_eq!(read, (low <= high).then_some(expected));
        }

        #[test]
        fn no_text_makes_it_panic(text in "(zipf|feed|same|text)?[0-9 :to.é-]{0,12}") {
            let _ = parameter(&text);
        }
    }
}
