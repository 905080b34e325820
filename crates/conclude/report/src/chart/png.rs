//! Drawings as PNG, through kuva's raster back end and its own font.

use super::drawing::{Anchor, Drawing, Mark, Paint};
use kuva::RasterBackend;
use kuva::render::color::Color;
use kuva::render::render::{PathData, Primitive, Scene, TextAnchor};
use std::fmt::Write;

/// Pixels for each unit of the drawing: sharp on a dense screen.
const SCALE: f32 = 2.0;

pub(crate) fn png(drawing: &Drawing) -> Vec<u8> {
    let mut scene = Scene::new(drawing.width, drawing.height);
    scene.elements = drawing.marks.iter().map(primitive).collect();
    RasterBackend::new().with_scale(SCALE).render_scene(&scene).expect("a drawing has a size and known colours")
}

fn primitive(mark: &Mark) -> Primitive {
    match mark {
        Mark::Stroke { points, paint, width, dashed } => Primitive::PolyLine {
            points: points.clone(),
            stroke: colour(*paint),
            stroke_width: *width,
            stroke_dasharray: dashed.then(|| "5 4".to_owned()),
        },
        Mark::Area { points, paint, opacity } => Primitive::Path(Box::new(PathData {
            d: outline(points),
            fill: Some(colour(*paint)),
            stroke: Color::None,
            stroke_width: 0.0,
            opacity: Some(*opacity),
            stroke_dasharray: None,
        })),
        Mark::Dot { at, radius, paint, opacity } => Primitive::Circle {
            cx: at.0,
            cy: at.1,
            r: *radius,
            fill: colour(*paint),
            fill_opacity: Some(*opacity),
            stroke: None,
            stroke_width: None,
        },
        Mark::Text { at, text, size, anchor, paint, bold } => Primitive::Text {
            x: at.0,
            y: at.1,
            content: text.clone(),
            size: *size,
            anchor: match anchor {
                Anchor::Start => TextAnchor::Start,
                Anchor::Middle => TextAnchor::Middle,
                Anchor::End => TextAnchor::End,
            },
            rotate: None,
            bold: *bold,
            color: Some(colour(*paint)),
        },
    }
}

fn colour(paint: Paint) -> Color {
    let (red, green, blue) = paint.rgb();
    Color::Rgb(red, green, blue)
}

fn outline(points: &[(f64, f64)]) -> String {
    let mut path = String::new();
    for (index, (x, y)) in points.iter().enumerate() {
        let command = if index == 0 { 'M' } else { 'L' };
        write!(path, "{command}{x:.2} {y:.2} ").expect("writing to a string does not fail");
    }
    path + "Z"
}
