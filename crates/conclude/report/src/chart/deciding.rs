//! The chart at the top of a report: the changes that decide, on a scale of their own.
//!
//! Its scale follows the intervals and the margins alone. What is wider than that, a noise floor or a single pair, is
//! cut off at the edge, so that a difference of a few percent is always seen.

use plimsoll_analysis::effect::no_change;
use plimsoll_analysis::quantity::{difference, significant};
use plimsoll_drawing::{Anchor, Drawing, Label, Mark, Paint, SMALL, width_of};
use plimsoll_model::measure::{Direction, Effect, Unit};

/// The changes that decide, by measure.
#[derive(Clone, Debug)]
pub(crate) struct Deciding {
    pub(crate) title: String,
    /// The kind of its numbers: ratios, or differences in this unit.
    pub(crate) effect: Effect,
    pub(crate) unit: Unit,
    pub(crate) groups: Vec<Group>,
}

/// The changes in one measure.
#[derive(Clone, Debug)]
pub(crate) struct Group {
    pub(crate) title: String,
    pub(crate) direction: Direction,
    /// The ends of the range in which a difference does not matter.
    pub(crate) margin: (f64, f64),
    pub(crate) rows: Vec<Row>,
}

/// A change under one condition.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) label: String,
    pub(crate) value: Option<f64>,
    pub(crate) interval: Option<(f64, f64)>,
    pub(crate) pairs: Vec<f64>,
    pub(crate) floor: Option<(f64, f64)>,
    /// The change in words, or why there is none.
    pub(crate) change: String,
    /// The verdict in a word, and its colour.
    pub(crate) verdict: String,
    pub(crate) paint: Paint,
}

const WIDTH: f64 = 1080.0;
const ROW: f64 = 30.0;
const HEAD: f64 = 30.0;
const BELOW_GROUP: f64 = 8.0;
const AXIS: f64 = 30.0;
const EDGE: f64 = 8.0;
const GAP: f64 = 16.0;
const TEXT: u32 = 14;

/// How much wider than intervals and margins a noise floor may make the scale.
const ROOM_FOR_FLOORS: f64 = 1.6;

/// Ratios beyond this one are labelled as multiples.
const MULTIPLES_FROM: f64 = 4.0;

/// The ends of the chart, on the scale on which no change is 0.
#[derive(Clone, Copy, Debug)]
struct Scale {
    effect: Effect,
    unit: Unit,
    low: f64,
    high: f64,
}

impl Scale {
    /// The position of a ratio or difference between the ends, which may lie outside 0 to 1.
    fn share(self, value: f64) -> f64 {
        (additive(self.effect, value) - self.low) / (self.high - self.low)
    }

    fn holds(self, value: f64) -> bool {
        (0.0..=1.0).contains(&self.share(value))
    }

    /// Round values with their labels, as many as fit on `length` pixels.
    fn ticks(self, length: f64) -> Vec<(f64, String)> {
        let fits = |ticks: &[(f64, String)]| {
            ticks.windows(2).all(|pair| {
                let apart = (self.share(pair[1].0) - self.share(pair[0].0)) * length;
                apart > f64::midpoint(wide(&pair[0].1), wide(&pair[1].1)) + 18.0
            })
        };
        self.steps()
            .into_iter()
            .find(|ticks| fits(ticks))
            .unwrap_or_else(|| vec![(no_change(self.effect), "same".into())])
    }

