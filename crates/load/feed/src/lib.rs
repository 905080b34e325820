//! Data for users, such as accounts, search terms or ids: from files, or at random.
//!
//! A [`Table`] is a file of CSV, or of JSON with an array of objects, read once and shared by all
//! users. A [`Cursor`] chooses the next row on one thread, without communication between threads.
//! An [`IntegerSampler`] draws integers with a distribution, from any [`RandomSource`].

mod csv;
mod cursor;
mod draft;
mod fault;
mod json;
mod random;
mod table;

pub use cursor::{AtEnd, Cursor, Order, Turn};
pub use draft::Cell;
pub use fault::{FeedFault, Place};
pub use random::{IntegerSampler, RandomSource, SeededRandom, push_alphanumeric};
pub use table::Table;
