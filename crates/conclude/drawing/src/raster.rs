//! Drawings as pixels: every mark is a path, and zeno computes how much of each pixel a path
//! covers.

use crate::drawing::{Anchor, Drawing, Mark, Paint};
use crate::font::Fonts;
use zeno::{Command, Mask, PathBuilder, Stroke, Style};

/// Pixels per unit of the drawing: sharp on a dense screen.
const SCALE: f32 = 2.0;

/// Lengths of dashes and of the gaps between them, as in the SVG.
const DASHES: [f32; 2] = [5.0 * SCALE, 4.0 * SCALE];

/// Bytes of a pixel: red, green, blue.
const PIXEL: usize = 3;

/// A white sheet with marks on it.
pub(crate) struct Canvas {
    /// In pixels.
    pub(crate) width: u32,
    /// In pixels.
    pub(crate) height: u32,
    /// Row by row from the top.
    pixels: Vec<u8>,
}

impl Canvas {
    /// The drawing at `SCALE` pixels for each of its units.
    pub(crate) fn paint(drawing: &Drawing) -> Canvas {
        let (width, height) = (pixels(drawing.width).ceil() as u32, pixels(drawing.height).ceil() as u32);
        let mut canvas = Canvas { width, height, pixels: vec![255; width as usize * height as usize * PIXEL] };
        let fonts = Fonts::load();
        for mark in &drawing.marks {
            canvas.mark(mark, &fonts);
        }
        canvas
    }

    /// Bytes of a row.
    pub(crate) fn row_length(&self) -> usize {
        self.width as usize * PIXEL
    }

    /// The rows from the top.
    pub(crate) fn rows(&self) -> impl Iterator<Item = &[u8]> {
        self.pixels.chunks_exact(self.row_length())
    }

    fn mark(&mut self, mark: &Mark, fonts: &Fonts) {
        let mut path = Vec::new();
        match mark {
            Mark::Stroke { points, paint, width, dashed } => {
                polygon(&mut path, points);
                let mut stroke = Stroke::new(pixels(*width));
                if *dashed {
                    stroke.dash(&DASHES, 0.0);
                }
                self.fill(&path, stroke, *paint, 1.0);
            }
            Mark::Area { points, paint, opacity } => {
                polygon(&mut path, points);
                path.close();
                self.fill(&path, Style::default(), *paint, *opacity);
            }
            Mark::Dot { at, radius, paint, opacity } => {
                path.add_circle(place(*at), pixels(*radius));
                self.fill(&path, Style::default(), *paint, *opacity);
            }
            Mark::Text { at, text, size, anchor, paint, bold } => {
                let line = fonts.line(text, pixels(f64::from(*size)), *bold);
                let [x, y] = place(*at);
                let start = match anchor {
                    Anchor::Start => x,
                    Anchor::Middle => x - line.width / 2.0,
                    Anchor::End => x - line.width,
                };
                // Letters are placed on whole pixels, so that all lines of text are equally sharp.
                path.extend(line.outlines(start, y.round()));
                self.fill(&path, Style::default(), *paint, 1.0);
            }
        }
    }

    /// Blends the paint over the pixels that the path covers in this style.
    fn fill<'a>(&mut self, path: &[Command], style: impl Into<Style<'a>>, paint: Paint, opacity: f64) {
        let (coverage, area) = Mask::new(path).style(style).render();
        let (red, green, blue) = paint.rgb();
        for (row, y) in coverage.chunks_exact(area.width.max(1) as usize).zip(area.top..) {
            for (covered, x) in row.iter().zip(area.left..).filter(|(covered, _)| **covered > 0) {
                if let Some(pixel) = self.pixel(x, y) {
                    blend(pixel, [red, green, blue], f64::from(*covered) / 255.0 * opacity);
                }
            }
        }
    }

    /// The bytes of a pixel; none for one beside the sheet.
    fn pixel(&mut self, x: i32, y: i32) -> Option<&mut [u8]> {
        let (x, y) = (u32::try_from(x).ok()?, u32::try_from(y).ok()?);
        if x >= self.width || y >= self.height {
            return None;
        }
        let start = (y as usize * self.width as usize + x as usize) * PIXEL;
        Some(&mut self.pixels[start..start + PIXEL])
    }
}

