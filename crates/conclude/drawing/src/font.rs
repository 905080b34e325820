//! Lines of text as outlines of letters, in DejaVu Sans, the first font that the SVG names.
//!
//! The files have every character of DejaVu Sans 2.37 and DejaVu Sans Bold 2.35. Left out is what charts do not use, a
//! quarter of their size: hints for screens of few pixels, kerning, ligatures and mathematics. fontTools made them:
//! `pyftsubset DejaVuSans.ttf --unicodes='*' --no-hinting --layout-features='' --notdef-outline
//! --name-IDs=0,1,2,4,5,6,13,14 --drop-tables+=kern,FFTM,GDEF,MATH`, then `brotli --best`.

use plimsoll_web::coding::{Coding, decode};
use std::sync::LazyLock;
use ttf_parser::{Face, GlyphId, OutlineBuilder};
use zeno::{Command, PathBuilder, Transform};

/// Above the size of either font.
const LARGEST: usize = 1 << 20;

static REGULAR: LazyLock<Vec<u8>> = LazyLock::new(|| unpack(include_bytes!("../fonts/DejaVuSans.ttf.br")));
static BOLD: LazyLock<Vec<u8>> = LazyLock::new(|| unpack(include_bytes!("../fonts/DejaVuSans-Bold.ttf.br")));

fn unpack(packed: &[u8]) -> Vec<u8> {
    decode(packed.to_vec(), &[Coding::Brotli], LARGEST).expect("the font is part of the program")
}

/// The fonts of charts.
pub(crate) struct Fonts {
    regular: Face<'static>,
    bold: Face<'static>,
}

/// A line of text.
pub(crate) struct Line<'a> {
    face: &'a Face<'static>,
    glyphs: Vec<GlyphId>,
    /// Pixels for each unit of the font.
    scale: f32,
    /// In pixels.
    pub(crate) width: f32,
}

impl Fonts {
    pub(crate) fn load() -> Fonts {
        let parse = |font: &'static [u8]| Face::parse(font, 0).expect("the font is part of the program");
        Fonts { regular: parse(&REGULAR), bold: parse(&BOLD) }
    }

    /// A line of `text` with letters of `size` pixels. Characters that the font lacks are boxes.
    pub(crate) fn line(&self, text: &str, size: f32, bold: bool) -> Line<'_> {
        let face = if bold { &self.bold } else { &self.regular };
        let scale = size / f32::from(face.units_per_em());
        let glyphs: Vec<GlyphId> = text.chars().map(|letter| face.glyph_index(letter).unwrap_or_default()).collect();
        let width = glyphs.iter().map(|glyph| advance(face, *glyph) * scale).sum();
        Line { face, glyphs, scale, width }
    }
}

impl Line<'_> {
    /// The outlines of its letters, with the line's left end at `x` and its baseline at `y`.
    pub(crate) fn outlines(&self, x: f32, y: f32) -> Vec<Command> {
        let mut path = Vec::new();
        let mut pen = x;
        for glyph in &self.glyphs {
            let mut outline = Outline(Vec::new());
            // Blanks have none.
            let _bounds = self.face.outline_glyph(*glyph, &mut outline);
            // The y axis of fonts points up.
            let on_sheet = Transform::new(self.scale, 0.0, 0.0, -self.scale, pen, y);
            path.extend(outline.0.iter().map(|command| command.transform(&on_sheet)));
            pen += advance(self.face, *glyph) * self.scale;
        }
        path
    }
}

/// The distance from this letter to the next, in units of the font.
fn advance(face: &Face<'_>, glyph: GlyphId) -> f32 {
    face.glyph_hor_advance(glyph).unwrap_or_default().into()
}

/// The outline of a letter in units of the font.
struct Outline(Vec<Command>);

impl OutlineBuilder for Outline {
    fn move_to(&mut self, x: f32, y: f32) {
        self.0.move_to([x, y]);
    }

    fn line_to(&mut self, x: f32, y: f32) {
        self.0.line_to([x, y]);
    }

    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        self.0.quad_to([x1, y1], [x, y]);
    }

    fn curve_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
        self.0.curve_to([x1, y1], [x2, y2], [x, y]);
    }

    fn close(&mut self) {
        self.0.close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_as_wide_as_its_letters_and_bold_is_wider() {
        let fonts = Fonts::load();
        let width = |text, bold| fonts.line(text, 22.0, bold).width;
        assert!((width("mm", false) - 2.0 * width("m", false)).abs() < 0.01);
        assert!(width("p95", true) > width("p95", false));
        // 11 at two pixels a unit: what charts leave room for must be enough.
        assert!(width("request_duration", false) / 2.0 < crate::drawing::width_of("request_duration") as f32);
    }

    #[test]
    fn every_letter_of_units_and_signs_is_in_the_font() {
        for letter in "aZ09 µ×−–…≥≤±äéß→%".chars() {
            assert!(Fonts::load().regular.glyph_index(letter).is_some(), "{letter}");
        }
    }
}
