//! A drawing: marks at positions, with paints that a back end turns into colours.

/// Marks on a sheet of this size, in pixels from its top left corner.
#[derive(Clone, Debug, Default)]
pub struct Drawing {
    /// In pixels.
    pub width: f64,
    /// In pixels.
    pub height: f64,
    /// From the bottom to the top: later marks lie over earlier ones.
    pub marks: Vec<Mark>,
}

/// A mark. Positions and sizes are in pixels, opacities from 0 to 1.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "the names of the fields say it")]
pub enum Mark {
    /// A line through points.
    Stroke { points: Vec<(f64, f64)>, paint: Paint, width: f64, dashed: bool },
    /// A polygon.
    Area { points: Vec<(f64, f64)>, paint: Paint, opacity: f64 },
    /// A circle.
    Dot { at: (f64, f64), radius: f64, paint: Paint, opacity: f64 },
    /// A line of text whose baseline is at `at`.
    Text { at: (f64, f64), text: String, size: u32, anchor: Anchor, paint: Paint, bold: bool },
}

/// The part of a line of text that lies at its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anchor {
    /// Its left end.
    Start,
    /// Its middle.
    Middle,
    /// Its right end.
    End,
}

/// How a label is written.
#[derive(Clone, Copy, Debug)]
pub struct Label {
    /// The size of its letters, in pixels.
    pub size: u32,
    /// The part of it that lies at its position.
    pub anchor: Anchor,
    /// Its colour.
    pub paint: Paint,
    /// True for bold letters.
    pub bold: bool,
}

/// The paint of a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paint {
    /// The colour of text.
    Ink,
    /// The colour of axes and labels.
    Muted,
    /// Lines of the grid.
    Grid,
    /// The colour of a variant, by its index.
    Variant(usize),
    /// The colour of the verdict better.
    Better,
    /// The colour of the verdict worse.
    Worse,
    /// The colour of the verdict equivalent.
    Equal,
    /// The colour of an open verdict.
    Open,
}

/// Colours that people with any colour vision tell apart (Okabe and Ito, 2008), the last two
/// darkened for a white sheet.
const VARIANTS: [(u8, u8, u8); 6] =
    [(0, 114, 178), (213, 94, 0), (0, 158, 115), (164, 73, 128), (38, 140, 190), (176, 116, 0)];

impl Paint {
    /// The colour on white.
    #[must_use]
    pub fn rgb(self) -> (u8, u8, u8) {
        match self {
            Paint::Ink => (31, 35, 40),
            Paint::Muted => (91, 99, 110),
            Paint::Grid => (226, 229, 233),
            Paint::Variant(index) => VARIANTS[index % VARIANTS.len()],
            Paint::Better => (10, 122, 87),
            Paint::Worse => (179, 64, 15),
            Paint::Equal => (45, 95, 138),
            Paint::Open => (106, 111, 120),
        }
    }
}

impl Drawing {
    /// An empty sheet.
    #[must_use]
    pub fn new(width: f64, height: f64) -> Drawing {
        Drawing { width, height, marks: Vec::new() }
    }

    /// Adds a line between two positions.
    pub fn line(&mut self, from: (f64, f64), to: (f64, f64), paint: Paint, width: f64) {
        self.marks.push(Mark::Stroke { points: vec![from, to], paint, width, dashed: false });
    }

    /// Adds a circle.
    pub fn dot(&mut self, at: (f64, f64), radius: f64, paint: Paint, opacity: f64) {
        self.marks.push(Mark::Dot { at, radius, paint, opacity });
    }

    /// Adds a label.
    pub fn text(&mut self, at: (f64, f64), text: impl Into<String>, anchor: Anchor, paint: Paint) {
        self.marks.push(Mark::Text { at, text: text.into(), size: SMALL, anchor, paint, bold: false });
    }

    /// Adds a heading that begins at a position.
    pub fn heading(&mut self, at: (f64, f64), text: impl Into<String>) {
        let (text, anchor) = (text.into(), Anchor::Start);
        self.marks.push(Mark::Text { at, text, size: SMALL + 1, anchor, paint: Paint::Ink, bold: true });
    }

    /// Adds a label in a size of its own.
    pub fn label(&mut self, at: (f64, f64), text: impl Into<String>, style: Label) {
        let Label { size, anchor, paint, bold } = style;
        self.marks.push(Mark::Text { at, text: text.into(), size, anchor, paint, bold });
    }

    /// Puts `other` on the sheet with its top left corner at `at`.
    pub fn place(&mut self, other: Drawing, at: (f64, f64)) {
        let moved = |(x, y): (f64, f64)| (x + at.0, y + at.1);
        self.marks.extend(other.marks.into_iter().map(|mark| match mark {
            Mark::Stroke { points, paint, width, dashed } => {
                Mark::Stroke { points: points.into_iter().map(moved).collect(), paint, width, dashed }
            }
            Mark::Area { points, paint, opacity } => {
                Mark::Area { points: points.into_iter().map(moved).collect(), paint, opacity }
            }
            Mark::Dot { at, radius, paint, opacity } => Mark::Dot { at: moved(at), radius, paint, opacity },
            Mark::Text { at, text, size, anchor, paint, bold } => {
                Mark::Text { at: moved(at), text, size, anchor, paint, bold }
            }
        }));
    }
}

/// Size of labels.
pub const SMALL: u32 = 11;

/// An estimate of the width of `text` in the size of labels, large enough that nothing is cut off.
#[must_use]
pub fn width_of(text: &str) -> f64 {
    text.chars().count() as f64 * f64::from(SMALL) * 0.6
}
