//! The files whose rows users take.

use super::template::Place;
use plimsoll_feed::{AtEnd, Cursor, Order, Share, Table, Turn};
use plimsoll_model::flow::{Feed, FeedEnd, FeedOrder};
use std::cell::RefCell;

/// The files of a flow, read once.
#[derive(Default)]
pub(super) struct Feeds {
    pub(super) tables: Vec<Table>,
    orders: Vec<Order>,
    /// For each value of a feed, where it is found.
    places: Vec<(u16, Place)>,
}

/// The cursors of one thread.
pub(super) struct Cursors(RefCell<Vec<Cursor>>);

impl Feeds {
    /// Reads all of them, and finds their columns.
    pub(super) fn read(feeds: &[Feed], faults: &mut Vec<String>) -> Feeds {
        let mut all = Feeds::default();
        for feed in feeds {
            match Table::read(&feed.file) {
                Ok(table) => all.add(feed, table, faults),
                Err(fault) => faults.push(fault.to_string()),
            }
        }
        all
    }

    fn add(&mut self, feed: &Feed, table: Table, faults: &mut Vec<String>) {
        let number = self.tables.len() as u16;
        for (value, column) in &feed.columns {
            match table.column(column) {
                Ok(column) => {
                    let place = Place::Cell { feed: number, column: column as u16, name: value.0 };
                    self.places.push((value.0, place));
                }
                Err(fault) => faults.push(fault.to_string()),
            }
        }
        self.tables.push(table);
        self.orders.push(order(feed));
    }

    /// Where the value is found, if it is one of a feed.
    pub(super) fn place(&self, value: u16) -> Option<Place> {
        self.places.iter().find(|(known, _)| *known == value).map(|(_, place)| *place)
    }

    /// The cursors of the thread that carries this share.
    pub(super) fn cursors(&self, seed: u64, share: Share) -> Cursors {
        let cursor = |(index, (table, order)): (usize, (&Table, &Order))| {
            Cursor::new(*order, table.rows(), seed.wrapping_add(index as u64), share)
        };
        let cursors = self.tables.iter().zip(&self.orders).enumerate().map(cursor);
        Cursors(RefCell::new(cursors.collect()))
    }
}

impl Cursors {
    /// Takes a row of each feed for this turn; false where the user is to stop.
    pub(super) fn take(&self, turn: Turn, rows: &mut [u32]) -> bool {
        let mut cursors = self.0.borrow_mut();
        cursors.iter_mut().zip(rows).all(|(cursor, row)| {
            let taken = cursor.take(turn);
            // A table has less than 4 GiB of text.
            *row = taken.map_or(u32::MAX, |taken| taken as u32);
            taken.is_some()
        })
    }
}

fn order(feed: &Feed) -> Order {
    let at_end = match feed.at_end {
        FeedEnd::StartOver => AtEnd::StartOver,
        FeedEnd::Stop => AtEnd::Stop,
    };
    match feed.order {
        FeedOrder::PerUser => Order::PerUser(at_end),
        FeedOrder::InOrder => Order::InOrder(at_end),
        FeedOrder::Random => Order::Random,
        FeedOrder::Unique => Order::Unique,
    }
}
