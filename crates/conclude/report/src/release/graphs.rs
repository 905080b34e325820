//! The graphs of a case, as files and on the page.

use super::Case;
use crate::chart::{Figure, Style};
use crate::page::{ChartView, chart_view};
use crate::text::{self, Names};
use crate::{Document, figures};
use plimsoll_drawing::png;

/// A graph with the name of its files.
pub(super) struct Graph {
    name: String,
    figure: Figure,
}

/// The graphs of all cases, each with files of its own, beside tables of these names.
pub(super) fn with_names_of_their_own(mut graphs: Vec<Vec<Graph>>, tables: &[&str]) -> Vec<Vec<Graph>> {
    let mut names = Names::default();
    tables.iter().for_each(|table| drop(names.of_its_own(table)));
    for graph in graphs.iter_mut().flatten() {
        graph.name = names.of_its_own(&graph.name);
    }
    graphs
}

pub(super) fn of_case(case: &Case<'_>) -> Vec<Graph> {
    let figures = figures::of_release(&case.part.input, &case.part.analysis, case.condition);
    figures.into_iter().map(|figure| Graph::of(&case.title, figure)).collect()
}

impl Graph {
    /// A graph of a case.
    pub(super) fn of(case: &str, figure: Figure) -> Graph {
        Graph { name: text::slug(&format!("{case} {}", figure.name)), figure }
    }

    pub(super) fn view(&self) -> ChartView {
        ChartView { name: self.name.clone(), ..chart_view(&self.figure) }
    }

    /// The picture, and its points as CSV.
    pub(super) fn documents(&self) -> [Document; 2] {
        [
            Document { path: format!("graphs/{}.png", self.name), bytes: png(&self.figure.draw()) },
            Document { path: format!("data/{}.csv", self.name), bytes: self.points().into_bytes() },
        ]
    }

    /// The points in base units: where on the horizontal axis, of which version and which of its lines, the value, and the least
    /// and the largest of the values that it is the centre of. A curve that describes points has none of its own.
    fn points(&self) -> String {
        let mut table = csv::Writer::from_writer(Vec::new());
        table.write_record(["x", "version", "line", "value", "least", "largest"]).expect(INFALLIBLE);
        for line in self.figure.panels.iter().flat_map(|panel| &panel.lines) {
            let name = if line.style == Style::Dashed { "dashed" } else { "solid" };
            let version = &self.figure.variants[line.variant];
            for point in line.points.iter().filter(|point| !point.values.is_empty()) {
                let least = point.values.iter().copied().fold(point.centre, f64::min);
                let largest = point.values.iter().copied().fold(point.centre, f64::max);
                let [x, value, least, largest] =
                    [point.x, point.centre, least, largest].map(|number| number.to_string());
                table.write_record([&x, version.as_str(), name, &value, &least, &largest]).expect(INFALLIBLE);
            }
        }
        String::from_utf8(table.into_inner().expect(INFALLIBLE)).expect("text was written")
    }
}

const INFALLIBLE: &str = "a vector takes what is written";
