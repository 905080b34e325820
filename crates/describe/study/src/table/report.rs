//! `[report]`: what the report is to show besides the answer.

use crate::document::table;
use crate::value::{Literal, Text};
use plimsoll_model::measure::Measure;
use plimsoll_model::study::ReportSpec;

table! {
    /// What the report shows besides the answer.
    struct ReportTable {
        /// Measures shown beside those that decide.
        measures: Option<Vec<Literal<Measure>>>,
        /// The factor on the horizontal axis of charts. Default: the last numeric condition.
        axis: Option<Literal<Text>>,
        /// The author's own words, as paragraphs.
        comments: Option<Literal<Text>>,
        /// What the author wants done.
        action_items: Option<Vec<Literal<Text>>>,
    }
}

impl ReportTable {
    pub(crate) fn spec(&self) -> ReportSpec {
        ReportSpec {
            measures: self.measures.iter().flatten().map(|measure| measure.value.clone()).collect(),
            axis: self.axis.as_ref().map(|axis| axis.value.0.clone()),
            comments: self.comments.as_ref().map(|comments| comments.value.0.clone()),
            action_items: self.action_items.iter().flatten().map(|item| item.value.0.clone()).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::testing::read_table;

    #[test]
    fn a_report_is_described() {
        let table: ReportTable = read_table("measures = ['cpu.avg']\naxis = 'users'\naction_items = ['ship it']");
        let spec = table.spec();
        assert_eq!(spec.measures, ["cpu.avg".parse().expect("a measure")]);
        assert_eq!((spec.axis.as_deref(), spec.comments, spec.action_items.len()), (Some("users"), None, 1));
        assert_eq!(read_table::<ReportTable>("").spec(), ReportSpec::default());
    }
}
