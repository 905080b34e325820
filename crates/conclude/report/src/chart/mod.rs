//! Charts, from one definition to SVG for the page, SVG and PNG files.
//!
//! A [`Figure`] is a row of small [`Panel`]s with a common legend, so that variants are compared by
//! their lines and not by their place in a crowd of lines. Panels and figures become
//! [`Drawing`](plimsoll_drawing::Drawing)s, which are written as SVG and PNG. Plotting libraries
//! are not used: they have no room for whiskers and raw points side by side, and no colours that
//! follow the page's.

mod axis;
mod deciding;
mod figure;
mod forest;
mod panel;

pub(crate) use axis::{Axis, are_numbers, position};
pub(crate) use deciding::{Deciding, Group, Row};
pub(crate) use figure::Figure;
pub(crate) use forest::{Forest, ForestRow};
pub(crate) use panel::{Line, Panel, Point, Style, share_axes, share_logarithmic_axis};
