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
        let width = columns as f64 * (WIDTH + GAP) + GAP;
        let height = HEAD + rows as f64 * (HEIGHT + GAP);
        let mut drawing = Drawing::new(width, height);
        drawing.heading((GAP, 22.0), &self.title);
        legend(&mut drawing, &self.variants, (GAP, 43.0));
        for (index, panel) in self.panels.iter().enumerate() {
            let (column, row) = ((index % columns) as f64, (index / columns) as f64);
            drawing.place(panel.draw(), (GAP + column * (WIDTH + GAP), HEAD + row * (HEIGHT + GAP)));
        }
        drawing
    }
}

/// A dash and a name for each variant, from left to right.
pub(super) fn legend(drawing: &mut Drawing, variants: &[String], at: (f64, f64)) {
    let mut x = at.0;
    for (index, name) in variants.iter().enumerate() {
        let paint = Paint::Variant(index);
        drawing.line((x, at.1 - 4.0), (x + 20.0, at.1 - 4.0), paint, 2.0);
        drawing.dot((x + 10.0, at.1 - 4.0), 3.4, paint, 1.0);
        drawing.text((x + 27.0, at.1), name, Anchor::Start, Paint::Ink);
        x += 27.0 + width_of(name) + 22.0;
    }
}
