//! Writes findings as Markdown, HTML, charts, CSV and JSON.
//!
//! A report is a pure function of an input and its analysis: [`render`] gives documents as bytes,
//! the same ones for the same input, and uses neither disk nor clock. Markdown and HTML are two
//! templates over one [`page::Page`]; every chart is drawn once and written as SVG and PNG.

mod chart;
pub mod cross_run;
mod described;
mod documents;
mod figures;
mod json;
mod junit;
mod method;
mod page;
pub mod release;
mod summary;
mod tables;
mod terminal;
mod text;

pub use documents::{Document, render};
pub use junit::junit;
pub use method::{Gate, gate};
pub use summary::summary;
pub use terminal::terminal;
