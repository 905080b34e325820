//! A figure: panels that share a legend, on one sheet.

use super::panel::{HEIGHT, Panel, WIDTH};
use plimsoll_drawing::{Anchor, Drawing, Paint, width_of};

const COLUMNS: usize = 3;
const GAP: f64 = 14.0;
const HEAD: f64 = 56.0;

#[derive(Clone, Debug)]
pub(crate) struct Figure {
    /// Name of its files, without extension.
    pub(crate) name: String,
    pub(crate) title: String,
    /// The meaning of the marks.
    pub(crate) caption: String,
    pub(crate) variants: Vec<String>,
    pub(crate) panels: Vec<Panel>,
}

impl Figure {
    /// All panels on one sheet, under title and legend.
    pub(crate) fn draw(&self) -> Drawing {
        let columns = if self.panels.len() == 4 { 2 } else { self.panels.len().min(COLUMNS) };
        let rows = self.panels.len().div_ceil(columns.max(1));
        let legend = Legend::on_sheet(&self.variants, columns as f64 * (WIDTH + GAP) + GAP);
        let head = HEAD + legend.height_of_more_lines();
        let mut drawing = Drawing::new(legend.width, head + rows as f64 * (HEIGHT + GAP));
        drawing.heading((GAP, 22.0), &self.title);
        legend.draw(&mut drawing);
        for (index, panel) in self.panels.iter().enumerate() {
            let (column, row) = ((index % columns) as f64, (index / columns) as f64);
            drawing.place(panel.draw(), (GAP + column * (WIDTH + GAP), head + row * (HEIGHT + GAP)));
        }
        drawing
    }
}

/// The place of a legend on its sheet.
const LEGEND: (f64, f64) = (GAP, 43.0);

/// The distance from one line of a legend to the next.
const LINE: f64 = 16.0;

/// The distance from a dash to its name, and from a name to the next dash.
const TO_NAME: f64 = 27.0;
const TO_DASH: f64 = 22.0;

/// A dash and a name for each variant, from left to right, in as many lines as they need.
pub(super) struct Legend<'a> {
    variants: &'a [String],
    /// The width of the sheet.
    pub(super) width: f64,
    /// Where each dash begins.
    places: Vec<(f64, f64)>,
}

impl Legend<'_> {
    /// The legend of a sheet of this width, or of a wider one where a single name needs it.
    pub(super) fn on_sheet(variants: &[String], width: f64) -> Legend<'_> {
        let end = |x: f64, name: &String| x + TO_NAME + width_of(name);
        let width = variants.iter().map(|name| end(LEGEND.0, name)).fold(width, f64::max);
        let (mut x, mut y) = LEGEND;
        let mut places = Vec::new();
        for name in variants {
            if x > LEGEND.0 && end(x, name) > width {
                (x, y) = (LEGEND.0, y + LINE);
            }
            places.push((x, y));
            x += TO_NAME + width_of(name) + TO_DASH;
        }
        Legend { variants, width, places }
    }

    /// The height of its lines after the first, by which the sheet is higher.
    pub(super) fn height_of_more_lines(&self) -> f64 {
        self.places.last().map_or(0.0, |(_, y)| y - LEGEND.1)
    }

    pub(super) fn draw(&self, drawing: &mut Drawing) {
        for (index, (name, (x, y))) in self.variants.iter().zip(&self.places).enumerate() {
            let paint = Paint::Variant(index);
            drawing.line((*x, y - 4.0), (x + 20.0, y - 4.0), paint, 2.0);
            drawing.dot((x + 10.0, y - 4.0), 3.4, paint, 1.0);
            drawing.text((x + TO_NAME, *y), name, Anchor::Start, Paint::Ink);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chart::{Axis, Line, Point, Style};
    use plimsoll_drawing::Mark;
    use plimsoll_model::measure::Unit;

    /// The drawing of one panel, called `panel`, and the right ends and baselines of these names in its legend.
    fn drawn(variants: &[String]) -> (Drawing, Vec<(f64, f64)>) {
        let points = vec![Point { x: 0.5, centre: 1.0, values: vec![1.0] }];
        let lines = vec![Line { variant: 0, style: Style::Joined, points }];
        let axis = Axis::of_seconds(0.0, 1.0);
        let panel = Panel::new("panel".to_owned(), axis, Unit::Seconds, lines).expect("a value");
        let (name, title, caption) = (String::new(), String::new(), String::new());
        let figure = Figure { name, title, caption, variants: variants.to_vec(), panels: vec![panel] };
        let drawing = figure.draw();
        let ends = variants.iter().zip(texts(&drawing, |text| variants.contains(text)));
        let ends = ends.map(|(name, (x, y))| (x + width_of(name), y)).collect();
        (drawing, ends)
    }

    fn texts(drawing: &Drawing, is_meant: impl Fn(&String) -> bool) -> Vec<(f64, f64)> {
        let place = |mark: &Mark| match mark {
            Mark::Text { at, text, .. } if is_meant(text) => Some(*at),
            _ => None,
        };
        drawing.marks.iter().filter_map(place).collect()
    }

    #[test]
    fn a_legend_has_as_many_lines_as_the_sheet_asks_for() {
        let long = vec!["the processors of the machine".to_owned(); 5];
        let (drawing, ends) = drawn(&long);
        assert_eq!(ends.len(), 5);
        assert!(ends.iter().all(|(x, _)| *x <= drawing.width), "{ends:?} on {}", drawing.width);
        assert!(ends.windows(2).all(|pair| pair[0].1 < pair[1].1), "a line for each: {ends:?}");
        let heading = texts(&drawing, |text| text == "panel");
        assert!(heading[0].1 > ends[4].1 + LINE, "the panel begins below them: {heading:?}");
        assert_eq!(drawing.height, HEAD + 4.0 * LINE + HEIGHT + GAP);
    }

    #[test]
    fn a_legend_of_one_line_changes_no_sheet_and_a_single_long_name_widens_it() {
        let short = ["mutex", "inputQ", "racy"].map(str::to_owned);
        let (drawing, ends) = drawn(&short);
        assert_eq!((drawing.width, drawing.height), (WIDTH + 2.0 * GAP, HEAD + HEIGHT + GAP));
        assert!(ends.iter().all(|(_, y)| *y == LEGEND.1), "{ends:?}");
        let (drawing, ends) = drawn(&["m".repeat(100)]);
        assert!(ends[0].0 <= drawing.width && drawing.width > WIDTH + 2.0 * GAP, "{ends:?}");
    }
}
