//! A forest plot: contrasts with their intervals below one another, around the line of no
//! difference.

use super::figure::Legend;
use plimsoll_analysis::effect::{additive_margin, no_change};
use plimsoll_analysis::quantity::{Notation, difference, grouped};
use plimsoll_drawing::{Anchor, Drawing, Mark, Paint, width_of};
use plimsoll_model::measure::{Effect, Unit};

const ROW: f64 = 22.0;
const STRIP: f64 = 420.0;
const GAP: f64 = 14.0;

#[derive(Clone, Debug)]
pub(crate) struct Forest {
    pub(crate) title: String,
    /// The kind of its numbers: ratios, or differences in this unit.
    pub(crate) effect: Effect,
    pub(crate) unit: Unit,
    /// The smallest difference that matters, where it is declared.
    pub(crate) margin: Option<f64>,
    /// The variants, the baseline first.
    pub(crate) variants: Vec<String>,
    pub(crate) rows: Vec<ForestRow>,
}

#[derive(Clone, Debug)]
pub(crate) struct ForestRow {
    pub(crate) label: String,
    pub(crate) variant: usize,
    /// Ratio or difference, and the ends of its interval, if there are any.
    pub(crate) value: Option<f64>,
    pub(crate) interval: Option<(f64, f64)>,
    /// The contrast of each pair.
    pub(crate) pairs: Vec<f64>,
    /// The ends of the noise floor under the same condition.
    pub(crate) floor: Option<(f64, f64)>,
    /// The numbers, or the reason why there are none.
    pub(crate) text: String,
}

/// Ratios for axis labels, from the smallest difference to the largest.
const ROUND: [f64; 23] = [
    0.99, 1.01, 0.98, 1.02, 0.95, 1.05, 0.9, 1.1, 0.8, 1.2, 0.7, 1.3, 0.5, 1.5, 0.2, 2.0, 0.1, 5.0, 10.0, 0.01, 100.0,
    0.001, 1000.0,
];

/// How far a label may extend beyond the end of its axis, in pixels.
const OVER_THE_END: f64 = 14.0;

/// The range of a forest plot on both sides of no difference, on the scale on which that is 0:
/// logarithms of ratios, or differences.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reach {
    effect: Effect,
    unit: Unit,
    notation: Notation,
    far: f64,
}

impl Reach {
    /// The position of a ratio or difference between the ends: 0 to 1.
    pub(crate) fn share(self, value: f64) -> f64 {
        (0.5 + additive(self.effect, value) / self.far / 2.0).clamp(0.0, 1.0)
    }

    /// Round values with labels, as many as fit on `length` pixels: no difference first, then from
    /// the ends inwards.
    pub(crate) fn ticks(self, length: f64) -> Vec<(f64, String)> {
        let fits = |one: &(f64, String), other: &(f64, String)| {
            let apart = (self.share(one.0) - self.share(other.0)).abs() * length;
            apart > f64::midpoint(width_of(&one.1), width_of(&other.1)) + 8.0
        };
        let mut kept = vec![(no_change(self.effect), "same".to_owned())];
        let has_room = |(value, label): &(f64, String)| {
            let from_end = self.share(*value).min(1.0 - self.share(*value)) * length;
            width_of(label) / 2.0 <= from_end + OVER_THE_END
        };
        for tick in self.round().into_iter().filter(|tick| self.holds(tick.0) && has_room(tick)) {
            if kept.iter().all(|one| fits(one, &tick)) {
                kept.push(tick);
            }
        }
        kept.sort_by(|one, other| one.0.total_cmp(&other.0));
        kept
    }

    fn holds(self, value: f64) -> bool {
        additive(self.effect, value).abs() <= self.far * 1.001
    }

    /// The values that can be labelled, the largest first.
    fn round(self) -> Vec<(f64, String)> {
        match self.effect {
            Effect::Ratio => ROUND.into_iter().rev().map(|ratio| (ratio, round_ratio(ratio, self.notation))).collect(),
            Effect::Difference => {
                let ends = round_below(self.far).flat_map(|size| [size, -size]);
                ends.map(|end| (end, difference(end, self.unit))).collect()
            }
        }
    }
}

/// A round ratio, as short as it can be written: `−99.9 %`, `×0.001`.
fn round_ratio(ratio: f64, notation: Notation) -> String {
    let short = |value: f64| format!("{value:.3}").trim_end_matches('0').trim_end_matches('.').to_owned();
    match notation {
        Notation::Multiples if ratio >= 1000.0 => format!("×{}", grouped(ratio)),
        Notation::Multiples => format!("×{}", short(ratio)),
        Notation::Changes => format!("{}{} %", if ratio < 1.0 { "−" } else { "+" }, short((ratio - 1.0).abs() * 100.0)),
    }
}

