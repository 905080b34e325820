//! A panel: one small chart with its own axes.

use super::axis::Axis;
use plimsoll_drawing::{Anchor, Drawing, Mark, Paint, width_of};
use plimsoll_model::measure::Unit;

/// Size of a panel.
pub(crate) const WIDTH: f64 = 320.0;
pub(crate) const HEIGHT: f64 = 236.0;

const TOP: f64 = 34.0;
const BOTTOM: f64 = 42.0;
const RIGHT: f64 = 14.0;

/// Horizontal distance between the whiskers of neighbouring variants.
const DODGE: f64 = 7.0;

/// Width of a box.
const BOX: f64 = 5.0;

#[derive(Clone, Debug)]
pub(crate) struct Panel {
    pub(crate) title: String,
    pub(crate) x: Axis,
    pub(crate) y: Axis,
    /// The unit of its values.
    pub(crate) unit: Unit,
    pub(crate) lines: Vec<Line>,
    /// The end of the cut on the horizontal axis: values before it are not part of the results.
    pub(crate) cut: Option<f64>,
    /// A value that should not be exceeded.
    pub(crate) limit: Option<f64>,
}

/// A line with its spread.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    pub(crate) variant: usize,
    pub(crate) style: Style,
    pub(crate) points: Vec<Point>,
}

/// The style of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    /// Over time: a line in a band from the smallest to the largest value.
    Band,
    /// Over time: a dashed line alone.
    Dashed,
    /// Over numbers: every value a dot, with whiskers, and a line through the centres.
    Joined,
    /// Over words, between which there are no values: the same without the line.
    Apart,
    /// Over numbers: an interval around each centre; the values are its two ends.
    Intervals,
    /// Over numbers: the distribution of values around their median. The values come in pairs: the
    /// ends, and where they are known the quartiles, then the 5th and 95th percentile.
    Boxes,
}

#[derive(Clone, Debug)]
pub(crate) struct Point {
    pub(crate) x: f64,
    pub(crate) centre: f64,
    /// The values that it is the centre of.
    pub(crate) values: Vec<f64>,
}

/// The plot inside a panel, in pixels.
struct Area<'a> {
    panel: &'a Panel,
    left: f64,
}

/// Gives all `panels` with values of one kind the same axis, so that they can be compared.
pub(crate) fn share_axes(panels: &mut [Panel]) {
    let values: Vec<(Unit, Vec<f64>)> = panels.iter().map(|panel| (panel.unit, panel.drawn_values())).collect();
    for panel in panels {
        let of_kind = values.iter().filter(|(unit, _)| *unit == panel.unit).flat_map(|(_, values)| values);
        panel.y = Axis::of_values(panel.unit, of_kind.copied());
    }
}

/// Gives them the same logarithmic axis, whatever the values span.
pub(crate) fn share_logarithmic_axis(panels: &mut [Panel], unit: Unit) {
    let values: Vec<f64> = panels.iter().flat_map(Panel::drawn_values).collect();
    panels.iter_mut().for_each(|panel| panel.y = Axis::logarithmic(unit, values.iter().copied()));
}

impl Panel {
    /// A panel with an axis for its own values; none without any value.
    pub(crate) fn new(title: String, x: Axis, unit: Unit, lines: Vec<Line>) -> Option<Panel> {
        let mut panel =
            Panel { title, x, y: Axis::of_values(unit, std::iter::empty()), unit, lines, cut: None, limit: None };
        let values = panel.drawn_values();
        panel.y = Axis::of_values(unit, values.iter().copied());
        (!values.is_empty()).then_some(panel)
    }

    /// The same with a line at a value that should not be exceeded.
    pub(crate) fn with_limit(self, limit: f64) -> Panel {
        let mut panel = Panel { limit: Some(limit), ..self };
        let values = panel.drawn_values();
        panel.y = Axis::of_values(panel.unit, values.iter().copied());
        panel
    }

    /// The values of its marks.
    fn drawn_values(&self) -> Vec<f64> {
        let of_line = |line: &Line| match line.style {
            Style::Dashed => line.points.iter().map(|point| point.centre).collect::<Vec<_>>(),
            Style::Intervals => {
                line.points.iter().flat_map(|point| point.values.iter().copied().chain([point.centre])).collect()
            }
            _ => line.points.iter().flat_map(|point| point.values.iter().copied()).collect(),
        };
        self.lines.iter().flat_map(of_line).chain(self.limit).collect()
    }