    /// Ticks at finer steps first.
    fn steps(self) -> Vec<Vec<(f64, String)>> {
        let multiples = self.high.max(-self.low) > MULTIPLES_FROM.ln();
        match self.effect {
            Effect::Ratio if multiples => {
                let steps =
                    [(&[1.0, 2.0, 5.0][..], 1), (&[1.0, 3.0], 1), (&[1.0], 1), (&[1.0], 2), (&[1.0], 3), (&[1.0], 6)];
                steps.into_iter().map(|(digits, decades)| self.multiples(digits, decades)).collect()
            }
            Effect::Ratio => {
                let steps = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.25, 0.5, 1.0, 2.0];
                steps.into_iter().map(|step| self.changes(step)).collect()
            }
            Effect::Difference => {
                let power = (self.high - self.low).log10().floor() as i32;
                let steps =
                    (power - 2..=power).flat_map(|power| [1.0, 2.0, 5.0].map(|digit| digit * 10_f64.powi(power)));
                steps.map(|step| self.differences(step)).collect()
            }
        }
    }

    fn changes(self, step: f64) -> Vec<(f64, String)> {
        let first = ((self.low.exp() - 1.0) / step).ceil() as i64;
        let last = ((self.high.exp() - 1.0) / step).floor() as i64;
        let tick = |index: i64| {
            let change = index as f64 * step;
            let digits = format!("{:.1}", change.abs() * 100.0);
            let digits = digits.trim_end_matches('0').trim_end_matches('.');
            let label = match index {
                0 => "same".to_owned(),
                index if index < 0 => format!("−{digits} %"),
                _ => format!("+{digits} %"),
            };
            (1.0 + change, label)
        };
        (first..=last).take(200).map(tick).filter(|(ratio, _)| *ratio > 0.0 && self.holds(*ratio)).collect()
    }

    fn multiples(self, digits: &[f64], decades: usize) -> Vec<(f64, String)> {
        let outwards = |end: f64| (end / 10_f64.ln() / decades as f64).abs().ceil() as i32 * decades as i32;
        let powers = (-outwards(self.low)..=outwards(self.high)).step_by(decades);
        let ratios = powers.flat_map(|power| digits.iter().map(move |digit| digit * 10_f64.powi(power)));
        let label = |ratio: f64| {
            let decimals = if ratio >= 1.0 { 0 } else { (-ratio.log10()).ceil() as usize };
            let digits = if ratio >= 1000.0 { significant(ratio) } else { format!("{ratio:.decimals$}") };
            if (ratio - 1.0).abs() < 1e-9 { "same".to_owned() } else { format!("×{digits}") }
        };
        ratios.filter(|ratio| self.holds(*ratio)).map(|ratio| (ratio, label(ratio))).collect()
    }

    fn differences(self, step: f64) -> Vec<(f64, String)> {
        let (first, last) = ((self.low / step).ceil() as i64, (self.high / step).floor() as i64);
        let label = |index: i64| match index {
            0 => "same".to_owned(),
            index => difference(index as f64 * step, self.unit),
        };
        (first..=last).take(200).map(|index| (index as f64 * step, label(index))).collect()
    }
}

fn additive(effect: Effect, value: f64) -> f64 {
    match effect {
        Effect::Ratio => value.ln(),
        Effect::Difference => value,
    }
}

/// The width of a label of the chart.
fn wide(text: &str) -> f64 {
    width_of(text) * f64::from(TEXT) / f64::from(SMALL)
}

impl Deciding {
    fn rows(&self) -> impl Iterator<Item = &Row> {
        self.groups.iter().flat_map(|group| &group.rows)
    }

    /// From the smallest to the largest of intervals and margins, with some room.
    fn scale(&self) -> Scale {
        let of = |value: f64| additive(self.effect, value);
        // Where there is no interval, the pairs are all that is known.
        let ends = self.rows().flat_map(|row| {
            let interval = row.interval.map(|(low, high)| [low, high]).into_iter().flatten();
            let pairs = row.pairs.iter().copied().filter(|_| row.interval.is_none());
            interval.chain(row.value).chain(pairs)
        });
        let margins = self.groups.iter().flat_map(|group| [group.margin.0, group.margin.1]);
        let all = ends.chain(margins).map(of).filter(|end| end.is_finite());
        let (low, high) = all.fold((0.0_f64, 0.0_f64), |(low, high), end| (low.min(end), high.max(end)));
        let floors = self.rows().filter_map(|row| row.floor).map(|(low, high)| (of(low), of(high)));
        let (low_with, high_with) =
            floors.fold((low, high), |(least, most), (low, high)| (least.min(low), most.max(high)));
        let small_enough = high_with - low_with <= ROOM_FOR_FLOORS * (high - low);
        let (low, high) = if small_enough { (low_with, high_with) } else { (low, high) };
        let (low, high) = if high > low { (low, high) } else { (-1.0, 1.0) };
        let room = (high - low) * 0.06;
        Scale { effect: self.effect, unit: self.unit, low: low - room, high: high + room }
    }

    /// True if a noise floor goes on beyond the edge of the chart.
    pub(crate) fn cuts_floors(&self) -> bool {
        let scale = self.scale();
        self.rows().filter_map(|row| row.floor).any(|(low, high)| !scale.holds(low) || !scale.holds(high))
    }

    /// How many pairs lie beyond the edge of the chart, and so are not drawn.
    pub(crate) fn pairs_beyond(&self) -> usize {
        let scale = self.scale();
        self.rows().flat_map(|row| &row.pairs).filter(|pair| !scale.holds(**pair)).count()
    }

    pub(crate) fn has_floors(&self) -> bool {
        self.rows().any(|row| row.floor.is_some())
    }

