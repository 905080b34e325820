//! `[workload.feeds.NAME]`: files whose rows the users of a flow take.

use crate::document::{Fault, Faults, table};
use crate::value::{Problem, Scalar, Scope, Templated, Text, ValueNames, keyword, resolve_optional, written_or};
use plimsoll_model::factor::Level;
use plimsoll_model::flow::{Feed, FeedEnd, FeedOrder};
use serde_json::{Value, json};

table! {
    /// A file of rows, whose columns are the values {$NAME.COLUMN}.
    struct FeedTable {
        /// The file, relative to the study's folder: CSV with names in its first line, or .json with an array of objects.
        file: Templated<Text>,
        /// Who takes which row: "per user", "in order", "random" or "unique". Default: "per user".
        order: Option<Templated<FeedOrder>>,
        /// What happens when all rows were taken: "start over" or "stop". Default: "start over"; required with "unique", where it is "stop".
        at_end: Option<Templated<FeedEnd>>,
    }
}

impl FeedTable {
    /// The feed called `name`; its columns are those of its values that the flow uses.
    pub(crate) fn resolve(
        &self,
        name: &str,
        scope: &Scope<'_>,
        values: &ValueNames,
        faults: &mut Faults,
    ) -> Option<Feed> {
        let file = self.file.resolve(scope, faults);
        let order = resolve_optional(self.order.as_ref(), |order| order.resolve(scope, faults));
        let at_end = resolve_optional(self.at_end.as_ref(), |at_end| at_end.resolve(scope, faults));
        let order = order?.unwrap_or(FeedOrder::PerUser);
        let at_end = self.end_of(order, at_end?, faults)?;
        let column = |value: &String| {
            let column = value.strip_prefix(name)?.strip_prefix('.')?;
            Some((values.id(value)?, column.to_owned()))
        };
        let columns = values.0.iter().filter_map(column).collect();
        Some(Feed { name: name.to_owned(), file: scope.dir.join(file?.0), order, at_end, columns })
    }

    /// What happens at the end: rows that are taken once cannot be taken again, and whoever runs the
    /// study must know that it may end there.
    fn end_of(&self, order: FeedOrder, asked: Option<FeedEnd>, faults: &mut Faults) -> Option<FeedEnd> {
        let place = self.at_end.as_ref().map_or(&self.place, |at_end| &at_end.span);
        let fault = match (order, asked) {
            (FeedOrder::Unique, None) => {
                Fault::error(place, "the feed does not say what happens when its rows are used up")
                    .help("add `at_end = \"stop\"`: a user that finds no row stops, and the trial may end early")
            }
            (FeedOrder::Unique, Some(FeedEnd::StartOver)) => {
                Fault::error(place, "a feed whose rows are taken once cannot start over")
                    .help("write `at_end = \"stop\"`, or `order = \"in order\"`")
            }
            (FeedOrder::Random, Some(FeedEnd::Stop)) => {
                Fault::error(place, "a feed of random rows has no end").help("leave `at_end` out")
            }
            (_, asked) => return Some(asked.unwrap_or(FeedEnd::StartOver)),
        };
        faults.add(fault);
        None
    }

    /// As reports say it.
    pub(crate) fn in_words(&self, name: &str) -> String {
        format!("{name} of {} ({})", self.file.as_written(), written_or(self.order.as_ref(), "per user"))
    }
}

impl Scalar for FeedOrder {
    const EXPECTED: &'static str = "\"per user\", \"in order\", \"random\" or \"unique\"";

    fn from_level(level: &Level) -> Result<Self, Problem> {
        let words = [
            ("per user", FeedOrder::PerUser),
            ("in order", FeedOrder::InOrder),
            ("random", FeedOrder::Random),
            ("unique", FeedOrder::Unique),
        ];
        keyword(level, &words)
    }

    fn schema() -> Value {
        json!({ "enum": ["per user", "in order", "random", "unique"] })
    }
}

impl Scalar for FeedEnd {
    const EXPECTED: &'static str = "\"start over\" or \"stop\"";

    fn from_level(level: &Level) -> Result<Self, Problem> {
        keyword(level, &[("start over", FeedEnd::StartOver), ("stop", FeedEnd::Stop)])
    }

    fn schema() -> Value {
        json!({ "enum": ["start over", "stop"] })
    }
}
