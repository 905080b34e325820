//! The feed files of a flow, and the rows that users take.

use super::template::ValueRef;
use plimsoll_engine::diagnostic::WorkloadDiagnostic;
use plimsoll_feed::{AtEnd, Cursor, Order, Table, Turn};
use plimsoll_model::flow::{Feed, FeedEnd, FeedOrder, WorkloadPart};
use plimsoll_model::load::Share;
use plimsoll_model::units::Instant;
use std::cell::RefCell;
use std::sync::atomic::{AtomicI64, Ordering};

/// The files of a flow, read once.
#[derive(Default)]
pub(super) struct Feeds {
    pub(super) tables: Vec<Table>,
    names: Vec<String>,
    orders: Vec<Order>,
    /// The instant at which a user first found no row, in nanoseconds; `i64::MAX` if none has.
    ends: Vec<AtomicI64>,
    /// The source of each value that comes from a feed.
    places: Vec<(u16, ValueRef)>,
}

/// The cursors of one thread.
pub(super) struct Cursors(RefCell<Vec<Cursor>>);

impl Feeds {
    /// Reads all files, and finds their columns.
    pub(super) fn read(feeds: &[Feed], faults: &mut Vec<WorkloadDiagnostic>) -> Feeds {
        let mut all = Feeds::default();
        for (number, feed) in feeds.iter().enumerate() {
            match Table::read(&feed.file) {
                Ok(table) => all.add(number, feed, table, faults),
                Err(fault) => faults.push(WorkloadDiagnostic::of(WorkloadPart::Feed(number), fault.to_string())),
            }
        }
        all
    }

    fn add(&mut self, index: usize, feed: &Feed, table: Table, faults: &mut Vec<WorkloadDiagnostic>) {
        let number = self.tables.len() as u16;
        for (value, column) in &feed.columns {
            match table.column(column) {
                Ok(column) => {
                    let place = ValueRef::Cell { feed: number, column: column as u16, name: value.0 };
                    self.places.push((value.0, place));
                }
                Err(fault) if table.columns().any(|known| known == column) => {
                    // The column exists; a row lacks its value.
                    faults.push(WorkloadDiagnostic::of(WorkloadPart::Feed(index), fault.to_string()));
                }
                Err(fault) => {
                    let known = table.columns().map(|column| format!("{}.{column}", feed.name)).collect();
                    faults.push(WorkloadDiagnostic {
                        known,
                        ..WorkloadDiagnostic::of(WorkloadPart::Value(*value), fault.to_string())
                    });
                }
            }
        }
        self.tables.push(table);
        self.names.push(feed.name.clone());
        self.orders.push(order(feed));
        self.ends.push(AtomicI64::new(i64::MAX));
    }

    /// Records that a user found no row at `now`.
    pub(super) fn record_end(&self, feed: usize, now: Instant) {
        self.ends[feed].fetch_min(now.0, Ordering::Relaxed);
    }

    /// The reason why users stopped, if a feed ended.
    pub(super) fn ended(&self) -> Option<String> {
        let at = |feed: &usize| self.ends[*feed].load(Ordering::Relaxed);
        let first = (0..self.tables.len()).min_by_key(at)?;
        (at(&first) < i64::MAX).then(|| self.describe_end(first, Instant(at(&first))))
    }

    fn describe_end(&self, feed: usize, at: Instant) -> String {
        let (name, table) = (&self.names[feed], &self.tables[feed]);
        let (file, rows) = (table.file().display(), table.rows());
        if let Order::PerUser(_) = self.orders[feed] {
            return format!(
                "feed `{name}` ({file}) has a row for each of {rows} users, and the others stopped at once"
            );
        }
        let seconds = at.0 as f64 / 1e9;
        let phase = if at.0 < 0 { "before the measure phase began" } else { "into the measure phase" };
        format!(
            "all {rows} rows of feed `{name}` ({file}) were taken {:.1} s {phase}, and users who found none stopped",
            seconds.abs()
        )
    }

    /// The source of a value, if it comes from a feed.
    pub(super) fn value_ref(&self, value: u16) -> Option<ValueRef> {
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
    /// Takes a row of each feed for this turn. Fails with the index of a feed that has no row left.
    pub(super) fn take(&self, turn: Turn, rows: &mut [u32]) -> Result<(), usize> {
        let mut cursors = self.0.borrow_mut();
        cursors.iter_mut().zip(rows).enumerate().try_for_each(|(feed, (cursor, row))| {
            let taken = cursor.take(turn);
            // A table has less than 4 GiB of text.
            *row = taken.map_or(u32::MAX, |taken| taken as u32);
            taken.map(|_| ()).ok_or(feed)
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
