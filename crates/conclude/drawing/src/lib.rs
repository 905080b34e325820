//! Marks on a sheet, as SVG and PNG.
//!
//! A [`Drawing`] is a few lines, areas, dots and texts. [`svg`] writes it as text; [`png`] rasterises
//! it. The crate knows nothing of charts.

mod drawing;
mod font;
mod png;
mod raster;
mod svg;

pub use drawing::{Anchor, Drawing, Label, Mark, Paint, SMALL, width_of};
pub use png::png;
pub use svg::{Surface, svg};