    pub(crate) fn draw(&self) -> Drawing {
        let scale = self.scale();
        let label = self.rows().map(|row| wide(&row.label)).fold(60.0, f64::max).min(300.0);
        let change = self.rows().map(|row| wide(&row.change)).fold(60.0, f64::max);
        let verdict = self.rows().map(|row| wide(&row.verdict)).fold(60.0, f64::max);
        let left = EDGE + label + GAP;
        let right = WIDTH - EDGE - verdict - GAP - change - GAP;
        let strip = Strip { scale, left, length: right - left };
        let height: f64 = self.groups.iter().map(|group| HEAD + group.rows.len() as f64 * ROW + BELOW_GROUP).sum();
        let mut drawing = Drawing::new(WIDTH, height + AXIS);
        let ticks = scale.ticks(strip.length);
        let mut y = 0.0;
        for group in &self.groups {
            let bottom = y + HEAD + group.rows.len() as f64 * ROW;
            strip.frame(&mut drawing, group, &ticks, (y + HEAD, bottom));
            strip.heading(&mut drawing, group, y + 20.0);
            for (index, row) in group.rows.iter().enumerate() {
                let middle = y + HEAD + (index as f64 + 0.5) * ROW;
                let at = |x: f64| (x, middle + 5.0);
                let plain = Label { size: TEXT, anchor: Anchor::End, paint: Paint::Ink, bold: false };
                drawing.label(at(left - GAP), shortened(&row.label, label), plain);
                drawing.label(at(right + GAP + change), &row.change, Label { bold: true, ..plain });
                let of_verdict = Label { anchor: Anchor::Start, paint: row.paint, bold: true, ..plain };
                drawing.label(at(right + GAP + change + GAP), &row.verdict, of_verdict);
                strip.row(&mut drawing, row, middle);
            }
            y = bottom + BELOW_GROUP;
        }
        drawing.line((left, y), (right, y), Paint::Muted, 1.0);
        for (value, text) in ticks {
            let x = strip.x(value);
            drawing.line((x, y), (x, y + 5.0), Paint::Muted, 1.0);
            let style = Label { size: TEXT - 1, anchor: Anchor::Middle, paint: Paint::Muted, bold: false };
            drawing.label((x, y + 20.0), text, style);
        }
        drawing
    }
}

/// A label that is no wider than `most`.
fn shortened(label: &str, most: f64) -> String {
    if wide(label) <= most + 0.5 {
        return label.to_owned();
    }
    let letters = (most / wide("m")) as usize;
    format!("{}…", label.chars().take(letters.saturating_sub(1)).collect::<String>())
}

/// The part of the chart that has the scale.
#[derive(Clone, Copy)]
struct Strip {
    scale: Scale,
    left: f64,
    length: f64,
}

impl Strip {
    /// The position of a value, at the edge for what lies beyond it.
    fn x(self, value: f64) -> f64 {
        self.left + self.scale.share(value).clamp(0.0, 1.0) * self.length
    }

    fn frame(self, drawing: &mut Drawing, group: &Group, ticks: &[(f64, String)], (top, bottom): (f64, f64)) {
        for (value, _) in ticks {
            drawing.line((self.x(*value), top), (self.x(*value), bottom), Paint::Grid, 1.0);
        }
        let (low, high) = (self.x(group.margin.0), self.x(group.margin.1));
        let points = vec![(low, top), (high, top), (high, bottom), (low, bottom)];
        drawing.marks.push(Mark::Area { points, paint: Paint::Equal, opacity: 0.13 });
        let same = self.x(no_change(self.scale.effect));
        drawing.line((same, top), (same, bottom), Paint::Muted, 1.5);
    }

    /// The measure, and which side is better.
    fn heading(self, drawing: &mut Drawing, group: &Group, y: f64) {
        let style = Label { size: TEXT, anchor: Anchor::Start, paint: Paint::Ink, bold: true };
        drawing.label((EDGE, y), &group.title, style);
        let same = self.x(no_change(self.scale.effect));
        let sides = match group.direction {
            Direction::Lower => [("← better", Paint::Better), ("worse →", Paint::Worse)],
            Direction::Higher => [("← worse", Paint::Worse), ("better →", Paint::Better)],
        };
        let [(before, before_paint), (after, after_paint)] = sides;
        let style = Label { size: TEXT - 1, bold: false, ..style };
        let clear_of_title = EDGE + wide(&group.title) * 1.08 + GAP;
        if same - 10.0 - wide(before) > clear_of_title {
            drawing.label((same - 10.0, y), before, Label { anchor: Anchor::End, paint: before_paint, ..style });
        }
        if same + 10.0 > clear_of_title {
            drawing.label((same + 10.0, y), after, Label { paint: after_paint, ..style });
        }
    }

