//! Data for users, such as accounts, search terms or ids.
//!
//! A [`Table`] is a file of CSV, or of JSON with an array of objects, read once and shared by all
//! users. A [`Cursor`] chooses the next row on one thread, without communication between threads.

mod csv;
mod cursor;
mod draft;
mod fault;
mod json;
mod table;

pub use cursor::{AtEnd, Cursor, Order, Turn};
pub use draft::Cell;
pub use fault::{FeedFault, Place};
pub use table::Table;