    pub(crate) fn draw(&self) -> Drawing {
        let widest = self.y.ticks.iter().map(|tick| width_of(&tick.1)).fold(0.0, f64::max);
        let area = Area { panel: self, left: widest + 12.0 };
        let mut drawing = Drawing::new(WIDTH, HEIGHT);
        drawing.heading((2.0, 14.0), &self.title);
        area.shade(&mut drawing);
        area.axes(&mut drawing);
        area.limit(&mut drawing);
        if self.lines.iter().all(|line| line.points.is_empty()) {
            let middle = (f64::midpoint(area.left, WIDTH - RIGHT), f64::midpoint(TOP, HEIGHT - BOTTOM));
            drawing.text(middle, "no data", Anchor::Middle, Paint::Muted);
        }
        let variants = self.lines.iter().map(|line| line.variant + 1).max().unwrap_or(1);
        for line in &self.lines {
            let dodge = (line.variant as f64 - (variants - 1) as f64 / 2.0) * DODGE;
            match line.style {
                Style::Band => area.band(&mut drawing, line),
                Style::Dashed => area.stroke(&mut drawing, line, 0.0),
                Style::Joined => {
                    area.stroke(&mut drawing, line, dodge);
                    area.whiskers(&mut drawing, line, dodge);
                }
                Style::Apart => area.whiskers(&mut drawing, line, dodge),
                Style::Intervals => {
                    area.stroke(&mut drawing, line, dodge / 2.0);
                    area.intervals(&mut drawing, line, dodge / 2.0);
                }
                Style::Boxes => area.boxes(&mut drawing, line, dodge),
            }
        }
        drawing
    }
}

