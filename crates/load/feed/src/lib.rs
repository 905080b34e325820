//! Data that users bring along: accounts, search terms, ids.
//!
//! A [`Table`] is a file of CSV, or of JSON with an array of objects, read once and shared by all
//! users. A [`Cursor`] says which row comes next, on one thread and without asking the others.

mod csv;
mod cursor;
mod fault;
mod json;
mod table;

pub use cursor::{AtEnd, Cursor, Order, Share, Turn};
pub use fault::{FeedFault, Place};
pub use table::{Cell, Table};