fn additive(effect: Effect, value: f64) -> f64 {
    match effect {
        Effect::Ratio => value.ln(),
        Effect::Difference => value,
    }
}

/// 1, 2 and 5 times powers of ten up to `most`, the largest first: four of them.
fn round_below(most: f64) -> impl Iterator<Item = f64> {
    let decade = most.max(1e-12).log10().floor() as i32;
    let steps = (decade - 2..=decade).rev().flat_map(|power| [5.0, 2.0, 1.0].map(|digit| digit * 10_f64.powi(power)));
    steps.filter(move |step| *step <= most * 1.001).take(4)
}

impl Forest {
    /// The ends of the range in which a difference does not matter.
    pub(crate) fn within_margin(&self) -> Option<(f64, f64)> {
        self.margin.map(|margin| match self.effect {
            Effect::Ratio => (1.0 / (1.0 + margin), 1.0 + margin),
            Effect::Difference => (-margin, margin),
        })
    }

    /// A round range that includes every interval, the noise floors and the margin.
    pub(crate) fn reach(&self) -> Reach {
        let ends = self.rows.iter().flat_map(|row| {
            let both = [row.interval, row.floor].into_iter().flatten().flat_map(|(low, high)| [low, high]);
            both.chain(row.value).chain(row.pairs.iter().copied())
        });
        let margin = additive_margin(self.effect, self.margin.unwrap_or(0.0));
        let far = ends.map(|value| additive(self.effect, value).abs()).fold(margin * 1.4, f64::max);
        let steps: &[f64] = match self.effect {
            Effect::Ratio => {
                &[1.02, 1.05, 1.1, 1.2, 1.3, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0]
            }
            Effect::Difference => &[],
        };
        let rounded = steps.iter().map(|step| step.ln()).find(|step| far <= *step);
        let far = rounded.unwrap_or(if far > 0.0 { far * 1.05 } else { 1.0 });
        let shown = self.rows.iter().flat_map(|row| row.value.into_iter().chain(row.interval.map(|ends| ends.1)));
        Reach { effect: self.effect, unit: self.unit, notation: Notation::of(shown), far }
    }

    pub(crate) fn draw(&self) -> Drawing {
        let reach = self.reach();
        let widest = self.rows.iter().map(|row| width_of(&row.label)).fold(80.0, f64::max);
        let longest = self.rows.iter().map(|row| width_of(&row.text)).fold(80.0, f64::max).min(330.0);
        let left = GAP + widest + GAP;
        // Two variants are named in the title, more of them in a legend below it.
        let named: &[String] = if self.variants.len() > 2 { &self.variants } else { &[] };
        let legend = Legend::on_sheet(named, left + STRIP + GAP + longest + GAP);
        let head = if named.is_empty() { 38.0 } else { 60.0 + legend.height_of_more_lines() };
        let mut drawing = Drawing::new(legend.width, head + self.rows.len() as f64 * ROW + 44.0);
        drawing.heading((GAP, 22.0), &self.title);
        legend.draw(&mut drawing);
        self.frame(&mut drawing, reach, (left, head));
        for (index, row) in self.rows.iter().enumerate() {
            let y = head + (index as f64 + 0.5) * ROW;
            drawing.text((left - GAP, y + 4.0), &row.label, Anchor::End, Paint::Ink);
            drawing.text((left + STRIP + GAP, y + 4.0), &row.text, Anchor::Start, Paint::Ink);
            drawing.place(row.strip(reach, STRIP, ROW), (left, y - ROW / 2.0));
        }
        drawing
    }

    /// The axis, and what lies behind the rows, from its top left corner on.
    fn frame(&self, drawing: &mut Drawing, reach: Reach, (left, head): (f64, f64)) {
        let bottom = head + self.rows.len() as f64 * ROW + 4.0;
        let x = |value: f64| left + reach.share(value) * STRIP;
        if let Some((low, high)) = self.within_margin() {
            let points = vec![(x(low), head), (x(high), head), (x(high), bottom), (x(low), bottom)];
            drawing.marks.push(Mark::Area { points, paint: Paint::Grid, opacity: 0.6 });
        }
        let same = x(no_change(self.effect));
        drawing.line((same, head), (same, bottom), Paint::Muted, 1.0);
        drawing.line((left, bottom), (left + STRIP, bottom), Paint::Muted, 1.0);
        for (value, label) in reach.ticks(STRIP) {
            drawing.line((x(value), bottom), (x(value), bottom + 4.0), Paint::Muted, 1.0);
            drawing.text((x(value), bottom + 17.0), label, Anchor::Middle, Paint::Muted);
        }
        let margin = self.margin.map_or("", |_| "; shaded: the margin");
        let floor = if self.rows.iter().any(|row| row.floor.is_some()) { "; grey bars: the noise floor" } else { "" };
        let note = format!("less than {}  |  more{margin}{floor}", self.variants[0]);
        drawing.text((left + STRIP / 2.0, bottom + 34.0), note, Anchor::Middle, Paint::Muted);
    }
}