impl Area<'_> {
    fn x(&self, value: f64) -> f64 {
        self.left + self.panel.x.share(value) * (WIDTH - RIGHT - self.left)
    }

    fn y(&self, value: f64) -> f64 {
        HEIGHT - BOTTOM - self.panel.y.share(value) * (HEIGHT - BOTTOM - TOP)
    }

    fn shade(&self, drawing: &mut Drawing) {
        let Some(cut) = self.panel.cut else { return };
        let (left, right) = (self.left, self.x(cut));
        let points = vec![(left, TOP), (right, TOP), (right, HEIGHT - BOTTOM), (left, HEIGHT - BOTTOM)];
        drawing.marks.push(Mark::Area { points, paint: Paint::Grid, opacity: 0.7 });
    }

    fn axes(&self, drawing: &mut Drawing) {
        let (right, bottom) = (WIDTH - RIGHT, HEIGHT - BOTTOM);
        for (value, label) in &self.panel.y.ticks {
            let y = self.y(*value);
            drawing.line((self.left, y), (right, y), Paint::Grid, 1.0);
            drawing.text((self.left - 6.0, y + 4.0), label, Anchor::End, Paint::Muted);
        }
        if self.panel.y.logarithmic {
            drawing.text((right, TOP - 6.0), "log scale", Anchor::End, Paint::Muted);
        }
        drawing.line((self.left, bottom), (right, bottom), Paint::Muted, 1.0);
        for (value, _) in &self.panel.x.ticks {
            let x = self.x(*value);
            drawing.line((x, bottom), (x, bottom + 4.0), Paint::Muted, 1.0);
        }
        for (value, label) in self.panel.x.ticks_with_room(right - self.left) {
            drawing.text((self.x(value), bottom + 17.0), label, Anchor::Middle, Paint::Muted);
        }
        let middle = f64::midpoint(self.left, right);
        drawing.text((middle, HEIGHT - 7.0), &self.panel.x.label, Anchor::Middle, Paint::Muted);
    }

    fn limit(&self, drawing: &mut Drawing) {
        let Some(limit) = self.panel.limit else { return };
        let y = self.y(limit);
        drawing.line((self.left, y), (WIDTH - RIGHT, y), Paint::Muted, 1.6);
        drawing.text((self.left + 4.0, y - 4.0), "limit", Anchor::Start, Paint::Muted);
    }

    fn band(&self, drawing: &mut Drawing, line: &Line) {
        let paint = Paint::Variant(line.variant);
        let edge = |pick: fn(f64, f64) -> f64| {
            let place = move |point: &Point| {
                let value = point.values.iter().copied().fold(point.centre, pick);
                (self.x(point.x), self.y(value))
            };
            line.points.iter().map(place).collect::<Vec<_>>()
        };
        let mut outline = edge(f64::max);
        outline.extend(edge(f64::min).into_iter().rev());
        if line.points.len() > 1 {
            drawing.marks.push(Mark::Area { points: outline, paint, opacity: 0.16 });
        }
        self.stroke(drawing, line, 0.0);
    }

    fn whiskers(&self, drawing: &mut Drawing, line: &Line, dodge: f64) {
        let paint = Paint::Variant(line.variant);
        for point in &line.points {
            let x = self.x(point.x) + dodge;
            let low = point.values.iter().copied().fold(point.centre, f64::min);
            let high = point.values.iter().copied().fold(point.centre, f64::max);
            drawing.line((x, self.y(low)), (x, self.y(high)), paint, 1.2);
            for value in &point.values {
                drawing.dot((x, self.y(*value)), 1.8, paint, 0.5);
            }
            drawing.dot((x, self.y(point.centre)), 3.4, paint, 1.0);
        }
    }

    fn intervals(&self, drawing: &mut Drawing, line: &Line, dodge: f64) {
        let paint = Paint::Variant(line.variant);
        for point in &line.points {
            let x = self.x(point.x) + dodge;
            if let [low, high] = point.values[..] {
                drawing.line((x, self.y(low)), (x, self.y(high)), paint, 1.6);
                for end in [low, high] {
                    drawing.line((x - 3.0, self.y(end)), (x + 3.0, self.y(end)), paint, 1.6);
                }
            }
            drawing.dot((x, self.y(point.centre)), 2.8, paint, 1.0);
        }
    }

    fn boxes(&self, drawing: &mut Drawing, line: &Line, dodge: f64) {
        let paint = Paint::Variant(line.variant);
        for point in &line.points {
            let x = self.x(point.x) + dodge;
            for (index, pair) in point.values.chunks_exact(2).enumerate() {
                let (low, high) = (self.y(pair[0]), self.y(pair[1]));
                match index {
                    0 => [low, high].into_iter().for_each(|end| drawing.dot((x, end), 1.6, paint, 0.55)),
                    1 => {
                        let (left, right) = (x - BOX / 2.0, x + BOX / 2.0);
                        let points = vec![(left, low), (right, low), (right, high), (left, high)];
                        drawing.marks.push(Mark::Area { points, paint, opacity: 0.45 });
                    }
                    _ => drawing.line((x, low), (x, high), paint, 1.2),
                }
            }
            let middle = self.y(point.centre);
            drawing.line((x - BOX / 2.0, middle), (x + BOX / 2.0, middle), paint, 2.4);
        }
    }

    fn stroke(&self, drawing: &mut Drawing, line: &Line, dodge: f64) {
        let points: Vec<(f64, f64)> =
            line.points.iter().map(|point| (self.x(point.x) + dodge, self.y(point.centre))).collect();
        if points.len() > 1 {
            let paint = Paint::Variant(line.variant);
            let dashed = line.style == Style::Dashed;
            let width = if dashed { 1.3 } else { 1.9 };
            drawing.marks.push(Mark::Stroke { points, paint, width, dashed });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn panel(unit: Unit, values: &[f64]) -> Panel {
        let points = values.iter().map(|value| Point { x: 0.0, centre: *value, values: vec![*value] }).collect();
        let lines = vec![Line { variant: 0, style: Style::Joined, points }];
        Panel::new(String::new(), Axis::of_seconds(0.0, 1.0), unit, lines).expect("there are values")
    }

    fn says_log_scale(panel: &Panel) -> bool {
        panel.draw().marks.iter().any(|mark| matches!(mark, Mark::Text { text, .. } if text == "log scale"))
    }

    #[test]
    fn a_box_shows_what_is_known_of_a_distribution() {
        let drawn = |values: &[f64]| {
            let points = vec![Point { x: 0.0, centre: 0.004, values: values.to_vec() }];
            let lines = vec![Line { variant: 0, style: Style::Boxes, points }];
            let mut panels =
                [Panel::new(String::new(), Axis::of_sizes(Vec::new()), Unit::Seconds, lines).expect("values")];
            share_logarithmic_axis(&mut panels, Unit::Seconds);
            let marks = panels[0].draw().marks;
            let boxes = marks.iter().filter(|mark| matches!(mark, Mark::Area { .. })).count();
            let dots = marks.iter().filter(|mark| matches!(mark, Mark::Dot { .. })).count();
            (boxes, dots)
        };
        assert_eq!(drawn(&[0.001, 0.1]), (0, 2));
        assert_eq!(drawn(&[0.001, 0.1, 0.002, 0.01]), (1, 2));
        assert_eq!(drawn(&[0.001, 0.1, 0.002, 0.01, 0.001, 0.05]), (1, 2));
    }

    #[test]
    fn panels_of_one_kind_have_one_scale_and_a_logarithmic_one_says_so() {
        let mut panels = [
            panel(Unit::Seconds, &[0.001, 0.1]),
            panel(Unit::Seconds, &[0.002, 0.003]),
            panel(Unit::Cores, &[0.4, 0.5]),
        ];
        share_axes(&mut panels);
        assert_eq!(panels[0].y.ticks, panels[1].y.ticks);
        assert_eq!(panels.map(|panel| says_log_scale(&panel)), [true, true, false]);
    }
}
