//! Drawings as SVG.

use crate::drawing::{Anchor, Drawing, Mark, Paint};
use std::fmt::Write;

/// The document that holds the SVG.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Surface {
    /// A file of its own: with its own colours, on white.
    File,
    /// The page, whose colours it uses.
    Page,
}

/// `drawing` as SVG; screen readers read `title`.
#[must_use]
pub fn svg(drawing: &Drawing, title: &str, surface: Surface) -> String {
    let (width, height) = (drawing.width, drawing.height);
    let head = match surface {
        Surface::File => format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" viewBox=\"0 0 {width:.0} \
             {height:.0}\" font-family=\"DejaVu Sans, Verdana, sans-serif\" role=\"img\">\n<title>{}</title>\n<rect \
             width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n",
            escaped(title)
        ),
        Surface::Page => {
            format!("<svg viewBox=\"0 0 {width:.0} {height:.0}\" role=\"img\" aria-label=\"{}\">\n", escaped(title))
        }
    };
    let mut svg = head;
    for mark in &drawing.marks {
        write_mark(&mut svg, mark, surface).expect("writing to a string does not fail");
    }
    svg + "</svg>\n"
}

fn write_mark(svg: &mut String, mark: &Mark, surface: Surface) -> std::fmt::Result {
    let colour = |paint: &Paint| colour(*paint, surface);
    match mark {
        Mark::Stroke { points, paint, width, dashed } => {
            let dashes = if *dashed { " stroke-dasharray=\"5 4\"" } else { "" };
            let (colour, points) = (colour(paint), places(points));
            writeln!(
                svg,
                "<polyline points=\"{points}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"{width}\"{dashes}/>"
            )
        }
        Mark::Area { points, paint, opacity } => {
            writeln!(
                svg,
                "<polygon points=\"{}\" fill=\"{}\" fill-opacity=\"{opacity}\"/>",
                places(points),
                colour(paint)
            )
        }
        Mark::Dot { at: (x, y), radius, paint, opacity } => writeln!(
            svg,
            "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius}\" fill=\"{}\" fill-opacity=\"{opacity}\"/>",
            colour(paint)
        ),
        Mark::Text { at: (x, y), text, size, anchor, paint, bold } => {
            let anchor = match anchor {
                Anchor::Start => "start",
                Anchor::Middle => "middle",
                Anchor::End => "end",
            };
            let weight = if *bold { " font-weight=\"600\"" } else { "" };
            let (colour, text) = (colour(paint), escaped(text));
            writeln!(
                svg,
                "<text x=\"{x:.1}\" y=\"{y:.1}\" font-size=\"{size}\" text-anchor=\"{anchor}\" \
                 fill=\"{colour}\"{weight}>{text}</text>"
            )
        }
    }
}

fn places(points: &[(f64, f64)]) -> String {
    let places: Vec<String> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
    places.join(" ")
}

fn colour(paint: Paint, surface: Surface) -> String {
    match (surface, paint) {
        (Surface::File, _) => {
            let (red, green, blue) = paint.rgb();
            format!("#{red:02x}{green:02x}{blue:02x}")
        }
        (Surface::Page, Paint::Ink) => "var(--ink)".to_owned(),
        (Surface::Page, Paint::Muted) => "var(--muted)".to_owned(),
        (Surface::Page, Paint::Grid) => "var(--grid)".to_owned(),
        (Surface::Page, Paint::Variant(index)) => format!("var(--v{})", index % 6),
        (Surface::Page, Paint::Better) => "var(--better)".to_owned(),
        (Surface::Page, Paint::Worse) => "var(--worse)".to_owned(),
        (Surface::Page, Paint::Equal) => "var(--equal)".to_owned(),
        (Surface::Page, Paint::Open) => "var(--open)".to_owned(),
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