impl ForestRow {
    /// Noise floor, interval, pairs and value on a strip of this size, without text.
    pub(crate) fn strip(&self, reach: Reach, width: f64, height: f64) -> Drawing {
        let mut drawing = Drawing::new(width, height);
        let middle = height / 2.0 - 2.0;
        let x = |value: f64| reach.share(value) * width;
        let paint = Paint::Variant(self.variant);
        if let Some((low, high)) = self.floor {
            let (top, bottom) = (middle - 4.0, middle + 4.0);
            let points = vec![(x(low), top), (x(high), top), (x(high), bottom), (x(low), bottom)];
            drawing.marks.push(Mark::Area { points, paint: Paint::Muted, opacity: 0.35 });
        }
        if let Some((low, high)) = self.interval {
            drawing.line((x(low), middle), (x(high), middle), paint, 2.0);
            for end in [low, high] {
                drawing.line((x(end), middle - 4.0), (x(end), middle + 4.0), paint, 2.0);
            }
        }
        for pair in &self.pairs {
            drawing.dot((x(*pair), middle + 6.5), 1.9, paint, 0.55);
        }
        if let Some(value) = self.value {
            drawing.dot((x(value), middle), 4.2, paint, 1.0);
        }
        drawing
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ratios(far: f64) -> Reach {
        Reach { effect: Effect::Ratio, unit: Unit::Seconds, notation: Notation::of([far]), far: far.ln() }
    }

    #[test]
    fn differences_have_labels_in_their_unit() {
        let reach = Reach { effect: Effect::Difference, unit: Unit::Share, notation: Notation::Changes, far: 0.0023 };
        let labels: Vec<String> = reach.ticks(STRIP).into_iter().map(|tick| tick.1).collect();
        assert_eq!(labels, ["−0.2 points", "−0.1 points", "same", "+0.1 points", "+0.2 points"]);
        assert!((reach.share(0.0) - 0.5).abs() < 1e-12 && reach.share(0.0023) > 0.999);
    }

    #[test]
    fn a_legend_of_many_names_stays_on_the_sheet_and_above_the_rows() {
        let variants: Vec<String> = (0..12).map(|number| format!("version {number} of the server")).collect();
        let row = ForestRow {
            label: "the row".to_owned(),
            variant: 1,
            value: Some(1.1),
            interval: None,
            pairs: Vec::new(),
            floor: None,
            text: String::new(),
        };
        let forest = Forest {
            title: String::new(),
            effect: Effect::Ratio,
            unit: Unit::Seconds,
            margin: None,
            variants: variants.clone(),
            rows: vec![row],
        };
        let drawing = forest.draw();
        let texts = drawing.marks.iter().filter_map(|mark| match mark {
            Mark::Text { at, text, .. } => Some((text, *at)),
            _ => None,
        });
        let (names, others): (Vec<_>, Vec<_>) = texts.partition(|(text, _)| variants.contains(text));
        assert_eq!(names.len(), 12);
        assert!(names.iter().all(|(name, (x, _))| x + width_of(name) <= drawing.width), "{names:?}");
        let row = others.iter().find(|(text, _)| *text == "the row").expect("a row");
        assert!(names.iter().all(|(_, (_, y))| *y < row.1.1 && *y < drawing.height), "{names:?}, {row:?}");
    }

    #[test]
    fn labels_are_round_and_never_overlap() {
        for far in [1.01_f64, 1.02, 1.05, 1.1, 1.2, 1.3, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0, 50.0, 100.0, 500.0, 1000.0] {
            for length in [220.0, STRIP] {
                let reach = ratios(far);
                let ticks = reach.ticks(length);
                assert!(ticks.iter().any(|tick| tick.1 == "same"));
                let both_sides = ticks.iter().any(|tick| tick.0 < 1.0) && ticks.iter().any(|tick| tick.0 > 1.0);
                assert!(both_sides || far < 1.011, "×{far}, {length} px: {ticks:?}");
                for pair in ticks.windows(2) {
                    let apart = (reach.share(pair[1].0) - reach.share(pair[0].0)) * length;
                    let widths = f64::midpoint(width_of(&pair[0].1), width_of(&pair[1].1));
                    assert!(apart > widths, "×{far}, {length} px: {pair:?}");
                }
            }
        }
        let labels = |far| ratios(far).ticks(STRIP).into_iter().map(|tick| tick.1).collect::<Vec<_>>();
        assert_eq!(
            labels(1.1),
            ["−5 %", "−2 %", "same", "+2 %", "+5 %"],
            "what would reach beyond the end has no label"
        );
        assert_eq!(labels(1000.0), ["×0.01", "×0.1", "same", "×10", "×100"]);
    }
}