    fn row(self, drawing: &mut Drawing, row: &Row, middle: f64) {
        if let Some((low, high)) = row.floor {
            let (top, bottom) = (middle - 6.0, middle + 6.0);
            let (low, high) = (self.x(low), self.x(high));
            let points = vec![(low, top), (high, top), (high, bottom), (low, bottom)];
            drawing.marks.push(Mark::Area { points, paint: Paint::Muted, opacity: 0.28 });
        }
        for pair in row.pairs.iter().filter(|pair| self.scale.holds(**pair)) {
            drawing.dot((self.x(*pair), middle + 10.0), 2.0, row.paint, 0.5);
        }
        if let Some((low, high)) = row.interval {
            drawing.line((self.x(low), middle), (self.x(high), middle), row.paint, 3.0);
            for end in [low, high].into_iter().filter(|end| self.scale.holds(*end)) {
                drawing.line((self.x(end), middle - 5.0), (self.x(end), middle + 5.0), row.paint, 3.0);
            }
        }
        if let Some(value) = row.value {
            drawing.dot((self.x(value), middle), 5.5, row.paint, 1.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(intervals: &[(f64, f64)], margin: f64, floor: Option<(f64, f64)>) -> Deciding {
        let row = |(low, high): &(f64, f64)| Row {
            label: "10 users".to_owned(),
            value: Some((low * high).sqrt()),
            interval: Some((*low, *high)),
            pairs: vec![*low, *high, 90.0],
            floor,
            change: "+8 %".to_owned(),
            verdict: "worse".to_owned(),
            paint: Paint::Worse,
        };
        let group = Group {
            title: "item, median".to_owned(),
            direction: Direction::Lower,
            margin: (1.0 / (1.0 + margin), 1.0 + margin),
            rows: intervals.iter().map(row).collect(),
        };
        Deciding { title: String::new(), effect: Effect::Ratio, unit: Unit::Seconds, groups: vec![group] }
    }

    #[test]
    fn the_scale_follows_the_differences_and_not_the_noise() {
        let of = |intervals: &[(f64, f64)], floor| chart(intervals, 0.05, floor).scale();
        let narrow = of(&[(1.05, 1.11)], None);
        assert!((narrow.high.exp() - 1.12).abs() < 0.01 && (narrow.low.exp() - 0.944).abs() < 0.01, "{narrow:?}");
        let small = of(&[(1.05, 1.11)], Some((0.93, 1.04)));
        assert!(small.holds(0.93), "a small floor is shown whole");
        let wide = chart(&[(1.05, 1.11)], 0.05, Some((0.5, 3.0)));
        assert!((wide.scale().high - narrow.high).abs() < 1e-9 && wide.cuts_floors(), "a wide one is cut off");
        assert_eq!(wide.pairs_beyond(), 1, "the pair at 90 has no place");
        assert!(of(&[(27.0, 48.0)], None).holds(48.0));
    }

    #[test]
    fn eight_percent_are_seen() {
        let scale = chart(&[(1.05, 1.11)], 0.05, Some((0.4, 9.0))).scale();
        assert!(scale.share(1.08) - scale.share(1.0) > 0.3, "{scale:?}");
    }

    #[test]
    fn labels_are_round_and_never_overlap() {
        for far in [1.001_f64, 1.004, 1.02, 1.11, 1.5, 3.0, 4.5, 20.0, 1000.0, 1e6] {
            for intervals in [[(1.0, far)], [(1.0 / far, 1.0)], [(1.0 / far, far)]] {
                let scale = chart(&intervals, 0.001, None).scale();
                let ticks = scale.ticks(500.0);
                assert!(ticks.len() > 1 && ticks.iter().any(|tick| tick.1 == "same"), "{far}: {ticks:?}");
                for pair in ticks.windows(2) {
                    let apart = (scale.share(pair[1].0) - scale.share(pair[0].0)) * 500.0;
                    assert!(apart > f64::midpoint(wide(&pair[0].1), wide(&pair[1].1)), "{far}: {pair:?}");
                }
            }
        }
        let labels = |far| {
            let ticks = chart(&[(1.0, far)], 0.05, None).scale().ticks(500.0);
            ticks.into_iter().map(|tick| tick.1).collect::<Vec<String>>()
        };
        assert_eq!(labels(1.11), ["−5 %", "same", "+5 %", "+10 %"]);
        assert_eq!(labels(48.0), ["same", "×2", "×5", "×10", "×20", "×50"]);
    }

    #[test]
    fn every_mark_lies_on_the_sheet() {
        for intervals in [&[(1.05, 1.11), (0.2, 30.0)][..], &[(0.99, 1.01)], &[]] {
            let drawing = chart(intervals, 0.05, Some((0.01, 100.0))).draw();
            let inside = |(x, y): (f64, f64)| (0.0..=drawing.width).contains(&x) && (0.0..=drawing.height).contains(&y);
            for mark in &drawing.marks {
                match mark {
                    Mark::Stroke { points, .. } | Mark::Area { points, .. } => {
                        assert!(points.iter().all(|point| inside(*point)), "{mark:?}");
                    }
                    Mark::Dot { at, .. } | Mark::Text { at, .. } => assert!(inside(*at), "{mark:?}"),
                }
            }
        }
    }
}
