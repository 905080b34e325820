//! A forest: ratios with their intervals under one another, around the line of no difference.

use super::drawing::{Anchor, Drawing, Mark, Paint, width_of};
use super::figure::legend;
use plimsoll_analysis::quantity::change;

const ROW: f64 = 22.0;
const STRIP: f64 = 420.0;
const GAP: f64 = 14.0;

#[derive(Clone, Debug)]
pub(crate) struct Forest {
    pub(crate) title: String,
    /// The smallest difference that matters, as a share, where one was declared.
    pub(crate) margin: Option<f64>,
    /// The variants, the baseline first.
    pub(crate) variants: Vec<String>,
    pub(crate) rows: Vec<ForestRow>,
}

#[derive(Clone, Debug)]
pub(crate) struct ForestRow {
    pub(crate) label: String,
    pub(crate) variant: usize,
    /// Ratio, and the ends of its interval, if there are any.
    pub(crate) ratio: Option<f64>,
    pub(crate) interval: Option<(f64, f64)>,
    /// The ratio of each pair.
    pub(crate) pairs: Vec<f64>,
    /// The numbers, or why there are none.
    pub(crate) text: String,
}

/// How far a forest reaches on both sides of 1: a ratio.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reach(f64);

impl Reach {
    /// Where `ratio` lies between the ends: 0 to 1.
    pub(crate) fn share(self, ratio: f64) -> f64 {
        (0.5 + ratio.ln() / self.0.ln() / 2.0).clamp(0.0, 1.0)
    }

    /// Ratios to label.
    pub(crate) fn ticks(self) -> [f64; 5] {
        let half = 1.0 + (self.0 - 1.0) / 2.0;
        [1.0 / self.0, 1.0 / half, 1.0, half, self.0]
    }
}

impl Forest {
    /// The ratios between which a difference does not matter.
    pub(crate) fn within_margin(&self) -> Option<(f64, f64)> {
        self.margin.map(|margin| (1.0 / (1.0 + margin), 1.0 + margin))
    }

    /// A round reach that takes in every interval and the margin.
    pub(crate) fn reach(&self) -> Reach {
        let ends = self.rows.iter().flat_map(|row| {
            let (low, high) = row.interval.unwrap_or((1.0, 1.0));
            [low, high].into_iter().chain(row.ratio).chain(row.pairs.iter().copied())
        });
        let far =
            ends.map(|ratio| ratio.ln().abs()).fold((1.0 + self.margin.unwrap_or(0.0)).ln() * 1.4, f64::max).exp();
        let steps = [1.02, 1.05, 1.1, 1.2, 1.3, 1.5, 2.0, 3.0, 5.0, 10.0, 100.0, 1000.0];
        Reach(steps.into_iter().find(|step| far <= *step).unwrap_or(far))
    }

    pub(crate) fn draw(&self) -> Drawing {
        let reach = self.reach();
        let widest = self.rows.iter().map(|row| width_of(&row.label)).fold(80.0, f64::max);
        let longest = self.rows.iter().map(|row| width_of(&row.text)).fold(80.0, f64::max).min(330.0);
        let left = GAP + widest + GAP;
        let height = self.head() + self.rows.len() as f64 * ROW + 44.0;
        let mut drawing = Drawing::new(left + STRIP + GAP + longest + GAP, height);
        drawing.heading((GAP, 22.0), &self.title);
        if self.variants.len() > 2 {
            legend(&mut drawing, &self.variants, (GAP, 43.0));
        }
        self.frame(&mut drawing, reach, left);
        for (index, row) in self.rows.iter().enumerate() {
            let y = self.head() + (index as f64 + 0.5) * ROW;
            drawing.text((left - GAP, y + 4.0), &row.label, Anchor::End, Paint::Ink);
            drawing.text((left + STRIP + GAP, y + 4.0), &row.text, Anchor::Start, Paint::Ink);
            drawing.place(row.strip(reach, STRIP, ROW), (left, y - ROW / 2.0));
        }
        drawing
    }

    /// Two variants are named in the title, more of them in a legend below it.
    fn head(&self) -> f64 {
        if self.variants.len() > 2 { 60.0 } else { 38.0 }
    }

    fn frame(&self, drawing: &mut Drawing, reach: Reach, left: f64) {
        let head = self.head();
        let bottom = head + self.rows.len() as f64 * ROW + 4.0;
        let x = |ratio: f64| left + reach.share(ratio) * STRIP;
        if let Some((low, high)) = self.within_margin() {
            let points = vec![(x(low), head), (x(high), head), (x(high), bottom), (x(low), bottom)];
            drawing.marks.push(Mark::Area { points, paint: Paint::Grid, opacity: 0.6 });
        }
        drawing.line((x(1.0), head), (x(1.0), bottom), Paint::Muted, 1.0);
        drawing.line((left, bottom), (left + STRIP, bottom), Paint::Muted, 1.0);
        for ratio in reach.ticks() {
            drawing.line((x(ratio), bottom), (x(ratio), bottom + 4.0), Paint::Muted, 1.0);
            let label = if ratio == 1.0 { "same".to_owned() } else { change(ratio) };
            drawing.text((x(ratio), bottom + 17.0), label, Anchor::Middle, Paint::Muted);
        }
        let note =
            format!("less than {}  |  more{}", self.variants[0], self.margin.map_or("", |_| "; shaded: the margin"));
        drawing.text((left + STRIP / 2.0, bottom + 34.0), note, Anchor::Middle, Paint::Muted);
    }
}

impl ForestRow {
    /// Interval, pairs and ratio on a strip of this size, without text.
    pub(crate) fn strip(&self, reach: Reach, width: f64, height: f64) -> Drawing {
        let mut drawing = Drawing::new(width, height);
        let middle = height / 2.0 - 2.0;
        let x = |ratio: f64| reach.share(ratio) * width;
        let paint = Paint::Variant(self.variant);
        if let Some((low, high)) = self.interval {
            drawing.line((x(low), middle), (x(high), middle), paint, 2.0);
            for end in [low, high] {
                drawing.line((x(end), middle - 4.0), (x(end), middle + 4.0), paint, 2.0);
            }
        }
        for pair in &self.pairs {
            drawing.dot((x(*pair), middle + 6.5), 1.9, paint, 0.55);
        }
        if let Some(ratio) = self.ratio {
            drawing.dot((x(ratio), middle), 4.2, paint, 1.0);
        }
        drawing
    }
}