fn blend(pixel: &mut [u8], colour: [u8; 3], weight: f64) {
    for (below, above) in pixel.iter_mut().zip(colour) {
        *below = (f64::from(*below) + (f64::from(above) - f64::from(*below)) * weight).round() as u8;
    }
}

fn polygon(path: &mut Vec<Command>, points: &[(f64, f64)]) {
    for (index, point) in points.iter().enumerate() {
        match index {
            0 => path.move_to(place(*point)),
            _ => path.line_to(place(*point)),
        };
    }
}

fn place((x, y): (f64, f64)) -> [f32; 2] {
    [pixels(x), pixels(y)]
}

fn pixels(units: f64) -> f32 {
    units as f32 * SCALE
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIDE: f64 = 20.0;

    fn painted(marks: Vec<Mark>) -> Canvas {
        Canvas::paint(&Drawing { width: SIDE, height: SIDE, marks })
    }

    /// Red, green and blue at a place of the drawing.
    fn colour(canvas: &mut Canvas, (x, y): (f64, f64)) -> [u8; 3] {
        let pixel = canvas.pixel(pixels(x) as i32, pixels(y) as i32).expect("a place on the sheet");
        [pixel[0], pixel[1], pixel[2]]
    }

    /// The number of pixels that are not white.
    fn inked(canvas: &Canvas) -> usize {
        canvas.pixels.chunks_exact(PIXEL).filter(|pixel| **pixel != [255; PIXEL]).count()
    }

    #[test]
    fn an_area_covers_its_inside_and_an_opacity_of_a_half_is_half_way_to_white() {
        let points = vec![(5.0, 5.0), (15.0, 5.0), (15.0, 15.0), (5.0, 15.0)];
        let (red, green, blue) = Paint::Ink.rgb();
        let half = |channel: u8| (255.0 - (255.0 - f64::from(channel)) / 2.0).round() as u8;
        let mut canvas = painted(vec![Mark::Area { points, paint: Paint::Ink, opacity: 0.5 }]);
        assert_eq!(colour(&mut canvas, (10.0, 10.0)), [half(red), half(green), half(blue)]);
        assert_eq!(colour(&mut canvas, (2.0, 10.0)), [255; 3]);
        assert_eq!(inked(&canvas), 20 * 20);
    }

    #[test]
    fn a_dashed_line_has_gaps() {
        let line = |dashed| {
            let points = vec![(0.0, 10.0), (SIDE, 10.0)];
            inked(&painted(vec![Mark::Stroke { points, paint: Paint::Ink, width: 2.0, dashed }]))
        };
        assert_eq!(line(false), 40 * 4);
        let dashes = (5 + 5 + 2) * 2 * 4;
        assert_eq!(line(true), dashes);
    }

    #[test]
    fn a_dot_has_the_area_of_a_circle_and_may_lie_partly_beside_the_sheet() {
        let dot = |at| inked(&painted(vec![Mark::Dot { at, radius: 5.0, paint: Paint::Ink, opacity: 1.0 }]));
        let circle = std::f64::consts::PI * 100.0;
        let whole = dot((10.0, 10.0)) as f64;
        assert!((circle..circle * 1.2).contains(&whole), "{whole} pixels for {circle:.0}");
        assert_eq!(dot((0.0, 10.0)) as f64, whole / 2.0);
    }

    #[test]
    fn a_text_lies_where_its_anchor_says() {
        let columns = |anchor| {
            let text =
                Mark::Text { at: (10.0, 15.0), text: "il".into(), size: 11, anchor, paint: Paint::Ink, bold: false };
            let canvas = painted(vec![text]);
            let inked = |x: &u32| canvas.rows().any(|row| row[*x as usize * PIXEL] != 255);
            let columns: Vec<u32> = (0..canvas.width).filter(inked).collect();
            (columns[0], columns[columns.len() - 1])
        };
        let (start, middle, end) = (columns(Anchor::Start), columns(Anchor::Middle), columns(Anchor::End));
        assert!(start.0 >= 20 && end.1 < 20, "{start:?} {end:?}");
        assert!(middle.0 < 20 && middle.1 > 20, "{middle:?}");
    }
}
